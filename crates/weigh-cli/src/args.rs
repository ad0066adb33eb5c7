//! The command line: one declaration for the parser, the help, the man page and the completions.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use weigh::export::gpu_tracker::units::{RamUnit, TimeUnit};
use weigh::quantity;

/// Know what every run costs.
///
/// weigh measures what a command and everything it starts use (CPU time, memory,
/// I/O) and says of every figure how it was got and how sure it is.
#[derive(Debug, Parser)]
#[command(name = "weigh", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Args {
    #[command(subcommand)]
    pub verb: Verb,
}

const EXAMPLES: &str = "\
Examples:
  weigh run -- make -j8               weigh a command and all it starts
  weigh run -i 100ms -o out -- ./sim  look ten times a second, record into out/
  weigh show                          the newest run once more
  weigh doctor                        what can be measured here, and what cannot
";

// What a verb with options does is said at its options.
#[derive(Debug, Subcommand)]
pub enum Verb {
    Run(RunArgs),
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
    /// List the recordings here, newest first
    Runs {
        /// Where to look
        #[arg(default_value = weigh::record::files::DEFAULT_DIRECTORY)]
        directory: PathBuf,
    },
    /// Say what can be measured on this machine, what cannot, and what to type to change it
    Doctor {
        /// Text for people or JSON for programs
        #[arg(long, value_enum, default_value_t)]
        format: Format,
    },
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

/// Run a command, weigh it and all it starts
///
/// The command has weigh's own terminal, input and output, gets the signals that weigh gets,
/// and its exit code is weigh's (128 and the signal's number when one killed it). The
/// summary is printed on stderr when the command has ended.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh run -- python train.py
  weigh run --name nightly --label commit=abc123 -- ./build.sh
  weigh run -q --summary out.json -- ./solver      only the file, nothing on the terminal
  weigh run --wait-all -- ./start-daemon           wait for what outlives the command

Settings may also stand in weigh.toml (here, or in $XDG_CONFIG_HOME/weigh/) and in
WEIGH_* variables. A flag wins over a variable, a variable over a file.
")]
pub struct RunArgs {
    /// Time between two looks, like 250ms or 2m [default: 1s]
    #[arg(short, long, env = "WEIGH_INTERVAL", hide_env_values = true, value_parser = quantity::parse_duration, value_name = "TIME")]
    pub interval: Option<Duration>,
    /// Record into this directory, which must be new or empty [default: weigh-runs/TIME-NAME]
    #[arg(short, long, value_name = "DIR", conflicts_with = "no_record")]
    pub output: Option<PathBuf>,
    /// Do not record
    #[arg(long)]
    pub no_record: bool,
    /// What to call the run [default: the program's name]
    #[arg(long, env = "WEIGH_NAME", hide_env_values = true)]
    pub name: Option<String>,
    /// A word that tells this run from others (repeatable)
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
    /// Share of one core that expensive looks may take [default: 0.5%]
    #[arg(long, env = "WEIGH_BUDGET", hide_env_values = true, value_parser = quantity::parse_ratio, value_name = "SHARE")]
    pub budget: Option<f64>,
    /// Cores the run should keep busy [default: all it may use]
    #[arg(long, env = "WEIGH_EXPECTED_CORES", hide_env_values = true, value_name = "N")]
    pub expected_cores: Option<f64>,
    /// Wait for descendants that outlive the command
    #[arg(long)]
    pub wait_all: bool,
    /// Record each CPU of the machine, too
    #[arg(long)]
    pub per_cpu: bool,
    /// Do not record command lines
    #[arg(long)]
    pub no_cmdline: bool,
    /// Where /proc and /sys of the machine are [default: /]
    #[arg(long, value_name = "DIR")]
    pub host_root: Option<PathBuf>,
    /// Print the summary as text for people, JSON for programs, or a block for a CI's comment
    #[arg(long, value_enum, default_value_t)]
    pub format: Summary,
    /// Write the summary, as JSON, into this file
    #[arg(long, value_name = "FILE")]
    pub summary: Option<PathBuf>,
    /// Sizes in GiB, in GB, or in bytes
    #[arg(long, env = "WEIGH_UNITS", hide_env_values = true, value_enum)]
    pub units: Option<Units>,
    /// Export the recording at the end, as weigh export does
    #[arg(long, value_delimiter = ',', value_name = "LIST", value_parser = export_format(), conflicts_with = "no_record")]
    pub export: Vec<weigh::export::Format>,
    /// Write reports at the end, as weigh report does
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "LIST",
        value_enum,
        conflicts_with = "no_record"
    )]
    pub report: Vec<Kind>,
    /// Print nothing but failures
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print every figure
    #[arg(short, long)]
    pub verbose: bool,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Put a phase into the running recording
