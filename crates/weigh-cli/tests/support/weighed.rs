//! How the tests run `weigh` and read its output.

use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const MIB: f64 = 1024.0 * 1024.0;

/// A directory without a settings file.
const NO_CONFIG: &str = "/nonexistent";

/// Timeout of a wait: far more than anything here takes.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// The unprivileged user that every machine has.
const NOBODY: &str = "65534";

/// Variables that would change what weigh does or how it looks.
const VARIABLES: [&str; 30] = [
    "WEIGH_TEST_NODE",
    "WEIGH_TEST_NVML",
    "WEIGH_TEST_PYTHON",
    "WEIGH_TEST_ROCM_SMI",
    "WEIGH_TEST_SKIPPED",
    "WEIGH_TEST_STRICT",
    "WEIGH_RUN",
    "WEIGH_INBOX",
    "WEIGH_PHASE",
    "WEIGH_INTERVAL",
    "WEIGH_OUTPUT",
    "WEIGH_NAME",
    "WEIGH_COLLECT",
    "WEIGH_SKIP",
    "WEIGH_BUDGET",
    "WEIGH_EXPECTED_CORES",
    "WEIGH_GPUS",
    "WEIGH_PERF",
    "WEIGH_NVML_LIBRARY",
    "WEIGH_STAND_IN",
    "CUDA_VISIBLE_DEVICES",
    "ROCR_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "WEIGH_UNITS",
    "WEIGH_CGROUP",
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "FORCE_COLOR",
    "TMUX",
    "TMUX_PANE",
];

/// The program under test.
pub(crate) fn weigh_path() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_weigh"))
}

/// The loads: built by `cargo test` as an example, beside this binary.
pub(crate) fn burner() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let burner = tests.parent().unwrap().parent().unwrap().join("examples/burner");
    assert!(
        burner.exists(),
        "{} is missing: cargo build -p weigh-cli --examples",
        burner.display()
    );
    burner
}

/// A command in a directory, with nothing in its environment that changes weigh.
pub(crate) fn plain(program: impl AsRef<OsStr>, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).stdin(Stdio::null()).env("XDG_CONFIG_HOME", NO_CONFIG);
    VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.env("WEIGH", weigh_path()).env("BURNER", burner());
    // A shell ignores the first two in background jobs, and nohup ignores the third. Ignored
    // signals stay ignored across exec: tests of signals would fail.
    let default = || {
        for number in [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP] {
            // SAFETY: signal takes numbers, and is allowed between fork and exec.
            unsafe { libc::signal(number, libc::SIG_DFL) };
        }
        Ok(())
    };
    // SAFETY: the closure only makes system calls.
    unsafe { command.pre_exec(default) };
    command
}

/// `weigh` with these arguments, in a directory.
pub(crate) fn weigh<A: AsRef<OsStr>>(directory: &Path, arguments: &[A]) -> Command {
    let mut command = plain(weigh_path(), directory);
    command.args(arguments);
    command
}

/// The directories in the default place of recordings.
pub(crate) fn recordings(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory.join("weigh-runs")).unwrap();
    entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect()
}

/// Runs a command to its end, and returns its output.
pub(crate) fn output(command: &mut Command) -> Output {
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    end_of(child)
}

/// Waits for the end of a child; its output is returned as far as it was piped.
pub(crate) fn end_of(child: Child) -> Output {
    with_timeout(child.id(), || child.wait_with_output().unwrap())
}

/// Waits for a process with a timeout, as every wait of a test does: after it the process and its
/// descendants are killed, and the test fails with the outcome.
pub(crate) fn with_timeout<T: Debug>(pid: u32, wait: impl FnOnce() -> T) -> T {
    kill_after(2 * LONG, pid, wait)
}

fn kill_after<T: Debug>(timeout: Duration, pid: u32, wait: impl FnOnce() -> T) -> T {
    let (done, is_done) = mpsc::channel::<()>();
    let watchdog = thread::spawn(move || {
        let late = is_done.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            // A process that is left would keep the pipes open that are read here.
            let processes = with_descendants(pid);
            processes.into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
        }
        late
    });
    let outcome = wait();
    drop(done);
    assert!(!watchdog.join().unwrap(), "process {pid} did not end, and was killed: {outcome:?}");
    outcome
}

