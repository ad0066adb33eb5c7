//! `weigh job report`: a page, Markdown or paper about all nodes.

use weigh::program;
use weigh::record::files;
use weigh::report::{Document, document};
use weigh::summary::job::JobReading;

use super::show::named_or_own;
use crate::args::JobReportArgs;
use crate::config;
use crate::failure::{Failure, of_recording};
use crate::progress::Bar;
use crate::report::{Place, written};

/// Writes reports of a job, and prints the names of the files.
pub(super) fn report(args: JobReportArgs) -> Result<u8, Failure> {
    let units = config::units(args.sizes.units)?;
    let directory = named_or_own(args.directory.as_deref())?;
    let bar = Bar::of_steps();
    bar.step("reading the nodes");
    let progress = |share| bar.show((share * 1000.0) as u64, 1000);
    let job = JobReading::of(&directory, program::now(), progress)
        .map_err(|error| of_recording(&error))?;
    drop(bar);
    let name = format!("job-report-{}", files::safe_name(document::job_id(&job.summary)));
    written(&Document::of_job(&job, units), &args.files, Place::own(directory, name))
}
