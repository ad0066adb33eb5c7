//! What is kept of a run while it is measured: enough for the summary, and no more.
//!
//! Memory grows with the number of live processes, not with time.

use super::cgroup::CgroupUsage;
use super::core_time::CoreTime;
use super::counters::{self, EventCounts};
use super::curve::Rate;
use super::exited_usage::ExitedUsage;
use super::gpus::{self, GpuAccumulator, RunRole};
use super::helpers::Helpers;
use super::memory_growth::MemoryTrend;
use super::node::Node;
use super::phases::{self, PhaseSample, Phases};
use super::sample_times::SampleTimes;
use super::tools::Tools;
use super::tree::{RunTree, high_water_read};
use super::{
    MonitorCost, NamedProcess, Processes, Run, RunTotals, Summary, figures, findings, lossy,
    peak_process,
};
use crate::catalog::metrics::{OwnCost, OwnTicks, RunCpu, RunNetwork, RunTcp, RunTotalCpu};
use crate::catalog::{FigureId, Scope, SourceId};
use crate::model::live::LiveProcesses;
use crate::model::{End, Facts, FaultSource, ProcessId, Tick, Usage};
use crate::record::events::Victim;
use crate::record::{
    Entry, Event, FinalCounters, Frame, Losses, Manifest, Moment, Reaping, Recording, RunEnd,
    Target,
};

/// Everything the summary needs.
#[derive(Clone)]
pub struct Accumulator {
    pub(super) manifest: Manifest,
    pub(super) tree: RunTree,
    mains: Vec<ProcessId>,
    /// CPU time of the run over time.
    pub(super) cores: Rate,
    pub(super) main_cores: Rate,
    core_time: CoreTime,
    /// The run's task clock as last read.
    pub(super) clock: Option<f64>,
    /// The run's packets, when they are counted.
    pub(super) packets: RunNetwork,
    /// What is known of the run's connections.
    pub(super) tcp: RunTcp,
    /// What perf counted.
    pub(super) counts: EventCounts,
    /// What was reaped so far.
    pub(super) reaped: Usage,
    /// Whether `weigh mark` or `weigh phase` was called inside the run, and may have been reaped by
    /// any process.
    pub(super) had_helpers: bool,
    /// What they have used.
    pub(super) helpers: Helpers,
    reaping: Reaping,
    pub(super) node: Node,
    pub(super) cgroup: CgroupUsage,
    /// Processes of the run's cgroup that were OOM-killed.
    oom_kills: Option<u64>,
    /// Processes that the kernel reports as OOM-killed.
    victims: Vec<NamedProcess>,
    /// Processes that were killed by SIGKILL, from any sender.
    killed: Vec<NamedProcess>,
    pub(super) gpus: GpuAccumulator,
    pub(super) end: Option<RunEnd>,
    /// The time of the last sample or event.
    pub(super) last: f64,
    pub(super) faults: Vec<(String, String)>,
    /// CPU time of all processes, without task clock and cgroup; never decreases.
    cpu_from_processes: f64,
    sample_times: SampleTimes,
    gap_noted: f64,
    /// Seconds between the last sample and the exit of processes that were not reaped.
    pub(super) gaps: f64,
    monitor: MonitorCost,
    pub(super) phases: Phases,
    tools: Tools,
    memory_trend: MemoryTrend,
    /// What is missing from the recording that this is read from.
    pub(super) losses: Losses,
}

/// The processes of a run, as they are tracked.
fn tree(manifest: &Manifest) -> RunTree {
    // A tool is what its processes do themselves.
    let alone = match &manifest.target {
        Some(Target::Programs { .. }) => vec![0],
        Some(Target::Merged { members, .. }) => {
            let each_alone = members.iter().enumerate().filter(|(_, member)| member.each_alone);
            each_alone.map(|(namespace, _)| namespace).collect()
        }
        _ => Vec::new(),
    };
    let mut tree = RunTree::of(manifest.mains());
    if manifest.is_attached() {
        tree = tree.with_exited_usage(ExitedUsage::new(alone));
    }
    if manifest.is_merged() { tree.in_rounds() } else { tree }
}

/// A process by its pid, with its name while it is alive.
fn left(pid: u32, live: &LiveProcesses) -> NamedProcess {
    let name = live.with_pid(pid).map_or("?", |process| &process.name);
    NamedProcess { pid, name: name.to_owned() }
}

