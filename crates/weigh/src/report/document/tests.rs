//! Reports of runs that succeeded, failed, or have hardly any data.

mod gpus;

use super::*;
use crate::catalog::metrics::ProcessEvents;
use crate::model::batch_job::{BatchJob, Scheduler};
use crate::model::{End, Entity, ProcessId};
use crate::quantity::Units;
use crate::record::Event;
use crate::report::tests::{read, work_hard};
use crate::report::text;
use crate::testing::{CHILD, FakeRun, MAIN, MIB, cpu, memory, usage};

fn document(run: FakeRun) -> Document {
    let (manifest, summary, participants) = read(run);
    Document::of(&manifest, &summary, &participants, Vec::new(), Units::Binary)
}

#[test]
fn report_shows_duration_and_longer_measured_time() {
    let mut run = work_hard();
    run.starts(0.0, MAIN, "./work hard").starts(0.0, CHILD, "daemon");
    run.reaped(0.5, MAIN, usage(0.25, MIB)).reaped(4.0, CHILD, usage(3.75, MIB));
    run.ends(4.0, |end| {
        (end.duration_seconds, end.measured_seconds) = (0.5, Some(4.0));
        end.reaped = usage(4.0, MIB);
    });
    let (manifest, summary, participants) = read(run);
    let text = text::summary(&summary, None, text::Style::default());
    assert!(text.starts_with("weigh: work · exit 0 · 500 ms, measured for 4.00 s\n"), "{text}");
    let document = Document::of(&manifest, &summary, &participants, Vec::new(), Units::Binary);
    let sentence = &document.verdict.sentence;
    assert_eq!(sentence, "Succeeded (exit 0) after 500 ms and was measured for 4.00 s.");
    assert_eq!(fact(&document.header, "Duration"), "500 ms");
    assert_eq!(fact(&document.header, "Measured for"), "4.00 s");
    let exited = &table(&document, "processes").rows[0];
    assert_eq!((exited[1].text.as_str(), exited[7].text.as_str()), ("daemon", "4.00 s"));
    let short = crate::report::github(&document);
    assert!(short.contains("| **Time** | 500 ms, measured for 4.00 s |"), "{short}");
}

/// Eight seconds with one process that uses two cores and 512 MiB.
fn ordinary() -> FakeRun {
    let mut run = work_hard();
    run.starts(0.0, MAIN, "./work hard");
    for second in 1..=8 {
        run.sample(f64::from(second), |tick| {
            cpu(tick, MAIN, 2.0 * f64::from(second), 0.0);
            memory(tick, MAIN, 512 * MIB, 512 * MIB, None);
            let alone = ProcessEvents { children_faults: Some(0), ..ProcessEvents::default() };
            tick.put(Entity::Process(MAIN), &alone);
        });
    }
    run
}

fn ended_well(run: &mut FakeRun) {
    run.reaped(8.0, MAIN, usage(16.0, 512 * MIB));
    run.ends(8.0, |end| end.reaped = usage(16.0, 512 * MIB));
}

fn fact<'a>(facts: &'a [Fact], label: &str) -> &'a str {
    &facts.iter().find(|fact| fact.label == label).unwrap_or_else(|| panic!("no {label}")).value
}

fn table<'a>(document: &'a Document, name: &str) -> &'a ReportTable {
    document.tables.iter().find(|table| table.name == name).unwrap_or_else(|| panic!("no {name}"))
}

fn texts(row: &[ReportCell]) -> Vec<&str> {
    row.iter().map(|cell| cell.text.as_str()).collect()
}

