//! Which processes belong to the run.

pub mod cgroup;
mod fork_counter;
mod tree;

pub use cgroup::CgroupMembers;
pub use tree::{EnvironmentMarker, ProcessTree};

use crate::host::{self, Host};
use crate::model::ProcessId;

/// A process that was found to belong to the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewMember {
    /// Which one.
    pub id: ProcessId,
    /// Its parent when it was found.
    pub parent: u32,
    /// Its name when it was found, up to the first NUL: it may exit before more is read.
    name: [u8; 15],
}

impl NewMember {
    /// A process of this name.
    pub fn new(id: ProcessId, parent: u32, name: &[u8]) -> NewMember {
        let mut fixed = [0; 15];
        // Names in the kernel are not longer.
        let length = name.len().min(fixed.len());
        fixed[..length].copy_from_slice(&name[..length]);
        NewMember { id, parent, name: fixed }
    }

    /// Its name when it was found.
    pub fn name(&self) -> &[u8] {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        &self.name[..end]
    }
}

/// How members are found.
#[derive(Debug)]
pub enum RunMembers {
    /// By descent.
    Tree(ProcessTree),
    /// By cgroup.
    Cgroup(CgroupMembers),
}

impl RunMembers {
    /// Adds to `found` the members that joined since the last update, parents first.
    ///
    /// Returns whether more processes may have been started than exist now.
    pub fn update(&mut self, host: &Host, found: &mut Vec<NewMember>) -> Result<bool, host::Error> {
        match self {
            RunMembers::Tree(tree) => tree.update(host, found),
            // Processes that started and exited are not counted.
            RunMembers::Cgroup(group) => group.update(host, found).map(|()| true),
        }
    }

    /// Whether the pid of a new member was allocated out of order, so that other processes may have
    /// had it meanwhile.
    pub fn pid_out_of_order(&self, pid: u32) -> bool {
        match self {
            RunMembers::Tree(tree) => tree.pid_out_of_order(pid),
            RunMembers::Cgroup(_) => false,
        }
    }

    /// Whether a running process is no longer a member.
    pub fn has_left(&self, pid: u32) -> bool {
        match self {
            // A descendant stays a descendant.
            RunMembers::Tree(_) => false,
            RunMembers::Cgroup(group) => group.has_left(pid),
        }
    }

    /// A member exited; its pid may be reused.
    pub fn note_exit(&mut self, pid: u32) {
        match self {
            RunMembers::Tree(tree) => tree.note_exit(),
            RunMembers::Cgroup(group) => group.note_exit(pid),
        }
    }

    /// The process tree, if membership is by descent.
    pub fn tree(&mut self) -> Option<&mut ProcessTree> {
        match self {
            RunMembers::Tree(tree) => Some(tree),
            RunMembers::Cgroup(_) => None,
        }
    }
}

impl From<ProcessTree> for RunMembers {
    fn from(tree: ProcessTree) -> RunMembers {
        RunMembers::Tree(tree)
    }
}

impl From<CgroupMembers> for RunMembers {
    fn from(group: CgroupMembers) -> RunMembers {
        RunMembers::Cgroup(group)
    }
}
