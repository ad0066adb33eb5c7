//! `weigh export`.

use std::path::{Path, PathBuf};

use weigh::compat::{gpu_tracker, oasis, perfmon, pytyche};
use weigh::export::{self, ExportFormat, ExportOptions, Exported};
use weigh::record::{Event, Recording};

use crate::args::{CompatTool, ExportArgs};
use crate::failure::{Failure, USAGE, of_export, of_recording};
use crate::progress::Bar;
use crate::{find, print};

/// The default directory of exports, in the recording.
const DIRECTORY: &str = "export";

/// The default directory of exports of many recordings.
const DATASET: &str = "weigh-dataset";

/// Writes tables, and prints the names of the files.
pub(crate) fn export(args: ExportArgs) -> Result<u8, Failure> {
    if args.compat_tool.is_some_and(|tool| tool != CompatTool::Perfmon) && !args.formats.is_empty()
    {
        let cause = "this tool has files of its own formats; --formats is for perfmon's tables";
        let hint = "leave out -f, or write weigh's tables: weigh export -f csv";
        return Err(Failure::new("cannot use these options", cause, hint).code(USAGE));
    }
    match args.compat_tool {
        Some(CompatTool::GpuTracker) => return as_gpu_tracker(args),
        Some(CompatTool::Oasis) => return export_with(args, "oasis", oasis::export),
        Some(CompatTool::Pytyche) => return export_with(args, "pytyche", pytyche::export),
        Some(CompatTool::Perfmon) => return as_perfmon(args),
        None => {}
    }
    let options = ExportOptions {
        formats: args.formats,
        tables: args.tables,
        rates: args.rates,
        resample: args.resample,
        from: args.from,
        to: args.to,
        phase: args.phase,
        force: args.force,
        spreadsheet_safe: args.spreadsheet_safe,
    };
    let exported = match args.run.as_deref().and_then(find::all_in) {
        Some(runs) => {
            let output = args.output.unwrap_or_else(|| PathBuf::from(DATASET));
            all(&runs, &options, &output)?
        }
        None => {
            let directory = find::one(args.run.as_deref())?;
            let output = args.output.unwrap_or_else(|| directory.join(DIRECTORY));
            one(&directory, &options, &output)?
        }
    };
    print_exported(&exported);
    Ok(0)
}

/// Exports a run that has just ended; returns what failed or is missing.
pub(crate) fn at_end(recording: &Path, formats: &[ExportFormat]) -> Vec<String> {
    let options = ExportOptions { formats: formats.to_vec(), ..ExportOptions::default() };
    match one(recording, &options, &recording.join(DIRECTORY)) {
        Ok(exported) => exported.missing,
        Err(failure) => vec![format!("{}: {}", failure.what, failure.cause)],
    }
}

fn as_gpu_tracker(args: ExportArgs) -> Result<u8, Failure> {
    use gpu_tracker::GpuTrackerFormat::{Csv, Json, Sqlite, Text};
    let directory = find::one(args.run.as_deref())?;
    let output = args.output.unwrap_or_else(|| directory.join(DIRECTORY));
    let recording = Recording::open(&directory).map_err(|error| of_recording(&error))?;
    let default = gpu_tracker::GpuTrackerOptions::default();
    let options = gpu_tracker::GpuTrackerOptions {
        ram_unit: args.ram_unit.unwrap_or(default.ram_unit),
        gpu_ram_unit: args.gpu_ram_unit.unwrap_or(default.gpu_ram_unit),
        time_unit: args.time_unit.unwrap_or(default.time_unit),
        expected_cores: args.expected_cores,
        gpu_uuids: None,
    };
    let files = [Json, Text, Csv, Sqlite];
    let written = gpu_tracker::export(&recording, &options, &files, &output, args.force);
    let written = written.map_err(|error| {
        let hint = match &error {
            gpu_tracker::Error::Exists { .. } => {
                "replace it: weigh export --force …, or name a directory: -o DIR"
            }
            _ => "name another directory: weigh export -o DIR …",
        };
        Failure::new("cannot write what gpu-tracker would have written", error, hint)
    })?;
    if !recording.entries().iter().any(|entry| matches!(entry.event, Event::Gpu(_))) {
        print::warning(crate::gpu_tracker::no_gpu(gpu_tracker::gpu_count(&recording)));
    }
    print::losses(&recording);
    print::files(&written);
    Ok(0)
}

