//! The files of runs with known values.

use std::time::Duration;

use super::cpu::{CpuRow, Shares, shares};
use super::*;
use crate::catalog::SourceId;
use crate::catalog::metrics::NodeCpu;
use crate::collect::{Context, provider};
use crate::export::tests::small_machine;
use crate::host::fake::FakeHost;
use crate::model::settings::Settings;
use crate::model::{End, Entity, Tick, Usage};
use crate::record::Event;
use crate::testing::{FakeRun, MAIN};

/// A sample of a machine whose `/proc/stat` begins with these columns.
pub(super) fn machine(tick: &mut Tick, columns: &str) {
    let fake = FakeHost::new().proc("stat", &format!("cpu  {columns}\n"));
    let cpu = provider(SourceId::Cpu).unwrap();
    cpu.collector.unwrap()(&Settings::default()).sample(&Context::of(&fake.host()), tick).unwrap();
}

/// The files of a recording, and what is missing in them.
pub(super) fn exported(recording: &Recording) -> (String, String, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("hw");
    let done = export(recording, &out, false).unwrap();
    assert_eq!(done.files, ["cpu_metrics.csv", "run_log.jsonl"].map(|name| out.join(name)));
    let [table, log] = ["cpu_metrics.csv", "run_log.jsonl"]
        .map(|name| std::fs::read_to_string(out.join(name)).unwrap());
    (table, log, done.missing)
}

/// A run that is sampled at these times, with these columns in `/proc/stat`.
fn sampled_at(samples: &[(f64, &str)]) -> (String, Vec<String>) {
    let mut run = small_machine();
    for (seconds, columns) in samples {
        run.sample(*seconds, |tick| machine(tick, columns));
    }
    let (_run, recording) = run.recorded(samples.last().unwrap().0, 1.0);
    let (table, _, missing) = exported(&recording);
    (table, missing)
}

#[test]
fn monitor_without_a_log_writes_only_tables_with_rows() {
    let tables = |samples: &[(f64, &str)]| {
        let mut run = small_machine();
        for (seconds, columns) in samples {
            run.sample(*seconds, |tick| machine(tick, columns));
        }
        let (_run, recording) = run.recorded(samples[samples.len() - 1].0, 1.0);
        let directory = tempfile::tempdir().unwrap();
        let done = export_tables(&recording, directory.path(), false).unwrap();
        let there = std::fs::read_dir(directory.path()).unwrap().count();
        (done.files.len(), there)
    };
    assert_eq!(tables(&[(0.0, "10 0 5 90"), (1.0, "20 0 5 180")]), (1, 1));
    assert_eq!(tables(&[(0.0, "10 0 5 90")]), (0, 0));
}

fn phase(run: &mut FakeRun, (from, to): (f64, f64), id: &str, name: &str, end: Option<End>) {
    run.phase_starts(from, id, name);
    let usage = end.map(|_| Usage { user_seconds: 0.25, ..Usage::default() });
    run.event(to, Event::PhaseEnd { id: id.into(), usage, end, account: None });
}

#[test]
fn shares_are_of_all_cpu_time_and_guest_time_counts_once() {
    let (table, missing) = sampled_at(&[
        (0.0, "1000 100 500 9000 50 10 20 5 400 40"),
        // 200 clock ticks: 30 user, 40 nice, 110 idle. 25 and 35 of those were guest time.
        (1.0, "1030 140 508 9110 56 11 22 8 425 75"),
        (2.0, "1030 140 508 9310 56 11 22 8 425 75"),
    ]);
    let lines = [
        "timestamp,usr_pct,idle_pct",
        "2023-11-14T22:13:21.000+00:00,35.0,55.0",
        "2023-11-14T22:13:22.000+00:00,0.0,100.0",
    ];
    assert_eq!(table, lines.join("\n") + "\n");
    assert_eq!(missing, [""; 0]);
}

