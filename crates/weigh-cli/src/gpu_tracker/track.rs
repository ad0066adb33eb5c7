//! `gpu-tracker -e COMMAND`.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use weigh::compat::gpu_tracker::timepoints::Peaks;
use weigh::compat::gpu_tracker::{self, ResourceUsage};
use weigh::model::End;
use weigh::model::settings::{Destination, Settings};
use weigh::program::Inherited;
use weigh::record::Recording;
use weigh::run::{Caller, Outcome};

use super::args::TrackArgs;
use super::output::Output;
use super::plan::Plan;
use super::{tconfig, usage};
use crate::failure::Failure;
use crate::print;
use crate::run::exec_if_limited;

/// Why GPU fields are zero or null, where none was measured and the machine has `count`.
pub(crate) fn no_gpu(count: Option<u64>) -> &'static str {
    match count {
        Some(0) => "no GPU is measured: the GPU RAM and GPU utilization values will remain 0.0",
        _ => {
            "no GPU is measured, though there may be some: the GPU RAM and GPU utilization values \
              are null"
        }
    }
}

/// Runs the command, prints what it used, and returns its exit code.
pub(super) fn track(args: TrackArgs, inherited: Inherited) -> Result<u8, Failure> {
    let args = tconfig::merge(args)?;
    let plan = Plan::of(&args)?;
    let hidden = hidden_directory(&plan)?;
    let mut output = Output::open(&args.output)?;
    let destination = Destination::Directory(hidden.path().to_owned());
    let settings = Settings { destination, ..plan.settings() };
    let caller = Caller { inherited, keeps_stderr: true };
    let outcome = match weigh::run::run(&plan.command, &settings, caller, None) {
        Ok(outcome) => outcome,
        Err(error) => {
            output.discard();
            return Err(exec_if_limited(error, &plan.command, inherited).into());
        }
    };
    let exit = outcome.end.exit.unwrap_or(End::Code(1));
    let any_gpu = !outcome.summary.gpus.is_empty();
    let faults = outcome.summary.monitor.faults.iter();
    let of_gpus: Vec<String> = faults.filter(|why| why.starts_with("gpu: ")).cloned().collect();
    let (usage, mut warnings) = write_tracking_file(&plan, outcome, hidden);
    warnings.extend(of_gpus);
    if !any_gpu {
        warnings.push(no_gpu(usage.gpu_utilization.system_gpu_count).to_owned());
    }
    let status = match exit {
        End::Code(code) => code,
        End::Signal(signal) => -signal,
    };
    output.print_line(&format!(
        "Resource tracking complete. Process completed with status code: {status}"
    ));
    warnings.extend(output.write(&usage.to_value(), || usage.to_text()).err());
    if !plan.quiet {
        warnings.iter().for_each(|warning| print::warning(warning));
    }
    Ok(exit.exit_code() as u8)
}

/// The directory of the recording until the files are written: beside the tracking file, where
/// free space is needed anyway, or the directory for temporary files.
fn hidden_directory(plan: &Plan) -> Result<TempDir, Failure> {
    let beside = plan.tracking_file.as_deref().and_then(Path::parent);
    let place = match beside {
        Some(parent) if parent.as_os_str().is_empty() => PathBuf::from("."),
        Some(parent) => parent.to_owned(),
        None => std::env::temp_dir(),
    };
    let made = tempfile::Builder::new().prefix(".weigh-gpu-tracker-").tempdir_in(&place);
    made.map_err(|error| usage(format!("{}: {error}", place.display())))
}

/// Writes the tracking file and returns what the command used. The recording is removed unless
/// that failed.
fn write_tracking_file(
    plan: &Plan,
    outcome: Outcome,
    hidden: TempDir,
) -> (ResourceUsage, Vec<String>) {
    let Outcome { summary, recording, mut warnings, .. } = outcome;
    let files: Vec<&Path> = plan.tracking_file.as_deref().into_iter().collect();
    let tracked = recording.map(|directory| {
        let recording = Recording::open(&directory)?;
        gpu_tracker::track(&recording, &plan.options, &files, plan.overwrite)
    });
    match tracked {
        Some(Ok(usage)) => return (usage, warnings),
        Some(Err(error)) => {
            let kept = hidden.keep();
            warnings.push(format!("no tracking file: {error}"));
            warnings.push(format!("the recording is kept in {}", kept.display()));
        }
        // There is a warning already why there is no recording.
        None => warnings.extend(files.first().map(|path| {
            format!("no tracking file {}: there is no recording to make it from", path.display())
        })),
    }
    (ResourceUsage::of(&summary, &Peaks::default(), &plan.options), warnings)
}
