//! The library called from a program: this test program is the one that is measured.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use weigh::model::settings::Destination;
use weigh::summary::Method;
use weigh::{FigureId, Session, Settings, Summary};

use crate::weighed::{burner, printed_number};

fn settings(directory: &Path) -> Settings {
    Settings {
        destination: Destination::Directory(directory.join("run")),
        interval: Duration::from_millis(100),
        ..Settings::default()
    }
}

fn value(summary: &Summary, id: FigureId) -> f64 {
    summary.figures.get(id).and_then(|figure| figure.value).unwrap()
}

fn own_threads() -> usize {
    fs::read_dir("/proc/self/task").unwrap().count()
}

fn own_files() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// CPU time of this process and the children it has reaped, in seconds.
fn cpu_of_this_process() -> f64 {
    let seconds = |whom| {
        // SAFETY: all zeros is a valid rusage, and the place is ours.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            libc::getrusage(whom, &mut usage);
            usage
        };
        let time = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
        time(usage.ru_utime) + time(usage.ru_stime)
    };
    seconds(libc::RUSAGE_SELF) + seconds(libc::RUSAGE_CHILDREN)
}

fn events(directory: &Path) -> String {
    fs::read_to_string(directory.join("run/events.jsonl")).unwrap()
}

#[test]
fn session_counts_this_process_and_its_children() {
    let directory = tempfile::tempdir().unwrap();
    let before_session = cpu_of_this_process();
    let session = Session::current(&settings(directory.path())).unwrap();
    let before = cpu_of_this_process();
    let end = before + 0.5;
    while cpu_of_this_process() < end {}
    let child = Command::new(burner()).args(["cpu", "500ms"]).status().unwrap();
    assert!(child.success());
    let truth = cpu_of_this_process() - before;
    let outcome = session.stop().unwrap();
    let with_session = cpu_of_this_process() - before_session;
    let cpu = outcome.summary.figures.get(FigureId::CpuTime).unwrap();
    let counted = cpu.value.unwrap();
    // The session's own start and end are counted, too.
    let possible = truth..with_session * 1.03;
    assert!(possible.contains(&counted), "{counted} s is not in {possible:?} s");
    let monitor = outcome.summary.monitor;
    assert!(monitor.cpu_seconds > 0.0 && monitor.cpu_seconds < counted / 4.0, "{monitor:?}");
    assert_eq!(monitor.memory_peak_bytes, None, "the memory is the program's");
}

#[test]
fn command_of_a_session_is_counted_exactly() {
    let directory = tempfile::tempdir().unwrap();
    let printed = directory.path().join("printed");
    let script = format!("{} children 50 20ms --print-cpu > {printed:?}", burner().display());
    let command: Vec<OsString> = ["sh", "-c", &format!("{script}; exit 3")].map(Into::into).into();
    let session = Session::spawn(&command, &settings(directory.path())).unwrap();
    assert!(session.pid().is_some());
    assert!(session.wait(None));
    let summary = session.stop().unwrap().summary;
    let truth = printed_number(&fs::read(printed).unwrap());
    let cpu = summary.figures.get(FigureId::CpuTime).unwrap();
    let counted = cpu.value.unwrap();
    assert!((counted - truth).abs() < truth * 0.02, "{counted} s of {truth} s");
    assert_eq!(cpu.method, Some(Method::Exact));
    assert_eq!((summary.run.exit_code, summary.run.complete), (Some(3), true));
    assert_eq!(
        summary,
        weigh::summary::of(&weigh::Recording::open(&directory.path().join("run")).unwrap())
            .unwrap()
    );
}

fn is_subreaper() -> bool {
    let mut is_subreaper = 0;
    // SAFETY: the option writes one int, and the place is ours.
    unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut is_subreaper, 0, 0, 0) };
    is_subreaper != 0
}

/// The children of this process, running ones and zombies: those of other tests, too.
fn children() -> BTreeSet<u32> {
    let own = std::process::id().to_string();
    let entries = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    let pids = entries.filter_map(|name| name.to_str().and_then(|name| name.parse().ok()));
    let is_child = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')').next().and_then(|rest| rest.split(' ').nth(2)) == Some(&own)
    };
    pids.filter(is_child).collect()
}

