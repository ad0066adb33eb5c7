//! The heaviest tools of a run, however many there are.
//!
//! The list is cut when it has grown to a few times what is kept, so a cut costs
//! little for each that comes.

use std::collections::HashMap;

use super::running::{Running, Sizes, mean_cores};
use super::{OTHERS, Tool};
use crate::summary::figure::Method;
use crate::summary::own_cpu::CpuTimes;
use crate::summary::sample_times::SampleTimes;

/// Nobody reads a longer list.
pub(super) const MOST_TOOLS: usize = 200;
/// How much the list may grow beyond what is kept before it is cut.
const SLACK: usize = 4;

/// Places in the order of their weight: those first that are among the first by CPU time or
/// by memory.
///
/// Whoever is among the heaviest of all is so among any of them, so a list may be cut again
/// and again.
pub(crate) fn by_weight(weights: &[(Option<f64>, Option<u64>)]) -> Vec<usize> {
    let mut rank = vec![usize::MAX; weights.len()];
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| weights[*b].0.unwrap_or(0.0).total_cmp(&weights[*a].0.unwrap_or(0.0)));
    order.iter().enumerate().for_each(|(place, one)| rank[*one] = place);
    order.sort_by_key(|one| std::cmp::Reverse(weights[*one].1));
    order.iter().enumerate().for_each(|(place, one)| rank[*one] = rank[*one].min(place));
    order.sort_by_key(|one| rank[*one]);
    order
}

/// The tools of a run.
#[derive(Debug, Default)]
pub(super) struct List {
    list: Vec<Running>,
    by_name: HashMap<String, usize>,
    /// Those of which something changed since everybody was sample_times at.
    touched: Vec<usize>,
    /// How often everybody was sample_times at, and when.
    completed: u64,
    sample_times: SampleTimes,
    others: Others,
    /// Cores there are.
    cores: f64,
    /// How long the list may be before it is cut again.
    room: usize,
}

/// Tools that are not worth an entry each.
#[derive(Debug, Default)]
struct Others {
    tool: Tool,
    /// When the first came and the last went.
    span: Option<(f64, f64)>,
}

impl List {
    /// No tools yet, of a run on so many cores that is sample_times at like this.
    pub(super) fn new(sample_times: SampleTimes, cores: f64) -> List {
        List { sample_times, cores, ..List::default() }
    }

    /// A moment that somebody may have been born at who was not there at the last look and is
    /// there now.
    pub(super) fn possible(&self, born: f64, now: f64) -> f64 {
        born.max(self.sample_times.certain()).min(now)
    }

    /// A process runs the program of this name since then; says where the tool is.
    pub(super) fn joined(&mut self, name: &str, since: f64) -> usize {
        let place = match self.by_name.get(name) {
            Some(place) => *place,
            None => {
                self.list.push(Running::new(name, since, self.completed));
                self.by_name.insert(name.to_owned(), self.list.len() - 1);
                self.list.len() - 1
            }
        };
        self.touched(place).joined(since);
        place
    }

    /// There is a first row about one of its processes.
    pub(super) fn seen(&mut self, place: usize) {
        let completed = self.completed;
        self.list[place].seen(completed);
    }

    /// A process of these sizes does not run it any more.
    pub(super) fn left(&mut self, place: usize, sizes: &Sizes, was_seen: bool, at: f64) {
        let completed = self.completed;
        self.list[place].left(sizes, was_seen, at, completed);
    }

    /// The name of a tool.
    pub(super) fn name(&self, place: usize) -> &str {
        &self.list[place].tool.name
    }

    /// One of its processes used CPU time, from a moment to another.
    pub(super) fn used(&mut self, place: usize, seconds: CpuTimes, (from, to): (f64, f64)) {
        let from = from.max(self.sample_times.certain());
        let earlier = match self.sample_times.in_rounds() {
            true => self.sample_times.share_before(from, to),
            false => 0.0,
        };
        self.touched(place).used(seconds, earlier);
    }

    /// What one of its processes used after its last sample is not known.
    pub(super) fn is_sampled(&mut self, place: usize) {
        self.list[place].is_sampled = true;
    }

    /// One of its processes had this size.
    pub(super) fn grew(&mut self, place: usize, size: Option<u64>) {
        let largest = &mut self.list[place].tool.instance_memory_peak_bytes;
        *largest = size.max(*largest);
    }

    /// One of its processes had this much private memory.
    pub(super) fn private(&mut self, place: usize, size: Option<u64>) {
        let largest = &mut self.list[place].tool.instance_uss_peak_bytes;
        *largest = size.max(*largest);
    }

    /// A process of the tool of this name had this size.
    pub(super) fn named_grew(&mut self, name: &str, size: u64) {
        if let Some(place) = self.by_name.get(name) {
            self.grew(*place, Some(size));
        }
    }

    /// What one of its processes has now.
    pub(super) fn resized(&mut self, place: usize, before: &Sizes, now: &Sizes) {
        self.touched(place).resized(before, now);
    }

    fn touched(&mut self, place: usize) -> &mut Running {
        let running = &mut self.list[place];
        if !std::mem::replace(&mut running.is_touched, true) {
            self.touched.push(place);
        }
        running
    }

    /// What is there now was there at one moment.
    pub(super) fn settle(&mut self) {
        for place in &self.touched {
            self.list[*place].settle();
        }
    }

    /// Everybody was sample_times at.
    pub(super) fn sample_completed(&mut self, at: f64) {
        self.completed += 1;
        for place in self.touched.drain(..) {
            let running = &mut self.list[place];
            running.is_touched = false;
            running.sampled(self.completed, at, &self.sample_times);
        }
        self.sample_times.complete_tick(at);
    }

    /// Cuts the list when it is long, and says where each tool is now. Only between ticks.
    pub(super) fn make_room(&mut self) -> Option<Vec<usize>> {
        if self.list.len() <= self.room.max(SLACK * MOST_TOOLS) {
            return None;
        }
        let moved = self.cut(|running| running.alive > 0);
        self.room = SLACK * self.list.len();
        Some(moved)
    }

    /// Keeps the heaviest, and those that must stay. Places of those that went mean nothing.
    fn cut(&mut self, must_stay: impl Fn(&Running) -> bool) -> Vec<usize> {
        let weight = |running: &Running| {
            (running.tool.cpu_time_seconds, running.tool.instance_memory_peak_bytes)
        };
        let weights: Vec<_> = self.list.iter().map(weight).collect();
        let mut stays: Vec<bool> = self.list.iter().map(must_stay).collect();
        by_weight(&weights).iter().take(MOST_TOOLS).for_each(|place| stays[*place] = true);
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
        for (place, running) in kept.iter().enumerate() {
            if let Some(at) = self.by_name.get_mut(&running.tool.name) {
                *at = place;
            }
        }
        self.touched.retain(|place| stays[*place]);
        self.touched.iter_mut().for_each(|place| *place = moved[*place]);
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
        let (came, went) = running.span();
        let before = self.span.unwrap_or((came, went));
        self.span = Some((came.min(before.0), went.max(before.1)));
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
        // What is sampled of one is of all.
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
        let (came, went) = self.span?;
        let lasted = (went.min(duration) - came).max(0.0);
        self.tool.name = OTHERS.to_owned();
        self.tool.duration_seconds = Some(lasted);
        self.tool.cpu_cores_mean = mean_cores(self.tool.cpu_time_seconds, lasted);
        Some(self.tool)
    }
}