#[test]
fn successful_run_says_so_in_its_verdict() {
    let mut run = ordinary();
    ended_well(&mut run);
    let document = document(run);
    assert_eq!(
        (document.verdict.severity, document.verdict.sentence.as_str()),
        (None, "Succeeded (exit 0) after 8.00 s.")
    );
    let reasons = document.verdict.reasons.iter();
    let reasons: Vec<_> = reasons.map(|fact| (fact.label.as_str(), fact.value.as_str())).collect();
    assert_eq!(
        reasons,
        [
            (
                "Bottleneck",
                "No single bottleneck: it used 2.00 of 4 cores; several cores 100 % of the time."
            ),
            ("Memory peak", "512 MiB at 1.00 s; all of it in work (pid 10).")
        ]
    );
    assert_eq!(
        (document.title.as_str(), document.command.as_deref()),
        ("work", Some("./work hard"))
    );
    assert_eq!(document.page_header.job, "20231114T221320-00000001");
    assert_eq!(
        (document.page_header.user.as_deref(), document.page_header.nodes),
        (Some("ada"), 1)
    );
    assert_eq!(document.page_header.date, "2023-11-14");
    assert_eq!(fact(&document.header, "Started"), "2023-11-14 22:13:20 UTC");
    assert_eq!(fact(&document.header, "Ended"), "2023-11-14 22:13:28 UTC");
    assert_eq!(fact(&document.header, "Exit"), "exit 0");
    let shares: Vec<_> = document.bars.iter().map(|bar| (bar.label.as_str(), bar.share)).collect();
    let expected = [("CPU", Some(0.5)), ("Memory", Some(0.0625))];
    assert_eq!(shares, expected, "a machine without GPUs has no bar of them");
    let programs = &table(&document, "programs").rows;
    assert_eq!(texts(&programs[0]), ["work", "1", "1", "16.00 s", "512 MiB", "512 MiB"]);
    assert_eq!(programs[0][3].number, Some(16.0));
    let names: Vec<&str> = document.tables.iter().map(|table| table.name.as_str()).collect();
    assert_eq!(names, ["programs", "processes", "nodes"], "tables that hold nothing are not there");
}

#[test]
fn every_row_has_a_cell_for_each_column() {
    let mut run = ordinary();
    run.phase_starts(1.0, "1", "load").phase_ends(2.0, "1");
    run.starts(2.0, CHILD, "daemon").sample(2.0, |tick| cpu(tick, CHILD, 0.0, 0.0));
    run.ends(8.0, |end| end.still_running = vec![CHILD.pid]);
    let document = document(run);
    assert_eq!(document.tables.len(), 5, "all of them");
    for table in document.tables.iter().chain([&document.figures]) {
        assert!(!table.rows.is_empty(), "{}", table.name);
        assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.name);
    }
    assert_eq!(texts(&table(&document, "left").rows[0]), ["11", "daemon"]);
    assert_eq!(texts(&table(&document, "phases").rows[0])[..5], ["load", "1", "0", "0", "1.00 s"]);
}

#[test]
fn killed_or_failed_run_is_a_problem() {
    for (end, words) in [
        (End::Signal(libc::SIGKILL), "Killed by SIGKILL after 8.00 s."),
        (End::Code(3), "Failed (exit 3) after 8.00 s."),
    ] {
        let mut run = ordinary();
        run.ends(8.0, |counters| counters.end = Some(end));
        let document = document(run);
        assert_eq!(document.verdict.severity, Some(Severity::Problem));
        assert!(document.verdict.sentence.starts_with(words), "{}", document.verdict.sentence);
    }
}

#[test]
fn run_without_recorded_end_reports_what_is_known() {
    let document = document(ordinary());
    assert_eq!(document.verdict.severity, Some(Severity::Warning));
    assert!(
        document.verdict.sentence.starts_with("Its end is not recorded (it is known for 8.00 s)."),
        "{}",
        document.verdict.sentence
    );
    assert_eq!(fact(&document.header, "Ended"), "not recorded");
    assert_eq!(fact(&document.header, "Exit"), "not recorded");
    let because: Vec<&String> = document
        .missing
        .iter()
        .filter(|sentence| sentence.ends_with(": the end of the run is not recorded"))
        .collect();
    let [because] = because[..] else { panic!("one sentence: {:?}", document.missing) };
    assert!(because.contains("Page faults, major; Page faults, minor"), "{because}");
    let row = document.figure(FigureId::PageFaultsMajor).unwrap();
    assert_eq!((row[1].text.as_str(), row[1].number), ("unknown", None));
    assert_eq!(row[6].text, "wait4; the end of the run is not recorded");
}

