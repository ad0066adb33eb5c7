//! The files of runs with known values.

use std::path::PathBuf;

use super::*;
use crate::catalog::metrics::{ProcessState, TaskState};
use crate::export::tests::small_machine;
use crate::model::{Entity, ProcessId, Tick};
use crate::testing::{CHILD, FakeRun, MAIN, MIB, cpu, sizes, threads};

/// A script that starts a tool half a second before the second sample.
fn script_with_a_tool() -> (tempfile::TempDir, Recording) {
    let child = ProcessId { pid: CHILD.pid, started: MAIN.started + 50 };
    let mut run = small_machine();
    run.starts(0.0, MAIN, "sh /opt/bin/evepy 1 4");
    run.sample(0.0, |tick| {
        cpu(tick, MAIN, 0.0, 0.0);
        sizes(tick, MAIN, 3 * MIB + 1023, Some((2 * MIB, MIB)));
    });
    run.starts(1.0, child, "gulmc");
    run.sample(1.0, |tick| {
        cpu(tick, child, 0.4126, 0.05);
        sizes(tick, child, 100 * MIB, None);
    });
    // The script did not run at all, the tool is idle after that.
    run.sample(2.0, |tick| {
        cpu(tick, child, 1.25, 0.25);
        sizes(tick, child, 100 * MIB, Some((90 * MIB, 80 * MIB)));
    });
    run.sample(3.0, |_| {});
    run.exits(3.5, child);
    run.sample(4.0, |tick| cpu(tick, MAIN, 0.25, 0.0));
    run.recorded(5.0, 2.0)
}

