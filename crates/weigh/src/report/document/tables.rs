//! Who did what: programs, processes, phases, nodes, and who stayed behind.

use super::{Cell, Column, Table};
use crate::catalog::FigureId;
use crate::model::{End, numbering, signal_name};
use crate::quantity::{self, Units};
use crate::record::{Entry, Event};
use crate::report::census::{Participants, Process};
use crate::report::phases::nested;
use crate::summary::phases::Named;
use crate::summary::{Method, Summary, Tool};

pub(super) fn table(name: &str, title: &str, note: String, columns: Vec<Column>) -> Table {
    Table { name: name.to_owned(), title: title.to_owned(), note, columns, rows: Vec::new() }
}

/// The moments that were marked.
pub(in crate::report) fn marks(entries: &[Entry]) -> Table {
    const MOST: usize = 500;
    let told = |entry: &Entry| match &entry.event {
        Event::Mark { text } => Some(vec![seconds(Some(entry.seconds)), Cell::text(&**text)]),
        _ => None,
    };
    let columns = vec![Column::number("At"), Column::text("Mark")];
    let mut rows: Vec<Vec<Cell>> = entries.iter().filter_map(told).collect();
    let more = rows.len().saturating_sub(MOST);
    rows.truncate(MOST);
    let note = if more > 0 { format!("{more} later ones are left out.") } else { String::new() };
    Table { rows, ..table("marks", "Marks", note, columns) }
}

pub(super) fn bytes(value: Option<u64>, units: Units) -> Cell {
    Cell::number(value.map(|value| value as f64), |value| quantity::bytes(value, units))
}

fn seconds(value: Option<f64>) -> Cell {
    Cell::number(value, quantity::seconds)
}

/// CPU time of a process or program; `~` marks what a sample said, and not its end.
fn cpu_time(value: Option<f64>, is_exact: bool) -> Cell {
    let mark = if is_exact { "" } else { "~" };
    Cell::number(value, |value| format!("{mark}{}", quantity::seconds(value)))
}

/// CPU time of the run that no sample found at a process, where that is worth a line.
fn unattributed(summary: &Summary) -> Option<f64> {
    const LEAST: f64 = 0.001;
    let figure = summary.figures.get(FigureId::CpuUnattributed)?;
    figure.value.filter(|seconds| *seconds >= LEAST)
}

/// By program.
pub(super) fn programs(summary: &Summary, units: Units) -> Table {
    let mut note = "An interpreter is called by the script it runs. CPU time is of the processes \
                    themselves; with ~ as they were last sampled, else all they used. \
                    Unattributed is the rest of the run's: of processes too short to be sampled, \
                    and of the last moments of others. Together is the largest sum of their \
                    sizes at one moment, shared pages divided where that is known. A process \
                    that became another program is counted for both."
        .to_owned();
    if let Some(others) = summary.tools.last().filter(|last| last.is_others()) {
        let count = quantity::count(others.programs as f64);
        note.push_str(&format!(" The {count} lightest are one line."));
    }
    let columns = vec![
        Column::text("Program"),
        Column::number("Processes"),
        Column::number("At once"),
        Column::number("CPU time"),
        Column::number("Largest"),
        Column::number("Together"),
    ];
    let row = |tool: &Tool| {
        let most = tool.instances_peak.map(|most| most as f64);
        vec![
            Cell::text(&*tool.name),
            Cell::count(tool.instances),
            Cell::number(most, quantity::count),
            cpu_time(tool.cpu_time_seconds, tool.cpu_time_method == Some(Method::Exact)),
            bytes(tool.instance_memory_peak_bytes, units),
            bytes(tool.memory_peak_bytes, units),
        ]
    };
    let nothing = || Cell::number(None, quantity::count);
    let rest = unattributed(summary).filter(|_| !summary.tools.is_empty()).map(|rest| {
        let cpu = cpu_time(Some(rest), true);
        vec![Cell::text("Unattributed"), nothing(), nothing(), cpu, nothing(), nothing()]
    });
    let rows = summary.tools.iter().map(row).chain(rest).collect();
    Table { rows, ..table("programs", "Programs", note, columns) }
}

