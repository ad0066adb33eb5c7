//! Resource limits for the command change neither that it runs nor its exit code, and the command
//! inherits them unchanged.

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::weighed::{end_of, output, signal, wait_until, weigh, with_timeout};

type Resource = libc::__rlimit_resource_t;

/// The limit of the test process.
fn own_limit(resource: Resource) -> libc::rlimit {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local variable.
    assert_eq!(unsafe { libc::getrlimit(resource, &raw mut limit) }, 0);
    limit
}

/// Runs a command that has a limit.
fn limited(mut command: Command, resource: Resource, limit: libc::rlimit) -> Output {
    let limiting = move || {
        // SAFETY: the limit is valid for the call.
        match unsafe { libc::setrlimit(resource, &raw const limit) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    };
    // SAFETY: the closure only makes a system call.
    output(unsafe { command.pre_exec(limiting) })
}

fn warnings(output: &Output) -> Vec<String> {
    let stderr = String::from_utf8_lossy(&output.stderr);
    stderr.lines().filter(|line| line.starts_with("weigh: warning: ")).map(str::to_owned).collect()
}

/// Fails unless the command prints its unchanged limit and is measured.
fn runs_and_is_measured(resource: Resource, limit: libc::rlimit, letter: char, unit: u64) {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let script = format!("ulimit -S{letter}; ulimit -H{letter}; exit 7");
    let arguments = ["run", "-q", "-o", "run", "--", "sh", "-c", &script];
    let output = limited(weigh(here, &arguments), resource, limit);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(7), "{stderr}");
    assert_eq!(stderr, "", "nothing to warn of");
    let shown = |bytes: u64| match bytes {
        libc::RLIM_INFINITY => "unlimited".to_owned(),
        bytes => (bytes / unit).to_string(),
    };
    let unchanged = format!("{}\n{}\n", shown(limit.rlim_cur), shown(limit.rlim_max));
    assert_eq!(String::from_utf8_lossy(&output.stdout), unchanged);
    let summary: Value =
        serde_json::from_slice(&fs::read(here.join("run/summary.json")).unwrap()).unwrap();
    assert!(summary["figures"]["cpu_time_seconds"]["value"].as_f64() > Some(0.0), "{summary}");
}

#[test]
fn low_soft_limit_of_open_files_is_raised_for_weigh_alone() {
    let limit = libc::rlimit { rlim_cur: 8, ..own_limit(libc::RLIMIT_NOFILE) };
    runs_and_is_measured(libc::RLIMIT_NOFILE, limit, 'n', 1);
}

#[test]
fn soft_limit_of_memory_is_raised_for_weigh_alone() {
    let limit = libc::rlimit { rlim_cur: 64 << 20, ..own_limit(libc::RLIMIT_DATA) };
    runs_and_is_measured(libc::RLIMIT_DATA, limit, 'd', 1024);
}

#[test]
fn command_with_a_small_stack_is_measured() {
    let limit = libc::rlimit { rlim_cur: 64 << 10, rlim_max: 64 << 10 };
    runs_and_is_measured(libc::RLIMIT_STACK, limit, 's', 1024);
}

/// Fails unless the command has replaced weigh, with a warning.
fn runs_without_being_measured(here: &Path, arguments: &[&str]) {
    let limit = libc::rlimit { rlim_cur: 8, rlim_max: 8 };
    let script = "ulimit -Sn; ulimit -Hn; exit 7";
    let mut command = weigh(here, arguments);
    command.args(["--", "sh", "-c", script]);
    let output = limited(command, libc::RLIMIT_NOFILE, limit);
    assert_eq!(output.status.code(), Some(7), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "8\n8\n");
    let warnings = warnings(&output);
    assert!(warnings.len() == 1 && warnings[0].contains("nothing is measured"), "{warnings:?}");
    assert!(warnings[0].contains("Too many open files"), "{warnings:?}");
}

