//! Version 1 object headers (IV.A.1.a): messages that describe a group or dataset.

use super::super::super::Cause;
use super::slot::Hdf5Type;

const ATTRIBUTE: u16 = 0x0c;
/// A dataspace of one value.
const SCALAR: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0];

/// A header, as its messages are added.
#[derive(Default)]
pub(super) struct ObjectHeader {
    messages: Vec<u8>,
    count: u16,
}

/// Text as the value of an attribute; it may not be empty, as HDF5 has no empty type.
pub(super) struct AttributeText<'a>(pub &'a str);

/// The value of an attribute: its type and its bytes.
pub(super) trait AttributeValue {
    /// How it is stored.
    fn stored(&self) -> Hdf5Type;
    /// The stored bytes.
    fn bytes(&self) -> Vec<u8>;
}

impl AttributeValue for AttributeText<'_> {
    fn stored(&self) -> Hdf5Type {
        Hdf5Type::Text(self.0.len().max(1))
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.as_bytes().to_vec()
    }
}

impl AttributeValue for i64 {
    fn stored(&self) -> Hdf5Type {
        Hdf5Type::I64
    }

    fn bytes(&self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl ObjectHeader {
    /// Adds a message of this type.
    pub(super) fn message(&mut self, kind: u16, body: &[u8]) -> Result<(), Cause> {
        let size = body.len().next_multiple_of(8);
        let size = u16::try_from(size).map_err(|_| "more than 64 KiB in an HDF5 header message")?;
        self.count = self.count.checked_add(1).ok_or("too many HDF5 header messages")?;
        self.messages.extend_from_slice(&kind.to_le_bytes());
        self.messages.extend_from_slice(&size.to_le_bytes());
        self.messages.extend_from_slice(&[0; 4]);
        pad(&mut self.messages, body);
        Ok(())
    }

    /// Adds an attribute (IV.A.2.m, version 1).
    pub(super) fn attribute(
        &mut self,
        name: &str,
        value: impl AttributeValue,
    ) -> Result<(), Cause> {
        let datatype = value.stored().datatype();
        let mut body = vec![1, 0];
        for size in [name.len() + 1, datatype.len(), SCALAR.len()] {
            body.extend_from_slice(&u16::try_from(size)?.to_le_bytes());
        }
        pad(&mut body, &[name.as_bytes(), &[0]].concat());
        pad(&mut body, &datatype);
        body.extend_from_slice(&SCALAR);
        let end = body.len() + value.stored().size();
        body.extend_from_slice(&value.bytes());
        body.resize(end, 0);
        self.message(ATTRIBUTE, &body)
    }

    /// The encoded header.
    pub(super) fn bytes(&self) -> Result<Vec<u8>, Cause> {
        let mut bytes = vec![1, 0];
        bytes.extend_from_slice(&self.count.to_le_bytes());
        let references = 1u32;
        bytes.extend_from_slice(&references.to_le_bytes());
        bytes.extend_from_slice(&u32::try_from(self.messages.len())?.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.messages);
        Ok(bytes)
    }
}

/// Appends, up to a multiple of eight bytes.
fn pad(bytes: &mut Vec<u8>, part: &[u8]) {
    let end = bytes.len() + part.len().next_multiple_of(8);
    bytes.extend_from_slice(part);
    bytes.resize(end, 0);
}
