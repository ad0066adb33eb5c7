//! GPUs: models, utilisation, and the processes of the run on them.

use super::facts::value;
use super::tables::{bytes, table};
use super::{Bar, ReportCell, ReportColumn, ReportTable};
use crate::catalog::FigureId;
use crate::catalog::metrics::gpu::is_whole;
use crate::model::numbering;
use crate::quantity::{self, Units};
use crate::record::Manifest;
use crate::report::gpus::worth_reporting;
use crate::summary::{Figure, GpuSummary, GpuUser, Summary};

const NOT_MEASURED: &str = "no GPU was measured";

/// The utilisation of the GPUs.
pub(super) fn busy(summary: &Summary) -> Bar {
    let share = value(summary, FigureId::GpuUtilizationMean);
    let count = summary.gpus.iter().filter(|gpu| gpu.has_utilization()).count();
    let note = match value(summary, FigureId::GpusBusyMean) {
        Some(mean) if count == 1 => format!("one GPU, busy {} of the time", quantity::ratio(mean)),
        Some(mean) => format!("{mean:.2} of {count} GPUs busy on average"),
        None => NOT_MEASURED.to_owned(),
    };
    Bar { label: "GPU".to_owned(), share, note }
}

/// The share of GPU memory used: by the run alone where that is known, like the other bars.
pub(super) fn memory(summary: &Summary, units: Units) -> Bar {
    let own = value(summary, FigureId::GpuMemoryPeak);
    let used = summary.parts.system.figures.value(FigureId::GpuMemoryPeak);
    // Only GPUs that report their used memory.
    let whole = summary.gpus.iter().filter(|gpu| is_whole(&gpu.is.name));
    let reporting = whole.filter(|gpu| gpu.memory_peak_bytes.is_some());
    let all: Option<f64> = reporting.map(|gpu| Some(gpu.is.memory_bytes? as f64)).sum();
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
            format!("{} of all processes at the peak, of {}", bytes(used), bytes(all))
        }
        _ => NOT_MEASURED.to_owned(),
    };
    let share = own.or(used).zip(all).map(|(part, all)| (part / all).clamp(0.0, 1.0));
    Bar { label: "GPU memory".to_owned(), share, note }
}

/// The GPU part of the verdict in a sentence: utilisation, and memory of the run.
pub(super) fn verdict(summary: &Summary, units: Units) -> Option<String> {
    if !worth_reporting(summary) {
        return None;
    }
    let count = summary.gpus.iter().filter(|gpu| gpu.has_utilization()).count();
    let busy = value(summary, FigureId::GpusBusyMean).map(|mean| match count {
        1 => format!("Busy {} of the time", quantity::ratio(mean)),
        _ => format!("{mean:.2} of {count} busy on average"),
    });
    let peak = summary.figures.get(FigureId::GpuMemoryPeak);
    let memory = peak.and_then(|peak| peak.value).map(|value| {
        let bound = if peak.is_some_and(Figure::is_lower_bound) { "at least " } else { "" };
        format!("memory peak {bound}{}", quantity::bytes(value, units))
    });
    let said: Vec<String> = [busy, memory].into_iter().flatten().collect();
    (!said.is_empty()).then(|| format!("{}.", said.join("; ")))
}

/// Model names of the GPUs with counts: those measured, or else those installed.
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
pub(super) fn each(summary: &Summary, units: Units) -> ReportTable {
    let note = "Load of all processes. Memory is the peak of what was in use; busy is from all samples \
                of its driver. MIG instances are included in their GPU.";
    let columns = vec![
        ReportColumn::name("GPU"),
        ReportColumn::name("Model"),
        ReportColumn::number("Memory"),
        ReportColumn::number("Used, peak"),
        ReportColumn::number("Busy"),
        ReportColumn::number("Busy, peak"),
        ReportColumn::number("Power"),
        ReportColumn::number("Energy"),
        ReportColumn::number("Warmest"),
    ];
    let row = |gpu: &GpuSummary| {
        vec![
            ReportCell::text(&*gpu.is.name),
            ReportCell::text(gpu.is.model.as_deref().unwrap_or("–")),
            bytes(gpu.is.memory_bytes, units),
            ReportCell::number(gpu.memory_peak_bytes, |value| quantity::bytes(value, units)),
            ReportCell::number(gpu.utilization_mean_ratio, quantity::ratio),
            ReportCell::number(gpu.utilization_peak_ratio, quantity::ratio),
            ReportCell::number(gpu.power_mean_watts, |watts| quantity::scaled(watts, "W")),
            ReportCell::number(gpu.energy_joules, |joules| quantity::scaled(joules, "J")),
            ReportCell::number(gpu.temperature_peak_celsius, |degrees| format!("{degrees:.0} °C")),
        ]
    };
    let rows = summary.gpus.iter().map(row).collect();
    let table = ReportTable { rows, ..table("gpus", "GPUs", note.to_owned(), columns) };
    with_nodes(table, summary.gpus.iter())
}

/// Adds the machine of each row's GPU, where there are several.
fn with_nodes<'s>(
    mut table: ReportTable,
    gpus: impl Iterator<Item = &'s GpuSummary>,
) -> ReportTable {
    let nodes: Vec<Option<&str>> = gpus.map(|gpu| gpu.is.node.as_deref()).collect();
    if nodes.iter().any(Option::is_some) {
        table.columns.insert(1, ReportColumn::text("Node"));
        for (row, node) in table.rows.iter_mut().zip(nodes) {
            row.insert(1, ReportCell::text(node.unwrap_or("–")));
        }
    }
    table
}

/// By process and GPU.
pub(super) fn processes(summary: &Summary, units: Units) -> ReportTable {
    let note = "Processes of the run alone. Memory is the most that each had, as sampled, or \
                from the driver's accounting.";
    let columns = vec![
        ReportColumn::name("GPU"),
        ReportColumn::number("PID"),
        ReportColumn::text("Name"),
        ReportColumn::number("Memory"),
        ReportColumn::number("Busy"),
    ];
    let row = |gpu: &GpuSummary, user: &GpuUser| {
        vec![
            ReportCell::text(&*gpu.is.name),
            ReportCell { text: numbering::shown(user.pid), number: Some(f64::from(user.pid)) },
            ReportCell::text(&*user.name),
            bytes(user.memory_peak_bytes, units),
            ReportCell::number(user.utilization_mean_ratio, quantity::ratio),
        ]
    };
    let users = || summary.gpus.iter().flat_map(|gpu| gpu.processes.iter().map(move |u| (gpu, u)));
    let rows = users().map(|(gpu, user)| row(gpu, user)).collect();
    let table = table("gpu-processes", "Processes on GPUs", note.to_owned(), columns);
    with_nodes(ReportTable { rows, ..table }, users().map(|(gpu, _)| gpu))
}
