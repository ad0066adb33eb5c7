//! One column of the stripe in the making: its cells, encoded, until the stripe is written.
//!
//! Only cells with a value are in the streams of values; which rows they belong to is
//! in PRESENT, which a column without nulls does not have.

use std::collections::HashMap;

use arrow_array::Array;

use super::super::super::Cause;
use super::super::super::column::Column;
use super::bits::Bits;
use super::integers::Integers;
use super::tail::{Encoding, Kind, Stream};
use super::time;

/// A column of the stripe.
pub(super) struct StripeColumn {
    name: String,
    present: Bits,
    cells: Cells,
}

enum Cells {
    Time { seconds: Integers, nanoseconds: Integers },
    Number(Integers),
    Real(Vec<u8>),
    Word { places: HashMap<String, u32>, cells: Vec<u32> },
    Text { bytes: Vec<u8>, lengths: Integers },
}

/// What a column leaves to the stripe.
pub(super) struct Encoded {
    /// How many cells hold a value.
    pub values: u64,
    /// Whether any does not.
    pub has_null: bool,
    /// How the streams are to be read.
    pub encoding: Encoding,
    /// The streams, in the order of the file.
    pub streams: Vec<(Stream, Vec<u8>)>,
}

impl StripeColumn {
    /// An empty column for cells like these.
    pub(super) fn new(name: &str, like: &Column<'_>) -> StripeColumn {
        StripeColumn { name: name.to_owned(), present: Bits::default(), cells: Cells::new(like) }
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Its type in ORC.
    pub(super) fn kind(&self) -> Kind {
        match self.cells {
            Cells::Time { .. } => Kind::TimestampInstant,
            Cells::Number(_) => Kind::Long,
            Cells::Real(_) => Kind::Double,
            Cells::Word { .. } | Cells::Text { .. } => Kind::String,
        }
    }

    /// Memory in use.
    pub(super) fn held(&self) -> usize {
        let cells = match &self.cells {
            Cells::Time { seconds, nanoseconds } => seconds.held() + nanoseconds.held(),
            Cells::Number(numbers) => numbers.held(),
            Cells::Real(bytes) => bytes.len(),
            Cells::Word { places, cells } => {
                size_of_val(cells.as_slice()) + places.keys().map(String::len).sum::<usize>()
            }
            Cells::Text { bytes, lengths } => bytes.len() + lengths.held(),
        };
        self.present.held() + cells
    }

    /// Takes more cells.
    pub(super) fn append(&mut self, column: &Column<'_>) -> Result<(), Cause> {
        let StripeColumn { name, present, cells } = self;
        match (cells, *column) {
            (Cells::Time { seconds, nanoseconds }, Column::Time(array)) => {
                each(present, array.iter(), |moment| {
                    let parts = time::parts(moment).ok_or_else(|| {
                        format!("column {name}: ORC has no place for the last second of 1969")
                    })?;
                    seconds.push(parts.seconds);
                    nanoseconds.push(parts.nanoseconds);
                    Ok(())
                })
            }
            (Cells::Number(numbers), Column::U32(array)) => each(present, array.iter(), |number| {
                numbers.push(i64::from(number));
                Ok(())
            }),
            (Cells::Number(numbers), Column::U64(array)) => each(present, array.iter(), |number| {
                numbers.push(i64::try_from(number).map_err(|_| {
                    format!("column {name}: {number} is more than ORC's largest, {}", i64::MAX)
                })?);
                Ok(())
            }),
            (Cells::Number(numbers), Column::I64(array)) => each(present, array.iter(), |number| {
                numbers.push(number);
                Ok(())
            }),
            (Cells::Real(bytes), Column::F64(array)) => each(present, array.iter(), |number| {
                bytes.extend_from_slice(&number.to_le_bytes());
                Ok(())
            }),
            (Cells::Word { places, cells }, Column::Word(keys, words)) => {
                let mut known = vec![None; words.len()];
                let keys = keys.iter().map(|key| {
                    key.map(usize::from).filter(|key| *key < words.len() && words.is_valid(*key))
                });
                each(present, keys, |key| {
                    let place =
                        *known[key].get_or_insert_with(|| place_of(places, words.value(key)));
                    cells.push(place);
                    Ok(())
                })
            }
            (Cells::Text { bytes, lengths }, Column::Text(array)) => {
                each(present, array.iter(), |text| {
                    bytes.extend_from_slice(text.as_bytes());
                    lengths.push(text.len() as i64);
                    Ok(())
                })
            }
            _ => Err(format!("column {name} does not hold what the table's schema says").into()),
        }
    }

    /// Hands over what it holds and is empty again.
    pub(super) fn take(&mut self) -> Encoded {
        let present = std::mem::take(&mut self.present);
        let mut streams = Vec::new();
        if !present.all() {
            streams.push((Stream::Present, present.encoded()));
        }
        let encoding = self.cells.take(&mut streams);
        Encoded { values: present.set(), has_null: !present.all(), encoding, streams }
    }
}

impl Cells {
    fn new(like: &Column<'_>) -> Cells {
        match like {
            Column::Time(_) => {
                Cells::Time { seconds: Integers::signed(), nanoseconds: Integers::unsigned() }
            }
            Column::U32(_) | Column::U64(_) | Column::I64(_) => Cells::Number(Integers::signed()),
            Column::F64(_) => Cells::Real(Vec::new()),
            Column::Word(_, _) => Cells::Word { places: HashMap::new(), cells: Vec::new() },
            Column::Text(_) => Cells::Text { bytes: Vec::new(), lengths: Integers::unsigned() },
        }
    }

