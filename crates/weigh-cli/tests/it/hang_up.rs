//! A terminal hangup ends its processes, as without weigh.
//!
//! The kernel sends SIGHUP to the session leader alone; `ssh -t host weigh run …`,
//! `tmux new 'weigh run …'` and `docker run -t` make weigh the leader.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command};

use crate::weighed::{LONG, end_of, plain, signal, wait_until, weigh};

/// A command that records each SIGHUP, and exits on request.
const COMMAND: &str = "trap 'echo HUP >> got' HUP; trap 'exit 9' USR1; echo $$ > ready
    while :; do \"$BURNER\" sleep 10ms; done";

/// Both ends of a pseudoterminal, close-on-exec.
fn terminal() -> (File, File) {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(libc::O_NOCTTY);
    let ours = options.open("/dev/ptmx").unwrap();
    let unlocked: libc::c_int = 0;
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the descriptor is open; the second call returns a new descriptor, or -1.
    let theirs = unsafe {
        libc::ioctl(ours.as_raw_fd(), libc::TIOCSPTLCK, &raw const unlocked);
        libc::ioctl(ours.as_raw_fd(), libc::TIOCGPTPEER, flags)
    };
    assert!(theirs >= 0, "{}", io::Error::last_os_error());
    // SAFETY: it has just been opened, and has no other owner.
    (ours, unsafe { File::from_raw_fd(theirs) })
}

/// Starts a program as the leader of a session at a new terminal; dropping the file hangs up.
fn at_a_terminal(mut command: Command) -> (Child, File) {
    let (ours, theirs) = terminal();
    let number = theirs.as_raw_fd();
    let lead = move || {
        // SAFETY: these system calls take numbers.
        let result = unsafe {
            libc::setsid();
            libc::ioctl(number, libc::TIOCSCTTY, 0)
        };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    let stream = || theirs.try_clone().unwrap();
    command.stdin(stream()).stdout(stream()).stderr(stream());
    // SAFETY: the closure only makes system calls.
    let child = unsafe { command.pre_exec(lead) }.spawn().unwrap();
    (child, ours)
}

/// The pid that a command has written into a file.
fn pid_in(path: &Path) -> u32 {
    let is_whole = || fs::read_to_string(path).is_ok_and(|text| text.ends_with('\n'));
    wait_until("the command is ready", is_whole);
    fs::read_to_string(path).unwrap().trim().parse().unwrap()
}

/// Whether a process has exited, reaped or not.
fn has_ended(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |stat| stat.contains(") Z "))
}

/// Hangs up on a session leader, and fails unless the command gets SIGHUP once.
fn hang_up_arrives_once(here: &Path, command: Command) -> Option<i32> {
    let (leader, terminal) = at_a_terminal(command);
    let pid = pid_in(&here.join("ready"));
    drop(terminal);
    wait_until("the hang-up has arrived", || here.join("got").exists());
    signal(pid, libc::SIGUSR1);
    let code = end_of(leader).status.code();
    wait_until("the command has ended", || has_ended(pid));
    assert_eq!(fs::read_to_string(here.join("got")).unwrap(), "HUP\n", "once");
    code
}

#[test]
fn hang_up_reaches_the_command_when_weigh_leads_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let arguments = ["run", "--no-record", "--", "sh", "-c", COMMAND];
    assert_eq!(hang_up_arrives_once(here, weigh(here, &arguments)), Some(9), "the command's own");
}

#[test]
fn hang_up_reaches_the_command_of_a_phase_that_leads_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let arguments = ["phase", "work", "--", "sh", "-c", COMMAND];
    assert_eq!(hang_up_arrives_once(here, weigh(here, &arguments)), Some(9), "the command's own");
}

#[test]
fn hang_up_reaches_the_command_once_when_weigh_does_not_lead_the_session() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let mut shell = plain("sh", here);
    let line = "\"$WEIGH\" run -q --no-record -- sh -c \"$COMMAND\"; exit 8";
    shell.args(["-c", line]).env("COMMAND", COMMAND);
    // The kernel sends SIGHUP to the foreground group when its leader, the shell, has died.
    assert_eq!(hang_up_arrives_once(here, shell), None, "the shell minds the hang-up");
}

#[test]
fn command_without_a_handler_is_ended_by_hangup_with_its_process_group() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let seconds = LONG.as_secs() * 10;
    let script = format!(
        "\"$BURNER\" sleep {seconds}s & echo $! > other; echo $$ > ready
        exec \"$BURNER\" sleep {seconds}s"
    );
    let arguments = ["run", "-q", "--no-record", "--wait-all", "--", "sh", "-c", &script];
    let (leader, terminal) = at_a_terminal(weigh(here, &arguments));
    pid_in(&here.join("ready"));
    let other = pid_in(&here.join("other"));
    drop(terminal);
    assert_eq!(end_of(leader).status.code(), Some(128 + libc::SIGHUP));
    wait_until("the other has ended", || has_ended(other));
}