/// By process.
pub(super) fn processes(participants: &Participants, summary: &Summary, units: Units) -> Table {
    let mut note = "CPU time and largest size are its own; CPU time with ~ as it was last \
                    sampled, else all it used. Bytes read and written are its own and those of \
                    the children it has waited for. How it ended is known of those that weigh \
                    itself reaped: the command, and those who outlived their parent."
        .to_owned();
    if let Some(rest) = unattributed(summary) {
        let rest = quantity::seconds(rest);
        note.push_str(&format!(" {rest} of the run's CPU time is unattributed."));
    }
    if participants.processes_left_out > 0 {
        let count = quantity::count(participants.processes_left_out as f64);
        note.push_str(&format!(
            " Left out are {count} with less CPU time and less memory than these."
        ));
    }
    let columns = vec![
        Column::number("PID"),
        Column::text("Name"),
        Column::number("CPU time"),
        Column::number("Largest"),
        Column::number("Read"),
        Column::number("Written"),
        Column::number("Started"),
        Column::number("Ended"),
        Column::text("End"),
        Column::text("Command"),
    ];
    let row = |process: &Process| {
        let pid = process.id.pid;
        vec![
            Cell { text: numbering::shown(pid), number: Some(f64::from(pid)) },
            Cell::text(&*process.name),
            cpu_time(process.cpu_seconds, process.is_cpu_exact),
            bytes(process.largest_bytes, units),
            bytes(process.read_bytes, units),
            bytes(process.written_bytes, units),
            seconds(Some(process.came)),
            seconds(process.went),
            end(process.end),
            Cell::text(process.command.as_deref().unwrap_or("–")),
        ]
    };
    let rows = participants.processes.iter().map(row).collect();
    Table { rows, ..table("processes", "Processes", note, columns) }
}

fn end(end: Option<End>) -> Cell {
    let text = match end {
        Some(End::Code(code)) => format!("exit {code}"),
        Some(End::Signal(number)) => signal_name(number),
        None => "–".to_owned(),
    };
    Cell { text, number: end.map(|end| f64::from(end.exit_code())) }
}

/// By the name of a phase.
pub(super) fn phases(summary: &Summary, units: Units) -> Table {
    let named = summary.named_phases();
    let note = "A phase inside another stands under it; its time and what it used are in the \
                other's too.";
    let columns = vec![
        Column::text("Phase"),
        Column::number("Count"),
        Column::number("Not ended"),
        Column::number("Failed"),
        Column::number("Total"),
        Column::number("Mean"),
        Column::number("Deviation"),
        Column::number("CPU time"),
        Column::number("Memory, peak"),
    ];
    let row = |(depth, one): (usize, &Named)| {
        let figure = |id| one.figures.get(id).copied().unwrap_or_default();
        let memory = figure(FigureId::MemoryPeak).max;
        vec![
            Cell::text(format!("{}{}", "  ".repeat(depth.min(4)), one.name)),
            Cell::count(one.count),
            Cell::count(one.unfinished),
            Cell::count(one.failed),
            seconds((one.count > 0).then_some(one.total_seconds)),
            seconds(one.duration_seconds.mean),
            seconds(one.duration_seconds.std.filter(|_| one.count > 1)),
            seconds(figure(FigureId::CpuTime).total),
            Cell::number(memory, |value| quantity::bytes(value, units)),
        ]
    };
    let rows = nested(&named).into_iter().map(row).collect();
    Table { rows, ..table("phases", "Phases", note.to_owned(), columns) }
}

/// By node.
pub(super) fn nodes(summary: &Summary, units: Units) -> Table {
    let columns = vec![
        Column::text("Node"),
        Column::number("Cores"),
        Column::number("Memory"),
        Column::number("Busy, mean"),
        Column::number("Memory used, peak"),
    ];
    let host = &summary.host;
    let figure = |id| summary.parts.system.figures.value(id);
    let row = vec![
        Cell::text(&*host.name),
        Cell::count(u64::from(host.cores)),
        bytes(host.memory_bytes, units),
        Cell::number(figure(FigureId::CpuUtilizationMean), quantity::ratio),
        Cell::number(figure(FigureId::MemoryUsedPeak), |used| quantity::bytes(used, units)),
    ];
    let note = "The whole machine, whoever used it.".to_owned();
    Table { rows: vec![row], ..table("nodes", "Nodes", note, columns) }
}

/// Who outlived the command.
pub(super) fn left(summary: &Summary) -> Table {
    let columns = vec![Column::number("PID"), Column::text("Name")];
    let note = "What they use after the command ended is not counted; weigh run --wait-all \
                waits for them.";
    let rows = summary.processes.left.iter().map(|left| {
        let pid = Cell { text: numbering::shown(left.pid), number: Some(f64::from(left.pid)) };
        vec![pid, Cell::text(&*left.name)]
    });
    Table { rows: rows.collect(), ..table("left", "Left behind", note.to_owned(), columns) }
}
