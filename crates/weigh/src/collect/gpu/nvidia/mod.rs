//! NVIDIA's GPUs, by the library of their driver.
//!
//! Source: NVML (`host::nvml`), which every user may call. It may take its time, so a worker does
//! (`gpu::worker`).

mod backend;
mod device;
mod pid_resolver;
mod processes;
mod sample_integrator;

use super::TIMEOUT;
use super::backend::{Backend, OpenBackend};
use crate::collect::Probe;
use crate::host::Host;
use crate::host::nvml::{self, Nvml};
use crate::host::timeout::with_timeout;
use crate::model::gpu::Visible;

/// Whether the driver is loaded, without calling it.
pub(super) fn probe(host: &Host) -> Probe {
    if nvml::is_named() || is_loaded(host) {
        return Probe::Ready;
    }
    let version = host.proc.path(c"driver/nvidia/version");
    Probe::Absent { why: format!("no NVIDIA driver is loaded: there is no {}", version.display()) }
}

/// Whether the kernel has the driver.
pub(super) fn is_loaded(host: &Host) -> bool {
    // WSL uses the driver of Windows, by another device.
    host.proc.has(c"driver/nvidia/version") || host.sys.has(c"class/misc/dxg/uevent")
}

/// Whether the driver answers.
pub(super) fn examine(host: &Host) -> Probe {
    if let Probe::Absent { why } = probe(host) {
        return Probe::Absent { why };
    }
    let counted = with_timeout(TIMEOUT, || Nvml::load().and_then(|nvml| Ok(nvml.count()?)));
    match counted {
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

/// How NVML is opened, for the selected GPUs.
pub(super) fn backend(
    host: &Host,
    wanted: Option<Vec<String>>,
    visible: Option<Visible>,
) -> OpenBackend {
    let proc = host.proc.clone();
    Box::new(move || {
        let opened = backend::NvidiaBackend::open(proc, wanted.as_deref(), visible.as_ref());
        opened
            .map(|backend| Box::new(backend) as Box<dyn Backend>)
            .map_err(|error| error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    #[test]
    fn missing_driver_is_reported_with_the_path_that_was_checked() {
        let fake = FakeHost::new();
        let Probe::Absent { why } = probe(&fake.host()) else { panic!("there is none") };
        assert!(why.contains("driver/nvidia/version"), "{why}");
        fake.set_proc("driver/nvidia/version", "NVRM version: 575\n");
        assert!(matches!(probe(&fake.host()), Probe::Ready));
    }
}
