//! One tool, and what its processes have at the moment.

use super::Tool;
use crate::summary::curve::{Rate, SHORTEST_WINDOW, possible_cores};
use crate::summary::figure::Method;
use crate::summary::own_cpu::CpuTimes;
use crate::summary::sample_times::SampleTimes;

/// Sizes of a process; `None` where they are not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sizes {
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
        // A stranger's recording may hold sizes whose sum is beyond every number.
        self.now = self.now.wrapping_sub(before.unwrap_or(0)).wrapping_add(now.unwrap_or(0));
        self.is_known |= now.is_some();
    }

    fn raise(&self, peak: &mut Option<u64>) {
        if self.is_known {
            *peak = (*peak).max(Some(self.now));
        }
    }
}

/// Threads of the processes of a tool: it can use no more cores than these.
#[derive(Debug, Clone, Copy, Default)]
struct Threads {
    now: u64,
    /// Processes of which it is known.
    known: u64,
    /// The most since the last window began, and the most of all time.
    most: u64,
    most_ever: u64,
    /// Whether one ended of which it was not known: in this window, and at any time.
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

    /// A process ended whose threads are known, or not.
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
#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) tool: Tool,
    /// Processes that run it.
    pub(super) alive: u64,
    /// Those of them that there was a row about.
    seen: u64,
    /// The look up to which samples are counted.
    counted_to: u64,
    rss: Sum,
    pss: Sum,
    uss: Sum,
    size: Sum,
    came: f64,
    went: f64,
    cores: Rate,
    /// CPU time at the last look that it changed in, which look that was, and when.
    cpu_before: f64,
    look_before: u64,
    looked_before: f64,
    /// CPU time that came since the last look and was used before it.
    earlier: f64,
    threads: Threads,
    pub(super) is_touched: bool,
    /// Whether some CPU time of its processes may not be in it.
    pub(super) is_sampled: bool,
}

impl Running {
    pub(super) fn new(name: &str, born: f64, completed: u64) -> Running {
        let tool = Tool { name: name.to_owned(), programs: 1, ..Tool::default() };
        Running { tool, came: born, went: born, counted_to: completed, ..Running::default() }
    }

    /// One more process runs it.
    pub(super) fn joined(&mut self, born: f64) {
        if self.alive == 0 {
            // Nobody was there until now.
            self.see_cores(self.cpu(), born);
        }
        self.tool.instances += 1;
        self.alive += 1;
        self.came = self.came.min(born);
    }

    /// There is a row about one more of its processes.
    pub(super) fn seen(&mut self, completed: u64) {
        self.count_samples(completed);
        self.seen += 1;
    }

    /// A process does not run it any more.
    pub(super) fn left(&mut self, sizes: &Sizes, was_seen: bool, at: f64, completed: u64) {
        self.count_samples(completed);
        self.seen -= u64::from(was_seen);
        self.alive -= 1;
        self.threads.left(sizes.threads.is_some());
        self.resized(sizes, &Sizes::default());
        self.went = self.went.max(at);
        if self.alive == 0 {
            self.see_earlier();
            self.see_cores(self.cpu(), at);
        }
    }

    /// So much CPU time was used until then.
    fn see_cores(&mut self, cpu: f64, at: f64) {
        if self.cores.see_within(cpu, at, self.threads.cores(self.alive)) {
            self.threads.begin_window();
        }
    }

    /// What was used until the last look is known by now, also by those who were looked at
    /// before it.
    fn see_earlier(&mut self) {
        self.cpu_before += std::mem::take(&mut self.earlier);
        self.see_cores(self.cpu_before, self.looked_before);
    }

    /// Whoever is there was there at every look since the last change.
    fn count_samples(&mut self, completed: u64) {
        self.tool.samples += self.seen * (completed - self.counted_to);
        self.counted_to = completed;
    }

    /// One of its processes used CPU time. A share of it was before the last look.
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

