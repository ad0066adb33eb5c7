//! The root group, which names the datasets, and the superblock, which points to it.

use std::io;

use super::super::super::Cause;
use super::header::{AttributeText, ObjectHeader};
use super::space::{NOWHERE, Space};

/// The size of the superblock at the start of the file.
pub(super) const SUPERBLOCK_SIZE: usize = 96;
/// Half the children of a node of the group's tree.
const INTERNAL_K: u16 = 16;
const SYMBOL_TABLE: u16 = 0x11;

/// A dataset of the root group.
pub(super) struct Link {
    /// Its name.
    pub name: String,
    /// The address of its object header.
    pub header: u64,
}

/// Writes the root group and the superblock, which completes the file.
pub(super) fn write(space: &mut Space, mut links: Vec<Link>) -> Result<(), Cause> {
    links.sort_by(|a, b| a.name.cmp(&b.name));
    // The file sets how many names a leaf of the tree holds: here all fit into one.
    let leaf_k = u16::try_from(links.len().div_ceil(2).max(4))?;
    let (heap, offsets) = names(space, &links)?;
    let tree = tree(space, &links, &offsets, leaf_k)?;

    let mut header = ObjectHeader::default();
    header.message(SYMBOL_TABLE, &[tree.to_le_bytes(), heap.to_le_bytes()].concat())?;
    header.attribute("CLASS", AttributeText("GROUP"))?;
    header.attribute("PYTABLES_FORMAT_VERSION", AttributeText("2.1"))?;
    header.attribute("TITLE", AttributeText("weigh"))?;
    header.attribute("VERSION", AttributeText("1.0"))?;
    let root = space.append(&header.bytes()?)?;

    let superblock = superblock(leaf_k, space.end(), root);
    Ok(space.write_at(0, &superblock)?)
}

/// Superblock 0 (II.A), with addresses and lengths of eight bytes.
fn superblock(leaf_k: u16, end: u64, root: u64) -> Vec<u8> {
    let mut bytes = b"\x89HDF\r\n\x1a\n".to_vec();
    bytes.extend_from_slice(&[0, 0, 0, 0, 0, 8, 8, 0]);
    bytes.extend_from_slice(&leaf_k.to_le_bytes());
    bytes.extend_from_slice(&INTERNAL_K.to_le_bytes());
    bytes.extend_from_slice(&0u32.to_le_bytes());
    let (base, free_space, driver) = (0, NOWHERE, NOWHERE);
    for address in [base, free_space, end, driver] {
        bytes.extend_from_slice(&u64::to_le_bytes(address));
    }
    symbol(&mut bytes, 0, root);
    bytes
}

/// A local heap (III.D) of the names; its address, and the offset of each name.
fn names(space: &mut Space, links: &[Link]) -> io::Result<(u64, Vec<u64>)> {
    // The empty name, below all others, is at 0.
    let mut segment = vec![0; 8];
    let mut offsets = Vec::new();
    for link in links {
        offsets.push(segment.len() as u64);
        segment.extend_from_slice(link.name.as_bytes());
        segment.resize((segment.len() + 1).next_multiple_of(8), 0);
    }
    let address = space.append(&segment)?;
    // 1 is what the HDF5 library writes for a heap without free space.
    let no_free_room = 1;
    let mut heap = b"HEAP\0\0\0\0".to_vec();
    for word in [segment.len() as u64, no_free_room, address] {
        heap.extend_from_slice(&word.to_le_bytes());
    }
    Ok((space.append(&heap)?, offsets))
}

/// A B-tree (III.A.1) with one leaf (III.B), which holds all links.
fn tree(space: &mut Space, links: &[Link], offsets: &[u64], leaf_k: u16) -> io::Result<u64> {
    let mut leaf = b"SNOD\x01\0".to_vec();
    leaf.extend_from_slice(&(links.len() as u16).to_le_bytes());
    for (link, offset) in links.iter().zip(offsets) {
        symbol(&mut leaf, *offset, link.header);
    }
    leaf.resize(8 + 2 * usize::from(leaf_k) * 40, 0);
    let leaf = space.append(&leaf)?;

    let mut tree = b"TREE\0\0".to_vec();
    let children = u16::from(!links.is_empty());
    tree.extend_from_slice(&children.to_le_bytes());
    let (left, right, below_all) = (NOWHERE, NOWHERE, 0);
    let last = offsets.last().copied().unwrap_or(below_all);
    for word in [left, right, below_all, leaf, last] {
        tree.extend_from_slice(&word.to_le_bytes());
    }
    let fanout = 2 * usize::from(INTERNAL_K);
    tree.resize(24 + (fanout + 1) * 8 + fanout * 8, 0);
    space.append(&tree)
}

/// A symbol table entry (III.C), with nothing cached.
fn symbol(bytes: &mut Vec<u8>, name: u64, header: u64) {
    bytes.extend_from_slice(&name.to_le_bytes());
    bytes.extend_from_slice(&header.to_le_bytes());
    bytes.extend_from_slice(&[0; 24]);
}
