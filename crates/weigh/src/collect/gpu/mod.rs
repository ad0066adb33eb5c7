//! GPUs: what each does and has, and what each process has of it.
//!
//! One set of metrics for all vendors: `nvidia` by the library of the driver, `drm` for AMD and
//! Intel by files of the kernel. Each is a `backend::Backend` that a `worker::Worker` polls in
//! a thread; a tick takes the newest `poll::Poll`. A GPU is named by vendor and index (`nvidia0`,
//! `amd1`), a MIG instance also by its own (`nvidia0:1`). Memory and energy of instances are also
//! in those of the whole GPU.
//!
//! A value that a GPU does not have is missing alone. `age` says how old the values of a row are,
//! because drivers take their time.

mod backend;
mod coalesce;
mod collector;
mod drm;
mod nvidia;
mod open_files;
mod pids;
mod poll;
mod power_integrator;
mod selection;
mod visible;
mod worker;

use std::time::Duration;

use crate::catalog::SourceId;

pub use selection::not_available;

use super::{Collector, Probe, Provider};
use crate::host::Host;
use crate::host::timeout::with_timeout;
use crate::model::Gpu;

/// How long `weigh doctor` waits for a driver.
const TIMEOUT: Duration = Duration::from_secs(20);

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Gpu,
    probe,
    collector: Some(|settings| {
        Box::new(collector::GpuCollector::new(settings)) as Box<dyn Collector>
    }),
    descriptors: drm::CACHED_FILES,
};

/// Whether a driver is loaded. It is not called before a run: that may take seconds, and the
/// command waits.
fn probe(host: &Host) -> Probe {
    any(nvidia::probe(host), drm::probe(host))
}

/// For `weigh doctor`: calls the drivers.
pub(super) fn examine(host: &Host) -> Probe {
    let nvidia = nvidia::examine(host);
    // A driver that is loaded and does not work is worth reporting, whatever else works.
    let is_loaded = matches!(nvidia::probe(host), Probe::Ready);
    if is_loaded && !matches!(nvidia, Probe::Ready) {
        nvidia
    } else {
        any(nvidia, drm::probe(host))
    }
}

/// The GPUs of this machine, as far as their drivers answer: that may take seconds.
pub fn devices(host: &Host) -> Vec<Gpu> {
    let drivers = backend::loaded(host, None, None).into_iter();
    let devices = drivers.filter_map(|driver| {
        with_timeout(TIMEOUT, || Some((driver.open)().ok()?.devices())).flatten()
    });
    devices.flatten().collect()
}

/// One that works is enough. Of those that do not, one without permission is reported first.
fn any(one: Probe, other: Probe) -> Probe {
    match (one, other) {
        (Probe::Ready, _) | (_, Probe::Ready) => Probe::Ready,
        (denied @ Probe::Denied { .. }, _) | (_, denied @ Probe::Denied { .. }) => denied,
        (Probe::Absent { why: one }, Probe::Absent { why: other }) => {
            Probe::Absent { why: format!("{one}; {other}") }
        }
    }
}

/// Polls in the tick itself, so that a test knows what is read.
#[cfg(test)]
pub(super) fn at_once(settings: &crate::model::settings::Settings) -> Box<dyn Collector> {
    Box::new(collector::GpuCollector::at_once(settings))
}
