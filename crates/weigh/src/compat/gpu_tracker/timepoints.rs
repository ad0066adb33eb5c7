//! The processes of a run as gpu-tracker would have sampled them.
//!
//! Timepoints are an interval apart, because its analysis gives each the same weight, and weigh
//! samples more often in the first second of a run and where a phase ends. One stands for the
//! interval before it, so there is none at the very beginning; a run that is shorter than its first
//! interval has one.
//!
//! An exited process has no memory left; at the tick that detects its exit it has what it had until
//! then.
//!
//! Memory of several processes together is the sum of their proportional shares, so
//! that what they share counts once; it is never below the largest of them. (Theirs
//! takes the largest mapping of each path, and all anonymous memory has one path.)
//!
//! CPU of a timepoint is cores over the time since the one before it, and since an earlier one where
//! that is less than 0.1 s: the kernel counts in steps of 10 ms, and over a shorter window one step
//! looks like many cores. The peak is of windows of at least 0.1 s for the same reason.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use super::gpu;
use super::sums::PartSums;
use crate::catalog::Scope;
use crate::catalog::metrics::{NodeCpu, NodeMemory, ProcessMemory};
use crate::compat::row_spacing::RowSpacing;
use crate::export::unix_seconds;
use crate::model::live::{LastKnownMemory, LiveProcesses};
use crate::model::{ProcessId, Table, Tick};
use crate::record::{Entry, Event, Frame, Manifest, Moment};
use crate::summary::curve::possible_cores;

/// What was used at one moment, in bytes and cores.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Timepoint {
    /// Seconds since 1970.
    pub timestamp: f64,
    /// Memory of the main process, of the others, of all together, and of the machine.
    pub ram: [Option<f64>; 4],
    /// GPU memory of the same.
    pub gpu_ram: [Option<f64>; 4],
    /// GPUs in use.
    pub gpu_busy: Option<f64>,
    /// Threads of the main process, of the others, and of all together.
    pub threads: [Option<u64>; 3],
    /// Cores that the machine, the main process, the others, and all together used.
    pub cores: [Option<f64>; 4],
}

/// What the summary does not keep.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Peaks {
    /// Whether any other process than the main one was sampled.
    pub any_descendants: bool,
    /// The largest size of the main process.
    pub main_total: Option<f64>,
    /// The most that the main process shared with any other.
    pub main_shared: Option<f64>,
    /// The most that the others had together.
    pub descendants_total: Option<f64>,
    /// The most that was shared among the others.
    pub descendants_shared: Option<f64>,
    /// The most that was shared among all.
    pub combined_shared: Option<f64>,
    /// The most cores that the machine, the main process, the others, and all used.
    pub cores: [Option<f64>; 4],
    /// The most GPUs in use at once, of those that count.
    pub gpus_busy: Option<f64>,
    /// Whether it is known that there is no GPU.
    pub no_gpu: bool,
}

/// Samples a run.
#[derive(Debug)]
pub struct TimepointBuilder {
    started: jiff::Timestamp,
    mains: Vec<ProcessId>,
    cores: f64,
    /// Those that have exited and were not reaped yet.
    exited: HashSet<ProcessId>,
    any: bool,
    /// CPU time of each main process.
    main_cpu: BTreeMap<ProcessId, f64>,
    /// What was reaped, without the main process's own.
    reaped_cpu: f64,
    /// CPU time of the others: it never decreases.
    others_cpu: f64,
    machine_cpu: Option<(f64, f64)>,
    machine_ram: Option<f64>,
    peaks: Peaks,
    /// Where the window of a peak began, and the interval of a timepoint.
    window: Option<(f64, TimepointCounters)>,
    interval: Option<(Duration, TimepointCounters)>,
    /// Where the interval before that began.
    earlier: Option<(Duration, TimepointCounters)>,
    pace: RowSpacing,
    /// The last tick of a run that has no timepoint yet.
    waiting: Option<Timepoint>,
    /// The most threads of the main process at once.
    main_threads: Option<u64>,
    gpus: gpu::Presence,
    /// GPUs whose utilization does not count: those that the run could not use, or that have none
    /// of the given UUIDs.
    unusable: Vec<String>,
    uuids: Option<Vec<String>>,
}

/// Counters at the beginning of a window.
#[derive(Debug, Clone, Copy)]
struct TimepointCounters {
    machine: Option<(f64, f64)>,
    main: Option<f64>,
    others: f64,
}

/// As long as their own CPU sample.
const SHORTEST_WINDOW: f64 = 0.1;