#[test]
fn rows_are_an_interval_apart_however_often_was_sampled() {
    let (table, _) = sampled_at(&[
        (0.0, "0 0 0 0 0 0 0 0 0 0"),
        (0.005, "1 0 0 0 0 0 0 0 0 0"),
        (0.64, "64 0 0 64 0 0 0 0 0 0"),
        (1.0019996, "100 0 0 100 0 0 0 0 0 0"),
        // A phase ended, and one sample was so late that the next was due at once.
        (1.5, "150 0 0 100 0 0 0 0 0 0"),
        (2.9, "290 0 0 100 0 0 0 0 0 0"),
        (3.0, "290 0 0 110 0 0 0 0 0 0"),
        (4.0, "290 0 0 310 0 0 0 0 0 0"),
        // The last part of the run is no whole interval, and no row.
        (4.5, "390 0 0 310 0 0 0 0 0 0"),
    ]);
    let rows: Vec<&str> = table.lines().skip(1).collect();
    let expected = [
        "2023-11-14T22:13:21.001+00:00,50.0,50.0",
        "2023-11-14T22:13:22.900+00:00,100.0,0.0",
        "2023-11-14T22:13:24.000+00:00,0.0,100.0",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn row_with_a_decreasing_counter_is_left_out_and_reported() {
    let (table, missing) = sampled_at(&[
        (0.0, "500 0 0 500 0 0 0 0"),
        (1.0, "600 0 0 600 0 0 0 0"),
        // The virtual machine was migrated, and its counters are different.
        (2.0, "10 0 0 700 0 0 0 0"),
        (3.0, "60 0 0 850 0 0 0 0"),
    ]);
    let times: Vec<&str> = table.lines().skip(1).map(|line| &line[17..]).collect();
    assert_eq!(times, ["21.000+00:00,50.0,50.0", "23.000+00:00,25.0,75.0"]);
    let message =
        "cpu_metrics.csv: 1 of 3 rows are left out, because counters of the kernel decreased";
    assert_eq!(missing, [message]);
}

#[test]
fn unchanged_proc_stat_is_not_reported_as_decreased() {
    let still = "500 0 0 500 0 0 0 0";
    let (table, missing) =
        sampled_at(&[(0.0, still), (1.0, still), (2.0, still), (3.0, "550 0 0 550 0 0 0 0")]);
    assert_eq!(
        table.lines().skip(1).map(|line| &line[17..]).collect::<Vec<_>>(),
        ["23.000+00:00,50.0,50.0"]
    );
    let message = "cpu_metrics.csv: 2 of 3 rows are left out, because /proc/stat did not change: \
    not even idle time was counted";
    assert_eq!(missing, [message]);
    // The same for a run shorter than an interval.
    let (table, missing) = sampled_at(&[(0.0, still), (0.5, still)]);
    assert_eq!(table.lines().count(), 1, "{table}");
    let message =
        "cpu_metrics.csv has no row: /proc/stat did not change: not even idle time was counted";
    assert_eq!(missing, [message]);
}

#[test]
fn io_wait_that_becomes_idle_later_does_not_count_in_the_row() {
    let (table, missing) =
        sampled_at(&[(0.0, "100 0 0 100 50 0 0 0"), (1.0, "150 0 0 255 45 0 0 0")]);
    assert!(table.ends_with("21.000+00:00,25.0,75.0\n"), "{table}");
    assert_eq!(missing, [""; 0]);
}

#[test]
fn share_needs_all_counters_of_the_total() {
    let full = |ticks: f64| NodeCpu {
        user: Some(ticks),
        nice: Some(0.0),
        system: Some(0.0),
        idle: Some(ticks),
        iowait: Some(0.0),
        interrupts: Some(0.0),
        steal: Some(0.0),
        ..NodeCpu::default()
    };
    let half = Some(Shares { user: 0.5, idle: 0.5 });
    assert_eq!(shares(&full(1.0), &full(2.0)), half);
    let old = |ticks| NodeCpu { iowait: None, interrupts: None, steal: None, ..full(ticks) };
    assert_eq!(shares(&old(1.0), &old(2.0)), half, "a kernel that never counted them");
    assert_eq!(shares(&full(1.0), &full(1.0)), None, "no time has passed");
    assert_eq!(shares(&full(1.0), &NodeCpu { user: None, ..full(2.0) }), None);
    assert_eq!(shares(&full(1.0), &NodeCpu { idle: None, ..full(2.0) }), None);
    assert_eq!(shares(&NodeCpu { steal: None, ..full(1.0) }, &full(2.0)), None);
    assert_eq!(shares(&full(2.0), &NodeCpu { system: Some(-1.5), ..full(3.0) }), None);
}

#[test]
fn empty_sample_is_ignored_and_the_next_row_has_its_time() {
    let cpu = |user: f64, idle: f64| NodeCpu {
        user: Some(user),
        nice: Some(0.0),
        system: Some(0.0),
        idle: Some(idle),
        ..NodeCpu::default()
    };
    let mut sampler = Sampler::new(RowSpacing::every(1.0));
    let at = Duration::from_secs;
    assert_eq!(sampler.sample(at(0), cpu(0.0, 0.0)), None);
    assert_eq!(sampler.sample(at(1), NodeCpu::default()), None);
    let shares = Shares { user: 0.25, idle: 0.75 };
    assert_eq!(sampler.sample(at(2), cpu(1.0, 3.0)), Some(CpuRow { at: at(2), shares }));
    assert_eq!(sampler.missing(), [""; 0]);
}

#[test]
fn run_shorter_than_an_interval_has_one_row_and_one_too_short_has_none() {
    let (table, missing) = sampled_at(&[(0.0, "0 0 0 0"), (0.3, "15 0 0 15"), (0.6, "30 0 0 90")]);
    assert_eq!(table.lines().nth(1), Some("2023-11-14T22:13:20.600+00:00,25.0,75.0"));
    assert_eq!((table.lines().count(), missing.len()), (2, 0));
    let (table, missing) = sampled_at(&[(0.0, "0 0 0 0"), (0.05, "5 0 0 5")]);
    assert_eq!(table, "timestamp,usr_pct,idle_pct\n");
    let message = "cpu_metrics.csv has no row: the machine was sampled for less than 0.1 s";
    assert_eq!(missing, [message]);
}

#[test]
fn machine_that_was_not_sampled_has_no_row_and_no_zero() {
    let mut run = small_machine();
    run.sample(0.0, |_| {}).sample(1.0, |_| {}).sample(2.0, |_| {});
    let (_run, recording) = run.recorded(2.0, 1.0);
    let (table, _, missing) = exported(&recording);
    assert_eq!(table, "timestamp,usr_pct,idle_pct\n");
    let message = "cpu_metrics.csv has no row: CPU time of one machine is not recorded";
    assert_eq!(missing, [message]);
}

#[test]
fn log_has_phases_when_they_end_and_events_in_between() {
    let mut run = small_machine();
    run.sample(0.0, |_| {});
    phase(&mut run, (0.5, 1.7344), "a", "warm\u{fc}p", None);
    run.phase_starts(1.75, "b", "never ends");
    run.event(1.0009, Event::Mark { text: "seed \"7\"\n".into() });
    run.sample(2.0, |_| {});
    phase(&mut run, (2.0, 2.5), "c", "fit", Some(End::Code(3)));
    phase(&mut run, (2.7, 3.0), "d", "to the end", None);
    let (_run, recording) = run.recorded(3.0, 1.5);
    let (_, log, missing) = exported(&recording);
    let id = &recording.manifest().id;
    let lines: Vec<&str> = log.lines().collect();
    let begin = format!(
        r#"{{"ts": "2023-11-14T22:13:20.000+00:00", "type": "event", "event": "run_start", "data": {{"run": "{id}", "name": "work", "command": ["work"]}}}}"#
    );
    assert_eq!(lines[0], begin);
    assert_eq!(
        lines[1],
        r#"{"ts": "2023-11-14T22:13:21.000+00:00", "type": "event", "event": "seed \"7\"\n"}"#
    );
    let warm = r#"{"ts": "2023-11-14T22:13:21.734+00:00", "type": "phase", "name": "warm\u00fcp", "seconds": 1.234"#;
    assert!(lines[2].starts_with(warm), "{}", lines[2]);
    let fit = r#"{"ts": "2023-11-14T22:13:22.500+00:00", "type": "phase", "name": "fit", "seconds": 0.5, "exit_code": 3, "cpu_time_seconds": 0.25"#;
    assert!(lines[3].starts_with(fit), "{}", lines[3]);
    let end = r#"{"ts": "2023-11-14T22:13:23.000+00:00", "type": "event", "event": "run_end", "data": {"seconds": 3.0, "exit_code": 0, "cpu_time_seconds": 1.5"#;
    assert!(lines[4].contains(r#""name": "to the end", "seconds": 0.3"#), "{}", lines[4]);
    assert!(lines[5].starts_with(end), "{}", lines[5]);
    assert_eq!((lines.len(), log.ends_with("}\n")), (6, true));
    let message = "run_log.jsonl: phases without an end are left out: 1";
    assert!(missing.contains(&message.to_owned()), "{missing:?}");
}

#[test]
fn phase_name_cannot_replace_a_key() {
    let mut run = small_machine();
    for name in ["ts", "type", "\", \"ts\": \"never", "seconds"] {
        phase(&mut run, (0.0, 1.0), name, name, None);
        run.event(1.0, Event::Mark { text: name.into() });
    }
    let (_run, recording) = run.recorded(2.0, 1.0);
    let (_, log, _) = exported(&recording);
    for line in log.lines() {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(value["ts"].as_str().unwrap().starts_with("2023-11-14T22:13:2"), "{line}");
        assert!(value["type"] == "phase" || value["type"] == "event", "{line}");
        assert_eq!(line.matches("\"ts\": ").count(), 1, "{line}");
        if value["type"] == "phase" {
            assert_eq!(value["seconds"], 1.0, "{line}");
        }
    }
}

#[test]
fn unrecorded_end_is_not_in_the_log() {
    let mut run = small_machine();
    run.sample(0.0, |tick| machine(tick, "0 0 0 0")).sample(1.0, |tick| machine(tick, "5 0 0 5"));
    let (run, _) = run.recorded(2.0, 1.0);
    let events = run.path().join("run/events.jsonl");
    let text = std::fs::read_to_string(&events).unwrap();
    let kept: Vec<&str> = text.lines().filter(|line| !line.contains("run_end")).collect();
    std::fs::write(&events, kept.join("\n") + "\n").unwrap();
    let recording = Recording::open(&run.path().join("run")).unwrap();
    let (table, log, missing) = exported(&recording);
    assert_eq!((table.lines().count(), log.lines().count()), (2, 1), "{log}");
    assert!(missing[0].contains("the end of the run is not recorded"), "{missing:?}");
}

#[test]
fn files_are_replaced_only_with_force_and_never_written_into_a_recording() {
    let mut run = small_machine();
    run.sample(0.0, |tick| tick.put(Entity::Process(MAIN), &NodeCpu::default()));
    let (run, recording) = run.recorded(1.0, 1.0);
    let directory = tempfile::tempdir().unwrap();
    let (out, log) = (directory.path(), directory.path().join("run_log.jsonl"));
    std::fs::write(&log, "mine").unwrap();
    let refused = export(&recording, out, false);
    assert!(matches!(&refused, Err(Error::Exists { path }) if *path == log), "{refused:?}");
    assert_eq!(std::fs::read_dir(out).unwrap().count(), 1, "refused before anything is written");
    export(&recording, out, true).unwrap();
    assert_ne!(std::fs::read_to_string(&log).unwrap(), "mine");
    let into = export(&recording, &run.path().join("run"), true);
    assert!(matches!(into, Err(Error::IntoRecording { .. })), "{into:?}");
}
