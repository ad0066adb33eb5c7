//! Options of `weigh runs`, and how every verb names a recording.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args as ClapArgs;
use weigh::listing::{LabelFilter, Since};
use weigh::quantity;

use super::Sizes;

/// The recording that a verb reads.
#[derive(Debug, ClapArgs)]
pub(crate) struct RunName {
    /// A recording: its directory, name or id; last~1 is the one before the last [default: last]
    #[arg(value_name = "RUN")]
    pub run: Option<PathBuf>,
}

/// List recordings, newest first, or remove old ones
///
/// Any verb that reads a RUN takes what is listed here: the name of the directory, the name of the
/// run if only one has it, its id (or the start of it, 4 characters or more), last, last~1 for the
/// one before the last, and NAME~0 for the newest of a name.
#[derive(Debug, ClapArgs)]
#[command(group = clap::ArgGroup::new("protected").multiple(true))]
#[command(after_help = "\
Examples:
  weigh runs                                 those in weigh-runs
  weigh runs --name train --since 7d         of one name, of the last week
  weigh runs --failed --label commit=abc123  that failed, with a label
  weigh runs --json | jq -r '.[].directory'  for programs
  weigh runs --prune --keep 20               remove all but the newest 20, after a question
  weigh runs --prune --older-than 7d --yes   remove those older than a week
")]
pub(crate) struct RunsArgs {
    /// Directory of recordings
    #[arg(default_value = weigh::record::files::DEFAULT_DIRECTORY, value_name = "DIR")]
    pub directory: PathBuf,
    /// Only runs of this name; * stands for any text (repeatable)
    #[arg(long = "name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Only runs with this label, or with a label of this key (repeatable)
    #[arg(long = "label", value_name = "KEY[=VALUE]", value_parser = LabelFilter::parse)]
    pub labels: Vec<LabelFilter>,
    /// Only runs that started since then: 2h ago, 2026-11-01, or 2026-11-01T12:30:00Z
    #[arg(long, value_name = "TIME", value_parser = Since::parse)]
    pub since: Option<Since>,
    /// Only runs that failed: an exit code other than 0, killed by a signal, or no end recorded
    #[arg(long)]
    pub failed: bool,
    /// Print JSON for programs
    #[arg(long)]
    pub json: bool,
    /// Remove the listed recordings, except those that --keep and --older-than protect
    ///
    /// Only recordings are removed: one with files that weigh did not write, and one that is still
    /// being written, is kept.
    #[arg(long, requires = "protected")]
    pub prune: bool,
    /// With --prune: keep the newest N of those listed
    #[arg(long, value_name = "N", requires = "prune", group = "protected")]
    pub keep: Option<usize>,
    /// With --prune: keep those that started less than this long ago
    #[arg(
        long,
        value_name = "TIME",
        requires = "prune",
        group = "protected",
        value_parser = quantity::parse_duration
    )]
    pub older_than: Option<Duration>,
    /// With --prune: do not ask
    #[arg(long, requires = "prune")]
    pub yes: bool,
    #[command(flatten)]
    pub sizes: Sizes,
}