///
/// With a command, the phase is what the command takes, and its exit code is weigh's.
/// Without one, the phase lasts until the next one begins.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples, in a script under weigh run:
  weigh phase load -- ./load.sh      one command is the phase
  weigh phase solve                  everything from here is the phase,
  weigh phase write                  until the next one begins
  weigh phase --end                  or until here
")]
pub struct PhaseArgs {
    /// Its name
    #[arg(required_unless_present = "end")]
    pub name: Option<String>,
    /// End the phase that the last `weigh phase NAME` began
    #[arg(long, conflicts_with_all = ["name", "command"])]
    pub end: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Show the summary of a recorded run
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh show                         the newest run here
  weigh show weigh-runs/2026-…       this one
  weigh show --phases                what each phase took: count, total, mean ± std
  weigh show --phases -v             with every figure: min, max, mean, std
  weigh show --format json | jq .figures.memory_peak_bytes
")]
pub struct ShowArgs {
    /// A recording's directory, or its name under weigh-runs [default: the newest]
    pub run: Option<PathBuf>,
    /// Text for people, JSON for programs, or a block for a CI's comment
    #[arg(long, value_enum, default_value_t)]
    pub format: Summary,
    /// Sizes in GiB, in GB, or in bytes
    #[arg(long, env = "WEIGH_UNITS", hide_env_values = true, value_enum)]
    pub units: Option<Units>,
    /// Show the phases instead: all of one name together
    #[arg(long)]
    pub phases: bool,
    /// Print every figure
    #[arg(short, long)]
    pub verbose: bool,
}

/// Write the tables of a recorded run for other tools
///
/// One table for each kind of thing that was measured (node, cpu, run, process, own), and one
/// each for the processes, phases and marks. A missing value is null. Files are named after
/// their table; sqlite, xlsx and hdf5 hold all tables in one file. A file has its name only
/// when it is whole.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh export -f parquet                      for pandas, polars, DuckDB
  weigh export -f csv --table process -o out   one table into out/
  weigh export -f xlsx --resample 10s --rates  a row for 10 s, totals as rates
  weigh export -f csv --phase solve RUN        only while the phase lasted
  weigh export weigh-runs -f parquet -o all    all runs as one dataset
  weigh export RUN --as gpu-tracker            what gpu-tracker would write
  weigh export RUN --as oasis -o log           what oasislmf's ResourceMonitor would
")]
pub struct ExportArgs {
    /// A recording, its name under weigh-runs, or a directory of recordings [default: the newest]
    pub run: Option<PathBuf>,
    /// Kinds of files
    #[arg(short, long, value_delimiter = ',', required_unless_present = "predecessor", conflicts_with = "predecessor", value_name = "LIST", value_parser = export_format())]
    pub formats: Vec<weigh::export::Format>,
    /// Write what this program would have written
    #[arg(long = "as", id = "predecessor", value_enum, value_name = "PROGRAM", conflicts_with_all = ["tables", "rates", "resample", "from", "to", "phase"])]
    pub predecessor: Option<Predecessor>,
    /// Write into this directory [default: export in the recording; weigh-dataset for many runs]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Only these tables [default: all that hold anything]
    #[arg(long = "table", value_delimiter = ',', value_name = "LIST", value_parser = PossibleValuesParser::new(weigh::export::table_names()))]
    pub tables: Option<Vec<String>>,
    /// Running totals as rates per second
    #[arg(long)]
    pub rates: bool,
    /// One row for each step of this length: means of levels, last values of totals
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    pub resample: Option<Duration>,
    /// Only from this moment on: 90s after the start, or 2026-11-15T18:05:48Z
    #[arg(long, value_name = "MOMENT", value_parser = weigh::export::Moment::parse)]
    pub from: Option<weigh::export::Moment>,
    /// Only up to this moment
    #[arg(long, value_name = "MOMENT", value_parser = weigh::export::Moment::parse)]
    pub to: Option<weigh::export::Moment>,
    /// Only while a phase of this name lasted
    #[arg(long, value_name = "NAME")]
    pub phase: Option<String>,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// Unit of memory, with --as gpu-tracker
    #[arg(long, value_name = "UNIT", requires = "predecessor", conflicts_with = "formats", value_parser = RamUnit::parse)]
    pub ram_unit: Option<RamUnit>,
    /// Unit of GPU memory, with --as gpu-tracker
    #[arg(long, value_name = "UNIT", requires = "predecessor", conflicts_with = "formats", value_parser = RamUnit::parse_gpu)]
    pub gpu_ram_unit: Option<RamUnit>,
    /// Unit of time, with --as gpu-tracker
    #[arg(long, value_name = "UNIT", requires = "predecessor", conflicts_with = "formats", value_parser = TimeUnit::parse)]
    pub time_unit: Option<TimeUnit>,
    /// Cores the run should have kept busy, with --as gpu-tracker
    #[arg(long, value_name = "N", requires = "predecessor", conflicts_with = "formats", value_parser = cores)]
    pub expected_cores: Option<f64>,
}

/// Write a report of a recorded run: what it used, what it means, with charts
///
/// The page is one file that needs no network: it opens from disk and from a mail. Markdown
/// has its pictures beside it. The PDF is A4 with vector charts.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh report                              the newest run as a page, in the recording
  weigh report --open                       and open it in the browser
  weigh report RUN -f html,md,pdf -o out    all kinds into out/
  weigh report RUN -f pdf -o job-4711.pdf   one file
  weigh run --report html -- make -j8       at the end of a run
  weigh show --format github                a short block for a CI's comment
")]
pub struct ReportArgs {
    /// A recording's directory, or its name under weigh-runs [default: the newest]
    pub run: Option<PathBuf>,
    /// Kinds of reports
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        value_enum,
        default_value = "html"
    )]
    pub formats: Vec<Kind>,
    /// A directory, or a file for one kind [default: report in the recording]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Open the first report when it is written
    #[arg(long)]
    pub open: bool,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    /// Sizes in GiB, in GB, or in bytes
    #[arg(long, env = "WEIGH_UNITS", hide_env_values = true, value_enum)]
    pub units: Option<Units>,
}

