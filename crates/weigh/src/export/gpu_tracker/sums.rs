//! Processes added up: what they share counts once.

/// What was last read of a process.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    /// CPU time of its own, in seconds.
    pub own_cpu: f64,
    /// CPU time of the children it has waited for.
    pub children_cpu: f64,
    /// Resident memory.
    pub rss: Option<u64>,
    /// Its proportional share, when it was looked at.
    pub pss: Option<u64>,
    /// What is its alone, when it was looked at.
    pub uss: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
}

/// Sums over some processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    /// Proportional shares, or all where those are not known.
    pub proportional: f64,
    /// The largest of them.
    pub largest: f64,
    /// What they share.
    pub shared: Option<f64>,
    /// Threads.
    pub threads: u64,
}

impl Sums {
    /// With one more.
    pub fn add(&mut self, process: &Seen) {
        let rss = process.rss.unwrap_or(0) as f64;
        self.proportional += process.pss.map_or(rss, |pss| pss as f64);
        self.largest = self.largest.max(rss);
        if let (Some(pss), Some(uss)) = (process.pss, process.uss) {
            self.shared = Some(self.shared.unwrap_or(0.0) + pss.saturating_sub(uss) as f64);
        }
        self.threads += process.threads.unwrap_or(0);
    }

    /// All of their memory: never below the largest of them.
    pub fn total(&self) -> f64 {
        self.proportional.max(self.largest)
    }
}
