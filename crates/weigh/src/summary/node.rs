//! The whole machine, as the summary tracks it.

use super::cgroup::PressureTime;
use super::counter_delta::{CounterDelta, LowestFreeSpace};
use super::curve::{Mean, Peak, Rate};
use super::device_counter_deltas::DeviceCounterDeltas;
use crate::catalog::metrics::energy::is_summed;
use crate::catalog::metrics::{
    DomainEnergy, FileSystem, NodeCpu, NodeMemory, NodePaging, NodePressure, NodeThrottle,
};
use crate::catalog::{FigureId, Metric, SOURCES, Scope, SourceId};
use crate::model::devices::SummedDevices;
use crate::model::{Entity, Table, Tick};

/// The whole machine.
#[derive(Debug, Default, Clone)]
pub(super) struct Node {
    first: Option<(f64, f64)>,
    last: Option<(f64, f64)>,
    first_irq_and_steal: Option<f64>,
    last_irq_and_steal: f64,
    pub(super) busy: Rate,
    pub(super) used: Peak,
    pub(super) used_mean: Mean,
    /// The most huge pages there were, in use or not.
    pub(super) hugetlb: Peak,
    pub(super) energy: DeviceCounterDeltas,
    /// Of every domain, whether or not it is a part of another: only to know whether any counts.
    pub(super) energy_of_all: DeviceCounterDeltas,
    device_figures: DeviceFigures,
    pub(super) waiting: PressureTime,
    pub(super) swapped_in: CounterDelta,
    pub(super) swapped_out: CounterDelta,
    /// Thermal throttling events of a core or a package.
    pub(super) thermal_throttles: CounterDelta,
    /// Free space of the working directory's file system: bytes, and files.
    pub(super) free_space: Option<LowestFreeSpace>,
    pub(super) files: Option<LowestFreeSpace>,
}

/// All figures that are sums over devices.
#[derive(Debug, Clone)]
struct DeviceFigures(Vec<DeviceFigure>);

impl Default for DeviceFigures {
    fn default() -> DeviceFigures {
        DeviceFigures(DeviceFigure::all())
    }
}

/// A figure of the machine that is the sum of one counter over devices.
#[derive(Debug, Clone)]
pub(super) struct DeviceFigure {
    pub(super) id: FigureId,
    counter: &'static Metric,
    pub(super) deltas: DeviceCounterDeltas,
}

impl DeviceFigure {
    /// Every figure that is declared as such a sum.
    fn all() -> Vec<DeviceFigure> {
        let of = |id: &FigureId| {
            let counter = id.device_counter()?;
            Some(DeviceFigure { id: *id, counter, deltas: DeviceCounterDeltas::default() })
        };
        FigureId::ALL.iter().filter_map(of).collect()
    }

    /// The collector of the counter, which knows why it is missing.
    pub(super) fn collector(&self) -> Option<SourceId> {
        let has_it = |group: &&[Metric]| group.iter().any(|metric| metric == self.counter);
        let source = SOURCES.iter().find(|source| source.groups.iter().any(has_it));
        source.map(|source| source.id)
    }

    /// Where the figure comes from.
    pub(super) fn source(&self) -> String {
        match self.counter.scope {
            Scope::Nic => {
                "/proc/net/dev, the hardware, or else all devices of the namespace but the \
                           loopback"
                    .to_owned()
            }
            Scope::Disk => {
                "/proc/diskstats, summed over disks without the volumes on top of them".to_owned()
            }
            Scope::IbPort => format!(
                "/sys/class/infiniband/DEVICE/ports/PORT/{}, summed over ports",
                self.counter.source
            ),
            _ => format!("{}, summed", self.counter.source),
        }
    }

    /// Adds the devices of a tick.
    fn add(&mut self, table: &Table) {
        let summed = SummedDevices::of(table);
        let counter = table.column(self.counter);
        let rows = table.entities().iter().enumerate().filter(|(row, _)| summed.includes(*row));
        self.deltas.add(
            rows.map(|(row, entity)| {
                (*entity, counter.and_then(|column| column.get(row)?.number()))
            }),
        );
    }
}

