//! GPUs, and the processes of the run on them.

use super::tables::{bytes, table};
use super::{Cell, Column, Table};
use crate::quantity::{self, Units};
use crate::sample::numbering;
use crate::summary::{Gpu, GpuUser, Summary};

/// By GPU.
pub(super) fn each(summary: &Summary, units: Units) -> Table {
    let note = "Whoever used it. Memory is the most that was in use at once; how busy it was is \
                by all samples of its driver. What a part of a divided GPU has is in the whole, \
                too.";
    let columns = vec![
        Column::text("GPU"),
        Column::text("Model"),
        Column::number("Memory"),
        Column::number("Used, peak"),
        Column::number("Busy"),
        Column::number("Busy, peak"),
        Column::number("Power"),
        Column::number("Energy"),
        Column::number("Warmest"),
    ];
    let row = |gpu: &Gpu| {
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
    Table { rows, ..table("gpus", "GPUs", note.to_owned(), columns) }
}

/// By process and GPU.
pub(super) fn processes(summary: &Summary, units: Units) -> Table {
    let note = "Processes of the run alone. Memory is the most that each had, as far as it was \
                looked at, or as the driver's account has it.";
    let columns = vec![
        Column::text("GPU"),
        Column::number("PID"),
        Column::text("Name"),
        Column::number("Memory"),
        Column::number("Busy"),
    ];
    let row = |gpu: &Gpu, user: &GpuUser| {
        vec![
            Cell::text(&*gpu.is.name),
            Cell { text: numbering::shown(user.pid), number: Some(f64::from(user.pid)) },
            Cell::text(&*user.name),
            bytes(user.memory_peak_bytes, units),
            Cell::number(user.utilization_mean_ratio, quantity::ratio),
        ]
    };
    let users = summary.gpus.iter().flat_map(|gpu| gpu.processes.iter().map(move |u| (gpu, u)));
    let rows = users.map(|(gpu, user)| row(gpu, user)).collect();
    Table { rows, ..table("gpu-processes", "Processes on GPUs", note.to_owned(), columns) }
}
