//! The Chrome trace-event format, which Perfetto and `chrome://tracing` open: one track of lanes for
//! each program, phases, marks, and counters of CPU, memory and GPUs.
//!
//! The format ("Trace Event Format", the JSON object form) has no null and no table: of each table
//! the columns that a timeline can show are taken, and tables without any are left out. A lane is a
//! "thread" and a program a "process" of the trace; a real pid for each would be a hundred thousand
//! tracks for a build.

use std::collections::BTreeMap;
use std::io::Write;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use serde_json::{Map, Value, json};

use super::super::column::{ArrowColumn, CellValue};
use super::super::{Cause, Sink};
use crate::catalog::FigureId;

/// A trace of all tables.
pub(super) struct TraceSink<W> {
    out: W,
    table: String,
    columns: Vec<String>,
    /// Nanoseconds since 1970 of the first row.
    zero: Option<i64>,
    /// The last time in any row, in microseconds since the first.
    last: f64,
    any: bool,
    /// Processes by program, and phases.
    spans: BTreeMap<String, Vec<Span>>,
    /// Counters that only grow, as last seen.
    before: BTreeMap<String, (f64, f64)>,
}

/// Something with a start and an end.
struct Span {
    start: f64,
    /// `None` while it lasts.
    end: Option<f64>,
    name: String,
    details: Map<String, Value>,
}

/// The track of phases and marks.
const PHASES: &str = "phases";

/// The columns of a process that are shown when it is selected.
const DETAILS: [&str; 7] = [
    "pid",
    "parent",
    "command",
    FigureId::CpuTime.name(),
    "cpu_time_method",
    "largest_process_bytes",
    "exit_code",
];

/// Gauges that are counters of a trace, by table and column, with their names and divisors.
const GAUGES: [(&str, &str, &str, f64); 5] = [
    ("run", "memory_used_bytes", "memory of the run (MiB)", MIB),
    ("run", "processes_alive", "processes", 1.0),
    ("node", "memory_used_bytes", "memory of the machine (MiB)", MIB),
    ("gpu", "activity_utilization_ratio", "utilization (%)", 0.01),
    ("gpu", "memory_used_bytes", "memory (MiB)", MIB),
];

const MIB: f64 = 1_048_576.0;

/// The run's CPU time, whose rate is the number of cores used.
const CPU: (&str, &str, &str) = ("run", "usage_cpu_seconds", "cores used");

impl<W: Write> TraceSink<W> {
    pub(super) fn new(mut out: W) -> Result<TraceSink<W>, Cause> {
        out.write_all(b"{\"displayTimeUnit\":\"ms\",\"traceEvents\":[")?;
        Ok(TraceSink {
            out,
            table: String::new(),
            columns: Vec::new(),
            zero: None,
            last: 0.0,
            any: false,
            spans: BTreeMap::new(),
            before: BTreeMap::new(),
        })
    }

    fn write(&mut self, event: &Value) -> Result<(), Cause> {
        self.out.write_all(if self.any { b",\n" } else { b"\n" })?;
        self.any = true;
        Ok(serde_json::to_writer(&mut self.out, event)?)
    }

    /// A time in microseconds since the first row.
    fn micros(&mut self, cell: CellValue<'_>) -> Option<f64> {
        let CellValue::Time(at) = cell else { return None };
        let zero = *self.zero.get_or_insert(at);
        let at = at.saturating_sub(zero) as f64 / 1e3;
        self.last = self.last.max(at);
        Some(at)
    }

