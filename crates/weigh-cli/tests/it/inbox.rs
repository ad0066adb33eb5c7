//! Phases and marks that a shell sends without a process.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::recorded::events;
use crate::weighed::{end_of, output, plain, wait_until, weigh, weighed_shell};

#[test]
fn shell_sends_phases_and_marks_with_one_printf() {
    let script = r#"printf 'phase load\n' 1<>"$WEIGH_INBOX"
        "$BURNER" cpu 20ms
        printf 'mark %s\n' "it's {loaded}" 1<>"$WEIGH_INBOX"
        printf 'phase solve\n' 1<>"$WEIGH_INBOX"
        printf 'phase-end\n' 1<>"$WEIGH_INBOX""#;
    let run = weighed_shell(&["-o", "run"], script).ended_with(0);
    let phases: Vec<&str> = run.summary["phases"]
        .as_array()
        .unwrap()
        .iter()
        .map(|phase| phase["name"].as_str().unwrap())
        .collect();
    assert_eq!(phases, ["load", "solve"]);
    let has_ended = |phase: &Value| phase["duration_seconds"].is_number();
    assert!(run.summary["phases"].as_array().unwrap().iter().all(has_ended));
    let marks: Vec<Value> = events(&run.directory.path().join("run"))
        .into_iter()
        .filter(|event| event["event"] == "mark")
        .collect();
    assert_eq!(marks.len(), 1);
    assert_eq!(marks[0]["text"], "it's {loaded}");
}

#[test]
fn line_of_a_shell_never_blocks() {
    let directory = tempfile::tempdir().unwrap();
    let line = r#"printf 'mark x\n' 1<>"${WEIGH_INBOX:-/dev/null}""#;
    let alone = output(plain("sh", directory.path()).args(["-c", line]));
    assert_eq!((alone.status.code(), alone.stderr), (Some(0), vec![]), "outside of a run");
    let killed = format!("kill -9 $PPID; {line}; echo $? > after");
    let mut command = weigh(directory.path(), &["run", "-q", "--", "sh", "-c", &killed]);
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    end_of(child);
    let after = || fs::read_to_string(directory.path().join("after")).unwrap_or_default();
    wait_until("the script goes on when weigh was killed", || after() == "0\n");
}