/// Writes the files of a tool that has no options for them.
fn export_with(
    args: ExportArgs,
    program: &str,
    write: fn(&Recording, &Path, bool) -> Result<Exported, export::Error>,
) -> Result<u8, Failure> {
    refuse_gpu_tracker_options(&args, program)?;
    let directory = find::one(args.run.as_deref())?;
    let output = args.output.unwrap_or_else(|| directory.join(DIRECTORY));
    let recording = Recording::open(&directory).map_err(|error| of_recording(&error))?;
    let exported = write(&recording, &output, args.force).map_err(|error| of_export(&error))?;
    print::losses(&recording);
    print_exported(&exported);
    Ok(0)
}

/// perfmon's files, which are of all nodes of a job.
fn as_perfmon(args: ExportArgs) -> Result<u8, Failure> {
    refuse_gpu_tracker_options(&args, "perfmon")?;
    let (runs, output) = match args.run.as_deref().and_then(find::all_in) {
        Some(runs) => (runs, PathBuf::from(DATASET)),
        None => {
            let directory = find::one(args.run.as_deref())?;
            let output = directory.join(DIRECTORY);
            (vec![directory], output)
        }
    };
    let mut recordings = Vec::new();
    for run in &runs {
        match Recording::open(run) {
            Ok(recording) => recordings.push(recording),
            // A damaged one must not prevent the export of the others.
            Err(error) if runs.len() > 1 => print::warning(&format!("left out: {error}")),
            Err(error) => return Err(of_recording(&error)),
        }
    }
    let output = args.output.unwrap_or(output);
    recordings.iter().for_each(print::losses);
    let exported = perfmon::export(&recordings, &args.formats, &output, args.force);
    print_exported(&exported.map_err(|error| of_export(&error))?);
    Ok(0)
}

/// Refuses the options of gpu-tracker for another tool.
fn refuse_gpu_tracker_options(args: &ExportArgs, program: &str) -> Result<(), Failure> {
    let units = args.ram_unit.is_some() || args.gpu_ram_unit.is_some() || args.time_unit.is_some();
    if units || args.expected_cores.is_some() {
        let cause = format!("units and expected cores are gpu-tracker's; {program} has its own");
        let hint = format!("weigh export RUN --as {program} -o DIR");
        return Err(Failure::new("cannot use these options", cause, hint).code(USAGE));
    }
    Ok(())
}

/// Prints what is missing, and the names of the files.
fn print_exported(exported: &Exported) {
    exported.missing.iter().for_each(|what| print::warning(what));
    print::files(&exported.files);
}

fn all(runs: &[PathBuf], options: &ExportOptions, output: &Path) -> Result<Exported, Failure> {
    if options.formats != [ExportFormat::Parquet] {
        let cause = "many runs are written as one Parquet dataset";
        let hint = "weigh export DIR -f parquet -o OUT, or name one run";
        return Err(Failure::new("cannot export many runs this way", cause, hint).code(USAGE));
    }
    let bar = Bar::of_rows();
    export::dataset(runs, options, output, |progress| bar.show(progress.rows, progress.of))
        .map_err(|error| of_export(&error))
}

fn one(directory: &Path, options: &ExportOptions, output: &Path) -> Result<Exported, Failure> {
    let recording = Recording::open(directory).map_err(|error| of_recording(&error))?;
    let bar = Bar::of_rows();
    export::export(&recording, options, output, |progress| bar.show(progress.rows, progress.of))
        .map_err(|error| of_export(&error))
}
