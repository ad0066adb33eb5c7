//! Events counted for a command or for running threads, alone or in a group of the kernel.
//!
//! A group is on the PMU as a whole or not at all, so its counts are of the same time. Each event is
//! read by itself: until Linux 6.12 events that children inherit cannot be read as a group.
//!
//! What surprised us: a group that can never be counted, because it has more events than there are
//! counters, is refused with EINVAL when its last event is opened; one that only lacks a counter
//! that somebody else uses (the NMI watchdog) is accepted and never counts. Both times must be
//! read to tell.

use std::io::Read;
use std::os::fd::AsRawFd;

use perf_event_open_sys::{bindings, ioctls};

use super::{ALL, Perf, open};

/// An event as the kernel takes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventCode {
    /// The PMU, or one of the kernel's types of events.
    pub kind: u32,
    /// The event.
    pub config: u64,
    /// More of it.
    pub config1: u64,
    /// And more.
    pub config2: u64,
}

impl EventCode {
    /// An event of the kernel's own list of hardware events.
    pub const fn hardware(number: u64) -> EventCode {
        EventCode { kind: bindings::PERF_TYPE_HARDWARE, config: number, config1: 0, config2: 0 }
    }

    /// CPU cycles.
    pub const CYCLES: EventCode = EventCode::hardware(0);

    /// Retired instructions.
    pub const INSTRUCTIONS: EventCode = EventCode::hardware(1);

    /// Retired branches: an event that every PMU counts in a programmable counter.
    pub const BRANCHES: EventCode = EventCode::hardware(4);

    /// Whether it happens only in the kernel: without the kernel's time its count is always 0, and
    /// no error says so.
    fn is_only_in_kernel(&self) -> bool {
        const SWITCHES: [u32; 2] =
            [bindings::PERF_COUNT_SW_CONTEXT_SWITCHES, bindings::PERF_COUNT_SW_CPU_MIGRATIONS];
        let is_switch = SWITCHES.iter().any(|event| u64::from(*event) == self.config);
        self.kind == bindings::PERF_TYPE_TRACEPOINT || is_switch
    }

    /// Whether the kernel itself counts it.
    pub fn is_software(&self) -> bool {
        matches!(self.kind, bindings::PERF_TYPE_SOFTWARE | bindings::PERF_TYPE_TRACEPOINT)
    }
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedTask {
    /// A forked child from its exec on, with all it starts.
    FromExec(u32),
    /// A thread from now on, with all it starts.
    FromNow(u32),
    /// The calling thread, never: to learn whether the kernel would count it.
    Trial,
}

/// An event that is counted, which can be read after the processes it counts have exited.
#[derive(Debug)]
pub enum EventCounter {
    /// The kernel's.
    Kernel(std::fs::File),
    /// That of a test.
    #[cfg(test)]
    Simulated(super::simulated::SimulatedCounter),
}

/// What was counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EventReading {
    /// Events.
    pub count: u64,
    /// Nanoseconds of CPU time in which it was to be counted.
    pub enabled: u64,
    /// Nanoseconds of these in which it was.
    pub running: u64,
}

impl Perf {
    /// Counts an event, alone or in the group of this leader: one of a core in user mode, one of the
    /// kernel itself also in the kernel where that is permitted. It begins at once, or at
    /// exec, if it `begins`; otherwise when it is enabled. In a group that is the leader's.
    ///
    /// Needs `kernel.perf_event_paranoid` of 2 or less, or CAP_PERFMON.
    pub fn count_event(
        &self,
        code: EventCode,
        task: CountedTask,
        leader: Option<&EventCounter>,
        begins: bool,
    ) -> std::io::Result<EventCounter> {
        match self {
            Perf::Kernel => {
                let leader = match leader {
                    Some(EventCounter::Kernel(file)) => Some(file),
                    _ => None,
                };
                open_event(code, task, leader, begins).map(EventCounter::Kernel)
            }
            #[cfg(test)]
            Perf::Simulated(pmu) => {
                let leader = leader.map(|leader| match leader {
                    EventCounter::Simulated(counter) => counter,
                    EventCounter::Kernel(_) => unreachable!("a test's group is a test's"),
                });
                pmu.open(code, task, leader, begins).map(EventCounter::Simulated)
            }
            #[cfg(test)]
            Perf::Manual(_) => Err(std::io::Error::from_raw_os_error(libc::ENOENT)),
        }
    }
}

