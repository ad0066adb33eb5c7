//! What weigh says against what a load really used.

use std::fs;

use crate::weighed::{
    Figure, MIB, Weighed, can_mount, output, plain, weighed, weighed_command, weighed_shell,
    within_in_three_tries,
};

const BYTES: f64 = 64.0 * MIB;

#[test]
fn two_hundred_short_children_are_counted_exactly() {
    let run = weighed(&[], &["children", "200", "20ms", "--tell"]).ended_with(0);
    // Four seconds, and their forks and exits, which take longer when the machine is busy.
    let told = run.told();
    assert!(told >= 4.0, "{told} s");
    run.figure("cpu_time_seconds").is_within(0.01, told).is("exact");
}

#[test]
fn children_nobody_waits_for_are_counted_exactly() {
    let load = ["children", "200", "20ms", "--ignore-sigchld"];
    let cpu_time = || weighed(&[], &load).ended_with(0).figure("cpu_time_seconds");
    // What their exits took is told to nobody but weigh.
    within_in_three_tries(0.03, 4.0, cpu_time).is("exact");
}

#[test]
fn a_daemon_is_waited_for_and_counted_when_asked() {
    let run = weighed(&["--wait-all"], &["daemon", "3s"]).ended_with(0);
    run.figure("cpu_time_seconds").is_within(0.03, 3.0).is("exact");
    assert_eq!(run.summary["processes"]["left"].as_array().unwrap().len(), 0);
}

#[test]
fn threads_are_counted_exactly() {
    let run = weighed(&[], &["threads", "4", "500ms"]).ended_with(0);
    run.figure("cpu_time_seconds").is_within(0.03, 2.0).is("exact");
    assert_eq!(run.summary["processes"]["total"], 1);
}

/// Weighs a load where nobody else starts processes; none where that cannot be had.
fn weighed_alone(load: &str) -> Option<Weighed> {
    if !can_mount() {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    // A pid namespace has its own numbers, and its own last one in /proc/loadavg.
    let script = format!(
        "mount -t proc proc /proc
        \"$WEIGH\" run -q --summary summary.json -i 10ms -o run -- \"$BURNER\" {load}
        exit $?"
    );
    let mut command = plain("unshare", directory.path());
    let output = output(command.args(["-m", "-p", "-f", "sh", "-c", &script]));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let summary = fs::read(directory.path().join("summary.json")).unwrap();
    let summary = serde_json::from_slice(&summary).unwrap();
    let (code, stdout) = (output.status.code(), output.stdout);
    Some(Weighed { summary, directory, code, stdout, stderr }.ended_with(0))
}

fn peak_is_a_gibibyte(run: Weighed) {
    let run = run.ended_with(0);
    run.figure("memory_peak_bytes").is_within(0.02, 1024.0 * MIB);
}

#[test]
fn memory_held_between_two_ticks_is_in_the_peak() {
    let load = ["touch", "1GiB", "50ms", "--after", "100ms", "--linger", "1200ms"];
    peak_is_a_gibibyte(weighed(&["-i", "1s"], &load));
}

#[test]
fn memory_held_until_the_end_is_in_the_peak() {
    peak_is_a_gibibyte(weighed(&["-i", "1s"], &["touch", "1GiB", "50ms", "--after", "100ms"]));
}

#[test]
fn the_memory_of_a_command_too_short_to_look_at_is_never_that_of_weigh() {
    for _ in 0..20 {
        let run = weighed_command(&["--no-record"], &["true".into()]).ended_with(0);
        let peak = run.figure("memory_peak_bytes");
        assert!(peak.value.is_none_or(|bytes| 0.0 < bytes && bytes < 3.0 * MIB), "{peak:?}");
        assert!(peak.value.is_some() || peak.reason.is_some(), "{peak:?}");
    }
}

#[test]
fn memory_held_by_a_short_child_is_in_the_peak() {
    let script = "$BURNER touch 1GiB 50ms --after 100ms; $BURNER sleep 100ms";
    peak_is_a_gibibyte(weighed_shell(&["--no-record", "-i", "1s"], script));
}

/// Ten processes that share 400 MiB: the value, and the bounds as far as there are any.
fn shared_memory_is_counted_once(run: Weighed) -> Figure {
    let run = run.ended_with(0);
    let peak = run.figure("memory_peak_bytes");
    peak.is_within(0.05, 400.0 * MIB);
    // Ten processes have some hundred KiB of their own each, and the program is 3 MiB.
    let truth = 400.0 * MIB..410.0 * MIB;
    assert!(peak.lower.is_some_and(|lower| lower <= truth.end), "{peak:?}");
    assert!(peak.upper.is_none_or(|upper| upper >= truth.start), "{peak:?}");
    let summed = run.figure("memory_rss_peak_bytes").known();
    assert!(summed > 3.0 * truth.start, "RSS adds up what is shared, and says {summed}");
    peak
}

#[test]
fn memory_that_forks_share_is_counted_once() {
    let peak = shared_memory_is_counted_once(weighed(&[], &["shared", "400MiB", "9", "1500ms"]));
    // Where others start processes, too, weigh cannot know that none of them was ours.
    assert!(peak.upper.is_some() || peak.reason.is_some(), "{peak:?}");
}

#[test]
fn memory_that_forks_share_is_bounded_where_nobody_else_starts_processes() {
    let Some(run) = weighed_alone("shared 400MiB 9 1500ms") else { return };
    let peak = shared_memory_is_counted_once(run);
    assert!(peak.upper.is_some(), "{peak:?}");
}

#[test]
fn processes_one_after_the_other_do_not_add_up() {
    let script = "for i in 1 2 3 4 5 6 7 8; do $BURNER touch 100MiB 90ms; done";
    let run = weighed_shell(&["--no-record", "-i", "100ms"], script).ended_with(0);
    let peak = run.figure("memory_peak_bytes");
    // The shell beside them has a MiB or so.
    peak.is_within(0.05, 101.0 * MIB);
    assert!(peak.lower.unwrap() <= 105.0 * MIB, "{peak:?}");
    assert!(run.figure("memory_pss_peak_bytes").known() <= 105.0 * MIB, "{}", run.summary);
    assert_eq!(run.summary["processes"]["peak"], 2, "the shell and one of them");
}

#[test]
fn a_command_of_three_milliseconds_has_figures_that_are_not_zero() {
    let run = weighed(&[], &["cpu", "3ms"]).ended_with(0);
    assert!(run.summary["run"]["duration_seconds"].as_f64().unwrap() > 0.0);
    for name in ["cpu_time_seconds", "cpu_cores_mean", "cpu_cores_peak"] {
        assert!(run.figure(name).known() > 0.0, "{:?}", run.figure(name));
    }
    assert_ne!(run.figure("memory_peak_bytes").value, Some(0.0));
    run.figure("cpu_time_seconds").is("exact");
}

#[test]
fn bytes_written_by_short_children_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file").display().to_string();
    let run = weighed(&[], &["write", &file, "64MiB", "16"]).ended_with(0);
    run.figure("io_written_bytes").is_within(0.01, BYTES).is("exact");
    assert_eq!(fs::metadata(file).unwrap().len() as f64, BYTES, "the load itself");
}

