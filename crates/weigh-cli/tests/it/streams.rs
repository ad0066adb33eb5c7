//! The streams and the exit code of the command are unchanged.

use std::fs;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc;
use std::thread;

use crate::weighed::{
    LONG, end_of, is_alive, output, plain, signal, wait_until, weigh, weighed, weighed_command,
    weighed_shell,
};

#[test]
fn exit_code_is_that_of_the_command() {
    for (load, code) in [(["exit", "0"], 0), (["exit", "7"], 7), (["exit", "255"], 255)] {
        let run = weighed(&[], &load).ended_with(code);
        assert!(run.summary["run"]["signal"].is_null());
    }
}

#[test]
fn command_killed_by_a_signal_gives_128_plus_its_number() {
    for number in [15, 9, 10] {
        let run = weighed(&[], &["signal", &number.to_string()]).ended_with(128 + number);
        assert_eq!(run.summary["run"]["signal"], number);
    }
}

#[test]
fn stdin_reaches_the_command_and_stdout_has_only_its_output() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["run", "--no-record", "--", "sh", "-c", "cat; echo complaint >&2"];
    let mut child = weigh(directory.path(), &arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let sent: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = sent.clone();
    let writer = thread::spawn(move || stdin.write_all(&bytes));
    let output = end_of(child);
    writer.join().unwrap().unwrap();
    assert!(output.stdout == sent, "{} bytes of {} were returned", output.stdout.len(), sent.len());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(stderr.starts_with("complaint\nweigh: "), "{stderr}");
}

/// Runs until the test sends `go`.
const GOES_ON: &str = "while [ ! -e go ]; do \"$BURNER\" sleep 10ms; done; exit 7";

