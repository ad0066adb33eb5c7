//! A minimal writer of Protocol Buffers: integers, texts, messages.
//!
//! A field is its number and its wire type in one varint, then its value
//! (<https://protobuf.dev/programming-guides/encoding/>).

const VARINT: u64 = 0;
const LENGTH_FIRST: u64 = 2;

/// An encoded message.
#[derive(Debug, Default)]
pub(super) struct ProtobufMessage(Vec<u8>);

impl ProtobufMessage {
    /// An integer, enumeration or boolean.
    pub(super) fn number(&mut self, field: u64, value: u64) {
        varint(&mut self.0, field << 3 | VARINT);
        varint(&mut self.0, value);
    }

    /// A text.
    pub(super) fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    /// A message in this one.
    pub(super) fn message(&mut self, field: u64, value: &ProtobufMessage) {
        self.bytes(field, &value.0);
    }

    /// A packed field of integers.
    pub(super) fn packed(&mut self, field: u64, values: impl IntoIterator<Item = u64>) {
        let mut all = Vec::new();
        values.into_iter().for_each(|value| varint(&mut all, value));
        self.bytes(field, &all);
    }

    /// The encoded message.
    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn bytes(&mut self, field: u64, value: &[u8]) {
        varint(&mut self.0, field << 3 | LENGTH_FIRST);
        varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
    }
}

/// Seven bits in a byte, the lowest first; the top bit says that more follow.
pub(super) fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Reads a varint and advances the slice.
    pub(crate) fn read_varint(bytes: &mut &[u8]) -> u64 {
        let long = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let (number, rest) = bytes.split_at(long);
        *bytes = rest;
        number.iter().rev().fold(0, |all, byte| all << 7 | u64::from(byte & 0x7f))
    }

    #[test]
    fn message_bytes_match_the_protobuf_guide() {
        let mut inner = ProtobufMessage::default();
        inner.number(1, 150);
        assert_eq!(inner.as_bytes(), [0x08, 0x96, 0x01]);
        let mut outer = ProtobufMessage::default();
        outer.text(2, "testing");
        outer.message(3, &inner);
        outer.packed(6, [3, 270, 86942]);
        let expected = b"\x12\x07testing\x1a\x03\x08\x96\x01\x32\x06\x03\x8e\x02\x9e\xa7\x05";
        assert_eq!(outer.as_bytes(), expected);
    }

    #[test]
    fn a_field_above_fifteen_takes_more_than_one_byte() {
        let mut message = ProtobufMessage::default();
        message.text(8000, "ORC");
        assert_eq!(message.as_bytes(), b"\x82\xf4\x03\x03ORC");
    }
}