#[test]
fn command_runs_unmeasured_when_weigh_may_not_open_enough_files() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    runs_without_being_measured(here, &["run", "-o", "run", "--summary", "summary.json"]);
    assert_eq!(fs::read_dir(here).unwrap().count(), 0, "nothing is left of a run that was none");
}

#[test]
fn command_of_a_phase_runs_unmeasured_when_weigh_may_not_open_enough_files() {
    let directory = tempfile::tempdir().unwrap();
    runs_without_being_measured(directory.path(), &["phase", "work"]);
}

#[test]
fn command_runs_to_its_own_end_when_weigh_runs_out_of_memory() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let script = ": > ready; read go < go; exec \"$BURNER\" spawn-sleepers 5000 600s";
    let arguments = ["run", "-q", "-i", "20ms", "-o", "run", "--", "sh", "-c", script];
    let go = here.join("go");
    assert!(output(Command::new("mkfifo").arg(&go)).status.success());
    let mut child = weigh(here, &arguments).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the command is ready", || here.join("ready").exists());
    // From here on weigh gets no more memory, but the command does.
    let limit = libc::rlimit { rlim_cur: 4096, rlim_max: 4096 };
    let none = std::ptr::null_mut();
    // SAFETY: the limit is valid for the call, and the old one is not requested.
    let limited =
        unsafe { libc::prlimit(child.id() as libc::pid_t, libc::RLIMIT_DATA, &limit, none) };
    assert_eq!(limited, 0, "{}", io::Error::last_os_error());
    fs::write(&go, "\n").unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    with_timeout(child.id(), || stderr.read_line(&mut line)).unwrap();
    assert!(line.starts_with("weigh: warning: no memory is left"), "{line}");
    assert!(child.try_wait().unwrap().is_none(), "the command still runs, so weigh does");
    signal(child.id(), libc::SIGTERM);
    assert_eq!(end_of(child).status.code(), Some(143), "as the burner ends on SIGTERM");
    let shown = output(&mut weigh(here, &["show", "run"]));
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("end not recorded"), "{shown}");
}

/// Lowers the limit from enough memory down to where weigh cannot even be loaded: wherever weigh
/// runs out of it, the command runs.
#[test]
fn command_runs_however_little_memory_weigh_has() {
    const STEP: u64 = 48;
    // Without memory the loader or the C library ends a program before main.
    const NEVER_BEGUN: usize = 8;
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let within = |kib: u64| {
        let mut command = weigh(here, &["run", "-q", "-o", "run", "--"]);
        command.args(["sh", "-c", "echo ran; exit 7"]);
        let limit = libc::rlimit { rlim_cur: kib << 10, rlim_max: kib << 10 };
        let output = limited(command, libc::RLIMIT_AS, limit);
        let _ = fs::remove_dir_all(here.join("run"));
        output
    };
    let (mut less, mut enough) = (1 << 10, 1 << 20);
    let measured = within(enough);
    assert_eq!(measured.status.code(), Some(7), "{measured:?}");
    while enough - less > STEP {
        let middle = less.midpoint(enough);
        let is_enough = within(middle) == measured;
        *(if is_enough { &mut enough } else { &mut less }) = middle;
    }
    let (mut without_memory, mut never_begun) = (0, 0);
    for kib in (0..less).rev().step_by(STEP as usize) {
        let output = within(kib);
        if output.stdout == b"ran\n" && output.status.code() == Some(7) {
            let stderr = String::from_utf8_lossy(&output.stderr);
            without_memory += usize::from(stderr.contains("no memory is left"));
            never_begun = 0;
            continue;
        }
        let end = (output.status.code(), output.status.signal());
        let is_beyond_weigh =
            matches!(end, (Some(127), _) | (_, Some(libc::SIGABRT | libc::SIGSEGV)));
        assert!(is_beyond_weigh, "{kib} KiB: {output:?}");
        never_begun += 1;
        if never_begun == NEVER_BEGUN {
            break;
        }
    }
    assert!(without_memory > 0, "weigh has run out of memory with no limit");
}