#[test]
fn run_without_measurements_still_has_a_report() {
    let empty = document(work_hard());
    assert_eq!(
        empty.verdict.sentence,
        "Its end is not recorded (it is known for 0 s); what it used is not known."
    );
    assert_eq!((empty.bars[0].share, empty.bars[1].share), (None, None));
    assert_eq!(empty.figure(FigureId::Processes).unwrap()[1].text, "unknown");
    assert_eq!(empty.tables.iter().map(|table| &table.name).collect::<Vec<_>>(), ["nodes"]);

    let mut run = work_hard();
    run.starts(0.0, MAIN, "work").sample(0.001, |tick| {
        cpu(tick, MAIN, 0.0, 0.0);
        memory(tick, MAIN, MIB, MIB, None);
    });
    let once = document(run);
    assert_eq!(once.figure(FigureId::Processes).unwrap()[1].text, "1");
    assert_eq!(table(&once, "processes").rows.len(), 1);
}

#[test]
fn report_has_the_job_id_and_the_labels() {
    let mut run = work_hard();
    run.manifest.job =
        Some(BatchJob { id: Some("4711".to_owned()), ..BatchJob::of(Scheduler::Slurm) });
    run.manifest.labels = [("case".to_owned(), "large".to_owned())].into();
    run.manifest.expected_cores = Some(2.0);
    run.manifest.user = None;
    run.starts(0.0, MAIN, "work");
    run.sample(2.0, |tick| cpu(tick, MAIN, 2.0, 0.0));
    let document = document(run);
    assert_eq!((document.page_header.job.as_str(), document.page_header.user), ("4711", None));
    assert_eq!(fact(&document.header, "Labels"), "case=large");
    assert_eq!(document.bars[0].share, Some(0.5));
    assert_eq!(document.bars[0].note, "1.00 of 2 expected cores used on average");
}

#[test]
fn omitted_rows_are_counted() {
    let mut run = work_hard();
    for number in 0..600 {
        let id = ProcessId { pid: 1000 + number, started: 1 };
        let line = format!("tool-{number}");
        run.starts(1.0, id, &line)
            .sample(1.0, |tick| cpu(tick, id, f64::from(number), 0.0))
            .exits(1.0, id);
    }
    let document = document(run);
    let processes = table(&document, "processes");
    assert_eq!(processes.rows.len(), 500);
    assert!(processes.note.contains("Left out are 100 with less"), "{}", processes.note);
    let programs = table(&document, "programs");
    let last = texts(programs.rows.last().unwrap());
    assert_eq!((last[0], last[1], last[2]), ("others", "400", "–"));
    assert!(programs.note.contains("The 400 lightest are one line"), "{}", programs.note);
}

#[test]
fn figures_are_grouped_by_topic_and_none_is_lost() {
    let mut run = ordinary();
    ended_well(&mut run);
    let document = document(run);
    let topics = document.topics();
    let names: Vec<&str> = topics.iter().map(|(topic, _)| *topic).collect();
    assert_eq!(names[..3], ["CPU", "Memory", "I/O"]);
    assert!(!names.contains(&"GPUs"), "a machine without GPUs has no figures of them");
    assert!(!names.contains(&"Other figures"), "{names:?}");
    let grouped: usize = topics.iter().map(|(_, rows)| rows.len()).sum();
    assert_eq!(grouped + document.important_figures, document.figures.rows.len());
}

#[test]
fn figures_have_unique_labels() {
    let mut run = ordinary();
    ended_well(&mut run);
    let document = document(run);
    let first: Vec<&str> = document.figures.rows.iter().map(|row| row[0].text.as_str()).collect();
    assert_eq!(first[..2], ["Duration", "CPU time"]);
    let labels: std::collections::HashSet<&str> = first.iter().copied().collect();
    assert_eq!(labels.len(), first.len(), "two figures of one name: {first:?}");
}
