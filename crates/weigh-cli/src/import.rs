//! `weigh import`.

use std::path::Path;

use weigh::compat::pytyche::import::Error;
use weigh::compat::pytyche::import::{FileRead, Imported, ImportedGpu, read};
use weigh::quantity::{self, Units};

use crate::args::{Format, ImportArgs, ImportTool};
use crate::failure::{Failure, USAGE};
use crate::{config, print, show};

/// Reads the files of another tool, and prints a summary.
pub(crate) fn import(args: ImportArgs) -> Result<u8, Failure> {
    let units = config::units(args.sizes.units)?;
    let ImportTool::Pytyche = args.program;
    let imported = read(&args.directory).map_err(|error| import_failure(&error))?;
    // The JSON document contains them.
    if args.pytyche_summary || args.format == Format::Text {
        imported.notes.iter().for_each(|note| print::warning(note));
    }
    print::out(&match args.format {
        _ if args.pytyche_summary => show::resources(&imported.resources()),
        Format::Json => show::json(&imported)?,
        Format::Text => text(&imported, units),
    });
    Ok(0)
}

fn import_failure(error: &Error) -> Failure {
    match error {
        Error::Nothing { .. } => {
            let hint =
                "name the directory that HWMonitor().start(…) was given: weigh import pytyche DIR";
            Failure::new("cannot find files of pytyche", error, hint).code(USAGE)
        }
        Error::NotADirectory { path } => {
            let directory = path.parent().filter(|parent| *parent != Path::new(""));
            let directory = directory.unwrap_or(Path::new(".")).display();
            let hint = format!("name the directory it is in: weigh import pytyche {directory}");
            Failure::new("cannot read files of pytyche", error, hint).code(USAGE)
        }
        Error::NoRow { directory, .. } => {
            let hint = format!("check their contents: head {}/*.csv", directory.display());
            Failure::new("cannot read files of pytyche", error, hint)
        }
        Error::NotAFile { path, .. } | Error::Read { path, .. } => {
            let hint = format!("check its type and permissions: ls -ld {}", path.display());
            Failure::new("cannot read files of pytyche", error, hint)
        }
    }
}

fn text(imported: &Imported, units: Units) -> String {
    let header = ["file", "rows", "bad", "from", "lasts", "every", "gaps"];
    let mut text = print::table(&header, imported.files.iter().map(file_row).collect());
    let each: Vec<&ImportedGpu> = imported.gpus.iter().chain(&imported.gpus_together).collect();
    if !each.is_empty() {
        let header = [
            "GPU",
            "busy",
            "peak",
            "memory busy",
            "peak",
            "memory peak",
            "power",
            "peak",
            "energy",
            "temperature",
        ];
        let rows = each.iter().map(|gpu| gpu_row(gpu, units)).collect();
        text.push_str(&format!("\n{}", print::table(&header, rows)));
    }
    let cpu = &imported.cpu;
    if let (Some(user), Some(idle)) = (cpu.user_mean_ratio, cpu.idle_mean_ratio) {
        let (user, idle) = (quantity::ratio(user), quantity::ratio(idle));
        text.push_str(&format!("\nCPUs of the machine: {user} in user mode, {idle} idle\n"));
    }
    text
}

const UNKNOWN: &str = "-";

fn file_row(file: &FileRead) -> Vec<String> {
    let or_unknown = |text: Option<String>| text.unwrap_or_else(|| UNKNOWN.to_owned());
    let times = file.times.as_ref();
    vec![
        file.name.clone(),
        file.rows.to_string(),
        file.unreadable_lines.to_string(),
        or_unknown(times.map(|times| times.first.clone())),
        or_unknown(times.map(|times| quantity::seconds(times.duration_seconds))),
        or_unknown(times.and_then(|times| times.interval_seconds).map(quantity::seconds)),
        or_unknown(times.map(|times| times.gaps.to_string())),
    ]
}

fn gpu_row(gpu: &ImportedGpu, units: Units) -> Vec<String> {
    let shown = |value: Option<f64>, show: &dyn Fn(f64) -> String| {
        value.map_or_else(|| UNKNOWN.to_owned(), show)
    };
    let share = |ratio| shown(ratio, &quantity::ratio);
    let of = |unit: &'static str| move |value: f64| quantity::scaled(value, unit);
    vec![
        gpu.index.map_or_else(|| "all".to_owned(), |index| index.to_string()),
        share(gpu.utilization_mean_ratio),
        share(gpu.utilization_peak_ratio),
        share(gpu.memory_utilization_mean_ratio),
        share(gpu.memory_utilization_peak_ratio),
        shown(gpu.memory_peak_bytes.map(|bytes| bytes as f64), &|bytes| {
            quantity::bytes(bytes, units)
        }),
        shown(gpu.power_mean_watts, &of("W")),
        shown(gpu.power_peak_watts, &of("W")),
        shown(gpu.energy_joules, &of("J")),
        shown(gpu.temperature_peak_celsius, &|degrees| format!("{degrees:.0} °C")),
    ]
}
