//! Numbers in the byte order of the machine, as the kernel's binary messages have them, and
//! the fields of netlink messages.
//!
//! Reads nothing by itself. What reaches beyond the bytes is [`MalformedFile`].

use super::MalformedFile;

/// The 16 bits at a place.
#[inline]
pub(super) fn half(bytes: &[u8], place: usize, field: &'static str) -> Result<u16, MalformedFile> {
    at(bytes, place, field).map(u16::from_ne_bytes)
}

/// The 32 bits at a place.
#[inline]
pub(super) fn word(bytes: &[u8], place: usize, field: &'static str) -> Result<u32, MalformedFile> {
    at(bytes, place, field).map(u32::from_ne_bytes)
}

/// The 64 bits at a place.
#[inline]
pub(super) fn long(bytes: &[u8], place: usize, field: &'static str) -> Result<u64, MalformedFile> {
    at(bytes, place, field).map(u64::from_ne_bytes)
}

#[inline]
fn at<const N: usize>(
    bytes: &[u8],
    place: usize,
    field: &'static str,
) -> Result<[u8; N], MalformedFile> {
    let rest = bytes.get(place..).ok_or(MalformedFile(field))?;
    rest.first_chunk().copied().ok_or(MalformedFile(field))
}

/// The content of the first field of a kind, among fields of netlink (linux/netlink.h).
pub(super) fn find(mut fields: &[u8], wanted: u16) -> Result<Option<&[u8]>, MalformedFile> {
    while !fields.is_empty() {
        let length = usize::from(half(fields, 0, "length of a field")?);
        // Two bits say how the content is to be read.
        let kind = half(fields, 2, "kind of a field")? & 0x3fff;
        let content = fields.get(4..length).ok_or(MalformedFile("length of a field"))?;
        if kind == wanted {
            return Ok(Some(content));
        }
        fields = fields.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(None)
}
