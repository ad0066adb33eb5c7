//! CPU time of a command and everything it starts, counted by the kernel.
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
