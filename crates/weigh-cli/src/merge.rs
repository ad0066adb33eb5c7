//! `weigh merge`.

use std::path::{Path, PathBuf};

use weigh::merge::{self, Merged};
use weigh::program;
use weigh::quantity;
use weigh::record::clock::{self, ClockOffset, RecordedClock};
use weigh::record::job_directory::LaunchTimes;
use weigh::record::{self, Recording, files};
use weigh::report::text;

use crate::args::{Format, MergeArgs};
use crate::failure::{Failure, USAGE, of_recording};
use crate::progress::Bar;
use crate::{config, find, print, show};

/// Merges recordings, and prints the summary.
pub(crate) fn merge(args: MergeArgs) -> Result<u8, Failure> {
    let units = config::units(args.sizes.units)?;
    let mut recordings = Vec::new();
    for run in args.runs {
        recordings.extend(opened(&run)?);
    }
    let recordings = on_one_clock(recordings, &args.offsets)?;
    let merged = merge_all(&recordings, args.output.as_deref(), args.name.as_deref())?;
    let Merged { directory, summary, warnings } = merged;
    warnings.iter().for_each(|warning| print::warning(warning));
    print::out(&match args.format {
        Format::Json => show::json(&summary)?,
        Format::Text => text::summary(&summary, Some(&directory), print::style(units)),
    });
    Ok(0)
}

/// The recording that is named, or all recordings in a directory that are not merged ones.
fn opened(run: &Path) -> Result<Vec<Recording>, Failure> {
    let open = |path: &Path| Recording::open(path).map_err(|error| of_recording(&error));
    let Some(listed) = find::all_in(run) else { return Ok(vec![open(&find::one(Some(run))?)?]) };
    let mut recordings = Vec::new();
    // The oldest first, in the order in which workers were started.
    for path in listed.iter().rev() {
        let one = open(path)?;
        if !one.manifest().is_merged() {
            recordings.push(one);
        }
    }
    Ok(recordings)
}

/// The recordings with their clocks corrected: by what was given, or as far as it is known that they
/// are off.
fn on_one_clock(
    recordings: Vec<Recording>,
    given: &[(String, f64)],
) -> Result<Vec<Recording>, Failure> {
    let clocks: Option<Vec<RecordedClock>> =
        recordings.iter().map(|recording| RecordedClock::of(recording.directory())).collect();
    // A recording that is damaged in this way is reported by the merge.
    let Some(clocks) = clocks else { return Ok(recordings) };
    if let Some((host, _)) =
        given.iter().find(|(host, _)| clocks.iter().all(|clock| clock.host != *host))
    {
        let mut hosts: Vec<&str> = clocks.iter().map(|clock| clock.host.as_str()).collect();
        hosts.dedup();
        let cause = format!("no recording is of {host}; they are of {}", hosts.join(", "));
        let hint = "weigh merge … --offset HOST=1.5s";
        return Err(Failure::new("cannot correct that clock", cause, hint).code(USAGE));
    }
    let launch = recordings.first().and_then(|one| LaunchTimes::read(one.directory().parent()?));
    let known = clock::offsets(&clocks, launch.as_ref());
    let corrected = recordings.into_iter().zip(clocks).zip(known).map(|((one, clock), known)| {
        let given = given.iter().rev().find(|(host, _)| *host == clock.host);
        let offset = given.map(|(_, seconds)| ClockOffset::given(*seconds)).or(known);
        let ahead = offset.as_ref().map_or(0.0, |offset| offset.corrected_seconds);
        if let Some(offset) = offset.filter(|_| ahead != 0.0) {
            let (by, way) =
                (quantity::seconds(ahead.abs()), if ahead > 0.0 { "ahead" } else { "behind" });
            let within = quantity::seconds(offset.uncertainty_seconds);
            let (host, source) = (&clock.host, &offset.source);
            print::warning(&format!(
                "the clock of {host} was {by} {way} (to within {within}, by {source}): corrected"
            ));
        }
        one.with_clock_ahead(ahead)
    });
    Ok(corrected.collect())
}

fn merge_all(
    recordings: &[Recording],
    output: Option<&Path>,
    name: Option<&str>,
) -> Result<Merged, Failure> {
    let bar = Bar::of_steps();
    bar.step("merging recordings");
    let milliseconds = |time: std::time::Duration| time.as_millis() as u64;
    merge::merge(recordings, output, name, program::now(), |progress| {
        bar.show(milliseconds(progress.done), milliseconds(progress.of));
    })
    .map_err(|error| merge_failure(&error, output))
}

fn merge_failure(error: &merge::Error, output: Option<&Path>) -> Failure {
    const WHAT: &str = "cannot merge these recordings";
    let place = || output.map_or_else(|| PathBuf::from(files::DEFAULT_DIRECTORY), Path::to_owned);
    match error {
        merge::Error::TooFew(_) => {
            let hint = "name two or more: weigh merge DIR DIR …";
            Failure::new(WHAT, error, hint).code(USAGE)
        }
        merge::Error::TooMany(_) => {
            let hint = "leave some out: weigh merge DIR DIR …";
            Failure::new(WHAT, error, hint).code(USAGE)
        }
        merge::Error::Twice { .. } => {
            let hint = "name each once: weigh merge DIR DIR …";
            Failure::new(WHAT, error, hint).code(USAGE)
        }
        merge::Error::Recording(record::Error::Occupied { .. }) => {
            let hint = "name a new directory: weigh merge … -o OUT";
            Failure::new("cannot write there", error, hint).code(USAGE)
        }
        merge::Error::Recording(record::Error::File { path, .. }) if path.starts_with(place()) => {
            let hint = "name a writable directory: weigh merge … -o OUT";
            Failure::new("cannot write there", error, hint)
        }
        merge::Error::Recording(error) => of_recording(error),
        merge::Error::Unwritten { .. } => {
            let hint = "name a directory with free space: weigh merge … -o OUT";
            Failure::new("cannot write there", error, hint)
        }
    }
}
