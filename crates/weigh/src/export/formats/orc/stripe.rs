//! One column of the open stripe: its encoded cells, until the stripe is written.
//!
//! Value streams hold only cells with a value; PRESENT says which rows these are. A column without
//! nulls has no PRESENT.

use std::collections::HashMap;

use arrow_array::Array;

use super::super::super::Cause;
use super::super::super::column::ArrowColumn;
use super::bits::Bits;
use super::integers::Integers;
use super::tail::{Encoding, OrcStream, OrcType};
use super::time;

/// A column of the stripe.
pub(super) struct StripeColumn {
    name: String,
    present: Bits,
    cells: StripeCells,
}

enum StripeCells {
    Time { seconds: Integers, nanoseconds: Integers },
    Number(Integers),
    Real(Vec<u8>),
    Symbol { places: HashMap<String, u32>, cells: Vec<u32> },
    Text { bytes: Vec<u8>, lengths: Integers },
}

/// A column's encoded streams for the stripe.
pub(super) struct Encoded {
    /// How many cells hold a value.
    pub values: u64,
    /// Whether any is null.
    pub has_null: bool,
    /// How the streams are to be read.
    pub encoding: Encoding,
    /// The streams, in the order of the file.
    pub streams: Vec<(OrcStream, Vec<u8>)>,
}

