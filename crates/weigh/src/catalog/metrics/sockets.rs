//! TCP traffic of the run, from its connections.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// TCP of the run's processes, as far as their connections were attributed.
    pub struct RunTcp in Run / "tcp", "TCP of the run" {
        /// Bytes sent, without headers and retransmissions.
        sent: Counter u64 Bytes, "Sent", from "sock_diag tcpi_bytes_sent - tcpi_bytes_retrans";
        /// Bytes received, without headers.
        received: Counter u64 Bytes, "Received", from "sock_diag tcpi_bytes_received";
        /// Connections attributed to the run.
        connections: Counter u64 One, "Connections", from "sock_diag";
        /// Bytes sent by connections of this network namespace that were too short to be
        /// attributed.
        unowned_sent: Counter u64 Bytes, "Sent, unattributed", from "sock_diag SKNLGRP_INET_TCP_DESTROY";
        /// Bytes received by connections of this network namespace that were too short to be
        /// attributed.
        unowned_received: Counter u64 Bytes, "Received, unattributed", from "sock_diag SKNLGRP_INET_TCP_DESTROY";
        /// Connections of this network namespace that were too short to be attributed.
        unowned_connections: Counter u64 One, "Connections, unattributed", from "sock_diag SKNLGRP_INET_TCP_DESTROY";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Sockets,
    name: "sockets",
    about: "TCP traffic of the run, from its connections",
    groups: &[RunTcp::METRICS],
    on_request: false,
    everywhere: false,
};
