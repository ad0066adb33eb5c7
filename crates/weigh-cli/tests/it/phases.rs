//! `weigh phase` and `weigh mark`, from inside a run and without one.

use serde_json::Value;

use crate::recording::{events, shown};
use crate::weighed::{Weighed, output, weigh, weighed_shell};

/// Weighs a script that tells of its phases, and checks that a reader hears the same.
fn told(script: &str) -> Weighed {
    let run = weighed_shell(&["-o", "run"], script);
    assert_eq!(shown(&run.directory.path().join("run"))["phases"], run.summary["phases"]);
    run
}

fn phases<'a>(run: &'a Weighed, name: &str) -> Vec<&'a Value> {
    let all = run.summary["phases"].as_array().unwrap();
    all.iter().filter(|phase| phase["name"] == name).collect()
}

fn phase<'a>(run: &'a Weighed, name: &str) -> &'a Value {
    let [phase] = phases(run, name)[..] else { panic!("{name}: {}", run.summary["phases"]) };
    phase
}

fn number(phase: &Value, key: &str) -> f64 {
    phase[key].as_f64().unwrap_or_else(|| panic!("no {key} in {phase}"))
}

/// When the run ended, by the clock that phases and marks have.
fn run_end(run: &Weighed) -> f64 {
    let events = events(&run.directory.path().join("run"));
    number(events.iter().find(|event| event["event"] == "run_end").unwrap(), "seconds")
}

#[test]
fn a_phase_is_what_its_command_took() {
    let run = told("$BURNER sleep 100ms; $WEIGH phase work -- $BURNER cpu 300ms").ended_with(0);
    let work = phase(&run, "work");
    assert!(number(work, "start_seconds") >= 0.1, "{work}");
    assert!(number(work, "duration_seconds") >= 0.3, "{work}");
    assert!((number(work, "cpu_time_seconds") / 0.3 - 1.0).abs() <= 0.05, "{work}");
    assert!(number(work, "largest_process_bytes") > 0.0, "{work}");
    assert!(work["parent"].is_null(), "{work}");
}

#[test]
fn a_phase_inside_a_phase_names_the_one_around_it() {
    let inner = "sh -c '$WEIGH phase inner -- $BURNER cpu 100ms'";
    let run = told(&format!("$WEIGH phase outer -- {inner}")).ended_with(0);
    let (outer, inner) = (phase(&run, "outer"), phase(&run, "inner"));
    assert_eq!(inner["parent"], outer["id"]);
    assert!(number(outer, "start_seconds") <= number(inner, "start_seconds"));
    assert!(number(outer, "duration_seconds") >= number(inner, "duration_seconds"));
    assert!(number(outer, "cpu_time_seconds") >= number(inner, "cpu_time_seconds"));
}

#[test]
fn phases_of_one_name_at_once_are_kept_apart() {
    let one = "$WEIGH phase same -- $BURNER";
    let run = told(&format!("{one} cpu 100ms & {one} cpu 300ms & wait")).ended_with(0);
    let same = phases(&run, "same");
    assert_eq!(same.len(), 2, "{same:?}");
    assert_ne!(same[0]["id"], same[1]["id"]);
    let mut times: Vec<f64> = same.iter().map(|one| number(one, "cpu_time_seconds")).collect();
    times.sort_unstable_by(f64::total_cmp);
    assert!((times[0] - 0.1).abs() < 0.03 && (times[1] - 0.3).abs() < 0.03, "{times:?}");
}

#[test]
fn a_step_lasts_until_the_next_one_or_its_end() {
    let sleep = "$BURNER sleep 100ms";
    let script =
        format!("$WEIGH phase a; {sleep}; $WEIGH phase b; {sleep}; $WEIGH phase --end; {sleep}");
    let run = told(&script).ended_with(0);
    let (a, b) = (phase(&run, "a"), phase(&run, "b"));
    let end = |one: &Value| number(one, "start_seconds") + number(one, "duration_seconds");
    assert!(number(a, "duration_seconds") >= 0.1 && number(b, "duration_seconds") >= 0.1);
    assert!((end(a) - number(b, "start_seconds")).abs() < 1e-6, "{a} ends where {b} begins");
    assert!(end(b) <= run_end(&run) - 0.1, "{b} ended before the run, at {}", run_end(&run));
}

#[test]
fn a_step_that_nobody_ends_ends_with_the_run() {
    let run = told("$WEIGH phase last; $BURNER sleep 50ms").ended_with(0);
    assert!(number(phase(&run, "last"), "duration_seconds") >= 0.05);
}

#[test]
fn a_mark_is_in_the_events_at_its_time() {
    let run = told("$BURNER sleep 50ms; $WEIGH mark 'data \"loaded\"'; $BURNER sleep 50ms");
    let events = events(&run.directory.path().join("run"));
    let marks: Vec<_> = events.iter().filter(|event| event["event"] == "mark").collect();
    assert_eq!(marks.len(), 1, "{events:?}");
    assert_eq!(marks[0]["text"], "data \"loaded\"");
    let at = number(marks[0], "seconds");
    assert!((0.05..=run_end(&run) - 0.05).contains(&at), "{at} s of {} s", run_end(&run));
}

#[test]
fn words_told_just_before_the_end_are_heard() {
    let run = told("for i in 1 2 3 4 5 6 7 8; do $WEIGH mark $i & done; wait; $WEIGH mark last");
    let events = events(&run.directory.path().join("run"));
    assert_eq!(events.iter().filter(|event| event["event"] == "mark").count(), 9);
}

#[test]
fn a_phase_ends_as_its_command_does() {
    for (words, code) in [(&["exit", "7"][..], 7), (&["signal", "15"], 143), (&["exit", "0"], 0)] {
        let load = words.join(" ");
        told(&format!("$WEIGH phase p -- $BURNER {load}; exit $?")).ended_with(code);
    }
    told("$WEIGH phase p -- ./missing 2>/dev/null; exit $?").ended_with(127);
}

#[test]
fn without_a_run_a_phase_runs_its_command_with_one_warning() {
    let directory = tempfile::tempdir().unwrap();
    for words in [
        &["phase", "p", "--", "sh", "-c", "echo here; exit 7"][..],
        &["phase", "p"],
        &["phase", "--end"],
        &["mark", "text"],
    ] {
        let output = output(&mut weigh(directory.path(), words));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let runs = words.contains(&"--");
        assert_eq!(output.status.code(), Some(if runs { 7 } else { 0 }), "{words:?}");
        assert_eq!(output.stdout, if runs { &b"here\n"[..] } else { b"" });
        let warns = stderr.starts_with("weigh: warning: ") && stderr.lines().count() == 1;
        assert!(warns, "{words:?} says {stderr:?}");
    }
}

#[test]
fn a_word_for_a_run_that_is_over_is_only_a_warning() {
    let run = told("true").ended_with(0);
    let recording = run.directory.path().join("run");
    let mut command = weigh(run.directory.path(), &["phase", "p", "--", "sh", "-c", "exit 7"]);
    let output = output(command.env("WEIGH_RUN", recording));
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("weigh: warning: "));
}
