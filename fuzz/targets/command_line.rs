//! The command line, on any arguments: valid options, or an error message.
//!
//! The input is the arguments with a NUL between them, as in /proc/PID/cmdline. Nothing is run,
//! read or written: only options and settings are parsed.

#![no_main]

// The program is not a library: its files are included here, and this uses a part of them.
#[allow(dead_code, unused_imports)]
#[path = "../../crates/weigh-cli/src/args/mod.rs"]
mod args;
#[allow(dead_code)]
#[path = "../../crates/weigh-cli/src/config.rs"]
mod config;
#[allow(dead_code)]
#[path = "../../crates/weigh-cli/src/failure.rs"]
mod failure;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use clap::Parser;
use clap::error::ErrorKind;
use libfuzzer_sys::fuzz_target;
use weigh::run::ProgramRule;

use args::{Args, Measuring, Verb};

fn measured(measuring: &Measuring, wait_all: bool) {
    let file = config::File::default();
    let settings = file.settings(measuring, wait_all);
    let settings = settings.expect("an empty file has nothing that is wrong");
    let _ = settings.check();
    settings.sources();
}

/// Checks an error message; help is only rendered, not printed.
fn refused(error: &clap::Error) {
    let is_help = matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if is_help {
        error.render();
        return;
    }
    let failure = failure::of_usage(error).expect_err("this is no help");
    assert!(!failure.cause.is_empty(), "no cause of {error:?}");
    assert!(!failure.hint.is_empty(), "no hint for {error:?}");
}

fuzz_target!(|bytes: &[u8]| {
    let arguments = bytes.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let args = match Args::try_parse_from([OsStr::new("weigh")].into_iter().chain(arguments)) {
        Ok(args) => args,
        Err(error) => return refused(&error),
    };
    match args.verb {
        Verb::Run(run) => measured(&run.measuring, run.wait_all),
        Verb::Attach(attach) => measured(&attach.measuring, attach.wait_all),
        Verb::Watch(watch) => {
            measured(&watch.measuring, false);
            let _ = ProgramRule::new(watch.names, watch.regex.as_deref(), watch.anywhere);
        }
        _ => {}
    }
});
