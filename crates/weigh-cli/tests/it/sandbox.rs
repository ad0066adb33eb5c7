//! Sandboxes that refuse system calls which weigh needs (gVisor, qemu-user, seccomp profiles):
//! the command runs, and figures that are less exact are marked.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde_json::Value;

use crate::weighed::{Figure, output, weigh};

/// A system call that is refused, all of it or with this first argument.
#[derive(Clone, Copy)]
struct Refused {
    number: libc::c_long,
    first: Option<u32>,
    errno: i32,
}

const SUBREAPER: u32 = libc::PR_SET_CHILD_SUBREAPER as u32;

const fn subreaper(errno: i32) -> Refused {
    Refused { number: libc::SYS_prctl, first: Some(SUBREAPER), errno }
}

const PERF: Refused =
    Refused { number: libc::SYS_perf_event_open, first: None, errno: libc::EPERM };

/// Makes the kernel refuse a system call to this process and its descendants.
fn refuse(refused: Refused) -> io::Result<()> {
    // Offsets in `struct seccomp_data`: the number and the low half of the first argument.
    const NUMBER: u32 = 0;
    let low = if cfg!(target_endian = "big") { 20 } else { 16 };
    let (load, equal, give) = (0x20, 0x15, 0x06); // BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_RET|K
    let statement = |code: u16, jt: u8, jf: u8, k: u32| libc::sock_filter { code, jt, jf, k };
    let deny = libc::SECCOMP_RET_ERRNO | refused.errno as u32;
    let argument = match refused.first {
        Some(first) => statement(equal, 0, 1, first),
        None => statement(0x05, 0, 0, 0), // BPF_JMP|JA: on to the next
    };
    let mut program = [
        statement(load, 0, 0, NUMBER),
        statement(equal, 0, 3, refused.number as u32),
        statement(load, 0, 0, low),
        argument,
        statement(give, 0, 0, deny),
        statement(give, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: the program is valid for the call, and the kernel copies it.
    let result = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const filter)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The summary of a script for which the kernel refuses system calls.
fn summary(refusals: Vec<Refused>, script: &str) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let expected =
        ["run", "--no-record", "--format", "json", "-i", "10ms", "--", "sh", "-c", script];
    let mut command: Command = weigh(directory.path(), &expected);
    // SAFETY: the closure only makes system calls.
    unsafe { command.pre_exec(move || refusals.iter().try_for_each(|one| refuse(*one))) };
    let output = output(&mut command);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    serde_json::from_str(&stderr).unwrap_or_else(|why| panic!("{why}: {stderr}"))
}

fn faults(summary: &Value) -> Vec<&str> {
    summary["monitor"]["faults"].as_array().unwrap().iter().filter_map(Value::as_str).collect()
}

/// A script that starts a daemon, and ends when that has worked.
const ORPHAN: &str = "mkfifo done; (sh -c '\"$BURNER\" cpu 100ms; echo > done' &); read x < done
    exit 7";

fn reports_orphans(errno: i32, expected: &str) {
    let summary = summary(vec![subreaper(errno)], ORPHAN);
    let faults = faults(&summary);
    let message = faults.iter().filter(|fault| fault.starts_with("child-subreaper: ")).count();
    assert_eq!(message, 1, "{faults:?}");
    assert!(faults.iter().any(|fault| fault.contains(expected)), "{faults:?}");
    assert_eq!(summary["processes"]["some_unseen"], true);
    let memory = Figure::of(&summary["figures"]["memory_peak_bytes"], "memory_peak_bytes");
    assert_eq!(memory.upper, None, "an orphan may have had any size: {memory:?}");
}

#[test]
fn command_runs_where_the_kernel_refuses_a_child_subreaper() {
    reports_orphans(libc::EPERM, "Operation not permitted");
}

#[test]
fn command_runs_where_the_kernel_knows_no_child_subreaper() {
    reports_orphans(libc::EINVAL, "Invalid argument");
}

#[test]
fn nothing_is_exact_without_a_child_subreaper_and_a_task_clock() {
    let summary = summary(vec![subreaper(libc::ENOSYS), PERF], ORPHAN);
    let figures = summary["figures"].as_object().unwrap();
    for (name, figure) in figures.iter().filter(|(name, _)| !name.starts_with("network_")) {
        assert_ne!(figure["method"], "exact", "{name}: {figure}");
    }
    let cpu = Figure::of(&figures["cpu_time_seconds"], "cpu_time_seconds");
    assert!(cpu.upper.is_none() && cpu.reason.is_some(), "{cpu:?}");
}