fn keeps_running(directory: &Path, before: &str) -> Child {
    let script = format!("{before}; {GOES_ON}");
    weigh(directory, &["run", "-q", "--no-record", "--", "sh", "-c", &script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Fails unless the command still runs, and ends it.
fn let_it_end(mut child: Child, directory: &Path) {
    assert!(child.try_wait().unwrap().is_none(), "it still runs");
    fs::write(directory.join("go"), "").unwrap();
    assert_eq!(end_of(child).status.code(), Some(7));
}

#[test]
fn reader_gets_eof_when_the_command_closes_its_output() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = keeps_running(directory.path(), "echo last; exec >&-");
    let mut stdout = child.stdout.take().unwrap();
    let (ended, end) = mpsc::channel();
    thread::spawn(move || {
        let mut read = String::new();
        let _ = stdout.read_to_string(&mut read);
        ended.send(read)
    });
    let read = end.recv_timeout(LONG / 4);
    let_it_end(child, directory.path());
    assert_eq!(read.as_deref(), Ok("last\n"), "weigh holds on to the command's stdout");
}

#[test]
fn writer_gets_an_error_when_the_command_closes_its_input() {
    let directory = tempfile::tempdir().unwrap();
    let mut child = keeps_running(directory.path(), "exec <&-; : > closed");
    let mut stdin = child.stdin.take().unwrap();
    wait_until("the command closed its input", || directory.path().join("closed").exists());
    let written = stdin.write_all(b"anybody there?");
    let_it_end(child, directory.path());
    let why = written.expect_err("weigh holds on to the command's stdin").kind();
    assert_eq!(why, std::io::ErrorKind::BrokenPipe);
}

#[test]
fn inherited_descriptors_are_left_to_the_command_whatever_their_number() {
    let directory = tempfile::tempdir().unwrap();
    let file = fs::File::create(directory.path().join("inherited")).unwrap();
    let script = format!(": > started; {GOES_ON}");
    let mut command = weigh(directory.path(), &["run", "-q", "--no-record", "--", "sh", "-c"]);
    command.arg(script);
    let inherited = file.as_raw_fd();
    // SAFETY: dup2 may be called between fork and exec; it takes numbers.
    unsafe {
        command.pre_exec(move || {
            let is_open = |number| libc::dup2(inherited, number) == number;
            let opened = is_open(20) && is_open(400);
            if opened { Ok(()) } else { Err(std::io::Error::last_os_error()) }
        })
    };
    let child = command.spawn().unwrap();
    wait_until("the command has started", || directory.path().join("started").exists());
    let held = |pid: u32| {
        let links = fs::read_dir(format!("/proc/{pid}/fd")).unwrap();
        let links = links.filter_map(|link| fs::read_link(link.unwrap().path()).ok());
        links.filter(|link| link.ends_with("inherited")).count()
    };
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", child.id())).unwrap();
    let shell = children.split_whitespace().next().and_then(|pid| pid.parse().ok());
    let (by_weigh, by_the_command) = (held(child.id()), shell.map(held));
    let_it_end(child, directory.path());
    assert_eq!((by_weigh, by_the_command), (0, Some(2)));
}

/// A shell that leaves a sleeper behind, prints its pid, and checks that it sleeps.
const LEAVES: &str = "\"$BURNER\" sleep 60s >/dev/null 2>&1 & echo $!
    until grep -q burner /proc/$!/comm; do \"$BURNER\" sleep 5ms; done";

#[test]
fn descendants_that_outlive_the_command_are_named_and_not_waited_for() {
    let run = weighed_shell(&["-o", "run"], LEAVES).ended_with(0);
    let pid = String::from_utf8_lossy(&run.stdout).trim().parse::<u32>().unwrap();
    let alive = is_alive(pid);
    signal(pid, libc::SIGKILL);
    assert!(alive, "weigh neither waits for it nor ends it");
    let left = run.summary["processes"]["left"].as_array().unwrap();
    assert_eq!(left.len(), 1, "{left:?}");
    assert_eq!((left[0]["pid"].as_u64(), &left[0]["name"]), (Some(pid.into()), &"burner".into()));
    assert!(run.stderr.contains(&pid.to_string()), "the text names it, too: {}", run.stderr);
    let again = crate::recorded::shown(&run.directory.path().join("run"));
    assert_eq!(again["processes"], run.summary["processes"]);
}

#[test]
fn child_of_the_shell_before_exec_is_not_part_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    // exec keeps the children of the shell: weigh starts with one.
    let script = "\"$BURNER\" cpu 300ms & exec \"$WEIGH\" run -q --no-record \
        --summary summary.json -- \"$BURNER\" sleep 500ms";
    let mut command = plain("sh", directory.path());
    let output = output(command.args(["-c", script]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = fs::read(directory.path().join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
    let cpu = summary["figures"]["cpu_time_seconds"]["value"].as_f64().unwrap();
    assert!(cpu < 0.1, "{cpu} s of CPU for a sleeper");
    assert_eq!(summary["processes"]["total"], 1);
}

#[test]
fn command_gets_its_arguments_unchanged() {
    let arguments = ["sh", "-c", "for word; do printf '[%s]' \"$word\"; done", "sh"];
    let odd = ["", "-i", "--", "a b", "*", "$HOME", "--help", "'"];
    let command: Vec<_> = arguments.iter().chain(&odd).map(|argument| (*argument).into()).collect();
    let run = weighed_command(&["--no-record", "-q"], &command).ended_with(0);
    assert_eq!(run.stdout, b"[][-i][--][a b][*][$HOME][--help][']");
}

/// A line of shell with weigh, and the exit code, stdout and stderr.
fn in_a_shell(script: &str) -> (Option<i32>, String, String) {
    let directory = tempfile::tempdir().unwrap();
    let done = output(plain("sh", directory.path()).args(["-c", script]));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code(), text(done.stdout), text(done.stderr))
}

#[test]
fn summary_follows_the_output_of_the_command_on_stdout() {
    let script = "\"$WEIGH\" run -q --no-record --summary - -- sh -c 'echo mine; exit 3'";
    let (code, stdout, stderr) = in_a_shell(script);
    assert_eq!((code, stderr.as_str()), (Some(3), ""));
    let json = stdout.strip_prefix("mine\n").unwrap_or_else(|| panic!("{stdout}"));
    let summary: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(summary["run"]["exit_code"], 3);
    // A file, too, is not truncated, and not written over.
    let file = "echo before > out; \"$WEIGH\" run -q --no-record --summary - --format text \
                -- echo mine >> out; cat out";
    let (_, stdout, _) = in_a_shell(file);
    assert!(stdout.starts_with("before\nmine\nweigh: echo"), "{stdout}");
}

#[test]
fn summary_goes_to_a_descriptor_in_the_requested_format() {
    for (format, begin) in [("github", "### true: exit 0\n"), ("md", "# true\n"), ("json", "{\n")] {
        let script = format!(
            "\"$WEIGH\" run --summary-fd 7 --format {format} -- true 7>seven; \
             test -s seven && cat seven"
        );
        let (code, stdout, stderr) = in_a_shell(&script);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(stdout.starts_with(begin), "{stdout}");
        assert!(stderr.starts_with("weigh: true"), "stderr has the text all the same: {stderr}");
    }
}

#[test]
fn descriptor_of_the_summary_is_not_kept_from_the_command() {
    let script = "\"$WEIGH\" run -q --no-record --summary-fd 7 -- sh -c 'echo mine >&7' 7>seven; \
                  head -n 2 seven";
    let (code, stdout, stderr) = in_a_shell(script);
    assert_eq!((code, stdout.as_str(), stderr.as_str()), (Some(0), "mine\n{\n", ""));
}

#[test]
fn format_without_a_destination_is_printed_on_stderr() {
    let (_, stdout, stderr) = in_a_shell("\"$WEIGH\" run --format github -- true");
    assert_eq!(stdout, "");
    assert!(stderr.starts_with("### true: exit 0\n"), "{stderr}");
}

#[test]
fn descriptor_that_cannot_be_written_is_refused_before_the_command_starts() {
    for (options, redirection, why) in [
        ("--summary-fd 9", "", "descriptor 9 is not open"),
        ("--summary-fd 7", "7</dev/null", "descriptor 7 is open for reading only"),
        ("--summary -", ">&-", "stdout is not open"),
    ] {
        let script = format!("\"$WEIGH\" run {options} -- touch ran {redirection}; ls >&2");
        let (_, _, stderr) = in_a_shell(&script);
        assert!(stderr.contains(why), "{options}: {stderr}");
        assert!(!stderr.contains("\nran"), "{options}: {stderr}");
    }
}
