//! The chunk index of a dataset: a version 1 B-tree (III.A.1), keyed by first row.
//!
//! Chunks come in the order of their rows, so the tree is filled from the left, and only the last
//! node of each level is in memory. A node holds the address of its right neighbour: that is
//! reserved when the node is full and another child follows, and then the node is written.

use std::io;
use std::mem::replace;

use super::space::{NOWHERE, Space};

/// Children of a node: twice the K of 32 that superblock 0 implies.
const FANOUT: usize = 64;
/// Header, keys around each child, children; every node has this size.
const NODE_SIZE: usize = 24 + (FANOUT + 1) * KEY_SIZE + FANOUT * 8;
const KEY_SIZE: usize = 24;
/// The node type of raw data chunks.
const CHUNKS: u8 = 1;

/// The index of one dataset.
#[derive(Default)]
pub(super) struct ChunkIndex {
    /// The last node of each level; leaves first.
    levels: Vec<BtreeNode>,
}

struct BtreeNode {
    address: u64,
    left: u64,
    children: Vec<BtreeChild>,
}

#[derive(Clone, Copy)]
struct BtreeChild {
    key: ChunkKey,
    address: u64,
}

/// The first chunk below a child.
#[derive(Clone, Copy)]
struct ChunkKey {
    stored_size: u32,
    first_row: u64,
}

impl ChunkIndex {
    /// Adds a chunk after all others.
    pub(super) fn add(
        &mut self,
        space: &mut Space,
        first_row: u64,
        address: u64,
        stored_size: u32,
    ) -> io::Result<()> {
        self.add_at(space, 0, BtreeChild { key: ChunkKey { stored_size, first_row }, address })
    }

    /// Writes the open nodes; returns the address of the root, for chunks up to this row.
    pub(super) fn finish(mut self, space: &mut Space, end_row: u64) -> io::Result<u64> {
        let end = ChunkKey { stored_size: 0, first_row: end_row };
        let mut root = NOWHERE;
        let mut level = 0;
        while level < self.levels.len() {
            let (first, address) = self.levels[level].write(space, level, NOWHERE, end)?;
            root = address;
            level += 1;
            // The root has no parent; other nodes are added to theirs, which may become full by
            // that.
            if level < self.levels.len() {
                self.add_at(space, level, BtreeChild { key: first, address })?;
            }
        }
        Ok(root)
    }

    /// The number of unwritten nodes.
    #[cfg(test)]
    pub(super) fn nodes_in_memory(&self) -> usize {
        self.levels.len()
    }

    fn add_at(&mut self, space: &mut Space, level: usize, child: BtreeChild) -> io::Result<()> {
        if level == self.levels.len() {
            self.levels.push(BtreeNode::new(space, NOWHERE));
        }
        let node = &mut self.levels[level];
        if node.children.len() == FANOUT {
            let next = BtreeNode::new(space, node.address);
            let right = next.address;
            let full = replace(node, next);
            let (key, address) = full.write(space, level, right, child.key)?;
            self.add_at(space, level + 1, BtreeChild { key, address })?;
        }
        self.levels[level].children.push(child);
        Ok(())
    }
}

impl BtreeNode {
    fn new(space: &mut Space, left: u64) -> BtreeNode {
        let address = space.reserve(NODE_SIZE);
        BtreeNode { address, left, children: Vec::with_capacity(FANOUT) }
    }

    /// Writes the node; its first key and its address, for its parent.
    fn write(
        &self,
        space: &mut Space,
        level: usize,
        right: u64,
        end: ChunkKey,
    ) -> io::Result<(ChunkKey, u64)> {
        let mut bytes = Vec::with_capacity(NODE_SIZE);
        bytes.extend_from_slice(b"TREE");
        bytes.extend_from_slice(&[CHUNKS, level as u8]);
        bytes.extend_from_slice(&(self.children.len() as u16).to_le_bytes());
        bytes.extend_from_slice(&self.left.to_le_bytes());
        bytes.extend_from_slice(&right.to_le_bytes());
        for child in &self.children {
            child.key.write(&mut bytes);
            bytes.extend_from_slice(&child.address.to_le_bytes());
        }
        end.write(&mut bytes);
        bytes.resize(NODE_SIZE, 0);
        space.write_at(self.address, &bytes)?;
        let first = self.children.first().map_or(end, |child| child.key);
        Ok((first, self.address))
    }
}

impl ChunkKey {
    fn write(self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.stored_size.to_le_bytes());
        // Filter mask: no filter was skipped.
        bytes.extend_from_slice(&0u32.to_le_bytes());
        bytes.extend_from_slice(&self.first_row.to_le_bytes());
        // Offset within a row: chunks begin with its first byte.
        bytes.extend_from_slice(&0u64.to_le_bytes());
    }
}
