//! The tables of a recording: measurements, one for each scope, and events.
//!
//! Measurements are the batches of the recording's streams as they are, so columns that this
//! version of weigh does not know are exported, too; only the table of the run as a whole is derived
//! (`run_table`). Processes, phases and marks are small tables
//! made from the events; figures of phases come from the summary, so that `weigh show` and an
//! export agree.

use std::collections::HashMap;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, SchemaRef};

use super::column::time_type;
use super::run_table::RunTable;
use super::table_builder::TableBuilder;
use super::{Cause, Error, own_cpu};
use crate::catalog::{FigureId, SOURCES, Scope, Source, groups};
use crate::model::{End, ProcessId, Usage, numbering};
use crate::record::{self, BaselinedBatches, Event, Recording};
use crate::summary::{self, Method};

/// A table that an export may have, for help and guides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableDescription {
    /// Its name.
    pub name: &'static str,
    /// What one of its rows is about.
    pub row: &'static str,
    /// The columns that identify a row.
    pub keys: &'static str,
}

/// Tables made from events.
const EVENT_TABLES: [TableDescription; 3] = [
    TableDescription {
        name: "processes",
        row: "each process: name, command, when and how it exited, its own CPU time, and that with \
              the children it reaped",
        keys: "time, pid, started",
    },
    TableDescription {
        name: "phases",
        row: "each phase, with the CPU time and memory that weigh show --phases has",
        keys: "time, id",
    },
    TableDescription { name: "marks", row: "each mark", keys: "time" },
];

fn measured(scope: Scope) -> TableDescription {
    let (row, keys) = match scope {
        Scope::Node => ("the machine at one tick", "time"),
        Scope::Cpu => ("one CPU at one tick, with --per-cpu", "time, cpu"),
        Scope::Nic => ("one network device at one tick", "time, device"),
        Scope::IbPort => ("one InfiniBand port at one tick", "time, port"),
        Scope::Disk => ("one disk at one tick", "time, device"),
        Scope::Energy => ("one energy domain or power meter at one tick", "time, domain"),
        Scope::Gpu => ("one GPU at one tick", "time, gpu"),
        Scope::GpuProcess => ("one process on one GPU at one tick", "time, gpu, pid, started"),
        Scope::PerfEvent => ("one hardware or software event at one tick", "time, event"),
        Scope::Run => (
            "the run as a whole at one tick: CPU time, memory, processes, threads, I/O, GPUs",
            "time",
        ),
        Scope::Cgroup => ("the cgroup of the run at one tick, with --cgroup", "time"),
        Scope::Process => ("one process at one tick in which it ran", "time, pid, started"),
        Scope::Own => ("weigh itself at one tick", "time"),
    };
    TableDescription { name: scope.name(), row, keys }
}

/// All possible tables.
pub fn descriptions() -> impl Iterator<Item = TableDescription> {
    Scope::ALL.into_iter().map(measured).chain(EVENT_TABLES)
}

/// One table, an iterator over its batches.
pub(super) struct ExportTable<'a> {
    /// Its name.
    pub name: &'static str,
    /// Its columns.
    pub schema: SchemaRef,
    /// Its number of rows.
    pub rows: u64,
    /// Where its rows come from.
    pub batches: BatchSource<'a>,
}

/// The rows of a table: as recorded, derived while they are read, or made from events.
pub(super) enum BatchSource<'a> {
    Recorded(Box<BaselinedBatches>),
    Run(Box<RunTable<'a>>),
    Made(Option<RecordBatch>),
}

impl Iterator for ExportTable<'_> {
    type Item = Result<RecordBatch, record::Error>;

    fn next(&mut self) -> Option<Self::Item> {
        match &mut self.batches {
            BatchSource::Recorded(batches) => batches.next(),
            BatchSource::Run(batches) => batches.next(),
            BatchSource::Made(batch) => batch.take().map(Ok),
        }
    }
}

/// The names of all possible tables.
pub fn names() -> impl Iterator<Item = &'static str> {
    descriptions().map(|table| table.name)
}

