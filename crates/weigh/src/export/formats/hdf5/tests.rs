//! Files are read back by a small reader of the same specification ([`reader`]); that h5py,
//! PyTables, pandas and h5dump agree was checked by hand.

mod reader;

use std::collections::HashMap;
use std::fs::File;
use std::sync::Arc;

use arrow_array::types::UInt8Type;
use arrow_array::{
    ArrayRef, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::chunks::ChunkIndex;
use super::space::Space;
use super::*;
use crate::export::column::{symbol_type, time_type};
use reader::{Hdf5Table, chunks, tables};

fn processes() -> SchemaRef {
    let unit = HashMap::from([("unit".to_owned(), "bytes".to_owned())]);
    Arc::new(Schema::new(vec![
        Field::new("time", time_type(), false),
        Field::new("pid", DataType::UInt32, true),
        Field::new("started", DataType::UInt64, true),
        Field::new("memory", DataType::UInt64, true).with_metadata(unit),
        Field::new("change", DataType::Int64, true),
        Field::new("load", DataType::Float64, true),
        Field::new("sure", DataType::UInt64, false),
        Field::new("state", symbol_type(), true),
    ]))
}

/// Every third nullable cell is null; `sure` does not fit into a float64.
fn process_rows(rows: std::ops::Range<u64>) -> RecordBatch {
    let some = |row: u64| !row.is_multiple_of(3);
    let symbols: ArrayRef = Arc::new(StringArray::from(vec!["running", "schläft"]));
    let states = rows.clone().map(|row| some(row).then_some((row % 2) as u8));
    let states = DictionaryArray::<UInt8Type>::new(UInt8Array::from_iter(states), symbols);
    let times = rows.clone().map(|row| row as i64 * 1_000_000_007);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(TimestampNanosecondArray::from_iter_values(times).with_timezone("UTC")),
        Arc::new(UInt32Array::from_iter_values(rows.clone().map(|row| u32::MAX - row as u32))),
        Arc::new(UInt64Array::from_iter_values(rows.clone().map(|row| u64::MAX - row))),
        Arc::new(UInt64Array::from_iter(rows.clone().map(|row| some(row).then_some(row << 40)))),
        Arc::new(Int64Array::from_iter(rows.clone().map(|row| some(row).then_some(-(row as i64))))),
        Arc::new(Float64Array::from_iter(
            rows.clone().map(|row| some(row).then_some(row as f64 / 7.0)),
        )),
        Arc::new(UInt64Array::from_iter_values(rows.map(|row| u64::MAX - 2 * row))),
        Arc::new(states),
    ];
    RecordBatch::try_new(processes(), columns).unwrap()
}

fn one_column(name: &str, column: ArrayRef) -> RecordBatch {
    let schema = Schema::new(vec![Field::new(name, column.data_type().clone(), true)]);
    RecordBatch::try_new(Arc::new(schema), vec![column]).unwrap()
}

fn symbols(list: &[&str]) -> RecordBatch {
    let keys = UInt8Array::from_iter_values(0..list.len() as u8);
    let list: ArrayRef = Arc::new(StringArray::from(list.to_vec()));
    one_column("state", Arc::new(DictionaryArray::<UInt8Type>::new(keys, list)))
}

/// Writes these tables into a file and reads it back.
fn written(batches: &[(&str, &[RecordBatch])]) -> Result<HashMap<String, Hdf5Table>, Cause> {
    let file = tempfile::tempfile()?;
    let mut sink = Box::new(Hdf5Sink::create(file.try_clone()?)?);
    for (name, batches) in batches {
        sink.begin(name, batches[0].schema_ref())?;
        batches.iter().try_for_each(|batch| sink.rows(batch))?;
    }
    sink.finish()?;
    Ok(tables(&bytes(file)))
}

fn bytes(mut file: File) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::io::Seek::rewind(&mut file).unwrap();
    std::io::Read::read_to_end(&mut file, &mut bytes).unwrap();
    bytes
}

fn refusal(batches: &[RecordBatch]) -> String {
    written(&[("process", batches)]).err().unwrap().to_string()
}

#[test]
fn rows_round_trip_through_many_chunks() {
    let batches: Vec<RecordBatch> =
        (0..20).map(|batch| process_rows(batch * 997..(batch + 1) * 997)).collect();
    let table = &written(&[("process", &batches)]).unwrap()["process"];
    assert_eq!(table.rows.len(), 20 * 997);
    assert!(table.chunks.len() > 3);
    for (row, cells) in table.rows.iter().enumerate() {
        let (row, some) = (row as u64, row % 3 != 0);
        let number =
            |column: usize| u64::from_le_bytes(cells[column].as_slice().try_into().unwrap());
        let real = |column: usize| f64::from_bits(number(column));
        assert_eq!(number(0), row * 1_000_000_007);
        assert_eq!(cells[1], (u32::MAX - row as u32).to_le_bytes());
        assert_eq!(number(2), u64::MAX - row);
        assert_eq!(number(6), u64::MAX - 2 * row);
        let word = [*b"running\0\0", *b"schl\xc3\xa4ft\0"][row as usize % 2];
        if some {
            assert_eq!(real(3), (row << 40) as f64);
            assert_eq!(real(4), -(row as f64));
            assert_eq!(real(5), row as f64 / 7.0);
            assert_eq!(cells[7][..9], word);
        } else {
            assert!([3, 4, 5].iter().all(|column| real(*column).is_nan()));
            assert_eq!(cells[7], [0; 32]);
        }
    }
}

