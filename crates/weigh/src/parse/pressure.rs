//! Time in which tasks stalled on CPU, memory or I/O: `/proc/pressure/*`.
//!
//! Two lines since 4.20 (Documentation/accounting/psi.rst), readable by every user: `some
//! avg10=0.00 avg60=0.00 avg300=0.00 total=12345` and the same for `full`. The totals are
//! microseconds since boot; the averages are not read, since they follow from these.
//!
//! What surprises: `cpu` had no `full` line before 5.13, and for a whole machine it is
//! always zero since.

use super::MalformedFile;
use super::fields::FieldCursor;

/// Time in which tasks were stalled, in microseconds since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressure {
    /// At least one task.
    pub some: u64,
    /// All tasks that were not idle, at once.
    pub full: Option<u64>,
}

/// Reads the bytes of one of the files.
pub fn parse(bytes: &[u8]) -> Result<Pressure, MalformedFile> {
    let mut lines = FieldCursor::new(bytes);
    let (mut some, mut full) = (None, None);
    while let Some(line) = lines.line()? {
        if let Some(rest) = line.strip_prefix(b"some ") {
            some = Some(total(rest)?);
        } else if let Some(rest) = line.strip_prefix(b"full ") {
            full = Some(total(rest)?);
        }
    }
    Ok(Pressure { some: some.ok_or(MalformedFile("some"))?, full })
}

fn total(line: &[u8]) -> Result<u64, MalformedFile> {
    const KEY: &[u8] = b"total=";
    let place = line.windows(KEY.len()).position(|window| window == KEY);
    let place = place.ok_or(MalformedFile("total"))?;
    FieldCursor::new(&line[place + KEY.len()..]).number("total")
}

#[cfg(test)]
mod tests {
    use super::super::tests::parser_tests;
    use super::*;

    const IO: &[u8] = b"some avg10=1.53 avg60=0.87 avg300=0.42 total=83759302\n\
        full avg10=0.00 avg60=0.10 avg300=0.20 total=61120011\n";

    #[test]
    fn totals_are_read_and_a_line_may_be_missing() {
        let expected = Pressure { some: 83_759_302, full: Some(61_120_011) };
        assert_eq!(parse(IO), Ok(expected));
        let old = parse(b"some avg10=0.00 avg60=0.00 avg300=0.00 total=5\n").unwrap();
        assert_eq!((old.some, old.full), (5, None));
        assert_eq!(parse(b"some avg10=0.00\n"), Err(MalformedFile("total")));
        assert_eq!(parse(b"full avg10=0.00 total=1\n"), Err(MalformedFile("some")));
    }

    parser_tests! {
        cut: fn truncated_file_loses_a_line_but_changes_nothing() {
            parse, IO => keeps(some) may_lose(full);
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; IO
        }
    }
}
