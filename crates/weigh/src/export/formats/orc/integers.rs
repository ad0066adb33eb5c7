//! Integers as runs (specification v1, "Integer Run Length Encoding, version 2").
//!
//! Numbers are buffered up to 512, the longest run of a header, and split where one repeats often.
//! Of the four kinds of run three are written: short repeat, delta for monotonic sequences (a long
//! repeat, too), and direct (packed bits). Patched base is left out: zstd finds the same
//! redundancy. Widths from 8 bits on are whole bytes, also for zstd: equal numbers are then equal
//! bytes.

use super::protobuf::varint;

const LONGEST_RUN: usize = 512;
/// A repeat this long gets its own run: a header costs less than the numbers.
const WORTH_A_CUT: usize = 8;
const SHORT_REPEAT: std::ops::RangeInclusive<usize> = 3..=10;

/// The widths in use, in bits, and their codes in a header.
const WIDTHS: [(u32, u8); 11] = [
    (1, 0),
    (2, 1),
    (4, 3),
    (8, 7),
    (16, 15),
    (24, 23),
    (32, 27),
    (40, 28),
    (48, 29),
    (56, 30),
    (64, 31),
];
const WIDEST: (u32, u8) = (64, 31);
const DIRECT: u8 = 0b01;
const DELTA: u8 = 0b11;

/// A stream of integers. Unsigned ones must not be negative.
#[derive(Debug)]
pub(super) struct Integers {
    signed: bool,
    pending: Vec<i64>,
    out: Vec<u8>,
}

impl Integers {
    /// Numbers that may be negative.
    pub(super) fn signed() -> Integers {
        Integers { signed: true, pending: Vec::new(), out: Vec::new() }
    }

    /// Numbers that are never negative.
    pub(super) fn unsigned() -> Integers {
        Integers { signed: false, ..Integers::signed() }
    }

    /// One more.
    pub(super) fn push(&mut self, number: i64) {
        self.pending.push(number);
        if self.pending.len() == LONGEST_RUN {
            self.flush();
        }
    }

    /// Memory in use.
    pub(super) fn buffered_bytes(&self) -> usize {
        self.out.len()
    }

    /// The encoded numbers; the stream is empty again.
    pub(super) fn take(&mut self) -> Vec<u8> {
        self.flush();
        std::mem::take(&mut self.out)
    }

    fn flush(&mut self) {
        let mut pending = std::mem::take(&mut self.pending);
        let mut rest = pending.as_slice();
        while !rest.is_empty() {
            let (varied, after) = rest.split_at(long_repeat(rest));
            let alike = leading_repeat(after);
            self.run(varied);
            self.run(&after[..alike]);
            rest = &after[alike..];
        }
        pending.clear();
        self.pending = pending;
    }

    fn run(&mut self, numbers: &[i64]) {
        let Some(first) = numbers.first() else { return };
        let all_alike = leading_repeat(numbers) == numbers.len();
        if all_alike && SHORT_REPEAT.contains(&numbers.len()) {
            return self.short_repeat(*first, numbers.len());
        }
        let all_bits = numbers.iter().fold(0, |bits, number| bits | self.plain(*number));
        let width = width_for(all_bits);
        let direct_size = packed_size(width.0, numbers.len());
        match deltas(numbers) {
            Some(deltas) if self.delta_size(*first, &deltas) < direct_size => {
                self.delta_run(*first, &deltas);
            }
            _ => {
                self.header(DIRECT, width.1, numbers.len());
                let signed = self.signed;
                pack(&mut self.out, width.0, numbers.iter().map(|number| plain(signed, *number)));
            }
        }
    }

    fn short_repeat(&mut self, number: i64, count: usize) {
        let bytes = self.plain(number).to_be_bytes();
        let zeros = bytes.iter().take(7).take_while(|byte| **byte == 0).count();
        let wide = 8 - zeros;
        self.out.push(((wide - 1) << 3 | (count - SHORT_REPEAT.start())) as u8);
        self.out.extend_from_slice(&bytes[zeros..]);
    }

