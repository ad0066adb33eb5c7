//! One GPU: its state between polls, and one poll of it. Each value is one call, and fails alone.

use std::time::Duration;

use super::super::poll::{DeviceRows, GpuProcessRow};
use super::super::power_integrator::PowerIntegrator;
use super::processes::{DeviceLoad, NvidiaProcesses};
use super::sample_integrator::SampleIntegrator;
use crate::catalog::metrics::{
    GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle, GpuUnits,
};
use crate::host::nvml::{
    Code, Ecc, Gpm, GpmActivity, ListBuffers, NvmlClock, NvmlDevice, Sampled, Violation,
};
use crate::model::Name;

/// The calls that a GPU does not support, and whether it is lost.
#[derive(Debug, Default)]
pub(super) struct SupportedCalls {
    /// The number of the next call of this poll: a poll always makes them in the same order.
    next: u32,
    /// A bit for each call that fails for good.
    unsupported: u128,
    pub(super) lost: Option<Code>,
}

impl SupportedCalls {
    /// Makes the next call, unless it is not supported.
    fn call<T>(&mut self, call: impl FnOnce() -> Result<T, Code>) -> Option<T> {
        let bit = 1u128 << self.next;
        self.next += 1;
        if self.unsupported & bit != 0 || self.lost.is_some() {
            return None;
        }
        match call() {
            Ok(value) => Some(value),
            Err(code) if code.is_loss() => {
                self.lost = Some(code);
                None
            }
            Err(code) => {
                if code.is_permanent() {
                    self.unsupported |= bit;
                }
                None
            }
        }
    }
}

/// What the driver samples and is integrated, with the largest possible value: a percentage, and
/// a megawatt in milliwatts.
const SAMPLED: [(Sampled, u64); 5] = [
    (Sampled::Gpu, 100),
    (Sampled::Memory, 100),
    (Sampled::Encoder, 100),
    (Sampled::Decoder, 100),
    (Sampled::Power, 1_000_000_000),
];

/// One GPU or MIG instance.
pub(super) struct NvidiaDevice {
    pub(super) name: Name,
    pub(super) calls: SupportedCalls,
    device: NvmlDevice,
    /// Whether it has MIG instances, which list its processes.
    has_instances: bool,
    gpm: Option<Gpm>,
    has_accounting: bool,
    /// In the order of [`SAMPLED`].
    integrators: [SampleIntegrator; 5],
    /// PCIe throughput when it was last read, received and sent.
    pub(super) throughput: [Option<u64>; 2],
    /// For a GPU whose power the driver does not sample.
    power: PowerIntegrator,
    processes: NvidiaProcesses,
}

impl NvidiaDevice {
    pub(super) fn new(name: Name, device: NvmlDevice, has_instances: bool) -> NvidiaDevice {
        NvidiaDevice {
            name,
            calls: SupportedCalls::default(),
            device,
            has_instances,
            gpm: Gpm::of(device).ok(),
            has_accounting: device.has_accounting().unwrap_or(false),
            integrators: Default::default(),
            throughput: [None; 2],
            power: PowerIntegrator::default(),
            processes: NvidiaProcesses::default(),
        }
    }

    /// Reads everything but the throughput. What is missing is not known.
    pub(super) fn poll(
        &mut self,
        at: Duration,
        buffers: &mut ListBuffers,
        processes: &mut Vec<GpuProcessRow>,
    ) -> DeviceRows {
        self.calls.next = 0;
        // First, because our own calls keep a GPU awake and change the rest.
        self.integrate_samples(at, buffers);
        let mut rows = DeviceRows {
            name: self.name,
            memory: memory(&mut self.calls, self.device),
            power: power(&mut self.calls, self.device),
            throttle: throttle(&mut self.calls, self.device),
            ecc: ecc(&mut self.calls, self.device),
            link: link(&mut self.calls, self.device),
            units: self.units(),
            activity: activity(&mut self.calls, self.device),
        };
        self.fill_integrals(at, &mut rows);
        let integrated = self.power.push(at, rows.power.draw);
        rows.power.energy_sampled = rows.power.energy_sampled.or(integrated);
        let utilization = rows.activity.utilization;
        let load = DeviceLoad { newest: self.integrators[0].newest_at(at), utilization };
        let counted =
            if self.has_instances { None } else { self.processes(at, load, buffers, processes) };
        let (processes, processes_computing) = counted.unzip();
        let activity = GpuActivity { processes, processes_computing, ..rows.activity };
        DeviceRows { activity, ..rows }
    }

