//! `weigh.toml`, on any text: settings that can be used, or an error that names the line.

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

use std::sync::LazyLock;

use clap::Parser;
use libfuzzer_sys::fuzz_target;

/// A command line that leaves everything to the file.
static MEASURING: LazyLock<args::Measuring> = LazyLock::new(|| {
    match args::Args::parse_from(["weigh", "run", "true"]).verb {
        args::Verb::Run(run) => run.measuring,
        other => unreachable!("{other:?}"),
    }
});

fuzz_target!(|text: &str| {
    let file = match config::File::of(text) {
        Ok(file) => file,
        Err(why) => {
            assert!(why.starts_with("line "), "no line in: {why}");
            return;
        }
    };
    let _ = file.units();
    if let Ok(settings) = file.settings(&MEASURING, false) {
        let _ = settings.check();
        settings.sources();
    }
});
