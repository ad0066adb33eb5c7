//! How a run ended, for all reports.

use super::Run;
use crate::model::signal_name;
use crate::record::StopReason;
use crate::record::Target;

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunOutcome {
    /// With exit code 0.
    Success,
    /// With another one.
    Failed(i32),
    /// By a signal.
    Killed(i32),
    /// By a signal that is no failure: Ctrl-C, or its reader closed the pipe.
    Stopped(i32),
    /// It was monitored, and its exit status is not known, or it is still running.
    MonitoringEnded(StopReason),
    /// Not recorded.
    NotRecorded,
}

impl Run {
    /// Whether it is of programs monitored by name, and not of one command.
    pub fn is_of_programs(&self) -> bool {
        matches!(self.target, Some(Target::Programs { .. } | Target::Merged { .. }))
    }

    /// How long it was measured, in seconds: as long as the command took, or longer.
    pub fn measured(&self) -> f64 {
        self.measured_seconds.unwrap_or(self.duration_seconds)
    }

    /// How it ended.
    pub fn outcome(&self) -> RunOutcome {
        match (self.signal, self.exit_code, self.stopped) {
            (Some(number @ (libc::SIGINT | libc::SIGPIPE)), ..) => RunOutcome::Stopped(number),
            (Some(number), ..) => RunOutcome::Killed(number),
            (None, Some(0), _) => RunOutcome::Success,
            (None, Some(code), _) => RunOutcome::Failed(code),
            (None, None, Some(why)) => RunOutcome::MonitoringEnded(why),
            (None, None, None) => RunOutcome::NotRecorded,
        }
    }
}

impl RunOutcome {
    /// A few words.
    pub fn words(self) -> String {
        match self {
            RunOutcome::Success => "exit 0".to_owned(),
            RunOutcome::Failed(code) => format!("exit {code}"),
            RunOutcome::Killed(number) => format!("killed by {}", signal_name(number)),
            RunOutcome::Stopped(libc::SIGINT) => "interrupted (SIGINT)".to_owned(),
            RunOutcome::Stopped(number) => format!("pipe closed ({})", signal_name(number)),
            RunOutcome::MonitoringEnded(StopReason::Ended) => "ended".to_owned(),
            RunOutcome::MonitoringEnded(StopReason::DurationOver | StopReason::StopRequested) => {
                "still running".to_owned()
            }
            RunOutcome::MonitoringEnded(StopReason::TimeLimit) => {
                "time limit of the job".to_owned()
            }
            RunOutcome::MonitoringEnded(StopReason::LauncherExited) => {
                "what started the recorder has exited".to_owned()
            }
            RunOutcome::MonitoringEnded(StopReason::Blocking) => {
                "its step blocked the job".to_owned()
            }
            RunOutcome::NotRecorded => "end not recorded".to_owned(),
        }
    }
}