/// The requested tables of a recording, or all that are not empty; and what is missing.
pub(super) fn of<'a>(
    recording: &'a Recording,
    wanted: Option<&[String]>,
) -> Result<(Vec<ExportTable<'a>>, Vec<String>), Error> {
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.iter().any(|one| one == name));
    let (mut tables, mut missing) = (Vec::new(), Vec::new());
    for scope in Scope::ALL.into_iter().filter(|scope| is_wanted(scope.name())) {
        let name = scope.name();
        if let Some(run) = Some(recording).filter(|_| scope == Scope::Run).map(RunTable::of) {
            let run = run?;
            // A recording without a complete tick has nothing of the run as a whole.
            if run.rows > 0 {
                let (schema, rows) = (run.schema(), run.rows);
                let batches = BatchSource::Run(Box::new(run));
                tables.push(ExportTable { name, schema, rows, batches });
                continue;
            }
        }
        let Some(batches) = recording.baselined_batches(scope)? else {
            if was_measured(recording, scope) {
                missing.push(format!("{name}: its file is missing"));
            } else if wanted.is_some() {
                missing.push(format!("{name}: it was not measured in this run"));
            }
            continue;
        };
        let schema = batches.schema().filter(|schema| {
            schema.fields().first().is_some_and(|first| *first.data_type() == time_type())
        });
        let Some(schema) = schema else {
            missing.push(format!("{name}: its file has no complete batch"));
            continue;
        };
        let rows = batches.rows();
        let batches = BatchSource::Recorded(Box::new(batches));
        tables.push(ExportTable { name: scope.name(), schema, rows, batches });
    }
    for name in EVENT_TABLES.map(|table| table.name).into_iter().filter(|name| is_wanted(name)) {
        let made = event_table(recording, name, &mut missing).map_err(Cause::from)?;
        // A run without phases has no table of phases, unless it is requested.
        if made.num_rows() > 0 || wanted.is_some() {
            let (schema, rows) = (made.schema(), made.num_rows() as u64);
            tables.push(ExportTable { name, schema, rows, batches: BatchSource::Made(Some(made)) });
        }
    }
    Ok((tables, missing))
}

/// Whether an enabled collector has metrics of this scope.
fn was_measured(recording: &Recording, scope: Scope) -> bool {
    let used = |source: &&Source| recording.manifest().collects(source.id);
    let groups = groups(SOURCES.iter().filter(used));
    groups.into_iter().flatten().any(|metric| metric.scope == scope)
}

/// A table made from events. What it lacks because samples cannot be read is added to `missing`.
fn event_table(
    recording: &Recording,
    name: &str,
    missing: &mut Vec<String>,
) -> Result<RecordBatch, ArrowError> {
    let mut lacks = |error: record::Error| missing.push(format!("{name}: CPU time: {error}"));
    match name {
        "processes" => {
            let own = own_cpu::of(recording).map_err(&mut lacks).unwrap_or_default();
            processes(recording, &own)
        }
        "phases" => {
            // Most recordings have no phases; then the samples need not be read.
            let rows = phases_of(recording);
            let summary = Some(()).filter(|()| !rows.is_empty()).map(|()| summary::of(recording));
            let summary = summary.and_then(|summary| summary.map_err(&mut lacks).ok());
            phases(&rows, &summary.map_or_else(Vec::new, |summary| summary.phases))
        }
        _ => marks(recording),
    }
}

/// A time of the run in nanoseconds since 1970.
pub(super) fn timestamp_of(recording: &Recording, seconds: f64) -> i64 {
    started(recording).saturating_add((seconds * 1e9).round() as i64)
}

/// When the run began, in nanoseconds since 1970.
pub(super) fn started(recording: &Recording) -> i64 {
    i64::try_from(recording.manifest().started.as_nanosecond()).unwrap_or(0)
}

/// How a process or phase ended, as far as known.
#[derive(Default, Clone)]
struct EndRecord {
    at: Option<i64>,
    end: Option<End>,
    usage: Option<Usage>,
}

