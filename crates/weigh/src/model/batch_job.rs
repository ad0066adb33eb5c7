//! The batch job that a run is part of, as its scheduler describes it.

use serde::{Deserialize, Serialize};

/// The batch system of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scheduler {
    /// SLURM.
    Slurm,
    /// OpenPBS, PBS Professional or TORQUE.
    Pbs,
    /// OAR.
    Oar,
    /// Flux.
    Flux,
    /// None: hosts that the user names, reached over ssh.
    Hosts,
    /// One that a later weigh knows.
    #[serde(other)]
    Other,
}

impl Scheduler {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Scheduler::Slurm => "SLURM",
            Scheduler::Pbs => "PBS",
            Scheduler::Oar => "OAR",
            Scheduler::Flux => "Flux",
            Scheduler::Hosts => "ssh",
            Scheduler::Other => "batch",
        }
    }
}

/// A batch job as one of its nodes knows it. What is not known is null.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BatchJob {
    /// Its batch system.
    pub scheduler: Scheduler,
    /// Its id.
    #[serde(default)]
    pub id: Option<String>,
    /// The id of the array it is part of.
    #[serde(default)]
    pub array_id: Option<String>,
    /// Its index in that array.
    #[serde(default)]
    pub array_index: Option<String>,
    /// How often the scheduler has started it again, under the same id.
    #[serde(default)]
    pub restarts: Option<u32>,
    /// Who submitted it.
    #[serde(default)]
    pub user: Option<String>,
    /// Its name.
    #[serde(default)]
    pub name: Option<String>,
    /// Its partition or queue.
    #[serde(default)]
    pub partition: Option<String>,
    /// How many nodes it has.
    #[serde(default)]
    pub node_count: Option<u32>,
    /// This node, as the scheduler calls it; null for several.
    #[serde(default)]
    pub node: Option<String>,
    /// What was requested of this node; of all, where it is the same on each.
    #[serde(default)]
    pub requested: Requested,
    /// The time limit, in seconds.
    #[serde(default)]
    pub time_limit_seconds: Option<u64>,
}

/// What a job requested of one node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requested {
    /// CPUs.
    #[serde(default)]
    pub cores: Option<u32>,
    /// Memory.
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    /// GPUs.
    #[serde(default)]
    pub gpus: Option<u32>,
}

impl Requested {
    /// These values, and those of another where there is none.
    pub fn or(self, other: Requested) -> Requested {
        Requested {
            cores: self.cores.or(other.cores),
            memory_bytes: self.memory_bytes.or(other.memory_bytes),
            gpus: self.gpus.or(other.gpus),
        }
    }
}

/// One node of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobNode {
    /// Its name, as the scheduler has it.
    pub name: String,
    /// What was requested of it.
    #[serde(flatten)]
    pub requested: Requested,
}

impl BatchJob {
    /// A job of which nothing but its scheduler is known.
    pub fn of(scheduler: Scheduler) -> BatchJob {
        BatchJob {
            scheduler,
            id: None,
            array_id: None,
            array_index: None,
            restarts: None,
            user: None,
            name: None,
            partition: None,
            node_count: None,
            node: None,
            requested: Requested::default(),
            time_limit_seconds: None,
        }
    }

    /// What several nodes of one job have in common; `None` when they are of different jobs.
    pub fn common(jobs: &[&BatchJob]) -> Option<BatchJob> {
        let (first, others) = jobs.split_first()?;
        let is_same = |other: &&BatchJob| {
            (other.scheduler, &other.id, other.restarts)
                == (first.scheduler, &first.id, first.restarts)
        };
        if !others.iter().all(is_same) {
            return None;
        }
        let mut common = (*first).clone();
        if others.iter().any(|other| other.node != first.node) {
            common.node = None;
        }
        if others.iter().any(|other| other.requested != first.requested) {
            common.requested = Requested::default();
        }
        Some(common)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn job_of_an_earlier_or_later_weigh_is_read() {
        let earlier: BatchJob = serde_json::from_str(r#"{"scheduler": "slurm"}"#).unwrap();
        assert_eq!(earlier, BatchJob::of(Scheduler::Slurm));
        let later = r#"{"scheduler": "lsf", "id": "7", "cluster": "big"}"#;
        let later: BatchJob = serde_json::from_str(later).unwrap();
        assert_eq!((later.scheduler, later.id.as_deref()), (Scheduler::Other, Some("7")));
    }

    #[test]
    fn nodes_of_one_job_have_in_common_what_is_the_same_on_each() {
        let node = |name: &str, cores| BatchJob {
            id: Some("7".to_owned()),
            node: Some(name.to_owned()),
            requested: Requested { cores: Some(cores), ..Requested::default() },
            ..BatchJob::of(Scheduler::Slurm)
        };
        let common = BatchJob::common(&[&node("n1", 4), &node("n2", 4)]).unwrap();
        assert_eq!((common.node, common.requested.cores), (None, Some(4)));
        let common = BatchJob::common(&[&node("n1", 4), &node("n2", 8)]).unwrap();
        assert_eq!(common.requested, Requested::default());
        let other = BatchJob { id: Some("8".to_owned()), ..node("n1", 4) };
        assert_eq!(BatchJob::common(&[&node("n1", 4), &other]), None);
        assert_eq!(BatchJob::common(&[]), None);
    }
}