impl Node {
    /// The figures that are sums over devices.
    pub(super) fn device_figures(&self) -> &[DeviceFigure] {
        &self.device_figures.0
    }

    /// CPU time used on the machine between the first and the last sample, and all there was.
    pub(super) fn cpu(&self) -> Option<(f64, f64)> {
        let ((busy, all), (busy_before, all_before)) = (self.last?, self.first?);
        (all > all_before).then_some((busy - busy_before, all - all_before))
    }

    /// CPU time that went to interrupts and to other guests between the first and last sample.
    pub(super) fn irq_and_steal(&self) -> f64 {
        self.last_irq_and_steal - self.first_irq_and_steal.unwrap_or(self.last_irq_and_steal)
    }

    /// Interrupts and other guests since the machine started.
    pub(super) fn irq_and_steal_so_far(&self) -> f64 {
        self.last_irq_and_steal
    }

    /// Adds the devices of a tick.
    pub(super) fn add_devices(&mut self, tick: &Tick) {
        let filled = |scope| tick.table(scope).filter(|table| !table.is_empty());
        for figure in &mut self.device_figures.0 {
            if let Some(table) = filled(figure.counter.scope) {
                figure.add(table);
            }
        }
        if let Some(table) = filled(Scope::Energy) {
            let domains = table.entities().iter().enumerate();
            let summed = domains.filter(
                |(_, entity)| matches!(entity, Entity::Named(name) if is_summed(name.as_str())),
            );
            let used = |row| table.get::<DomainEnergy>(row).used;
            self.energy.add(summed.map(|(row, entity)| (*entity, used(row))));
            let domains = table.entities().iter().enumerate();
            self.energy_of_all.add(domains.map(|(row, entity)| (*entity, used(row))));
        }
    }

    /// Adds the row of a tick.
    pub(super) fn add(&mut self, table: &Table, at: f64) {
        self.add_use(&table.get(0), &table.get(0), at);
        let pressure: NodePressure = table.get(0);
        self.waiting.cpu.add(pressure.cpu_some, at);
        self.waiting.memory.add(pressure.memory_full, at);
        self.waiting.io.add(pressure.io_full, at);
        let number = |count: Option<u64>| count.map(|count| count as f64);
        let paging: NodePaging = table.get(0);
        self.swapped_in.add(number(paging.swapped_in), at);
        self.swapped_out.add(number(paging.swapped_out), at);
        let throttle: NodeThrottle = table.get(0);
        let times = throttle.cores.unwrap_or(0) + throttle.packages.unwrap_or(0);
        self.thermal_throttles.add(throttle.cores.or(throttle.packages).map(|_| times as f64), at);
        let file_system: FileSystem = table.get(0);
        if let (Some(total), Some(left)) = (file_system.total, file_system.available) {
            LowestFreeSpace::add(&mut self.free_space, total as f64, left as f64, at);
        }
        if let (Some(total), Some(left)) = (file_system.files, file_system.files_available) {
            LowestFreeSpace::add(&mut self.files, total as f64, left as f64, at);
        }
    }

    fn add_use(&mut self, cpu: &NodeCpu, memory: &NodeMemory, at: f64) {
        if let Some((busy, all)) = cpu.busy_and_all() {
            self.first = self.first.or(Some((busy, all)));
            self.last = Some((busy, all));
            self.busy.add(busy, at);
        }
        let irq_and_steal = cpu.interrupts.unwrap_or(0.0) + cpu.steal.unwrap_or(0.0);
        self.first_irq_and_steal = self.first_irq_and_steal.or(Some(irq_and_steal));
        self.last_irq_and_steal = irq_and_steal;
        if let Some(hugetlb) = memory.hugetlb {
            self.hugetlb.add(hugetlb as f64, at);
        }
        if let (Some(total), Some(available)) = (memory.total, memory.available) {
            let used = total.saturating_sub(available) as f64;
            self.used.add(used, at);
            self.used_mean.add(used, at);
        }
    }
}