impl EndRecord {
    fn columns<T>(columns: &mut TableBuilder, rows: &[T], of: impl Fn(&T) -> &EndRecord) {
        columns.times("ended", "When it ended", rows, |row| of(row).at);
        let code = |row: &T| of(row).end.map(|end| i64::from(end.exit_code()));
        columns.integers("exit_code", "128 and the signal when one killed it", rows, code);
    }

    /// `ru_maxrss` of `wait4`: the largest process.
    fn largest<T>(columns: &mut TableBuilder, rows: &[T], of: impl Fn(&T) -> &EndRecord) {
        let largest = |row: &T| of(row).usage.map(|usage| usage.largest_rss_bytes);
        columns.counts("largest_process_bytes", "Largest process, from wait4", rows, largest);
    }
}

struct ExportedProcess {
    at: i64,
    pid: u32,
    started: u64,
    parent: u32,
    name: String,
    command: Option<Vec<String>>,
    ended: EndRecord,
}

/// One row for each process.
fn processes(
    recording: &Recording,
    own: &HashMap<ProcessId, (f64, Method)>,
) -> Result<RecordBatch, ArrowError> {
    let mut rows: Vec<ExportedProcess> = Vec::new();
    let mut places: HashMap<(u32, u64), usize> = HashMap::new();
    for entry in recording.entries() {
        let at = timestamp_of(recording, entry.seconds);
        match &entry.event {
            Event::ProcessStart { pid, started, parent, name, command, .. } => {
                places.insert((*pid, *started), rows.len());
                rows.push(ExportedProcess {
                    at,
                    pid: *pid,
                    started: *started,
                    parent: *parent,
                    name: name.clone(),
                    command: command.clone(),
                    ended: EndRecord::default(),
                });
            }
            Event::ProcessExec { pid, started, name, command, .. } => {
                if let Some(&place) = places.get(&(*pid, *started)) {
                    rows[place].name.clone_from(name);
                    rows[place].command.clone_from(command);
                }
            }
            Event::ProcessExit { pid, started, end, usage, .. } => {
                if let Some(&place) = places.get(&(*pid, *started)) {
                    rows[place].ended = EndRecord { at: Some(at), end: *end, usage: *usage };
                }
            }
            _ => {}
        }
    }
    let mut columns = TableBuilder::default();
    columns.times("time", "When it was first seen", &rows, |row| Some(row.at));
    columns.pids("pid", "Its pid", &rows, |row| row.pid);
    columns.counts("started", "Clock ticks from boot to its start", &rows, |row| Some(row.started));
    columns.integers("parent", "Its parent, or the process it was reparented to", &rows, |row| {
        Some(i64::from(row.parent))
    });
    columns.texts("name", "Its name at the end", &rows, |row| Some(row.name.clone()));
    columns.texts("command", "Its arguments, with spaces between them", &rows, |row| {
        row.command.as_ref().map(|command| command.join(" "))
    });
    EndRecord::columns(&mut columns, &rows, |row| &row.ended);
    let own = |row: &ExportedProcess| own.get(&ProcessId { pid: row.pid, started: row.started });
    let help = "CPU time of it alone, without its children";
    columns.numbers(FigureId::CpuTime.name(), help, &rows, |row| own(row).map(|own| own.0));
    EndRecord::largest(&mut columns, &rows, |row| &row.ended);
    let help = "Method of that CPU time: exact, or sampled before its exit";
    columns
        .texts("cpu_time_method", help, &rows, |row| own(row).map(|own| own.1.name().to_owned()));
    let help = "CPU time of it and of its reaped children, from wait4";
    columns.numbers("cpu_time_with_children_seconds", help, &rows, |row| {
        row.ended.usage.map(|usage| usage.cpu_seconds())
    });
    if recording.manifest().is_merged() {
        let member = |row: &ExportedProcess| Some(numbering::original(row.pid).0 as i64 + 1);
        let help = "The first recording of those with its pid namespace, counted from 1";
        columns.integers("member", help, &rows, member);
        let pid = |row: &ExportedProcess| Some(i64::from(numbering::original(row.pid).1));
        columns.integers("member_pid", "Its pid there", &rows, pid);
    }
    columns.done()
}

