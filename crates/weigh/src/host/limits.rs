//! Limits that are meant for the command and hold for weigh, too: open files and memory.
//!
//! Source: `getrlimit(2)`. weigh raises its own soft limits to the hard ones, which every user
//! may, and puts them back between fork and exec: the command finds what it would have found.
//! Where a hard limit binds, weigh measures less, or nothing (`host::out_of_memory`).

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// What weigh needs more of than a command may be allowed.
const RAISED: [Resource; 3] = [Resource::Nofile, Resource::As, Resource::Data];

/// Limits as they were when weigh began.
#[derive(Debug, Clone, Copy)]
pub struct ResourceLimits([Rlimit; RAISED.len()]);

impl ResourceLimits {
    /// Those that are in force.
    pub fn now() -> ResourceLimits {
        ResourceLimits(RAISED.map(getrlimit))
    }

    /// Raises each to what this process may raise it to.
    pub fn raise(&self) {
        for (resource, limit) in RAISED.into_iter().zip(&self.0) {
            let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
            // A hard limit above the system's own (fs.nr_open) is refused; then the soft one holds.
            let _ = setrlimit(resource, raised);
        }
    }

    /// Puts each back to what it was.
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

/// Does the work where there is room for it on the stack.
///
/// The stack of the first thread ends at the limit on it, which the command may need to be
/// small; that of another thread has the size it is given. Nobody else runs in the meantime, so
/// the work may fork as if it had the process for itself.
pub fn with_enough_stack<T: Send>(work: fn() -> T) -> T {
    /// What is used at most is far below; a build without optimisation needs more.
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
    fn raised_limits_are_put_back_to_what_they_were() {
        // Of this test's process alone, and no other test of it opens so many files.
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
