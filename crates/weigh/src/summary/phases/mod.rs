//! The phases of a run: what each used, and what all of one name used.
//!
//! A phase with a command (`weigh phase NAME -- CMD`) has its command's exact usage, from `wait4`,
//! and its processes are known. One without is a window of the whole run: the difference of the
//! run's counters between its two ends. The monitor samples at both.

mod figures;
mod members;
mod memory;
mod sample;
mod statistics;
#[cfg(test)]
mod tests;
mod window;

pub use statistics::{PhaseStatistics, Statistics, statistics};

use figures::of_phase;
pub(super) use sample::PhaseSample;
pub(super) use window::PhaseWindow;

use std::collections::{HashMap, HashSet};

use super::Phase;
use super::accumulate::Accumulator;
use super::helpers::Helpers;
use super::tree::RunTree;
use crate::model::ProcessId;
use crate::model::live::{LiveProcess, LiveProcesses};
use crate::record::Event;
use crate::record::events::{Helper, PhaseCommandUsage};
use members::Members;
use sample::{BOUNDARY_DELAY, Boundary};
use statistics::StatisticsBuilder;
use window::{PhaseDeltas, PhasePeaks, PhaseProcessSample};

/// The most phases that are tracked at once, and in all; those beyond are only counted. Each costs
/// memory until the end, and each open one costs time at every tick.
const MOST_OPEN: usize = 1_000;
const MOST_FOLLOWED: usize = 10_000;

/// Phases that a summary lists one by one: each is 7 KiB of `summary.json`.
pub const MOST_LISTED: usize = 1_000;

/// A phase that is open, or whose end has not been sampled yet.
#[derive(Debug, Clone)]
struct Open {
    /// The index of its window.
    window: usize,
    start: Boundary,
    end: Option<Boundary>,
}

/// All phases of a run so far.
#[derive(Debug, Clone)]
pub(super) struct Phases {
    windows: Vec<PhaseWindow>,
    open: Vec<Open>,
    /// The open ones, by their ids; several of one id, the last of them last.
    running: HashMap<String, Vec<usize>>,
    /// How many are open.
    open_count: usize,
    /// Phases that began and are not tracked.
    untracked: u64,
    members: Members,
    last: PhaseSample,
    /// Of the machine: no counter of CPU time rises faster.
    cores: f64,
}

impl Phases {
    /// No phase yet, on a machine with so many cores.
    pub(super) fn new(cores: u32) -> Phases {
        Phases {
            windows: Vec::new(),
            open: Vec::new(),
            running: HashMap::new(),
            open_count: 0,
            untracked: 0,
            members: Members::default(),
            last: PhaseSample::zero(),
            cores: f64::from(cores.max(1)),
        }
    }

