//! A minimal HDF5 reader for our files. It panics on anything unexpected.

use std::collections::HashMap;

use super::super::space::NOWHERE;

/// A dataset.
pub(super) struct Hdf5Table {
    /// The bytes of each cell, row by row.
    pub rows: Vec<Vec<Vec<u8>>>,
    /// First row, address and size of each chunk.
    pub chunks: Vec<(u64, u64, u32)>,
    /// The bytes of each attribute.
    pub attributes: HashMap<String, Vec<u8>>,
}

fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut word = [0; 8];
    word[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(word)
}

fn name(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap();
    String::from_utf8(bytes[..end].to_vec()).unwrap()
}

/// The datasets of a file.
pub(super) fn tables(file: &[u8]) -> HashMap<String, Hdf5Table> {
    assert_eq!(&file[..8], b"\x89HDF\r\n\x1a\n");
    assert_eq!(number(file, 40, 8), file.len() as u64, "the end of the file");
    let root = messages(file, number(file, 64, 8));
    let (tree, heap) = (number(&root[0].1, 0, 8) as usize, number(&root[0].1, 8, 8) as usize);
    assert_eq!((&file[tree..tree + 4], &file[heap..heap + 4]), (&b"TREE"[..], &b"HEAP"[..]));
    let leaf = number(file, tree + 32, 8) as usize;
    let names = number(file, heap + 24, 8) as usize;
    assert_eq!(&file[leaf..leaf + 4], b"SNOD");
    let mut last = String::new();
    let link = |link: usize| {
        let entry = leaf + 8 + 40 * link;
        let name = name(&file[names + number(file, entry, 8) as usize..]);
        assert!(std::mem::replace(&mut last, name.clone()) < name, "names are sorted");
        (name, table(file, number(file, entry + 8, 8)))
    };
    (0..number(file, leaf + 6, 2) as usize).map(link).collect()
}

fn messages(file: &[u8], header: u64) -> Vec<(u64, Vec<u8>)> {
    let header = header as usize;
    let mut at = header + 16;
    let messages: Vec<(u64, Vec<u8>)> = (0..number(file, header + 2, 2))
        .map(|_| {
            let (kind, size) = (number(file, at, 2), number(file, at + 2, 2) as usize);
            at += 8 + size;
            (kind, file[at - size..at].to_vec())
        })
        .collect();
    assert_eq!(at, header + 16 + number(file, header + 8, 4) as usize);
    messages
}

fn table(file: &[u8], header: u64) -> Hdf5Table {
    let messages = messages(file, header);
    let one = |kind: u64| &messages.iter().find(|message| message.0 == kind).unwrap().1;
    let rows = number(one(1), 8, 8);
    let (index, chunk_rows) = (number(one(8), 3, 8), number(one(8), 11, 4));
    let row_size = number(one(8), 15, 4) as usize;
    let cells = cells(one(3), row_size);
    let chunks = chunks(file, index, rows.next_multiple_of(chunk_rows));
    let mut table = Hdf5Table { rows: Vec::new(), chunks, attributes: HashMap::new() };
    for (_, address, size) in &table.chunks {
        let stored = &file[*address as usize..][..*size as usize];
        let mut planes = Vec::with_capacity(chunk_rows as usize * row_size);
        let mut inflate = flate2::Decompress::new(true);
        inflate.decompress_vec(stored, &mut planes, flate2::FlushDecompress::Finish).unwrap();
        assert_eq!(planes.len(), chunk_rows as usize * row_size);
        for row in 0..chunk_rows as usize {
            let byte = |at: usize| planes[at * chunk_rows as usize + row];
            table.rows.push(cells.iter().map(|cell| cell.clone().map(byte).collect()).collect());
        }
    }
    table.rows.truncate(rows as usize);
    for (_, attribute) in messages.iter().filter(|message| message.0 == 0x0c) {
        let sizes = [2, 4, 6].map(|at| number(attribute, at, 2).next_multiple_of(8) as usize);
        let datatype = 8 + sizes[0];
        let value = datatype + sizes[1] + sizes[2];
        let size = number(attribute, datatype + 4, 4) as usize;
        table.attributes.insert(name(&attribute[8..]), attribute[value..value + size].to_vec());
    }
    table
}

/// The bytes of each member of a compound.
fn cells(datatype: &[u8], row_size: usize) -> Vec<std::ops::Range<usize>> {
    assert_eq!((datatype[0], number(datatype, 4, 4) as usize), (0x16, row_size));
    let mut at = 8;
    let member = |_| {
        at += (name(&datatype[at..]).len() + 1).next_multiple_of(8);
        let (offset, size) = (number(datatype, at, 4) as usize, number(datatype, at + 36, 4));
        let properties = match datatype[at + 32] {
            0x10 => 4,
            0x11 => 12,
            0x13 => 0,
            other => panic!("{other:x} is no class of ours"),
        };
        at += 40 + properties;
        offset..offset + size as usize
    };
    (0..number(datatype, 1, 2)).map(member).collect()
}

/// First row, address and size of all chunks in an index; the tree must be sound.
pub(super) fn chunks(file: &[u8], root: u64, end: u64) -> Vec<(u64, u64, u32)> {
    let mut level = if root == NOWHERE { Vec::new() } else { vec![(0, root, 0)] };
    let mut depth = None;
    while depth != Some(0) && !level.is_empty() {
        let mut below = Vec::new();
        for (place, (first, node, _)) in level.iter().enumerate() {
            let node = *node as usize;
            assert_eq!((&file[node..node + 4], file[node + 4]), (&b"TREE"[..], 1));
            let neighbour = |place: usize| level.get(place).map_or(NOWHERE, |node| node.1);
            assert_eq!(number(file, node + 8, 8), neighbour(place.wrapping_sub(1)));
            assert_eq!(number(file, node + 16, 8), neighbour(place + 1));
            let children = number(file, node + 6, 2) as usize;
            assert!((1..=64).contains(&children));
            let row = |child: usize| number(file, node + 24 + 32 * child + 8, 8);
            assert_eq!(row(0), *first);
            assert_eq!(row(children), level.get(place + 1).map_or(end, |next| next.0));
            below.extend((0..children).map(|child| {
                let key = node + 24 + 32 * child;
                (row(child), number(file, key + 24, 8), number(file, key, 4) as u32)
            }));
            depth = Some(file[node + 5]);
        }
        level = below;
    }
    level
}