    /// Reads the PCIe throughput. The call measures for 20 ms each and blocks for as long, so it is
    /// the last of a poll.
    pub(super) fn read_throughput(&mut self) {
        let device = self.device;
        self.throughput = [true, false].map(|is_received| {
            let thousands = self.calls.call(|| device.pcie_throughput(is_received));
            thousands.map(|thousands| u64::from(thousands) * 1000)
        });
    }

    fn integrate_samples(&mut self, at: Duration, buffers: &mut ListBuffers) {
        for (integrator, (what, max)) in self.integrators.iter_mut().zip(SAMPLED) {
            let (device, after) = (self.device, integrator.after(at));
            if let Some(samples) = self.calls.call(|| device.samples(what, after, buffers)) {
                integrator.push(at, samples, max);
            }
        }
    }

    /// Adds the values of this poll where the driver takes no samples, and fills in the integrals.
    fn fill_integrals(&mut self, at: Duration, rows: &mut DeviceRows) {
        let DeviceRows { activity, power, .. } = rows;
        let shares =
            [activity.utilization, activity.memory_utilization, activity.encoder, activity.decoder];
        let [gpu, memory, encoder, decoder] = shares.map(|share| share.map(|share| share * 100.0));
        let draw = power.draw.map(|watts| watts * 1e3);
        let values = [gpu, memory, encoder, decoder, draw];
        for (integrator, value) in self.integrators.iter_mut().zip(values) {
            integrator.hold_last(at, value);
        }
        let busy = |which: usize| self.integrators[which].total().map(|percent| percent / 100.0);
        (activity.busy, activity.observed) = (busy(0), self.integrators[0].covered());
        (activity.memory_busy, activity.encoder_busy) = (busy(1), busy(2));
        activity.decoder_busy = busy(3);
        power.energy_sampled = self.integrators[4].with_gaps().map(|millijoules| millijoules / 1e3);
    }

    fn units(&mut self) -> GpuUnits {
        let gpm = &mut self.gpm;
        let sampled = self.calls.call(|| gpm.as_mut().map_or(Ok(None), Gpm::sample)).flatten();
        let GpmActivity { sm, occupancy, tensor, memory_bandwidth, fp64, fp32, fp16 } =
            sampled.unwrap_or_default();
        let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
        GpuUnits {
            sm: share(sm),
            occupancy: share(occupancy),
            tensor: share(tensor),
            memory_bandwidth: share(memory_bandwidth),
            fp64: share(fp64),
            fp32: share(fp32),
            fp16: share(fp16),
        }
    }

    /// Adds the rows of its processes, and counts them: all, and those that compute. Without the
    /// list of compute processes, which has most of them, neither is known.
    fn processes(
        &mut self,
        at: Duration,
        load: DeviceLoad,
        buffers: &mut ListBuffers,
        rows: &mut Vec<GpuProcessRow>,
    ) -> Option<(u64, u64)> {
        let (device, calls, processes) = (self.device, &mut self.calls, &mut self.processes);
        processes.clear();
        let computing = calls.call(|| device.compute_processes(buffers)).map(|listed| {
            processes.add(listed);
            processes.count()
        });
        let by_mps = calls.call(|| device.mps_processes(buffers));
        by_mps.into_iter().for_each(|listed| processes.add(listed));
        let graphics = calls.call(|| device.graphics_processes(buffers));
        graphics.into_iter().for_each(|listed| processes.add(listed));
        let after = processes.after(at);
        if let Some(samples) = calls.call(|| device.process_samples(after, buffers)) {
            processes.push_samples(at, load, samples);
        }
        if self.has_accounting {
            // A process without an account is not a failure.
            processes.set_peaks(|pid| device.memory_peak(pid).ok().flatten());
        }
        rows.extend(processes.rows(self.name));
        computing.map(|computing| (processes.count(), computing))
    }
}

/// Kibibytes in bytes; nothing on overflow.
fn in_bytes(kibibytes: u64) -> Option<u64> {
    kibibytes.checked_mul(1024)
}

fn ratio(percent: u32) -> Option<f64> {
    (percent <= 100).then(|| f64::from(percent) / 100.0)
}

fn activity(calls: &mut SupportedCalls, device: NvmlDevice) -> GpuActivity {
    let (gpu, memory) = calls.call(|| device.utilization()).unzip();
    GpuActivity {
        utilization: gpu.and_then(ratio),
        memory_utilization: memory.and_then(ratio),
        encoder: calls.call(|| device.encoder()).and_then(ratio),
        decoder: calls.call(|| device.decoder()).and_then(ratio),
        ..GpuActivity::default()
    }
}