impl Accumulator {
    /// Before the first sample.
    pub fn new(manifest: &Manifest) -> Accumulator {
        Accumulator {
            manifest: manifest.clone(),
            tree: tree(manifest),
            mains: manifest.mains(),
            cores: Rate::from_start(),
            main_cores: Rate::default(),
            core_time: CoreTime::of(manifest.cores()),
            clock: None,
            packets: RunNetwork::default(),
            tcp: RunTcp::default(),
            counts: EventCounts::default(),
            reaped: Usage::default(),
            reaping: Reaping::default(),
            node: Node::default(),
            cgroup: CgroupUsage::of(manifest.target.is_none()),
            gpus: GpuAccumulator::new(manifest.interval_seconds, manifest.is_merged()),
            oom_kills: None,
            victims: Vec::new(),
            killed: Vec::new(),
            had_helpers: false,
            helpers: Helpers::default(),
            end: None,
            last: 0.0,
            faults: Vec::new(),
            cpu_from_processes: 0.0,
            sample_times: SampleTimes::new(manifest.is_merged()),
            gap_noted: 0.0,
            gaps: 0.0,
            monitor: MonitorCost::default(),
            phases: Phases::new(manifest.host.cores),
            tools: Tools::of(manifest),
            memory_trend: MemoryTrend::default(),
            losses: Losses::default(),
        }
    }

    /// Before the first record of a recording, which may be incomplete.
    pub fn for_recording(recording: &Recording) -> Accumulator {
        let losses = recording.losses().clone();
        Accumulator { losses, ..Accumulator::new(recording.manifest()) }
    }

