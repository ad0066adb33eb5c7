//! Which processes belong to what is measured.

mod births;
pub mod group;
mod tree;

pub use group::InGroup;
pub use tree::Tree;

use crate::host::{self, Host};
use crate::model::ProcessId;

/// A process that was found to belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newcomer {
    /// Which one.
    pub id: ProcessId,
    /// Its parent when it was found.
    pub parent: u32,
    /// Its name when it was found, up to the first NUL: it may be gone before more is read.
    name: [u8; 15],
}

impl Newcomer {
    /// A process of this name.
    pub fn new(id: ProcessId, parent: u32, name: &[u8]) -> Newcomer {
        let mut fixed = [0; 15];
        // The kernel's names are not longer.
        let length = name.len().min(fixed.len());
        fixed[..length].copy_from_slice(&name[..length]);
        Newcomer { id, parent, name: fixed }
    }

    /// Its name when it was found.
    pub fn name(&self) -> &[u8] {
        let end = self.name.iter().position(|byte| *byte == 0).unwrap_or(self.name.len());
        &self.name[..end]
    }
}

/// Who belongs.
#[derive(Debug)]
pub enum Members {
    /// By descent.
    Tree(Tree),
    /// By control group.
    Group(InGroup),
}

impl Members {
    /// Adds to `found` everybody who has joined since the last look, parents first.
    ///
    /// Returns whether more may have been born than are there now.
    pub fn look(&mut self, host: &Host, found: &mut Vec<Newcomer>) -> Result<bool, host::Error> {
        match self {
            Members::Tree(tree) => tree.look(host, found),
            // Nobody tells of those who came and went.
            Members::Group(group) => group.look(host, found).map(|()| true),
        }
    }

    /// Whether the pid of a newcomer was given out before its turn, so that others may have had
    /// it meanwhile.
    pub fn came_out_of_turn(&self, pid: u32) -> bool {
        match self {
            Members::Tree(tree) => tree.came_out_of_turn(pid),
            Members::Group(_) => false,
        }
    }

    /// Whether a process that lives was found to belong no longer.
    pub fn has_left(&self, pid: u32) -> bool {
        match self {
            // Whoever was born below stays below.
            Members::Tree(_) => false,
            Members::Group(group) => group.has_left(pid),
        }
    }

    /// One of ours went; its pid is free to be used again.
    pub fn note_went(&mut self, pid: u32) {
        match self {
            Members::Tree(tree) => tree.note_went(),
            Members::Group(group) => group.note_went(pid),
        }
    }

    /// Who descends from whom, where that is what counts.
    pub fn tree(&mut self) -> Option<&mut Tree> {
        match self {
            Members::Tree(tree) => Some(tree),
            Members::Group(_) => None,
        }
    }
}

impl From<Tree> for Members {
    fn from(tree: Tree) -> Members {
        Members::Tree(tree)
    }
}

impl From<InGroup> for Members {
    fn from(group: InGroup) -> Members {
        Members::Group(group)
    }
}
