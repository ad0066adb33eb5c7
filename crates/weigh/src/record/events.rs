//! What happened during a run: one JSON object on a line for each.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{RunEnd, secrets};
use crate::model::{Change, End, FaultSource, Gpu, Io, ProcessId, Program, Usage};

/// Something that happened, and when.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Seconds since the run began.
    pub seconds: f64,
    /// Its place among the events and ticks of the run; `None` until it is recorded, and in
    /// recordings of earlier versions.
    #[serde(rename = "seq", default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u64>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
    /// What the program that sent a phase or a mark says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<EventData>,
}

/// Names and values that belong to a phase or a mark.
pub type EventData = serde_json::Map<String, serde_json::Value>;

impl Entry {
    /// An event at a moment of the run.
    pub fn new(at: Duration, event: Event) -> Entry {
        Entry { seconds: at.as_secs_f64(), sequence: None, event, data: None }
    }

    /// Whether it precedes the rows of a tick. Without sequence numbers the events of a moment
    /// precede its rows.
    pub(super) fn precedes(&self, at: Duration, sequence: Option<u64>) -> bool {
        match self.sequence.zip(sequence) {
            Some((own, of_tick)) => own < of_tick,
            None => self.seconds <= at.as_secs_f64(),
        }
    }

    /// When it happened, to the nanosecond; zero when the recorded time is invalid.
    pub fn at(&self) -> Duration {
        Duration::try_from_secs_f64(self.seconds).unwrap_or_default()
    }
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A process of the run was first sampled.
    ProcessStart {
        /// Its pid.
        pid: u32,
        /// Clock ticks from boot to its start.
        started: u64,
        /// The process that started it, or to which it was reparented.
        parent: u32,
        /// Its name.
        name: String,
        /// Its arguments, if they are recorded.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<Vec<String>>,
        /// The tool it counts for, where that is not the program's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// A process called exec.
    ProcessExec {
        /// Its pid.
        pid: u32,
        /// Clock ticks from boot to its start.
        started: u64,
        /// Its name now.
        name: String,
        /// Its arguments now, if they are recorded.
        #[serde(skip_serializing_if = "Option::is_none")]
        command: Option<Vec<String>>,
        /// The tool it counts for now, where that is not the program's name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
    },
    /// A process ended.
    ProcessExit {
        /// Its pid.
        pid: u32,
        /// Clock ticks from boot to its start.
        started: u64,
        /// How; null when its parent reaped it and nothing but its exit is known.
        end: Option<End>,
        /// What it and its reaped children used; null like `end`.
        usage: Option<Usage>,
        /// All CPU time of its own, from a kernel clock that outlives it; null where there was
        /// none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpu_seconds: Option<f64>,
        /// Its peak memory, from its exit record; null where there was none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        memory_peak_bytes: Option<u64>,
    },
    /// A phase began.
    PhaseStart {
        /// Distinguishes phases of the same name.
        id: String,
        /// Its name.
        name: String,
        /// The phase around it.
        #[serde(skip_serializing_if = "Option::is_none")]
        parent: Option<String>,
    },
    /// The command of a phase has started: from here on this process and its descendants belong to
    /// the phase.
    PhaseCommand {
        /// Which phase.
        id: String,
        /// The process of its command.
        pid: u32,
        /// Clock ticks from boot to its start.
        started: u64,
    },
    /// A phase ended.
    PhaseEnd {
        /// Which one.
        id: String,
        /// What its command used, when it had one.
        #[serde(skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// How its command ended, when it had one.
        #[serde(skip_serializing_if = "Option::is_none")]
        end: Option<End>,
        /// What else is known of its command, when it had one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        account: Option<PhaseCommandUsage>,
    },
    /// A `weigh mark` or `weigh phase` inside the run has sent its last message: what it used
    /// itself is in the counters of the process that reaped it, and is not the run's.
    Helper(Helper),
    /// A mark was set at this moment.
    Mark {
        /// Its text.
        text: String,
    },
    /// A GPU was detected.
    Gpu(Box<Gpu>),
    /// Something could not be measured or written.
    Fault {
        /// What: the name of a [`FaultSource`].
        source: String,
        /// Why.
        why: String,
    },
    /// The kernel has OOM-killed processes in the cgroup of the run.
    OutOfMemory {
        /// How many.
        kills: u64,
        /// Which, as far as the kernel's log could be read.
        #[serde(default)]
        victims: Vec<Victim>,
    },
    /// The run has ended: `run_end` of a command, `watch_end` of an attached target.
    #[serde(untagged)]
    RunEnd(RunEnd),
}

/// A process that was OOM-killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Victim {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub name: String,
}

