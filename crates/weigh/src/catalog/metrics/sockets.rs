//! TCP traffic of the run, from its connections.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// TCP of the run's processes, as far as their connections were seen.
    pub struct RunTcp in Run / "tcp", "TCP of the run" {
        /// Bytes sent, headers excluded and without what was sent again.
        sent: Counter u64 Bytes, "Sent", from "sock_diag tcpi_bytes_sent - tcpi_bytes_retrans";
        /// Bytes received, headers excluded.
        received: Counter u64 Bytes, "Received", from "sock_diag tcpi_bytes_received";
        /// Connections that anything is known of.
        connections: Counter u64 One, "Connections", from "sock_diag";
        /// Bytes sent by connections of this network namespace that were too short to tell whose they were.
        unowned_sent: Counter u64 Bytes, "Sent by nobody knows whom", from "sock_diag SKNLGRP_INET_TCP_DESTROY";
        /// Bytes received by connections of this network namespace that were too short to tell whose they were.
        unowned_received: Counter u64 Bytes, "Received by nobody knows whom", from "sock_diag SKNLGRP_INET_TCP_DESTROY";
        /// Connections of this network namespace that were too short to tell whose they were.
        unowned_connections: Counter u64 One, "Connections of nobody knows whom", from "sock_diag SKNLGRP_INET_TCP_DESTROY";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Sockets,
    name: "sockets",
    about: "what the run sent and received over TCP, from its connections",
    groups: &[RunTcp::METRICS],
    on_request: false,
    everywhere: false,
};
