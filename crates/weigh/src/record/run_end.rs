//! The end of a run, of a command that weigh started or of a target that it attached to.
//!
//! In `events.jsonl` these are two events, `run_end` and `watch_end`, with the fields that each has.

use serde::{Deserialize, Serialize};

use super::events::HelperUsage;
use super::{Entry, Event};
use crate::model::{End, Io, ProcessId, Usage};

/// The end of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "RunEndEvent", into = "RunEndEvent")]
pub struct RunEnd {
    /// Why monitoring of an attached target ended; `None` when weigh started the command.
    pub why: Option<StopReason>,
    /// How the command, or the attached process, exited; `None` when it still runs, when there were
    /// several, and when the kernel does not report it.
    pub exit: Option<End>,
    /// How long it took, in seconds: the command from exec to exit, or the monitoring.
    pub duration_seconds: f64,
    /// From exec until the last process was reaped, in seconds, or until the final counters
    /// were read when processes still ran. `None` for an
    /// attached target, and in recordings of older versions; [`Reaping`] knows it then.
    pub measured_seconds: Option<f64>,
    /// CPU time of every process of the run, from perf task clocks; `None` when there were none.
    pub task_clock_seconds: Option<f64>,
    /// When those clocks were started, in seconds since the run began.
    pub task_clock_began_seconds: Option<f64>,
    /// Processes that still run.
    pub still_running: Vec<u32>,
    /// Whether processes may have started and exited between two ticks.
    pub may_miss_processes: bool,
    /// CPU time of weigh itself, in seconds.
    pub monitor_cpu_seconds: f64,
    /// The exact counts of a command that weigh started.
    pub final_counters: Option<Box<FinalCounters>>,
}

/// What was counted of a command that weigh started and reaped.
#[derive(Debug, Clone, PartialEq)]
pub struct FinalCounters {
    /// What everything that weigh reaped used, from `wait4`.
    pub reaped: Usage,
    /// I/O of everything that weigh reaped.
    pub io: Option<Io>,
    /// The RSS of the command's process before exec, or that of `weigh mark` and `weigh phase`
    /// inside it: `largest_rss_bytes` is at least this, whatever the command needed.
    pub rss_before_exec_bytes: u64,
    /// CPU time of the command's process before exec: included in its samples, and not in what was
    /// reaped.
    pub cpu_before_exec_seconds: f64,
    /// What `weigh mark` and `weigh phase` inside the run have used: it is in what was reaped, in
    /// the task clock and in the I/O, and is not the run's.
    pub helpers: HelperUsage,
}

impl FinalCounters {
    /// A size that `wait4` reports of the command's process, if it is the command's and not from
    /// before exec.
    ///
    /// `ru_maxrss` survives exec: it is never below what the process had before.
    pub fn proven_maxrss(&self, bytes: u64) -> Option<u64> {
        // From there to exec itself takes a few more pages.
        const A_FEW_PAGES: u64 = 256 << 10;
        (bytes > self.rss_before_exec_bytes + A_FEW_PAGES).then_some(bytes)
    }
}

/// Why monitoring ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// All of the target exited.
    Ended,
    /// The requested duration is over.
    #[serde(rename = "time")]
    DurationOver,
    /// weigh was asked to stop.
    #[serde(rename = "asked")]
    StopRequested,
    /// The batch job is about to reach its time limit.
    TimeLimit,
    /// What started the recorder of a batch job has exited.
    LauncherExited,
    /// The recorder's own step kept the job from starting others.
    Blocking,
}

/// When the command and the last process were reaped, from the events of a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Reaping {
    command: Option<f64>,
    last: Option<f64>,
}

impl Reaping {
    /// Applies an event of a run with these main processes.
    pub fn event(&mut self, entry: &Entry, mains: &[ProcessId]) {
        let Event::ProcessExit { pid, started, usage: Some(_), .. } = &entry.event else { return };
        let latest = |before: Option<f64>| Some(before.unwrap_or(0.0).max(entry.seconds));
        self.last = latest(self.last);
        if mains.contains(&ProcessId { pid: *pid, started: *started }) {
            self.command = latest(self.command);
        }
    }

    /// How long a run was measured, from exec or attach on, that was closed at this moment.
    pub fn measured_seconds(&self, end: &RunEnd, closed: f64) -> f64 {
        if end.final_counters.is_none() {
            return end.duration_seconds;
        }
        if let Some(measured) = end.measured_seconds {
            return measured.max(end.duration_seconds);
        }
        let until = if end.still_running.is_empty() { self.last } else { Some(closed) };
        let after_the_command =
            until.zip(self.command).map_or(0.0, |(until, command)| until - command);
        // The run's zero is before exec: nothing was measured for longer than since then.
        (end.duration_seconds + after_the_command).min(closed).max(end.duration_seconds)
    }
}

/// The end of a run as it is in `events.jsonl`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum RunEndEvent {
    RunEnd(Box<CommandEnd>),
    WatchEnd(AttachEnd),
}

/// The end of a command that weigh started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct CommandEnd {
    pub(crate) end: Option<End>,
    pub(crate) duration_seconds: f64,
    #[serde(default)]
    pub(crate) measured_seconds: Option<f64>,
    pub(crate) reaped: Usage,
    pub(crate) task_clock_seconds: Option<f64>,
    pub(crate) io: Option<Io>,
    #[serde(rename = "left")]
    pub(crate) still_running: Vec<u32>,
    #[serde(rename = "some_unseen")]
    pub(crate) may_miss_processes: bool,
    pub(crate) rss_before_exec_bytes: u64,
    #[serde(default)]
    pub(crate) cpu_before_exec_seconds: f64,
    #[serde(default)]
    pub(crate) helpers: HelperUsage,
    pub(crate) monitor_cpu_seconds: f64,
}

