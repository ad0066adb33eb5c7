//! Rates and grids with known results, and the text of CSV and JSON files.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, UInt8Type, UInt64Type};
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, RecordBatch, StringArray, TimestampNanosecondArray,
    UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::column::time_type;
use super::formats::csv::CsvSink;
use super::formats::json::JsonSink;
use super::grid::{GridPlan, TimeGrid};
use super::rates::Rates;
use super::{ExportFormat, ExportOptions, Sink, export, shape, tables};
use crate::catalog::RateDenominator;
use crate::catalog::metrics::RunCpu;
use crate::compat::gpu_tracker::tests::process;
use crate::model::{Entity, ProcessId, Tick};
use crate::record::{Event, Recording};
use crate::summary;
use crate::testing::{CHILD, FakeRun, MAIN};

const SECOND: i64 = 1_000_000_000;

fn schema() -> SchemaRef {
    let kind = |kind: &str| HashMap::from([("kind".to_owned(), kind.to_owned())]);
    Arc::new(Schema::new(vec![
        Field::new("time", time_type(), false),
        Field::new("pid", DataType::UInt32, false),
        Field::new("level", DataType::UInt64, true).with_metadata(kind("gauge")),
        Field::new("total", DataType::Float64, true).with_metadata(kind("counter")),
    ]))
}

/// Rows of (seconds, pid, level, total).
fn batch(rows: &[(f64, u32, Option<u64>, Option<f64>)]) -> RecordBatch {
    let times = rows.iter().map(|row| (row.0 * 1e9) as i64);
    let times = TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC");
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times),
        Arc::new(UInt32Array::from_iter_values(rows.iter().map(|row| row.1))),
        Arc::new(UInt64Array::from_iter(rows.iter().map(|row| row.2))),
        Arc::new(Float64Array::from_iter(rows.iter().map(|row| row.3))),
    ];
    RecordBatch::try_new(schema(), columns).unwrap()
}

fn numbers(batch: &RecordBatch, name: &str) -> Vec<Option<f64>> {
    let column = batch.column_by_name(name).unwrap();
    column.as_primitive::<Float64Type>().iter().collect()
}

/// A run on a machine of 8 GB without a GPU.
pub(crate) fn small_machine() -> FakeRun {
    let mut run = FakeRun::new();
    run.manifest.host.memory_bytes = Some(8_000_000_000);
    run.manifest.absent.insert("gpu".to_owned(), "there is none".to_owned());
    run
}

/// A main process that uses 1 s and its reaped child that uses 2 s, inside a phase.
fn parent_and_child() -> (tempfile::TempDir, Recording) {
    let mut run = small_machine();
    run.starts(0.0, MAIN, "work").starts_under(0.0, CHILD, MAIN.pid, "child");
    let clock = |tick: &mut Tick, seconds: f64| {
        tick.put(Entity::Single, &RunCpu { time: Some(seconds), ..RunCpu::default() });
    };
    run.sample(0.0, |tick| {
        process(tick, MAIN, 0.0, 5_000_000, Some((5_000_000, 5_000_000)));
        clock(tick, 0.0);
    });
    run.phase_starts(0.000_001, "step-0", "solve");
    run.sample(2.0, |tick| {
        process(tick, MAIN, 1.0, 5_000_000, Some((5_000_000, 5_000_000)));
        process(tick, CHILD, 2.0, 9_000_000, Some((9_000_000, 9_000_000)));
        clock(tick, 3.0);
    });
    run.phase_ends(2.000_001, "step-0");
    run.sample(2.000_002, |tick| clock(tick, 3.0));
    run.recorded(3.0, 3.0)
}

fn made(recording: &Recording, name: &str) -> RecordBatch {
    let (mut tables, missing) = tables::of(recording, Some(&[name.to_owned()])).unwrap();
    assert_eq!((tables.len(), missing), (1, Vec::new()));
    tables.remove(0).next().unwrap().unwrap()
}

fn words(batch: &RecordBatch, name: &str) -> Vec<Option<String>> {
    let column = batch.column_by_name(name).unwrap().as_string::<i32>();
    column.iter().map(|word| word.map(str::to_owned)).collect()
}

#[test]
fn process_cpu_time_excludes_its_children() {
    let (_directory, recording) = parent_and_child();
    let processes = made(&recording, "processes");
    assert_eq!(numbers(&processes, "cpu_time_seconds"), [Some(1.0), Some(2.0)]);
    let sampled = || Some("sampled".to_owned());
    assert_eq!(words(&processes, "cpu_time_method"), [sampled(), sampled()]);
    assert_eq!(numbers(&processes, "cpu_time_with_children_seconds"), [Some(3.0), None]);
}

