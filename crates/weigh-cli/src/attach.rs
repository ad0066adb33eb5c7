//! `weigh attach` and `weigh watch`.

use std::path::Path;

use weigh::compat::oasis;
use weigh::record::{Manifest, Target};
use weigh::run::{AttachOptions, AttachTarget, Outcome, ProgramRule};

use crate::args::{AttachArgs, WatchArgs};
use crate::failure::{Failure, USAGE};
use crate::measurement::Measurement;
use crate::print;

/// Attaches to running processes or a cgroup.
pub(crate) fn attach(args: AttachArgs) -> Result<u8, Failure> {
    let mut pids = args.pids;
    pids.sort_unstable();
    pids.dedup();
    let what = args.cgroup.map_or(AttachTarget::Processes(pids), AttachTarget::Cgroup);
    let measurement = Measurement::prepare(&args.measuring, args.wait_all)?;
    monitor(AttachOptions { what, time: args.until.time }, measurement)
}

/// Monitors all processes of some programs.
pub(crate) fn watch(args: WatchArgs) -> Result<u8, Failure> {
    let mut measurement = Measurement::prepare(&args.measuring, false)?;
    let mut names = args.names;
    if let Some(tools) = args.tools.as_deref().filter(|_| names.is_empty()) {
        let stem = Path::new(tools).file_stem().map(|stem| stem.to_string_lossy().into_owned());
        measurement.settings.name = measurement.settings.name.or(stem);
    }
    if let Some(tools) = &args.tools {
        names.extend(tool_names(tools)?);
    }
    let rule = ProgramRule::new(names, args.regex.as_deref(), args.anywhere).map_err(|error| {
        let hint = "weigh watch NAME…, or weigh watch --regex '^name'";
        Failure::new("cannot watch for this", error, hint).code(USAGE)
    })?;
    let what = AttachTarget::Programs { rule, under: args.under };
    monitor(AttachOptions { what, time: args.until.time }, measurement)
}

fn monitor(options: AttachOptions, mut measurement: Measurement<'_>) -> Result<u8, Failure> {
    let is_quiet = measurement.is_quiet();
    let begun = |manifest: &Manifest| {
        if !is_quiet && print::err_is_terminal() {
            print::err(&start_message(manifest, &options));
        }
    };
    let observer = measurement.observer();
    let outcome = weigh::run::attach(&options, &measurement.settings, begun, observer);
    let Outcome { summary, recording, warnings, .. } =
        outcome.inspect_err(|_| measurement.discard())?;
    measurement.finish(summary, recording.as_deref(), warnings);
    Ok(0)
}

/// What is monitored and until when, for a user at the terminal.
fn start_message(manifest: &Manifest, options: &AttachOptions) -> String {
    let what = manifest.target.as_ref().map(Target::words).unwrap_or_default();
    let what = weigh::text::printable(&what);
    let until = match (&options.time, &options.what) {
        (Some(time), _) => format!("for {}", weigh::quantity::seconds(time.as_secs_f64())),
        (None, AttachTarget::Programs { under: None, .. }) => "until Ctrl-C".to_owned(),
        (None, _) => "until the end".to_owned(),
    };
    format!("weigh: monitoring {what} {until}; Ctrl-C ends only the monitoring\n")
}

/// The names in a file, or in a predefined set.
#[expect(clippy::disallowed_methods, reason = "the user's own file, not the machine's")]
fn tool_names(tools: &str) -> Result<Vec<String>, Failure> {
    if tools == "oasis" {
        return Ok(oasis::TOOLS.map(str::to_owned).to_vec());
    }
    let hint = "a file with a name on each line, or a predefined set: --tools oasis";
    let failed = |cause: String| {
        Failure::new(format!("cannot read tools from {tools}"), cause, hint).code(USAGE)
    };
    let path = Path::new(tools);
    if path.exists() && !path.is_file() {
        return Err(failed("it is not a file".to_owned()));
    }
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    let names: Vec<String> = lines.filter(|name| !name.is_empty()).map(str::to_owned).collect();
    if names.is_empty() {
        return Err(failed("it has no names".to_owned()));
    }
    Ok(names)
}