/// A kind of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A page with charts that can be zoomed
    Html,
    /// Markdown with pictures, for wikis and pull requests
    Md,
    /// A4 with vector charts
    Pdf,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 3] = [Kind::Html, Kind::Md, Kind::Pdf];

    /// The end of a file's name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Html => "html",
            Kind::Md => "md",
            Kind::Pdf => "pdf",
        }
    }
}

/// Draw the charts of a recorded run
///
/// Every chart is drawn over the time of the run, with its phases as bands and its marks as
/// lines. However many samples there are, every spike is in the picture.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh plot                                    every chart of the newest run, as SVG
  weigh plot RUN --metric memory -o memory.png  one chart into a file
  weigh plot --metric cpu,process.memory.rss -o pictures -f svg,png
  weigh plot --list                             the names of charts and metrics
  weigh plot RUN --as oasis -o resource_report  the pictures oasislmf would draw
")]
pub struct PlotArgs {
    /// A recording's directory, or its name under weigh-runs [default: the newest]
    pub run: Option<PathBuf>,
    /// Charts or metrics by name [default: every chart]
    #[arg(short, long = "metric", value_delimiter = ',', value_name = "LIST")]
    pub metrics: Vec<String>,
    /// A file that ends with .svg or .png, or a directory [default: plots in the recording]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Kinds of pictures, in a directory
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        value_enum,
        default_value = "svg"
    )]
    pub formats: Vec<Picture>,
    /// Draw what this program would have drawn, as PNG under its names
    #[arg(long = "as", value_enum, value_name = "PROGRAM", conflicts_with_all = ["metrics", "formats"])]
    pub drawer: Option<Drawer>,
    /// Sizes in GiB, in GB, or in bytes
    #[arg(long, env = "WEIGH_UNITS", hide_env_values = true, value_enum)]
    pub units: Option<Units>,
    /// Print the names of charts and metrics
    #[arg(long, conflicts_with_all = ["run", "metrics", "output", "formats", "drawer", "force"])]
    pub list: bool,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
}

/// A kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Picture {
    /// Lines and letters, sharp at any size
    Svg,
    /// Pixels, for where SVG is not taken
    Png,
}

impl Picture {
    /// The end of a file's name.
    pub fn name(self) -> &'static str {
        match self {
            Picture::Svg => "svg",
            Picture::Png => "png",
        }
    }
}

/// A program whose pictures weigh can draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Drawer {
    /// The six plots of the oasislmf ResourceMonitor
    Oasis,
    /// The plots of perfmon, per node and of all nodes
    Perfmon,
}

/// A program whose files weigh can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Predecessor {
    /// gpu-tracker 5.0.1: result as JSON and text, tracking file as CSV and SQLite
    GpuTracker,
    /// ResourceMonitor of oasislmf 2.5.8: resource_monitor.csv, and resource_report/ with
    /// Markdown and six plots
    Oasis,
}

fn cores(text: &str) -> Result<f64, String> {
    let cores = text.parse::<f64>().ok().filter(|cores| cores.is_finite() && *cores > 0.0);
    cores.ok_or_else(|| "it must be a number above 0".to_owned())
}

/// The kinds of files that this weigh can write, by name.
fn export_format() -> impl TypedValueParser<Value = weigh::export::Format> {
    use weigh::export::Format;
    PossibleValuesParser::new(Format::ALL.iter().map(|format| format.name())).try_map(|name| {
        let found = Format::ALL.iter().find(|format| format.name() == name);
        found.copied().ok_or("there is no such format")
    })
}

/// For whom something is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
}

/// For whom a summary is printed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Summary {
    /// For people
    #[default]
    Text,
    /// For programs
    Json,
    /// Markdown for a comment on a pull request or a step's summary
    Github,
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

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("write it like commit=abc123".to_owned()),
    }
}
