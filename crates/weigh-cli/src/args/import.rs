//! Options of `weigh import`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{Format, Sizes};

/// Read the files of another tool, and print a summary
///
/// Files of pytyche's HWMonitor are read as nvidia-smi wrote them: columns of dmon by name, rows
/// by GPU, and a missing value affects no other. Lines that cannot be read are counted and shown.
/// Nothing is recorded, and no file is changed.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh import pytyche hw                      hw_metrics.csv, hw_dmon.csv, cpu_metrics.csv in hw/
  weigh import pytyche hw --format json | jq '.gpus[].energy_joules'
  weigh import pytyche hw --pytyche-summary    with the keys of pytyche's ResourceSummary
")]
pub(crate) struct ImportArgs {
    /// The tool
    #[arg(value_enum, value_name = "PROGRAM")]
    pub program: ImportTool,
    /// The directory of its files
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// Text for people or JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    /// Print what pytyche's ResourceSummary.to_dict() would have, as JSON: unknown is null
    #[arg(long, conflicts_with = "format")]
    pub pytyche_summary: bool,
    #[command(flatten)]
    pub sizes: Sizes,
}

/// A tool whose files weigh can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportTool {
    /// HWMonitor of pytyche 0.2.1: hw_metrics.csv, hw_dmon.csv and cpu_metrics.csv
    Pytyche,
}
