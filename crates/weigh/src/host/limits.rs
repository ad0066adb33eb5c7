//! Resource limits that are meant for the command and apply to weigh, too: open files and memory.
//!
//! Source: `getrlimit(2)`. weigh raises its own soft limits to the hard ones, which every user may,
//! and restores them between fork and exec: the command has the limits it would have without weigh.
//! Where a hard limit is too low, weigh measures less, or nothing (`host::out_of_memory`).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Resources of which weigh may need more than the command.
const RAISED: [Resource; 3] = [Resource::Nofile, Resource::As, Resource::Data];

/// The limits at the start of weigh.
#[derive(Debug, Clone, Copy)]
pub struct ResourceLimits([Rlimit; RAISED.len()]);

impl ResourceLimits {
    /// The current limits.
    pub fn now() -> ResourceLimits {
        ResourceLimits(RAISED.map(getrlimit))
    }

    /// Raises each soft limit to the hard limit.
    pub fn raise(&self) {
        for (resource, limit) in RAISED.into_iter().zip(&self.0) {
            let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
            // A hard limit above the system's own (fs.nr_open) is refused; then the soft one holds.
            let _ = setrlimit(resource, raised);
        }
    }

    /// Restores the limits.
    pub fn restore(&self) {
        for (resource, limit) in RAISED.into_iter().zip(&self.0) {
            // Lowering the soft limit is always allowed.
            let _ = setrlimit(resource, *limit);
        }
    }
}

/// How many files this process may have open.
pub fn open_files() -> usize {
    getrlimit(Resource::Nofile).current.map_or(1 << 20, |count| count as usize)
}

/// Runs `work` with a stack that is large enough.
///
/// The stack of the first thread is bounded by a limit, which the command may need to be small;
/// that of another thread has the size it is given. No other thread runs in the meantime, so `work`
/// may fork as if the process had one thread.
pub fn with_enough_stack<T: Send>(work: fn() -> T) -> T {
    /// Far more than is used; a build without optimisation needs more.
    const ENOUGH: u64 = 1 << 20;
    let limit = getrlimit(Resource::Stack).current;
    if limit.is_none_or(|bytes| bytes >= ENOUGH) {
        return work();
    }
    super::signals::on_a_thread(4 * ENOUGH as usize, work)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raised_limits_are_restored() {
        // The limit is that of the test process; no other test opens so many files.
        let limits = ResourceLimits::now();
        let soft = Rlimit { current: Some(900), ..limits.0[0] };
        setrlimit(Resource::Nofile, soft).unwrap();
        let lowered = ResourceLimits::now();
        lowered.raise();
        assert!(open_files() > 900, "{limits:?}");
        lowered.restore();
        assert_eq!(open_files(), 900);
        limits.restore();
    }
}