#[test]
fn damaged_recording_has_no_exact_process_cpu_time() {
    let mut run = small_machine();
    run.starts(0.0, MAIN, "work").starts(0.0, CHILD, "work");
    run.sample(1.0, |tick| process(tick, CHILD, 1.0, 5_000_000, None));
    let mut exit = Event::ended(CHILD, None, None);
    if let Event::ProcessExit { cpu_seconds, .. } = &mut exit {
        *cpu_seconds = Some(2.0);
    }
    run.event(2.0, exit);
    let (directory, recording) = run.recorded(3.0, 3.0);
    let method = |recording: &Recording| words(&made(recording, "processes"), "cpu_time_method");
    assert_eq!(method(&recording)[1].as_deref(), Some("exact"));
    let events = directory.path().join("run/events.jsonl");
    let text = std::fs::read_to_string(&events).unwrap();
    std::fs::write(&events, text.replacen("2.0", "1.0", 1)).unwrap();
    let recording = Recording::open(&directory.path().join("run")).unwrap();
    assert_eq!(method(&recording)[1].as_deref(), Some("estimated"));
}

#[test]
fn exported_phases_have_the_summarys_figures() {
    let (_directory, recording) = parent_and_child();
    let summary = summary::of(&recording).unwrap();
    let [step] = &summary.phases[..] else { panic!("one phase: {:?}", summary.phases) };
    let phases = made(&recording, "phases");
    let cpu = &step.figures["cpu_time_seconds"];
    assert!((cpu.value.unwrap() - 3.0).abs() < 1e-3, "{cpu:?}");
    assert_eq!(step.cpu_time_seconds, cpu.value, "one figure, one number");
    assert_eq!(numbers(&phases, "cpu_time_seconds"), [cpu.value]);
    let method = cpu.method.map(|method| method.name().to_owned());
    assert_eq!(words(&phases, "cpu_time_method"), [method]);
    let memory = &step.figures["memory_peak_bytes"];
    let exported = phases.column_by_name("memory_peak_bytes").unwrap();
    let exported = exported.as_primitive::<UInt64Type>().value(0);
    assert_eq!(Some(exported as f64), memory.value);
}

#[test]
fn rate_is_over_the_time_since_the_last_value_of_its_process() {
    let roles = shape::roles(&schema()).unwrap();
    let mut rates = Rates::of(&schema(), roles, [].into());
    let rows = rates.rows(&batch(&[
        (1.0, 1, None, Some(10.0)),
        (1.0, 2, None, Some(100.0)),
        (2.0, 1, None, None),
        (3.0, 1, None, Some(14.0)),
        (4.0, 2, None, Some(90.0)),
    ]));
    let found = numbers(&rows.unwrap(), "total_per_second");
    // No rate for the first, for a null, and for a counter that decreased.
    assert_eq!(found, [None, None, None, Some(2.0), None]);
    let later = rates.rows(&batch(&[(5.0, 1, None, Some(20.0))])).unwrap();
    assert_eq!(numbers(&later, "total_per_second"), [Some(3.0)]);
}

#[test]
fn rates_forget_exited_processes() {
    let roles = shape::roles(&schema()).unwrap();
    let key = 1_u64.to_le_bytes().to_vec().into_boxed_slice();
    let mut rates = Rates::of(&schema(), roles, [(2 * SECOND, key)].into());
    let rows = rates.rows(&batch(&[(1.0, 1, None, Some(1.0)), (3.0, 1, None, Some(5.0))]));
    assert_eq!(numbers(&rows.unwrap(), "total_per_second"), [None, None]);
}

#[test]
fn device_that_was_absent_has_no_rate_over_the_gap() {
    let rows = batch(&[
        (1.0, 1, None, Some(10.0)),
        (1.0, 2, None, Some(1.0)),
        (2.0, 2, None, Some(2.0)),
        (3.0, 1, None, Some(50.0)),
        (3.0, 2, None, Some(3.0)),
    ]);
    let ends = shape::disappearances([rows.clone()].into_iter()).unwrap();
    let key = 1_u64.to_le_bytes().to_vec().into_boxed_slice();
    assert_eq!(ends, [(SECOND, key)]);
    let mut rates = Rates::of(&schema(), shape::roles(&schema()).unwrap(), ends);
    let found = numbers(&rates.rows(&rows).unwrap(), "total_per_second");
    assert_eq!(found, [None, None, Some(1.0), None, Some(1.0)]);
}

