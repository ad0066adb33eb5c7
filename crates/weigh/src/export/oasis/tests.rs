//! Their files, of runs whose truth is written down beside them.

use super::*;
use crate::collect::process::{ProcessCpu, ProcessMemory};
use crate::export::gpu_tracker::tests::{CHILD, MAIN, Story};
use crate::record::Event;
use crate::sample::{Entity, ProcessId, Tick};

const MIB: u64 = 1 << 20;

fn came(story: &mut Story, seconds: f64, id: ProcessId, line: &str) {
    let command: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let (pid, started, name) = (id.pid, id.started, command[0].clone());
    let command = Some(command);
    story
        .event(seconds, Event::ProcessStart { pid, started, parent: 1, name, command, tool: None });
}

fn went(story: &mut Story, seconds: f64, id: ProcessId) {
    story.event(seconds, Event::ended(id, None, None));
}

fn cpu(tick: &mut Tick, id: ProcessId, user: f64, system: f64) {
    let row = ProcessCpu { user: Some(user), system: Some(system), ..ProcessCpu::default() };
    tick.put(Entity::Process(id), &row);
}

/// Resident memory, and proportional and private memory where it was looked at.
fn memory(tick: &mut Tick, id: ProcessId, rss: u64, shares: Option<(u64, u64)>) {
    let (pss, uss) = shares.unzip();
    let row = ProcessMemory { rss: Some(rss), peak: Some(rss), pss, uss, swap: None };
    tick.put(Entity::Process(id), &row);
}