impl TimepointBuilder {
    /// Of a run that is about to begin, and whose GPUs count that have these UUIDs.
    pub fn new(manifest: &Manifest, uuids: Option<&[String]>) -> TimepointBuilder {
        TimepointBuilder {
            started: manifest.started,
            mains: manifest.mains(),
            cores: f64::from(manifest.host.cores),
            exited: HashSet::new(),
            any: false,
            main_cpu: BTreeMap::new(),
            reaped_cpu: 0.0,
            others_cpu: 0.0,
            machine_cpu: None,
            machine_ram: None,
            peaks: Peaks::default(),
            window: None,
            interval: None,
            earlier: None,
            pace: RowSpacing::every(manifest.interval_seconds),
            waiting: None,
            main_threads: None,
            gpus: gpu::Presence::before(manifest),
            unusable: Vec::new(),
            uuids: uuids.map(<[String]>::to_vec),
        }
    }

    /// Adds a frame, and emits a timepoint where one is due.
    pub fn frame(&mut self, frame: &Frame<'_>, each: impl FnMut(&Timepoint)) {
        match frame.moment {
            Moment::Tick(tick) => self.tick(tick, frame.live, each),
            Moment::Event(entry) => self.event(entry),
        }
    }

    fn event(&mut self, entry: &Entry) {
        self.gpus.event(&entry.event);
        match &entry.event {
            Event::ProcessExit { pid, started, usage, .. } => {
                let id = ProcessId { pid: *pid, started: *started };
                self.exited.remove(&id);
                let own = self.main_cpu.get(&id).copied().unwrap_or(0.0);
                self.reaped_cpu += usage.map_or(0.0, |usage| (usage.cpu_seconds() - own).max(0.0));
            }
            Event::Gpu(gpu) if !gpu::is_chosen(gpu, self.uuids.as_deref()) => {
                self.unusable.push(gpu.name.clone());
            }
            _ => {}
        }
    }

    fn tick(&mut self, tick: &Tick, live: &LiveProcesses, each: impl FnMut(&Timepoint)) {
        if let Some(table) = tick.table(Scope::Process).filter(|table| !table.is_empty()) {
            self.processes(table, live);
        }
        if let Some(table) = tick.table(Scope::Node).filter(|table| !table.is_empty()) {
            self.machine(&table.get(0), &table.get(0));
        }
        let (main, others, all) = self.sums(live);
        if tick.is_complete() {
            self.main_threads = main.threads().filter(|most| *most > 0).max(self.main_threads);
            self.timepoint(tick, live, [main, others, all], each);
            let exited = live.sampled().filter(|process| process.values.has_exited());
            self.exited.extend(exited.map(|process| process.id));
        }
    }

    fn processes(&mut self, table: &Table, live: &LiveProcesses) {
        self.any = true;
        for (row, process) in live.in_rows() {
            let is_main = self.mains.contains(&process.id);
            if is_main {
                self.main_cpu.insert(process.id, process.values.own_cpu_ticks().unwrap_or(0.0));
            }
            let memory: ProcessMemory = table.get(row);
            // A zombie has no memory left, which says nothing of what it had.
            if memory.rss == Some(0) {
                continue;
            }
            let largest = memory.peak.max(memory.rss).map(|bytes| bytes as f64);
            if is_main {
                raise(&mut self.peaks.main_total, largest);
                // Of one sample: growth since its pages were last sampled is not shared.
                let shared = memory.rss.zip(memory.uss).map(|(rss, uss)| rss.saturating_sub(uss));
                raise(&mut self.peaks.main_shared, shared.map(|bytes| bytes as f64));
            } else {
                self.peaks.any_descendants = true;
                raise(&mut self.peaks.descendants_total, largest);
            }
        }
    }

    fn machine(&mut self, cpu: &NodeCpu, memory: &NodeMemory) {
        self.machine_cpu = cpu.busy_and_all().or(self.machine_cpu);
        if let (Some(total), Some(available)) = (memory.total, memory.available) {
            self.machine_ram = Some(total.saturating_sub(available) as f64);
        }
    }

    /// The main process, the others, and all together, as they are now.
    fn sums(&mut self, live: &LiveProcesses) -> (PartSums, PartSums, PartSums) {
        let (mut main, mut others, mut all) =
            (PartSums::default(), PartSums::default(), PartSums::default());
        let mut cpu = self.reaped_cpu;
        for process in live.sampled() {
            let has_exited = self.exited.contains(&process.id);
            let memory =
                if has_exited { &LastKnownMemory::RELEASED } else { &process.program_memory };
            all.add(memory);
            cpu += process.values.children_cpu().unwrap_or(0.0);
            if self.mains.contains(&process.id) {
                main.add(memory);
            } else {
                others.add(memory);
                cpu += process.values.own_cpu_ticks().unwrap_or(0.0);
            }
        }
        self.others_cpu = self.others_cpu.max(cpu);
        if self.peaks.any_descendants {
            raise(&mut self.peaks.descendants_total, others.total());
        }
        raise(&mut self.peaks.descendants_shared, others.shared);
        raise(&mut self.peaks.combined_shared, all.shared);
        (main, others, all)
    }

