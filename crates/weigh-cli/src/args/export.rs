//! Options of `weigh export`.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args as ClapArgs, ValueEnum};
use weigh::compat::gpu_tracker::units::{RamUnit, TimeUnit};
use weigh::quantity;

/// Write the tables of a recorded run for other tools
///
/// One table for each kind of thing that was measured, and one each for the processes, phases and
/// marks: --table lists them. A missing value is null. Files are named after their table; sqlite,
/// xlsx and hdf5 have all tables in one file. A file gets its name only when it is complete.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh export -f parquet                      for pandas, polars, DuckDB
  weigh export -f csv --table process -o out   one table into out/
  weigh export -f xlsx --resample 10s --rates  a row for 10 s, counters as rates
  weigh export -f csv --phase solve RUN        only while the phase lasted
  weigh export weigh-runs -f parquet -o all    all runs as one dataset
  weigh export RUN --as gpu-tracker            what gpu-tracker would write
  weigh export RUN --as oasis -o log           what oasislmf's ResourceMonitor would
  weigh export RUN --as pytyche -o hw          what pytyche's HWMonitor and RunLog would
  weigh export JOBDIR --as perfmon -o job      what perfmon would, of all nodes
  weigh export JOBDIR --as perfmon -f csv,orc -o job   with its tables
")]
pub(crate) struct ExportArgs {
    /// A recording: its directory, name or id; or a directory of recordings [default: last]
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
    /// File formats; with --as perfmon, those of its tables
    #[arg(short, long, value_delimiter = ',', required_unless_present = "compat_tool", value_name = "LIST", value_parser = export_format())]
    pub formats: Vec<weigh::export::ExportFormat>,
    /// Write the files of this tool
    #[arg(long = "as", id = "compat_tool", value_enum, value_name = "PROGRAM", conflicts_with_all = ["tables", "rates", "resample", "from", "to", "phase"])]
    pub compat_tool: Option<CompatTool>,
    /// Write into this directory [default: export in the recording; weigh-dataset for many runs]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Only these tables [default: all that are not empty]
    #[arg(long = "table", value_delimiter = ',', value_name = "LIST", value_parser = table_name())]
    pub tables: Option<Vec<String>>,
    /// Counters as rates per second
    #[arg(long)]
    pub rates: bool,
    /// One row for each step of this length: means of gauges, last values of counters
    #[arg(long, value_name = "TIME", value_parser = quantity::parse_duration)]
    pub resample: Option<Duration>,
    /// Only from this moment on: 90s after the start, or 2026-11-15T18:05:48Z
    #[arg(long, value_name = "MOMENT", value_parser = weigh::export::TimeBound::parse)]
    pub from: Option<weigh::export::TimeBound>,
    /// Only up to this moment
    #[arg(long, value_name = "MOMENT", value_parser = weigh::export::TimeBound::parse)]
    pub to: Option<weigh::export::TimeBound>,
    /// Only while a phase of this name lasted
    #[arg(long, value_name = "NAME")]
    pub phase: Option<String>,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
    /// CSV for spreadsheets: an apostrophe before text they would take for a formula
    #[arg(long, requires = "formats")]
    pub spreadsheet_safe: bool,
    /// Unit of memory, with --as gpu-tracker
    #[arg(long, value_name = "UNIT", requires = "compat_tool", conflicts_with = "formats", value_parser = RamUnit::parse)]
    pub ram_unit: Option<RamUnit>,
    /// Unit of GPU memory, with --as gpu-tracker
    #[arg(long, value_name = "UNIT", requires = "compat_tool", conflicts_with = "formats", value_parser = RamUnit::parse_gpu)]
    pub gpu_ram_unit: Option<RamUnit>,
    /// Unit of time, with --as gpu-tracker
    #[arg(long, value_name = "UNIT", requires = "compat_tool", conflicts_with = "formats", value_parser = TimeUnit::parse)]
    pub time_unit: Option<TimeUnit>,
    /// Cores the run should have kept busy, with --as gpu-tracker
    #[arg(long, value_name = "N", requires = "compat_tool", conflicts_with = "formats", value_parser = cores)]
    pub expected_cores: Option<f64>,
}

/// A tool whose files weigh can write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CompatTool {
    /// gpu-tracker 5.0.1: result as JSON and text, tracking file as CSV and SQLite
    GpuTracker,
    /// ResourceMonitor of oasislmf 2.5.8: resource_monitor.csv, and resource_report/ with
    /// Markdown and six plots
    Oasis,
    /// HWMonitor and RunLog of pytyche 0.2.1: cpu_metrics.csv, hw_metrics.csv and hw_dmon.csv
    /// where there are GPUs, and run_log.jsonl with phases and events
    Pytyche,
    /// perfmon: metrics/{meta_data,cpu_metrics,nv_gpu_metrics}.json and its log, of one node or
    /// of a directory with a recording for each node; its tables with -f
    Perfmon,
}

fn cores(text: &str) -> Result<f64, String> {
    let cores = text.parse::<f64>().ok().filter(|cores| cores.is_finite() && *cores > 0.0);
    cores.ok_or_else(|| "it must be a number above 0".to_owned())
}

/// The tables of an export, and what each is about.
fn table_name() -> PossibleValuesParser {
    let described = |table: weigh::export::TableDescription| {
        PossibleValue::new(table.name).help(format!("one row for {}", table.row))
    };
    PossibleValuesParser::new(weigh::export::table_descriptions().map(described))
}

/// The file formats that this weigh can write, by name.
pub(super) fn export_format() -> impl TypedValueParser<Value = weigh::export::ExportFormat> {
    use weigh::export::ExportFormat;
    PossibleValuesParser::new(ExportFormat::ALL.iter().map(|format| format.name())).try_map(
        |name| {
            let found = ExportFormat::ALL.iter().find(|format| format.name() == name);
            found.copied().ok_or("no such format")
        },
    )
}