fn with_subreaper(directory: &Path) -> Settings {
    Settings { subreaper: true, wait_all: true, ..settings(directory) }
}

fn shell(script: &str) -> Vec<OsString> {
    ["sh", "-c", script].map(Into::into).into()
}

#[test]
fn orphans_of_a_command_are_counted_exactly_and_reaped_where_the_session_is_a_subreaper() {
    let directory = tempfile::tempdir().unwrap();
    // The second orphan has exited before the next sample, and has no environment.
    let settings =
        Settings { interval: Duration::from_secs(60), ..with_subreaper(directory.path()) };
    let (burner, before) = (burner().display().to_string(), children());
    let script = format!("{burner} daemon 300ms; (env -i {burner} cpu 200ms &); sleep 1");
    let session = Session::spawn(&shell(&script), &settings).unwrap();
    assert!(is_subreaper());
    assert!(session.wait(None));
    let summary = session.stop().unwrap().summary;
    assert!(!is_subreaper(), "restored");
    assert_eq!(children(), before, "no zombie is left to the program");
    let cpu = summary.figures.get(FigureId::CpuTime).unwrap();
    let counted = cpu.value.unwrap();
    assert!((0.5..0.55).contains(&counted), "{cpu:?}");
    assert_eq!(cpu.method, Some(Method::Exact));
    let faults = &summary.monitor.faults;
    assert!(!faults.iter().any(|fault| fault.starts_with("child-subreaper")), "{faults:?}");
    assert_eq!(summary.run.exit_code, Some(0));
}

#[test]
fn children_of_the_program_are_left_to_it_by_a_session_that_is_a_subreaper() {
    let directory = tempfile::tempdir().unwrap();
    let command = shell(&format!("{} daemon 100ms", burner().display()));
    let before = children();
    let session = Session::spawn(&command, &with_subreaper(directory.path())).unwrap();
    let mut own = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
    assert!(session.wait(None));
    session.stop().unwrap();
    assert_eq!(own.wait().unwrap().code(), Some(7));
    assert_eq!(children(), before);
}

