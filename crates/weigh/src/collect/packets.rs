//! Packets and bytes of the run, counted by BPF programs in the kernel.
//!
//! Source: BPF programs on the cgroup of the command (`host::bpf`), for root. Every socket that the
//! run creates is counted, whatever its protocol and however short it lives; bytes include IP
//! headers. An inherited socket is not counted.

use std::os::fd::AsFd;

use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::RunNetwork;
use crate::host::Host;
use crate::host::bpf::{PacketCounter, PacketDirection};
use crate::host::run_cgroup::RunCgroup;
use crate::model::{Entity, Tick};

pub(super) const PROVIDER: Provider =
    Provider { id: SourceId::Packets, probe, collector: None, descriptors: 4 };

fn probe(_host: &Host) -> Probe {
    match PacketCounter::try_out() {
        Ok(()) => Probe::Ready,
        Err(error) => refused(&error),
    }
}

fn refused(error: &std::io::Error) -> Probe {
    match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => Probe::Denied {
            why: "loading eBPF programs needs CAP_BPF and CAP_NET_ADMIN".to_owned(),
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
    /// Starts counting the packets of the command's cgroup.
    pub fn of(own: &RunCgroup) -> Result<Packets, String> {
        let group = own.group.unified.as_ref().ok_or("there is no cgroup v2")?;
        let counter = PacketCounter::of(group.as_fd()).map_err(|error| format!("bpf: {error}"))?;
        Ok(Packets { counter })
    }
}

impl Collector for Packets {
    fn sample(&mut self, _context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let read = |direction| {
            self.counter.read(direction).map_err(|error| Fault::Retire(error.to_string()))
        };
        let (sent, received) = (read(PacketDirection::Egress)?, read(PacketDirection::Ingress)?);
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
    fn missing_permission_is_denied_and_missing_support_absent() {
        let of = |errno| refused(&std::io::Error::from_raw_os_error(errno));
        assert!(matches!(of(libc::EPERM), Probe::Denied { .. }));
        assert!(matches!(of(libc::ENOSYS), Probe::Absent { .. }));
    }
}
