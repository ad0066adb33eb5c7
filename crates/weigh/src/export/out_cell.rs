//! Finished cells of a grid, collected until there are enough for a batch.

use std::sync::Arc;

use arrow_array::types::UInt8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::DataType;

use super::Cause;

/// A finished cell, or a key or symbol passed on unchanged.
#[derive(Debug, Clone, Default)]
pub(super) enum OutCell {
    #[default]
    /// Null.
    Missing,
    /// A number.
    Number(f64),
    /// An integer key.
    Integer(u64),
    /// A name or symbol.
    Text(Arc<str>),
}

/// The cells of a column as an array of its type.
pub(super) fn array(
    kind: &DataType,
    cells: &[OutCell],
    symbols: Option<&StringArray>,
) -> Result<ArrayRef, Cause> {
    let integers =
        cells.iter().map(|cell| if let OutCell::Integer(n) = cell { Some(*n) } else { None });
    let texts =
        cells.iter().map(|cell| if let OutCell::Text(t) = cell { Some(&**t) } else { None });
    Ok(match kind {
        DataType::Float64 => Arc::new(Float64Array::from_iter(
            cells.iter().map(|cell| if let OutCell::Number(n) = cell { Some(*n) } else { None }),
        )),
        DataType::UInt32 => Arc::new(UInt32Array::from_iter(integers.map(|n| n.map(|n| n as u32)))),
        DataType::UInt64 => Arc::new(UInt64Array::from_iter(integers)),
        DataType::Utf8 => Arc::new(StringArray::from_iter(texts)),
        DataType::Dictionary(_, _) => {
            let symbols = symbols.cloned().unwrap_or_else(|| StringArray::from(Vec::<&str>::new()));
            let place = |text: &str| symbols.iter().position(|symbol| symbol == Some(text));
            let places = texts.map(|text| text.map(|text| place(text).ok_or("a new symbol")));
            let places: UInt8Array = places
                .map(|place| place.transpose().map(|place| place.map(|place| place as u8)))
                .collect::<Result<_, _>>()?;
            Arc::new(DictionaryArray::<UInt8Type>::try_new(places, Arc::new(symbols))?)
        }
        other => return Err(format!("a key or symbol of type {other}").into()),
    })
}

impl From<Option<f64>> for OutCell {
    fn from(number: Option<f64>) -> OutCell {
        number.map_or(OutCell::Missing, OutCell::Number)
    }
}

impl OutCell {
    /// Symbols change rarely: allocates only on change.
    pub(super) fn set_text(&mut self, text: &str) {
        if !matches!(self, OutCell::Text(before) if **before == *text) {
            *self = OutCell::Text(text.into());
        }
    }
}