    fn delta_run(&mut self, first: i64, deltas: &[i64]) {
        let width = delta_width(deltas);
        self.header(DELTA, width.map_or(0, |width| width.1), deltas.len() + 1);
        let base = self.plain(first);
        varint(&mut self.out, base);
        varint(&mut self.out, plain(true, deltas[0]));
        if let Some((bits, _)) = width {
            pack(&mut self.out, bits, deltas[1..].iter().map(|delta| delta.unsigned_abs()));
        }
    }

    fn delta_size(&self, first: i64, deltas: &[i64]) -> usize {
        let packed = delta_width(deltas).map_or(0, |(bits, _)| packed_size(bits, deltas.len() - 1));
        varint_size(self.plain(first)) + varint_size(plain(true, deltas[0])) + packed
    }

    fn header(&mut self, kind: u8, width: u8, count: usize) {
        let less_one = (count - 1) as u16;
        self.out.push(kind << 6 | width << 1 | (less_one >> 8) as u8);
        self.out.push(less_one as u8);
    }

    fn plain(&self, number: i64) -> u64 {
        plain(self.signed, number)
    }
}

/// The unsigned form: zigzag if signed.
fn plain(signed: bool, number: i64) -> u64 {
    if signed { ((number << 1) ^ (number >> 63)) as u64 } else { number as u64 }
}

/// How many leading numbers are equal.
fn leading_repeat(numbers: &[i64]) -> usize {
    numbers.iter().take_while(|number| Some(*number) == numbers.first()).count()
}

/// The start of the first long repeat; the end if there is none.
fn long_repeat(numbers: &[i64]) -> usize {
    let mut begins = 0;
    for (place, pair) in numbers.windows(2).enumerate() {
        if pair[0] != pair[1] {
            begins = place + 1;
        } else if place + 2 - begins == WORTH_A_CUT {
            return begins;
        }
    }
    numbers.len()
}

/// The deltas, if a delta run is possible: at least two, all in one direction, given by the first;
/// zero counts as up.
fn deltas(numbers: &[i64]) -> Option<Vec<i64>> {
    let first = numbers.get(1)?.checked_sub(numbers[0])?;
    numbers.get(2)?;
    let onward = |delta: &i64| if first < 0 { *delta <= 0 } else { *delta >= 0 };
    numbers.windows(2).map(|pair| pair[1].checked_sub(pair[0]).filter(onward)).collect()
}

/// The width of all deltas after the first, or `None` if all are equal.
fn delta_width(deltas: &[i64]) -> Option<(u32, u8)> {
    if leading_repeat(deltas) == deltas.len() {
        return None;
    }
    let bits = deltas[1..].iter().fold(0, |bits, delta| bits | delta.unsigned_abs());
    // The code of one bit means "all equal" here, so the narrowest is two.
    Some(width_for(bits | 0b10))
}

fn width_for(bits: u64) -> (u32, u8) {
    let needed = 64 - bits.leading_zeros();
    WIDTHS.into_iter().find(|(width, _)| *width >= needed).unwrap_or(WIDEST)
}

fn packed_size(width: u32, count: usize) -> usize {
    (count * width as usize).div_ceil(8)
}

fn varint_size(number: u64) -> usize {
    ((64 - number.leading_zeros()).max(1) as usize).div_ceil(7)
}

/// Numbers side by side, highest bits first.
fn pack(out: &mut Vec<u8>, width: u32, numbers: impl Iterator<Item = u64>) {
    if width >= 8 {
        let unused = (64 - width) as usize / 8;
        numbers.for_each(|number| out.extend_from_slice(&number.to_be_bytes()[unused..]));
        return;
    }
    let mut free = 0;
    for number in numbers {
        if free == 0 {
            out.push(0);
            free = 8;
        }
        free -= width;
        if let Some(last) = out.last_mut() {
            *last |= (number as u8) << free;
        }
    }
}

#[cfg(test)]
mod tests;