    /// Adds a frame.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        match frame.moment {
            Moment::Tick(tick) => self.tick(tick, frame.live),
            Moment::Event(entry) => self.event(entry, frame.live),
        }
    }

    fn tick(&mut self, tick: &Tick, live: &LiveProcesses) {
        let at = tick.at.as_secs_f64();
        self.last = self.last.max(at);
        self.tree.rows(live, at);
        if let Some(table) = tick.table(Scope::Process) {
            self.tools.rows(table, live, at);
        }
        if let Some(table) = tick.table(Scope::Node).filter(|table| !table.is_empty()) {
            self.node.add(table, at);
        }
        if let Some(table) = tick.table(Scope::Cgroup).filter(|table| !table.is_empty()) {
            self.cgroup.add(table, at);
        }
        if let Some(table) = tick.table(Scope::PerfEvent) {
            self.counts.add(table);
        }
        self.node.add_devices(tick);
        if tick.table(Scope::Gpu).is_some_and(|table| !table.is_empty()) {
            let mains = &self.mains;
            let exited = std::mem::take(&mut self.gpus.exited);
            let name = |id: &ProcessId| {
                let alive = live.get(id).map(|process| &process.name);
                alive.or_else(|| exited.get(id))
            };
            self.gpus.add_tick(tick, |id| match name(id) {
                Some(name) if mains.contains(id) => RunRole::Main(name.to_owned()),
                Some(name) => RunRole::Descendant(name.to_owned()),
                None => RunRole::Other,
            });
        }
        if let Some(table) = tick.table(Scope::Run).filter(|table| !table.is_empty()) {
            if let Some(time) = table.get::<RunCpu>(0).time {
                // A helper that reports its usage has been counted for a while.
                let time = self.helpers.cpu_without_helpers(time);
                self.clock = Some(self.clock.map_or(time, |before| time.max(before)));
            }
            let packets = table.get::<RunNetwork>(0);
            self.packets = if packets.sent.is_some() { packets } else { self.packets };
            let tcp = table.get::<RunTcp>(0);
            self.tcp = if tcp.sent.is_some() { tcp } else { self.tcp };
        }
        if let Some(table) = tick.table(Scope::Own).filter(|_| tick.is_complete()) {
            self.own(&table.get(0), &table.get(0));
            self.tree.count_alive(live);
            self.rates(at);
            let clock = tick.table(Scope::Run).filter(|table| !table.is_empty());
            let clock = clock.and_then(|table| table.get::<RunCpu>(0).time);
            self.all_sampled(live, at, clock.map(|clock| self.helpers.cpu_without_helpers(clock)));
            self.tree.sample_completed(live);
            if let Some(memory) = self.tree.mean.now() {
                self.memory_trend.add(memory, at, self.tree.alive(live));
            }
            self.sample_times.complete_tick(at);
            self.tools.sample_completed(at);
        }
    }

    /// The run as a whole at a complete tick that was just added.
    pub(crate) fn totals(&self, live: &LiveProcesses) -> RunTotals {
        let cpu = (self.tree.total > 0 || self.clock.is_some()).then(|| self.cpu_so_far());
        // Without the process collector nothing is known of them: that is not zero.
        if !self.manifest.collects(SourceId::Process) {
            return RunTotals { cpu: RunTotalCpu { cpu }, ..RunTotals::default() };
        }
        RunTotals::of(self.tree.alive(live), cpu, self.phases.last_sample().io, self.gpus.now)
    }

    /// The name of the phase that started last and is not over.
    #[cfg(feature = "measure")]
    pub(crate) fn open_phase(&self) -> Option<&str> {
        self.phases.last_open()
    }

    fn own(&mut self, cost: &OwnCost, ticks: &OwnTicks) {
        if let (Some(user), Some(system)) = (cost.user, cost.system) {
            self.monitor.cpu_seconds = user + system;
        }
        self.monitor.memory_peak_bytes = cost.memory_peak.max(self.monitor.memory_peak_bytes);
        self.monitor.ticks = ticks.taken.unwrap_or(self.monitor.ticks);
        self.monitor.ticks_missed = ticks.missed.unwrap_or(self.monitor.ticks_missed);
    }

    fn rates(&mut self, at: f64) {
        // Without the kernel's counter: live processes with their reaped children, plus what was
        // reaped. Time of auto-reaped processes is lost on the way; the sum never decreases.
        self.cpu_from_processes = self.cpu_from_processes.max(self.cpu_summed());
        self.cores.add(self.cpu_so_far(), at);
        self.core_time.add(self.cpu_so_far(), at);
        if let Some(main) = self.tree.main_cpu() {
            self.main_cores.add(main, at);
        }
    }

    /// CPU time of the run at the last sample of all processes: the peak of cores and the CPU
    /// charts are computed from it.
    pub(crate) fn cpu_so_far(&self) -> f64 {
        self.clock.or(self.group_cpu()).unwrap_or(self.cpu_from_processes)
    }

    /// CPU time of live and of reaped processes.
    fn cpu_summed(&self) -> f64 {
        self.helpers
            .cpu_without_helpers(self.tree.cpu_of_live_processes() + self.reaped.cpu_seconds())
    }

    /// CPU time of the cgroup.
    pub(super) fn group_cpu(&self) -> Option<f64> {
        self.cgroup.cpu.usage.map(|usage| self.helpers.cpu_without_helpers(usage))
    }

    /// All processes were sampled, and the run's task clock was this.
    fn all_sampled(&mut self, live: &LiveProcesses, at: f64, clock: Option<f64>) {
        let alive = self.tree.alive(live).count();
        let (user_seconds, system_seconds) = self.tree.split_of_alive();
        let mut split = Usage { user_seconds, system_seconds, ..self.reaped };
        split.user_seconds += self.reaped.user_seconds;
        split.system_seconds += self.reaped.system_seconds;
        let split = self.helpers.usage_without_helpers(&split);
        let of_helpers = self.helpers.io().counts();
        let less = |io: [f64; 6]| {
            std::array::from_fn(|which| (io[which] - of_helpers[which] as f64).max(0.0))
        };
        let sample = PhaseSample {
            at,
            clock,
            cpu: clock.map(|clock| self.clock.map_or(clock, |before| clock.max(before))),
            summed: (self.tree.total > 0).then_some(self.cpu_from_processes),
            split: (split.user_seconds, split.system_seconds),
            io: self.tree.io().map(less),
            alive,
            irq_and_steal: self.node.irq_and_steal_so_far(),
            counts: self.counts.of_phases(),
        };
        self.phases.add_sample(sample, &self.tree, live);
    }

    fn event(&mut self, entry: &Entry, live: &LiveProcesses) {
        let at = entry.seconds;
        self.phases.event(&entry.event, at);
        self.tools.event(entry, live);
        self.reaping.event(entry, &self.mains);
        match &entry.event {
            Event::ProcessStart { pid, started, parent, .. } => {
                self.tree.starts(ProcessId { pid: *pid, started: *started }, *parent, live);
            }
            Event::ProcessExec { .. } => {}
            Event::ProcessExit { pid, started, usage, cpu_seconds, memory_peak_bytes, end } => {
                let id = ProcessId { pid: *pid, started: *started };
                let process = live.get(&id);
                if *end == Some(End::Signal(libc::SIGKILL)) {
                    self.killed.push(left(*pid, live));
                }
                if let Some(size) = memory_peak_bytes {
                    let after = high_water_read(process);
                    self.tree.raise_largest(*size, Some(after), at, process);
                }
                if let Some(process) = process.filter(|_| self.gpus.is_any()) {
                    self.gpus.exited.insert(id, process.name.clone());
                }
                self.tree.ended(id, usage.as_ref(), *cpu_seconds, (live, at));
                if cpu_seconds.is_none() {
                    self.note_gap(at);
                }
                // Where weigh does not reap all processes, the tree knows which parent's counters
                // it is in.
                if let Some(usage) = usage.filter(|_| !self.manifest.is_attached()) {
                    self.reaped.add(&usage);
                }
            }
            Event::PhaseStart { .. }
            | Event::PhaseCommand { .. }
            | Event::PhaseEnd { .. }
            | Event::Mark { .. } => self.had_helpers = true,
            Event::Helper(helper) => self.helpers.add(&helper.used),
            Event::OutOfMemory { kills, victims } => {
                *self.oom_kills.get_or_insert(0) += kills;
                let named = victims.iter().cloned();
                self.victims.extend(named.map(|Victim { pid, name }| NamedProcess { pid, name }));
            }
            Event::Gpu(gpu) => self.gpus.add_gpu(gpu),
            Event::Fault { source, why } => self.faults.push((source.clone(), why.clone())),
            Event::RunEnd(end) => self.on_run_end(end.clone(), live, at),
        }
    }

    fn on_run_end(&mut self, mut end: RunEnd, live: &LiveProcesses, at: f64) {
        if let Some(account) = &end.final_counters {
            // Events may be lost; the final counters are complete.
            self.helpers = Helpers::of(account.helpers);
        }
        let clock = end.task_clock_seconds.map(|clock| self.helpers.cpu_without_helpers(clock));
        end.task_clock_seconds = clock;
        end.measured_seconds = Some(self.reaping.measured_seconds(&end, at));
        if !self.losses.is_empty() {
            // Exit events may be lost, and corrupt rows may belong to no process; the processes
            // that were left at the end are known.
            self.tree.retain_alive(&end.still_running);
        }
        self.end = Some(end);
        self.last = self.last.max(at);
        self.tree.count_alive(live);
        self.cpu_from_processes = self.cpu_from_processes.max(self.cpu_summed());
        self.all_sampled(live, at, clock);
    }

    /// A process exited that weigh does not reap: what it used since its last sample may not be in
    /// any parent's counters.
    fn note_gap(&mut self, at: f64) {
        let since = self.sample_times.certain().max(self.gap_noted);
        self.gaps += (at - since).max(0.0);
        self.gap_noted = since.max(at);
    }

    /// How long the run was measured, as far as it is known: every rate and mean is over this time.
    /// With `--wait-all` it continues after the command has exited.
    pub(super) fn duration(&self) -> f64 {
        self.end.as_ref().and_then(|end| end.measured_seconds).unwrap_or(self.last)
    }

    /// The exact `wait4` counters of a command that weigh started, once it has ended.
    pub(super) fn final_counters(&self) -> Option<&FinalCounters> {
        self.end.as_ref()?.final_counters.as_deref()
    }

    /// CPU time of an attached target by the kernel's clocks, and when they were started.
    pub(super) fn attached_clock(&self) -> Option<(f64, f64)> {
        let end = self.end.as_ref()?;
        end.task_clock_seconds.zip(end.task_clock_began_seconds)
    }

    /// How long the command took, as far as it is known.
    fn command_duration(&self) -> f64 {
        self.end.as_ref().map_or(self.last, |end| end.duration_seconds)
    }

    /// How far the task clock is ahead of what was reaped, and what was reaped.
    ///
    /// The task clock runs on while an interrupt or another guest has the CPU; that is subtracted.
    fn clock_ahead(&self) -> Option<(f64, f64)> {
        let reaped = self.reaped_and_alive()?;
        let ahead = self.end.as_ref()?.task_clock_seconds? - reaped - self.node.irq_and_steal();
        Some((ahead, reaped))
    }

    /// What weigh has reaped, and what the processes that are still alive have used.
    fn reaped_and_alive(&self) -> Option<f64> {
        let reaped = self.final_counters()?.reaped.cpu_seconds();
        Some(self.helpers.cpu_without_helpers(reaped + self.tree.cpu_of_live_processes()))
    }

    /// Sampled CPU time of each process of the run since the command started.
    pub(super) fn cpu_sampled(&self) -> f64 {
        let before = self.final_counters().map_or(0.0, |counters| counters.cpu_before_exec_seconds);
        (self.tree.own_cpu_sampled() - before).max(0.0)
    }

    /// Whether processes have certainly left the cgroup that was made for the command: more was
    /// reaped, or sampled, than the cgroup has. Container runtimes and batch systems move the
    /// processes they start elsewhere.
    pub(super) fn left_its_group(&self) -> bool {
        /// How far two kernel clocks may differ.
        const APART: (f64, f64) = (0.05, 1.1);
        let usage = self.group_cpu().filter(|_| self.cgroup.is_own());
        usage.zip(self.reaped_and_alive()).is_some_and(|(usage, reaped)| {
            reaped.max(self.cpu_sampled()) > APART.0 + usage * APART.1
        })
    }

    /// Why orphaned descendants may be missing from what weigh has reaped, if they may.
    pub(super) fn why_orphans_may_be_missing(&self) -> Option<&str> {
        self.reason(FaultSource::ChildSubreaper)
    }

    /// Whether children were certainly auto-reaped: the task clock has counted them, or, without
    /// one, they were sampled.
    pub(super) fn children_were_auto_reaped(&self) -> Option<bool> {
        /// The error of clock ticks.
        const ROUNDING: f64 = 0.02;
        /// How far two clocks may differ in a virtual machine whose host steals CPU time without
        /// reporting it: 4 % were measured. A smaller difference proves nothing.
        const APART: f64 = 0.05;
        match self.clock_ahead() {
            Some((ahead, reaped)) => Some(ahead > 0.005 + reaped * APART),
            None => (self.cpu_sampled() > self.reaped_and_alive()? + ROUNDING).then_some(true),
        }
    }

    /// Whether the difference of the two clocks is too small for such children: they start and stop
    /// slightly apart, and no process uses less.
    pub(super) fn no_child_was_auto_reaped(&self) -> Option<bool> {
        match self.clock_ahead() {
            Some((ahead, reaped)) => Some(ahead < 0.001 + reaped * 0.001),
            None => self.children_were_auto_reaped().map(|lost| !lost),
        }
    }

    /// Whether processes may have started and exited between two ticks, or without a record of it.
    pub(super) fn may_miss_processes(&self) -> bool {
        self.end.as_ref().is_some_and(|end| end.may_miss_processes)
            || self.children_were_auto_reaped() == Some(true)
            || self.processes_may_be_missing()
    }

    /// Whether the recording may lack processes that weigh sampled.
    pub(super) fn processes_may_be_missing(&self) -> bool {
        self.losses.concern_processes()
    }

    /// Whether the cgroup was read at the last sample of all processes.
    pub(super) fn group_was_sampled_last(&self) -> bool {
        self.cgroup.sampled_at == Some(self.sample_times.last())
    }

    /// Why something of this source is missing.
    pub(super) fn reason(&self, source: impl Into<FaultSource>) -> Option<&str> {
        let source = source.into().to_string();
        let faults = self.faults.iter().find(|(from, _)| *from == source);
        let fault = faults.map(|(_, why)| why.as_str());
        fault.or_else(|| self.manifest.absent.get(&source).map(String::as_str))
    }

    /// The summary of everything added, with the processes that are alive at the end.
    pub fn finish(mut self, live: &LiveProcesses) -> Summary {
        if let Some(end) = self.end.as_ref().filter(|_| !self.losses.is_empty()) {
            // Corrupt rows may also have later times.
            self.tree.retain_alive(&end.still_running);
        }
        self.tree.count_alive(live);
        let duration = self.duration();
        let phases = std::mem::replace(&mut self.phases, Phases::new(0));
        if phases.untracked() > 0 {
            let why = format!(
                "{} phases are in no figure: more than 1,000 lasted at once, or 10,000 in all",
                phases.untracked()
            );
            self.faults.push((FaultSource::Phases.to_string(), why));
        }
        let windows = phases.finish();
        let count = windows.len() as u64;
        let phases::Listed { phases, statistics, names_left_out } = phases::listed(&self, windows);
        if names_left_out > 0 {
            let why = format!("{names_left_out} names of phases are in no statistics");
            self.faults.push((FaultSource::Phases.to_string(), why));
        }
        let empty = Tools::of(&self.manifest);
        let tools = std::mem::replace(&mut self.tools, empty).finish(duration);
        let (mut figures, parts) = (figures::of_run(&self), figures::of_parts(&self));
        figures::add_unattributed(&mut figures, &tools);
        let gpus = std::mem::take(&mut self.gpus).finish(duration);
        // Those of `run.json` are found meanwhile: they would be in a regenerated summary, and not
        // in this one.
        let host = Facts { gpus: gpus::names(&gpus), ..self.manifest.host.clone() };
        let mut summary = Summary {
            weigh: self.manifest.weigh.clone(),
            run: self.run(),
            host,
            job: self.manifest.job.clone(),
            figures,
            parts,
            tools,
            processes: self.processes(live),
            gpus,
            counters: counters::counters(&self),
            nodes: Vec::new(),
            phases_not_listed: count - phases.len() as u64,
            phases,
            phase_statistics: statistics,
            monitor: self.monitor(duration),
            bottleneck: None,
            memory_peak_process: None,
            findings: Vec::new(),
        };
        let peak = summary.figures.get(FigureId::MemoryPeak);
        summary.memory_peak_process = peak.and_then(|peak| peak_process::of(&self, peak));
        lossy::weaken(&self, &mut summary);
        let (killing, cores) = (self.killing(), self.manifest.expected_cores);
        // The clocks of merged recordings differ, and so do the ends of their runs.
        let growth = self.memory_trend.steady().filter(|_| !self.manifest.is_merged());
        summary.findings = findings::of(&summary, cores, killing, &self.node, &self.cgroup, growth);
        let shares = self.core_time.shares();
        summary.bottleneck =
            findings::bottleneck::of(&summary, &self.manifest, shares, &self.node, &self.cgroup);
        summary
    }

    /// The OOM kills, if there were any.
    fn killing(&self) -> Option<findings::Killing> {
        let kills = self.oom_kills.or(self.cgroup.oom_kills).filter(|kills| *kills > 0)?;
        let named = if self.victims.is_empty() { &self.killed } else { &self.victims };
        Some(findings::Killing { kills, victims: named.clone() })
    }

    fn run(&self) -> Run {
        let duration = self.command_duration();
        let manifest = &self.manifest;
        let end = self.end.as_ref();
        let ended = jiff::SignedDuration::try_from_secs_f64(duration)
            .ok()
            .and_then(|duration| manifest.started.checked_add(duration).ok());
        Run {
            id: manifest.id.clone(),
            name: manifest.name.clone(),
            command: manifest.command.clone(),
            started: manifest.started,
            ended: end.and(ended),
            duration_seconds: duration,
            measured_seconds: Some(self.duration()),
            target: manifest.target.clone(),
            stopped: end.and_then(|end| end.why),
            exit_code: end.and_then(|end| end.exit).map(|exit| exit.exit_code()),
            signal: end.and_then(|end| match end.exit? {
                End::Signal(number) => Some(number),
                End::Code(_) => None,
            }),
            labels: manifest.labels.clone(),
            complete: end.is_some() && self.losses.is_empty(),
        }
    }

    fn processes(&self, live: &LiveProcesses) -> Processes {
        let remaining = self.end.iter().flat_map(|end| &end.still_running);
        // The command existed, whether it was sampled or not.
        let least = u64::from(self.manifest.target.is_none());
        // Processes without a recorded exit would be counted together with all that started later.
        let exits_may_be_missing = self.losses.concern_events();
        let peak =
            if exits_may_be_missing { self.tree.peak_in_one_tick } else { self.tree.peak_alive };
        Processes {
            total: self.tree.total.max(least),
            peak: peak.max(least),
            // Processes that started after the last tick are not known.
            may_miss_processes: self.end.is_none() || self.may_miss_processes(),
            still_running: remaining.map(|&pid| left(pid, live)).collect(),
        }
    }

    fn monitor(&self, duration: f64) -> MonitorCost {
        let mut monitor = self.monitor.clone();
        if let Some(end) = &self.end {
            monitor.cpu_seconds = end.monitor_cpu_seconds;
        }
        monitor.cost_ratio = (duration > 0.0).then(|| monitor.cpu_seconds / duration);
        let lost = self.losses.sentences().map(|lost| format!("recording: {lost}"));
        let faults = self.faults.iter().map(|(from, why)| format!("{from}: {why}"));
        monitor.faults = faults.chain(lost).collect();
        monitor
    }
}
