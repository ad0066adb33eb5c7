//! perf counters: CPU time of a command and everything it starts, or of one process, energy of the
//! machine, and events ([`events`]).
//!
//! An inherited perf task clock counts every child, also auto-reaped ones, which `wait4` misses;
//! one that only threads inherit counts one process, however short it lives. Works for every user
//! up to `kernel.perf_event_paranoid` 2, because kernel time is excluded in name only: a task clock
//! does not tell the two apart.

pub mod events;
#[cfg(test)]
pub mod simulated;

use std::io::Read;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use perf_event_open_sys::bindings;

use super::{Dir, Error};

/// A counter of CPU time, which can be read after the processes it counts have exited.
#[derive(Debug)]
pub struct TaskClock {
    counter: std::fs::File,
}

impl TaskClock {
    /// Starts counting when process `pid`, a forked child, calls exec.
    pub fn on_exec(pid: u32) -> std::io::Result<TaskClock> {
        let mut attributes = inherited();
        attributes.set_disabled(1);
        attributes.set_enable_on_exec(1);
        TaskClock::open(pid, attributes)
    }

    /// Counts from now on thread `tid`, with every thread and process that it starts.
    pub fn from_now(tid: u32) -> std::io::Result<TaskClock> {
        TaskClock::open(tid, inherited())
    }

    /// Counts from now on process `pid` itself, without the processes it starts.
    ///
    /// Threads that it starts from now on are counted, others it already has besides the first are
    /// not: this is for a process that just called exec. What it used before is in its `schedstat`.
    /// Needs Linux 5.13 (EINVAL before), and a process of the same user or root.
    pub fn of(pid: u32) -> std::io::Result<TaskClock> {
        let mut attributes = inherited();
        attributes.set_inherit_thread(1);
        TaskClock::open(pid, attributes)
    }

    fn open(pid: u32, attributes: bindings::perf_event_attr) -> std::io::Result<TaskClock> {
        Ok(TaskClock { counter: open(pid as i32, ALL, None, attributes)? })
    }

    /// CPU time used so far by all processes that are counted, exited ones included.
    pub fn read(&mut self) -> std::io::Result<Duration> {
        let mut bytes = [0; 8];
        self.counter.read_exact(&mut bytes)?;
        Ok(Duration::from_nanos(u64::from_ne_bytes(bytes)))
    }
}

/// A task clock that children inherit.
fn inherited() -> bindings::perf_event_attr {
    let mut attributes = bindings::perf_event_attr {
        size: size_of::<bindings::perf_event_attr>() as u32,
        type_: bindings::PERF_TYPE_SOFTWARE,
        config: u64::from(bindings::PERF_COUNT_SW_TASK_CLOCK),
        ..Default::default()
    };
    attributes.set_inherit(1);
    attributes.set_exclude_kernel(1);
    attributes.set_exclude_hv(1);
    attributes
}

/// On every CPU, or of every process.
const ALL: i32 = -1;

