//! How a column is stored: its offset in a row, its HDF5 type, the bytes of its cells.

use std::ops::Range;

use arrow_array::{RecordBatch, StringArray};
use arrow_schema::{DataType, FieldRef, Schema};

use super::super::super::Cause;
use super::super::super::column::{ArrowColumn, CellValue};

/// Key columns right after `time`. They are never null, although the recording's schema would allow
/// it.
const KEYS: [&str; 3] = ["pid", "started", "cpu"];
/// The most bytes of a text that are kept.
const LONGEST_TEXT: usize = 4096;
/// The least bytes of a symbol. Its width is fixed with the first rows, and the dictionary may grow
/// in later ones: it is empty where a node lacks the metric, and another version may have other
/// symbols. The padding zeros deflate to almost nothing.
const SHORTEST_SYMBOL: usize = 32;
/// A missing timestamp, such as the end of an open phase: NumPy's NaT.
const NOT_A_TIME: i64 = i64::MIN;

/// A column within a row.
pub(super) struct ColumnSlot {
    /// Its name.
    pub name: String,
    /// Its type in the file.
    pub stored: Hdf5Type,
    /// Its offset in the row.
    pub offset: usize,
}

/// A type in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hdf5Type {
    /// int64.
    I64,
    /// uint32.
    U32,
    /// uint64.
    U64,
    /// float64.
    F64,
    /// UTF-8 of so many bytes, padded with zeros.
    Text(usize),
}

/// The slots of all columns; texts are as wide as these rows need.
pub(super) fn slots(schema: &Schema, buffered: &[RecordBatch]) -> Result<Vec<ColumnSlot>, Cause> {
    let fields = schema.fields();
    let keys = fields.iter().skip(1).take_while(|field| KEYS.contains(&field.name().as_str()));
    let keys = 1..1 + keys.count();
    let mut offset = 0;
    let slot = |(place, field): (usize, &FieldRef)| {
        let never_null = !field.is_nullable() || keys.contains(&place);
        let stored = match field.data_type() {
            DataType::Timestamp(_, _) => Hdf5Type::I64,
            DataType::UInt32 => Hdf5Type::U32,
            DataType::UInt64 if never_null => Hdf5Type::U64,
            DataType::Int64 if never_null => Hdf5Type::I64,
            DataType::UInt64 | DataType::Int64 | DataType::Float64 => Hdf5Type::F64,
            DataType::Dictionary(_, _) | DataType::Utf8 => Hdf5Type::Text(width(buffered, place)),
            _ => return Err(format!("column {} has an unknown type", field.name()).into()),
        };
        let slot = ColumnSlot { name: field.name().clone(), stored, offset };
        offset += stored.size();
        Ok(slot)
    };
    fields.iter().enumerate().map(slot).collect()
}

/// The longest text of a column; at least one byte, as HDF5 has no empty type.
fn width(buffered: &[RecordBatch], place: usize) -> usize {
    let widths = buffered.iter().map(|batch| match ArrowColumn::of(batch.column(place)) {
        Some(ArrowColumn::Symbol(_, symbols)) => longest(symbols).max(SHORTEST_SYMBOL),
        Some(ArrowColumn::Text(texts)) => longest(texts),
        _ => 0,
    });
    widths.max().unwrap_or(0).max(1)
}

fn longest(texts: &StringArray) -> usize {
    texts.iter().flatten().map(|text| cut(text).len()).max().unwrap_or(0)
}

