//! The command line: one declaration for the parser, the help, the man page and the completions.

mod attach;
mod export;
mod import;
mod job;
mod measuring;
mod merge;
mod report;
mod run;
mod runs;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Command, FromArgMatches, Parser, Subcommand, ValueEnum};
use weigh::quantity;

pub(crate) use attach::{AttachArgs, WatchArgs};
pub(crate) use export::{CompatTool, ExportArgs};
pub(crate) use import::{ImportArgs, ImportTool};
pub(crate) use job::{
    EndsWith, Hosts, JobArgs, JobFollowArgs, JobReportArgs, JobRunArgs, JobShowArgs, JobStartArgs,
    JobStopArgs, JobVerb,
};
pub(crate) use measuring::{LivePlace, Measuring};
pub(crate) use merge::MergeArgs;
pub(crate) use report::{PictureFormat, PlotArgs, PlotTool, ReportArgs, ReportFiles, ReportFormat};
pub(crate) use run::{CgroupChoice, PhaseArgs, RunArgs};
pub(crate) use runs::{RunName, RunsArgs};

/// Know what every run costs.
///
/// weigh measures what a command and all processes it starts use (CPU time, memory,
/// I/O) and reports for every figure how it was measured and how exact it is.
#[derive(Debug, Parser)]
#[command(name = "weigh", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  weigh run -- make -j8               measure a command and all it starts
  weigh run -i 100ms -o out -- ./sim  sample ten times a second, record into out/
  weigh attach 4711                   attach to a running process
  weigh watch --tools oasis           monitor all processes of some programs
  weigh job run -- srun ./solver      measure a batch job on all its nodes
  weigh show                          show the newest run again
  weigh doctor                        what can be measured here, and what cannot
";

/// The text of `weigh mark TEXT`, when there is nothing else to parse: the whole command line takes
/// longer to declare than a mark to send, and a script may send many.
pub(crate) fn plain_mark() -> Option<String> {
    let mut words = std::env::args_os().skip(1);
    let (verb, text) = (words.next()?, words.next()?.into_string().ok()?);
    (verb == "mark" && !text.starts_with('-') && words.next().is_none()).then_some(text)
}

/// Parses the command line, or says what is wrong with it.
pub(crate) fn parse() -> Result<Args, clap::Error> {
    let words: Vec<OsString> = std::env::args_os().collect();
    match plain_run(&words) {
        Some(verb) => Ok(Args { verb }),
        None => Args::try_parse_from(words),
    }
}

/// `weigh run …`, parsed with the options of that verb alone: a command waits, and the other
/// verbs take most of the time to declare. Help and errors are those of the whole command line.
fn plain_run(words: &[OsString]) -> Option<Verb> {
    let words = words.get(1..)?;
    if words.first()? != "run" {
        return None;
    }
    let matches = RunArgs::augment_args(Command::new("run")).try_get_matches_from(words).ok()?;
    RunArgs::from_arg_matches(&matches).ok().map(Verb::Run)
}

// The help of a verb with options is at its options.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(RunArgs),
    Attach(AttachArgs),
    Watch(WatchArgs),
    Job(JobArgs),
    Phase(PhaseArgs),
    /// Put a mark into the running recording
    #[command(after_help = "Example, in a script under weigh run:\n  weigh mark 'data loaded'\n")]
    Mark {
        /// Text of the mark
        text: String,
    },
    Show(ShowArgs),
    Report(ReportArgs),
    Export(ExportArgs),
    Plot(PlotArgs),
    Merge(MergeArgs),
    Import(ImportArgs),
    Runs(RunsArgs),
    Doctor(DoctorArgs),
    /// List every metric: name, unit, kind, source
    #[command(after_help = "\
Examples:
  weigh metrics                      every metric that can be recorded
  weigh metrics --perf               groups of hardware counters, and what is derived from them
")]
    Metrics {
        /// List the groups of hardware counters instead: their events here, formulas and meaning
        #[arg(long)]
        perf: bool,
        /// Text for people or JSON for programs
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
    /// Print the completions of a shell
    #[command(
        after_help = "Example:\n  weigh completions bash > ~/.local/share/bash-completion/completions/weigh\n"
    )]
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page of weigh, or of one of its verbs
    #[command(after_help = "Example:\n  weigh man run | man -l -\n")]
    Man {
        /// Which verb
        verb: Option<String>,
    },
}

/// Check what can be measured on this machine, and what to type to change it
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh doctor                       what can be measured here
  weigh doctor --hardware            the hardware of this machine
  weigh doctor --hardware --limits   and the limits of a run here
  weigh doctor --hardware --format json | jq .hardware.cpu.microarchitecture
