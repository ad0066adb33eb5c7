//! Options of every verb that measures: how to measure, record and report.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, ValueEnum};
use weigh::quantity;

use super::export::export_format;
use super::{ReportFormat, Sizes, SummaryFormat};

/// Options of every verb that measures.
#[derive(Debug, ClapArgs)]
pub(crate) struct Measuring {
    /// Sampling interval, like 250ms or 2m [default: 1s]
    #[arg(short, long, env = "WEIGH_INTERVAL", hide_env_values = true, value_parser = quantity::parse_duration, value_name = "TIME")]
    pub interval: Option<Duration>,
    /// Record into this directory, which must be new or empty [default: weigh-runs/TIME-NAME]
    #[arg(short, long, value_name = "DIR", conflicts_with = "no_record")]
    pub output: Option<PathBuf>,
    /// Do not record
    #[arg(long)]
    pub no_record: bool,
    /// Name of the run [default: the program's name]
    #[arg(long, env = "WEIGH_NAME", hide_env_values = true)]
    pub name: Option<String>,
    /// Attach a label to the run (repeatable)
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// Use only these collectors
    #[arg(
        long,
        env = "WEIGH_COLLECT",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub collect: Option<Vec<String>>,
    /// Leave out these collectors
    #[arg(
        long,
        env = "WEIGH_SKIP",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub skip: Option<Vec<String>>,
    /// CPU budget for expensive reads (smaps, socket lists), as a share of one core [default: 0.5%]
    #[arg(long, env = "WEIGH_BUDGET", hide_env_values = true, value_parser = quantity::parse_ratio, value_name = "SHARE")]
    pub budget: Option<f64>,
    /// Cores the run should keep busy [default: all it may use]
    #[arg(long, env = "WEIGH_EXPECTED_CORES", hide_env_values = true, value_name = "N")]
    pub expected_cores: Option<f64>,
    /// Record each CPU of the machine, too
    #[arg(long)]
    pub per_cpu: bool,
    /// Count groups of hardware events: default (IPC, BRANCH, CACHE), L2CACHE, FLOPS_DP, MEM, TMA, …
    #[arg(
        long,
        env = "WEIGH_PERF",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub perf: Option<Vec<String>>,
    /// Count one more event (repeatable): a name, r01c2, cpu/event=0x51,umask=0x1/, a tracepoint
    #[arg(long = "event", value_name = "EVENT")]
    pub events: Vec<String>,
    /// GPUs to measure: index, name (amd1, nvidia0:1) or UUID prefix [default: all]
    #[arg(
        long,
        env = "WEIGH_GPUS",
        hide_env_values = true,
        value_delimiter = ',',
        value_name = "LIST"
    )]
    pub gpus: Option<Vec<String>>,
    /// Do not record command lines
    #[arg(long)]
    pub no_cmdline: bool,
    /// Also record resource limits, CPU affinity, NUMA distances and loaded modules
    #[arg(long, alias = "env")]
    pub limits: bool,
    /// Where /proc and /sys of the machine are [default: /]
    #[arg(long, value_name = "DIR")]
    pub host_root: Option<PathBuf>,
    /// Format of the summary: on stderr, or where --summary writes it [default: text, and json
    /// with --summary]
    #[arg(long, value_enum, hide_possible_values = true, value_name = "text|json|github|md")]
    pub format: Option<SummaryFormat>,
    /// Write the summary also into this file; - is stdout, after what the command prints there
    #[arg(long, value_name = "FILE|-")]
    pub summary: Option<PathBuf>,
    /// Write the summary also to this open descriptor, like 3 with 3>out.json
    #[arg(long, value_name = "N", conflicts_with = "summary")]
    pub summary_fd: Option<i32>,
    #[command(flatten)]
    pub sizes: Sizes,
    /// Export the recording at the end, as weigh export does
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = export_format(), conflicts_with = "no_record")]
    pub export: Vec<weigh::export::ExportFormat>,
    /// Write reports at the end, as weigh report does
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        value_enum,
        conflicts_with = "no_record"
    )]
    pub report: Vec<ReportFormat>,
    /// Show time, CPU, memory, GPUs and phase while it runs: on the last line of the terminal, or
    /// in its title. Nothing where stderr is not a terminal
    #[arg(long, value_enum, num_args = 0..=1, require_equals = true, default_missing_value = "line", value_name = "line|title", hide_possible_values = true)]
    pub live: Option<LivePlace>,
    /// Print errors only
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print every figure
    #[arg(short, long)]
    pub verbose: bool,
}

/// Where the values of a run are shown while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LivePlace {
    /// On the last line of the terminal
    Line,
    /// In the title of the terminal's window
    Title,
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it like commit=abc123".to_owned()),
    }
}
