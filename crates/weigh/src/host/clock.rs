//! Time: one monotonic clock for everything measured; the wall clock is read once.

use std::mem::MaybeUninit;
use std::sync::LazyLock;
use std::time::Duration;
#[cfg(test)]
use std::{cell::Cell, rc::Rc};

use rustix::time::{ClockId, clock_gettime};

/// The clock that ticks are measured on.
#[derive(Debug, Clone)]
pub enum HostClock {
    /// The kernel's monotonic clock.
    Monotonic,
    /// A clock that a test moves by hand.
    #[cfg(test)]
    Manual(Rc<Cell<Duration>>),
}

impl HostClock {
    /// The time since a fixed moment in the past; never goes back.
    pub fn now(&self) -> Duration {
        match self {
            HostClock::Monotonic => read(ClockId::Monotonic),
            #[cfg(test)]
            HostClock::Manual(now) => now.get(),
        }
    }
}

/// The time since 1970 by the wall clock, read once per run.
pub fn wall() -> Duration {
    read(ClockId::Realtime)
}

/// By how many seconds the wall clock may be wrong, by the kernel's own bound, while a time service
/// (NTP, PTP) keeps it; `None` without one.
pub fn synchronised_within() -> Option<f64> {
    let mut state = MaybeUninit::<libc::timex>::zeroed();
    // SAFETY: all zeros is a valid timex, and asks only; the place is ours.
    let code = unsafe { libc::adjtimex(state.as_mut_ptr()) };
    // SAFETY: see above; the kernel has filled it where the call succeeded.
    let state = unsafe { state.assume_init() };
    let is_kept = code >= 0 && code != libc::TIME_ERROR && state.status & libc::STA_UNSYNC == 0;
    is_kept.then_some(state.maxerror as f64 / 1e6)
}

/// The time since the machine was started.
pub fn since_boot() -> Duration {
    read(ClockId::Boottime)
}

/// CPU time this thread has used.
pub fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

/// How far the clocks of a time namespace are ahead of the machine's, in nanoseconds.
///
/// `/proc/self/timens_offsets`, since Linux 5.6. The kernel adds them to the times it reports in
/// the namespace, start times in `/proc/PID/stat` included, so processes in different namespaces
/// exchange times on the clocks of the machine.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Offsets {
    monotonic: i128,
    boottime: i128,
}

impl Offsets {
    /// Those of this process; none where the kernel has no such namespaces.
    #[expect(clippy::disallowed_methods, reason = "it is about this process, not the machine")]
    pub fn own() -> Offsets {
        static OWN: LazyLock<Offsets> = LazyLock::new(|| {
            let text = std::fs::read_to_string("/proc/self/timens_offsets");
            text.map_or_else(|_| Offsets::default(), |text| Offsets::parse(&text))
        });
        *OWN
    }

    fn parse(text: &str) -> Offsets {
        let of = |clock: &str| {
            let line = text.lines().find_map(|line| line.trim().strip_prefix(clock))?;
            let mut numbers = line.split_whitespace().map_while(|word| word.parse::<i128>().ok());
            Some(numbers.next()?.saturating_mul(1_000_000_000).saturating_add(numbers.next()?))
        };
        Offsets { monotonic: of("monotonic").unwrap_or(0), boottime: of("boottime").unwrap_or(0) }
    }

    /// A monotonic time of this namespace, in nanoseconds, on the machine's clock.
    pub fn on_machine(self, nanoseconds: u64) -> u64 {
        shifted(nanoseconds, -self.monotonic)
    }

    /// A monotonic time of the machine on this namespace's clock.
    pub fn in_namespace(self, nanoseconds: u64) -> u64 {
        shifted(nanoseconds, self.monotonic)
    }

    /// A process's start time in this namespace, in clock ticks, on the machine's clock.
    pub fn start_on_machine(self, ticks: u64, per_second: u64) -> u64 {
        shifted(ticks, -self.boottime * i128::from(per_second) / 1_000_000_000)
    }

    /// A process's start time on the machine's clock, in this namespace.
    pub fn start_in_namespace(self, ticks: u64, per_second: u64) -> u64 {
        shifted(ticks, self.boottime * i128::from(per_second) / 1_000_000_000)
    }
}

fn shifted(time: u64, by: i128) -> u64 {
    (i128::from(time) + by).clamp(0, i128::from(u64::MAX)) as u64
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    // Times before 1970 do not occur; nanoseconds are below 10⁹.
    Duration::new(time.tv_sec.max(0) as u64, time.tv_nsec as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_converted_between_time_namespace_and_machine() {
        let inside =
            Offsets::parse("monotonic         100         5\nboottime       86400         0\n");
        assert_eq!(inside.on_machine(100_000_000_012), 7);
        assert_eq!(inside.in_namespace(7), 100_000_000_012);
        assert_eq!(inside.start_on_machine(8_640_042, 100), 42);
        assert_eq!(inside.start_in_namespace(42, 100), 8_640_042);
        let behind = Offsets::parse("monotonic -10 0\nboottime -1 0\n");
        assert_eq!((behind.on_machine(5), behind.start_on_machine(7, 100)), (10_000_000_005, 107));
        for nothing in
            ["", "monotonic\n", "monotonic x y\nboottime 99999999999999999999999999999 1"]
        {
            assert_eq!(Offsets::parse(nothing).on_machine(3), 3);
        }
    }
}
