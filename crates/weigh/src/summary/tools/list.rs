//! The heaviest tools of a run, however many there are.
//!
//! The list is cut when it has grown to a few times what is kept, so a cut costs little for each
//! new tool.

use std::collections::HashMap;

use super::running::{Running, ToolSizes, mean_cores};
use super::{OTHERS, Tool};
use crate::model::own_cpu::CpuTimes;
use crate::summary::figure::Method;
use crate::summary::sample_times::SampleTimes;

/// No reader needs a longer list.
pub(super) const MOST_TOOLS: usize = 200;
/// How much the list may grow beyond what is kept before it is cut.
const SLACK: usize = 4;

/// Places in the order of their weight: those first that are among the first by CPU time or
/// by memory.
///
/// A tool among the heaviest of all is so among any subset, so a list may be cut repeatedly.
pub(crate) fn by_weight(weights: &[(Option<f64>, Option<u64>)]) -> Vec<usize> {
    let mut rank = vec![usize::MAX; weights.len()];
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| weights[*b].0.unwrap_or(0.0).total_cmp(&weights[*a].0.unwrap_or(0.0)));
    order.iter().enumerate().for_each(|(index, one)| rank[*one] = index);
    order.sort_by_key(|one| std::cmp::Reverse(weights[*one].1));
    order.iter().enumerate().for_each(|(index, one)| rank[*one] = rank[*one].min(index));
    order.sort_by_key(|one| rank[*one]);
    order
}

/// The tools of a run.
#[derive(Debug, Default, Clone)]
pub(super) struct List {
    list: Vec<Running>,
    by_name: HashMap<String, usize>,
    /// Those that changed since all processes were sampled.
    touched: Vec<usize>,
    /// How often all processes were sampled, and when.
    completed: u64,
    sample_times: SampleTimes,
    others: Others,
    /// Cores there are.
    cores: f64,
    /// How long the list may be before it is cut again.
    cut_above: usize,
}

/// Tools that are not worth an entry each.
#[derive(Debug, Default, Clone)]
struct Others {
    tool: Tool,
    /// When the first started and the last exited.
    span: Option<(f64, f64)>,
}

impl List {
    /// No tools yet, of a run on so many cores with these sample times.
    pub(super) fn new(sample_times: SampleTimes, cores: f64) -> List {
        List { sample_times, cores, ..List::default() }
    }

    /// A possible start time of a process that was not in the last sample and is in this one.
    pub(super) fn possible(&self, start: f64, now: f64) -> f64 {
        start.max(self.sample_times.certain()).min(now)
    }

    /// A process runs the program of this name since then; returns the index of the tool.
    pub(super) fn joined(&mut self, name: &str, since: f64) -> usize {
        let index = match self.by_name.get(name) {
            Some(index) => *index,
            None => {
                self.list.push(Running::new(name, since, self.completed));
                self.by_name.insert(name.to_owned(), self.list.len() - 1);
                self.list.len() - 1
            }
        };
        self.touched(index).joined(since);
        index
    }

    /// The first row of one of its processes.
    pub(super) fn has_row(&mut self, index: usize) {
        let completed = self.completed;
        self.list[index].has_row(completed);
    }

    /// A process of these sizes does not run it any more.
    pub(super) fn left(&mut self, index: usize, sizes: &ToolSizes, had_row: bool, at: f64) {
        let completed = self.completed;
        self.list[index].left(sizes, had_row, at, completed);
    }

    /// The name of a tool.
    pub(super) fn name(&self, index: usize) -> &str {
        &self.list[index].tool.name
    }

    /// One of its processes used CPU time, from a moment to another.
    pub(super) fn used(&mut self, index: usize, seconds: CpuTimes, (from, to): (f64, f64)) {
        let from = from.max(self.sample_times.certain());
        let earlier = match self.sample_times.in_rounds() {
            true => self.sample_times.share_before(from, to),
            false => 0.0,
        };
        self.touched(index).used(seconds, earlier);
    }

    /// What one of its processes used after its last sample is not known.
    pub(super) fn is_sampled(&mut self, index: usize) {
        self.list[index].is_sampled = true;
    }

    /// One of its processes had this size.
    pub(super) fn raise_size(&mut self, index: usize, size: Option<u64>) {
        let largest = &mut self.list[index].tool.instance_memory_peak_bytes;
        *largest = size.max(*largest);
    }

    /// One of its processes had this much private memory.
    pub(super) fn private(&mut self, index: usize, size: Option<u64>) {
        let largest = &mut self.list[index].tool.instance_uss_peak_bytes;
        *largest = size.max(*largest);
    }

    /// A process of the tool of this name had this size.
    pub(super) fn raise_size_of(&mut self, name: &str, size: u64) {
        if let Some(index) = self.by_name.get(name) {
            self.raise_size(*index, Some(size));
        }
    }

    /// The current values of one of its processes.
    pub(super) fn resized(&mut self, index: usize, before: &ToolSizes, now: &ToolSizes) {
        self.touched(index).resized(before, now);
    }

