//! The command line, on any words: options that can be used, or what a person is told of them.
//!
//! The input is the words with a NUL between them, as /proc/PID/cmdline has them. Nothing is run,
//! read or written: what comes after the options and the settings is not called.

#![no_main]

// The program is no library: its own files are built in here, of which this uses a part.
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
use weigh::collect::rule::ProgramRule;

use args::{Args, Measuring, Verb};

fn measured(measuring: &Measuring, wait_all: bool) {
    let file = config::File::default();
    let settings = file.settings(measuring, wait_all);
    let settings = settings.expect("an empty file has nothing that is wrong");
    let _ = settings.check();
    settings.sources();
}

/// What a person would read; help is only made, not printed.
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
    let told = failure::of_usage(error).expect_err("this is no help");
    assert!(!told.cause.is_empty(), "no cause of {error:?}");
    assert!(!told.hint.is_empty(), "no hint for {error:?}");
}

fuzz_target!(|bytes: &[u8]| {
    let words = bytes.split(|byte| *byte == 0).map(OsStr::from_bytes);
    let args = match Args::try_parse_from([OsStr::new("weigh")].into_iter().chain(words)) {
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