    /// What one of its processes has now.
    pub(super) fn resized(&mut self, before: &Sizes, now: &Sizes) {
        self.rss.change(before.rss, now.rss);
        self.pss.change(before.pss, now.pss);
        self.uss.change(before.uss, now.uss);
        self.size.change(before.size, now.size);
        self.threads.change(before.threads, now.threads);
    }

    /// What is there now was there at one moment.
    pub(super) fn settle(&mut self) {
        let tool = &mut self.tool;
        tool.instances_peak = tool.instances_peak.max(Some(self.alive));
        self.rss.raise(&mut tool.memory_rss_peak_bytes);
        self.pss.raise(&mut tool.memory_pss_peak_bytes);
        self.uss.raise(&mut tool.memory_uss_peak_bytes);
        self.size.raise(&mut tool.memory_peak_bytes);
    }

    /// Everybody was looked at now, for the `look`th time, and before that at `before`.
    ///
    /// One weigh looks at everybody at one moment. In a round of several each is looked at at
    /// another, so it is known one round later what all had used at one moment: CPU time of
    /// different stretches of time, added up, would be more cores than there are.
    pub(super) fn sampled(&mut self, look: u64, at: f64, sample_times: &SampleTimes) {
        let stood_still = self.look_before + 1 < look;
        if sample_times.in_rounds() {
            if stood_still {
                self.see_cores(self.cpu_before, self.looked_before);
                self.see_cores(self.cpu_before, sample_times.certain());
            }
            self.see_cores(self.cpu_before + self.earlier, sample_times.last());
            self.earlier = 0.0;
        } else {
            if stood_still {
                self.see_cores(self.cpu_before, sample_times.last());
            }
            self.see_cores(self.cpu(), at);
        }
        (self.cpu_before, self.look_before, self.looked_before) = (self.cpu(), look, at);
    }

    /// What it used, in a run of so many seconds and looks, on so many cores.
    pub(super) fn finish(mut self, duration: f64, completed: u64, machine: f64) -> Tool {
        self.settle();
        self.count_samples(completed);
        if self.alive > 0 {
            self.see_cores(self.cpu_before, self.looked_before);
        }
        // Moments are counted from just before exec, and the last look is after the exit.
        let went = if self.alive > 0 { duration } else { self.went.min(duration) };
        let lasted = (went - self.came).max(0.0);
        let mut tool = self.tool;
        let is_sampled = self.is_sampled || self.alive > 0;
        tool.cpu_time_method =
            tool.cpu_time_seconds.map(|_| if is_sampled { Method::Sampled } else { Method::Exact });
        tool.duration_seconds = Some(lasted);
        let most = self.threads.cores_ever(self.alive);
        let cores = |cpu| possible_cores(cpu, lasted, most).min(machine);
        tool.cpu_cores_mean =
            tool.cpu_time_seconds.filter(|_| lasted >= SHORTEST_WINDOW).map(cores);
        // Over the whole of its time it was not busier than at the busiest of it.
        let peak = self.cores.peak.value.map(|peak| peak.min(machine));
        tool.cpu_cores_peak = match (peak, tool.cpu_cores_mean) {
            (Some(peak), Some(mean)) => Some(peak.max(mean)),
            (peak, mean) => peak.or(mean),
        };
        // One that came and went between two looks was there all the same, with its memory:
        // all of them together had no less than the largest of them.
        tool.instances_peak = tool.instances_peak.max(Some(1));
        let largest = tool.instance_memory_peak_bytes;
        tool.memory_peak_bytes = tool.memory_peak_bytes.max(largest);
        tool.memory_rss_peak_bytes = tool.memory_rss_peak_bytes.max(largest);
        tool
    }

    /// When it came and went, while others are added to it.
    pub(super) fn span(&self) -> (f64, f64) {
        (self.came, if self.alive > 0 { f64::INFINITY } else { self.went })
    }
}

/// Cores over a time that is long enough to mean something.
pub(super) fn mean_cores(cpu: Option<f64>, seconds: f64) -> Option<f64> {
    cpu.filter(|_| seconds >= SHORTEST_WINDOW).map(|cpu| cpu / seconds)
}