#[test]
fn orphan_that_outlives_its_session_is_reaped_when_it_exits() {
    let directory = tempfile::tempdir().unwrap();
    let (printed, fifo) = (directory.path().join("pid"), directory.path().join("fifo"));
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let command = shell(&format!("(cat {fifo:?} & echo $! > {printed:?})"));
    let settings = Settings { wait_all: false, ..with_subreaper(directory.path()) };
    let session = Session::spawn(&command, &settings).unwrap();
    assert!(session.wait(None));
    let summary = session.stop().unwrap().summary;
    assert!(!is_subreaper());
    assert_eq!(summary.run.exit_code, Some(0));
    let orphan = fs::read_to_string(printed).unwrap().trim().parse().unwrap();
    assert!(children().contains(&orphan));
    // It reads the end of the file.
    drop(fs::File::options().write(true).open(&fifo).unwrap());
    while children().contains(&orphan) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn session_changes_nothing_of_the_program() {
    let state = || {
        let status = fs::read_to_string("/proc/self/status").unwrap();
        // `SigQ` counts the queued signals of all processes of the user.
        let is_own = |line: &&str| line.starts_with("Sig") && !line.starts_with("SigQ");
        let signals = status.lines().filter(is_own).map(str::to_owned);
        let limits = fs::read_to_string("/proc/self/limits").unwrap();
        let environment: Vec<_> = std::env::vars_os().collect();
        let streams = ["0", "1", "2"].map(|fd| fs::read_link(format!("/proc/self/fd/{fd}")).ok());
        let here = std::env::current_dir().unwrap();
        (signals.collect::<Vec<_>>(), limits, environment, streams, here)
    };
    let directory = tempfile::tempdir().unwrap();
    let (before, threads, files) = (state(), own_threads(), own_files());
    let session = Session::current(&settings(directory.path())).unwrap();
    let nowhere = Settings { destination: Destination::Nowhere, ..Settings::default() };
    let child = Session::spawn(&["true".into()], &nowhere).unwrap();
    child.wait(None);
    assert_eq!(state(), before, "while it measures");
    child.stop().unwrap();
    session.stop().unwrap();
    assert_eq!(state(), before);
    assert_eq!((own_threads(), own_files()), (threads, files));
}

#[test]
fn two_hundred_sessions_leave_no_thread_and_no_file_behind() {
    let nowhere = Settings { destination: Destination::Nowhere, ..Settings::default() };
    let (threads, files) = (own_threads(), own_files());
    for _ in 0..100 {
        let (one, other) =
            (Session::current(&nowhere).unwrap(), Session::current(&nowhere).unwrap());
        drop(one);
        other.stop().unwrap();
    }
    assert_eq!((own_threads(), own_files()), (threads, files));
}

#[test]
fn phases_marks_and_snapshots_are_of_the_moment_of_the_call() {
    let directory = tempfile::tempdir().unwrap();
    let session = Session::current(&settings(directory.path())).unwrap();
    let outer = session.start_phase("outer", None, None);
    let data = serde_json::json!({"epoch": 3, "password": "hidden"});
    let inner = session.start_phase("inner", Some(&outer), data.as_object().cloned());
    // A call does not wait for its sample; a snapshot does.
    session.snapshot().unwrap();
    let end = cpu_of_this_process() + 0.3;
    while cpu_of_this_process() < end {}
    session.mark("burned");
    session.end_phase(&inner);
    let so_far = session.snapshot().unwrap();
    assert!(value(&so_far, FigureId::CpuTime) >= 0.3 && !so_far.run.complete);
    session.end_phase(&outer);
    let summary = session.stop().unwrap().summary;
    let phases: Vec<&str> = summary.phases.iter().map(|phase| phase.name.as_str()).collect();
    assert_eq!(phases, ["outer", "inner"]);
    let burned = summary.phases[1].figures.get(FigureId::CpuTime).and_then(|cpu| cpu.value);
    assert!(burned.is_some_and(|burned| (0.3..0.4).contains(&burned)), "{burned:?}");
    let events = events(directory.path());
    assert!(events.contains(r#""data":{"epoch":3,"password":"***"}"#), "{events}");
}

#[test]
fn fork_of_the_program_owns_nothing_and_its_marks_reach_the_recording() {
    let directory = tempfile::tempdir().unwrap();
    let session = Session::current(&settings(directory.path())).unwrap();
    // SAFETY: the child uses only what a fork may: it sends one message, and exits at once.
    let child = unsafe { libc::fork() };
    if child == 0 {
        session.mark("from the fork");
        let was_refused = session.snapshot().is_none() && session.stop().is_err();
        // SAFETY: _exit takes a number, and runs nothing of the test harness.
        unsafe { libc::_exit(if was_refused { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: the place is ours.
    unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(status, 0);
    session.stop().unwrap();
    let marks = events(directory.path()).matches("from the fork").count();
    assert_eq!(marks, 1);
}

#[test]
fn session_ends_with_the_process_it_is_attached_to() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = Command::new(burner()).args(["cpu", "300ms"]).spawn().unwrap();
    let session = Session::attach(&[child.id()], &settings(directory.path())).unwrap();
    assert!(!session.wait(Some(Duration::ZERO)));
    child.wait().unwrap();
    assert!(session.wait(None));
    assert!(session.snapshot().unwrap().run.complete);
    assert_eq!(session.stop().unwrap().recording, Some(directory.path().join("run")));
}

#[test]
fn command_that_cannot_be_started_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let (threads, files) = (own_threads(), own_files());
    let not_a_program = directory.path().join("text");
    fs::write(&not_a_program, "no program").unwrap();
    for program in ["no-such-program".into(), not_a_program.clone().into_os_string()] {
        assert!(Session::spawn(&[program], &settings(directory.path())).is_err());
    }
    fs::write(&not_a_program, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&not_a_program, fs::Permissions::from_mode(0o755)).unwrap();
    let refused = Session::spawn(&[not_a_program.into()], &settings(directory.path()));
    assert!(refused.unwrap_err().to_string().contains("text"), "exec fails");
    assert!(!directory.path().join("run").exists());
    assert_eq!((own_threads(), own_files()), (threads, files));
}
