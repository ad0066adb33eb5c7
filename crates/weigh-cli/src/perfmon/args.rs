//! The options of perfmon, as it names them.

use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use weigh::export::ExportFormat;

/// Record the batch job on this node, with the options of perfmon
///
/// This is weigh under the name perfmon: the options and the files are perfmon's, the numbers are
/// weigh's. Start one on each node; it ends with the job.
#[derive(Debug, Parser)]
#[command(
    name = "perfmon",
    bin_name = "perfmon",
    infer_long_args = true,
    max_term_width = 100,
    after_help = "\
Example, in a job script:
  srun --overlap -n $SLURM_JOB_NUM_NODES --ntasks-per-node 1 perfmon -r -e csv &
  srun ./solver
  wait
"
)]
pub(super) struct PerfmonArgs {
    /// Directory of the files, which all nodes share [default: the working directory]
    #[arg(short = 'd', long = "save_dir", value_name = "SAVE_DIR", num_args = 0..=1)]
    pub save_dir: Option<Option<String>>,
    /// A directory in it
    #[arg(short, long, value_name = "PREFIX", num_args = 0..=1)]
    pub prefix: Option<Option<PathBuf>>,
    /// The launcher of the job; weigh needs none, and keeps it as a label
    #[arg(short, long, value_name = "LAUNCHER", num_args = 0..=1)]
    pub launcher: Option<Option<String>>,
    /// Sampling interval in seconds
    #[arg(short = 'i', long = "sampling_freq", value_name = "SECONDS", default_value_t = 30.0, value_parser = interval)]
    pub sampling_freq: f64,
    /// Accepted: weigh's recording can be read at any time
    #[arg(short, long = "check_point", value_name = "SECONDS", num_args = 0..=1)]
    pub check_point: Option<Option<f64>>,
    /// Draw plots and write the job report
    #[arg(short = 'r', long = "gen_report")]
    pub gen_report: bool,
    /// Write tables of these formats [default: none; csv when none is named]
    #[arg(short, long, value_enum, value_name = "FORMAT", num_args = 0..)]
    pub export: Option<Vec<TableFormat>>,
    /// Name of the system, kept as a label
    #[arg(long, value_name = "SYSTEM", num_args = 0..=1)]
    pub system: Option<Option<String>>,
    /// Name of the partition, kept as a label
    #[arg(long, value_name = "PARTITION", num_args = 0..=1)]
    pub partition: Option<Option<String>>,
    /// Name of the environment, kept as a label
    #[arg(long, value_name = "ENV", num_args = 0..=1)]
    pub env: Option<Option<String>>,
    /// Name of the test: the name of the run
    #[arg(long, value_name = "NAME", num_args = 0..=1)]
    pub name: Option<Option<String>>,
    /// Write the options into configs/
    #[arg(short, long)]
    pub verbose: bool,
}

/// A format of perfmon's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TableFormat {
    Csv,
    Hdf5,
    Parquet,
    Pickle,
    Feather,
    Orc,
}

impl TableFormat {
    /// The same as weigh has it.
    pub(super) fn format(self) -> ExportFormat {
        match self {
            TableFormat::Csv => ExportFormat::Csv,
            TableFormat::Hdf5 => ExportFormat::Hdf5,
            TableFormat::Parquet => ExportFormat::Parquet,
            TableFormat::Pickle => ExportFormat::Pickle,
            TableFormat::Feather => ExportFormat::Feather,
            TableFormat::Orc => ExportFormat::Orc,
        }
    }
}

fn interval(text: &str) -> Result<f64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| seconds.is_finite() && *seconds > 0.0);
    seconds.ok_or_else(|| "it must be a number of seconds above 0".to_owned())
}
