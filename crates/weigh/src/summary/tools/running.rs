//! One tool, and the current values of its processes.

use super::Tool;
use crate::model::own_cpu::CpuTimes;
use crate::summary::curve::{Rate, SHORTEST_WINDOW, possible_cores};
use crate::summary::evidence::pss_or_largest_rss;
use crate::summary::figure::Method;
use crate::summary::sample_times::SampleTimes;

/// ToolSizes of a process; `None` where they are not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct ToolSizes {
    pub(super) rss: Option<u64>,
    pub(super) pss: Option<u64>,
    pub(super) uss: Option<u64>,
    /// Proportional where that is known, and else resident.
    pub(super) size: Option<u64>,
    pub(super) threads: Option<u64>,
}

/// A sum that is kept up to date, and the largest it was at one moment.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    now: u64,
    is_known: bool,
}

impl Sum {
    fn change(&mut self, before: Option<u64>, now: Option<u64>) {
        // A foreign recording may have sizes whose sum overflows.
        self.now = self.now.wrapping_sub(before.unwrap_or(0)).wrapping_add(now.unwrap_or(0));
        self.is_known |= now.is_some();
    }

    fn raise(&self, peak: &mut Option<u64>) {
        if self.is_known {
            *peak = (*peak).max(Some(self.now));
        }
    }
}

/// Threads of the processes of a tool: an upper bound of the cores it can use.
#[derive(Debug, Clone, Copy, Default)]
struct Threads {
    now: u64,
    /// Processes whose threads are known.
    known: u64,
    /// The most since the last window began, and the most of all time.
    most: u64,
    most_ever: u64,
    /// Whether one exited whose threads were not known: in this window, and at any time.
    is_unknown: bool,
    was_unknown: bool,
}

impl Threads {
    fn change(&mut self, before: Option<u64>, now: Option<u64>) {
        self.now = self.now.wrapping_sub(before.unwrap_or(0)).wrapping_add(now.unwrap_or(0));
        self.known = self.known - u64::from(before.is_some()) + u64::from(now.is_some());
        self.most = self.most.max(self.now);
        self.most_ever = self.most_ever.max(self.now);
    }

    /// A process exited whose threads are known, or not.
    fn left(&mut self, are_known: bool) {
        self.is_unknown |= !are_known;
        self.was_unknown |= !are_known;
    }

    /// The most cores that so many processes could use since the last window began.
    fn cores(&self, alive: u64) -> f64 {
        let is_known = !self.is_unknown && self.known == alive;
        if is_known { self.most as f64 } else { f64::INFINITY }
    }

    /// The most cores they could use at any time.
    fn cores_ever(&self, alive: u64) -> f64 {
        let is_known = !self.was_unknown && self.known == alive;
        if is_known { self.most_ever as f64 } else { f64::INFINITY }
    }

    fn begin_window(&mut self) {
        (self.most, self.is_unknown) = (self.now, false);
    }
}

/// A tool while the run goes on.
#[derive(Debug, Default, Clone)]
pub(super) struct Running {
    pub(super) tool: Tool,
    /// Processes that run it.
    pub(super) alive: u64,
    /// Those of them that had a row.
    with_row: u64,
    /// The tick up to which samples are counted.
    counted_to: u64,
    rss: Sum,
    pss: Sum,
    uss: Sum,
    size: Sum,
    first_start: f64,
    last_exit: f64,
    cores: Rate,
    /// CPU time at the last tick at which it changed, the number of that tick, and its time.
    cpu_before: f64,
    tick_before: u64,
    tick_time_before: f64,
    /// CPU time that was added since the last tick and used before it.
    earlier: f64,
    threads: Threads,
    pub(super) is_touched: bool,
    /// Whether some CPU time of its processes may not be in it.
    pub(super) is_sampled: bool,
}

impl Running {
    pub(super) fn new(name: &str, start: f64, completed: u64) -> Running {
        let tool = Tool { name: name.to_owned(), programs: 1, ..Tool::default() };
        Running {
            tool,
            first_start: start,
            last_exit: start,
            counted_to: completed,
            ..Running::default()
        }
    }

    /// One more process runs it.
    pub(super) fn joined(&mut self, start: f64) {
        if self.alive == 0 {
            // No process ran it until now.
            self.add_cores(self.cpu(), start);
        }
        self.tool.instances += 1;
        self.alive += 1;
        self.first_start = self.first_start.min(start);
    }

    /// One more of its processes has a row.
    pub(super) fn has_row(&mut self, completed: u64) {
        self.count_samples(completed);
        self.with_row += 1;
    }

    /// A process does not run it any more.
    pub(super) fn left(&mut self, sizes: &ToolSizes, had_row: bool, at: f64, completed: u64) {
        self.count_samples(completed);
        self.with_row -= u64::from(had_row);
        self.alive -= 1;
        self.threads.left(sizes.threads.is_some());
        self.resized(sizes, &ToolSizes::default());
        self.last_exit = self.last_exit.max(at);
        if self.alive == 0 {
            self.add_earlier();
            self.add_cores(self.cpu(), at);
        }
    }

    /// So much CPU time was used until then.
    fn add_cores(&mut self, cpu: f64, at: f64) {
        if self.cores.add_within(cpu, at, self.threads.cores(self.alive)) {
            self.threads.begin_window();
        }
    }