/// A phase of a run, from its events.
pub(super) struct ExportedPhase {
    /// Its unique id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// When it began, in nanoseconds since 1970.
    pub at: i64,
    parent: Option<String>,
    ended: EndRecord,
}

impl ExportedPhase {
    /// When it ended, if it did.
    pub(super) fn ended(&self) -> Option<i64> {
        self.ended.at
    }
}

/// The phases of a run, in the order they began.
pub(super) fn phases_of(recording: &Recording) -> Vec<ExportedPhase> {
    let mut rows: Vec<ExportedPhase> = Vec::new();
    // The last row of each id: a linear search for each end would take a minute for 100,000 phases.
    let mut places: HashMap<&str, usize> = HashMap::new();
    for entry in recording.entries() {
        let at = timestamp_of(recording, entry.seconds);
        match &entry.event {
            Event::PhaseStart { id, name, parent } => {
                places.insert(id, rows.len());
                rows.push(ExportedPhase {
                    id: id.clone(),
                    name: name.clone(),
                    at,
                    parent: parent.clone(),
                    ended: EndRecord::default(),
                });
            }
            Event::PhaseEnd { id, usage, end, .. } => {
                if let Some(place) = places.get(id.as_str()) {
                    rows[*place].ended = EndRecord { at: Some(at), end: *end, usage: *usage };
                }
            }
            _ => {}
        }
    }
    rows
}

/// One row for each phase, with the summary's figures.
fn phases(rows: &[ExportedPhase], used: &[summary::Phase]) -> Result<RecordBatch, ArrowError> {
    const CPU: FigureId = FigureId::CpuTime;
    const MEMORY: FigureId = FigureId::MemoryPeak;
    let used = |row: usize| used.get(row).filter(|used| used.id == rows[row].id);
    let figure = |row: usize, id| used(row).and_then(|used| used.figures.get(id));
    let value = |row: usize, id| figure(row, id).and_then(|figure| figure.value);
    let method = |row: usize, id| {
        figure(row, id).and_then(|figure| figure.method).map(|method| method.name().to_owned())
    };
    let places: Vec<usize> = (0..rows.len()).collect();
    let mut columns = TableBuilder::default();
    columns.times("time", "When it began", rows, |row| Some(row.at));
    columns.texts("id", "Unique id", rows, |row| Some(row.id.clone()));
    columns.texts("name", "Its name", rows, |row| Some(row.name.clone()));
    columns.texts("parent", "The phase around it", rows, |row| row.parent.clone());
    columns.numbers("duration_seconds", "How long it lasted", rows, |row| {
        row.ended.at.map(|end| end.saturating_sub(row.at) as f64 / 1e9)
    });
    EndRecord::columns(&mut columns, rows, |row| &row.ended);
    let help = "CPU time of its command, or of the whole run while it lasted";
    columns.numbers(CPU.name(), help, &places, |row| value(*row, CPU));
    EndRecord::largest(&mut columns, rows, |row| &row.ended);
    let help = "Method of that CPU time: exact, sampled or estimated";
    columns.texts("cpu_time_method", help, &places, |row| method(*row, CPU));
    let help = "Peak of the memory of its command, or of the whole run while it lasted";
    columns
        .counts(MEMORY.name(), help, &places, |row| value(*row, MEMORY).map(|bytes| bytes as u64));
    let help = "Method of that peak: exact, sampled or estimated";
    columns.texts("memory_peak_method", help, &places, |row| method(*row, MEMORY));
    columns.done()
}

fn marks(recording: &Recording) -> Result<RecordBatch, ArrowError> {
    let marks = recording.entries().iter().filter_map(|entry| match &entry.event {
        Event::Mark { text } => Some((timestamp_of(recording, entry.seconds), text.clone())),
        _ => None,
    });
    let rows: Vec<(i64, String)> = marks.collect();
    let mut columns = TableBuilder::default();
    columns.times("time", "When", &rows, |row| Some(row.0));
    columns.texts("text", "Text of the mark", &rows, |row| Some(row.1.clone()));
    columns.done()
}
