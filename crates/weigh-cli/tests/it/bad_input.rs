//! Invalid input is refused before anything has started, in three lines.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::weighed::{output, weigh};

/// A command that would leave a trace.
const TOUCH: [&str; 3] = ["--", "touch", "marker"];

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let name = |entry: fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
    names.sort_unstable();
    names
}

/// Fails unless weigh refuses in three lines, with this code, and nothing is left behind.
fn is_refused(code: i32, directory: &TempDir, command: &mut Command) -> String {
    let before = names(directory.path());
    let output = output(command);
    let stderr = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<_> = stderr.lines().collect();
    let [what, cause, hint] = lines[..] else { panic!("not three lines: {stderr}") };
    for (line, begin) in [(what, "weigh: "), (cause, "  cause: "), (hint, "  hint:  ")] {
        assert!(line.len() > begin.len() && line.starts_with(begin), "{line:?} in {stderr}");
    }
    assert_eq!(output.status.code(), Some(code), "{stderr}");
    assert_eq!(output.stdout, b"", "{stderr}");
    assert_eq!(names(directory.path()), before, "nothing was started, nothing is left: {stderr}");
    stderr
}

fn refused(arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut command = weigh(directory.path(), &["run"]);
    is_refused(2, &directory, command.args(arguments).args(TOUCH))
}

#[test]
fn unknown_option_is_refused() {
    assert!(refused(&["--frobnicate"]).contains("--frobnicate"));
}

#[test]
fn mistyped_option_is_refused_with_a_suggestion() {
    assert!(refused(&["--intervall", "1s"]).contains("--interval"));
}

#[test]
fn unknown_verb_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    is_refused(2, &directory, &mut weigh(directory.path(), &["weight"]));
}

#[test]
fn interval_of_zero_is_refused() {
    assert!(refused(&["-i", "0s"]).contains("1ms"), "what is allowed");
}

#[test]
fn interval_in_parsecs_is_refused() {
    assert!(refused(&["-i", "1parsec"]).contains("1parsec"));
}

#[test]
fn interval_below_a_millisecond_or_infinite_is_refused() {
    for interval in ["10us", "-1s", "nan", "1e400s", ""] {
        refused(&[&format!("--interval={interval}")]);
    }
}

#[test]
fn bad_budget_is_refused() {
    for budget in ["150%", "-1%", "lots", "nan"] {
        refused(&[&format!("--budget={budget}")]);
    }
}

#[test]
fn malformed_or_missing_gpu_is_refused() {
    assert!(refused(&["--gpus", "0,first"]).contains("\"first\""));
    let machine = tempfile::tempdir().unwrap();
    for card in ["0000:18:00.0", "0000:3b:00.0"] {
        fs::create_dir_all(machine.path().join("proc/driver/nvidia/gpus").join(card)).unwrap();
    }
    fs::create_dir(machine.path().join("sys")).unwrap();
    let message = refused(&["--host-root", machine.path().to_str().unwrap(), "--gpus", "1,2"]);
    assert!(message.contains("no GPU \"2\": this machine has nvidia0, nvidia1"), "{message}");
    let bare = tempfile::tempdir().unwrap();
    for directory in ["proc", "sys"] {
        fs::create_dir(bare.path().join(directory)).unwrap();
    }
    let message = refused(&["--host-root", bare.path().to_str().unwrap(), "--gpus", "GPU-8f6a"]);
    assert!(message.contains("this machine has none that a driver has"), "{message}");
}

#[test]
fn bad_number_of_cores_is_refused() {
    for cores in ["0", "-1", "many", "nan", "inf"] {
        refused(&[&format!("--expected-cores={cores}")]);
    }
}

#[test]
fn unknown_collector_is_refused_with_the_known_ones() {
    for option in ["--skip", "--collect"] {
        let message = refused(&[option, "process,flux"]);
        assert!(message.contains("flux") && message.contains("task-clock"), "{message}");
    }
}

#[test]
fn unknown_units_and_formats_are_refused_with_the_known_ones() {
    assert!(refused(&["--units", "stone"]).contains("decimal"));
    assert!(refused(&["--format", "yaml"]).contains("json"));
}

#[test]
fn label_without_a_value_is_refused() {
    for label in ["commit", "=abc"] {
        refused(&["--label", label]);
    }
}

#[test]
fn options_that_exclude_each_other_are_refused() {
    refused(&["--no-record", "-o", "run"]);
    refused(&["-q", "-v"]);
}

#[test]
fn directory_that_cannot_be_created_is_refused() {
    refused(&["-o", "/proc/weigh-test"]);
}

#[test]
fn file_in_the_place_of_the_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("file"), "mine").unwrap();
    for way in ["file", "file/run"] {
        let mut command = weigh(directory.path(), &["run", "-o", way]);
        is_refused(2, &directory, command.args(TOUCH));
    }
    assert_eq!(fs::read(directory.path().join("file")).unwrap(), b"mine");
}

#[test]
fn directory_that_is_not_empty_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let occupied = directory.path().join("occupied");
    fs::create_dir(&occupied).unwrap();
    fs::write(occupied.join("file"), "mine").unwrap();
    is_refused(2, &directory, weigh(directory.path(), &["run", "-o", "occupied"]).args(TOUCH));
    assert_eq!(names(&occupied), ["file"]);
}

