//! Tables of programs, processes, phases, nodes, and processes that outlived the command.

use super::{ReportCell, ReportColumn, ReportTable};
use crate::catalog::FigureId;
use crate::model::{End, numbering, signal_name};
use crate::quantity::{self, Units};
use crate::record::{Entry, Event};
use crate::report::phases::nested;
use crate::report::process_table::{ListedProcesses, Process};
use crate::summary::phases::PhaseStatistics;
use crate::summary::{Method, Summary, Tool};

pub(super) fn table(
    name: &str,
    title: &str,
    note: String,
    columns: Vec<ReportColumn>,
) -> ReportTable {
    ReportTable { name: name.to_owned(), title: title.to_owned(), note, columns, rows: Vec::new() }
}

/// The marks.
pub(in crate::report) fn marks(entries: &[Entry]) -> ReportTable {
    const MOST: usize = 500;
    let row = |entry: &Entry| match &entry.event {
        Event::Mark { text } => Some(vec![seconds(Some(entry.seconds)), ReportCell::text(&**text)]),
        _ => None,
    };
    let columns = vec![ReportColumn::number("At"), ReportColumn::text("Mark")];
    let mut rows: Vec<Vec<ReportCell>> = entries.iter().filter_map(row).collect();
    let more = rows.len().saturating_sub(MOST);
    rows.truncate(MOST);
    let note = if more > 0 { format!("{more} later ones are left out.") } else { String::new() };
    ReportTable { rows, ..table("marks", "Marks", note, columns) }
}

pub(super) fn bytes(value: Option<u64>, units: Units) -> ReportCell {
    ReportCell::number(value.map(|value| value as f64), |value| quantity::bytes(value, units))
}

fn seconds(value: Option<f64>) -> ReportCell {
    ReportCell::number(value, quantity::seconds)
}

/// CPU time of a process or program; `~` when it is from a sample, not from its exit.
pub(super) fn cpu_text(value: f64, is_exact: bool) -> String {
    format!("{}{}", if is_exact { "" } else { "~" }, quantity::seconds(value))
}

fn cpu_time(value: Option<f64>, is_exact: bool) -> ReportCell {
    ReportCell::number(value, |value| cpu_text(value, is_exact))
}

/// Unattributed CPU time of the run, where it is worth a line.
fn unattributed(summary: &Summary) -> Option<f64> {
    const LEAST: f64 = 0.001;
    let figure = summary.figures.get(FigureId::CpuUnattributed)?;
    figure.value.filter(|seconds| *seconds >= LEAST)
}

/// By program.
pub(super) fn programs(summary: &Summary, units: Units) -> ReportTable {
    let mut note = "An interpreter is named by the script it runs. CPU time is of the processes \
                    themselves, without children; ~ marks the last sample, else it is the total. \
                    Unattributed is CPU time of the run that no sample found at a process: of \
                    processes too short to be sampled, and after the last sample of others. \
                    The combined peak is the largest sum of their sizes at one time, with shared pages \
                    divided where known. A process that called exec is counted for both programs."
        .to_owned();
    if let Some(others) = summary.tools.last().filter(|last| last.is_others()) {
        let count = quantity::count(others.programs as f64);
        note.push_str(&format!(" The {count} lightest are one line."));
    }
    let columns = vec![
        ReportColumn::text("Program"),
        ReportColumn::number("Processes"),
        ReportColumn::number("At a time"),
        ReportColumn::number("CPU time"),
        ReportColumn::number("Largest process"),
        ReportColumn::number("Combined peak"),
    ];
    let row = |tool: &Tool| {
        let most = tool.instances_peak.map(|most| most as f64);
        vec![
            ReportCell::text(&*tool.name),
            ReportCell::count(tool.instances),
            ReportCell::number(most, quantity::count),
            cpu_time(tool.cpu_time_seconds, tool.cpu_time_method == Some(Method::Exact)),
            bytes(tool.instance_memory_peak_bytes, units),
            bytes(tool.memory_peak_bytes, units),
        ]
    };
    let nothing = || ReportCell::number(None, quantity::count);
    let rest = unattributed(summary).filter(|_| !summary.tools.is_empty()).map(|rest| {
        let cpu = cpu_time(Some(rest), true);
        vec![ReportCell::text("Unattributed"), nothing(), nothing(), cpu, nothing(), nothing()]
    });
    let rows = summary.tools.iter().map(row).chain(rest).collect();
    ReportTable { rows, ..table("programs", "Programs", note, columns) }
}

