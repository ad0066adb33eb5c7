//! NVIDIA's GPUs, by the library of their driver.
//!
//! Source: NVML (`host::nvml`), which every user may ask. It may take its time, so a thread of
//! its own does (`gpu::thread`).

mod card;
mod cards;
mod met;
mod sampled;
mod users;

use super::PATIENCE;
use super::reading::{Ask, Find};
use crate::collect::Probe;
use crate::host::Host;
use crate::host::nvml::{self, Nvml};
use crate::host::timeout::with_timeout;
use crate::model::gpu::Visible;

/// Whether a driver is there, without asking it.
pub(super) fn probe(host: &Host) -> Probe {
    if nvml::is_named() || is_loaded(host) {
        return Probe::Ready;
    }
    let version = host.proc.path(c"driver/nvidia/version");
    Probe::Absent { why: format!("no NVIDIA driver is loaded: there is no {}", version.display()) }
}

/// Whether the kernel has the driver.
pub(super) fn is_loaded(host: &Host) -> bool {
    // Windows lends its driver to its Linux, which then has another device for it.
    host.proc.has(c"driver/nvidia/version") || host.sys.has(c"class/misc/dxg/uevent")
}

/// Whether the driver answers.
pub(super) fn examine(host: &Host) -> Probe {
    if let Probe::Absent { why } = probe(host) {
        return Probe::Absent { why };
    }
    let asked = with_timeout(PATIENCE, || Nvml::load().and_then(|nvml| Ok(nvml.count()?)));
    match asked {
        Some(Ok(0)) => Probe::Absent { why: "the NVIDIA driver has no GPU".to_owned() },
        Some(Ok(_)) => Probe::Ready,
        Some(Err(error @ nvml::Error::NotAllowed(_))) => Probe::Denied {
            why: error.to_string(),
            hint: "ls -l /dev/nvidiactl says which group may; sudo usermod -aG GROUP $USER"
                .to_owned(),
        },
        Some(Err(error)) => Probe::Absent { why: error.to_string() },
        None => Probe::Absent { why: "the NVIDIA driver does not answer".to_owned() },
    }
}

/// How the cards are found, those that are wanted among them.
pub(super) fn find(host: &Host, wanted: Option<Vec<String>>, visible: Option<Visible>) -> Find {
    let proc = host.proc.clone();
    Box::new(move || {
        let found = cards::Cards::find(proc, wanted.as_deref(), visible.as_ref());
        found.map(|cards| Box::new(cards) as Box<dyn Ask>).map_err(|error| error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    #[test]
    fn without_a_driver_it_is_said_where_one_was_looked_for() {
        let fake = FakeHost::new();
        let Probe::Absent { why } = probe(&fake.host()) else { panic!("there is none") };
        assert!(why.contains("driver/nvidia/version"), "{why}");
        fake.set_proc("driver/nvidia/version", "NVRM version: 575\n");
        assert!(matches!(probe(&fake.host()), Probe::Ready));
    }
}
