//! The `weigh` program: arguments in, text and exit codes out.

mod args;
mod attach;
mod config;
mod counter_groups;
mod doctor;
mod export;
mod failure;
mod find;
mod gpu_tracker;
mod import;
mod inherited;
mod job;
mod live;
mod measurement;
mod merge;
mod metrics;
mod pages;
mod perfmon;
mod phase;
mod plot;
mod print;
mod progress;
mod report;
mod result_file;
mod run;
mod runs;
mod show;

use std::ffi::OsStr;
use std::path::Path;
use std::process::ExitCode;

use weigh::program::{self, Inherited};

use args::{Args, Verb};
use failure::Failure;

/// The command runs to its end even when no memory is left for weigh.
#[global_allocator]
static ALLOCATOR: program::Allocator = program::Allocator;

fn main() -> ExitCode {
    program::with_enough_stack(begin)
}

fn begin() -> ExitCode {
    let inherited = inherited::saved();
    let outcome = if is_invoked_as(gpu_tracker::NAME) {
        gpu_tracker::dispatch(inherited)
    } else if is_invoked_as(perfmon::NAME) {
        perfmon::dispatch()
    } else if let Some(text) = args::plain_mark() {
        phase::mark(&text, inherited)
    } else {
        match args::parse() {
            Ok(args) => dispatch(args, inherited),
            Err(error) => failure::of_usage(&error),
        }
    };
    match outcome {
        Ok(0) if print::output_failed() => ExitCode::FAILURE,
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            print::failure(&failure);
            ExitCode::from(failure.code)
        }
    }
}

/// Whether this program was started under that name, by a symlink.
fn is_invoked_as(name: &str) -> bool {
    let program = std::env::args_os().next();
    program.as_deref().map(Path::new).and_then(Path::file_name) == Some(OsStr::new(name))
}

fn dispatch(args: Args, inherited: Inherited) -> Result<u8, Failure> {
    match args.verb {
        Verb::Run(options) => run::run(options, inherited),
        Verb::Attach(options) => attach::attach(options),
        Verb::Watch(options) => attach::watch(options),
        Verb::Job(options) => job::job(options, inherited),
        Verb::Phase(options) => phase::phase(options, inherited),
        Verb::Mark { text } => phase::mark(&text, inherited),
        Verb::Show(options) => show::show(options),
        Verb::Export(options) => export::export(options),
        Verb::Report(options) => report::report(options),
        Verb::Plot(options) => plot::plot(options),
        Verb::Merge(options) => merge::merge(options),
        Verb::Import(options) => import::import(options),
        Verb::Runs(options) => runs::runs(options),
        Verb::Doctor(options) => doctor::doctor(options),
        Verb::Metrics { perf: true, format } => counter_groups::list(format),
        Verb::Metrics { perf: false, format } => metrics::metrics(format),
        Verb::Completions { shell } => pages::completions(shell),
        Verb::Man { verb } => pages::man(verb.as_deref()),
    }
}