/// A script that starts a tool half a second before the second look finds it.
fn told() -> (tempfile::TempDir, Recording) {
    let child = ProcessId { pid: CHILD.pid, started: MAIN.started + 50 };
    let mut story = Story::new();
    came(&mut story, 0.0, MAIN, "sh /opt/bin/evepy 1 4");
    story.at(0.0, |tick| {
        cpu(tick, MAIN, 0.0, 0.0);
        memory(tick, MAIN, 3 * MIB + 1023, Some((2 * MIB, MIB)));
    });
    came(&mut story, 1.0, child, "gulmc");
    story.at(1.0, |tick| {
        cpu(tick, child, 0.4126, 0.05);
        memory(tick, child, 100 * MIB, None);
    });
    // The script did not run at all, the tool sits still after that.
    story.at(2.0, |tick| {
        cpu(tick, child, 1.25, 0.25);
        memory(tick, child, 100 * MIB, Some((90 * MIB, 80 * MIB)));
    });
    story.at(3.0, |_| {});
    went(&mut story, 3.5, child);
    story.at(4.0, |tick| cpu(tick, MAIN, 0.25, 0.0));
    story.end(5.0, 2.0)
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
fn the_table_has_a_row_for_everybody_at_every_look() {
    let (_run, recording) = told();
    let (_directory, out, done) = exported(&recording);
    let lines = [
        "timestamp,tool,pid,cpu_pct,cpu_user_s,cpu_sys_s,rss_kb,uss_kb,pss_kb",
        "1700000000.0,evepy,10,0.0,0.0,0.0,3072,1024,2048",
        "1700000001.0,evepy,10,0.0,0.0,0.0,3072,1024,2048",
        // Of half a second of life: nothing is known of its private memory yet.
        "1700000001.0,gulmc,11,92.5,0.413,0.05,102400,,-1",
        "1700000002.0,evepy,10,0.0,0.0,0.0,3072,1024,2048",
        "1700000002.0,gulmc,11,103.7,1.25,0.25,102400,81920,92160",
        "1700000003.0,evepy,10,0.0,0.0,0.0,3072,1024,2048",
        "1700000003.0,gulmc,11,0.0,1.25,0.25,102400,81920,92160",
        "1700000004.0,evepy,10,25.0,0.25,0.0,3072,1024,2048",
    ];
    assert_eq!(text(&out.join("resource_monitor.csv")), lines.join("\r\n") + "\r\n");
    let [why] = &done.missing[..] else { panic!("{:?}", done.missing) };
    assert!(why.starts_with("in 1 of 8 rows private memory is not known"), "{why}");
}

#[test]
fn the_report_has_their_lines_and_the_summary_s_numbers() {
    let (_run, recording) = told();
    let (_directory, out, _) = exported(&recording);
    let page = text(&out.join("resource_report/resource_report.md"));
    let begin = "# Resource Monitor Report\n\n**Generated:** 2023-11-1";
    assert!(page.starts_with(begin), "{page}");
    for line in [
        "**Total samples:** 8\n**Source:** `resource_monitor.csv`\n**System memory:** 7,629 MB\n\
         **Peak total USS:** 81 MB (1.1% of system memory)\n\n> **USS** (Unique Set Size)",
        "| **CPU Total (s)** | Avg USS (MB) | Avg CPU% | Duration (s) |\n|------|-----------|",
        "| evepy | 1 | 5 | **1.0** | **1.0** | 3.0 | 2.0 | 25.0% | 0.2 | 0.0 | **0.2** | 1.0 \
         | 5.0% | 5.0 |\n",
        "| gulmc | 1 | 3 | **80.0** | **80.0** | 100.0 | 90.0 | 103.7% | 1.2 | 0.2 | **1.5** \
         | 80.0 | 65.4% | 3.0 |\n\n## ",
    ] {
        assert!(page.contains(line), "{line}\n{page}");
    }
    let source = format!("---\n*Source: `{}`*", out.join("resource_monitor.csv").display());
    assert!(page.ends_with(&source), "{page}");
}

#[cfg(feature = "png")]
#[test]
fn every_picture_of_the_report_is_beside_it() {
    let (_run, recording) = told();
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
    let mut story = Story::new();
    for id in [MAIN, CHILD] {
        came(&mut story, 0.0, id, "gulmc");
    }
    for seconds in [0.0, 1.0] {
        story.at(seconds, |tick| {
            for id in [MAIN, CHILD] {
                cpu(tick, id, seconds, 0.0);
                memory(tick, id, 5 * MIB, Some((4 * MIB, 3 * MIB)));
            }
        });
    }
    let (_run, recording) = story.end(2.0, 2.0);
    let pictures = predecessors::oasis(&recording).unwrap();
    let chart = |file: &str| {
        let picture = pictures.iter().find(|picture| picture.file == file).unwrap();
        let [series] = &picture.chart.series[..] else { panic!("{:?}", picture.chart.series) };
        (series.name.clone(), series.values[0])
    };
    assert_eq!(chart("aggregate_uss.png"), ("gulmc".to_owned(), (6 * MIB) as f64));
    assert_eq!(chart("instance_count.png"), ("gulmc".to_owned(), 2.0));
}

#[test]
fn nothing_is_replaced_unasked_and_nothing_is_mixed_with_a_recording() {
    let (run, recording) = told();
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

#[test]
fn looks_that_are_close_together_have_the_rate_of_their_window() {
    let mut story = Story::new();
    came(&mut story, 0.0, MAIN, "fmpy");
    // The kernel's clock has counted one step: ten milliseconds in five.
    story.at(0.005, |tick| cpu(tick, MAIN, 0.01, 0.0));
    story.at(0.05, |tick| cpu(tick, MAIN, 0.05, 0.0));
    story.at(0.2, |tick| cpu(tick, MAIN, 0.2, 0.0));
    story.at(0.25, |tick| cpu(tick, MAIN, 0.2, 0.0));
    let (_run, recording) = story.end(0.3, 0.2);
    let (_directory, out, _) = exported(&recording);
    let table = text(&out.join("resource_monitor.csv"));
    let cpu: Vec<&str> =
        table.lines().skip(1).map(|line| line.split(',').nth(3).unwrap()).collect();
    assert_eq!(cpu, ["100.0", "100.0", "100.0", "0.0"]);
}

#[test]
fn a_pid_used_again_is_two_instances_and_a_program_that_is_left_has_no_more_rows() {
    let (first, second) =
        (ProcessId { pid: 12, started: 150 }, ProcessId { pid: 12, started: 350 });
    let mut story = Story::new();
    came(&mut story, 0.0, MAIN, "sh run.sh");
    story.at(0.0, |tick| cpu(tick, MAIN, 0.0, 0.0));
    for (seconds, id) in [(1.0, first), (3.0, second)] {
        came(&mut story, seconds, id, "sh run.sh");
        let (pid, started, name) = (id.pid, id.started, "fmpy".to_owned());
        let command = Some(vec!["./fm,py".to_owned()]);
        story.event(seconds, Event::ProcessExec { pid, started, name, command, tool: None });
        story.at(seconds, |tick| cpu(tick, id, 0.5, 0.0));
        went(&mut story, seconds + 0.5, id);
    }
    let (_run, recording) = story.end(4.0, 1.0);
    let (_directory, out, _) = exported(&recording);
    let table = text(&out.join("resource_monitor.csv"));
    let of_twelve: Vec<&str> = table.lines().filter(|line| line.contains(",12,")).collect();
    assert_eq!(of_twelve.len(), 2, "{table}");
    assert!(of_twelve.iter().all(|line| line.contains(",\"fm,py\",12,100.0,0.5,")), "{table}");
    let page = text(&out.join("resource_report/resource_report.md"));
    assert!(page.contains("| fm,py | 2 | 2 |"), "{page}");
}

#[test]
fn a_name_cannot_break_the_report() {
    let mut story = Story::new();
    came(&mut story, 0.0, MAIN, "./a|b\n<img>");
    story.at(0.0, |tick| cpu(tick, MAIN, 0.0, 0.0));
    let (_run, recording) = story.end(1.0, 1.0);
    let (_directory, out, _) = exported(&recording);
    let page = text(&out.join("resource_report/resource_report.md"));
    assert!(!page.contains("a|b") && !page.contains("<img>"), "{page}");
}