impl StripeColumn {
    /// An empty column for cells of this type.
    pub(super) fn new(name: &str, like: &ArrowColumn<'_>) -> StripeColumn {
        StripeColumn {
            name: name.to_owned(),
            present: Bits::default(),
            cells: StripeCells::new(like),
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its type in ORC.
    pub(super) fn kind(&self) -> OrcType {
        match self.cells {
            StripeCells::Time { .. } => OrcType::TimestampInstant,
            StripeCells::Number(_) => OrcType::Long,
            StripeCells::Real(_) => OrcType::Double,
            StripeCells::Symbol { .. } | StripeCells::Text { .. } => OrcType::String,
        }
    }

    /// Memory in use.
    pub(super) fn buffered_bytes(&self) -> usize {
        let cells = match &self.cells {
            StripeCells::Time { seconds, nanoseconds } => {
                seconds.buffered_bytes() + nanoseconds.buffered_bytes()
            }
            StripeCells::Number(numbers) => numbers.buffered_bytes(),
            StripeCells::Real(bytes) => bytes.len(),
            StripeCells::Symbol { places, cells } => {
                size_of_val(cells.as_slice()) + places.keys().map(String::len).sum::<usize>()
            }
            StripeCells::Text { bytes, lengths } => bytes.len() + lengths.buffered_bytes(),
        };
        self.present.buffered_bytes() + cells
    }

    /// Appends cells.
    pub(super) fn append(&mut self, column: &ArrowColumn<'_>) -> Result<(), Cause> {
        let StripeColumn { name, present, cells } = self;
        match (cells, *column) {
            (StripeCells::Time { seconds, nanoseconds }, ArrowColumn::Time(array)) => {
                each(present, array.iter(), |timestamp| {
                    let parts = time::parts(timestamp).ok_or_else(|| {
                        format!("column {name}: ORC cannot store the last second of 1969")
                    })?;
                    seconds.push(parts.seconds);
                    nanoseconds.push(parts.nanoseconds);
                    Ok(())
                })
            }
            (StripeCells::Number(numbers), ArrowColumn::U32(array)) => {
                each(present, array.iter(), |number| {
                    numbers.push(i64::from(number));
                    Ok(())
                })
            }
            (StripeCells::Number(numbers), ArrowColumn::U64(array)) => {
                each(present, array.iter(), |number| {
                    numbers.push(i64::try_from(number).map_err(|_| {
                        format!("column {name}: {number} is more than ORC's largest, {}", i64::MAX)
                    })?);
                    Ok(())
                })
            }
            (StripeCells::Number(numbers), ArrowColumn::I64(array)) => {
                each(present, array.iter(), |number| {
                    numbers.push(number);
                    Ok(())
                })
            }
            (StripeCells::Real(bytes), ArrowColumn::F64(array)) => {
                each(present, array.iter(), |number| {
                    bytes.extend_from_slice(&number.to_le_bytes());
                    Ok(())
                })
            }
            (StripeCells::Symbol { places, cells }, ArrowColumn::Symbol(keys, symbols)) => {
                let mut known = vec![None; symbols.len()];
                let keys = keys.iter().map(|key| {
                    key.map(usize::from)
                        .filter(|key| *key < symbols.len() && symbols.is_valid(*key))
                });
                each(present, keys, |key| {
                    let place =
                        *known[key].get_or_insert_with(|| place_of(places, symbols.value(key)));
                    cells.push(place);
                    Ok(())
                })
            }
            (StripeCells::Text { bytes, lengths }, ArrowColumn::Text(array)) => {
                each(present, array.iter(), |text| {
                    bytes.extend_from_slice(text.as_bytes());
                    lengths.push(text.len() as i64);
                    Ok(())
                })
            }
            _ => Err(format!("column {name} does not hold what the table's schema says").into()),
        }
    }

    /// Takes the encoded streams; the column is empty again.
    pub(super) fn take(&mut self) -> Encoded {
        let present = std::mem::take(&mut self.present);
        let mut streams = Vec::new();
        if !present.all() {
            streams.push((OrcStream::Present, present.encoded()));
        }
        let encoding = self.cells.take(&mut streams);
        Encoded { values: present.set(), has_null: !present.all(), encoding, streams }
    }
}

impl StripeCells {
    fn new(like: &ArrowColumn<'_>) -> StripeCells {
        match like {
            ArrowColumn::Time(_) => {
                StripeCells::Time { seconds: Integers::signed(), nanoseconds: Integers::unsigned() }
            }
            ArrowColumn::U32(_) | ArrowColumn::U64(_) | ArrowColumn::I64(_) => {
                StripeCells::Number(Integers::signed())
            }
            ArrowColumn::F64(_) => StripeCells::Real(Vec::new()),
            ArrowColumn::Symbol(_, _) => {
                StripeCells::Symbol { places: HashMap::new(), cells: Vec::new() }
            }
            ArrowColumn::Text(_) => {
                StripeCells::Text { bytes: Vec::new(), lengths: Integers::unsigned() }
            }
        }
    }

    /// Empty streams are written, too: the C++ reader requires each by name.
    fn take(&mut self, streams: &mut Vec<(OrcStream, Vec<u8>)>) -> Encoding {
        match self {
            StripeCells::Time { seconds, nanoseconds } => {
                streams.push((OrcStream::Data, seconds.take()));
                streams.push((OrcStream::Secondary, nanoseconds.take()));
                Encoding::DirectV2
            }
            StripeCells::Number(numbers) => {
                streams.push((OrcStream::Data, numbers.take()));
                Encoding::DirectV2
            }
            StripeCells::Real(bytes) => {
                streams.push((OrcStream::Data, std::mem::take(bytes)));
                Encoding::Direct
            }
            StripeCells::Symbol { places, cells } => {
                let symbols = std::mem::take(places);
                dictionary(symbols, std::mem::take(cells), streams)
            }
            StripeCells::Text { bytes, lengths } => {
                streams.push((OrcStream::Data, std::mem::take(bytes)));
                streams.push((OrcStream::Length, lengths.take()));
                Encoding::DirectV2
            }
        }
    }
}

fn each<T>(
    present: &mut Bits,
    cells: impl Iterator<Item = Option<T>>,
    mut take: impl FnMut(T) -> Result<(), Cause>,
) -> Result<(), Cause> {
    for cell in cells {
        present.push(cell.is_some());
        cell.map(&mut take).transpose()?;
    }
    Ok(())
}

fn place_of(places: &mut HashMap<String, u32>, symbol: &str) -> u32 {
    let next = places.len() as u32;
    match places.get(symbol) {
        Some(place) => *place,
        None => *places.entry(symbol.to_owned()).or_insert(next),
    }
}

/// The dictionary of the stripe, sorted as specified, and the index of each cell.
fn dictionary(
    places: HashMap<String, u32>,
    cells: Vec<u32>,
    streams: &mut Vec<(OrcStream, Vec<u8>)>,
) -> Encoding {
    let mut symbols: Vec<(String, u32)> = places.into_iter().collect();
    symbols.sort_unstable();
    let mut sorted_places = vec![0; symbols.len()];
    let mut bytes = Vec::new();
    let mut lengths = Integers::unsigned();
    for (sorted, (symbol, place)) in symbols.iter().enumerate() {
        sorted_places[*place as usize] = sorted as i64;
        bytes.extend_from_slice(symbol.as_bytes());
        lengths.push(symbol.len() as i64);
    }
    let mut numbers = Integers::unsigned();
    cells.into_iter().for_each(|place| numbers.push(sorted_places[place as usize]));
    streams.push((OrcStream::Data, numbers.take()));
    streams.push((OrcStream::DictionaryData, bytes));
    streams.push((OrcStream::Length, lengths.take()));
    Encoding::DictionaryV2 { entries: symbols.len() as u64 }
}