    /// What was used until the last tick is known by now, also of processes that were sampled
    /// before it.
    fn add_earlier(&mut self) {
        self.cpu_before += std::mem::take(&mut self.earlier);
        self.add_cores(self.cpu_before, self.tick_time_before);
    }

    /// The live processes were alive at every tick since the last change.
    fn count_samples(&mut self, completed: u64) {
        self.tool.samples += self.with_row * (completed - self.counted_to);
        self.counted_to = completed;
    }

    /// One of its processes used CPU time. A share of it was before the last tick.
    pub(super) fn used(&mut self, [user, system, together]: CpuTimes, earlier: f64) {
        self.earlier += earlier * together;
        for (sum, seconds) in [
            (&mut self.tool.cpu_user_seconds, user),
            (&mut self.tool.cpu_system_seconds, system),
            (&mut self.tool.cpu_time_seconds, together),
        ] {
            *sum = Some(sum.unwrap_or(0.0) + seconds);
        }
    }

    fn cpu(&self) -> f64 {
        self.tool.cpu_time_seconds.unwrap_or(0.0)
    }

    /// The current values of one of its processes.
    pub(super) fn resized(&mut self, before: &ToolSizes, now: &ToolSizes) {
        self.rss.change(before.rss, now.rss);
        self.pss.change(before.pss, now.pss);
        self.uss.change(before.uss, now.uss);
        self.size.change(before.size, now.size);
        self.threads.change(before.threads, now.threads);
    }

    /// The current sums are of one time.
    pub(super) fn settle(&mut self) {
        let tool = &mut self.tool;
        tool.instances_peak = tool.instances_peak.max(Some(self.alive));
        self.rss.raise(&mut tool.memory_rss_peak_bytes);
        self.pss.raise(&mut tool.memory_pss_peak_bytes);
        self.uss.raise(&mut tool.memory_uss_peak_bytes);
        self.size.raise(&mut tool.memory_peak_bytes);
    }

    /// All processes were sampled now, at tick number `tick`, and before that as in `sample_times`.
    ///
    /// One weigh samples all processes at one tick. In a round of several each is sampled at
    /// another time, so it is known one round later what all had used at one time: the sum of CPU
    /// time over different time spans would be more cores than there are.
    pub(super) fn sampled(&mut self, tick: u64, at: f64, sample_times: &SampleTimes) {
        let was_unchanged = self.tick_before + 1 < tick;
        if sample_times.in_rounds() {
            if was_unchanged {
                self.add_cores(self.cpu_before, self.tick_time_before);
                self.add_cores(self.cpu_before, sample_times.certain());
            }
            self.add_cores(self.cpu_before + self.earlier, sample_times.last());
            self.earlier = 0.0;
        } else {
            if was_unchanged {
                self.add_cores(self.cpu_before, sample_times.last());
            }
            self.add_cores(self.cpu(), at);
        }
        (self.cpu_before, self.tick_before, self.tick_time_before) = (self.cpu(), tick, at);
    }

    /// What it used, in a run of so many seconds and ticks, on so many cores.
    pub(super) fn finish(mut self, duration: f64, completed: u64, machine: f64) -> Tool {
        self.settle();
        self.count_samples(completed);
        if self.alive > 0 {
            self.add_cores(self.cpu_before, self.tick_time_before);
        }
        // Times are counted from just before exec, and the last sample is after the exit.
        let last_exit = if self.alive > 0 { duration } else { self.last_exit.min(duration) };
        let lasted = (last_exit - self.first_start).max(0.0);
        let mut tool = self.tool;
        let is_sampled = self.is_sampled || self.alive > 0;
        tool.cpu_time_method =
            tool.cpu_time_seconds.map(|_| if is_sampled { Method::Sampled } else { Method::Exact });
        tool.duration_seconds = Some(lasted);
        let most = self.threads.cores_ever(self.alive);
        let cores = |cpu| possible_cores(cpu, lasted, most).min(machine);
        tool.cpu_cores_mean =
            tool.cpu_time_seconds.filter(|_| lasted >= SHORTEST_WINDOW).map(cores);
        // Its mean is at most its peak.
        let peak = self.cores.peak.value.map(|peak| peak.min(machine));
        tool.cpu_cores_peak = match (peak, tool.cpu_cores_mean) {
            (Some(peak), Some(mean)) => Some(peak.max(mean)),
            (peak, mean) => peak.or(mean),
        };
        // One that started and exited between two ticks existed all the same, with its memory: the
        // sum is at least the largest of them.
        tool.instances_peak = tool.instances_peak.max(Some(1));
        if let Some(largest) = tool.instance_memory_peak_bytes {
            for sum in [&mut tool.memory_peak_bytes, &mut tool.memory_rss_peak_bytes] {
                *sum = Some(pss_or_largest_rss(*sum, largest));
            }
        }
        tool
    }

    /// When it started and exited, while others are added to it.
    pub(super) fn span(&self) -> (f64, f64) {
        (self.first_start, if self.alive > 0 { f64::INFINITY } else { self.last_exit })
    }
}

/// Cores over a time that is long enough to mean something.
pub(super) fn mean_cores(cpu: Option<f64>, seconds: f64) -> Option<f64> {
    cpu.filter(|_| seconds >= SHORTEST_WINDOW).map(|cpu| cpu / seconds)
}
