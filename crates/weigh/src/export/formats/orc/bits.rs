//! Which rows hold a value: the PRESENT stream of a column.
//!
//! Eight rows in a byte, the first in its highest bit; the bytes then as runs
//! (specification v1, "Boolean Run Length Encoding").

/// Runs shorter than this cost more than they save.
const SHORTEST_RUN: usize = 3;
const LONGEST_RUN: usize = 127 + SHORTEST_RUN;
const LONGEST_LITERAL: usize = 128;

/// A boolean for each row.
#[derive(Debug, Default)]
pub(super) struct Bits {
    bytes: Vec<u8>,
    rows: u64,
    set: u64,
}

impl Bits {
    /// One more row.
    pub(super) fn push(&mut self, bit: bool) {
        let place = (self.rows % 8) as u32;
        if place == 0 {
            self.bytes.push(0);
        }
        if let Some(last) = self.bytes.last_mut() {
            *last |= u8::from(bit) << (7 - place);
        }
        self.rows += 1;
        self.set += u64::from(bit);
    }

    /// How many rows are true.
    pub(super) fn set(&self) -> u64 {
        self.set
    }

    /// Whether every row is true.
    pub(super) fn all(&self) -> bool {
        self.set == self.rows
    }

    /// Memory in use.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The encoded bits.
    pub(super) fn encoded(&self) -> Vec<u8> {
        byte_runs(&self.bytes)
    }
}

fn byte_runs(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut literal = 0..0;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let alike = bytes[at..].iter().take(LONGEST_RUN).take_while(|b| *b == byte).count();
        if alike < SHORTEST_RUN {
            at += alike;
            literal.end = at;
            continue;
        }
        literals(&mut out, &bytes[literal]);
        out.extend([(alike - SHORTEST_RUN) as u8, *byte]);
        at += alike;
        literal = at..at;
    }
    literals(&mut out, &bytes[literal]);
    out
}

/// Literal bytes, preceded by their negated count.
fn literals(out: &mut Vec<u8>, bytes: &[u8]) {
    for part in bytes.chunks(LONGEST_LITERAL) {
        out.push((part.len() as u8).wrapping_neg());
        out.extend_from_slice(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn byte_runs_follow_the_specification() {
        assert_eq!(byte_runs(&[0; 100]), [0x61, 0x00]);
        assert_eq!(byte_runs(&[0x44, 0x45]), [0xfe, 0x44, 0x45]);
    }

    #[test]
    fn bits_follow_the_specification() {
        let mut bits = Bits::default();
        bits.push(true);
        (0..7).for_each(|_| bits.push(false));
        assert_eq!(bits.encoded(), [0xff, 0x80]);
        assert_eq!((bits.set(), bits.all()), (1, false));
    }

    #[test]
    fn runs_and_literals_stay_within_their_header_range() {
        assert_eq!(byte_runs(&[7; 131]), [127, 7, 0xff, 7]);
        let different: Vec<u8> = (0..=255).chain(0..1).collect();
        let encoded = byte_runs(&different);
        assert_eq!(encoded.len(), 257 + 3);
        assert_eq!((encoded[0], encoded[129], encoded[258]), (0x80, 0x80, 0xff));
    }

    #[test]
    fn a_run_between_literals_ends_the_first_and_begins_the_second() {
        assert_eq!(byte_runs(&[1, 2, 2, 5, 5, 5, 9]), [0xfd, 1, 2, 2, 0, 5, 0xff, 9]);
    }
}
