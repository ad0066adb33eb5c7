//! Integers in native byte order, as in the kernel's binary messages, and attributes of netlink
//! messages.
//!
//! Reading beyond the end of the bytes is [`MalformedFile`].

use super::MalformedFile;

/// The u16 at an offset.
#[inline]
pub(super) fn u16_at(
    bytes: &[u8],
    offset: usize,
    field: &'static str,
) -> Result<u16, MalformedFile> {
    at(bytes, offset, field).map(u16::from_ne_bytes)
}

/// The u32 at an offset.
#[inline]
pub(super) fn u32_at(
    bytes: &[u8],
    offset: usize,
    field: &'static str,
) -> Result<u32, MalformedFile> {
    at(bytes, offset, field).map(u32::from_ne_bytes)
}

/// The u64 at an offset.
#[inline]
pub(super) fn u64_at(
    bytes: &[u8],
    offset: usize,
    field: &'static str,
) -> Result<u64, MalformedFile> {
    at(bytes, offset, field).map(u64::from_ne_bytes)
}

#[inline]
fn at<const N: usize>(
    bytes: &[u8],
    offset: usize,
    field: &'static str,
) -> Result<[u8; N], MalformedFile> {
    let rest = bytes.get(offset..).ok_or(MalformedFile(field))?;
    rest.first_chunk().copied().ok_or(MalformedFile(field))
}

/// The content of the first netlink attribute of a type (linux/netlink.h).
pub(super) fn find(mut fields: &[u8], wanted: u16) -> Result<Option<&[u8]>, MalformedFile> {
    while !fields.is_empty() {
        let length = usize::from(u16_at(fields, 0, "length of a field")?);
        // The two highest bits are flags.
        let kind = u16_at(fields, 2, "kind of a field")? & 0x3fff;
        let content = fields.get(4..length).ok_or(MalformedFile("length of a field"))?;
        if kind == wanted {
            return Ok(Some(content));
        }
        fields = fields.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(None)
}
