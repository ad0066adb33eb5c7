//! `weigh phase` and `weigh mark`, from inside a run and without one.

use serde_json::Value;

use crate::recorded::{events, shown};
use crate::weighed::{Figure, MIB, Weighed, output, skipped, weigh, weighed_shell};

/// Measures a script with phases, and checks that a reader gets the same summary.
fn phased_run(script: &str) -> Weighed {
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

fn figure(phase: &Value, name: &str) -> Figure {
    let figure = Figure::of(&phase["figures"][name], name);
    if let Some(value) = figure.value {
        assert!(figure.lower.is_some_and(|lower| lower <= value), "{figure:?}");
        assert!(figure.upper.is_none_or(|upper| upper >= value), "{figure:?}");
    } else {
        assert!(figure.reason.is_some(), "{figure:?}");
    }
    figure
}

/// Whether this machine has a task clock.
fn has_task_clock(run: &Weighed) -> bool {
    let faults = run.summary["monitor"]["faults"].as_array().unwrap();
    !faults.iter().any(|fault| fault.as_str().unwrap().starts_with("task-clock"))
}

/// The output of `weigh show --phases`, as text or as JSON.
fn shown_phases(run: &Weighed, format: &str) -> String {
    let arguments = ["show", "run", "--phases", "--format", format];
    let output = output(&mut weigh(run.directory.path(), &arguments));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The statistics of all phases of one name.
fn statistics(run: &Weighed, name: &str) -> Value {
    let shown: Value = serde_json::from_str(&shown_phases(run, "json")).unwrap();
    assert_eq!(shown["phases"], run.summary["phases"]);
    let all = shown["statistics"].as_array().unwrap();
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {all:?}")).clone()
}

/// How much later than sent a control message may be recorded: one that arrives while a tick
/// begins is put after that tick.
const DELAY: f64 = 0.05;

/// When the run ended, by the clock that phases and marks have.
fn run_end(run: &Weighed) -> f64 {
    let events = events(&run.directory.path().join("run"));
    number(events.iter().find(|event| event["event"] == "run_end").unwrap(), "seconds")
}

#[test]
fn phase_lasts_as_long_as_its_command() {
    let run = phased_run("$BURNER sleep 100ms; $WEIGH phase work -- $BURNER cpu 1s").ended_with(0);
    let work = phase(&run, "work");
    assert!(number(work, "start_seconds") >= 0.1, "{work}");
    assert!(number(work, "duration_seconds") >= 1.0 - DELAY, "{work}");
    assert!((number(work, "cpu_time_seconds") - 1.0).abs() <= 0.06, "{work}");
    assert!(work["parent"].is_null(), "{work}");
}

#[test]
fn weigh_mark_and_phase_are_not_processes_of_the_run() {
    let script = "$WEIGH mark a; $WEIGH phase one; $BURNER sleep 50ms; $WEIGH phase --end
        $WEIGH phase two -- $WEIGH phase three -- $BURNER touch 60MiB 300ms";
    let run = weighed_shell(&["-i", "5ms", "-o", "run"], script).ended_with(0);
    let events = events(&run.directory.path().join("run"));
    let named = |event: &&Value| event["name"] == "weigh";
    let starts = events.iter().filter(|event| event["event"] != "phase_start");
    assert_eq!(starts.filter(named).collect::<Vec<_>>(), [&Value::Null; 0]);
    let tools = run.summary["tools"].as_array().unwrap();
    assert!(tools.iter().all(|tool| tool["name"] != "weigh"), "{tools:?}");
    for name in ["two", "three"] {
        let memory = figure(phase(&run, name), "memory_peak_bytes").known();
        assert!((60.0 * MIB..65.0 * MIB).contains(&memory), "{name}: {memory}");
        let largest = number(phase(&run, name), "largest_process_bytes");
        assert!((60.0 * MIB..65.0 * MIB).contains(&largest), "{name}: {largest}");
    }
}

/// Usage of the helpers inside the run: CPU time and page faults.
fn of_helpers(run: &Weighed) -> (f64, f64) {
    let events = events(&run.directory.path().join("run"));
    let end = events.iter().find(|event| event["event"] == "run_end").unwrap();
    let both = |key: &str| {
        let [usage, startup] = ["usage", "startup"].map(|when| &end["helpers"][when]);
        number(usage, key) + number(startup, key)
    };
    (both("user_seconds") + both("system_seconds"), both("minor_faults"))
}

#[test]
fn weigh_mark_and_phase_are_in_no_total_of_the_run() {
    let without = "i=0; while [ $i -lt 20 ]; do i=$((i + 1)); done";
    let marks = without.replace("i=$((i + 1))", "i=$((i + 1)); $WEIGH mark x");
    let phase = format!("$WEIGH phase all -- sh -c '{marks}'");
    let without = weighed_shell(&["-o", "run"], without).ended_with(0);
    let shell = weighed_shell(&["-o", "run"], "sh -c true; true").ended_with(0);
    for (script, nothing) in [(&marks, &without), (&phase, &shell)] {
        let run = phased_run(script).ended_with(0);
        let (cpu, faults) = of_helpers(&run);
        let figure = run.figure("cpu_time_seconds");
        assert!(figure.known() < cpu / 2.0, "{figure:?} beside {cpu} s of helpers: {script}");
        assert!(figure.upper.unwrap() >= figure.known() && figure.lower.unwrap() >= 0.0);
        let minor = run.figure("page_faults_minor");
        assert!(minor.known() < faults / 2.0, "{minor:?} beside {faults} of helpers: {script}");
        for name in ["io_written_bytes", "io_write_calls", "io_read_bytes", "io_read_calls"] {
            let [these, those] = [&run, nothing].map(|run| run.figure(name).known());
            assert_eq!(these, those, "{name}: {script}");
        }
    }
    let run = phased_run(&phase).ended_with(0);
    let (cpu, _) = of_helpers(&run);
    let all = self::phase(&run, "all");
    assert!(figure(all, "cpu_time_seconds").known() < cpu / 2.0, "{all} beside {cpu} s of helpers");
    assert_eq!(figure(all, "io_written_bytes").known(), 0.0, "{all}");
}

#[test]
fn weigh_mark_and_phase_do_not_raise_the_memory_of_a_small_script() {
    let script = "$WEIGH mark a; $WEIGH phase one; $WEIGH phase two -- $BURNER sleep 100ms";
    let run = weighed_shell(&["-o", "run"], script).ended_with(0);
    // A shell and the burner, partly resident; weigh alone is larger.
    let memory = run.figure("memory_peak_bytes");
    assert!(memory.known() < 5.0 * MIB, "{memory:?}");
    let two = phase(&run, "two");
    assert!(two["largest_process_bytes"].is_null(), "wait4 reports the size of weigh: {two}");
}

#[test]
fn nested_phase_names_its_parent() {
    let inner = "sh -c '$WEIGH phase inner -- $BURNER cpu 100ms'";
    let run = phased_run(&format!("$WEIGH phase outer -- {inner}")).ended_with(0);
    let (outer, inner) = (phase(&run, "outer"), phase(&run, "inner"));
    assert_eq!(inner["parent"], outer["id"]);
    assert!(number(outer, "start_seconds") <= number(inner, "start_seconds"));
    assert!(number(outer, "duration_seconds") >= number(inner, "duration_seconds"));
    assert!(number(outer, "cpu_time_seconds") >= number(inner, "cpu_time_seconds"));
}

#[test]
fn concurrent_phases_of_one_name_are_separate() {
    let one = "$WEIGH phase same -- $BURNER";
    let run = phased_run(&format!("{one} cpu 100ms & {one} cpu 300ms & wait")).ended_with(0);
    let same = phases(&run, "same");
    assert_eq!(same.len(), 2, "{same:?}");
    assert_ne!(same[0]["id"], same[1]["id"]);
    let mut times: Vec<f64> = same.iter().map(|one| number(one, "cpu_time_seconds")).collect();
    times.sort_unstable_by(f64::total_cmp);
    assert!((times[0] - 0.1).abs() < 0.06 && (times[1] - 0.3).abs() < 0.06, "{times:?}");
}

#[test]
fn step_lasts_until_the_next_one_or_its_end() {
    let sleep = "$BURNER sleep 100ms";
    let script =
        format!("$WEIGH phase a; {sleep}; $WEIGH phase b; {sleep}; $WEIGH phase --end; {sleep}");
    let run = phased_run(&script).ended_with(0);
    let (a, b) = (phase(&run, "a"), phase(&run, "b"));
    let end = |one: &Value| number(one, "start_seconds") + number(one, "duration_seconds");
    for step in [a, b] {
        assert!(number(step, "duration_seconds") >= 0.1 - DELAY, "{step}");
    }
    assert!((end(a) - number(b, "start_seconds")).abs() < 1e-6, "{a} ends where {b} begins");
    assert!(
        end(b) <= run_end(&run) - 0.1 + DELAY,
        "{b} ended before the run, at {}",
        run_end(&run)
    );
}

#[test]
fn step_without_an_end_ends_with_the_run() {
    let run = phased_run("$WEIGH phase last; $BURNER sleep 100ms").ended_with(0);
    assert!(number(phase(&run, "last"), "duration_seconds") >= 0.1 - DELAY);
}

#[test]
fn mark_is_in_the_events_at_its_time() {
    let run = phased_run("$BURNER sleep 50ms; $WEIGH mark 'data \"loaded\"'; $BURNER sleep 50ms");
    let events = events(&run.directory.path().join("run"));
    let marks: Vec<_> = events.iter().filter(|event| event["event"] == "mark").collect();
    assert_eq!(marks.len(), 1, "{events:?}");
    assert_eq!(marks[0]["text"], "data \"loaded\"");
    let at = number(marks[0], "seconds");
    assert!((0.05..=run_end(&run) - 0.05).contains(&at), "{at} s of {} s", run_end(&run));
}

#[test]
fn control_messages_just_before_the_end_are_recorded() {
    let run =
        phased_run("for i in 1 2 3 4 5 6 7 8; do $WEIGH mark $i & done; wait; $WEIGH mark last");
    let events = events(&run.directory.path().join("run"));
    assert_eq!(events.iter().filter(|event| event["event"] == "mark").count(), 9);
}

#[test]
fn phase_has_the_exit_code_of_its_command() {
    for (arguments, code) in
        [(&["exit", "7"][..], 7), (&["signal", "15"], 143), (&["exit", "0"], 0)]
    {
        let load = arguments.join(" ");
        phased_run(&format!("$WEIGH phase p -- $BURNER {load}; exit $?")).ended_with(code);
    }
    phased_run("$WEIGH phase p -- ./missing 2>/dev/null; exit $?").ended_with(127);
}

#[test]
fn phase_outside_of_a_run_runs_its_command_with_one_warning() {
    let directory = tempfile::tempdir().unwrap();
    for arguments in [
        &["phase", "p", "--", "sh", "-c", "echo here; exit 7"][..],
        &["phase", "p"],
        &["phase", "--end"],
        &["mark", "text"],
    ] {
        let output = output(&mut weigh(directory.path(), arguments));
        let stderr = String::from_utf8_lossy(&output.stderr);
        let runs = arguments.contains(&"--");
        assert_eq!(output.status.code(), Some(if runs { 7 } else { 0 }), "{arguments:?}");
        assert_eq!(output.stdout, if runs { &b"here\n"[..] } else { b"" });
        let warns = stderr.starts_with("weigh: warning: ") && stderr.lines().count() == 1;
        assert!(warns, "{arguments:?} says {stderr:?}");
    }
}

#[test]
fn control_message_to_a_finished_run_is_only_a_warning() {
    let run = phased_run("true").ended_with(0);
    let recording = run.directory.path().join("run");
    let mut command = weigh(run.directory.path(), &["phase", "p", "--", "sh", "-c", "exit 7"]);
    let output = output(command.env("WEIGH_RUN", recording));
    assert_eq!(output.status.code(), Some(7));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("weigh: warning: "));
}

#[test]
fn cpu_time_of_a_phase_with_a_command_is_exact() {
    let run = phased_run("$WEIGH phase burn -- $BURNER cpu 2s").ended_with(0);
    let cpu = figure(phase(&run, "burn"), "cpu_time_seconds");
    cpu.is("exact").is_within(0.03, 2.0);
    let cores = figure(phase(&run, "burn"), "cpu_cores_mean").known();
    let length = number(phase(&run, "burn"), "duration_seconds");
    assert!((cores * length - cpu.known()).abs() < 1e-6, "{cores} cores for {length} s");
}

#[test]
fn steps_have_the_cpu_time_that_was_used_in_them() {
    let script = "$WEIGH phase a; $BURNER cpu 300ms; $WEIGH phase b; $BURNER cpu 600ms; \
                  $WEIGH phase --end; $BURNER cpu 200ms";
    let run = phased_run(script).ended_with(0);
    // Programs in between, usage until the monitor samples, and clock ticks.
    let beside = if has_task_clock(&run) { 0.08 } else { 0.12 };
    for (name, truth) in [("a", 0.3), ("b", 0.6)] {
        let cpu = figure(phase(&run, name), "cpu_time_seconds");
        assert!((cpu.known() - truth).abs() <= beside, "{name} used {truth} s: {cpu:?}");
        if has_task_clock(&run) {
            assert!(cpu.lower.unwrap() <= truth + beside && cpu.upper.unwrap() >= truth, "{cpu:?}");
        }
    }
}

#[test]
fn memory_of_one_step_is_not_in_the_others() {
    let touch = "$BURNER touch 200MiB 200ms";
    let script = format!(
        "$WEIGH phase before; $BURNER sleep 100ms; $WEIGH phase with; {touch}; \
         $WEIGH phase after; $BURNER sleep 100ms; $WEIGH phase --end"
    );
    let run = weighed_shell(&["-o", "run", "-i", "20ms"], &script).ended_with(0);
    let peak = |name: &str| figure(phase(&run, name), "memory_peak_bytes").known();
    assert!(peak("with") >= 200.0 * MIB, "{}", peak("with"));
    for name in ["before", "after"] {
        assert!(peak(name) < 50.0 * MIB, "{name} had {}", peak(name));
    }
}

#[test]
fn memory_of_one_phase_is_not_in_a_concurrent_one() {
    // No tick falls into their run time, and the sizes are known all the same.
    let script = "$WEIGH phase large -- $BURNER touch 200MiB 300ms & \
                  $WEIGH phase small -- $BURNER touch 20MiB 300ms & wait";
    let run = weighed_shell(&["-o", "run", "-i", "60s"], script).ended_with(0);
    for (name, truth) in [("large", 200.0), ("small", 20.0)] {
        let peak = figure(phase(&run, name), "memory_peak_bytes").known() / MIB;
        assert!((truth..truth + 8.0).contains(&peak), "{name} had {truth} MiB: {peak}");
    }
}

#[test]
fn io_of_a_phase_with_a_command_is_counted_to_the_byte() {
    let run = phased_run("$WEIGH phase write -- $BURNER write file 3MiB 2").ended_with(0);
    let written = figure(phase(&run, "write"), "io_written_bytes");
    assert_eq!(written.is("exact").known(), 3.0 * MIB);
}

#[test]
fn nested_phases_of_one_name_are_paired_by_their_ids() {
    let inner = "sh -c '$WEIGH phase same -- $BURNER cpu 1s; $BURNER cpu 200ms'";
    let run = phased_run(&format!("$WEIGH phase same -- {inner}")).ended_with(0);
    let same = phases(&run, "same");
    let [outer, inner] = same[..] else { panic!("{same:?}") };
    assert_eq!((outer["parent"].is_null(), &inner["parent"]), (true, &outer["id"]));
    figure(inner, "cpu_time_seconds").is("exact").is_within(0.06, 1.0);
    let all = figure(outer, "cpu_time_seconds");
    assert!((1.2..1.32).contains(&all.is("estimated").known()), "{all:?}");
    let together = statistics(&run, "same");
    assert_eq!(together["count"], 2);
    let (total, covered) =
        (number(&together, "total_seconds"), number(&together, "covered_seconds"));
    assert!((covered - number(outer, "duration_seconds")).abs() < 1e-9, "{together}");
    assert!(total > covered, "the inner one counts by itself: {together}");
    assert_eq!(
        together["figures"]["cpu_time_seconds"]["total"],
        outer["figures"]["cpu_time_seconds"]["value"]
    );
}

#[test]
fn statistics_are_those_of_the_phases() {
    let one = "$WEIGH phase work -- $BURNER cpu";
    let run = phased_run(&format!("{one} 50ms; {one} 100ms; {one} 150ms")).ended_with(0);
    let work = statistics(&run, "work");
    let values: Vec<f64> =
        phases(&run, "work").iter().map(|one| figure(one, "cpu_time_seconds").known()).collect();
    let mean = values.iter().sum::<f64>() / 3.0;
    let std = (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 3.0).sqrt();
    let cpu = &work["figures"]["cpu_time_seconds"];
    assert_eq!((work["count"].as_u64(), cpu["count"].as_u64()), (Some(3), Some(3)));
    assert!((number(cpu, "mean") - mean).abs() < 1e-9 && (number(cpu, "std") - std).abs() < 1e-9);
    assert_eq!(number(cpu, "min"), values.iter().copied().fold(f64::MAX, f64::min));
    let text = shown_phases(&run, "text");
    assert!(text.contains("work") && text.contains(" 3 ") && text.contains(" ± "), "{text}");
    assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
    assert!(!text.contains('\x1b'), "no colours in a pipe: {text:?}");
}

#[test]
fn steps_of_concurrent_scripts_do_not_end_each_other() {
    let script = "$WEIGH phase one -- sh -c '$WEIGH phase a; $BURNER sleep 200ms' & \
                  $WEIGH phase two -- sh -c '$WEIGH phase b; $BURNER sleep 200ms' & wait";
    let run = phased_run(script).ended_with(0);
    for (outer, step) in [("one", "a"), ("two", "b")] {
        let (outer, step) = (phase(&run, outer), phase(&run, step));
        assert_eq!(step["parent"], outer["id"], "{step}");
        let end = |one: &Value| number(one, "start_seconds") + number(one, "duration_seconds");
        assert!((end(step) - end(outer)).abs() < 1e-6, "{step} does not end with {outer}");
        let reason = figure(step, "cpu_time_seconds").reason.unwrap_or_default();
        assert!(reason.contains("other phases"), "it is of the whole run: {reason}");
    }
}

#[test]
fn phase_with_a_command_inside_a_step_is_nested() {
    let run = phased_run("$WEIGH phase step; $WEIGH phase part -- $BURNER cpu 20ms").ended_with(0);
    assert_eq!(phase(&run, "part")["parent"], phase(&run, "step")["id"]);
}

#[test]
fn phase_of_a_killed_weigh_has_no_end_and_the_next_ones_do() {
    let script = "$WEIGH phase lost -- sh -c 'kill -9 $PPID; exec $BURNER cpu 50ms'; \
                  $WEIGH phase lost -- $BURNER cpu 50ms";
    let run = phased_run(script).ended_with(0);
    let lost = phases(&run, "lost");
    let [killed, whole] = lost[..] else { panic!("{lost:?}") };
    assert!(killed["duration_seconds"].is_null() && whole["duration_seconds"].is_number());
    let cpu = figure(killed, "cpu_time_seconds");
    assert_ne!(cpu.method.as_deref(), Some("exact"));
    assert!(cpu.reason.unwrap().contains("end is not recorded"));
    let all = statistics(&run, "lost");
    assert_eq!((all["count"].as_u64(), all["unfinished"].as_u64()), (Some(1), Some(1)));
    let text = shown_phases(&run, "text");
    assert!(text.contains("without an end"), "{text}");
}

#[test]
fn command_that_cannot_start_leaves_a_failed_phase() {
    let script = "printf '#!/missing\\n' >script; chmod +x script; \
                  $WEIGH phase p -- ./script 2>/dev/null; exit $?";
    let run = phased_run(script).ended_with(127);
    assert_eq!(phase(&run, "p")["exit_code"], 127);
}

#[test]
fn run_without_phases_prints_how_to_make_one() {
    let run = phased_run("true").ended_with(0);
    let text = shown_phases(&run, "text");
    assert!(text.contains("no phases") && text.contains("weigh phase load -- "), "{text}");
    let json: Value = serde_json::from_str(&shown_phases(&run, "json")).unwrap();
    assert_eq!(json["statistics"], serde_json::json!([]));
}

#[test]
fn phase_in_a_time_namespace_names_its_process_by_the_clock_of_the_rows() {
    let probe = std::process::Command::new("unshare").args(["-T", "true"]).output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        skipped("needs root, and unshare -T to be allowed");
        return;
    }
    let inside = "unshare -T --boottime 86400 --monotonic 5000";
    // The process must be in a tick, so that the recording has its start time.
    let script = format!("{inside} $WEIGH phase far -- sleep 0.5");
    let run = weighed_shell(&["-i", "20ms", "-o", "run"], &script).ended_with(0);
    let events = events(&run.directory.path().join("run"));
    let of = |kind: &str| events.iter().find(|event| event["event"] == kind).unwrap();
    let command = of("phase_command");
    let started = events
        .iter()
        .find(|event| event["event"] == "process_start" && event["pid"] == command["pid"]);
    assert_eq!(command["started"], started.unwrap()["started"]);
    let (begin, end) = (of("phase_start")["seconds"].as_f64(), of("phase_end")["seconds"].as_f64());
    let lasted = end.unwrap() - begin.unwrap();
    assert!((0.5..60.0).contains(&lasted), "{lasted}");
}
