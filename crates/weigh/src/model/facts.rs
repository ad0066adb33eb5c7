//! The machine a run was on: name, cores, memory, and how much of it the run may use.

use serde::{Deserialize, Serialize};

/// The machine a run was on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Facts {
    /// Its host name.
    pub name: String,
    /// CPUs that are online.
    pub cores: u32,
    /// CPUs the run may use: its affinity, and its cgroup's quota where there is one.
    pub cores_allowed: f64,
    /// Memory in bytes; null when `/proc/meminfo` cannot be read.
    pub memory_bytes: Option<u64>,
    /// Memory that the run may use by its cgroup, in bytes; null when that has no limit.
    #[serde(default)]
    pub memory_limit_bytes: Option<u64>,
    /// The running kernel.
    pub kernel: String,
    /// The processor architecture.
    pub architecture: String,
    /// The names of its GPUs: in `run.json` those that the machine has, as far as they were
    /// detected during the run; in the summary those that were measured.
    pub gpus: Vec<String>,
    /// Its boot id: distinguishes machines whatever their names are. Containers of one machine
    /// share it. Null when it cannot be read.
    #[serde(default)]
    pub boot: Option<String>,
    /// The pid namespace that pids are of: the same pid is another process in another one. Null
    /// when it cannot be read, and when `/proc` shows those of another one.
    #[serde(default)]
    pub pid_namespace: Option<String>,
}

impl Facts {
    /// Memory that the run may use: that of the machine, or less.
    pub fn memory_allowed_bytes(&self) -> Option<u64> {
        match (self.memory_bytes, self.memory_limit_bytes) {
            (Some(all), Some(limit)) => Some(all.min(limit)),
            (all, limit) => all.or(limit),
        }
    }

    /// The limit of the cgroup, where it is below the machine's size.
    pub fn tight_memory_limit_bytes(&self) -> Option<u64> {
        self.memory_limit_bytes.filter(|limit| self.memory_bytes.is_none_or(|all| *limit < all))
    }
}

#[cfg(test)]
impl Facts {
    /// A machine for tests: four cores, 8 GiB.
    pub fn example() -> Facts {
        Facts {
            name: "node-a".to_owned(),
            cores: 4,
            cores_allowed: 4.0,
            memory_bytes: Some(8 << 30),
            memory_limit_bytes: None,
            kernel: "6.0".to_owned(),
            architecture: "x86_64".to_owned(),
            gpus: Vec::new(),
            boot: None,
            pid_namespace: None,
        }
    }
}