    /// Every stream is there even if it is empty: the C++ reader asks for each by name.
    fn take(&mut self, streams: &mut Vec<(Stream, Vec<u8>)>) -> Encoding {
        match self {
            Cells::Time { seconds, nanoseconds } => {
                streams.push((Stream::Data, seconds.take()));
                streams.push((Stream::Secondary, nanoseconds.take()));
                Encoding::DirectV2
            }
            Cells::Number(numbers) => {
                streams.push((Stream::Data, numbers.take()));
                Encoding::DirectV2
            }
            Cells::Real(bytes) => {
                streams.push((Stream::Data, std::mem::take(bytes)));
                Encoding::Direct
            }
            Cells::Word { places, cells } => {
                let words = std::mem::take(places);
                dictionary(words, std::mem::take(cells), streams)
            }
            Cells::Text { bytes, lengths } => {
                streams.push((Stream::Data, std::mem::take(bytes)));
                streams.push((Stream::Length, lengths.take()));
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

fn place_of(places: &mut HashMap<String, u32>, word: &str) -> u32 {
    let next = places.len() as u32;
    match places.get(word) {
        Some(place) => *place,
        None => *places.entry(word.to_owned()).or_insert(next),
    }
}

/// The words of the stripe, sorted as the specification has it, and where each cell finds its own.
fn dictionary(
    places: HashMap<String, u32>,
    cells: Vec<u32>,
    streams: &mut Vec<(Stream, Vec<u8>)>,
) -> Encoding {
    let mut words: Vec<(String, u32)> = places.into_iter().collect();
    words.sort_unstable();
    let mut sorted_places = vec![0; words.len()];
    let mut bytes = Vec::new();
    let mut lengths = Integers::unsigned();
    for (sorted, (word, place)) in words.iter().enumerate() {
        sorted_places[*place as usize] = sorted as i64;
        bytes.extend_from_slice(word.as_bytes());
        lengths.push(word.len() as i64);
    }
    let mut numbers = Integers::unsigned();
    cells.into_iter().for_each(|place| numbers.push(sorted_places[place as usize]));
    streams.push((Stream::Data, numbers.take()));
    streams.push((Stream::DictionaryData, bytes));
    streams.push((Stream::Length, lengths.take()));
    Encoding::DictionaryV2 { words: words.len() as u64 }
}
