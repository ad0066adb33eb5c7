//! Which processes belong to what is measured.

mod births;
mod tree;

pub use tree::Tree;

use crate::sample::ProcessId;

/// A process that was found to belong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newcomer {
    /// Which one.
    pub id: ProcessId,
    /// Its parent when it was found.
    pub parent: u32,
}
