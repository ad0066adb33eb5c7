//! Lines that `nvidia-smi dmon` prints.
//!
//! Columns are found by the names in the header, because they depend on `-s`, on `-o` and on the
//! driver: `-s mu` is `gpu fb bar1 sm mem enc dec`, newer drivers put `ccpm` after `bar1` and
//! `jpg ofa` after `dec`, and `-o DT` puts date and time before everything. The header is
//! repeated every few lines.

use super::lines::Malformed;
use super::nvidia_smi::{known, mebibytes, share};

/// The places of the columns that are read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DmonColumns {
    gpu: usize,
    utilization: Option<usize>,
    memory_utilization: Option<usize>,
    memory_used: Option<usize>,
    count: usize,
}

/// One line: one GPU.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DmonRow {
    /// The number of the GPU.
    pub gpu: u32,
    /// Share of the time in which something was computed.
    pub utilization: Option<f64>,
    /// Share of the time in which memory was read or written.
    pub memory_utilization: Option<f64>,
    /// Memory in use, in bytes.
    pub memory_used: Option<u64>,
}

/// The columns of a line; with `--format csv` there are commas between them.
fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.split([' ', '\t', ',']).filter(|cell| !cell.is_empty())
}

/// Whether a line has the names or the units of columns.
pub fn is_header(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
}

impl DmonColumns {
    /// The columns of a header; `None` for its second line, which has units.
    pub fn of_header(line: &[u8]) -> Option<DmonColumns> {
        let line = std::str::from_utf8(line).ok()?.trim_start().strip_prefix('#')?;
        let names: Vec<&str> = cells(line).collect();
        let place = |name: &str| names.iter().position(|other| *other == name);
        Some(DmonColumns {
            gpu: place("gpu")?,
            utilization: place("sm"),
            memory_utilization: place("mem"),
            memory_used: place("fb"),
            count: names.len(),
        })
    }

    /// Parses a line without its newline.
    pub fn row(&self, line: &[u8]) -> Result<DmonRow, Malformed> {
        let line = std::str::from_utf8(line).map_err(|_| Malformed("text"))?;
        let cells: Vec<&str> = cells(line).collect();
        if cells.len() != self.count {
            return Err(Malformed("number of columns"));
        }
        let cell = |place: Option<usize>| place.and_then(|place| known(cells[place]));
        Ok(DmonRow {
            gpu: cells[self.gpu].parse().map_err(|_| Malformed("gpu"))?,
            utilization: share(cell(self.utilization), "sm")?,
            memory_utilization: share(cell(self.memory_utilization), "mem")?,
            memory_used: mebibytes(cell(self.memory_used), "fb")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse::tests::mangled;

    const HEADER: &[u8] = b"# gpu     fb   bar1   ccpm     sm    mem    enc    dec    jpg    ofa ";
    const LINE: &[u8] = b"    1   4096    257      0     90     45      0      0      -      - ";

    fn row(header: &str, line: &str) -> Result<DmonRow, Malformed> {
        DmonColumns::of_header(header.as_bytes()).expect("a header").row(line.as_bytes())
    }

    #[test]
    fn columns_are_found_by_name_in_any_order() {
        let truth = DmonRow {
            gpu: 1,
            utilization: Some(0.9),
            memory_utilization: Some(0.45),
            memory_used: Some(4 << 30),
        };
        assert_eq!(DmonColumns::of_header(HEADER).unwrap().row(LINE), Ok(truth));
        for (header, line) in [
            ("# gpu     fb   bar1     sm    mem    enc    dec", "1 4096 257 90 45 0 0"),
            ("# gpu     sm    mem    enc    dec     fb   bar1", "1 90 45 0 0 4096 257"),
            ("#Time         gpu     fb   bar1     sm    mem", " 12:08:12 1 4096 257 90 45"),
            ("#Date       Time     gpu  sm  mem  fb", " 20261115   12:08:12  1  90  45  4096"),
            ("#gpu, sm, mem, fb", "1, 90, 45, 4096"),
        ] {
            assert_eq!(row(header, line), Ok(truth), "{header}");
        }
    }

    #[test]
    fn units_and_rows_are_not_a_header_and_a_dash_is_missing() {
        assert_eq!(DmonColumns::of_header(b"# Idx     MB     MB      %      % "), None);
        assert!(is_header(b"# Idx     MB     MB      %      % "));
        assert!(!is_header(LINE) && DmonColumns::of_header(LINE).is_none());
        let parsed = row("# gpu sm mem fb", "0 - - 12").unwrap();
        assert_eq!((parsed.utilization, parsed.memory_used), (None, Some(12 << 20)));
        assert_eq!(row("# gpu pwr", "0 70").unwrap().utilization, None);
    }

    #[test]
    fn row_that_does_not_match_its_header_is_refused() {
        for line in ["0 90 45", "0 90 45 4096 1", "x 90 45 4096", "0 257 45 4096", "- 1 1 1"] {
            assert!(row("# gpu sm mem fb", line).is_err(), "{line}");
        }
    }

    #[test]
    fn line_cut_at_any_byte_is_refused_or_whole() {
        let columns = DmonColumns::of_header(HEADER).unwrap();
        let whole = columns.row(LINE).unwrap();
        for end in 0..LINE.len() {
            assert!(columns.row(&LINE[..end]).map_or(true, |part| part == whole), "cut at {end}");
            let _ = DmonColumns::of_header(&HEADER[..end]);
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_cause_no_panic(bytes in mangled(LINE), header in mangled(HEADER)) {
            if let Some(columns) = DmonColumns::of_header(&header) {
                let _ = columns.row(&bytes);
            }
        }
    }
}
