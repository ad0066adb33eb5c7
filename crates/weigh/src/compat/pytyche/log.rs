//! The lines of a RunLog: phases when they end, and events.
//!
//! Events are the marks of the run, its start and its end. What was measured for a phase comes
//! after the keys that every phase has. pytyche lets such a key replace `ts` or `type`; here keys
//! are weigh's own, and none occurs twice.

use super::{LOG, timestamp};
use crate::catalog::FigureId;
use crate::compat::python::{PythonValue, dumps_line, rounded};
use crate::record::{Event, Recording};
use crate::summary::{Figures, Phase, Run, Summary};

/// A line and its time in the run.
type LogLine = (f64, Vec<(String, PythonValue)>);

/// The log of a run, in the order of time.
pub(super) fn lines(recording: &Recording, summary: &Summary) -> Vec<String> {
    let mut lines = vec![event(0.0, "run_start", begin(&summary.run))];
    lines.extend(summary.phases.iter().filter_map(phase));
    for entry in recording.entries() {
        match &entry.event {
            Event::Mark { text } => lines.push(event(entry.seconds, text, Vec::new())),
            last if last.is_last() => {
                lines.push(event(entry.seconds, "run_end", end(summary)));
            }
            _ => {}
        }
    }
    // Rounded, because a phase that ends with the run must stay before `run_end` despite float errors.
    lines.sort_by_key(|(seconds, _)| (seconds * 1e9).round() as i64);
    let started = recording.manifest().started;
    let text = |(seconds, mut entries): LogLine| {
        entries.insert(0, named("ts", PythonValue::Text(timestamp(started, seconds))));
        dumps_line(&PythonValue::Map(entries))
    };
    lines.into_iter().map(text).collect()
}

/// What the log does not have, and why.
pub(super) fn missing(summary: &Summary) -> Option<String> {
    let open = summary.phases.iter().filter(|phase| phase.duration_seconds.is_none()).count();
    (open > 0).then(|| format!("{LOG}: phases without an end are left out: {open}"))
}

fn named(name: &str, value: PythonValue) -> (String, PythonValue) {
    (name.to_owned(), value)
}

fn text(text: &str) -> PythonValue {
    PythonValue::Text(text.to_owned())
}

/// An event; `data` is left out where it is empty.
fn event(seconds: f64, name: &str, about: Vec<(String, PythonValue)>) -> LogLine {
    let mut entries = vec![named("type", text("event")), named("event", text(name))];
    if !about.is_empty() {
        entries.push(named("data", PythonValue::Map(about)));
    }
    (seconds, entries)
}

fn phase(phase: &Phase) -> Option<LogLine> {
    let lasted = phase.duration_seconds?;
    let mut entries = vec![
        named("type", text("phase")),
        named("name", text(&phase.name)),
        named("seconds", PythonValue::Real(rounded(lasted, 3))),
    ];
    entries.extend(exit_code(phase.exit_code));
    entries.extend(used(&phase.figures));
    Some((phase.start_seconds + lasted, entries))
}

fn begin(run: &Run) -> Vec<(String, PythonValue)> {
    let mut about = vec![named("run", text(&run.id)), named("name", text(&run.name))];
    let arguments = |command: &Vec<String>| command.iter().map(|argument| text(argument)).collect();
    about.extend(
        run.command.as_ref().map(|command| named("command", PythonValue::List(arguments(command)))),
    );
    if !run.labels.is_empty() {
        let labels = run.labels.iter().map(|(label, value)| named(label, text(value)));
        about.push(named("labels", PythonValue::Map(labels.collect())));
    }
    about
}

fn end(summary: &Summary) -> Vec<(String, PythonValue)> {
    let seconds = PythonValue::Real(rounded(summary.run.duration_seconds, 3));
    let mut about = vec![named("seconds", seconds)];
    about.extend(exit_code(summary.run.exit_code));
    about.extend(used(&summary.figures));
    about
}

fn exit_code(code: Option<i32>) -> Option<(String, PythonValue)> {
    code.map(|code| named("exit_code", PythonValue::Whole(i64::from(code))))
}

/// What is known of CPU time and memory; what is not has no key.
fn used(figures: &Figures) -> impl Iterator<Item = (String, PythonValue)> {
    let cpu =
        figures.value(FigureId::CpuTime).map(|seconds| PythonValue::Real(rounded(seconds, 3)));
    let memory = figures.value(FigureId::MemoryPeak).map(PythonValue::count);
    let both = [(FigureId::CpuTime, cpu), (FigureId::MemoryPeak, memory)];
    both.into_iter().filter_map(|(id, value)| Some(named(id.name(), value?)))
}
