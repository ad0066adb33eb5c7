//! What one poll of a driver found, in the same rows for all vendors.

use std::time::Duration;

use super::coalesce::ProcessCoverage;
use crate::catalog::metrics::{
    GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuProcessUsage, GpuThrottle, GpuUnits,
};
use crate::model::{Entity, Gpu, Name, ProcessId, Tick};

/// The result of one poll, or of several that were coalesced.
#[derive(Debug, Default)]
pub(super) struct Poll {
    /// When it began, on the monotonic clock.
    pub(super) at: Duration,
    /// How long it took.
    pub(super) took: Duration,
    pub(super) devices: Vec<DeviceRows>,
    pub(super) processes: Vec<GpuProcessRow>,
    /// Memory in use on all devices, at the poll with the most of it.
    pub(super) memory_in_use: Option<u64>,
    /// Devices that are reported for the first time.
    pub(super) new_devices: Vec<Gpu>,
    /// What failed, in words for the user.
    pub(super) problems: Vec<String>,
}

/// The rows of one device.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceRows {
    pub(super) name: Name,
    pub(super) activity: GpuActivity,
    pub(super) memory: GpuMemory,
    pub(super) power: GpuPower,
    pub(super) throttle: GpuThrottle,
    pub(super) ecc: GpuEcc,
    pub(super) link: GpuLink,
    pub(super) units: GpuUnits,
}

impl DeviceRows {
    /// Rows without any value.
    pub(super) fn empty(name: Name) -> DeviceRows {
        DeviceRows {
            name,
            activity: GpuActivity::default(),
            memory: GpuMemory::default(),
            power: GpuPower::default(),
            throttle: GpuThrottle::default(),
            ecc: GpuEcc::default(),
            link: GpuLink::default(),
            units: GpuUnits::default(),
        }
    }

    /// Adds the rows to a tick.
    pub(super) fn put(&self, tick: &mut Tick) {
        let entity = Entity::Named(self.name);
        tick.put(entity, &self.activity);
        tick.put(entity, &self.memory);
        tick.put(entity, &self.power);
        tick.put(entity, &self.throttle);
        tick.put(entity, &self.ecc);
        tick.put(entity, &self.link);
        tick.put(entity, &self.units);
    }
}

/// The row of a process on a device.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GpuProcessRow {
    pub(super) gpu: Name,
    pub(super) pid: PolledPid,
    pub(super) share: GpuProcessUsage,
    pub(super) coverage: ProcessCoverage,
}

impl GpuProcessRow {
    pub(super) fn new(gpu: Name, pid: PolledPid, share: GpuProcessUsage) -> GpuProcessRow {
        GpuProcessRow { gpu, pid, share, coverage: ProcessCoverage::default() }
    }
}

/// How a process was identified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PolledPid {
    /// By the driver's pid, which may be of another pid namespace; and the process that had it
    /// when the driver first reported it, if that is known.
    Driver(u32, Option<ProcessId>),
    /// By an entry of our `/proc`.
    Resolved(ProcessId),
}