/// The part of a text that fits: whole characters.
fn cut(text: &str) -> &str {
    let end = (0..=LONGEST_TEXT.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

impl Hdf5Type {
    /// Bytes in a row.
    pub(super) fn size(self) -> usize {
        match self {
            Hdf5Type::U32 => 4,
            Hdf5Type::I64 | Hdf5Type::U64 | Hdf5Type::F64 => 8,
            Hdf5Type::Text(width) => width,
        }
    }

    /// The datatype message (IV.A.2.d, version 1).
    pub(super) fn datatype(self) -> Vec<u8> {
        let size = self.size() as u32;
        // Class and version, bits of the class, size, properties of the class.
        let (class, bits, properties): (u8, [u8; 3], Vec<u8>) = match self {
            Hdf5Type::U32 | Hdf5Type::U64 => (0x10, [0, 0, 0], vec![0, 0, 8 * size as u8, 0]),
            Hdf5Type::I64 => (0x10, [0x08, 0, 0], vec![0, 0, 64, 0]),
            // IEEE 754: sign at bit 63, 11 bits of exponent at 52 with bias 1023, 52 of mantissa.
            Hdf5Type::F64 => (0x11, [0x20, 63, 0], vec![0, 0, 64, 0, 52, 11, 0, 52, 0xff, 3, 0, 0]),
            // Padded with zeros (1), UTF-8 (1).
            Hdf5Type::Text(_) => (0x13, [0x11, 0, 0], Vec::new()),
        };
        let mut message = vec![class];
        message.extend_from_slice(&bits);
        message.extend_from_slice(&size.to_le_bytes());
        message.extend_from_slice(&properties);
        message
    }
}

impl ColumnSlot {
    /// Writes cells of a column into the byte planes of this slot: the first bytes of all rows,
    /// then the second ones, and so on, as the shuffle filter orders them. `stride` is the length
    /// of a plane, `at` the first row in it.
    pub(super) fn fill(
        &self,
        planes: &mut [u8],
        stride: usize,
        at: usize,
        column: ArrowColumn<'_>,
        rows: Range<usize>,
    ) -> Result<(), Cause> {
        let planes = &mut planes[self.offset * stride..][..self.stored.size() * stride];
        for (place, row) in rows.enumerate() {
            let mut put = |bytes: &[u8]| {
                for (plane, byte) in planes.chunks_exact_mut(stride).zip(bytes) {
                    plane[at + place] = *byte;
                }
            };
            match (self.stored, column.cell(row)) {
                (Hdf5Type::F64, cell) => put(&self.real(cell)?.to_le_bytes()),
                (Hdf5Type::U64, CellValue::U64(number)) => put(&number.to_le_bytes()),
                (Hdf5Type::U32, CellValue::U64(number)) if number <= u64::from(u32::MAX) => {
                    put(&number.to_le_bytes());
                }
                (Hdf5Type::I64, CellValue::I64(number) | CellValue::Time(number)) => {
                    put(&number.to_le_bytes());
                }
                (Hdf5Type::I64, CellValue::Null) if matches!(column, ArrowColumn::Time(_)) => {
                    put(&NOT_A_TIME.to_le_bytes());
                }
                (Hdf5Type::Text(_), CellValue::Null) => {}
                (Hdf5Type::Text(width), CellValue::Text(text)) if cut(text).len() > width => {
                    return Err(self.refuse(&format!("{text:?} is longer than {width} bytes")));
                }
                (Hdf5Type::Text(_), CellValue::Text(text)) => put(cut(text).as_bytes()),
                (_, CellValue::Null) => return Err(self.refuse("a value is missing")),
                _ => return Err(self.refuse("its rows are of another type than its schema")),
            }
        }
        Ok(())
    }

    /// A number as float64, if that is exact.
    fn real(&self, cell: CellValue<'_>) -> Result<f64, Cause> {
        let (real, whole) = match cell {
            CellValue::Null => return Ok(f64::NAN),
            CellValue::F64(number) => return Ok(number),
            CellValue::U64(number) => (number as f64, i128::from(number)),
            CellValue::I64(number) => (number as f64, i128::from(number)),
            _ => return Err(self.refuse("its rows are of another type than its schema")),
        };
        // Compared in 128 bits: converted back to 64 bits, the largest integer would seem equal.
        if real as i128 != whole {
            return Err(self.refuse(&format!("{whole} is not exact as a float64")));
        }
        Ok(real)
    }

    fn refuse(&self, why: &str) -> Cause {
        format!("column {}: {why}", self.name).into()
    }
}
