//! Numbers in the byte order of the machine, as the kernel's binary messages have them.
//!
//! Reads nothing by itself. What reaches beyond the bytes is [`Malformed`].

use super::Malformed;

/// The 16 bits at a place.
#[inline]
pub(super) fn half(bytes: &[u8], place: usize, field: &'static str) -> Result<u16, Malformed> {
    at(bytes, place, field).map(u16::from_ne_bytes)
}

/// The 32 bits at a place.
#[inline]
pub(super) fn word(bytes: &[u8], place: usize, field: &'static str) -> Result<u32, Malformed> {
    at(bytes, place, field).map(u32::from_ne_bytes)
}

/// The 64 bits at a place.
#[inline]
pub(super) fn long(bytes: &[u8], place: usize, field: &'static str) -> Result<u64, Malformed> {
    at(bytes, place, field).map(u64::from_ne_bytes)
}

#[inline]
fn at<const N: usize>(
    bytes: &[u8],
    place: usize,
    field: &'static str,
) -> Result<[u8; N], Malformed> {
    let rest = bytes.get(place..).ok_or(Malformed(field))?;
    rest.first_chunk().copied().ok_or(Malformed(field))
}