    fn timepoint(
        &mut self,
        tick: &Tick,
        live: &LiveProcesses,
        sums: [PartSums; 3],
        each: impl FnMut(&Timepoint),
    ) {
        let [main, others, all] = sums;
        let known = |bytes: Option<f64>| bytes.filter(|_| self.any);
        let gpu =
            gpu::at_tick(tick, self.gpus, &self.unusable, |id| match self.mains.contains(id) {
                true => Some(gpu::GpuProcessRole::Main),
                false => {
                    let process = live.get(id).filter(|process| process.is_sampled);
                    process.map(|_| gpu::GpuProcessRole::Descendant)
                }
            });
        raise(&mut self.peaks.gpus_busy, gpu.busy);
        let timepoint = Timepoint {
            timestamp: unix_seconds(self.started, tick.at.as_secs_f64()),
            ram: [
                known(main.largest()),
                known(others.total()),
                known(all.total()),
                self.machine_ram,
            ],
            gpu_ram: gpu.memory,
            gpu_busy: gpu.busy,
            threads: sums.map(|sums| sums.threads().filter(|_| self.any)),
            cores: [None; 4],
        };
        let main = (!self.main_cpu.is_empty()).then(|| self.main_cpu.values().sum());
        let now = TimepointCounters { machine: self.machine_cpu, main, others: self.others_cpu };
        self.raise_cores(tick.at.as_secs_f64(), now);
        self.hand_on(timepoint, tick.at, now, each);
    }

    /// The most cores, over windows that are long enough.
    fn raise_cores(&mut self, at: f64, now: TimepointCounters) {
        let (since, before) = *self.window.get_or_insert((at, now));
        if at - since >= SHORTEST_WINDOW {
            let rates = self.rates_since(&before, &now, at - since);
            for (peak, rate) in self.peaks.cores.iter_mut().zip(rates) {
                raise(peak, rate);
            }
            self.window = Some((at, now));
        }
    }

    /// Emits a timepoint when its interval is over.
    fn hand_on(
        &mut self,
        mut timepoint: Timepoint,
        at: Duration,
        now: TimepointCounters,
        mut each: impl FnMut(&Timepoint),
    ) {
        let is_first = self.interval.is_none();
        let (since, before) = *self.interval.get_or_insert((at, now));
        let seconds = |since: Duration| at.saturating_sub(since).as_secs_f64();
        let is_short = seconds(since) < SHORTEST_WINDOW;
        let (from, counters) = self.earlier.filter(|_| is_short).unwrap_or((since, before));
        timepoint.cores = self.rates_since(&counters, &now, seconds(from));
        if self.pace.is_over(since, at) {
            self.earlier = self.interval.replace((at, now));
            self.waiting = None;
            each(&timepoint);
        } else if is_first || self.waiting.is_some() {
            self.waiting = Some(timepoint);
        }
    }

    fn rates_since(
        &self,
        before: &TimepointCounters,
        now: &TimepointCounters,
        seconds: f64,
    ) -> [Option<f64>; 4] {
        if seconds < SHORTEST_WINDOW {
            return [None; 4];
        }
        let possible = |cores: f64| cores.clamp(0.0, self.cores);
        let threads = self.main_threads.map_or(f64::INFINITY, |threads| threads as f64);
        let machine = now.machine.zip(before.machine).and_then(|(now, before)| {
            let (busy, all) = (now.0 - before.0, now.1 - before.1);
            (all > 0.0).then(|| possible(busy / all * self.cores))
        });
        let main = now.main.zip(before.main).map(|(now, before)| now - before);
        let main = main.map(|used| possible(possible_cores(used, seconds, threads)));
        let others = main.map(|_| possible((now.others - before.others) / seconds));
        let all = main.zip(others).map(|(main, others)| possible(main + others));
        [machine, main, others, all]
    }

    /// Emits what is left, and returns the peaks. A run too short for a window has the `mean` of
    /// the whole run.
    pub fn finish(self, mean: [Option<f64>; 4], mut each: impl FnMut(&Timepoint)) -> Peaks {
        if let Some(mut timepoint) = self.waiting {
            for (rate, mean) in timepoint.cores.iter_mut().zip(mean) {
                *rate = rate.or(mean);
            }
            each(&timepoint);
        }
        Peaks { no_gpu: self.gpus.is_none(), ..self.peaks }
    }
}

fn raise(peak: &mut Option<f64>, value: Option<f64>) {
    if let Some(value) = value {
        *peak = Some(peak.map_or(value, |peak| peak.max(value)));
    }
}
