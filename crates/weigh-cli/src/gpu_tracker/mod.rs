//! weigh under the name `gpu-tracker`: that program's options, output and files.
//!
//! A symlink of that name is all it takes. Everything is checked before the command
//! starts, in the words that gpu-tracker has for it.

mod args;
mod gpus;
mod output;
mod plan;
mod sub_track;
mod tconfig;
mod track;

pub(crate) use track::no_gpu;

use std::ffi::OsStr;
use std::path::Path;

use clap::Parser;
use weigh::host::child::Inherited;

use crate::failure::{self, Failure, USAGE};
use crate::print;
use args::{Args, Verb};

/// Whether this program was started under that name.
pub(crate) fn is_called(program: Option<&OsStr>) -> bool {
    program.and_then(|program| Path::new(program).file_name()) == Some(OsStr::new("gpu-tracker"))
}

/// What gpu-tracker does.
pub(crate) fn act(inherited: Inherited) -> Result<u8, Failure> {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let said = failure::of_usage(&error);
            return said.map_err(|failure| Failure { hint: HINT.to_owned(), ..failure });
        }
    };
    match args.verb {
        _ if args.version => {
            print::out(VERSION);
            Ok(0)
        }
        Some(Verb::SubTrack(verb)) => sub_track::act(verb),
        Some(Verb::ListGpus) => gpus::list(),
        None => track::track(args.track, inherited),
    }
}

/// Whose options and files these are, and who reads and writes them.
const VERSION: &str = concat!("5.0.1 (weigh ", env!("CARGO_PKG_VERSION"), ")\n");
const HINT: &str = "gpu-tracker -e 'COMMAND', or see gpu-tracker --help";

/// Something on the command line that cannot be.
fn usage(cause: impl ToString) -> Failure {
    Failure::new("cannot track this", cause, HINT).code(USAGE)
}