    /// Adds an event of a phase or of a process.
    pub(super) fn event(&mut self, event: &Event, at: f64) {
        match event {
            Event::ProcessStart { pid, started, parent, .. } => {
                let phase =
                    self.members.started(ProcessId { pid: *pid, started: *started }, *parent);
                for window in self.chain(phase) {
                    self.windows[window].peaks.members += 1;
                }
            }
            Event::ProcessExit { pid, started, .. } => {
                self.members.exited(ProcessId { pid: *pid, started: *started });
            }
            Event::PhaseStart { id, name, parent } => self.begin(id, name, parent.as_deref(), at),
            Event::PhaseCommand { id, pid, started } => {
                if let Some(index) = self.find(id) {
                    let command = ProcessId { pid: *pid, started: *started };
                    let members = self.members.command(command, index);
                    let window = &mut self.windows[index];
                    window.command = Some(command);
                    window.peaks.begin_with_the_command(members as u64);
                }
            }
            Event::Helper(Helper { within, used }) => {
                let enclosing = within.as_deref().and_then(|id| self.find(id));
                let enclosing: HashSet<usize> = self.chain(enclosing).into_iter().collect();
                for open in self.open.iter().filter(|open| open.end.is_none()) {
                    let window = &mut self.windows[open.window];
                    // Those without a command are of the whole run.
                    if window.command.is_none() || enclosing.contains(&open.window) {
                        window.helpers.add(used);
                    }
                }
            }
            Event::PhaseEnd { id, usage, end, account } => {
                let Some(index) = self.find(id) else { return };
                let window = &mut self.windows[index];
                window.end = Some(at.max(window.start));
                window.exit = *end;
                window.usage = usage.map(|usage| window.helpers.usage_without_helpers(&usage));
                window.account = account.map(|account| PhaseCommandUsage {
                    task_clock_seconds: account
                        .task_clock_seconds
                        .map(|clock| window.helpers.cpu_without_helpers(clock)),
                    io: account.io.map(|io| io.less(window.helpers.io())),
                    ..account
                });
                let before = self.last;
                if let Some(open) = self.open.iter_mut().rfind(|open| open.window == index) {
                    open.end = Some(Boundary { at, before, after: None });
                }
                self.open_count -= 1;
                if let Some(same) = self.running.get_mut(id) {
                    same.pop();
                    if same.is_empty() {
                        self.running.remove(id);
                    }
                }
            }
            _ => {}
        }
    }

    /// The open phase of this id.
    fn find(&self, id: &str) -> Option<usize> {
        self.running.get(id)?.last().copied()
    }

    /// A window and all that enclose it.
    fn chain(&self, from: Option<usize>) -> Vec<usize> {
        std::iter::successors(from, |window| self.windows[*window].enclosing).collect()
    }

    fn begin(&mut self, id: &str, name: &str, parent: Option<&str>, at: f64) {
        if self.open_count >= MOST_OPEN || self.windows.len() >= MOST_FOLLOWED {
            self.untracked += 1;
            return;
        }
        let enclosing = parent.and_then(|parent| self.find(parent));
        let outside: HashSet<usize> = self.chain(enclosing).into_iter().collect();
        let mut shared = false;
        for open in self.open.iter().filter(|open| open.end.is_none()) {
            if !outside.contains(&open.window) {
                self.windows[open.window].shared = true;
                shared = true;
            }
        }
        self.open_count += 1;
        self.running.entry(id.to_owned()).or_default().push(self.windows.len());
        self.open.push(Open {
            window: self.windows.len(),
            start: Boundary { at, before: self.last, after: None },
            end: None,
        });
        self.windows.push(PhaseWindow {
            id: id.to_owned(),
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            enclosing,
            start: at,
            end: None,
            command: None,
            shared,
            helpers: Helpers::default(),
            usage: None,
            account: None,
            exit: None,
            peaks: PhasePeaks::default(),
            measured: None,
        });
    }

    /// Adds a sample of all processes.
    pub(super) fn add_sample(&mut self, sample: PhaseSample, tree: &RunTree, live: &LiveProcesses) {
        let sample = sample.clamp_to_previous(&self.last);
        self.last = sample;
        if self.open.is_empty() {
            return;
        }
        let (mut whole, of_commands) = self.extremes(tree, live);
        whole.cpu = sample.cpu.or(sample.summed);
        for (open, of_command) in self.open.iter_mut().zip(&of_commands) {
            let window = &mut self.windows[open.window];
            // Growth since the last sample was in this phase, if that sample was.
            let mut extremes = if window.command.is_some() { *of_command } else { whole };
            if window.command.is_none() && open.start.after.is_some() {
                extremes.largest_process =
                    extremes.largest_process.max(tree.largest_since_complete_tick());
            }
            // A sample just after the end counts for the end.
            if open.end.is_none_or(|end| sample.at - end.at <= BOUNDARY_DELAY) {
                window.peaks.add(&extremes, sample.at);
            }
            window.peaks.upper_bounds.merge(tree.recent_upper_bounds());
            open.start.after.get_or_insert(sample);
            if let Some(end) = &mut open.end {
                end.after = Some(sample);
                window.measured = Some(PhaseDeltas::between(&open.start, end, self.cores));
            }
        }
        self.open.retain(|open| open.end.is_none());
    }