#[test]
fn summary_in_a_missing_directory_is_refused() {
    refused(&["--summary", "missing/summary.json"]);
}

#[test]
fn refused_run_leaves_no_summary_behind() {
    refused(&["--summary", "summary.json", "--skip", "flux"]);
    refused(&["--summary", "summary.json", "-i", "0s"]);
    refused(&["--summary", "summary.json", "-o", "/proc/weigh-test"]);
}

#[test]
fn missing_program_gives_127() {
    let directory = tempfile::tempdir().unwrap();
    for program in ["./missing", "weigh-test-no-such-program", "", "missing/program"] {
        let arguments = ["run", "-o", "a/b", "--summary", "summary.json", "--", program];
        is_refused(127, &directory, &mut weigh(directory.path(), &arguments));
    }
}

#[test]
fn program_that_is_not_executable_gives_126() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("script"), "#!/bin/sh\ntouch marker\n").unwrap();
    for program in ["./script", "/"] {
        let arguments = ["run", "-o", "a/b", "--summary", "summary.json", "--", program];
        is_refused(126, &directory, &mut weigh(directory.path(), &arguments));
    }
}

#[test]
fn script_whose_interpreter_is_missing_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script");
    fs::write(&script, "#!/nonexistent/interpreter\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    // The kernel finds the script but not its interpreter: shells return 127 or 126.
    is_refused(127, &directory, &mut weigh(directory.path(), &["run", "--", "./script"]));
    let arguments = ["run", "-o", "a/b", "--", "./script"];
    is_refused(127, &directory, &mut weigh(directory.path(), &arguments));
}

#[test]
fn missing_command_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["run"][..], &["run", "--"], &["run", "-i", "1s", "--"]] {
        is_refused(2, &directory, &mut weigh(directory.path(), arguments));
    }
}

#[test]
fn bad_settings_file_is_refused() {
    for (settings, named) in [
        ("intervall = '1s'\n", "intervall"),
        ("interval = '1parsec'\n", "1parsec"),
        ("interval = 1\n", "interval"),
        ("units = 'stone'\n", "stone"),
        ("skip = ['flux']\n", "flux"),
        ("this is not TOML", "weigh.toml"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("weigh.toml"), settings).unwrap();
        let message = is_refused(2, &directory, weigh(directory.path(), &["run"]).args(TOUCH));
        assert!(message.contains(named), "{settings:?}: {message}");
    }
}

#[test]
fn settings_file_that_is_long_or_another_users_link_is_refused_and_not_printed() {
    let long = format!("# {}\n", "x".repeat(2 << 20));
    for (settings, named) in [
        (long.as_str(), "longer than"),
        ("root:*:20228:0:99999:7:::\n", "line 1"),
        ("expected-cores = 'hunter2'\n", "`expected-cores`"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("weigh.toml"), settings).unwrap();
        let message = is_refused(2, &directory, weigh(directory.path(), &["run"]).args(TOUCH));
        assert!(message.contains(named), "{message}");
        assert!(!message.contains("20228") && !message.contains("hunter2"), "{message}");
    }
    let directory = tempfile::tempdir().unwrap();
    let link = directory.path().join("weigh.toml");
    std::os::unix::fs::symlink("/etc/passwd", &link).unwrap();
    if std::os::unix::fs::lchown(&link, Some(65534), None).is_err() {
        eprintln!("not root: a link of another user cannot be made");
        return;
    }
    let message = is_refused(2, &directory, weigh(directory.path(), &["run"]).args(TOUCH));
    assert!(message.contains("another user's link"), "{message}");
}

#[test]
fn bad_variable_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = weigh(directory.path(), &["run"]);
    let message = is_refused(2, &directory, command.args(TOUCH).env("WEIGH_INTERVAL", "1parsec"));
    assert!(message.contains("1parsec"), "{message}");
}

#[test]
fn showing_a_missing_run_fails() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [&["show", "missing"][..], &["show"], &["runs"]] {
        is_refused(1, &directory, &mut weigh(directory.path(), arguments));
    }
}

#[test]
fn directory_that_is_not_a_recording_is_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in [("empty", ""), ("nonsense", "{\"weigh\":1}"), ("binary", "\0\u{1}")] {
        let path = directory.path().join(name);
        fs::create_dir(&path).unwrap();
        fs::write(path.join("run.json"), content).unwrap();
        is_refused(1, &directory, &mut weigh(directory.path(), &["show", name]));
    }
}

#[test]
fn hints_fit_the_mistake() {
    let directory = tempfile::tempdir().unwrap();
    for (code, arguments, expected) in [
        (2, &["rum", "--", "true"][..], "did you mean run?"),
        (126, &["run", "/tmp"], "name a program in it: weigh run -- /tmp/PROGRAM"),
        (127, &["run", ""], "there is no command"),
        (2, &["attach", "python3"], "hint:  by name: weigh watch python3"),
        (2, &["attach", "0"], "not the number of a process"),
        (2, &["watch", "x", "--under", "sh"], "pgrep sh"),
    ] {
        let refused = is_refused(code, &directory, &mut weigh(directory.path(), arguments));
        assert!(refused.contains(expected), "{arguments:?}: {refused}");
    }
}
