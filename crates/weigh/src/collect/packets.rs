//! What the run sent and received, packet by packet, as the kernel counts it.
//!
//! Source: programs on the control group that was made for the command (`host::bpf`), for root.
//! Every socket that the run makes is counted, whatever its protocol and however short its
//! life is; bytes have IP heads in them. A socket that was handed to the run is not counted.

use super::{Fault, Probe, Source, group};
use crate::catalog::metrics;
use crate::host::Host;
use crate::host::bpf::{PacketCounter, Way};
use crate::sample::{Entity, Tick};

metrics! {
    /// Packets of the run.
    pub struct RunNetwork in Run / "network", "Network of the run" {
        /// Bytes sent, IP headers included.
        sent: Counter u64 Bytes, "Sent", from "cgroup_skb egress skb->len";
        /// Bytes received, IP headers included.
        received: Counter u64 Bytes, "Received", from "cgroup_skb ingress skb->len";
        /// Bytes among those sent that went through the loopback.
        loopback_sent: Counter u64 Bytes, "Sent through the loopback", from "cgroup_skb egress, device 1";
        /// Bytes among those received that came through the loopback.
        loopback_received: Counter u64 Bytes, "Received through the loopback", from "cgroup_skb ingress, device 1";
        /// Packets sent; what a device cuts is one.
        packets_sent: Counter u64 One, "Packets sent", from "cgroup_skb egress";
        /// Packets received; what a device put together is one.
        packets_received: Counter u64 One, "Packets received", from "cgroup_skb ingress";
    }
}

pub(super) const SOURCE: Source = Source {
    name: "packets",
    about: "what the run sent and received, exactly: for root with weigh run --cgroup",
    groups: &[group::<RunNetwork>()],
    probe,
    collector: None,
    on_request: true,
    everywhere: false,
    descriptors: 4,
};

fn probe(_host: &Host) -> Probe {
    match PacketCounter::try_out() {
        Ok(()) => Probe::Ready,
        Err(error) => refused(&error),
    }
}

fn refused(error: &std::io::Error) -> Probe {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Probe::Denied {
            why: "programs in the kernel are for root (CAP_BPF and CAP_NET_ADMIN)".to_owned(),
            hint: "sudo weigh run --cgroup auto …".to_owned(),
        },
        _ => Probe::Absent { why: format!("bpf: {error}") },
    }
}

/// The packets of the run, read once a tick.
pub struct Packets {
    counter: PacketCounter,
}

impl Packets {
    /// Of the group whose packets are counted.
    pub fn of(counter: PacketCounter) -> Packets {
        Packets { counter }
    }
}

impl super::Collector for Packets {
    fn sample(&mut self, _host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let read = |way| self.counter.read(way).map_err(|error| Fault::Retire(error.to_string()));
        let (sent, received) = (read(Way::Out)?, read(Way::In)?);
        let row = RunNetwork {
            sent: Some(sent.bytes),
            received: Some(received.bytes),
            loopback_sent: Some(sent.loopback_bytes),
            loopback_received: Some(received.loopback_bytes),
            packets_sent: Some(sent.packets),
            packets_received: Some(received.packets),
        };
        tick.put(Entity::Single, &row);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_allowed_is_told_apart_from_what_is_not_there() {
        let of = |errno| refused(&std::io::Error::from_raw_os_error(errno));
        assert!(matches!(of(libc::EPERM), Probe::Denied { .. }));
        assert!(matches!(of(libc::ENOSYS), Probe::Absent { .. }));
    }
}
