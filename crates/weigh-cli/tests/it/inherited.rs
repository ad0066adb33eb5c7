//! What the command inherits: the same as without weigh.

use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::weighed::{MIB, burner, end_of, plain, weigh};

/// What must not differ. Each process has its own pid and parent, and its own size.
const SAME: [&str; 9] = [
    "signals_blocked",
    "signals_ignored",
    "fds",
    "nofile_soft",
    "nofile_hard",
    "nice",
    "pgid",
    "sid",
    "child_subreaper",
];

/// The output of `burner state`, without weigh and with it, both launched alike.
fn states(launch: impl Fn() -> io::Result<()> + Copy + Send + Sync + 'static) -> (Value, Value) {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let mut bare = plain(burner(), here);
    bare.arg("state");
    let arguments = ["run", "-q", "--summary", "summary.json", "--"];
    let mut weighed = weigh(here, &arguments);
    weighed.arg(burner()).arg("state");
    let state_of = |mut command: Command| {
        // The same files for both, so that their descriptors lead to the same places.
        let open = |name: &str| File::create(here.join(name)).unwrap();
        command.stdout(open("stdout")).stderr(open("stderr"));
        // SAFETY: the closure only makes system calls.
        unsafe { command.pre_exec(close_on_exec).pre_exec(launch) };
        let status = end_of(command.spawn().unwrap()).status;
        let message = fs::read_to_string(here.join("stderr")).unwrap();
        assert!(status.success(), "{status}: {message}");
        serde_json::from_slice::<Value>(&fs::read(here.join("stdout")).unwrap()).unwrap()
    };
    let (bare, mut weighed) = (state_of(bare), state_of(weighed));
    weighed["summary"] = summary(here);
    (bare, weighed)
}

/// The tests may have inherited descriptors, which the commands must not get.
fn close_on_exec() -> io::Result<()> {
    for fd in 3..1024 {
        // SAFETY: this changes a flag of a descriptor, or fails if it is closed.
        unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    Ok(())
}

fn summary(directory: &Path) -> Value {
    serde_json::from_slice(&fs::read(directory.join("summary.json")).unwrap()).unwrap()
}

/// Fails unless the command inherits the same with and without weigh.
fn state_without_differences(
    launch: impl Fn() -> io::Result<()> + Copy + Send + Sync + 'static,
) -> Value {
    let (bare, weighed) = states(launch);
    for key in SAME {
        assert!(!bare[key].is_null(), "{key} is not in {bare}");
        assert_eq!(weighed[key], bare[key], "{key}");
    }
    bare
}

fn descriptors(state: &Value) -> Vec<i64> {
    state["fds"].as_array().unwrap().iter().map(|fd| fd["fd"].as_i64().unwrap()).collect()
}

fn checked(result: i32) -> io::Result<()> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

#[test]
fn command_inherits_the_same_as_without_weigh() {
    let bare = state_without_differences(|| Ok(()));
    assert_eq!(descriptors(&bare), [0, 1, 2]);
    assert_eq!(bare["child_subreaper"], false);
}

#[test]
fn ignored_sigpipe_stays_ignored() {
    let bare = state_without_differences(|| {
        // SAFETY: SIGPIPE exists, and ignoring runs no code.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        Ok(())
    });
    assert!(ignored(&bare, libc::SIGPIPE), "the load itself: {bare}");
}

#[test]
fn default_sigpipe_stays_default() {
    let bare = state_without_differences(|| {
        // SAFETY: SIGPIPE exists, and the default runs no code.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        Ok(())
    });
    assert!(!ignored(&bare, libc::SIGPIPE), "the load itself: {bare}");
}

fn ignored(state: &Value, signal: i32) -> bool {
    let mask = u64::from_str_radix(state["signals_ignored"].as_str().unwrap(), 16).unwrap();
    mask & (1 << (signal - 1)) != 0
}

#[test]
fn blocked_and_ignored_signals_stay_blocked_and_ignored() {
    let bare = state_without_differences(|| {
        // SAFETY: all zeroes is an empty set, the numbers are signals, ignoring runs no code.
        unsafe {
            let mut set: libc::sigset_t = mem::zeroed();
            for signal in [libc::SIGUSR2, libc::SIGWINCH, libc::SIGTSTP] {
                libc::sigaddset(&raw mut set, signal);
            }
            libc::signal(libc::SIGHUP, libc::SIG_IGN);
            libc::signal(libc::SIGINT, libc::SIG_IGN);
            checked(libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut()))
        }
    });
    assert!(ignored(&bare, libc::SIGHUP), "the load itself: {bare}");
    assert_ne!(bare["signals_blocked"], "0000000000000000", "the load itself");
}

#[test]
fn only_inherited_descriptors_are_passed_on() {
    let bare = state_without_differences(|| {
        // SAFETY: stdin is open, and 7 is unused in a child that is about to exec.
        checked(unsafe { libc::dup2(0, 7) })
    });
    assert_eq!(descriptors(&bare), [0, 1, 2, 7]);
}

#[test]
fn closed_stdin_stays_closed() {
    let bare = state_without_differences(|| {
        // SAFETY: closes a descriptor of this process.
        checked(unsafe { libc::close(0) })
    });
    assert_eq!(descriptors(&bare), [1, 2]);
}

#[test]
fn limits_and_nice_value_are_unchanged() {
    let bare = state_without_differences(|| {
        let limit = libc::rlimit { rlim_cur: 100, rlim_max: 200 };
        // SAFETY: the limit is valid for the call; raising one's nice value is allowed.
        unsafe {
            checked(libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit))?;
            libc::nice(5);
        }
        Ok(())
    });
    assert_eq!(
        (bare["nofile_soft"].as_i64(), bare["nofile_hard"].as_i64()),
        (Some(100), Some(200))
    );
    assert!(bare["nice"].as_i64() >= Some(5), "the load itself: {bare}");
}

#[test]
fn only_the_recording_is_added_to_the_environment() {
    let (bare, weighed) = states(|| Ok(()));
    assert_eq!(bare["weigh_variables"], serde_json::json!(["WEIGH"]), "the test's own");
    assert_eq!(
        weighed["weigh_variables"],
        serde_json::json!(["WEIGH", "WEIGH_INBOX", "WEIGH_RUN"])
    );
}

#[test]
fn memory_of_weigh_is_not_charged_to_the_command() {
    let (_, state) = states(|| Ok(()));
    let bytes = |value: &Value| value.as_f64().unwrap();
    let (largest, peak) = (bytes(&state["maxrss_bytes"]), bytes(&state["vmhwm_bytes"]));
    let own = bytes(&state["summary"]["monitor"]["memory_peak_bytes"]);
    assert!(largest < own, "{largest} is not below the {own} of weigh");
    // Between fork and exec the child runs weigh's own code. Optimised, that is little compared to
    // the smallest program; unoptimised code has many more pages.
    let code = if cfg!(debug_assertions) { 5.0 * MIB } else { MIB };
    assert!((largest - peak).abs() <= code, "{largest} beside {peak}");
}