fn open(
    pid: i32,
    cpu: i32,
    leader: Option<&std::fs::File>,
    mut attributes: bindings::perf_event_attr,
) -> std::io::Result<std::fs::File> {
    let leader = leader.map_or(-1, AsRawFd::as_raw_fd);
    // SAFETY: the attributes are a valid structure of the size they name, and live
    // until the call returns.
    let fd = unsafe {
        perf_event_open_sys::perf_event_open(
            &mut attributes,
            pid,
            cpu,
            leader,
            std::ffi::c_ulong::from(bindings::PERF_FLAG_FD_CLOEXEC),
        )
    };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel just returned this descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// The source of counters of the whole machine, and of events.
#[derive(Debug, Clone)]
pub enum Perf {
    /// The kernel.
    Kernel,
    /// A PMU that a test describes; counters of the whole machine are refused.
    #[cfg(test)]
    Simulated(simulated::SimulatedPmu),
    /// Counters set by a test, by event and CPU; others are refused.
    #[cfg(test)]
    Manual(std::rc::Rc<std::cell::RefCell<std::collections::BTreeMap<(u64, u32), u64>>>),
}

/// A counter of the whole machine.
#[derive(Debug)]
pub enum MachineCounter {
    /// The kernel's.
    Kernel(std::fs::File),
    /// A test's.
    #[cfg(test)]
    Manual(Perf, (u64, u32)),
}

impl Perf {
    /// Counts an event of a PMU of the machine on one CPU.
    ///
    /// Needs `kernel.perf_event_paranoid` of 0 or less, or CAP_PERFMON.
    pub fn count(&self, pmu: u32, event: u64, cpu: u32) -> std::io::Result<MachineCounter> {
        match self {
            Perf::Kernel => count_on(pmu, event, cpu).map(MachineCounter::Kernel),
            #[cfg(test)]
            Perf::Manual(counts) if counts.borrow().contains_key(&(event, cpu)) => {
                Ok(MachineCounter::Manual(self.clone(), (event, cpu)))
            }
            #[cfg(test)]
            Perf::Manual(_) | Perf::Simulated(_) => {
                Err(std::io::Error::from_raw_os_error(libc::EACCES))
            }
        }
    }
}

impl MachineCounter {
    /// The count so far.
    pub fn read(&mut self) -> std::io::Result<u64> {
        match self {
            MachineCounter::Kernel(counter) => {
                let mut bytes = [0; 8];
                counter.read_exact(&mut bytes)?;
                Ok(u64::from_ne_bytes(bytes))
            }
            #[cfg(test)]
            MachineCounter::Manual(Perf::Manual(counts), key) => {
                let removed = || std::io::Error::from_raw_os_error(libc::ENODEV);
                counts.borrow().get(key).copied().ok_or_else(removed)
            }
            #[cfg(test)]
            MachineCounter::Manual(..) => unreachable!("a test's is a test's"),
        }
    }
}

fn count_on(pmu: u32, event: u64, cpu: u32) -> std::io::Result<std::fs::File> {
    let attributes = bindings::perf_event_attr {
        size: size_of::<bindings::perf_event_attr>() as u32,
        type_: pmu,
        config: event,
        ..Default::default()
    };
    open(ALL, cpu as i32, None, attributes)
}

/// What the kernel lets unprivileged users count (`kernel.perf_event_paranoid`).
pub fn paranoid(proc: &Dir) -> Result<i32, Error> {
    let mut buffer = Vec::new();
    let bytes = proc.read(c"sys/kernel/perf_event_paranoid", &mut buffer)?;
    std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
        Error::Parse {
            path: proc.path(c"sys/kernel/perf_event_paranoid"),
            source: crate::parse::MalformedFile("a whole number"),
        }
    })
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use rustix::event::{PollFd, PollFlags, poll};

    use super::*;
    use crate::host::clock::thread_cpu;
    use crate::host::pidfd::PidFd;
    use crate::host::skip::impossible;
    use crate::host::wait::reap;

    /// Seconds counted by the task clock of a script, and by wait4 for the script and its children;
    /// `None` where there are no task clocks.
    #[expect(clippy::zombie_processes, reason = "reap waits, and says what was used")]
    fn counted_and_charged(script: &str) -> Option<(f64, f64)> {
        // It waits for a line, so that the clock is open before it begins.
        let script = format!("read line; {script}");
        let mut command = Command::new("sh");
        let mut child = command.args(["-c", &script]).stdin(Stdio::piped()).spawn().unwrap();
        let clock = TaskClock::of(child.id());
        child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        let pidfd = PidFd::open(child.id()).unwrap();
        poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None).unwrap();
        let (_, usage) = reap(child.id()).unwrap();
        match clock {
            Ok(mut clock) => Some((clock.read().unwrap().as_secs_f64(), usage.cpu_seconds())),
            Err(error) => {
                impossible(format!("perf_event_open: {error}"));
                None
            }
        }
    }

    /// Some tenths of a second, without a process of its own.
    const BURN: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

    #[test]
    fn task_clock_counts_a_process_until_it_exits() {
        let Some((counted, charged)) = counted_and_charged(BURN) else { return };
        assert!((counted - charged).abs() < 0.06, "{counted} s of {charged} s");
        assert!(counted > charged / 2.0, "{counted} s of {charged} s");
    }

    #[test]
    fn task_clock_of_one_process_excludes_its_children() {
        let script = format!("( {BURN} ); true");
        let Some((counted, charged)) = counted_and_charged(&script) else { return };
        assert!(counted < charged / 3.0, "{counted} s of {charged} s");
    }

    #[test]
    fn task_clock_includes_new_threads() {
        // A thread stands for the process: only threads it starts inherit its clock.
        let burned = std::thread::spawn(|| {
            let thread = rustix::thread::gettid().as_raw_pid() as u32;
            let mut clock = TaskClock::of(thread).ok()?;
            let used = std::thread::spawn(|| {
                let enough = Duration::from_millis(100);
                while thread_cpu() < enough {}
                thread_cpu()
            });
            Some((used.join().ok()?, clock.read().ok()?))
        });
        let Some((used, counted)) = burned.join().unwrap() else {
            return impossible("perf_event_open is refused");
        };
        assert!(counted >= used.mul_f64(0.95), "{counted:?} of {used:?}");
    }

    #[test]
    fn task_clock_of_a_missing_process_is_refused() {
        let errno = TaskClock::of(i32::MAX as u32).unwrap_err().raw_os_error();
        if errno == Some(libc::ENOSYS) {
            return impossible("there is no perf_event_open");
        }
        let refused_or_gone = [libc::ESRCH, libc::EACCES, libc::EPERM].map(Some);
        assert!(refused_or_gone.contains(&errno), "{errno:?}");
    }
}
