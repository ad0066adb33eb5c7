//! What the kernel's counters count: CPU time of a command, energy of the machine.
//!
//! A perf task clock that is inherited counts every child, also those nobody
//! waits for (`wait4` never hears of them). Works for everybody up to
//! `kernel.perf_event_paranoid` 2, because the kernel's own part is excluded
//! in name only: a task clock has one clock for both.

use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::time::Duration;

use perf_event_open_sys::bindings;

use super::{Dir, Error};

/// A running count of the CPU time of a process and all it starts.
#[derive(Debug)]
pub struct TaskClock {
    counter: std::fs::File,
}

impl TaskClock {
    /// Starts counting when process `pid`, a child that has not done it yet, calls exec.
    pub fn on_exec(pid: u32) -> std::io::Result<TaskClock> {
        let mut attributes = bindings::perf_event_attr {
            size: size_of::<bindings::perf_event_attr>() as u32,
            type_: bindings::PERF_TYPE_SOFTWARE,
            config: u64::from(bindings::PERF_COUNT_SW_TASK_CLOCK),
            ..Default::default()
        };
        attributes.set_disabled(1);
        attributes.set_inherit(1);
        attributes.set_enable_on_exec(1);
        attributes.set_exclude_kernel(1);
        attributes.set_exclude_hv(1);
        let every_cpu = -1;
        let no_group = -1;
        // SAFETY: the attributes are a valid structure of the size they name, and live
        // until the call returns.
        let fd = unsafe {
            perf_event_open_sys::perf_event_open(
                &mut attributes,
                pid as i32,
                every_cpu,
                no_group,
                std::ffi::c_ulong::from(bindings::PERF_FLAG_FD_CLOEXEC),
            )
        };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: the kernel just gave us this descriptor and nobody else has it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        Ok(TaskClock { counter: fd.into() })
    }

    /// CPU time used so far by everything the command started, dead or alive.
    pub fn read(&mut self) -> std::io::Result<Duration> {
        let mut bytes = [0; 8];
        self.counter.read_exact(&mut bytes)?;
        Ok(Duration::from_nanos(u64::from_ne_bytes(bytes)))
    }
}

/// Who is asked to count for the whole machine.
#[derive(Debug, Clone)]
pub enum Perf {
    /// The kernel.
    Kernel,
    /// Counters that a test moves by hand, by event and CPU; others are refused.
    #[cfg(test)]
    Manual(std::rc::Rc<std::cell::RefCell<std::collections::BTreeMap<(u64, u32), u64>>>),
}

/// A running count of something the whole machine does.
#[derive(Debug)]
pub enum MachineCounter {
    /// The kernel's.
    Kernel(std::fs::File),
    /// A test's.
    #[cfg(test)]
    Manual(Perf, (u64, u32)),
}

impl Perf {
    /// Counts an event of a counting unit of the machine, seen from one CPU.
    ///
    /// Needs `kernel.perf_event_paranoid` of 0 or less, or CAP_PERFMON.
    pub fn count(&self, unit: u32, event: u64, cpu: u32) -> std::io::Result<MachineCounter> {
        match self {
            Perf::Kernel => count_on(unit, event, cpu).map(MachineCounter::Kernel),
            #[cfg(test)]
            Perf::Manual(counts) if counts.borrow().contains_key(&(event, cpu)) => {
                Ok(MachineCounter::Manual(self.clone(), (event, cpu)))
            }
            #[cfg(test)]
            Perf::Manual(_) => Err(std::io::Error::from_raw_os_error(libc::EACCES)),
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
                let gone = || std::io::Error::from_raw_os_error(libc::ENODEV);
                counts.borrow().get(key).copied().ok_or_else(gone)
            }
            #[cfg(test)]
            MachineCounter::Manual(Perf::Kernel, _) => unreachable!("a test's is a test's"),
        }
    }
}

fn count_on(unit: u32, event: u64, cpu: u32) -> std::io::Result<std::fs::File> {
    let mut attributes = bindings::perf_event_attr {
        size: size_of::<bindings::perf_event_attr>() as u32,
        type_: unit,
        config: event,
        ..Default::default()
    };
    let (every_process, no_group) = (-1, -1);
    // SAFETY: the attributes are a valid structure of the size they name, and live
    // until the call returns.
    let fd = unsafe {
        perf_event_open_sys::perf_event_open(
            &mut attributes,
            every_process,
            cpu as i32,
            no_group,
            std::ffi::c_ulong::from(bindings::PERF_FLAG_FD_CLOEXEC),
        )
    };
    if fd < 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: the kernel just gave us this descriptor and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) }.into())
}

/// How far the kernel lets unprivileged users count (`kernel.perf_event_paranoid`).
pub fn paranoid(proc: &Dir) -> Result<i32, Error> {
    let mut buffer = Vec::new();
    let bytes = proc.read(c"sys/kernel/perf_event_paranoid", &mut buffer)?;
    std::str::from_utf8(bytes).ok().and_then(|text| text.trim().parse().ok()).ok_or_else(|| {
        Error::Parse {
            path: proc.path(c"sys/kernel/perf_event_paranoid"),
            source: crate::parse::Malformed("a whole number"),
        }
    })
}
