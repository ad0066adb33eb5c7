use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int64Array, StringArray,
    TimestampNanosecondArray, UInt32Array, UInt64Array, types::UInt8Type,
};

use super::compress::tests::unpacked;
use super::protobuf::tests::read_varint;
use super::*;

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, a)| (n, a, true)))
        .unwrap()
}

/// A file of these batches.
fn file(batches: &[RecordBatch]) -> Result<Vec<u8>, Cause> {
    let mut out = Vec::new();
    let mut orc = Box::new(OrcSink::new(&mut out));
    orc.begin("process", &batches[0].schema())?;
    for batch in batches {
        orc.rows(batch)?;
    }
    orc.finish()?;
    Ok(out)
}

/// The stripes' bytes, the metadata and the footer, found from the end as readers do.
fn parts(file: &[u8]) -> (&[u8], Vec<u8>, Vec<u8>) {
    let (length, rest) = file.split_last().unwrap();
    let (rest, postscript) = rest.split_at(rest.len() - usize::from(*length));
    let fields = numbers(postscript);
    let (rest, footer) = rest.split_at(rest.len() - fields[&1] as usize);
    let (content, metadata) = rest.split_at(rest.len() - fields[&5] as usize);
    (content, unpacked(metadata).concat(), unpacked(footer).concat())
}

/// The last integer of each field of a message.
fn numbers(mut bytes: &[u8]) -> HashMap<u64, u64> {
    let mut found = HashMap::new();
    while !bytes.is_empty() {
        let key = read_varint(&mut bytes);
        let value = read_varint(&mut bytes);
        match key & 7 {
            0 => drop(found.insert(key >> 3, value)),
            _ => bytes = &bytes[value as usize..],
        }
    }
    found
}

#[test]
fn empty_table_is_a_file_without_stripes() {
    let none = table(vec![("pid", Arc::new(UInt32Array::from(Vec::<u32>::new())))]);
    let file = file(&[none]).unwrap();
    let (content, metadata, footer) = parts(&file);
    assert_eq!(content, b"ORC");
    assert_eq!(metadata, b"");
    let fields = numbers(&footer);
    assert_eq!((fields[&1], fields[&2], fields[&6], fields[&8]), (3, 3, 0, 0));
}

#[test]
fn streams_of_a_small_table_follow_the_specification() {
    let batch = table(vec![
        ("n", Arc::new(Int64Array::from(vec![Some(-1), None, Some(2)]))),
        ("x", Arc::new(Float64Array::from(vec![0.5, 1.0, 2.0]))),
        ("t", Arc::new(StringArray::from(vec!["é", "", "b"]))),
    ]);
    let file = file(&[batch]).unwrap();
    let (content, _, footer) = parts(&file);
    let mut expected = b"ORC".to_vec();
    for stream in [
        // Present are the first and the third; their zigzags are 1 and 4, four bits each.
        [0xff, 0b1010_0000].as_slice(),
        &[0x46, 1, 0x14],
        &[0.5f64, 1.0, 2.0].map(f64::to_le_bytes).concat(),
        "éb".as_bytes(),
        &[0x42, 2, 0b1000_0100],
    ] {
        Chunks::default().append(stream, &mut expected).unwrap();
    }
    assert_eq!(content[..expected.len()], expected);
    assert_eq!(numbers(&footer)[&6], 3);
}

#[test]
fn dictionary_of_a_stripe_is_sorted_across_batches() {
    let symbols = |symbols: Vec<Option<&str>>| -> RecordBatch {
        let array: DictionaryArray<UInt8Type> = symbols.into_iter().collect();
        table(vec![("state", Arc::new(array))])
    };
    let first = symbols(vec![Some("sleeping"), None, Some("running")]);
    let second = symbols(vec![Some("idle"), Some("sleeping")]);
    let file = file(&[first, second]).unwrap();
    let mut expected = b"ORC".to_vec();
    let streams = [
        [0xff, 0b1011_1000].as_slice(),
        &[0x42, 3, 0b1001_0010],
        b"idlerunningsleeping",
        // The lengths 4, 7 and 8, four bits each.
        &[0x46, 2, 0x47, 0x80],
    ];
    for stream in streams {
        Chunks::default().append(stream, &mut expected).unwrap();
    }
    assert_eq!(parts(&file).0[..expected.len()], expected);
}

#[test]
fn large_stripe_is_written_and_no_row_is_lost() {
    let noise = (0..50_000u64).map(|row| row.wrapping_mul(0x9e37_79b9_7f4a_7c15) as i64);
    let noise: ArrayRef = Arc::new(Int64Array::from_iter_values(noise));
    let names = (0..24).map(|place| format!("column{place}")).collect::<Vec<_>>();
    let batch = table(names.iter().map(|name| (name.as_str(), noise.clone())).collect());
    let mut orc = OrcSink::new(Vec::new());
    orc.begin("process", &batch.schema()).unwrap();
    for _ in 0..6 {
        orc.rows(&batch).unwrap();
        let buffered_bytes: usize = orc.columns.iter().map(StripeColumn::buffered_bytes).sum();
        assert!(buffered_bytes < STRIPE_BYTES);
    }
    let written: u64 = orc.stripes.iter().map(|stripe| stripe.rows).sum();
    assert!(orc.stripes.len() >= 3, "{}", orc.stripes.len());
    assert_eq!(written + orc.rows as u64, 300_000);
}

#[test]
fn number_above_orcs_maximum_is_an_error_naming_its_column() {
    let batch = |number| table(vec![("process.io", Arc::new(UInt64Array::from(vec![number])))]);
    file(&[batch(i64::MAX as u64)]).unwrap();
    let error = file(&[batch(i64::MAX as u64 + 1)]).unwrap_err().to_string();
    assert!(error.contains("process.io") && error.contains("9223372036854775808"), "{error}");
}

#[test]
fn timestamp_orc_cannot_store_is_an_error_naming_its_column() {
    let batch = table(vec![("time", Arc::new(TimestampNanosecondArray::from(vec![-1])))]);
    assert!(file(&[batch]).unwrap_err().to_string().contains("time"));
}

#[test]
fn column_of_unknown_type_is_an_error_naming_it() {
    let batch = table(vec![("odd", Arc::new(BooleanArray::from(vec![true])))]);
    assert!(file(&[batch]).unwrap_err().to_string().contains("odd"));
}

#[test]
fn orc_file_takes_one_table_and_matching_batches_only() {
    let batch = table(vec![("pid", Arc::new(UInt32Array::from(vec![1])))]);
    let other = table(vec![("pid", Arc::new(Float64Array::from(vec![1.0])))]);
    let mut orc = OrcSink::new(Vec::new());
    orc.begin("process", &batch.schema()).unwrap();
    assert!(orc.begin("node", &batch.schema()).unwrap_err().to_string().contains("node"));
    assert!(orc.rows(&other).unwrap_err().to_string().contains("pid"));
}