fn exported(recording: &Recording) -> (tempfile::TempDir, PathBuf, Exported) {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("log");
    let done = export(recording, &out, false).unwrap();
    (directory, out, done)
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn table_has_a_row_for_each_process_at_each_poll() {
    let (_run, recording) = script_with_a_tool();
    let (_directory, out, done) = exported(&recording);
    let lines = [
        "timestamp,tool,pid,cpu_pct,cpu_user_s,cpu_sys_s,rss_kb,uss_kb,pss_kb",
        "1700000001.0,evepy,10,0.0,0.0,0.0,3072,1024,2048",
        // It is half a second old: its private memory is not known yet.
        "1700000001.0,gulmc,11,92.5,0.413,0.05,102400,,-1",
        "1700000002.0,evepy,10,0.0,0.0,0.0,3072,1024,2048",
        "1700000002.0,gulmc,11,103.7,1.25,0.25,102400,81920,92160",
        "1700000003.0,evepy,10,0.0,0.0,0.0,3072,1024,2048",
        "1700000003.0,gulmc,11,0.0,1.25,0.25,102400,81920,92160",
        "1700000004.0,evepy,10,25.0,0.25,0.0,3072,1024,2048",
    ];
    assert_eq!(text(&out.join("resource_monitor.csv")), lines.join("\r\n") + "\r\n");
    let [why] = &done.missing[..] else { panic!("{:?}", done.missing) };
    assert!(why.starts_with("in 1 of 7 rows private memory is not known"), "{why}");
}

#[test]
fn report_has_the_lines_of_oasislmf_and_the_numbers_of_the_summary() {
    let (_run, recording) = script_with_a_tool();
    let (_directory, out, _) = exported(&recording);
    let page = text(&out.join("resource_report/resource_report.md"));
    let begin = "# Resource Monitor Report\n\n**Generated:** 2023-11-1";
    assert!(page.starts_with(begin), "{page}");
    for line in [
        "**Total samples:** 7\n**Source:** `resource_monitor.csv`\n**System memory:** 7,629 MB\n\
         **Peak total USS:** 81 MB (1.1% of system memory)\n\n> **USS** (Unique Set Size)",
        "| **CPU Total (s)** | Avg USS (MB) | Avg CPU% | Duration (s) |\n|------|-----------|",
        "| evepy | 1 | 4 | **1.0** | **1.0** | 3.0 | 2.0 | 25.0% | 0.2 | 0.0 | **0.2** | 1.0 \
         | 6.2% | 5.0 |\n",
        "| gulmc | 1 | 3 | **80.0** | **80.0** | 100.0 | 90.0 | 103.7% | 1.2 | 0.2 | **1.5** \
         | 80.0 | 65.4% | 3.0 |\n\n## ",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    let source = format!("---\n*Source: `{}`*", out.join("resource_monitor.csv").display());
    assert!(page.ends_with(&source), "{page}");
}

#[test]
fn only_the_given_tools_are_reported() {
    let (_run, recording) = script_with_a_tool();
    let directory = tempfile::tempdir().unwrap();
    let tools = ["gulmc".to_owned()];
    let options = ResourceMonitorOptions { tools: Some(&tools), report: true, force: false };
    let done = export_with(&recording, directory.path(), &options).unwrap();
    assert!(done.files.iter().all(|path| path.exists()));
    let table = text(&directory.path().join("resource_monitor.csv"));
    assert_eq!(table.lines().skip(1).filter(|line| line.contains(",gulmc,")).count(), 3, "{table}");
    assert_eq!(table.lines().count(), 4, "{table}");
    let page = text(&directory.path().join("resource_report/resource_report.md"));
    assert!(page.contains("**Peak total USS:** 80 MB"), "{page}");
    assert!(page.contains("| gulmc | 1 | 3 |") && !page.contains("evepy"), "{page}");
    let table_only = ResourceMonitorOptions { report: false, force: true, ..options };
    let done = export_with(&recording, directory.path(), &table_only).unwrap();
    assert_eq!(done.files, [directory.path().join("resource_monitor.csv")]);
    let empty = tempfile::tempdir().unwrap();
    let katpy = ["katpy".to_owned()];
    let absent = ResourceMonitorOptions { tools: Some(&katpy), ..options };
    assert!(export_with(&recording, empty.path(), &absent).unwrap().files.is_empty());
    assert_eq!(std::fs::read_dir(empty.path()).unwrap().count(), 0, "nothing is left behind");
}

#[cfg(feature = "png")]
#[test]
fn every_picture_of_the_report_is_beside_it() {
    let (_run, recording) = script_with_a_tool();
    let (_directory, out, done) = exported(&recording);
    let report = out.join("resource_report");
    let page = text(&report.join("resource_report.md"));
    let shown: Vec<&str> = page.lines().filter(|line| line.starts_with("![")).collect();
    assert_eq!(shown.len(), 6, "{page}");
    for line in shown {
        let file = line.split(['(', ')']).nth(1).unwrap();
        assert!(std::fs::read(report.join(file)).unwrap().starts_with(b"\x89PNG"), "{line}");
    }
    assert_eq!(done.files.len(), 8);
    assert!(done.files.iter().all(|path| path.exists()));
}

#[cfg(feature = "png")]
#[test]
fn pictures_show_tools_and_not_their_processes() {
    let mut run = small_machine();
    for id in [MAIN, CHILD] {
        run.starts(0.0, id, "gulmc");
    }
    for seconds in [0.0, 1.0] {
        run.sample(seconds, |tick| {
            for id in [MAIN, CHILD] {
                cpu(tick, id, seconds, 0.0);
                sizes(tick, id, 5 * MIB, Some((4 * MIB, 3 * MIB)));
            }
        });
    }
    let (_run, recording) = run.recorded(2.0, 2.0);
    let pictures = pictures(&recording).unwrap();
    let chart = |file: &str| {
        let picture = pictures.iter().find(|picture| picture.file == file).unwrap();
        let [series] = &picture.chart.series[..] else { panic!("{:?}", picture.chart.series) };
        (series.name.clone(), series.values[0])
    };
    assert_eq!(chart("aggregate_uss.png"), ("gulmc".to_owned(), (6 * MIB) as f64));
    assert_eq!(chart("instance_count.png"), ("gulmc".to_owned(), 2.0));
}

#[test]
fn files_are_replaced_only_with_force_and_never_written_into_a_recording() {
    let (run, recording) = script_with_a_tool();
    let (directory, out, _) = exported(&recording);
    std::fs::remove_file(out.join("resource_monitor.csv")).unwrap();
    let refused = export(&recording, &out, false);
    assert!(matches!(refused, Err(Error::Exists { .. })), "{refused:?}");
    assert!(!out.join("resource_monitor.csv").exists(), "refused before anything is written");
    export(&recording, &out, true).unwrap();
    let into = export(&recording, &run.path().join("run"), true);
    assert!(matches!(into, Err(Error::IntoRecording { .. })), "{into:?}");
    drop(directory);
}

/// The lines of the table without its header, each cut to these columns.
fn table(recording: &Recording, columns: std::ops::Range<usize>) -> Vec<String> {
    let (_directory, out, _) = exported(recording);
    let table = text(&out.join("resource_monitor.csv"));
    let cut = |line: &str| line.split(',').collect::<Vec<_>>()[columns.clone()].join(",");
    table.lines().skip(1).map(cut).collect()
}

#[test]
fn dense_samples_of_the_first_second_do_not_count_more_than_later_ones() {
    let mut run = small_machine();
    run.starts(0.0, MAIN, "fmpy");
    // It fills its memory while weigh samples most often; then it has 200 MiB, and half a core.
    for (seconds, size) in [(0.005, 1), (0.01, 2), (0.02, 4), (0.04, 8), (0.08, 16), (0.16, 32)] {
        run.sample(seconds, |tick| sizes(tick, MAIN, size * MIB, Some((size * MIB, size * MIB))));
    }
    for second in 1..=4 {
        run.sample(f64::from(second), |tick| {
            cpu(tick, MAIN, 0.5 * f64::from(second), 0.0);
            sizes(tick, MAIN, 200 * MIB, Some((200 * MIB, 200 * MIB)));
        });
    }
    let (_run, recording) = run.recorded(4.1, 2.0);
    let rows = ["1.0,fmpy,10,50.0", "2.0,fmpy,10,50.0", "3.0,fmpy,10,50.0", "4.0,fmpy,10,50.0"];
    assert_eq!(table(&recording, 0..4), rows.map(|row| format!("170000000{row}")));
    let (_directory, out, _) = exported(&recording);
    let page = text(&out.join("resource_report/resource_report.md"));
    assert!(page.contains("| fmpy | 1 | 4 | **200.0** |"), "{page}");
    assert!(page.contains("| **2.0** | 200.0 | 50.0% | 4.1 |"), "{page}");
}

#[test]
fn run_shorter_than_an_interval_has_one_row_per_process() {
    let mut run = small_machine();
    run.starts(0.0, MAIN, "fmpy");
    // The kernel has counted one clock tick: ten milliseconds in five.
    run.sample(0.005, |tick| cpu(tick, MAIN, 0.01, 0.0));
    run.sample(0.25, |tick| cpu(tick, MAIN, 0.2, 0.0));
    let (_run, recording) = run.recorded(0.3, 0.2);
    assert_eq!(table(&recording, 0..5), ["1700000000.25,fmpy,10,80.0,0.2"]);
}

#[test]
fn last_row_of_a_process_has_its_memory_and_no_more_cores_than_threads() {
    let mut run = small_machine();
    run.starts(0.0, MAIN, "fmpy");
    for seconds in [1.0, 2.0] {
        run.sample(seconds, |tick| {
            cpu(tick, MAIN, seconds, 0.0);
            threads(tick, MAIN, 1);
            sizes(tick, MAIN, 200 * MIB, Some((190 * MIB, 180 * MIB)));
        });
    }
    // It has exited and is not reaped yet: its memory is gone, its CPU time is final, and one
    // clock tick more than the time since the row before.
    let exited = |tick: &mut Tick| {
        cpu(tick, MAIN, 2.26, 0.0);
        sizes(tick, MAIN, 0, None);
        let state = ProcessState {
            threads: Some(1),
            doing: Some(TaskState::ZOMBIE),
            ..ProcessState::default()
        };
        tick.put(Entity::Process(MAIN), &state);
    };
    // A zombie may stay for long.
    run.sample(2.25, exited).sample(3.0, |_| {}).sample(4.0, exited);
    let (_run, recording) = run.recorded(4.1, 2.26);
    let expected = [
        "1700000001.0,fmpy,10,100.0,1.0,0.0,204800,184320,194560",
        "1700000002.0,fmpy,10,100.0,2.26,0.0,204800,184320,194560",
    ];
    assert_eq!(table(&recording, 0..9), expected);
}

#[test]
fn process_that_no_poll_found_has_a_row_in_the_order_of_time() {
    let short = ProcessId { pid: 12, started: MAIN.started + 120 };
    let mut run = small_machine();
    run.starts(0.0, MAIN, "sh run.sh");
    run.sample(1.0, |tick| cpu(tick, MAIN, 0.5, 0.0));
    run.starts(1.3, short, "fmpy");
    run.sample(1.3, |tick| cpu(tick, short, 0.05, 0.0));
    run.exits(1.4, short);
    run.sample(2.0, |tick| cpu(tick, MAIN, 0.5, 0.0));
    let (_run, recording) = run.recorded(2.1, 0.55);
    let rows = ["1.0,run.sh,10,50.0", "1.3,fmpy,12,50.0", "2.0,run.sh,10,0.0"];
    assert_eq!(table(&recording, 0..4), rows.map(|row| format!("170000000{row}")));
}

#[test]
fn process_without_memory_during_exec_has_not_exited() {
    let mut run = small_machine();
    run.starts(0.0, MAIN, "sh");
    run.sample(0.001, |tick| {
        cpu(tick, MAIN, 0.0, 0.0);
        sizes(tick, MAIN, 0, None);
    });
    for seconds in [1.0, 2.0] {
        run.sample(seconds, |tick| {
            cpu(tick, MAIN, seconds, 0.0);
            sizes(tick, MAIN, 200 * MIB, Some((190 * MIB, 180 * MIB)));
        });
    }
    let (_run, recording) = run.recorded(2.1, 2.0);
    let rows = table(&recording, 0..9);
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.iter().all(|row| row.ends_with(",204800,184320,194560")), "{rows:?}");
}

#[test]
fn merged_table_has_the_last_cpu_time_of_the_worker_that_exited_first() {
    let mut run = FakeRun::merged();
    for id in [MAIN, CHILD] {
        run.starts(0.0, id, "gulmc");
    }
    run.sample_some(0.95, |tick| cpu(tick, MAIN, 0.5, 0.0));
    run.sample(1.0, |tick| cpu(tick, CHILD, 0.75, 0.09));
    // One has its last sample, and the round goes on without it.
    run.sample_some(1.4, |tick| cpu(tick, CHILD, 1.18, 0.09));
    run.exits(1.41, CHILD);
    run.sample(1.55, |tick| cpu(tick, MAIN, 0.8, 0.0));
    let (_run, recording) = run.recorded(1.6, 2.0);
    assert_eq!(table(&recording, 2..6), ["10,51.6,0.8,0.0", "11,90.7,1.18,0.09"]);
}

#[test]
fn reused_pid_is_two_instances_and_an_exec_ends_the_rows_of_the_old_program() {
    let (first, second) =
        (ProcessId { pid: 12, started: 150 }, ProcessId { pid: 12, started: 350 });
    let mut run = small_machine();
    run.starts(0.0, MAIN, "sh run.sh");
    run.sample(0.0, |tick| cpu(tick, MAIN, 0.0, 0.0));
    for (seconds, id) in [(1.0, first), (3.0, second)] {
        run.starts(seconds, id, "sh run.sh");
        run.exec(seconds, id, "./fm,py");
        run.sample(seconds, |tick| cpu(tick, id, 0.5, 0.0));
        run.exits(seconds + 0.5, id);
    }
    let (_run, recording) = run.recorded(4.0, 1.0);
    let (_directory, out, _) = exported(&recording);
    let table = text(&out.join("resource_monitor.csv"));
    let of_twelve: Vec<&str> = table.lines().filter(|line| line.contains(",12,")).collect();
    assert_eq!(of_twelve.len(), 2, "{table}");
    assert!(of_twelve.iter().all(|line| line.contains(",\"fm,py\",12,100.0,0.5,")), "{table}");
    let page = text(&out.join("resource_report/resource_report.md"));
    assert!(page.contains("| fm,py | 2 | 2 |"), "{page}");
}

#[test]
fn process_name_cannot_break_the_report() {
    let mut run = small_machine();
    run.starts(0.0, MAIN, "./a|b\n<img>");
    run.sample(0.0, |tick| cpu(tick, MAIN, 0.0, 0.0));
    let (_run, recording) = run.recorded(1.0, 1.0);
    let (_directory, out, _) = exported(&recording);
    let page = text(&out.join("resource_report/resource_report.md"));
    assert!(!page.contains("a|b") && !page.contains("<img>"), "{page}");
}
