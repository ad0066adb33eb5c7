//! The metadata messages: stripe footers, metadata, footer and postscript.
//!
//! Field numbers and codes are those of `orc_proto.proto` of Apache ORC.

use super::compress::BLOCK;
use super::protobuf::ProtobufMessage;
use super::stripe::{Encoded, StripeColumn};

/// The first bytes of every ORC file, and again in its postscript.
pub(super) const MAGIC: &str = "ORC";

const STRUCT: u64 = 12;
const ZSTD: u64 = 5;
/// The file format of Hive 0.12, which all readers know.
const FILE_VERSION: [u64; 2] = [0, 12];
/// Writers other than ORC Java start at 6, so that readers do not apply workarounds for old bugs.
const WRITER_VERSION: u64 = 6;
/// Apache ORC assigns numbers to writers; this one means unknown.
const WRITER_UNKNOWN: u64 = i32::MAX as u64;

/// The type of a column.
#[derive(Debug, Clone, Copy)]
pub(super) enum OrcType {
    /// 64 bits with a sign.
    Long = 4,
    /// 64 bits, IEEE 754.
    Double = 6,
    /// UTF-8.
    String = 7,
    /// A timestamp independent of the reader's time zone.
    TimestampInstant = 18,
}

/// What a stream is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum OrcStream {
    /// Which rows hold a value.
    Present = 0,
    /// The values, or their main part.
    Data = 1,
    /// The lengths of texts.
    Length = 2,
    /// The entries of a dictionary.
    DictionaryData = 3,
    /// Nanoseconds.
    Secondary = 5,
}

/// How the streams of a column are to be read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Encoding {
    /// Without integer runs.
    Direct,
    /// With integer runs of version 2.
    DirectV2,
    /// A dictionary, with integer runs of version 2.
    DictionaryV2 {
        /// Its number of entries.
        entries: u64,
    },
}

/// How many cells of a column hold a value, and whether any is null.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Count {
    /// Cells with a value.
    pub values: u64,
    /// Whether there are nulls.
    pub has_null: bool,
}

/// A stripe that has been written.
#[derive(Debug)]
pub(super) struct Stripe {
    /// Its offset in the file.
    pub offset: u64,
    /// The length of its streams.
    pub data_length: u64,
    /// The length of its footer.
    pub footer_length: u64,
    /// Its rows.
    pub rows: u64,
    /// The counts of its columns.
    pub counts: Vec<Count>,
}

/// The footer of a stripe: its streams, each with its column, kind and length in the file.
pub(super) fn stripe_footer(
    streams: &[(usize, OrcStream, u64)],
    columns: &[Encoded],
) -> ProtobufMessage {
    let mut footer = ProtobufMessage::default();
    for (column, stream, length) in streams {
        let mut message = ProtobufMessage::default();
        message.number(1, *stream as u64);
        message.number(2, *column as u64 + 1);
        message.number(3, *length);
        footer.message(1, &message);
    }
    footer.message(2, &encoding(Encoding::Direct));
    columns.iter().for_each(|column| footer.message(2, &encoding(column.encoding)));
    // Timestamps do not depend on it, but readers load the zone; the C++ reader needs this one
    // anyway.
    footer.text(3, "GMT");
    footer
}

/// The statistics of each stripe.
pub(super) fn metadata(stripes: &[Stripe]) -> ProtobufMessage {
    let mut metadata = ProtobufMessage::default();
    for stripe in stripes {
        let mut message = ProtobufMessage::default();
        statistics(&mut message, 1, stripe.rows, &stripe.counts);
        metadata.message(1, &message);
    }
    metadata
}

/// The table's columns, stripes and statistics.
pub(super) fn footer(
    columns: &[StripeColumn],
    stripes: &[Stripe],
    content_length: u64,
) -> ProtobufMessage {
    let mut footer = ProtobufMessage::default();
    footer.number(1, MAGIC.len() as u64);
    footer.number(2, content_length);
    for stripe in stripes {
        let mut message = ProtobufMessage::default();
        message.number(1, stripe.offset);
        message.number(2, 0);
        message.number(3, stripe.data_length);
        message.number(4, stripe.footer_length);
        message.number(5, stripe.rows);
        footer.message(3, &message);
    }
    let mut table = ProtobufMessage::default();
    table.number(1, STRUCT);
    table.packed(2, 1..=columns.len() as u64);
    columns.iter().for_each(|column| table.text(3, column.name()));
    footer.message(4, &table);
    for column in columns {
        let mut message = ProtobufMessage::default();
        message.number(1, column.kind() as u64);
        footer.message(4, &message);
    }
    let rows = stripes.iter().map(|stripe| stripe.rows).sum();
    footer.number(6, rows);
    let mut counts = vec![Count::default(); columns.len()];
    for stripe in stripes {
        for (whole, part) in counts.iter_mut().zip(&stripe.counts) {
            whole.values += part.values;
            whole.has_null |= part.has_null;
        }
    }
    statistics(&mut footer, 7, rows, &counts);
    // No row indexes: readers scan stripes.
    footer.number(8, 0);
    footer.number(9, WRITER_UNKNOWN);
    footer
}

/// The postscript, read first: how to read the rest. Never compressed.
pub(super) fn postscript(footer_length: u64, metadata_length: u64) -> ProtobufMessage {
    let mut postscript = ProtobufMessage::default();
    postscript.number(1, footer_length);
    postscript.number(2, ZSTD);
    postscript.number(3, BLOCK as u64);
    postscript.packed(4, FILE_VERSION);
    postscript.number(5, metadata_length);
    postscript.number(6, WRITER_VERSION);
    postscript.text(8000, MAGIC);
    postscript
}

fn encoding(encoding: Encoding) -> ProtobufMessage {
    let mut message = ProtobufMessage::default();
    match encoding {
        Encoding::Direct => message.number(1, 0),
        Encoding::DirectV2 => message.number(1, 2),
        Encoding::DictionaryV2 { entries } => {
            message.number(1, 3);
            message.number(2, entries);
        }
    }
    message
}

/// The counts of the root struct, which is never null, and of its columns.
fn statistics(into: &mut ProtobufMessage, field: u64, rows: u64, counts: &[Count]) {
    let table = Count { values: rows, has_null: false };
    for count in std::iter::once(&table).chain(counts) {
        let mut message = ProtobufMessage::default();
        message.number(1, count.values);
        message.number(10, u64::from(count.has_null));
        into.message(field, &message);
    }
}
