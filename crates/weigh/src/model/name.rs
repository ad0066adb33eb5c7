//! Names of devices, small enough to be passed around like numbers.
//!
//! A row is made for each device at each tick, and none of that may allocate. The kernel's
//! own names are short: network devices have 15 bytes, disks 31.

/// The name of a device, a port or a part of the machine.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    /// Text, with zeros behind it.
    bytes: [u8; Name::LONGEST],
    length: u8,
}

impl Name {
    /// Bytes of the longest name; what is longer is cut off.
    pub const LONGEST: usize = 31;

    /// The name that these bytes spell; what is not text in them becomes `?`.
    pub fn new(name: &[u8]) -> Name {
        Name::joined(&[name])
    }

    /// The name that these pieces spell one after the other.
    pub fn joined(pieces: &[&[u8]]) -> Name {
        let mut name = Name { bytes: [0; Name::LONGEST], length: 0 };
        for chunk in pieces.iter().flat_map(|piece| piece.utf8_chunks()) {
            chunk.valid().chars().for_each(|letter| name.push(letter));
            if !chunk.invalid().is_empty() {
                name.push('?');
            }
        }
        name
    }

    fn push(&mut self, letter: char) {
        let from = usize::from(self.length);
        if from + letter.len_utf8() <= Name::LONGEST {
            self.length += letter.encode_utf8(&mut self.bytes[from..]).len() as u8;
        }
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        // Only whole letters were ever put in.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

impl std::fmt::Debug for Name {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self.as_str(), formatter)
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_was_written_as_far_as_it_is_text_and_fits() {
        assert_eq!(Name::new(b"eth0").as_str(), "eth0");
        assert_eq!(Name::joined(&[b"package-0", b"/", b"dram"]).as_str(), "package-0/dram");
        assert_eq!(Name::new(b"a\xff\xffb").as_str(), "a??b");
        let long = "\u{e9}".repeat(30);
        assert_eq!(Name::new(long.as_bytes()).as_str(), "\u{e9}".repeat(Name::LONGEST / 2));
        assert_eq!(Name::new(b""), Name::joined(&[]));
    }
}
