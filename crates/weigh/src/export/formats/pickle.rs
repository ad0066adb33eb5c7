//! A pickle that `pandas.read_pickle` makes a DataFrame of.
//!
//! Written opcode by opcode (listed in Python's `pickletools`): protocol 5, whose bytearrays back
//! writable NumPy arrays. A column's bytes must be contiguous, and rows come in batches; so each
//! column is spooled to an unnamed file until all rows are written.
//!
//! Types in pandas: times are `datetime64[ns, UTC]`; keys are NumPy integers; other integers
//! are `UInt64` or `Int64`, which can be missing; real numbers are `float64` with NaN for missing;
//! symbols are categories; texts are strings or None.

use std::fs::File;
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::super::column::{ArrowColumn, CellValue};
use super::super::{Cause, Sink};

/// One table as a pickled DataFrame.
pub(super) struct PickleSink<W> {
    out: W,
    directory: PathBuf,
    columns: Vec<Spool>,
}

/// A spooled column.
struct Spool {
    name: String,
    bytes: BufWriter<File>,
    length: u64,
    /// For nullable integers: one byte each, 1 when null.
    mask: Option<BufWriter<File>>,
    rows: u64,
    kind: PickleKind,
}

enum PickleKind {
    Time,
    /// A NumPy type: never null, or NaN when null.
    Plain(&'static str),
    /// A NumPy type, with a mask.
    Masked(&'static str),
    /// Indices into a list.
    Category(Vec<String>),
    /// Opcodes that push each text.
    Texts,
}

impl<W: Write> PickleSink<W> {
    /// Into this file; columns are spooled to unnamed files of this directory.
    pub(super) fn new(out: W, directory: &Path) -> PickleSink<W> {
        PickleSink { out, directory: directory.to_owned(), columns: Vec::new() }
    }
}

impl<W: Write> Sink for PickleSink<W> {
    fn begin(&mut self, _table: &str, schema: &SchemaRef) -> Result<(), Cause> {
        let empty = RecordBatch::new_empty(schema.clone());
        let columns = ArrowColumn::all(&empty)?;
        for (field, column) in schema.fields().iter().zip(columns) {
            let kind = match column {
                ArrowColumn::Time(_) => PickleKind::Time,
                ArrowColumn::U32(_) => PickleKind::Plain("<u4"),
                ArrowColumn::U64(_) if !field.is_nullable() => PickleKind::Plain("<u8"),
                ArrowColumn::U64(_) => PickleKind::Masked("<u8"),
                ArrowColumn::I64(_) => PickleKind::Masked("<i8"),
                ArrowColumn::F64(_) => PickleKind::Plain("<f8"),
                ArrowColumn::Symbol(..) => PickleKind::Category(Vec::new()),
                ArrowColumn::Text(_) => PickleKind::Texts,
            };
            let spool = || tempfile::tempfile_in(&self.directory).map(BufWriter::new);
            let mask = matches!(kind, PickleKind::Masked(_)).then(spool).transpose()?;
            let (name, bytes) = (field.name().clone(), spool()?);
            self.columns.push(Spool { name, bytes, length: 0, mask, rows: 0, kind });
        }
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<(), Cause> {
        for (spool, column) in self.columns.iter_mut().zip(ArrowColumn::all(batch)?) {
            spool.take(column, batch.num_rows())?;
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<(), Cause> {
        let out = &mut self.out;
        out.write_all(&[PROTO, 5])?;
        global(out, "pandas", "DataFrame")?;
        out.write_all(&[EMPTY_DICT, MARK])?;
        for spool in self.columns {
            text(out, &spool.name)?;
            spool.write(out)?;
        }
        out.write_all(&[SETITEMS, TUPLE1, REDUCE, STOP])?;
        Ok(out.flush()?)
    }
}

impl Spool {
    fn take(&mut self, column: ArrowColumn<'_>, rows: usize) -> Result<(), Cause> {
        if let (PickleKind::Category(categories), ArrowColumn::Symbol(_, known)) =
            (&mut self.kind, column)
        {
            for category in known.iter().flatten() {
                if !categories.iter().any(|there| there == category) {
                    categories.push(category.to_owned());
                }
            }
        }
        for row in 0..rows {
            let cell = column.cell(row);
            match (&self.kind, cell) {
                (_, CellValue::Time(number) | CellValue::I64(number)) => {
                    self.put(&number.to_le_bytes())?;
                }
                (PickleKind::Plain("<u4"), CellValue::U64(number)) => {
                    self.put(&(number as u32).to_le_bytes())?;
                }
                (_, CellValue::U64(number)) => self.put(&number.to_le_bytes())?,
                (_, CellValue::F64(number)) => self.put(&number.to_le_bytes())?,
                // Dictionaries of batches may differ. The code of a null is -1.
                (PickleKind::Category(categories), CellValue::Text(text)) => {
                    let code = categories.iter().position(|category| category == text);
                    self.put(&code.map_or(-1, |code| code as i16).to_le_bytes())?;
                }
                (PickleKind::Category(_), _) => self.put(&(-1_i16).to_le_bytes())?,
                (_, CellValue::Text(value)) => {
                    text(&mut self.bytes, value)?;
                }
                (PickleKind::Texts, CellValue::Null) => self.put(&[NONE])?,
                // NumPy's "not a time".
                (PickleKind::Time, CellValue::Null) => self.put(&i64::MIN.to_le_bytes())?,
                (PickleKind::Masked(_), CellValue::Null) => self.put(&0_u64.to_le_bytes())?,
                (PickleKind::Plain("<f8"), CellValue::Null) => self.put(&f64::NAN.to_le_bytes())?,
                (_, CellValue::Null) => {
                    return Err(format!("a key {} is missing", self.name).into());
                }
            }
            if let Some(mask) = &mut self.mask {
                mask.write_all(&[u8::from(cell == CellValue::Null)])?;
            }
        }
        self.rows += rows as u64;
        Ok(())
    }

    fn put(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.length += bytes.len() as u64;
        self.bytes.write_all(bytes)
    }

    /// Pushes the column.
    fn write(self, out: &mut impl Write) -> Result<(), Cause> {
        match &self.kind {
            PickleKind::Time => {
                // pandas.to_datetime(array, "raise", False, False, True): the last is utc.
                global(out, "pandas", "to_datetime")?;
                out.write_all(&[MARK])?;
                array(out, "<M8[ns]", self.length, self.bytes)?;
                text(out, "raise")?;
                out.write_all(&[FALSE, FALSE, TRUE, TUPLE, REDUCE])?;
            }
            PickleKind::Plain(dtype) => array(out, dtype, self.length, self.bytes)?,
            PickleKind::Masked(dtype) => {
                global(out, "pandas.arrays", "IntegerArray")?;
                array(out, dtype, self.length, self.bytes)?;
                let mask = self.mask.ok_or("a column without its mask")?;
                array(out, "?", self.rows, mask)?;
                out.write_all(&[TUPLE2, REDUCE])?;
            }
            PickleKind::Category(categories) => {
                global(out, "pandas", "Categorical.from_codes")?;
                array(out, "<i2", self.length, self.bytes)?;
                out.write_all(&[EMPTY_LIST, MARK])?;
                categories.iter().try_for_each(|category| text(out, category))?;
                out.write_all(&[APPENDS, TUPLE2, REDUCE])?;
            }
            PickleKind::Texts => {
                out.write_all(&[EMPTY_LIST, MARK])?;
                copy(self.bytes, out)?;
                out.write_all(&[APPENDS])?;
            }
        }
        Ok(())
    }
}

const PROTO: u8 = 0x80;
const MARK: u8 = b'(';
const STOP: u8 = b'.';
const NONE: u8 = b'N';
const TRUE: u8 = 0x88;
const FALSE: u8 = 0x89;
const REDUCE: u8 = b'R';
const TUPLE: u8 = b't';
const TUPLE1: u8 = 0x85;
const TUPLE2: u8 = 0x86;
const EMPTY_DICT: u8 = b'}';
const SETITEMS: u8 = b'u';
const EMPTY_LIST: u8 = b']';
const APPENDS: u8 = b'e';
const BINUNICODE: u8 = b'X';
const STACK_GLOBAL: u8 = 0x93;
const BYTEARRAY8: u8 = 0x96;

/// Pushes an attribute of a Python module.
fn global(out: &mut impl Write, module: &str, name: &str) -> Result<(), Cause> {
    text(out, module)?;
    text(out, name)?;
    Ok(out.write_all(&[STACK_GLOBAL])?)
}

/// Pushes a text.
fn text(out: &mut impl Write, value: &str) -> Result<(), Cause> {
    out.write_all(&[BINUNICODE])?;
    out.write_all(&u32::try_from(value.len())?.to_le_bytes())?;
    Ok(out.write_all(value.as_bytes())?)
}

/// Pushes `numpy.frombuffer(bytearray, dtype)`.
fn array(
    out: &mut impl Write,
    dtype: &str,
    length: u64,
    bytes: BufWriter<File>,
) -> Result<(), Cause> {
    global(out, "numpy", "frombuffer")?;
    out.write_all(&[BYTEARRAY8])?;
    out.write_all(&length.to_le_bytes())?;
    copy(bytes, out)?;
    text(out, dtype)?;
    Ok(out.write_all(&[TUPLE2, REDUCE])?)
}

fn copy(from: BufWriter<File>, out: &mut impl Write) -> Result<(), Cause> {
    let mut file = from.into_inner().map_err(|error| error.into_error())?;
    file.seek(SeekFrom::Start(0))?;
    std::io::copy(&mut file, out)?;
    Ok(())
}