    /// The name of the phase that started last and is not over.
    #[cfg(feature = "measure")]
    pub(super) fn last_open(&self) -> Option<&str> {
        let open = self.open.iter().rfind(|open| open.end.is_none())?;
        Some(&self.windows[open.window].name)
    }

    /// The run's counters at the last sample of all processes.
    pub(super) fn last_sample(&self) -> &PhaseSample {
        &self.last
    }

    /// The current sample of the whole run, and of the command of each open phase.
    fn extremes(
        &self,
        tree: &RunTree,
        live: &LiveProcesses,
    ) -> (PhaseProcessSample, Vec<PhaseProcessSample>) {
        let mut whole = PhaseProcessSample::default();
        let mut of_commands = vec![PhaseProcessSample::default(); self.open.len()];
        let places = self.open.iter().enumerate().map(|(place, open)| (open.window, place));
        let places: HashMap<usize, usize> = places.collect();
        for LiveProcess { id, values, .. } in tree.alive(live) {
            whole.sums.add(values);
            whole.resident = whole.resident.max(values.memory.rss);
            whole.largest_process = whole.resident;
            let mut next = self.members.phase(id);
            while let Some(window) = next {
                if let Some(place) = places.get(&window) {
                    let extremes = &mut of_commands[*place];
                    extremes.sums.add(values);
                    // Its whole life was in the phase, and so was its peak.
                    extremes.largest_process = extremes.largest_process.max(values.peak_rss());
                    extremes.resident = extremes.resident.max(values.memory.rss);
                }
                next = self.windows[window].enclosing;
            }
        }
        of_commands.iter_mut().for_each(|extremes| extremes.cpu = extremes.sums.cpu);
        (whole, of_commands)
    }

    /// Phases that began and are not tracked.
    pub(super) fn untracked(&self) -> u64 {
        self.untracked
    }

    /// Every phase, with what is known of those that have no end.
    pub(super) fn finish(mut self) -> Vec<PhaseWindow> {
        let last = Boundary { at: self.last.at, before: self.last, after: Some(self.last) };
        for open in &self.open {
            let end = open.end.unwrap_or(last);
            let measured = PhaseDeltas::between(&open.start, &end, self.cores);
            self.windows[open.window].measured = Some(measured);
        }
        self.windows
    }
}

/// The phases of a summary, which does not grow without bound.
#[derive(Debug, Default)]
pub(super) struct Listed {
    /// The first of them.
    pub(super) phases: Vec<Phase>,
    /// Statistics by name, when not all are listed.
    pub(super) statistics: Vec<PhaseStatistics>,
    /// Names that are in neither.
    pub(super) names_left_out: usize,
}

/// The phases one by one as far as a summary lists them; when there are more, the statistics of
/// all of them.
pub(super) fn listed(run: &Accumulator, windows: Vec<PhaseWindow>) -> Listed {
    if windows.len() <= MOST_LISTED {
        let phases = windows.into_iter().map(|one| of_phase(run, one)).collect();
        return Listed { phases, ..Listed::default() };
    }
    let family = windows.iter().map(|one| (&one.id[..], &one.name[..], one.parent.as_deref()));
    let mut gathered = StatisticsBuilder::of(family);
    let mut phases = Vec::new();
    for phase in windows.into_iter().map(|one| of_phase(run, one)) {
        gathered.take(&phase);
        if phases.len() < MOST_LISTED {
            phases.push(phase);
        }
    }
    let mut statistics = gathered.finish();
    let names_left_out = statistics.len().saturating_sub(MOST_LISTED);
    statistics.truncate(MOST_LISTED);
    Listed { phases, statistics, names_left_out }
}
