//! GPUs of AMD and Intel, by the files of their drivers in the kernel.
//!
//! Source: `/sys/class/drm/cardN/` of amdgpu, i915 and xe, for all users; what processes have, by
//! `/proc/PID/fdinfo` of the run's own ([`clients`]) and by the files of KFD, AMD's compute driver
//! ([`kfd`]). No library is needed.
//!
//! What surprised us: a file may take as long as the firmware of the GPU does, and that may hang.
//! So a worker reads them (`gpu::worker`).

mod amd;
mod autosuspend;
mod backend;
mod clients;
mod cycles;
mod device;
mod energy;
mod intel;
mod kfd;
mod sensor;
#[cfg(test)]
mod tests;
mod usage;

use std::ffi::CString;

use device::{DrmCard, DrmDriver};

use super::backend::OpenBackend;
use crate::collect::Probe;
use crate::host::Host;
use crate::model::gpu::Visible;

/// Files that are cached of GPUs and of the processes that use them.
pub(super) const CACHED_FILES: usize = backend::CACHED_FILES + clients::CACHED_FILES;

/// Whether there is such a GPU.
pub(super) fn probe(host: &Host) -> Probe {
    if !DrmCard::all(&host.sys).is_empty() {
        return Probe::Ready;
    }
    let is_loaded = |driver: &DrmDriver| {
        CString::new(format!("module/{}", driver.name())).is_ok_and(|module| host.sys.has(&module))
    };
    let loaded = DrmDriver::ALL.into_iter().find(is_loaded);
    Probe::Absent {
        why: match loaded {
            None => format!(
                "no driver of AMD or Intel GPUs is loaded: there is no amdgpu, i915 or xe in {}",
                host.sys.path(c"module").display()
            ),
            Some(driver) => format!(
                "{} is loaded and has no GPU in {}",
                driver.name(),
                host.sys.path(c"class/drm").display()
            ),
        },
    }
}

/// How the files are opened, for the selected GPUs.
pub(super) fn backend(
    host: &Host,
    wanted: Option<Vec<String>>,
    visible: Option<Visible>,
) -> OpenBackend {
    let (proc, sys) = (host.proc.clone(), host.sys.clone());
    Box::new(move || {
        let wanted = wanted.as_deref();
        Ok(Box::new(backend::DrmBackend::open(proc, sys, wanted, visible.as_ref())))
    })
}

/// The number of GPUs of a vendor.
pub(super) fn count(host: &Host, vendor: &str) -> usize {
    DrmCard::all(&host.sys).iter().filter(|card| card.driver.vendor() == vendor).count()
}
