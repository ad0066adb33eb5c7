//! The options of gpu-tracker, as it names them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

/// Track what a command uses, with the options of gpu-tracker 5.0.1
///
/// This is weigh under the name gpu-tracker: the options and the files are
/// gpu-tracker's, the numbers are weigh's. The exit code is the command's.
#[derive(Debug, Parser)]
#[command(
    name = "gpu-tracker",
    bin_name = "gpu-tracker",
    disable_version_flag = true,
    disable_help_subcommand = true,
    infer_long_args = true,
    args_conflicts_with_subcommands = true,
    max_term_width = 100
)]
pub(super) struct GpuTrackerArgs {
    /// Print the version
    #[arg(short, long)]
    pub version: bool,
    #[command(flatten)]
    pub track: TrackArgs,
    #[command(subcommand)]
    pub verb: Option<GpuTrackerVerb>,
}

#[derive(Debug, ClapArgs)]
pub(super) struct TrackArgs {
    /// The command and its arguments, quoted as for a shell: "sh -c 'sleep 1; exit 3'"
    #[arg(short, long, value_name = "COMMAND", allow_hyphen_values = true)]
    pub execute: Option<OsString>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// JSON file with the arguments of the Tracker class; options override it
    #[arg(long, value_name = "FILE")]
    pub tconfig: Option<PathBuf>,
    /// Sampling interval in seconds, at least 0.1 [default: 1.0]
    #[arg(long, value_name = "SECONDS", allow_hyphen_values = true)]
    pub st: Option<String>,
    /// bytes, kilobytes, megabytes, gigabytes or terabytes [default: gigabytes]
    #[arg(long, value_name = "UNIT")]
    pub ru: Option<String>,
    /// The same for the memory of GPUs
    #[arg(long, value_name = "UNIT")]
    pub gru: Option<String>,
    /// seconds, minutes, hours or days [default: hours]
    #[arg(long, value_name = "UNIT")]
    pub tu: Option<String>,
    /// Cores that should be busy [default: all of the machine]
    #[arg(long, value_name = "CORES", allow_hyphen_values = true)]
    pub nec: Option<String>,
    /// GPUs whose utilization counts, by their UUIDs [default: all]
    #[arg(long, value_name = "UUID,…")]
    pub guuids: Option<String>,
    /// Print no warnings
    #[arg(long)]
    pub disable_logs: bool,
    /// nvidia or amd: measure only GPUs of this vendor [default: all]
    #[arg(long, value_name = "BRAND")]
    pub gb: Option<String>,
    /// Write every sample into this .csv or .sqlite file
    #[arg(long, value_name = "FILE")]
    pub tf: Option<PathBuf>,
    /// Replace the tracking file if it exists
    #[arg(long)]
    pub overwrite: bool,
}

/// The file and the format of a result.
#[derive(Debug, ClapArgs)]
pub(super) struct OutputArgs {
    /// Write the result into this file instead of printing it
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// json, text or pickle [default: text]
    #[arg(short, long, value_name = "FORMAT")]
    pub format: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum GpuTrackerVerb {
    /// Code blocks: combine their files, analyze them, compare the analyses
    #[command(subcommand, infer_long_args = true)]
    SubTrack(SubTrack),
    /// Print the GPUs of this machine as JSON: for this program itself
    #[command(hide = true, name = super::gpus::LIST_GPUS)]
    ListGpus,
}

#[derive(Debug, Subcommand)]
pub(super) enum SubTrack {
    /// Combine the sub-tracking files of several processes into one
    #[command(infer_long_args = true)]
    Combine {
        /// The file to write, .csv or .sqlite
        #[arg(long, value_name = "FILE")]
        stf: PathBuf,
        /// The files (or recordings) to combine, or one directory of them
        #[arg(short, required = true, num_args = 1.., value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Report what each code block used
    #[command(infer_long_args = true)]
    Analyze {
        /// The tracking file, or a recording of weigh
        #[arg(long, value_name = "FILE")]
        tf: PathBuf,
        /// The sub-tracking file, or a recording [default: the recording of --tf]
        #[arg(long, value_name = "FILE")]
        stf: Option<PathBuf>,
        #[command(flatten)]
        output: OutputArgs,
    },
    /// Compare several sessions
    #[command(infer_long_args = true)]
    Compare {
        #[command(flatten)]
        output: OutputArgs,
        /// JSON file with file_path_map and statistic; options override it
        #[arg(long, value_name = "FILE")]
        cconfig: Option<PathBuf>,
        /// A session: its name and the JSON of its analysis, or its recording (repeatable)
        #[arg(short, num_args = 1.., value_name = "NAME=PATH")]
        map: Vec<OsString>,
        /// min, max, mean or std [default: mean]
        #[arg(long, value_name = "STATISTIC")]
        stat: Option<String>,
    },
}
