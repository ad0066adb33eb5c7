use proptest::prelude::*;

use super::super::protobuf::tests::read_varint;
use super::*;

fn unsigned(numbers: &[i64]) -> Vec<u8> {
    encoded(Integers::unsigned(), numbers)
}

fn signed(numbers: &[i64]) -> Vec<u8> {
    encoded(Integers::signed(), numbers)
}

fn encoded(mut stream: Integers, numbers: &[i64]) -> Vec<u8> {
    numbers.iter().for_each(|number| stream.push(*number));
    stream.take()
}

/// Decodes a stream as the specification describes its runs.
fn decoded(signed: bool, mut bytes: &[u8]) -> Vec<i64> {
    let mut numbers = Vec::new();
    while let Some(header) = bytes.first() {
        if header >> 6 == 0 {
            let wide = usize::from(header >> 3 & 7) + 1;
            let number = value(signed, bits(&bytes[1..], 0, wide as u32 * 8));
            numbers.extend(std::iter::repeat_n(number, usize::from(header & 7) + 3));
            bytes = &bytes[1 + wide..];
            continue;
        }
        let code = header >> 1 & 31;
        let width = WIDTHS.iter().find(|width| width.1 == code).unwrap().0;
        let count = (usize::from(header & 1) << 8 | usize::from(bytes[1])) + 1;
        bytes = &bytes[2..];
        if header >> 6 == DIRECT {
            numbers.extend((0..count).map(|place| value(signed, bits(bytes, place, width))));
            bytes = &bytes[packed_size(width, count)..];
            continue;
        }
        let mut number = value(signed, read_varint(&mut bytes));
        let step = value(true, read_varint(&mut bytes));
        numbers.extend([number, number + step]);
        number += step;
        for place in 0..count - 2 {
            number += match code {
                0 => step,
                _ => bits(bytes, place, width) as i64 * if step < 0 { -1 } else { 1 },
            };
            numbers.push(number);
        }
        bytes = &bytes[if code == 0 { 0 } else { packed_size(width, count - 2) }..];
    }
    numbers
}

fn value(signed: bool, plain: u64) -> i64 {
    if signed { (plain >> 1) as i64 ^ -((plain & 1) as i64) } else { plain as i64 }
}

fn bits(bytes: &[u8], place: usize, width: u32) -> u64 {
    let begin = place * width as usize;
    (begin..begin + width as usize)
        .fold(0, |number, bit| number << 1 | u64::from(bytes[bit / 8] >> (7 - bit % 8) & 1))
}

#[test]
fn runs_follow_the_specification() {
    assert_eq!(unsigned(&[10000; 5]), [0x0a, 0x27, 0x10]);
    assert_eq!(
        unsigned(&[23713, 43806, 57005, 48879]),
        [0x5e, 0x03, 0x5c, 0xa1, 0xab, 0x1e, 0xde, 0xad, 0xbe, 0xef]
    );
    assert_eq!(
        unsigned(&[2, 3, 5, 7, 11, 13, 17, 19, 23, 29]),
        [0xc6, 0x09, 0x02, 0x02, 0x22, 0x42, 0x42, 0x46]
    );
}

#[test]
fn empty_stream_has_no_bytes() {
    assert!(signed(&[]).is_empty());
}

#[test]
fn constant_or_linear_counter_takes_a_few_bytes() {
    assert_eq!(signed(&[-3; 512]), [0xc1, 0xff, 0x05, 0x00]);
    let even: Vec<i64> = (0..512).map(|place| 100 - place * 2).collect();
    assert_eq!(signed(&even), [0xc1, 0xff, 0xc8, 0x01, 0x03]);
}

#[test]
fn repeat_between_other_numbers_becomes_its_own_run() {
    let numbers = [[9, 4, 1].as_slice(), &[7; 10], &[2, 8]].concat();
    assert_eq!(unsigned(&numbers), [0x46, 2, 0x94, 0x10, 0x07, 7, 0x46, 1, 0x28]);
}

#[test]
fn overflowing_deltas_are_not_used() {
    let numbers = [i64::MIN, 0, i64::MAX];
    assert_eq!(deltas(&numbers), None);
    assert_eq!(decoded(true, &signed(&numbers)), numbers);
}

#[test]
fn decrease_after_a_zero_delta_is_no_delta_run() {
    let numbers = [50_000, 50_000, 49_999, 49_998];
    assert_eq!(deltas(&numbers), None);
    assert_eq!(decoded(true, &signed(&numbers)), numbers);
}

/// Realistic columns: noise of any width, repeats, ramps up and down, concatenated.
fn pieces() -> impl Strategy<Value = Vec<i64>> {
    let noise = (0..64u32, prop::collection::vec(any::<i64>(), 0..40))
        .prop_map(|(shift, piece)| piece.iter().map(|number| number >> shift).collect());
    let climb = (any::<i32>(), -300..300i64, 0..4u32, 0..700i64).prop_map(
        |(base, step, slower, count)| -> Vec<i64> {
            (0..count).map(|place| i64::from(base) + ((place * step) >> slower)).collect()
        },
    );
    let repeat = (any::<i64>(), 0..1100usize).prop_map(|(number, count)| vec![number; count]);
    prop::collection::vec(prop_oneof![noise, climb, repeat], 0..6).prop_map(|all| all.concat())
}

proptest! {
    #[test]
    fn encoded_numbers_decode_to_themselves(numbers in pieces()) {
        prop_assert_eq!(decoded(true, &signed(&numbers)), numbers.clone());
        let positive: Vec<i64> = numbers.iter().map(|number| number & i64::MAX).collect();
        prop_assert_eq!(decoded(false, &unsigned(&positive)), positive);
    }
}
