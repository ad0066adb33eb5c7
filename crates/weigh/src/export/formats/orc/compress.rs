//! Streams and messages as compressed chunks (specification v1, "Compression").
//!
//! A chunk begins with three bytes: twice its length, plus one if it is stored uncompressed. Chunks
//! are independent of each other.

use std::io;

use zstd::bulk::Compressor;
use zstd::zstd_safe::compress_bound;

/// The largest chunk before compression. Larger ones gain little.
pub(super) const BLOCK: usize = 256 * 1024;

/// Compresses chunks with Zstandard at its default level.
#[derive(Default)]
pub(super) struct Chunks {
    zstd: Compressor<'static>,
    packed: Vec<u8>,
}

impl Chunks {
    /// Appends these bytes as chunks; no bytes make no chunk.
    pub(super) fn append(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        for block in bytes.chunks(BLOCK) {
            self.packed.clear();
            self.packed.reserve(compress_bound(block.len()));
            self.zstd.compress_to_buffer(block, &mut self.packed)?;
            let original = self.packed.len() >= block.len();
            let chunk = if original { block } else { &self.packed };
            let header = (chunk.len() as u32) << 1 | u32::from(original);
            out.extend_from_slice(&header.to_le_bytes()[..3]);
            out.extend_from_slice(chunk);
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The content of each chunk.
    pub(crate) fn unpacked(mut bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while !bytes.is_empty() {
            let header = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], 0]);
            let (chunk, rest) = bytes[3..].split_at(header as usize >> 1);
            all.push(match header & 1 {
                1 => chunk.to_vec(),
                _ => zstd::bulk::decompress(chunk, BLOCK).unwrap(),
            });
            bytes = rest;
        }
        all
    }

    fn packed(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        Chunks::default().append(bytes, &mut out).unwrap();
        out
    }

    #[test]
    fn incompressible_chunk_is_stored() {
        // The example of the specification.
        assert_eq!(packed(b"12345"), b"\x0b\x00\x0012345");
    }

    #[test]
    fn empty_input_makes_no_chunk() {
        assert_eq!(packed(b""), b"");
    }

    #[test]
    fn input_above_a_block_makes_several_chunks() {
        let bytes: Vec<u8> = (0..BLOCK + 10).map(|place| (place / 1000) as u8).collect();
        let packed = packed(&bytes);
        assert!(packed.len() < BLOCK / 10, "{}", packed.len());
        let chunks = unpacked(&packed);
        assert_eq!(chunks.len(), 2);
        assert!(chunks.concat() == bytes);
    }
}
