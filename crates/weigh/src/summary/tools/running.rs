//! One tool, and what its processes have at the moment.

use super::Tool;
use crate::summary::curve::{Rate, SHORTEST_WINDOW};

/// Sizes of a process; `None` where they are not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) rss: Option<u64>,
    pub(super) pss: Option<u64>,
    pub(super) uss: Option<u64>,
    /// Proportional where that is known, and else resident.
    pub(super) size: Option<u64>,
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
    /// CPU time at the last look that it changed in, and which look that was.
    cpu_before: f64,
    look_before: u64,
    pub(super) is_touched: bool,
}

impl Running {
    pub(super) fn new(name: &str, born: f64, looks: u64) -> Running {
        let tool = Tool { name: name.to_owned(), programs: 1, ..Tool::default() };
        Running { tool, came: born, went: born, counted_to: looks, ..Running::default() }
    }

    /// One more process runs it.
    pub(super) fn joined(&mut self, born: f64) {
        if self.alive == 0 {
            // Nobody was there until now.
            self.cores.see(self.cpu(), born);
        }
        self.tool.instances += 1;
        self.alive += 1;
        self.came = self.came.min(born);
    }

    /// There is a row about one more of its processes.
    pub(super) fn seen(&mut self, looks: u64) {
        self.count_samples(looks);
        self.seen += 1;
    }

    /// A process does not run it any more.
    pub(super) fn left(&mut self, sizes: &Sizes, was_seen: bool, at: f64, looks: u64) {
        self.count_samples(looks);
        self.seen -= u64::from(was_seen);
        self.alive -= 1;
        self.resized(sizes, &Sizes::default());
        self.went = self.went.max(at);
        if self.alive == 0 {
            self.cores.see(self.cpu(), at);
        }
    }

    /// Whoever is there was there at every look since the last change.
    fn count_samples(&mut self, looks: u64) {
        self.tool.samples += self.seen * (looks - self.counted_to);
        self.counted_to = looks;
    }

    /// One of its processes used CPU time: in user mode and in the kernel.
    pub(super) fn used(&mut self, [user, system]: [f64; 2]) {
        for (sum, seconds) in [
            (&mut self.tool.cpu_user_seconds, user),
            (&mut self.tool.cpu_system_seconds, system),
            (&mut self.tool.cpu_time_seconds, user + system),
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
    pub(super) fn looked_at(&mut self, look: u64, at: f64, before: f64) {
        if self.look_before + 1 < look {
            // It stood still until the look before this one.
            self.cores.see(self.cpu_before, before);
        }
        self.cores.see(self.cpu(), at);
        (self.cpu_before, self.look_before) = (self.cpu(), look);
    }

    /// What it used, in a run of so many seconds and looks.
    pub(super) fn finish(mut self, duration: f64, looks: u64) -> Tool {
        self.settle();
        self.count_samples(looks);
        // Moments are counted from just before exec, and the last look is after the exit.
        let went = if self.alive > 0 { duration } else { self.went.min(duration) };
        let lasted = (went - self.came).max(0.0);
        let mut tool = self.tool;
        tool.duration_seconds = Some(lasted);
        tool.cpu_cores_mean = mean_cores(tool.cpu_time_seconds, lasted);
        // Over the whole of its time it was not busier than at the busiest of it.
        let peak = self.cores.peak.value;
        tool.cpu_cores_peak = match (peak, tool.cpu_cores_mean) {
            (Some(peak), Some(mean)) => Some(peak.max(mean)),
            (peak, mean) => peak.or(mean),
        };
        // One that came and went between two looks was there all the same.
        tool.instances_peak = tool.instances_peak.max(Some(1));
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
