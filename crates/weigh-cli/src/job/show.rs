//! `weigh job show`.

use std::path::{Path, PathBuf};

use weigh::program;
use weigh::quantity::Units;
use weigh::record::{files, job_directory};
use weigh::report::{job, job_array};
use weigh::summary::job::JobSummary;
use weigh::summary::job::array::ArraySummary;

use super::directory;
use crate::args::{Format, JobShowArgs};
use crate::failure::{Failure, of_recording};
use crate::{config, print, show};

/// Shows what a job used.
pub(crate) fn show(args: JobShowArgs) -> Result<u8, Failure> {
    let units = config::units(args.sizes.units)?;
    if let [_, _, ..] = &args.directories[..] {
        return show_all(&args.directories, args.format, units);
    }
    let directory = named_or_own(args.directories.first().map(PathBuf::as_path))?;
    print::out(&match args.format {
        Format::Json => show::json(&summary(&directory)?)?,
        Format::Text => job::text(&summary(&directory)?, print::style(units)),
    });
    Ok(0)
}

/// Compares several jobs.
fn show_all(directories: &[PathBuf], format: Format, units: Units) -> Result<u8, Failure> {
    let named = |directory: &PathBuf| named_or_own(Some(directory));
    let directories = directories.iter().map(named).collect::<Result<Vec<_>, _>>()?;
    let array = ArraySummary::of(&directories, program::now());
    let array = array.map_err(|error| of_recording(&error))?;
    print::out(&match format {
        Format::Json => show::json(&array)?,
        Format::Text => job_array::text(&array, print::style(units)),
    });
    Ok(0)
}

/// The directory that is named, that of the job this is part of, or the newest.
pub(super) fn named_or_own(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let own = || weigh::job::here().map(|here| directory(&here, None));
    let found = named.map(Path::to_owned).or_else(own).filter(|path| job_directory::is_one(path));
    found.or_else(|| newest().filter(|_| named.is_none())).ok_or_else(|| {
        let cause = match named {
            Some(path) => format!("{} has no job.json", path.display()),
            None => format!("no directory in {} has a job.json", files::DEFAULT_DIRECTORY),
        };
        let hint = "name the directory of a job: weigh job show weigh-runs/job-4711";
        Failure::new("cannot find the recording of a job", cause, hint)
    })
}

/// The newest job in the default directory.
#[expect(clippy::disallowed_methods, reason = "the user's recordings, not the machine's files")]
fn newest() -> Option<PathBuf> {
    let entries = std::fs::read_dir(files::DEFAULT_DIRECTORY).ok()?.flatten();
    let jobs = entries.filter(|entry| job_directory::is_one(&entry.path()));
    let newest = jobs.max_by_key(|entry| entry.metadata().and_then(|file| file.modified()).ok());
    newest.map(|entry| entry.path())
}

fn summary(directory: &Path) -> Result<JobSummary, Failure> {
    JobSummary::of(directory, program::now()).map_err(|error| of_recording(&error))
}

/// What a job used, for stderr.
pub(super) fn shown(directory: &Path, units: Units) -> Result<String, Failure> {
    let columns = print::err_columns();
    let style = weigh::report::text::Style { units, colour: true, columns };
    Ok(job::text(&summary(directory)?, style))
}