#[test]
fn bytes_read_by_short_children_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file").display().to_string();
    fs::write(&file, vec![1; BYTES as usize]).unwrap();
    let run = weighed(&[], &["read", &file, "64MiB", "16"]).ended_with(0);
    run.figure("io_read_bytes").is_within(0.01, BYTES).is("exact");
}

#[test]
fn a_command_that_does_no_io_has_none() {
    let run = weighed(&[], &["exit", "0"]).ended_with(0);
    for name in ["io_written_bytes", "io_write_calls"] {
        assert_eq!(run.figure(name).is("exact").known(), 0.0, "{:?}", run.figure(name));
    }
}

#[test]
fn children_forked_by_worker_threads_are_all_seen() {
    let run = weighed(&["-i", "50ms"], &["thread-forks", "20", "1s"]).ended_with(0);
    assert_eq!(run.summary["processes"]["total"], 21);
    assert_eq!(run.summary["processes"]["peak"], 21);
}

#[test]
fn a_reused_pid_gives_no_absurd_rate() {
    let Some(run) = weighed_alone("reuse-pid 600ms") else { return };
    assert!(run.stdout.starts_with(b"reused "), "the load itself");
    run.figure("cpu_time_seconds").is_within(0.05, 1.2).is("exact");
    let cores = run.summary["host"]["cores_allowed"].as_f64().unwrap();
    let parts = &run.summary["parts"];
    for part in [&run.summary, &parts["main"], &parts["descendants"], &parts["combined"]] {
        for (name, figure) in part["figures"].as_object().unwrap() {
            let below = |key: &str, most: f64| figure[key].as_f64().is_none_or(|v| v <= most);
            let negative = |key: &str| figure[key].as_f64().is_some_and(|value| value < 0.0);
            assert!(!["value", "lower", "upper"].into_iter().any(negative), "{name}: {figure}");
            if name.starts_with("cpu_cores") {
                assert!(below("value", cores + 0.1), "{name}: {figure}");
            }
            if name.starts_with("cpu_time") {
                assert!(below("value", 1.26), "{name}: {figure}");
            }
        }
    }
}

#[test]
fn a_reused_pid_is_another_process() {
    let Some(run) = weighed_alone("reuse-pid 300ms") else { return };
    assert!(run.stdout.starts_with(b"reused "), "the load itself");
    assert_eq!(run.summary["processes"]["total"], 3);
    let events = crate::recording::events(&run.directory.path().join("run"));
    let started = events.iter().filter(|event| event["event"] == "process_start");
    // The first is the load itself.
    let ids: Vec<_> = started.skip(1).map(|event| (&event["pid"], &event["started"])).collect();
    assert!(ids.len() == 2 && ids[0].0 == ids[1].0 && ids[0].1 != ids[1].1, "{ids:?}");
}

#[test]
fn neither_the_run_nor_the_machine_is_busier_than_there_are_cores() {
    let run = weighed(&["-i", "10ms"], &["threads", "2", "500ms"]).ended_with(0);
    let host = &run.summary["host"];
    for (part, cores) in [("combined", &host["cores_allowed"]), ("system", &host["cores"])] {
        let peak = &run.summary["parts"][part]["figures"]["cpu_cores_peak"];
        let peak = Figure::of(peak, part);
        assert!(peak.known() <= cores.as_f64().unwrap() + 0.1, "{peak:?} of {cores} cores");
    }
}
