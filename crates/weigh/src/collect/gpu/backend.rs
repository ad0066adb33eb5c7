//! What a driver offers: its devices, and a poll of all of them.

use std::time::Duration;

use super::poll::Poll;
use super::{drm, nvidia};
use crate::collect::Probe;
use crate::host::Host;
use crate::model::gpu::Visible;
use crate::model::{Gpu, ProcessId};

/// An opened driver. Every call may take its time, or hang.
pub(super) trait Backend {
    /// All devices, also those that are not selected.
    fn devices(&self) -> Vec<Gpu>;

    /// Reads all selected devices. `at` is a time of the monotonic clock; `changed` are the
    /// processes whose open files changed since the last poll.
    fn poll(&mut self, at: Duration, changed: &[ProcessId]) -> Poll;
}

/// Opens a backend in the thread that polls it. It may take as long as a poll.
pub(super) type OpenBackend = Box<dyn FnOnce() -> Result<Box<dyn Backend>, String> + Send>;

/// A driver that the kernel has loaded, and how to open it.
pub(super) struct LoadedDriver {
    pub(super) name: &'static str,
    /// Whether its processes are found by the files they have open.
    pub(super) needs_open_files: bool,
    pub(super) open: OpenBackend,
}

/// The drivers that are loaded. None of them is called here.
pub(super) fn loaded(
    host: &Host,
    wanted: Option<&[String]>,
    visible: Option<&Visible>,
) -> Vec<LoadedDriver> {
    let mut drivers = Vec::new();
    let wanted = || wanted.map(<[String]>::to_vec);
    let visible = || visible.cloned();
    if matches!(nvidia::probe(host), Probe::Ready) {
        drivers.push(LoadedDriver {
            name: "NVIDIA driver",
            needs_open_files: false,
            open: nvidia::backend(host, wanted(), visible()),
        });
    }
    if matches!(drm::probe(host), Probe::Ready) {
        drivers.push(LoadedDriver {
            name: "driver of AMD and Intel GPUs",
            needs_open_files: true,
            open: drm::backend(host, wanted(), visible()),
        });
    }
    drivers
}
