//! Options of `weigh run` and `weigh phase`.

use std::ffi::OsString;

use clap::{Args as ClapArgs, ValueEnum};
use weigh::model::settings::OwnCgroup;

use super::Measuring;

/// Run a command, and measure it and all it starts
///
/// The command has weigh's own terminal, input and output, gets the signals that weigh gets,
/// and its exit code is weigh's (128 plus the signal number when a signal killed it). The
/// summary is printed on stderr when the command has exited; --summary also writes it to a
/// file, to stdout or to a descriptor, after everything that the command has printed there.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh run -- python train.py
  weigh run --name nightly --label commit=abc123 -- ./build.sh
  weigh run -q --summary out.json -- ./solver      only the file, nothing on the terminal
  weigh run --summary-fd 3 -- ./solver 3>out.json  JSON apart from what the command prints
  weigh run --summary - --format github -- make >> \"$GITHUB_STEP_SUMMARY\"
  weigh run --wait-all -- ./start-daemon           wait for processes that outlive the command
  sudo weigh run --cgroup auto -- ./solver         exact memory peak of all processes together
  systemd-run --user --scope -p Delegate=yes weigh run --cgroup always -- ./solver

Settings may also be in weigh.toml (here, or in $XDG_CONFIG_HOME/weigh/) and in
WEIGH_* variables. An option overrides a variable, a variable overrides a file.
")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub measuring: Measuring,
    /// Wait for descendants that outlive the command
    #[arg(long)]
    pub wait_all: bool,
    /// Run the command in a new cgroup, for an exact memory peak [default: never]
    #[arg(long, env = "WEIGH_CGROUP", hide_env_values = true, value_enum, value_name = "WHEN")]
    pub cgroup: Option<CgroupChoice>,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}

/// Whether the command runs in a new cgroup.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CgroupChoice {
    /// No
    Never,
    /// Where it can be created and changes nothing for the command: no limit above, no batch job
    Auto,
    /// Yes, otherwise the run does not start
    Always,
}

impl From<CgroupChoice> for OwnCgroup {
    fn from(group: CgroupChoice) -> OwnCgroup {
        match group {
            CgroupChoice::Never => OwnCgroup::Never,
            CgroupChoice::Auto => OwnCgroup::Auto,
            CgroupChoice::Always => OwnCgroup::Always,
        }
    }
}

/// Put a phase into the running recording
///
/// With a command, the phase lasts as long as the command, and its exit code is weigh's.
/// Without one, the phase lasts until the next one starts.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples, in a script under weigh run:
  weigh phase load -- ./load.sh      one command is the phase
  weigh phase solve                  everything from here is the phase,
  weigh phase write                  until the next one starts
  weigh phase --end                  or until here
")]
pub(crate) struct PhaseArgs {
    /// Its name
    #[arg(required_unless_present = "end")]
    pub name: Option<String>,
    /// End the phase that the last `weigh phase NAME` started
    #[arg(long, conflicts_with_all = ["name", "command"])]
    pub end: bool,
    /// The command and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub command: Vec<OsString>,
}
