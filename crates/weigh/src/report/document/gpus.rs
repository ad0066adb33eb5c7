//! GPUs: what they are, how full they were, and the processes of the run on them.

use super::facts::value;
use super::tables::{bytes, table};
use super::{Bar, Cell, Column, Table};
use crate::catalog::FigureId;
use crate::catalog::metrics::gpu::is_whole;
use crate::model::numbering;
use crate::quantity::{self, Units};
use crate::record::Manifest;
use crate::report::gpus::are_told;
use crate::summary::{GpuSummary, GpuUser, Summary};

const NOT_MEASURED: &str = "no GPU was measured";

/// How busy the GPUs were.
pub(super) fn busy(summary: &Summary) -> Bar {
    let share = value(summary, FigureId::GpuUtilizationMean);
    let count = summary.gpus.iter().filter(|gpu| gpu.says_how_busy()).count();
    let note = match value(summary, FigureId::GpusBusyMean) {
        Some(mean) if count == 1 => format!("one GPU, busy {} of the time", quantity::ratio(mean)),
        Some(mean) => format!("{mean:.2} of {count} GPUs busy on average"),
        None => NOT_MEASURED.to_owned(),
    };
    Bar { label: "GPU".to_owned(), share, note }
}

/// How full the GPUs' memory was: of the run alone where that is known, like the other bars.
pub(super) fn memory(summary: &Summary, units: Units) -> Bar {
    let own = value(summary, FigureId::GpuMemoryPeak);
    let used = summary.parts.system.figures.value(FigureId::GpuMemoryPeak);
    // Of those that say how much is in use.
    let whole = summary.gpus.iter().filter(|gpu| is_whole(&gpu.is.name));
    let telling = whole.filter(|gpu| gpu.memory_peak_bytes.is_some());
    let all: Option<f64> = telling.map(|gpu| Some(gpu.is.memory_bytes? as f64)).sum();
    let all = all.filter(|all| *all > 0.0);
    let bytes = |value: f64| quantity::bytes(value, units);
    let note = match (own, used, all) {
        (Some(own), Some(used), Some(all)) => {
            let (own, used, all) = (bytes(own), bytes(used), bytes(all));
            format!("{own} of the run's at its peak, {used} in all, of {all}")
        }
        (Some(own), None, Some(all)) => {
            format!("{} of the run's at its peak, of {}", bytes(own), bytes(all))
        }
        (None, Some(used), Some(all)) => {
            format!("{} of everybody's at the peak, of {}", bytes(used), bytes(all))
        }
        _ => NOT_MEASURED.to_owned(),
    };
    let share = own.or(used).zip(all).map(|(part, all)| (part / all).clamp(0.0, 1.0));
    Bar { label: "GPU memory".to_owned(), share, note }
}

/// What the verdict says of them: how busy they were, and what the run had of their memory.
pub(super) fn verdict(summary: &Summary, units: Units) -> Vec<String> {
    if !are_told(summary) {
        return Vec::new();
    }
    let count = summary.gpus.iter().filter(|gpu| gpu.says_how_busy()).count();
    let busy = value(summary, FigureId::GpusBusyMean).map(|mean| match count {
        1 => format!("its GPU was busy {} of the time", quantity::ratio(mean)),
        _ => format!("{mean:.2} of {count} GPUs were busy on average"),
    });
    let peak = summary.figures.get(FigureId::GpuMemoryPeak);
    let memory = peak.and_then(|peak| peak.value).map(|value| {
        let open = if peak.is_some_and(|peak| peak.upper.is_none()) { " or more" } else { "" };
        format!("its GPU memory reached {}{open}", quantity::bytes(value, units))
    });
    [busy, memory].into_iter().flatten().collect()
}

/// What the GPUs are called, each name once: those that were measured, or else
/// those that the machine has.
pub(super) fn names(manifest: &Manifest, summary: &Summary) -> String {
    let measured = &summary.host.gpus;
    let names = if measured.is_empty() { &manifest.host.gpus } else { measured };
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for name in names {
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counted.push((name, 1)),
        }
    }
    let shown = counted.into_iter().map(|(name, count)| match count {
        1 => name.to_owned(),
        _ => format!("{count} × {name}"),
    });
    let shown: Vec<String> = shown.collect();
    if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
}

/// By GPU.
pub(super) fn each(summary: &Summary, units: Units) -> Table {
    let note = "Whoever used it. Memory is the most that was in use at once; how busy it was is \
                by all samples of its driver. What a part of a divided GPU has is in the whole, \
                too.";
    let columns = vec![
        Column::name("GPU"),
        Column::name("Model"),
        Column::number("Memory"),
        Column::number("Used, peak"),
        Column::number("Busy"),
        Column::number("Busy, peak"),
        Column::number("Power"),
        Column::number("Energy"),
        Column::number("Warmest"),
    ];
    let row = |gpu: &GpuSummary| {
        vec![
            Cell::text(&*gpu.is.name),
            Cell::text(gpu.is.model.as_deref().unwrap_or("–")),
            bytes(gpu.is.memory_bytes, units),
            Cell::number(gpu.memory_peak_bytes, |value| quantity::bytes(value, units)),
            Cell::number(gpu.utilization_mean_ratio, quantity::ratio),
            Cell::number(gpu.utilization_peak_ratio, quantity::ratio),
            Cell::number(gpu.power_mean_watts, |watts| quantity::scaled(watts, "W")),
            Cell::number(gpu.energy_joules, |joules| quantity::scaled(joules, "J")),
            Cell::number(gpu.temperature_peak_celsius, |degrees| format!("{degrees:.0} °C")),
        ]
    };
    let rows = summary.gpus.iter().map(row).collect();
    let table = Table { rows, ..table("gpus", "GPUs", note.to_owned(), columns) };
    with_nodes(table, summary.gpus.iter())
}

/// Adds the machine of each row's GPU, where there are several.
fn with_nodes<'s>(mut table: Table, gpus: impl Iterator<Item = &'s GpuSummary>) -> Table {
    let nodes: Vec<Option<&str>> = gpus.map(|gpu| gpu.is.node.as_deref()).collect();
    if nodes.iter().any(Option::is_some) {
        table.columns.insert(1, Column::text("Node"));
        for (row, node) in table.rows.iter_mut().zip(nodes) {
            row.insert(1, Cell::text(node.unwrap_or("–")));
        }
    }
    table
}

/// By process and GPU.
pub(super) fn processes(summary: &Summary, units: Units) -> Table {
    let note = "Processes of the run alone. Memory is the most that each had, as far as it was \
                looked at, or as the driver's account has it.";
    let columns = vec![
        Column::name("GPU"),
        Column::number("PID"),
        Column::text("Name"),
        Column::number("Memory"),
        Column::number("Busy"),
    ];
    let row = |gpu: &GpuSummary, user: &GpuUser| {
        vec![
            Cell::text(&*gpu.is.name),
            Cell { text: numbering::shown(user.pid), number: Some(f64::from(user.pid)) },
            Cell::text(&*user.name),
            bytes(user.memory_peak_bytes, units),
            Cell::number(user.utilization_mean_ratio, quantity::ratio),
        ]
    };
    let users = || summary.gpus.iter().flat_map(|gpu| gpu.processes.iter().map(move |u| (gpu, u)));
    let rows = users().map(|(gpu, user)| row(gpu, user)).collect();
    let table = table("gpu-processes", "Processes on GPUs", note.to_owned(), columns);
    with_nodes(Table { rows, ..table }, users().map(|(gpu, _)| gpu))
}