fn memory(calls: &mut SupportedCalls, device: NvmlDevice) -> GpuMemory {
    let memory = calls.call(|| device.memory());
    let bar1 = calls.call(|| device.bar1());
    GpuMemory {
        used: memory.map(|memory| memory.used),
        free: memory.map(|memory| memory.free),
        total: memory.map(|memory| memory.total),
        bar1_used: bar1.map(|(_, used)| used),
        bar1_total: bar1.map(|(total, _)| total),
    }
}

fn power(calls: &mut SupportedCalls, device: NvmlDevice) -> GpuPower {
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1e3;
    let mut clock = |clock| {
        let megahertz = calls.call(|| device.clock(clock));
        megahertz.map(|megahertz| f64::from(megahertz) * 1e6)
    };
    let clocks = [NvmlClock::Graphics, NvmlClock::Sm, NvmlClock::Memory].map(&mut clock);
    GpuPower {
        draw: calls.call(|| device.power()).map(watts),
        limit: calls.call(|| device.power_limit()).map(watts),
        energy: calls.call(|| device.energy()).map(|millijoules| millijoules as f64 / 1e3),
        energy_sampled: None,
        temperature: calls.call(|| device.temperature()).map(f64::from),
        // The intended speed, which may be above 100 %.
        fan: calls.call(|| device.fan()).map(|percent| f64::from(percent) / 100.0),
        clock_graphics: clocks[0],
        clock_sm: clocks[1],
        clock_memory: clocks[2],
    }
}

fn throttle(calls: &mut SupportedCalls, device: NvmlDevice) -> GpuThrottle {
    let reasons = calls.call(|| device.throttle_reasons());
    let mut time = |why| {
        let nanoseconds = calls.call(|| device.violation(why));
        nanoseconds.map(|nanoseconds| nanoseconds as f64 / 1e9)
    };
    GpuThrottle {
        reasons,
        power: time(Violation::Power),
        thermal: time(Violation::Thermal),
        sync_boost: time(Violation::SyncBoost),
        board_limit: time(Violation::BoardLimit),
        low_utilization: time(Violation::LowUtilization),
        reliability: time(Violation::Reliability),
        below_application_clocks: time(Violation::BelowApplicationClocks),
        below_base_clocks: time(Violation::BelowBaseClocks),
    }
}

fn ecc(calls: &mut SupportedCalls, device: NvmlDevice) -> GpuEcc {
    let mut count =
        |uncorrected, lifetime| calls.call(|| device.ecc(Ecc { uncorrected, lifetime }));
    GpuEcc {
        corrected: count(false, false),
        uncorrected: count(true, false),
        corrected_lifetime: count(false, true),
        uncorrected_lifetime: count(true, true),
    }
}

fn link(calls: &mut SupportedCalls, device: NvmlDevice) -> GpuLink {
    let (sent, received) = calls.call(|| device.nvlink()).unzip();
    GpuLink {
        pcie_generation: calls.call(|| device.pcie_generation()).map(u64::from),
        pcie_width: calls.call(|| device.pcie_width()).map(u64::from),
        pcie_replays: calls.call(|| device.pcie_replays()).map(u64::from),
        nvlink_received: received.and_then(in_bytes),
        nvlink_sent: sent.and_then(in_bytes),
        ..GpuLink::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsupported_call_is_made_once_and_any_other_again() {
        let (mut supported, mut made) = (SupportedCalls::default(), Vec::new());
        for poll in 0..3 {
            supported.next = 0;
            let mut call = |name, result: Result<u32, Code>| {
                supported.call(|| {
                    made.push(name);
                    result
                })
            };
            assert_eq!(call("fan", Err(Code::NOT_SUPPORTED)), None);
            assert_eq!(call("power", Err(Code(999))), None);
            assert_eq!(call("clock", Ok(poll)), Some(poll));
        }
        assert_eq!(made, ["fan", "power", "clock", "power", "clock", "power", "clock"]);
    }

    #[test]
    fn lost_gpu_is_not_called_again() {
        let mut calls = SupportedCalls::default();
        assert_eq!(calls.call(|| Err::<u32, Code>(Code::GPU_IS_LOST)), None);
        assert_eq!(calls.call(|| -> Result<u32, Code> { panic!("called") }), None);
        assert_eq!(calls.lost, Some(Code::GPU_IS_LOST));
    }
}