impl Event {
    /// A process exited: how, and what it and its reaped children used, as far as that is known.
    pub fn ended(id: ProcessId, end: Option<End>, usage: Option<Usage>) -> Event {
        let ProcessId { pid, started } = id;
        Event::ProcessExit { pid, started, end, usage, cpu_seconds: None, memory_peak_bytes: None }
    }

    /// Something could not be measured or written, and why.
    pub fn fault(source: impl Into<FaultSource>, why: String) -> Event {
        Event::Fault { source: source.into().to_string(), why }
    }

    /// Whether it is the last event of the run.
    pub fn is_last(&self) -> bool {
        matches!(self, Event::RunEnd(_))
    }
}

/// A process of weigh's own inside the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Helper {
    /// The phase inside whose command it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// What it has used.
    #[serde(flatten)]
    pub used: HelperUsage,
}

/// What `weigh mark` and `weigh phase` inside a run have used themselves, until their last message.
/// What their exits took is not known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct HelperUsage {
    /// Since exec of their program.
    pub usage: Usage,
    /// Before that: fork, exec and the loader. Zero for a process that ran another program for
    /// longer than that takes.
    pub startup: Usage,
    /// I/O, the message included.
    pub io: Io,
}

impl HelperUsage {
    /// What it used in all.
    pub fn all(&self) -> Usage {
        let mut all = self.usage;
        all.add(&self.startup);
        all
    }

    /// Adds what another one used.
    pub fn add(&mut self, other: &HelperUsage) {
        self.usage.add(&other.usage);
        self.startup.add(&other.startup);
        self.io = self.io.and(&other.io);
    }
}

/// What a phase knows of its command beside what `wait4` reports.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PhaseCommandUsage {
    /// CPU time of everything the command started, from a perf task clock of its own.
    pub task_clock_seconds: Option<f64>,
    /// I/O of the command and of the children it reaped.
    pub io: Option<Io>,
    /// The RSS of the command's process before exec: `largest_rss_bytes` is at least this, whatever
    /// the command needed.
    pub rss_before_exec_bytes: u64,
}

impl PhaseCommandUsage {
    /// The same, where children that are not the command's were reaped and had this size.
    pub fn raise_rss_floor(self, bytes: u64) -> PhaseCommandUsage {
        PhaseCommandUsage { rss_before_exec_bytes: self.rss_before_exec_bytes.max(bytes), ..self }
    }
}

impl From<&Change> for Event {
    fn from(change: &Change) -> Event {
        match change {
            Change::Started { id: ProcessId { pid, started }, parent, program } => {
                Event::ProcessStart {
                    pid: *pid,
                    started: *started,
                    parent: *parent,
                    name: text(&program.name),
                    command: arguments(program),
                    tool: program.tool.clone(),
                }
            }
            Change::Exec { id: ProcessId { pid, started }, program } => Event::ProcessExec {
                pid: *pid,
                started: *started,
                name: text(&program.name),
                command: arguments(program),
                tool: program.tool.clone(),
            },
            Change::Gpu(gpu) => Event::Gpu(gpu.clone()),
            Change::Exited { id, cpu_seconds } => Event::ProcessExit {
                pid: id.pid,
                started: id.started,
                end: None,
                usage: None,
                cpu_seconds: *cpu_seconds,
                memory_peak_bytes: None,
            },
        }
    }
}

fn arguments(program: &Program) -> Option<Vec<String>> {
    program.arguments.as_ref().map(|arguments| secrets::command(arguments))
}

/// Bytes as text, with what is not text shown as `\xNN`.
pub fn text(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            text.push_str(&format!("\\x{byte:02X}"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_not_text_are_shown_as_numbers() {
        assert_eq!(text(b"caf\xC3\xA9 \xFF\xFE"), "café \\xFF\\xFE");
    }

    #[test]
    fn an_event_is_one_flat_line_of_json() {
        let entry = Entry::new(Duration::from_millis(1500), Event::Mark { text: "a\nb".into() });
        let line = serde_json::to_string(&entry).unwrap();
        assert_eq!(line, r#"{"seconds":1.5,"event":"mark","text":"a\nb"}"#);
        assert_eq!(serde_json::from_str::<Entry>(&line).unwrap(), entry);
    }
}