fn grid(rates: bool, ends: &[(i64, u32)], end: i64, rows: &RecordBatch) -> Vec<RecordBatch> {
    let key = |pid: u32| u64::from(pid).to_le_bytes().to_vec().into_boxed_slice();
    let plan = GridPlan {
        roles: shape::roles(&schema()).unwrap(),
        bases: vec![RateDenominator::default(); 4],
        started: 0,
        step: 10 * SECOND,
        rates,
        windows: None,
        ends: ends.iter().map(|(at, pid)| (*at, key(*pid))).collect(),
        end: Some(end),
    };
    let mut grid = TimeGrid::new(&schema(), plan);
    let mut given = Vec::new();
    let mut give = |batch| {
        given.push(batch);
        Ok(())
    };
    grid.rows(rows, &mut give).unwrap();
    grid.finish(&mut give).unwrap();
    given
}

#[test]
fn gauge_on_a_grid_is_a_time_weighted_mean_carried_forward() {
    let rows = batch(&[
        (0.0, 1, Some(100), Some(0.0)),
        (5.0, 1, Some(200), Some(4.0)),
        (25.0, 1, Some(400), Some(10.0)),
    ]);
    let plain = grid(false, &[], 30 * SECOND, &rows);
    assert_eq!(numbers(&plain[0], "level"), [Some(150.0), Some(200.0), Some(300.0)]);
    assert_eq!(numbers(&plain[0], "total"), [Some(4.0), Some(4.0), Some(10.0)]);
    let rates = grid(true, &[], 30 * SECOND, &rows);
    assert_eq!(numbers(&rates[0], "total_per_second"), [Some(0.4), Some(0.0), Some(0.6)]);
}

#[test]
fn absurd_times_do_not_fill_the_disk() {
    let rows = batch(&[(0.0, 1, Some(1), None), (9e9, 1, Some(1), None)]);
    let plan = GridPlan {
        roles: shape::roles(&schema()).unwrap(),
        bases: vec![RateDenominator::default(); 4],
        started: 0,
        step: SECOND / 1000,
        rates: false,
        windows: None,
        ends: [].into(),
        end: None,
    };
    let mut grid = TimeGrid::new(&schema(), plan);
    let refused = grid.rows(&rows, &mut |_| Ok(()));
    assert!(refused.unwrap_err().to_string().contains("further apart"));
}

#[test]
fn dictionary_is_the_same_in_all_batches_of_a_grid() {
    let kind = HashMap::from([("kind".to_owned(), "gauge".to_owned())]);
    let fields = vec![
        Field::new("time", time_type(), false),
        Field::new("pid", DataType::UInt32, false),
        Field::new("doing", super::column::symbol_type(), true).with_metadata(kind),
    ];
    let schema: SchemaRef = Arc::new(Schema::new(fields));
    // More rows than one batch; the symbol changes on the way.
    let count = 20_000;
    let times = TimestampNanosecondArray::from_iter_values((0..count).map(|row| row * SECOND));
    let words = ["sleeping", "running"].map(Some);
    let places = (0..count).map(|row| u8::from(row > count / 2));
    let doing = DictionaryArray::<UInt8Type>::new(
        UInt8Array::from_iter_values(places),
        Arc::new(StringArray::from(words.to_vec())),
    );
    let columns: Vec<ArrayRef> = vec![
        Arc::new(times.with_timezone("UTC")),
        Arc::new(UInt32Array::from(vec![1; count as usize])),
        Arc::new(doing),
    ];
    let rows = RecordBatch::try_new(schema.clone(), columns).unwrap();
    let plan = GridPlan {
        roles: shape::roles(&schema).unwrap(),
        bases: vec![RateDenominator::default(); 3],
        started: 0,
        step: SECOND,
        rates: false,
        windows: None,
        ends: [].into(),
        end: None,
    };
    let (mut grid, mut given) = (TimeGrid::new(&schema, plan), Vec::new());
    let mut give = |batch| {
        given.push(batch);
        Ok(())
    };
    grid.rows(&rows, &mut give).unwrap();
    grid.finish(&mut give).unwrap();
    assert!(given.len() > 1);
    for batch in &given {
        let found = batch.column(2).as_dictionary::<UInt8Type>();
        assert_eq!(found.values().as_string::<i32>().iter().collect::<Vec<_>>(), words);
    }
}