/// By process.
pub(super) fn processes(
    participants: &ListedProcesses,
    summary: &Summary,
    units: Units,
) -> ReportTable {
    let mut note = "CPU time and largest size are its own; ~ marks the CPU time of the last \
                    sample, else it is the total. Bytes read and written include those of reaped \
                    children. The end is known for processes that weigh itself reaped: the \
                    command, and processes that outlived their parent."
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
        ReportColumn::number("PID"),
        ReportColumn::text("Name"),
        ReportColumn::number("CPU time"),
        ReportColumn::number("Memory, peak"),
        ReportColumn::number("Read"),
        ReportColumn::number("Written"),
        ReportColumn::number("Started"),
        ReportColumn::number("Ended"),
        ReportColumn::text("End"),
        ReportColumn::text("Command"),
    ];
    let row = |process: &Process| {
        let pid = process.id.pid;
        vec![
            ReportCell { text: numbering::shown(pid), number: Some(f64::from(pid)) },
            ReportCell::text(&*process.name),
            cpu_time(process.cpu_seconds, process.is_cpu_exact),
            bytes(process.largest_bytes, units),
            bytes(process.read_bytes, units),
            bytes(process.written_bytes, units),
            seconds(Some(process.first_sampled)),
            seconds(process.exited_at),
            end(process.end),
            ReportCell::text(process.command.as_deref().unwrap_or("–")),
        ]
    };
    let rows = participants.processes.iter().map(row).collect();
    ReportTable { rows, ..table("processes", "Processes", note, columns) }
}

fn end(end: Option<End>) -> ReportCell {
    let text = match end {
        Some(End::Code(code)) => format!("exit {code}"),
        Some(End::Signal(number)) => signal_name(number),
        None => "–".to_owned(),
    };
    ReportCell { text, number: end.map(|end| f64::from(end.exit_code())) }
}

/// By the name of a phase.
pub(super) fn phases(summary: &Summary, units: Units) -> ReportTable {
    let named = summary.named_phases();
    let note = "A nested phase is listed under its parent; its time and usage are included in the \
                parent's.";
    let columns = vec![
        ReportColumn::text("Phase"),
        ReportColumn::number("Count"),
        ReportColumn::number("Not ended"),
        ReportColumn::number("Failed"),
        ReportColumn::number("Total"),
        ReportColumn::number("Mean"),
        ReportColumn::number("Deviation"),
        ReportColumn::number("CPU time"),
        ReportColumn::number("Memory, peak"),
    ];
    let row = |(depth, one): (usize, &PhaseStatistics)| {
        let figure = |id| one.figures.get(id).copied().unwrap_or_default();
        let memory = figure(FigureId::MemoryPeak).max;
        vec![
            ReportCell::text(format!("{}{}", "  ".repeat(depth.min(4)), one.name)),
            ReportCell::count(one.count),
            ReportCell::count(one.unfinished),
            ReportCell::count(one.failed),
            seconds((one.count > 0).then_some(one.total_seconds)),
            seconds(one.duration_seconds.mean),
            seconds(one.duration_seconds.std.filter(|_| one.count > 1)),
            seconds(figure(FigureId::CpuTime).total),
            ReportCell::number(memory, |value| quantity::bytes(value, units)),
        ]
    };
    let rows = nested(&named).into_iter().map(row).collect();
    ReportTable { rows, ..table("phases", "Phases", note.to_owned(), columns) }
}

/// By node.
pub(super) fn nodes(summary: &Summary, units: Units) -> ReportTable {
    let columns = vec![
        ReportColumn::text("Node"),
        ReportColumn::number("Cores"),
        ReportColumn::number("Memory"),
        ReportColumn::number("Busy, mean"),
        ReportColumn::number("Memory used, peak"),
    ];
    let host = &summary.host;
    let figure = |id| summary.parts.system.figures.value(id);
    let row = vec![
        ReportCell::text(&*host.name),
        ReportCell::count(u64::from(host.cores)),
        bytes(host.memory_bytes, units),
        ReportCell::number(figure(FigureId::CpuUtilizationMean), quantity::ratio),
        ReportCell::number(figure(FigureId::MemoryUsedPeak), |used| quantity::bytes(used, units)),
    ];
    let note = "The whole machine, all processes.".to_owned();
    ReportTable { rows: vec![row], ..table("nodes", "Nodes", note, columns) }
}

/// Processes that outlived the command.
pub(super) fn left(summary: &Summary) -> ReportTable {
    let columns = vec![ReportColumn::number("PID"), ReportColumn::text("Name")];
    let note = "What they use after the command ended is not counted; weigh run --wait-all \
                waits for them.";
    let rows = summary.processes.still_running.iter().map(|process| {
        let pid = ReportCell {
            text: numbering::shown(process.pid),
            number: Some(f64::from(process.pid)),
        };
        vec![pid, ReportCell::text(&*process.name)]
    });
    ReportTable { rows: rows.collect(), ..table("left", "Still running", note.to_owned(), columns) }
}
