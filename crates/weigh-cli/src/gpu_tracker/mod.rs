//! weigh under the name `gpu-tracker`: that program's options, output and files.
//!
//! It needs only a symlink of that name. All options are checked before the command starts, with
//! gpu-tracker's own messages.

mod args;
mod gpus;
mod output;
mod plan;
mod sub_track;
mod tconfig;
mod track;

pub(crate) use track::no_gpu;

use clap::Parser;
use weigh::program::Inherited;

use crate::failure::{self, Failure, USAGE};
use crate::print;
use args::{GpuTrackerArgs, GpuTrackerVerb};

/// The name.
pub(crate) const NAME: &str = "gpu-tracker";

/// Runs what the arguments of gpu-tracker request.
pub(crate) fn dispatch(inherited: Inherited) -> Result<u8, Failure> {
    let args = match GpuTrackerArgs::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let outcome = failure::of_usage(&error);
            return outcome.map_err(|failure| Failure { hint: HINT.to_owned(), ..failure });
        }
    };
    match args.verb {
        _ if args.version => {
            print::out(VERSION);
            Ok(0)
        }
        Some(GpuTrackerVerb::SubTrack(verb)) => sub_track::dispatch(verb),
        Some(GpuTrackerVerb::ListGpus) => gpus::list(),
        None => track::track(args.track, inherited),
    }
}

/// The version of gpu-tracker whose options and files these are, and of weigh.
const VERSION: &str = concat!("5.0.1 (weigh ", env!("CARGO_PKG_VERSION"), ")\n");
const HINT: &str = "gpu-tracker -e 'COMMAND', or see gpu-tracker --help";

/// An invalid command line.
fn usage(cause: impl ToString) -> Failure {
    Failure::new("cannot track this", cause, HINT).code(USAGE)
}