/// A process and its current descendants.
fn with_descendants(pid: u32) -> Vec<u32> {
    let listed = fs::read_dir("/proc").unwrap().flatten();
    let pids = listed.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids
        .filter_map(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
            let parent = status.lines().find_map(|line| line.strip_prefix("PPid:\t"))?;
            Some((pid, parent.parse().ok()?))
        })
        .collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(child, _)| child));
        next += 1;
    }
    found
}

#[test]
fn hanging_child_is_killed_with_its_descendants_and_its_output_is_reported() {
    let mut shell = plain("sh", Path::new("/"));
    shell.args(["-c", "echo said; \"$BURNER\" sleep 100s & wait"]).stdout(Stdio::piped());
    let child = shell.spawn().unwrap();
    let timeout = Duration::from_millis(500);
    let wait = || kill_after(timeout, child.id(), || child.wait_with_output().unwrap());
    let failed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(wait)).unwrap_err();
    let message = failed.downcast_ref::<String>().unwrap();
    assert!(message.contains("did not end") && message.contains(r#"said\n"#), "{message}");
}

/// A measured command and its summary.
pub(crate) struct Weighed {
    pub directory: TempDir,
    pub code: Option<i32>,
    pub stdout: Vec<u8>,
    pub stderr: String,
    pub summary: Value,
}

/// Measures a burner's load, without a recording.
pub(crate) fn weighed(options: &[&str], load: &[&str]) -> Weighed {
    let mut message = vec![burner().into_os_string()];
    message.extend(load.iter().map(OsString::from));
    weighed_command(&[&["--no-record"], options].concat(), &message)
}

/// Measures a line of shell; `$BURNER` and `$WEIGH` are set.
pub(crate) fn weighed_shell(options: &[&str], script: &str) -> Weighed {
    weighed_command(options, &["sh".into(), "-c".into(), script.into()])
}

/// Measures any command, in a directory of its own.
pub(crate) fn weighed_command(options: &[&str], message: &[OsString]) -> Weighed {
    let directory = tempfile::tempdir().unwrap();
    let mut command = weigh(directory.path(), &["run", "--summary", "summary-for-test.json"]);
    let output = output(command.args(options).arg("--").args(message));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let written = fs::read(directory.path().join("summary-for-test.json"));
    let summary = written.unwrap_or_else(|why| panic!("no summary: {why}\n{stderr}"));
    Weighed {
        summary: serde_json::from_slice(&summary).unwrap_or_else(|why| panic!("{why}\n{stderr}")),
        directory,
        code: output.status.code(),
        stdout: output.stdout,
        stderr,
    }
}

impl Weighed {
    /// The number that the load has printed.
    pub(crate) fn printed_number(&self) -> f64 {
        printed_number(&self.stdout)
    }

    /// A figure of the whole run.
    pub(crate) fn figure(&self, name: &str) -> Figure {
        Figure::of(&self.summary["figures"][name], name)
    }

    /// Fails unless the command and the summary have this exit code.
    pub(crate) fn ended_with(self, code: i32) -> Weighed {
        assert_eq!(self.code, Some(code), "{}", self.stderr);
        assert_eq!(self.summary["run"]["exit_code"], code);
        self
    }
}

/// A figure as the JSON has it.
#[derive(Debug)]
pub(crate) struct Figure {
    pub name: String,
    pub value: Option<f64>,
    pub method: Option<String>,
    pub lower: Option<f64>,
    pub upper: Option<f64>,
    pub reason: Option<String>,
}

impl Figure {
    pub(crate) fn of(json: &Value, name: &str) -> Figure {
        assert!(json.is_object(), "there is no figure {name}");
        let number = |key: &str| json[key].as_f64();
        let text = |key: &str| json[key].as_str().map(str::to_owned);
        Figure {
            name: name.to_owned(),
            value: number("value"),
            method: text("method"),
            lower: number("lower"),
            upper: number("upper"),
            reason: text("reason"),
        }
    }

    /// Its value, which must be known.
    pub(crate) fn known(&self) -> f64 {
        self.value.unwrap_or_else(|| panic!("{} has no value: {self:?}", self.name))
    }

    /// Fails unless the value is the truth within a relative tolerance.
    pub(crate) fn is_within(&self, share: f64, truth: f64) -> &Figure {
        let off = self.known() / truth - 1.0;
        assert!(off.abs() <= share, "{self:?} is {:.1} % off {truth}", off * 100.0);
        self
    }

    pub(crate) fn is(&self, method: &str) -> &Figure {
        assert_eq!(self.method.as_deref(), Some(method), "{self:?}");
        self
    }
}

/// The number that a load has printed: what it has used.
pub(crate) fn printed_number(stdout: &[u8]) -> f64 {
    let text = String::from_utf8_lossy(stdout);
    text.trim().parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// The CPU time of a process with one thread, as the kernel counts it now.
pub(crate) fn cpu_seconds(pid: u32) -> f64 {
    let counted = fs::read_to_string(format!("/proc/{pid}/schedstat")).unwrap();
    counted.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Sends a signal; a process that does not exist is ignored.
pub(crate) fn signal(pid: u32, number: i32) {
    // SAFETY: kill takes two numbers.
    unsafe { libc::kill(pid as libc::pid_t, number) };
}

/// Whether there is a process with this pid.
pub(crate) fn is_alive(pid: u32) -> bool {
    // SAFETY: signal 0 only checks.
    unsafe { libc::kill(pid as libc::pid_t, 0) == 0 }
}

/// Waits until something is true, polling every few milliseconds.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Prints that a test cannot run here because something installable is missing; directly to the
/// terminal, because the harness captures output. Where all was installed, this is a failure.
#[track_caller]
pub(crate) fn skipped(why: &str) {
    assert!(std::env::var_os("WEIGH_TEST_STRICT").is_none(), "skipped: {why}");
    impossible(why);
}

/// Prints that a test cannot run on this machine: its CPU or kernel lacks something.
#[track_caller]
pub(crate) fn impossible(why: &str) {
    let place = std::panic::Location::caller();
    let line = format!("skipped: {}:{}: {why}\n", place.file(), place.line());
    let _ = io::stderr().write_all(line.as_bytes());
    if let Some(list) = std::env::var_os("WEIGH_TEST_SKIPPED") {
        let mut list = fs::OpenOptions::new().append(true).create(true).open(list).unwrap();
        list.write_all(line.as_bytes()).unwrap();
    }
}

pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Whether this user may mount in a namespace of its own; prints a message if not.
pub(crate) fn can_mount() -> bool {
    let probe = Command::new("unshare").args(["-m", "-p", "-f", "true"]).output();
    let can = is_root() && probe.is_ok_and(|probe| probe.status.success());
    if !can {
        skipped("needs root, and unshare -m -p to be allowed");
    }
    can
}

pub(crate) fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
    let found = found.is_ok_and(|found| found.status.success());
    if !found {
        skipped(&format!("{program} is not installed"));
    }
    found
}

/// Both programs in a directory that every user can read.
pub(crate) struct PublicPrograms(TempDir);

impl PublicPrograms {
    pub(crate) fn new() -> PublicPrograms {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        for (name, program) in [("weigh", weigh_path()), ("burner", &burner())] {
            fs::copy(program, directory.path().join(name)).unwrap();
        }
        PublicPrograms(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// One of the programs, run by an unprivileged user in a directory.
    pub(crate) fn command(&self, program: &str, directory: &Path) -> Command {
        let program = self.path().join(program);
        if !is_root() {
            return plain(program, directory);
        }
        let mut command = plain("setpriv", directory);
        let (user, group) = (format!("--reuid={NOBODY}"), format!("--regid={NOBODY}"));
        command.args([user, group, "--clear-groups".to_owned()]).arg(program);
        command
    }
}