fn open_event(
    code: EventCode,
    task: CountedTask,
    leader: Option<&std::fs::File>,
    begins: bool,
) -> std::io::Result<std::fs::File> {
    let mut attributes = bindings::perf_event_attr {
        size: size_of::<bindings::perf_event_attr>() as u32,
        type_: code.kind,
        config: code.config,
        read_format: u64::from(
            bindings::PERF_FORMAT_TOTAL_TIME_ENABLED | bindings::PERF_FORMAT_TOTAL_TIME_RUNNING,
        ),
        ..Default::default()
    };
    attributes.__bindgen_anon_3.config1 = code.config1;
    attributes.__bindgen_anon_4.config2 = code.config2;
    attributes.set_inherit(1);
    attributes.set_exclude_hv(1);
    // The others of a group follow their leader.
    if leader.is_none() {
        let is_from_exec = matches!(task, CountedTask::FromExec(_));
        attributes.set_disabled(u64::from(is_from_exec || !begins));
        attributes.set_enable_on_exec(u64::from(is_from_exec && begins));
    }
    let pid = match task {
        CountedTask::FromExec(pid) | CountedTask::FromNow(pid) => pid as i32,
        CountedTask::Trial => 0,
    };
    if !code.is_software() {
        attributes.set_exclude_kernel(1);
        return open(pid, ALL, leader, attributes);
    }
    match open(pid, ALL, leader, attributes) {
        Err(error) if error.raw_os_error() == Some(libc::EACCES) && !code.is_only_in_kernel() => {
            attributes.set_exclude_kernel(1);
            open(pid, ALL, leader, attributes)
        }
        opened => opened,
    }
}

impl EventCounter {
    /// What was counted so far.
    pub fn read(&mut self) -> std::io::Result<EventReading> {
        match self {
            EventCounter::Kernel(file) => {
                let mut bytes = [0; 24];
                file.read_exact(&mut bytes)?;
                let number = |place: usize| {
                    let mut number = [0; 8];
                    number.copy_from_slice(&bytes[8 * place..8 * place + 8]);
                    u64::from_ne_bytes(number)
                };
                Ok(EventReading { count: number(0), enabled: number(1), running: number(2) })
            }
            #[cfg(test)]
            EventCounter::Simulated(counter) => Ok(counter.read()),
        }
    }

    /// Begins or goes on counting; for the leader of a group, all of it.
    pub fn enable(&self) -> std::io::Result<()> {
        match self {
            EventCounter::Kernel(file) => {
                // SAFETY: the descriptor is that of a perf event, and the call takes no pointer.
                done(unsafe { ioctls::ENABLE(file.as_raw_fd(), 0) })
            }
            #[cfg(test)]
            EventCounter::Simulated(counter) => {
                counter.set_enabled(true);
                Ok(())
            }
        }
    }

    /// Pauses counting; for the leader of a group, all of it.
    pub fn disable(&self) -> std::io::Result<()> {
        match self {
            EventCounter::Kernel(file) => {
                // SAFETY: the descriptor is that of a perf event, and the call takes no pointer.
                done(unsafe { ioctls::DISABLE(file.as_raw_fd(), 0) })
            }
            #[cfg(test)]
            EventCounter::Simulated(counter) => {
                counter.set_enabled(false);
                Ok(())
            }
        }
    }
}

fn done(returned: i32) -> std::io::Result<()> {
    if returned < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
