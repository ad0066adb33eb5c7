//! Who did what: programs, processes, phases, nodes, and who stayed behind.

use super::{Cell, Column, Table};
use crate::host::signals;
use crate::host::wait::End;
use crate::quantity::{self, Units};
use crate::record::{Entry, Event};
use crate::report::census::{Participants, Process};
use crate::report::phases::nested;
use crate::sample::numbering;
use crate::summary::phases::{Named, statistics};
use crate::summary::{Summary, Tool};

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

/// By program.
pub(super) fn programs(summary: &Summary, units: Units) -> Table {
    let mut note = "An interpreter is called by the script it runs. CPU time is of the processes \
                    themselves, as far as they were seen; together is the largest sum of their \
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
            seconds(tool.cpu_time_seconds),
            bytes(tool.instance_memory_peak_bytes, units),
            bytes(tool.memory_peak_bytes, units),
        ]
    };
    let rows = summary.tools.iter().map(row).collect();
    Table { rows, ..table("programs", "Programs", note, columns) }
}

/// By process.
pub(super) fn processes(participants: &Participants, units: Units) -> Table {
    let mut note = "CPU time and largest size are its own, when it was last looked at; bytes \
                    read and written are its own and those of the children it has waited for. \
                    How it ended is known of those that weigh itself waited for: the command, \
                    and those who outlived their parent."
        .to_owned();
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
        Column::number("Came"),
        Column::number("Went"),
        Column::text("End"),
        Column::text("Command"),
    ];
    let row = |process: &Process| {
        let pid = process.id.pid;
        vec![
            Cell { text: numbering::shown(pid), number: Some(f64::from(pid)) },
            Cell::text(&*process.name),
            seconds(process.cpu_seconds),
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
        Some(End::Signal(number)) => signals::name(number),
        None => "–".to_owned(),
    };
    Cell { text, number: end.map(|end| f64::from(end.exit_code())) }
}

/// By the name of a phase.
pub(super) fn phases(summary: &Summary, units: Units) -> Table {
    let named = statistics(&summary.phases);
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
        let figure = |name: &str| one.figures.get(name).copied().unwrap_or_default();
        let memory = figure("memory_peak_bytes").max;
        vec![
            Cell::text(format!("{}{}", "  ".repeat(depth.min(4)), one.name)),
            Cell::count(one.count),
            Cell::count(one.unfinished),
            Cell::count(one.failed),
            seconds((one.count > 0).then_some(one.total_seconds)),
            seconds(one.duration_seconds.mean),
            seconds(one.duration_seconds.std.filter(|_| one.count > 1)),
            seconds(figure("cpu_time_seconds").total),
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
    let figure = |name: &str| summary.parts.system.figures.get(name).and_then(|one| one.value);
    let row = vec![
        Cell::text(&*host.name),
        Cell::count(u64::from(host.cores)),
        bytes(host.memory_bytes, units),
        Cell::number(figure("cpu_utilization_mean_ratio"), quantity::ratio),
        Cell::number(figure("memory_used_peak_bytes"), |used| quantity::bytes(used, units)),
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
