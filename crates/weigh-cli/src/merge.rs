//! `weigh merge`.

use std::path::{Path, PathBuf};

use weigh::host::clock;
use weigh::merge::{self, Merged};
use weigh::record::{self, Recording, files};
use weigh::report::text;

use crate::args::{Format, MergeArgs};
use crate::failure::{Failure, USAGE, of_recording};
use crate::progress::Bar;
use crate::{config, print, show};

/// Puts recordings together, and says what they used.
pub(crate) fn merge(args: MergeArgs) -> Result<u8, Failure> {
    let units = config::units(args.sizes.units)?;
    let mut recordings = Vec::new();
    for run in args.runs {
        recordings.extend(found(&show::find(Some(run))?)?);
    }
    let merged = together(&recordings, args.output.as_deref(), args.name.as_deref())?;
    let Merged { directory, summary, warnings } = merged;
    warnings.iter().for_each(|warning| print::warning(warning));
    print::out(&match args.format {
        Format::Json => show::json(&summary)?,
        Format::Text => {
            text::summary(&summary, Some(&directory), text::Style { units, colour: true })
        }
    });
    Ok(0)
}

/// The recording in a directory, or all recordings in it that were not put together themselves.
fn found(directory: &Path) -> Result<Vec<Recording>, Failure> {
    if directory.join("run.json").exists() {
        let one = Recording::open(directory).map_err(|error| of_recording(&error))?;
        return Ok(vec![one]);
    }
    let listed = files::recordings(directory).map_err(|error| of_recording(&error))?;
    let mut recordings = Vec::new();
    // The oldest first, as people count their workers.
    for path in listed.iter().rev() {
        let one = Recording::open(path).map_err(|error| of_recording(&error))?;
        if !one.manifest().is_merged() {
            recordings.push(one);
        }
    }
    if recordings.is_empty() {
        let cause = format!("{}: neither a recording nor a directory of some", directory.display());
        let hint = "see what is there: weigh runs DIR";
        return Err(Failure::new("cannot find recordings", cause, hint));
    }
    Ok(recordings)
}

fn together(
    recordings: &[Recording],
    output: Option<&Path>,
    name: Option<&str>,
) -> Result<Merged, Failure> {
    let bar = Bar::of_steps();
    bar.say("putting recordings together");
    let milliseconds = |time: std::time::Duration| time.as_millis() as u64;
    merge::merge(recordings, output, name, clock::wall(), |progress| {
        bar.show(milliseconds(progress.done), milliseconds(progress.of));
    })
    .map_err(|error| of_merge(&error, output))
}

fn of_merge(error: &merge::Error, output: Option<&Path>) -> Failure {
    const WHAT: &str = "cannot put these recordings together";
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
            let hint = "name a directory you may write to: weigh merge … -o OUT";
            Failure::new("cannot write there", error, hint)
        }
        merge::Error::Recording(error) => of_recording(error),
        merge::Error::Unwritten { .. } => {
            let hint = "name a directory where there is room: weigh merge … -o OUT";
            Failure::new("cannot write there", error, hint)
        }
    }
}
