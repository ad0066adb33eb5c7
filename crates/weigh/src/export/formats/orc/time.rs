//! Timestamps in ORC: seconds since 2015, and nanoseconds without trailing zeros.
//!
//! Before 1970 ORC rounds seconds towards zero, but only where the nanoseconds are at least a
//! millisecond: readers then subtract one second. So two timestamps around 1970 have the same
//! encoding, and readers take the later one.

const NANOSECONDS: i64 = 1_000_000_000;
/// 2015-01-01T00:00:00Z, in seconds since 1970.
const EPOCH: i64 = 1_420_070_400;

/// A timestamp as the numbers of its two streams.
#[derive(Debug, PartialEq)]
pub(super) struct TimestampParts {
    /// Seconds since 2015.
    pub seconds: i64,
    /// Nanoseconds and, in the lowest three bits, the number of removed zeros minus one.
    pub nanoseconds: i64,
}

/// The parts of a timestamp in nanoseconds since 1970, if ORC can store it.
pub(super) fn parts(timestamp: i64) -> Option<TimestampParts> {
    let nanoseconds = timestamp.rem_euclid(NANOSECONDS);
    let mut seconds = timestamp.div_euclid(NANOSECONDS);
    if seconds < 0 && nanoseconds >= 1_000_000 {
        seconds += 1;
        if seconds == 0 {
            return None;
        }
    }
    Some(TimestampParts { seconds: seconds - EPOCH, nanoseconds: without_zeros(nanoseconds) })
}

/// Two trailing zeros or more are removed and counted; a single one is kept.
fn without_zeros(nanoseconds: i64) -> i64 {
    if nanoseconds == 0 || nanoseconds % 100 != 0 {
        return nanoseconds << 3;
    }
    let mut digits = nanoseconds / 100;
    let mut zeros = 2;
    while digits % 10 == 0 {
        digits /= 10;
        zeros += 1;
    }
    digits << 3 | (zeros - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes like the Java and C++ readers of Apache ORC.
    fn read(parts: &TimestampParts) -> i64 {
        let zeros = (parts.nanoseconds & 7) as u32;
        let digits = parts.nanoseconds >> 3;
        let nanoseconds = if zeros == 0 { digits } else { digits * 10_i64.pow(zeros + 1) };
        let mut seconds = parts.seconds + EPOCH;
        if seconds < 0 && nanoseconds > 999_999 {
            seconds -= 1;
        }
        seconds * NANOSECONDS + nanoseconds
    }

    #[test]
    fn nanoseconds_follow_the_specification() {
        assert_eq!(without_zeros(1000), 0x0a);
        assert_eq!(without_zeros(100_000), 0x0c);
        assert_eq!(without_zeros(500_000_000), 5 << 3 | 7);
        assert_eq!(without_zeros(10), 10 << 3);
    }

    #[test]
    fn timestamps_round_trip_on_both_sides_of_each_epoch() {
        let second = |count: i64| count * NANOSECONDS;
        for base in [second(1_763_316_348), second(EPOCH), second(1), second(0), second(-86_400)] {
            for off in [0, 1, 10, 100, 999_999, 1_000_000, 120_000_000, 500_000_000, 999_999_999] {
                let timestamp = base + off;
                assert_eq!(
                    parts(timestamp).map(|parts| read(&parts)),
                    Some(timestamp),
                    "{timestamp}"
                );
            }
        }
    }

    #[test]
    fn last_second_of_1969_cannot_be_stored() {
        assert_eq!(parts(-1), None);
        assert_eq!(parts(-999_000_000), None);
        assert_eq!(parts(-999_000_001).map(|parts| read(&parts)), Some(-999_000_001));
        assert_eq!(parts(-NANOSECONDS).map(|parts| read(&parts)), Some(-NANOSECONDS));
    }
}