")]
pub(crate) struct DoctorArgs {
    /// Show the hardware instead: processors, caches, memory, GPUs, network
    #[arg(long)]
    pub hardware: bool,
    /// With --hardware: also resource limits, CPU affinity, NUMA distances and loaded modules
    #[arg(long, alias = "env", requires = "hardware")]
    pub limits: bool,
    /// Where /proc and /sys of the machine are [default: /]
    #[arg(long, value_name = "DIR")]
    pub host_root: Option<PathBuf>,
    /// Text for people or JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    #[command(flatten)]
    pub sizes: Sizes,
}

/// Show the summary of a recorded run
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh show                         the newest run here
  weigh show train                   the run of this name; weigh runs lists them
  weigh show last~1                  the run before the last
  weigh show weigh-runs/2026-…       this one
  weigh show --phases                duration of each phase: count, total, mean ± std
  weigh show --phases -v             with every figure: min, max, mean, std
  weigh show --gpus                  each GPU, and the processes of the run on it
  weigh show --counters              each hardware counter, and what is derived from them
  weigh show --format json | jq .figures.memory_peak_bytes
  weigh show --pytyche-summary       what pytyche's ResourceSummary would have, as JSON
")]
pub(crate) struct ShowArgs {
    #[command(flatten)]
    pub run: RunName,
    /// Print on stdout as text for people, JSON for programs, or Markdown for CI or a wiki
    #[arg(long, value_enum, default_value_t)]
    pub format: SummaryFormat,
    #[command(flatten)]
    pub sizes: Sizes,
    /// Show the phases instead: all of one name together
    #[arg(long)]
    pub phases: bool,
    /// Show the GPUs instead: each of them, and the processes of the run on it
    #[arg(long, conflicts_with_all = ["phases", "verbose"])]
    pub gpus: bool,
    /// Show the hardware counters instead: each event, and what is derived from them
    #[arg(long, conflicts_with_all = ["phases", "gpus", "verbose"])]
    pub counters: bool,
    /// Print every figure
    #[arg(short, long)]
    pub verbose: bool,
    /// Print what pytyche's ResourceSummary.to_dict() would have, as JSON: unknown is null
    #[arg(long, conflicts_with_all = ["format", "phases", "gpus", "counters", "verbose"])]
    pub pytyche_summary: bool,
}

/// How output is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// How a summary is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SummaryFormat {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// Short Markdown, for a comment on a pull request or the summary of a step
    Github,
    /// The whole report as Markdown, without pictures
    Md,
}

/// How sizes are printed: an option of every verb that prints some.
#[derive(Debug, Clone, Copy, ClapArgs)]
pub(crate) struct Sizes {
    /// Sizes in GiB, in GB, or in bytes
    #[arg(long, env = "WEIGH_UNITS", hide_env_values = true, value_enum)]
    pub units: Option<Units>,
}

/// The units of sizes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Units {
    /// KiB, MiB, GiB
    #[default]
    Binary,
    /// kB, MB, GB
    Decimal,
    /// Bytes
    Bytes,
}

impl From<Units> for quantity::Units {
    fn from(units: Units) -> quantity::Units {
        match units {
            Units::Binary => quantity::Units::Binary,
            Units::Decimal => quantity::Units::Decimal,
            Units::Bytes => quantity::Units::Bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// `weigh mark` and `weigh phase` are recognised by their first argument (`collect::processes`).
    #[test]
    fn no_option_may_precede_the_verb() {
        let mut command = Args::command();
        command.build();
        let before_the_verb = command.get_arguments().map(|option| option.get_id().as_str());
        assert_eq!(before_the_verb.collect::<Vec<_>>(), ["help", "version"]);
    }

    #[test]
    fn run_is_parsed_alone_as_it_is_among_all_verbs() {
        let lines = [
            "run true",
            "run -q --no-record -- true -v --help",
            "run -i 100ms -o out --label a=b --label c=d --collect cpu,memory --cgroup auto make -j8",
            "run --summary - --format github --live=title --wait-all help",
            "run --export csv,parquet --report html --units decimal -v -- run",
        ];
        for line in lines {
            let words: Vec<OsString> =
                ["weigh"].into_iter().chain(line.split(' ')).map(Into::into).collect();
            let alone = plain_run(&words).map(|verb| format!("{verb:?}"));
            let among_all = Args::try_parse_from(&words).map(|args| format!("{:?}", args.verb));
            assert_eq!(alone, Some(among_all.unwrap()), "{line}");
        }
        for refused in
            ["run", "run --help", "run -i soon true", "run --no-record -o a true", "mark x"]
        {
            let words: Vec<OsString> =
                ["weigh"].into_iter().chain(refused.split(' ')).map(Into::into).collect();
            assert!(plain_run(&words).is_none(), "{refused}");
        }
    }
}
