//! The command line: one declaration for the parser, the help, the man page and the completions.

mod export;
mod follow;
mod import;
mod measuring;
mod merge;
mod report;
mod run;

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use weigh::quantity;

pub(crate) use export::{ExportArgs, Predecessor};
pub(crate) use follow::{AttachArgs, WatchArgs};
pub(crate) use import::{ImportArgs, Importer};
pub(crate) use measuring::Measuring;
pub(crate) use merge::MergeArgs;
pub(crate) use report::{Drawer, Kind, Picture, PlotArgs, ReportArgs};
pub(crate) use run::{OwnGroup, PhaseArgs, RunArgs};

/// Know what every run costs.
///
/// weigh measures what a command and everything it starts use (CPU time, memory,
/// I/O) and says of every figure how it was got and how sure it is.
#[derive(Debug, Parser)]
#[command(name = "weigh", version, after_help = EXAMPLES, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  weigh run -- make -j8               weigh a command and all it starts
  weigh run -i 100ms -o out -- ./sim  look ten times a second, record into out/
  weigh attach 4711                   follow a process that runs already
  weigh watch --tools oasis           follow every process of some programs
  weigh show                          the newest run once more
  weigh doctor                        what can be measured here, and what cannot
";

// What a verb with options does is said at its options.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    Run(RunArgs),
    Attach(AttachArgs),
    Watch(WatchArgs),
    Phase(PhaseArgs),
    /// Put a mark into the running recording
    #[command(after_help = "Example, in a script under weigh run:\n  weigh mark 'data loaded'\n")]
    Mark {
        /// What to write
        text: String,
    },
    Show(ShowArgs),
    Report(ReportArgs),
    Export(ExportArgs),
    Plot(PlotArgs),
    Merge(MergeArgs),
    Import(ImportArgs),
    /// List the recordings here, newest first
    Runs {
        /// Where to look
        #[arg(default_value = weigh::record::files::DEFAULT_DIRECTORY)]
        directory: PathBuf,
    },
    Doctor(DoctorArgs),
    /// List every metric: name, unit, kind, source
    Metrics {
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

/// Say what can be measured on this machine, what cannot, and what to type to change it
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh doctor                       what can be measured here
  weigh doctor --hardware            what this machine is made of
  weigh doctor --hardware --env      and what a run would be allowed here
  weigh doctor --hardware --format json | jq .hardware.cpu.microarchitecture
")]
pub(crate) struct DoctorArgs {
    /// Say what the machine is made of instead: processors, caches, memory, GPUs, network
    #[arg(long)]
    pub hardware: bool,
    /// With --hardware: what a run is allowed, too: limits, affinity, NUMA distances, modules
    #[arg(long, requires = "hardware")]
    pub env: bool,
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
  weigh show weigh-runs/2026-…       this one
  weigh show --phases                what each phase took: count, total, mean ± std
  weigh show --phases -v             with every figure: min, max, mean, std
  weigh show --gpus                  each GPU, and the processes of the run on it
  weigh show --format json | jq .figures.memory_peak_bytes
  weigh show --pytyche-summary       what pytyche's ResourceSummary would tell, as JSON
")]
pub(crate) struct ShowArgs {
    /// A recording's directory, or its name under weigh-runs [default: the newest]
    pub run: Option<PathBuf>,
    /// Text for people, JSON for programs, or a block for a CI's comment
    #[arg(long, value_enum, default_value_t)]
    pub format: Summary,
    #[command(flatten)]
    pub sizes: Sizes,
    /// Show the phases instead: all of one name together
    #[arg(long)]
    pub phases: bool,
    /// Show the GPUs instead: each of them, and the processes of the run on it
    #[arg(long, conflicts_with_all = ["phases", "verbose"])]
    pub gpus: bool,
    /// Print every figure
    #[arg(short, long)]
    pub verbose: bool,
    /// Print what pytyche's ResourceSummary.to_dict() would have, as JSON: unknown is null
    #[arg(long, conflicts_with_all = ["format", "phases", "gpus", "verbose"])]
    pub pytyche_summary: bool,
}

/// For whom something is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// For whom a summary is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Summary {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// Markdown for a comment on a pull request or a step's summary
    Github,
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

    /// Who is one of weigh's own helpers is told by the first word (`collect::processes`).
    #[test]
    fn no_option_that_leaves_a_verb_to_be_run_stands_before_it() {
        let mut command = Args::command();
        command.build();
        let before_the_verb = command.get_arguments().map(|option| option.get_id().as_str());
        assert_eq!(before_the_verb.collect::<Vec<_>>(), ["help", "version"]);
    }
}
