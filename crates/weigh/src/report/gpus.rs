//! GPUs as a table for a terminal: a line for each, and under it the processes of the run on it.

use super::columns::TextColumns;
use super::style::{DIM, Style, YELLOW};
use super::text::heading;
use crate::catalog::FigureId;
use crate::catalog::metrics::gpu::is_whole;
use crate::model::numbering;
use crate::quantity;
use crate::summary::{GpuSummary, GpuUser, Summary};
use crate::text::{printable, wrap};

const COLUMNS: TextColumns<8> = TextColumns {
    indent: 2,
    header: ["GPU", "memory", "used", "util", "peak", "power", "energy", "temp"],
    left_aligned: &[0],
    elastic: 0,
    optional: &[7, 4, 6, 5],
};

/// Processes listed under one GPU: the JSON has more.
const LISTED: usize = 10;

/// Whether GPUs belong in a report without a request. One that only drives the desktop, as in most
/// laptops, does not: the run had no memory on it, and its utilisation is unknown.
pub(super) fn worth_reporting(summary: &Summary) -> bool {
    let value = |id| summary.figures.value(id);
    let has_utilization = value(FigureId::GpuUtilizationMean).is_some();
    let may_be_used = value(FigureId::GpuMemoryPeak) != Some(0.0);
    !summary.gpus.is_empty() && (has_utilization || may_be_used)
}

/// Each GPU, with all of its load, and the processes of the run on it.
pub fn table(summary: &Summary, style: Style) -> String {
    let figure = summary.figures.get(FigureId::GpuMemoryPeak);
    let reason = figure.and_then(|figure| figure.reason.as_deref());
    let body = match reason.filter(|_| summary.gpus.is_empty()) {
        Some(reason) => none(reason, style),
        None => some(&summary.gpus, style),
    };
    heading(summary, style) + &body
}

fn none(reason: &str, style: Style) -> String {
    let text = format!("no GPU was measured: {}", printable(reason));
    indented(&text, style, |line| line.to_owned()) + "    what can be measured here: weigh doctor\n"
}

fn some(gpus: &[GpuSummary], style: Style) -> String {
    let rows: Vec<[String; 8]> = gpus.iter().flat_map(|gpu| rows(gpu, style)).collect();
    let table = COLUMNS.lines(&rows, style, |name| !name.starts_with(' '));
    let notes = notes(gpus, style).into_iter();
    notes.fold(table, |table, (colour, note)| {
        table + &indented(&note, style, |line| style.paint(colour, line))
    })
}

/// Text in lines that fit the terminal.
fn indented(text: &str, style: Style, paint: impl Fn(&str) -> String) -> String {
    wrap(text, style.end() - 2).iter().map(|line| format!("  {}\n", paint(line))).collect()
}

