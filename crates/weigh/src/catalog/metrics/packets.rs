//! Packets of the run, counted in the command's own cgroup.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// Packets of the run.
    pub struct RunNetwork in Run / "network", "Network of the run" {
        /// Bytes sent, IP headers included.
        sent: Counter u64 Bytes, "Sent", from "cgroup_skb egress skb->len";
        /// Bytes received, IP headers included.
        received: Counter u64 Bytes, "Received", from "cgroup_skb ingress skb->len";
        /// Bytes sent through the loopback device; part of the bytes sent.
        loopback_sent: Counter u64 Bytes, "Sent through the loopback", from "cgroup_skb egress, device 1";
        /// Bytes received through the loopback device; part of the bytes received.
        loopback_received: Counter u64 Bytes, "Received through the loopback", from "cgroup_skb ingress, device 1";
        /// Packets sent; a segment that the device splits (TSO) is one.
        packets_sent: Counter u64 One, "Packets sent", from "cgroup_skb egress";
        /// Packets received; a segment that the device merged (GRO) is one.
        packets_received: Counter u64 One, "Packets received", from "cgroup_skb ingress";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Packets,
    name: "packets",
    about: "what the run sent and received, exactly: for root with weigh run --cgroup",
    groups: &[RunNetwork::METRICS],
    on_request: true,
    everywhere: false,
};