/// The end of monitoring an attached target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AttachEnd {
    pub(crate) why: Option<StopReason>,
    pub(crate) end: Option<End>,
    pub(crate) duration_seconds: f64,
    #[serde(default)]
    pub(crate) task_clock_seconds: Option<f64>,
    #[serde(default)]
    pub(crate) task_clock_began_seconds: Option<f64>,
    #[serde(rename = "left")]
    pub(crate) still_running: Vec<u32>,
    #[serde(rename = "some_unseen")]
    pub(crate) may_miss_processes: bool,
    pub(crate) monitor_cpu_seconds: f64,
}

impl From<CommandEnd> for RunEnd {
    fn from(end: CommandEnd) -> RunEnd {
        RunEnd {
            why: None,
            exit: end.end,
            duration_seconds: end.duration_seconds,
            measured_seconds: end.measured_seconds,
            task_clock_seconds: end.task_clock_seconds,
            // The clock of a command counts from its exec on.
            task_clock_began_seconds: end.task_clock_seconds.map(|_| 0.0),
            still_running: end.still_running,
            may_miss_processes: end.may_miss_processes,
            monitor_cpu_seconds: end.monitor_cpu_seconds,
            final_counters: Some(Box::new(FinalCounters {
                reaped: end.reaped,
                io: end.io,
                rss_before_exec_bytes: end.rss_before_exec_bytes,
                cpu_before_exec_seconds: end.cpu_before_exec_seconds,
                helpers: end.helpers,
            })),
        }
    }
}

impl From<AttachEnd> for RunEnd {
    fn from(end: AttachEnd) -> RunEnd {
        RunEnd {
            why: end.why,
            exit: end.end,
            duration_seconds: end.duration_seconds,
            measured_seconds: None,
            task_clock_seconds: end.task_clock_seconds,
            task_clock_began_seconds: end.task_clock_began_seconds,
            still_running: end.still_running,
            may_miss_processes: end.may_miss_processes,
            monitor_cpu_seconds: end.monitor_cpu_seconds,
            final_counters: None,
        }
    }
}

impl From<RunEndEvent> for RunEnd {
    fn from(event: RunEndEvent) -> RunEnd {
        match event {
            RunEndEvent::RunEnd(end) => RunEnd::from(*end),
            RunEndEvent::WatchEnd(end) => end.into(),
        }
    }
}

impl From<RunEnd> for RunEndEvent {
    fn from(end: RunEnd) -> RunEndEvent {
        match end.final_counters {
            Some(account) => RunEndEvent::RunEnd(Box::new(CommandEnd {
                end: end.exit,
                duration_seconds: end.duration_seconds,
                measured_seconds: end.measured_seconds,
                reaped: account.reaped,
                task_clock_seconds: end.task_clock_seconds,
                io: account.io,
                still_running: end.still_running,
                may_miss_processes: end.may_miss_processes,
                rss_before_exec_bytes: account.rss_before_exec_bytes,
                cpu_before_exec_seconds: account.cpu_before_exec_seconds,
                helpers: account.helpers,
                monitor_cpu_seconds: end.monitor_cpu_seconds,
            })),
            None => RunEndEvent::WatchEnd(AttachEnd {
                why: end.why,
                end: end.exit,
                duration_seconds: end.duration_seconds,
                task_clock_seconds: end.task_clock_seconds,
                task_clock_began_seconds: end.task_clock_began_seconds,
                still_running: end.still_running,
                may_miss_processes: end.may_miss_processes,
                monitor_cpu_seconds: end.monitor_cpu_seconds,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: &str = concat!(
        r#"{"seconds":1.5,"event":"run_end","end":{"code":0},"duration_seconds":1.25,"#,
        r#""measured_seconds":1.25,"reaped":{"user_seconds":0.5,"system_seconds":0.25,"#,
        r#""largest_rss_bytes":4096,"minor_faults":1,"major_faults":2,"voluntary_switches":3,"#,
        r#""involuntary_switches":4},"task_clock_seconds":0.75,"io":null,"left":[7],"#,
        r#""some_unseen":true,"rss_before_exec_bytes":8192,"cpu_before_exec_seconds":0.125,"#,
    );
    const ATTACHED: &str = concat!(
        r#"{"seconds":1.5,"event":"watch_end","why":"time","end":null,"duration_seconds":1.25,"#,
        r#""task_clock_seconds":0.75,"task_clock_began_seconds":0.5,"left":[7],"#,
        r#""some_unseen":true,"monitor_cpu_seconds":0.0625}"#,
    );

    fn read(line: &str) -> (Entry, RunEnd) {
        let entry: Entry = serde_json::from_str(line).unwrap();
        let Event::RunEnd(end) = entry.event.clone() else { panic!("{entry:?}") };
        (entry, end)
    }

    #[test]
    fn end_of_an_attached_target_is_a_watch_end_and_has_no_account() {
        let (entry, end) = read(ATTACHED);
        assert_eq!((end.why, end.final_counters), (Some(StopReason::DurationOver), None));
        assert_eq!(serde_json::to_string(&entry).unwrap(), ATTACHED);
    }

    #[test]
    fn end_of_a_command_is_a_run_end_with_its_account() {
        let helpers = serde_json::to_string(&HelperUsage::default()).unwrap();
        let line = format!(r#"{COMMAND}"helpers":{helpers},"monitor_cpu_seconds":0.0625}}"#);
        let (entry, end) = read(&line);
        assert_eq!((end.why, end.task_clock_began_seconds), (None, Some(0.0)));
        assert_eq!(end.final_counters.unwrap().rss_before_exec_bytes, 8192);
        assert_eq!(serde_json::to_string(&entry).unwrap(), line);
    }
}