    fn row<'a>(&mut self, cell: &dyn Fn(&str) -> CellValue<'a>) -> Result<(), Cause> {
        let Some(at) = self.micros(cell("time")) else { return Ok(()) };
        let text = |column: &str| match json_of(cell(column)) {
            Value::String(text) => Some(text),
            _ => None,
        };
        match self.table.as_str() {
            "processes" | "phases" => {
                let end = self.micros(cell("ended"));
                let name = text("name").unwrap_or_else(|| "?".to_owned());
                let known = DETAILS.map(|column| (column, json_of(cell(column))));
                let details = known.into_iter().filter(|(_, value)| !value.is_null());
                let details = details.map(|(column, value)| (column.to_owned(), value)).collect();
                let track = if self.table == PHASES { PHASES } else { &name };
                let spans = self.spans.entry(track.to_owned()).or_default();
                spans.push(Span { start: at, end, name, details });
            }
            "marks" => {
                let name = text("text").unwrap_or_default();
                let mark = json!({"ph": "i", "s": "g", "name": name, "ts": at, "pid": 0, "tid": 0});
                self.write(&mark)?;
            }
            table => {
                let of = text("gpu").map_or_else(String::new, |gpu| format!("{gpu} "));
                let mut counters = Vec::new();
                for (of_table, column, name, divisor) in GAUGES {
                    if of_table == table
                        && let Some(value) = cell(column).number()
                    {
                        counters.push((format!("{of}{name}"), value / divisor));
                    }
                }
                if table == CPU.0
                    && let Some(now) = cell(CPU.1).number()
                    && let Some((before, used)) = self.before.insert(table.to_owned(), (at, now))
                    && at > before
                {
                    counters.push((CPU.2.to_owned(), (now - used).max(0.0) / (at - before) * 1e6));
                }
                // JSON has no NaN.
                counters.retain(|(_, value)| value.is_finite());
                for (name, value) in counters {
                    let args = json!({ "value": value });
                    let counter =
                        json!({"ph": "C", "name": name, "ts": at, "pid": 0, "args": args});
                    self.write(&counter)?;
                }
            }
        }
        Ok(())
    }

    /// Writes the spans of one track, each on the first lane that is free.
    fn track(&mut self, place: usize, name: &str, mut spans: Vec<Span>) -> Result<(), Cause> {
        let args = json!({ "name": name });
        self.write(&json!({"ph": "M", "name": "process_name", "pid": place, "args": args}))?;
        spans.sort_by(|one, other| one.start.total_cmp(&other.start));
        let mut lanes: Vec<f64> = Vec::new();
        for span in spans {
            let end = span.end.unwrap_or(self.last).max(span.start);
            let free = lanes.iter().position(|until| *until <= span.start);
            let lane = free.unwrap_or(lanes.len());
            match free {
                Some(lane) => lanes[lane] = end,
                None => lanes.push(end),
            }
            self.write(&json!({
                "ph": "X", "name": span.name, "ts": span.start, "dur": end - span.start,
                "pid": place, "tid": lane, "args": span.details,
            }))?;
        }
        Ok(())
    }
}

impl<W: Write> Sink for TraceSink<W> {
    fn begin(&mut self, table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        table.clone_into(&mut self.table);
        self.columns = schema.fields().iter().map(|field| field.name().clone()).collect();
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        let columns = ArrowColumn::all(batch)?;
        let names = std::mem::take(&mut self.columns);
        let place = |name: &str| names.iter().position(|column| column == name);
        for row in 0..batch.num_rows() {
            self.row(&|name| {
                place(name).map_or(CellValue::Null, |place| columns[place].cell(row))
            })?;
        }
        self.columns = names;
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Cause> {
        for (place, (name, spans)) in std::mem::take(&mut self.spans).into_iter().enumerate() {
            self.track(place + 1, &name, spans)?;
        }
        self.out.write_all(b"\n]}\n")?;
        Ok(self.out.flush()?)
    }
}

fn json_of(cell: CellValue<'_>) -> Value {
    match cell {
        CellValue::U64(number) => number.into(),
        CellValue::I64(number) => number.into(),
        CellValue::F64(number) => number.into(),
        CellValue::Text(text) => text.into(),
        CellValue::Time(_) | CellValue::Null => Value::Null,
    }
}
