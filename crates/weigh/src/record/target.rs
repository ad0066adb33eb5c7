//! What a recording is about, when weigh did not start it itself.

use serde::{Deserialize, Serialize};

use crate::model::ProcessId;

/// What was monitored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Processes that already ran, and their descendants.
    Processes {
        /// Their pids.
        pids: Vec<u32>,
    },
    /// All processes in a cgroup and the cgroups below it.
    Cgroup {
        /// Where it is.
        path: String,
    },
    /// Every process that runs one of some programs, as they start and exit.
    Programs {
        /// How they were named.
        names: Vec<String>,
        /// The process among whose descendants they were searched; null when everywhere.
        #[serde(default)]
        under: Option<u32>,
    },
    /// The processes of a batch job on one node.
    Job {
        /// The id of the job.
        id: String,
        /// How its processes were found: by a cgroup, or by a variable in their environment.
        found_by: String,
    },
    /// Several recordings, merged into one.
    Merged {
        /// Which ones.
        members: Vec<Member>,
        /// Whether all of them were commands, each with final counters, and no process was
        /// in two of them: then the counters add up. Otherwise the samples of the processes do.
        #[serde(default)]
        exact: bool,
    },
}

/// One of several merged recordings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Member {
    /// The run it was.
    pub id: String,
    /// What it was called.
    pub name: String,
    /// The machine it was on.
    pub host: String,
    /// Its command's process, or the attached one, under the numbering and on the clock of all; 0
    /// when there were several, or none.
    #[serde(default)]
    pub pid: u32,
    /// Clock ticks to its start.
    #[serde(default)]
    pub process_started: u64,
    /// Whether its processes were monitored one by one, each without its children.
    #[serde(default)]
    pub each_alone: bool,
    /// How far its clock was ahead of that of the others, by which its times are corrected.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub clock_ahead_seconds: f64,
}

fn is_zero(seconds: &f64) -> bool {
    *seconds == 0.0
}

impl Member {
    /// Its main process.
    pub fn main(&self) -> ProcessId {
        ProcessId { pid: self.pid, started: self.process_started }
    }
}

/// Some names, up to a limit.
fn listed(words: &[String]) -> String {
    const MOST: usize = 4;
    let mut text = words.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    if words.len() > MOST {
        text.push_str(&format!(" and {} more", words.len() - MOST));
    }
    text
}

impl Target {
    /// What happened to it, in a verb before [`Target::words`].
    pub fn verb(&self) -> &'static str {
        if matches!(self, Target::Merged { .. }) { "merged" } else { "monitored" }
    }

    /// What it is, for people who read a summary.
    pub fn words(&self) -> String {
        match self {
            Target::Processes { pids } => {
                let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
                let noun = if pids.len() == 1 { "process" } else { "processes" };
                format!("{noun} {}", pids.join(", "))
            }
            Target::Cgroup { path } => format!("cgroup {path}"),
            Target::Programs { names, under: None } => listed(names),
            Target::Programs { names, under: Some(pid) } => {
                format!("{} under process {pid}", listed(names))
            }
            Target::Job { id, .. } => format!("job {id}"),
            Target::Merged { members, .. } => format!("{} recordings", members.len()),
        }
    }
}
