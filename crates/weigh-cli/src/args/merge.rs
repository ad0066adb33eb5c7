//! Options of `weigh merge`.

use std::path::PathBuf;

use clap::Args as ClapArgs;

use weigh::quantity;

use super::{Format, Sizes};

/// Merge the recordings of several workers, containers or nodes into one
///
/// Times are aligned by the wall clock, so that four workers with 1 GiB each at the same time
/// are 4 GiB. Equal pids on different machines or in different pid namespaces are different
/// processes; a process in several recordings is counted once. The result is a recording like
/// any other: show, report, plot and export read it.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh merge worker-1 worker-2 -o all     two recordings as one, in all/
  weigh merge runs/ -o all                 all recordings in runs/
  weigh merge runs/ --name analysis-7      under weigh-runs, with a name
  weigh merge n1 n2 --offset n2=1.5s       the clock of n2 was ahead
  weigh export all --as oasis -o log       one report for oasislmf, of all workers
")]
pub(crate) struct MergeArgs {
    /// Recordings: directories, names or ids; or directories of recordings
    #[arg(required = true, value_name = "RUN")]
    pub runs: Vec<PathBuf>,
    /// Write into this directory, which must be new or empty [default: a new one in weigh-runs]
    #[arg(short, long, value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// Name of the result [default: the common name of all, or merged]
    #[arg(short, long)]
    pub name: Option<String>,
    /// The clock of this machine was so much ahead of the others' (behind: -1.5s) [default: as far
    /// as marks after barriers, the launcher of a job or time services tell]
    #[arg(long = "offset", value_name = "HOST=TIME", value_parser = offset)]
    pub offsets: Vec<(String, f64)>,
    /// Text for people or JSON for programs
    #[arg(long, value_enum, default_value_t)]
    pub format: Format,
    #[command(flatten)]
    pub sizes: Sizes,
}

/// A machine and how many seconds its clock was ahead.
fn offset(text: &str) -> Result<(String, f64), String> {
    let bad = || "write it like node-7=1.5s or node-7=-200ms".to_owned();
    let (host, time) = text.split_once('=').filter(|(host, _)| !host.is_empty()).ok_or_else(bad)?;
    let (sign, time) = time.strip_prefix('-').map_or((1.0, time), |time| (-1.0, time));
    let time = quantity::parse_duration(time).map_err(|error| error.to_string())?;
    Ok((host.to_owned(), sign * time.as_secs_f64()))
}
