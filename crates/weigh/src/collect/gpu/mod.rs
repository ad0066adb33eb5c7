//! GPUs: what each does and has, and what each process has of it.
//!
//! One family of metrics for all makers: `nvidia` by the library of its driver, `drm` for
//! AMD's and Intel's by the kernel's files. A GPU is called by its maker and its number
//! (`nvidia0`, `amd1`), a part of one that is divided also by the part's (`nvidia0:1`). Memory
//! and energy of parts are in those of the whole, too.
//!
//! A value that a card does not have is missing alone. `age` says how old a row's values are:
//! drivers are asked by a thread of its own, because they may take their time.

mod added_up;
mod choice;
mod drm;
mod files;
mod nvidia;
mod pids;
mod reading;
mod taking;
mod thread;
mod untaken;
mod visible;

use std::time::Duration;

use crate::catalog::SourceId;

pub use choice::not_there;

use super::{Collector, Probe, Provider};
use crate::host::Host;
use crate::host::timeout::with_timeout;
use crate::model::Gpu;

/// How long `weigh doctor` waits for a driver.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Gpu,
    probe,
    collector: Some(|settings| Box::new(taking::Gpus::new(settings)) as Box<dyn Collector>),
    descriptors: drm::KEPT,
};

/// Whether there is a driver. It is not asked before a run: that may take seconds, and the
/// command waits.
fn probe(host: &Host) -> Probe {
    any(nvidia::probe(host), drm::probe(host))
}

/// What `weigh doctor` says: drivers are asked.
pub(super) fn examine(host: &Host) -> Probe {
    let asked = nvidia::examine(host);
    // A driver that is there and does not work is worth telling, whatever else works.
    let is_there = matches!(nvidia::probe(host), Probe::Ready);
    if is_there && !matches!(asked, Probe::Ready) { asked } else { any(asked, drm::probe(host)) }
}

/// The GPUs of this machine, as far as their drivers answer: that may take seconds.
pub fn there(host: &Host) -> Vec<Gpu> {
    let finds = taking::finds(host, None, None).into_iter().map(|(_, find)| find);
    finds
        .filter_map(|find| with_timeout(PATIENCE, || Some(find().ok()?.there())).flatten())
        .flatten()
        .collect()
}

/// One that works is enough. Of those that do not, one that could is worth telling.
fn any(one: Probe, other: Probe) -> Probe {
    match (one, other) {
        (Probe::Ready, _) | (_, Probe::Ready) => Probe::Ready,
        (denied @ Probe::Denied { .. }, _) | (_, denied @ Probe::Denied { .. }) => denied,
        (Probe::Absent { why: one }, Probe::Absent { why: other }) => {
            Probe::Absent { why: format!("{one}; {other}") }
        }
    }
}

/// GPUs that are asked in the tick itself, so that a test knows what was there to read.
#[cfg(test)]
pub(super) fn at_once(settings: &crate::model::settings::Settings) -> Box<dyn Collector> {
    Box::new(taking::Gpus::at_once(settings))
}