#[test]
fn columns_have_their_attributes() {
    let table = &written(&[("process", &[process_rows(0..1)])]).unwrap()["process"];
    let note = |name: &str| String::from_utf8_lossy(&table.attributes[name]).into_owned();
    assert_eq!(note("CLASS"), "TABLE");
    assert_eq!(note("FIELD_3_NAME"), "memory");
    assert_eq!(note("FIELD_3_UNIT"), "bytes");
    assert_eq!(note("time_unit"), "ns since 1970-01-01T00:00:00Z");
    assert_eq!(table.attributes["NROWS"], 1i64.to_le_bytes());
}

#[test]
fn every_table_has_its_own_dataset() {
    let names: Vec<String> = (0..40).rev().map(|table| format!("table-{table}")).collect();
    let rows: Vec<[RecordBatch; 1]> = (0..40).map(|rows| [process_rows(0..rows)]).collect();
    let all: Vec<(&str, &[RecordBatch])> =
        names.iter().zip(&rows).map(|(name, rows)| (name.as_str(), rows.as_slice())).collect();
    let tables = written(&all).unwrap();
    assert_eq!(tables.len(), 40);
    for (name, rows) in all {
        assert_eq!(tables[name].rows.len(), rows[0].num_rows(), "{name}");
    }
    assert!(tables["table-39"].chunks.is_empty());
}

#[test]
fn every_chunk_is_reachable_from_the_index_root() {
    for count in [0, 1, 64, 65, 128, 64 * 64, 64 * 64 + 1, 64 * 64 * 3 + 5] {
        let file = tempfile::tempfile().unwrap();
        let mut space = Space::new(file.try_clone().unwrap());
        let mut index = ChunkIndex::default();
        for chunk in 0..count {
            index.add(&mut space, chunk * 10, 1_000_000 + chunk, 7).unwrap();
        }
        assert!(index.nodes_in_memory() <= 3, "memory does not grow with the rows");
        let root = index.finish(&mut space, count * 10).unwrap();
        let found = chunks(&bytes(file), root, count * 10);
        let expected: Vec<(u64, u64, u32)> =
            (0..count).map(|chunk| (chunk * 10, 1_000_000 + chunk, 7)).collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn missing_key_is_an_error_naming_its_column() {
    let pids: ArrayRef = Arc::new(UInt32Array::from(vec![Some(1), None]));
    assert_eq!(refusal(&[one_column("pid", pids)]), "column pid: a value is missing");
}

#[test]
fn missing_timestamp_is_nat() {
    let times = TimestampNanosecondArray::from(vec![Some(5), None]).with_timezone("UTC");
    let table = &written(&[("phases", &[one_column("ended", Arc::new(times))])]).unwrap()["phases"];
    assert_eq!(table.rows, [[5i64.to_le_bytes().to_vec()], [i64::MIN.to_le_bytes().to_vec()]]);
}

#[test]
fn integer_not_exact_as_float64_is_an_error_naming_its_column() {
    let column = |number: u64| one_column("bytes", Arc::new(UInt64Array::from(vec![number])));
    for exact in [1 << 53, 1 << 63] {
        assert!(written(&[("process", &[column(exact)])]).is_ok());
    }
    for (number, digits) in [((1 << 53) + 1, "9007199254740993"), (u64::MAX, "1844")] {
        let refusal = refusal(&[column(number)]);
        assert!(refusal.starts_with(&format!("column bytes: {digits}")), "{refusal}");
    }
}

#[test]
fn a_long_text_is_cut_between_characters() {
    let long = format!("x{}", "é".repeat(3000));
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("short"), None, Some(&long)]));
    let table = &written(&[("process", &[one_column("command", texts)])]).unwrap()["process"];
    let text = |row: usize| std::str::from_utf8(&table.rows[row][0]).unwrap();
    assert_eq!(text(0).trim_end_matches('\0'), "short");
    assert_eq!(text(1).trim_end_matches('\0'), "");
    assert_eq!(text(2), &long[..4095]);
}

#[test]
fn text_is_as_wide_as_the_longest_in_all_batches() {
    let texts = |text: &str| one_column("command", Arc::new(StringArray::from(vec![text])));
    let table = &written(&[("process", &[texts("a"), texts("abc")])]).unwrap()["process"];
    assert_eq!(table.rows, [[b"a\0\0".to_vec()], [b"abc".to_vec()]]);
}

#[test]
fn later_symbol_may_be_new_but_not_longer_than_the_column() {
    let late = symbols(&["waiting for disk"]);
    assert!(written(&[("process", &[symbols(&[]), symbols(&["a"]), late])]).is_ok());
    let refusal = refusal(&[symbols(&["a"]), symbols(&["a word of more than thirty-two bytes"])]);
    assert!(refusal.contains("column state: ") && refusal.contains("longer"), "{refusal}");
}

#[test]
fn table_name_must_be_unique_and_valid() {
    let rows: &[RecordBatch] = &[process_rows(0..1)];
    assert!(written(&[("a", rows), ("b", rows), ("a", rows)]).is_err());
    assert!(written(&[("a/b", rows)]).is_err());
}
