//! GPUs as a table for a terminal: a line for each, and under it the processes of the run on it.

use super::columns::Columns;
use super::text::{DIM, Style, YELLOW, heading};
use crate::catalog::FigureId;
use crate::catalog::metrics::gpu::is_whole;
use crate::model::numbering;
use crate::quantity;
use crate::summary::{GpuSummary, GpuUser, Summary};
use crate::text::{broken, printable};

const COLUMNS: Columns<8> = Columns {
    indent: 2,
    header: ["GPU", "memory", "full", "busy", "peak", "power", "energy", "temp"],
    words: &[0],
    gives_way: 0,
};

/// Processes that are listed under one GPU: the JSON has more.
const LISTED: usize = 10;

/// Whether GPUs are worth a word to somebody who did not ask for them. One that only shows the
/// desktop, as in most laptops, is not: the run had nothing of it, and it does not say how busy
/// it was.
pub(super) fn are_told(summary: &Summary) -> bool {
    let value = |id| summary.figures.value(id);
    let says_how_busy = value(FigureId::GpuUtilizationMean).is_some();
    let may_be_used = value(FigureId::GpuMemoryPeak) != Some(0.0);
    !summary.gpus.is_empty() && (says_how_busy || may_be_used)
}

/// Each GPU, whoever used it, and the processes of the run on it.
pub fn table(summary: &Summary, style: Style) -> String {
    let figure = summary.figures.get(FigureId::GpuMemoryPeak);
    let reason = figure.and_then(|figure| figure.reason.as_deref());
    let body = match reason.filter(|_| summary.gpus.is_empty()) {
        Some(reason) => none(reason),
        None => some(&summary.gpus, style),
    };
    heading(summary, style) + &body
}

fn none(reason: &str) -> String {
    let words = format!("no GPU was measured: {}", printable(reason));
    indented(&words, |line| line.to_owned()) + "    what can be measured here: weigh doctor\n"
}

fn some(gpus: &[GpuSummary], style: Style) -> String {
    let rows: Vec<[String; 8]> = gpus.iter().flat_map(|gpu| rows(gpu, style)).collect();
    let table = COLUMNS.lines(&rows, style, |name| !name.starts_with(' '));
    let notes = notes(gpus, style).into_iter();
    notes.fold(table, |table, (colour, note)| {
        table + &indented(&note, |line| style.paint(colour, line))
    })
}

/// Words in lines that end before column 80.
fn indented(words: &str, paint: impl Fn(&str) -> String) -> String {
    broken(words, 77).iter().map(|line| format!("  {}\n", paint(line))).collect()
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

/// What is of a whole GPU alone stays empty.
fn process(user: &GpuUser, style: Style) -> [String; 8] {
    let (pid, name) = (numbering::shown(user.pid), printable(&user.name));
    let memory = user.memory_peak_bytes.map(|bytes| bytes as f64);
    let busy = known(user.utilization_mean_ratio, quantity::ratio);
    let empty = String::new;
    let memory = known(memory, |bytes| style.bytes(bytes));
    [format!("  {pid} {name}"), memory, empty(), busy, empty(), empty(), empty(), empty()]
}

/// What the GPUs are, and what a reader of the table must know.
fn notes(gpus: &[GpuSummary], style: Style) -> Vec<(&'static str, String)> {
    let mut models: Vec<(String, Vec<&str>)> = Vec::new();
    for gpu in gpus {
        let memory = gpu.is.memory_bytes.map(|bytes| style.bytes(bytes as f64));
        let model = gpu.is.model.as_deref().map(printable);
        let words: Vec<String> = [model, memory].into_iter().flatten().collect();
        let words = words.join(", ");
        match models.iter_mut().find(|(known, _)| *known == words) {
            Some((_, names)) => names.push(&gpu.is.name),
            None => models.push((words, vec![&gpu.is.name])),
        }
    }
    let models = models.into_iter().filter(|(words, _)| !words.is_empty());
    let mut notes: Vec<(&str, String)> =
        models.map(|(words, names)| (DIM, format!("{}: {words}", listed(&names)))).collect();
    if gpus.iter().any(|gpu| !is_whole(&gpu.is.name)) {
        notes.push((DIM, "what a part of a divided GPU has is in the whole, too".to_owned()));
    }
    let kept: Vec<&str> =
        gpus.iter().filter(|gpu| gpu.is.usable == Some(false)).map(|gpu| &*gpu.is.name).collect();
    if !kept.is_empty() {
        notes.push((
            DIM,
            format!(
                "{}: hidden by CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES",
                listed(&kept)
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
    fn processes_stand_under_their_gpu_and_models_are_named_once() {
        let first = GpuSummary { processes: vec![user(4711, "python")], ..gpu("nvidia0") };
        let table = some(&[first, gpu("nvidia1")], Style::default());
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(
            lines,
            [
                "  GPU              memory  full  busy  peak  power  energy  temp",
                "  nvidia0        40.0 GiB  50 %  50 %     -      -  123 kJ     -",
                "    4711 python  3.00 GiB           -",
                "  nvidia1        40.0 GiB  50 %  50 %     -      -  123 kJ     -",
                "  nvidia0, nvidia1: NVIDIA H100 80GB HBM3, 80.0 GiB",
            ],
            "{table}"
        );
    }

    #[test]
    fn lines_end_before_column_80_and_nothing_in_them_is_obeyed() {
        let names = (0..20).map(|pid| user(pid, &format!("\x1b[31m{}", "x".repeat(90))));
        let mut many: Vec<GpuSummary> =
            (0..16).map(|index| gpu(&format!("nvidia{index}"))).collect();
        many[0].processes = names.collect();
        many[1].processes_unknown_peak = Some(7);
        many[2].is.usable = Some(false);
        let table = some(&many, Style::default());
        assert!(table.lines().all(|line| line.chars().count() < 80), "{table}");
        assert!(!table.contains('\x1b'), "{table:?}");
        for words in
            ["and 10 more", "nvidia1: up to 7 processes", "nvidia2: hidden by CUDA_VISIBLE_DEVICES"]
        {
            assert!(table.contains(words), "{words}: {table}");
        }
    }

    #[test]
    fn without_any_it_is_said_why() {
        let words = none(
            "no NVIDIA driver is loaded: there is no /proc/driver/nvidia/version; \
                          no driver of AMD's or Intel's GPUs is loaded",
        );
        assert!(words.lines().all(|line| line.chars().count() < 80), "{words}");
        assert!(words.contains("no NVIDIA driver") && words.contains("weigh doctor"), "{words}");
    }
}
