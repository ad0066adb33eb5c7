//! Lines of pytyche's `cpu_metrics.csv`: when, and the shares of user and idle time in percent.
//!
//! A row stands for the time since the one before it. Moments are in UTC.

use super::lines::Malformed;
use super::nvidia_smi::share;

/// The first line.
pub const HEADER: &[u8] = b"timestamp,usr_pct,idle_pct";

/// One line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuMetricsRow {
    /// When its time ended.
    pub at: jiff::Timestamp,
    /// Share of CPU time in user mode.
    pub user: f64,
    /// Share of idle CPU time.
    pub idle: f64,
}

/// Parses a line without its newline.
pub fn row(line: &[u8]) -> Result<CpuMetricsRow, Malformed> {
    let line = std::str::from_utf8(line).map_err(|_| Malformed("text"))?;
    let cells: Vec<&str> = line.split(',').map(str::trim).collect();
    let [at, user, idle] = cells[..] else { return Err(Malformed("number of columns")) };
    let share = |cell, field| share(Some(cell), field)?.ok_or(Malformed(field));
    Ok(CpuMetricsRow {
        at: at.parse().map_err(|_| Malformed("timestamp"))?,
        user: share(user, "usr_pct")?,
        idle: share(idle, "idle_pct")?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse::tests::mangled;

    const LINE: &[u8] = b"2026-11-15T18:17:24.976+00:00,35.0,55.5";

    #[test]
    fn row_has_its_time_and_its_shares() {
        let read = row(LINE).unwrap();
        assert_eq!(read.at.to_string(), "2026-11-15T18:17:24.976Z");
        assert_eq!((read.user, read.idle), (0.35, 0.555));
    }

    #[test]
    fn malformed_row_is_refused() {
        for line in [HEADER, b"", b"yesterday,1.0,2.0", b"2026-11-15T18:17:24Z,-1.0,2.0"] {
            assert!(row(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn line_cut_at_any_byte_is_refused_or_misses_only_digits_of_the_last_column() {
        for end in 0..LINE.len() {
            if let Ok(part) = row(&LINE[..end]) {
                assert_eq!(part.user, 0.35, "cut at {end}");
            }
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_cause_no_panic(bytes in mangled(LINE)) {
            let _ = row(&bytes);
        }
    }
}