    fn touched(&mut self, index: usize) -> &mut Running {
        let running = &mut self.list[index];
        if !std::mem::replace(&mut running.is_touched, true) {
            self.touched.push(index);
        }
        running
    }

    /// The current sums are of one time.
    pub(super) fn settle(&mut self) {
        for index in &self.touched {
            self.list[*index].settle();
        }
    }

    /// All processes were sampled.
    pub(super) fn sample_completed(&mut self, at: f64) {
        self.completed += 1;
        for index in self.touched.drain(..) {
            let running = &mut self.list[index];
            running.is_touched = false;
            running.sampled(self.completed, at, &self.sample_times);
        }
        self.sample_times.complete_tick(at);
    }

    /// Cuts the list when it is long, and returns the new index of each tool. Only between ticks.
    pub(super) fn cut_if_long(&mut self) -> Option<Vec<usize>> {
        if self.list.len() <= self.cut_above.max(SLACK * MOST_TOOLS) {
            return None;
        }
        let moved = self.cut(|running| running.alive > 0);
        self.cut_above = SLACK * self.list.len();
        Some(moved)
    }

    /// Keeps the heaviest, and those that must stay. Indexes of removed tools are invalid.
    fn cut(&mut self, must_stay: impl Fn(&Running) -> bool) -> Vec<usize> {
        let weight = |running: &Running| {
            (running.tool.cpu_time_seconds, running.tool.instance_memory_peak_bytes)
        };
        let weights: Vec<_> = self.list.iter().map(weight).collect();
        let mut stays: Vec<bool> = self.list.iter().map(must_stay).collect();
        by_weight(&weights).iter().take(MOST_TOOLS).for_each(|index| stays[*index] = true);
        let mut moved = Vec::with_capacity(self.list.len());
        let mut kept = Vec::new();
        for (running, stays) in std::mem::take(&mut self.list).into_iter().zip(&stays) {
            moved.push(kept.len());
            if *stays {
                kept.push(running);
            } else {
                self.by_name.remove(&running.tool.name);
                self.others.add(running, self.completed, self.cores);
            }
        }
        for (index, running) in kept.iter().enumerate() {
            if let Some(at) = self.by_name.get_mut(&running.tool.name) {
                *at = index;
            }
        }
        self.touched.retain(|index| stays[*index]);
        self.touched.iter_mut().for_each(|index| *index = moved[*index]);
        self.list = kept;
        moved
    }

    /// Those with most CPU time first, and the others together.
    pub(super) fn finish(mut self, duration: f64) -> Vec<Tool> {
        self.settle();
        if self.list.len() > MOST_TOOLS {
            self.cut(|_| false);
        }
        let (completed, cores) = (self.completed, self.cores);
        let mut tools: Vec<Tool> = self
            .list
            .into_iter()
            .map(|running| running.finish(duration, completed, cores))
            .collect();
        tools.sort_by(|a, b| {
            let cpu = |tool: &Tool| tool.cpu_time_seconds.unwrap_or(0.0);
            let size = b.instance_memory_peak_bytes.cmp(&a.instance_memory_peak_bytes);
            cpu(b).total_cmp(&cpu(a)).then(size).then_with(|| a.name.cmp(&b.name))
        });
        tools.extend(self.others.finish(duration));
        tools
    }
}

impl Others {
    fn add(&mut self, running: Running, completed: u64, cores: f64) {
        let (first, last) = running.span();
        let before = self.span.unwrap_or((first, last));
        self.span = Some((first.min(before.0), last.max(before.1)));
        let one = running.finish(f64::INFINITY, completed, cores);
        let sum = &mut self.tool;
        sum.programs += 1;
        sum.instances += one.instances;
        sum.samples += one.samples;
        for (sum, seconds) in [
            (&mut sum.cpu_time_seconds, one.cpu_time_seconds),
            (&mut sum.cpu_user_seconds, one.cpu_user_seconds),
            (&mut sum.cpu_system_seconds, one.cpu_system_seconds),
        ] {
            *sum = seconds.map(|seconds| sum.unwrap_or(0.0) + seconds).or(*sum);
        }
        // If one is sampled, all are.
        if sum.cpu_time_method != Some(Method::Sampled) {
            sum.cpu_time_method = one.cpu_time_method.or(sum.cpu_time_method);
        }
        for (largest, size) in [
            (&mut sum.instance_memory_peak_bytes, one.instance_memory_peak_bytes),
            (&mut sum.instance_uss_peak_bytes, one.instance_uss_peak_bytes),
        ] {
            *largest = size.max(*largest);
        }
    }

    fn finish(mut self, duration: f64) -> Option<Tool> {
        let (first, last) = self.span?;
        let lasted = (last.min(duration) - first).max(0.0);
        self.tool.name = OTHERS.to_owned();
        self.tool.duration_seconds = Some(lasted);
        self.tool.cpu_cores_mean = mean_cores(self.tool.cpu_time_seconds, lasted);
        Some(self.tool)
    }
}