#[test]
fn process_has_no_rows_after_its_exit() {
    let rows =
        batch(&[(0.0, 1, Some(100), None), (0.0, 2, Some(1), None), (35.0, 2, Some(1), None)]);
    let given = grid(false, &[(12 * SECOND, 1)], 40 * SECOND, &rows);
    let pids = given[0].column(1).as_primitive::<arrow_array::types::UInt32Type>();
    assert_eq!(pids.values().iter().filter(|pid| **pid == 1).count(), 2);
    assert_eq!(pids.values().iter().filter(|pid| **pid == 2).count(), 4);
}

/// Writes a column of texts with a sink.
fn written(rows: &[Option<&str>], sink: impl Sink) {
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("a,b", DataType::Utf8, true)]));
    let column: ArrayRef = Arc::new(StringArray::from(rows.to_vec()));
    let batch = RecordBatch::try_new(schema.clone(), vec![column]).unwrap();
    let mut sink = Box::new(sink);
    sink.begin("table", &schema).unwrap();
    sink.rows(&batch).unwrap();
    sink.finish().unwrap();
}

#[test]
fn csv_quotes_where_needed_and_null_differs_from_empty() {
    let mut bytes = Vec::new();
    let rows = [Some("plain"), None, Some(""), Some("a \"b\", c"), Some("two\nlines")];
    written(&rows, CsvSink::new(&mut bytes, false));
    let expected = "\"a,b\"\nplain\n\n\"\"\n\"a \"\"b\"\", c\"\n\"two\nlines\"\n";
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
}

#[test]
fn csv_escapes_control_characters_and_spreadsheet_formulas() {
    let rows = [Some("=1+1"), Some("@x"), Some("-5"), Some("a-b"), Some("\u{1b}[31m\u{7}\t.")];
    for (safe, expected) in [
        (false, "\"a,b\"\n=1+1\n@x\n-5\na-b\n\\u{1b}[31m\\u{7}\t.\n"),
        (true, "\"a,b\"\n'=1+1\n'@x\n'-5\na-b\n\\u{1b}[31m\\u{7}\t.\n"),
    ] {
        let mut bytes = Vec::new();
        written(&rows, CsvSink::new(&mut bytes, safe));
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}

#[test]
fn json_is_an_array_or_lines() {
    let mut bytes = Vec::new();
    written(&[Some("a\"b"), None], JsonSink::array(&mut bytes));
    let expected = "[\n{\"a,b\":\"a\\\"b\"},\n{\"a,b\":null}\n]\n";
    assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    let mut bytes = Vec::new();
    written(&[Some("x"), None], JsonSink::lines(&mut bytes));
    assert_eq!(String::from_utf8(bytes).unwrap(), "{\"a,b\":\"x\"}\n{\"a,b\":null}\n");
}

#[test]
fn trace_has_lanes_of_programs_that_do_not_overlap_and_counters() {
    let mut run = small_machine();
    run.starts(0.0, MAIN, "make");
    for (pid, from, to) in [(11, 0.5, 1.5), (12, 1.0, 2.0), (13, 1.5, 2.5)] {
        let id = ProcessId { pid, started: 100 + u64::from(pid) };
        run.starts_under(from, id, MAIN.pid, "cc1").exits(to, id);
    }
    run.sample(0.0, |tick| process(tick, MAIN, 0.0, 5_000_000, None));
    run.sample(2.0, |tick| process(tick, MAIN, 1.0, 5_000_000, None));
    let (directory, recording) = run.recorded(3.0, 3.0);
    let options = ExportOptions { formats: vec![ExportFormat::Trace], ..ExportOptions::default() };
    export(&recording, &options, &directory.path().join("out"), |_| {}).unwrap();
    let text = std::fs::read_to_string(directory.path().join("out/run.trace.json")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let of = |phase: &str| events.iter().filter(|event| event["ph"] == phase).collect::<Vec<_>>();
    let spans: Vec<_> = of("X").into_iter().filter(|event| event["name"] == "cc1").collect();
    let lanes: Vec<_> = spans.iter().map(|span| span["tid"].as_u64().unwrap()).collect();
    assert_eq!(lanes, [0, 1, 0], "the third starts when the first has ended");
    let times = |span: &serde_json::Value| (span["ts"].as_f64().unwrap(), span["dur"].as_f64());
    assert_eq!(times(spans[0]), (500_000.0, Some(1_000_000.0)));
    assert_eq!(spans[0]["args"]["pid"], 11);
    let names: Vec<_> = of("M").iter().map(|event| event["args"]["name"].clone()).collect();
    assert_eq!(names, ["cc1", "make"]);
    assert!(of("C").iter().any(|event| event["name"] == "cores used"), "{text}");
}
