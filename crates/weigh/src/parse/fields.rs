//! Reading numbers and lines out of bytes, for the parsers beside this file.
//!
//! A number is accepted only when the byte after it is present, too: `1234` at the end of the bytes
//! may be the beginning of `12345`.

use super::MalformedFile;

/// A cursor over the bytes of one file or one line.
#[derive(Clone, Copy, Debug)]
pub(super) struct FieldCursor<'a> {
    rest: &'a [u8],
}

impl<'a> FieldCursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        FieldCursor { rest: bytes }
    }

    /// The next number after blanks; the byte that ends it is not consumed.
    #[inline]
    pub(super) fn number(&mut self, field: &'static str) -> Result<u64, MalformedFile> {
        self.skip_blanks();
        let value = self.digits(field)?;
        self.must_end_here(field)?;
        Ok(value)
    }

    #[inline]
    pub(super) fn number32(&mut self, field: &'static str) -> Result<u32, MalformedFile> {
        u32::try_from(self.number(field)?).map_err(|_| MalformedFile(field))
    }

    /// The next number of this line, `None` when the line has ended.
    #[inline]
    pub(super) fn number_if_any(
        &mut self,
        field: &'static str,
    ) -> Result<Option<u64>, MalformedFile> {
        self.skip_blanks();
        if self.rest.first() == Some(&b'\n') {
            return Ok(None);
        }
        self.number(field).map(Some)
    }

    /// Digits only: no blanks before, nothing required after.
    #[inline]
    pub(super) fn digits(&mut self, field: &'static str) -> Result<u64, MalformedFile> {
        let mut value: u64 = 0;
        let mut length = 0;
        while let Some(digit) = self.rest.get(length).map(|byte| byte.wrapping_sub(b'0'))
            && digit < 10
        {
            value = value
                .checked_mul(10)
                .and_then(|tens| tens.checked_add(u64::from(digit)))
                .ok_or(MalformedFile(field))?;
            length += 1;
        }
        if length == 0 {
            return Err(MalformedFile(field));
        }
        self.rest = &self.rest[length..];
        Ok(value)
    }

    /// Skips one column, whatever it contains.
    #[inline]
    pub(super) fn skip_column(&mut self, field: &'static str) -> Result<(), MalformedFile> {
        self.skip_blanks();
        let length = self.rest.iter().position(|&byte| ends_number(byte)).unwrap_or(0);
        if length == 0 {
            return Err(MalformedFile(field));
        }
        self.rest = &self.rest[length..];
        Ok(())
    }

    /// The next column as it is.
    #[inline]
    pub(super) fn column(&mut self, field: &'static str) -> Result<&'a [u8], MalformedFile> {
        self.skip_blanks();
        let before = self.rest;
        self.skip_column(field)?;
        Ok(&before[..before.len() - self.rest.len()])
    }

    /// What has not been read yet.
    #[inline]
    pub(super) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Whether everything has been read.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Skips `byte` if it is next.
    #[inline]
    pub(super) fn passes(&mut self, byte: u8) -> bool {
        match self.rest {
            [first, rest @ ..] if *first == byte => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    #[inline]
    pub(super) fn must_pass(&mut self, byte: u8, field: &'static str) -> Result<(), MalformedFile> {
        if self.passes(byte) { Ok(()) } else { Err(MalformedFile(field)) }
    }

    #[inline]
    pub(super) fn byte(&mut self, field: &'static str) -> Result<u8, MalformedFile> {
        let (&first, rest) = self.rest.split_first().ok_or(MalformedFile(field))?;
        self.rest = rest;
        Ok(first)
    }

    /// The next line with its newline, `None` at the end of the bytes.
    #[inline]
    pub(super) fn line(&mut self) -> Result<Option<&'a [u8]>, MalformedFile> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let newline = find(self.rest, b'\n').ok_or(MalformedFile("line without its end"))?;
        let (line, rest) = self.rest.split_at(newline + 1);
        self.rest = rest;
        Ok(Some(line))
    }

    #[inline]
    fn skip_blanks(&mut self) {
        while let [b' ' | b'\t', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    #[inline]
    fn must_end_here(&self, field: &'static str) -> Result<(), MalformedFile> {
        match self.rest.first() {
            Some(&byte) if ends_number(byte) => Ok(()),
            _ => Err(MalformedFile(field)),
        }
    }
}

#[inline]
fn ends_number(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

/// The number of a line `key: 12\n`, given what follows the key.
#[inline]
pub(super) fn only_number(value: &[u8], field: &'static str) -> Result<u64, MalformedFile> {
    let mut cursor = FieldCursor::new(value);
    let number = cursor.number(field)?;
    if cursor.rest == b"\n" { Ok(number) } else { Err(MalformedFile(field)) }
}

/// The bytes of a line `key: 12 kB\n`, given what follows the key. The kernel's kB are KiB.
#[inline]
pub(super) fn kilobytes(value: &[u8], field: &'static str) -> Result<u64, MalformedFile> {
    let mut cursor = FieldCursor::new(value);
    let number = cursor.number(field)?;
    if cursor.rest != b" kB\n" {
        return Err(MalformedFile(field));
    }
    number.checked_mul(1024).ok_or(MalformedFile(field))
}

/// Compared in one go, which the compiler turns into vector instructions: the
/// `intr` line of a large machine's /proc/stat has tens of thousands of bytes.
const STRIDE: usize = 32;

/// Where `needle` first occurs.
#[inline]
pub(super) fn find(haystack: &[u8], needle: u8) -> Option<usize> {
    let (strides, _) = haystack.as_chunks::<STRIDE>();
    let clean = strides.iter().take_while(|stride| !holds(stride, needle)).count() * STRIDE;
    haystack[clean..].iter().position(|&byte| byte == needle).map(|place| clean + place)
}

/// Where `needle` last occurs.
#[inline]
pub(super) fn find_last(haystack: &[u8], needle: u8) -> Option<usize> {
    let (_, strides) = haystack.as_rchunks::<STRIDE>();
    let clean = strides.iter().rev().take_while(|stride| !holds(stride, needle)).count() * STRIDE;
    haystack[..haystack.len() - clean].iter().rposition(|&byte| byte == needle)
}

#[inline]
fn holds(stride: &[u8; STRIDE], needle: u8) -> bool {
    stride.iter().fold(false, |found, &byte| found | (byte == needle))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn number_at_the_end_may_be_truncated() {
        assert_eq!(FieldCursor::new(b"12").number("n"), Err(MalformedFile("n")));
        assert_eq!(FieldCursor::new(b"12\n").number("n"), Ok(12));
        assert_eq!(FieldCursor::new(b" \t12 ").number("n"), Ok(12));
        assert_eq!(FieldCursor::new(b"12x").number("n"), Err(MalformedFile("n")));
    }

    #[test]
    fn largest_number_is_read_and_overflow_refused() {
        assert_eq!(FieldCursor::new(b"18446744073709551615\n").number("n"), Ok(u64::MAX));
        assert!(FieldCursor::new(b"18446744073709551616\n").number("n").is_err());
        assert!(FieldCursor::new(b"99999999999999999999\n").number("n").is_err());
        assert!(kilobytes(b" 18446744073709551615 kB\n", "n").is_err());
        assert!(FieldCursor::new(b"4294967296 ").number32("n").is_err());
    }

    #[test]
    fn kilobytes_are_kibibytes_and_need_the_unit() {
        assert_eq!(kilobytes(b"\t  3 kB\n", "n"), Ok(3072));
        assert!(kilobytes(b"\t  3\n", "n").is_err());
        assert!(kilobytes(b"\t  3 MB\n", "n").is_err());
    }

    #[test]
    fn minus_sign_is_refused() {
        assert!(FieldCursor::new(b"-1 ").number("n").is_err());
    }

    proptest! {
        #[test]
        fn stride_search_agrees_with_byte_search(
            bytes in prop::collection::vec(0u8..40, 0..200), needle in 0u8..40,
        ) {
            prop_assert_eq!(find(&bytes, needle), bytes.iter().position(|&b| b == needle));
            prop_assert_eq!(find_last(&bytes, needle), bytes.iter().rposition(|&b| b == needle));
        }
    }
}