fn known(value: Option<f64>, show: impl Fn(f64) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// A GPU and the processes on it.
fn rows(gpu: &GpuSummary, style: Style) -> Vec<[String; 8]> {
    let used = gpu.memory_peak_bytes;
    let full = used.zip(gpu.is.memory_bytes).map(|(used, all)| used / all as f64);
    let mut rows = vec![[
        printable(&gpu.is.name),
        known(used, |bytes| style.bytes(bytes)),
        known(full, quantity::ratio),
        known(gpu.utilization_mean_ratio, quantity::ratio),
        known(gpu.utilization_peak_ratio, quantity::ratio),
        known(gpu.power_mean_watts, |watts| quantity::scaled(watts, "W")),
        known(gpu.energy_joules, |joules| quantity::scaled(joules, "J")),
        known(gpu.temperature_peak_celsius, |degrees| format!("{degrees:.0} °C")),
    ]];
    rows.extend(gpu.processes.iter().take(LISTED).map(|user| process(user, style)));
    if gpu.processes.len() > LISTED {
        let more = format!("  and {} more", gpu.processes.len() - LISTED);
        rows.push(std::array::from_fn(|cell| if cell == 0 { more.clone() } else { String::new() }));
    }
    rows
}

/// Columns of the whole GPU stay empty.
fn process(user: &GpuUser, style: Style) -> [String; 8] {
    let (pid, name) = (numbering::shown(user.pid), printable(&user.name));
    let memory = user.memory_peak_bytes.map(|bytes| bytes as f64);
    let busy = known(user.utilization_mean_ratio, quantity::ratio);
    let empty = String::new;
    let memory = known(memory, |bytes| style.bytes(bytes));
    [format!("  {pid} {name}"), memory, empty(), busy, empty(), empty(), empty(), empty()]
}

/// Models of the GPUs, and notes about hidden GPUs and unknown processes.
fn notes(gpus: &[GpuSummary], style: Style) -> Vec<(&'static str, String)> {
    let mut models: Vec<(String, Vec<&str>)> = Vec::new();
    for gpu in gpus {
        let memory = gpu.is.memory_bytes.map(|bytes| style.bytes(bytes as f64));
        let model = gpu.is.model.as_deref().map(printable);
        let text: Vec<String> = [model, memory].into_iter().flatten().collect();
        let text = text.join(", ");
        match models.iter_mut().find(|(known, _)| *known == text) {
            Some((_, names)) => names.push(&gpu.is.name),
            None => models.push((text, vec![&gpu.is.name])),
        }
    }
    let models = models.into_iter().filter(|(text, _)| !text.is_empty());
    let mut notes: Vec<(&str, String)> =
        models.map(|(text, names)| (DIM, format!("{}: {text}", listed(&names)))).collect();
    if gpus.iter().any(|gpu| !is_whole(&gpu.is.name)) {
        notes.push((DIM, "MIG instances are included in their GPU".to_owned()));
    }
    let hidden: Vec<&str> =
        gpus.iter().filter(|gpu| gpu.is.usable == Some(false)).map(|gpu| &*gpu.is.name).collect();
    if !hidden.is_empty() {
        notes.push((
            DIM,
            format!(
                "{}: hidden by CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES",
                listed(&hidden)
            ),
        ));
    }
    for gpu in gpus {
        let unknown = gpu.processes_unknown_peak.filter(|unknown| *unknown > 0);
        notes.extend(unknown.map(|unknown| {
            let name = printable(&gpu.is.name);
            (YELLOW, format!("{name}: up to {unknown} processes that cannot be named from here"))
        }));
    }
    notes
}

fn listed(names: &[&str]) -> String {
    names.iter().map(|name| printable(name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model;

    fn gpu(name: &str) -> GpuSummary {
        GpuSummary {
            is: model::Gpu {
                name: name.to_owned(),
                model: Some("NVIDIA H100 80GB HBM3".to_owned()),
                memory_bytes: Some(80 << 30),
                ..model::Gpu::default()
            },
            memory_peak_bytes: Some((40u64 << 30) as f64),
            utilization_mean_ratio: Some(0.5),
            energy_joules: Some(123_456.0),
            ..GpuSummary::default()
        }
    }

    fn user(pid: u32, name: &str) -> GpuUser {
        GpuUser {
            pid,
            name: name.to_owned(),
            memory_peak_bytes: Some(3 << 30),
            utilization_mean_ratio: None,
        }
    }

    #[test]
    fn processes_are_listed_under_their_gpu_and_models_named_once() {
        let first = GpuSummary { processes: vec![user(4711, "python")], ..gpu("nvidia0") };
        let table = some(&[first, gpu("nvidia1")], Style::default());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines,
            [
                "  GPU              memory  used  util  peak  power  energy  temp",
                "  nvidia0        40.0 GiB  50 %  50 %     -      -  123 kJ     -",
                "    4711 python  3.00 GiB           -",
                "  nvidia1        40.0 GiB  50 %  50 %     -      -  123 kJ     -",
                "  nvidia0, nvidia1: NVIDIA H100 80GB HBM3, 80.0 GiB",
            ],
            "{table}"
        );
    }

    #[test]
    fn long_or_hostile_names_stay_below_80_columns_escaped() {
        let names = (0..20).map(|pid| user(pid, &format!("\x1b[31m{}", "x".repeat(90))));
        let mut many: Vec<GpuSummary> =
            (0..16).map(|index| gpu(&format!("nvidia{index}"))).collect();
        many[0].processes = names.collect();
        many[1].processes_unknown_peak = Some(7);
        many[2].is.usable = Some(false);
        let table = some(&many, Style::default());
        assert!(table.lines().all(|line| line.chars().count() < 80), "{table}");
        assert!(!table.contains('\x1b'), "{table:?}");
        for text in
            ["and 10 more", "nvidia1: up to 7 processes", "nvidia2: hidden by CUDA_VISIBLE_DEVICES"]
        {
            assert!(table.contains(text), "{text}: {table}");
        }
    }

    #[test]
    fn without_gpus_the_reason_is_given() {
        let text = none(
            "no NVIDIA driver is loaded: there is no /proc/driver/nvidia/version; \
                          no driver of AMD's or Intel's GPUs is loaded",
            Style::default(),
        );
        assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
        assert!(text.contains("no NVIDIA driver") && text.contains("weigh doctor"), "{text}");
    }
}
