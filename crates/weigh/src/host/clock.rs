//! Time: one monotonic clock for everything measured, one look at the wall clock.

use std::time::Duration;
#[cfg(test)]
use std::{cell::Cell, rc::Rc};

use rustix::time::{ClockId, clock_gettime};

/// The clock that ticks are measured on.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The kernel's monotonic clock.
    Monotonic,
    /// A clock that a test moves by hand.
    #[cfg(test)]
    Manual(Rc<Cell<Duration>>),
}

impl Clock {
    /// The time since some fixed moment in the past; never goes back.
    pub fn now(&self) -> Duration {
        match self {
            Clock::Monotonic => read(ClockId::Monotonic),
            #[cfg(test)]
            Clock::Manual(now) => now.get(),
        }
    }
}

/// The time since 1970 by the wall clock, asked once per run.
pub fn wall() -> Duration {
    read(ClockId::Realtime)
}

/// The time since the machine was started.
pub fn since_boot() -> Duration {
    read(ClockId::Boottime)
}

/// CPU time this thread has used.
pub fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    // Clocks before 1970 do not happen; nanoseconds are below a thousand million.
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32)
}
