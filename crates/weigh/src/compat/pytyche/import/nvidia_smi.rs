//! Lines that `nvidia-smi --query-gpu=… --format=csv` prints.
//!
//! With `noheader` a line says nothing of what its columns are: then they are those that pytyche
//! asks for. With a header they are found by name, in any order, and what is not known here is
//! passed over. With or without `nounits`.
//!
//! What surprised us: the words for "not known" differ by driver and by column (`[N/A]`,
//! `[Not Supported]`, `N/A`, `ERR!`, `[Unknown Error]`, `[GPU is lost]`), and what cannot be asked
//! at all is told in a sentence on stdout, where a line is expected. The time is that of the
//! machine's own time zone, which is not said.

use jiff::civil::DateTime;

use super::lines::Malformed;

/// What stands in a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SmiColumn {
    Timestamp,
    Index,
    Uuid,
    Name,
    Utilization,
    MemoryUtilization,
    MemoryUsed,
    MemoryTotal,
    Power,
    Temperature,
    Other,
}

/// The columns of a table, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SmiColumns(Vec<SmiColumn>);

/// What one line tells of one GPU at one moment. What it does not tell is missing.
#[derive(Debug, Clone, PartialEq)]
pub struct SmiRow {
    /// When, by the clock on the machine's wall.
    pub at: DateTime,
    /// The number of the GPU.
    pub index: Option<u32>,
    /// What tells it from every other.
    pub uuid: Option<String>,
    /// What its maker calls it.
    pub name: Option<String>,
    /// Share of the time in which something was computed.
    pub utilization: Option<f64>,
    /// Share of the time in which memory was read or written.
    pub memory_utilization: Option<f64>,
    /// Memory in use, in bytes.
    pub memory_used: Option<u64>,
    /// All memory it has, in bytes.
    pub memory_total: Option<u64>,
    /// Power, in watts.
    pub power: Option<f64>,
    /// How warm it is, in °C.
    pub temperature: Option<f64>,
}

fn column(name: &str) -> SmiColumn {
    // `memory.used [MiB]`
    match name.split('[').next().unwrap_or_default().trim() {
        "timestamp" => SmiColumn::Timestamp,
        "index" => SmiColumn::Index,
        "uuid" | "gpu_uuid" => SmiColumn::Uuid,
        "name" | "gpu_name" => SmiColumn::Name,
        "utilization.gpu" => SmiColumn::Utilization,
        "utilization.memory" => SmiColumn::MemoryUtilization,
        "memory.used" => SmiColumn::MemoryUsed,
        "memory.total" => SmiColumn::MemoryTotal,
        "power.draw" => SmiColumn::Power,
        "temperature.gpu" => SmiColumn::Temperature,
        _ => SmiColumn::Other,
    }
}

impl SmiColumns {
    /// What pytyche asks for, without a header.
    pub fn of_pytyche() -> SmiColumns {
        use SmiColumn::*;
        SmiColumns(vec![
            Timestamp,
            Utilization,
            MemoryUtilization,
            MemoryUsed,
            MemoryTotal,
            Power,
            Temperature,
            Other,
            Other,
        ])
    }

    /// The columns that a header names; nothing when the line is no header.
    pub fn of_header(line: &[u8]) -> Option<SmiColumns> {
        let columns: Vec<SmiColumn> =
            std::str::from_utf8(line).ok()?.split(',').map(column).collect();
        columns.contains(&SmiColumn::Timestamp).then_some(SmiColumns(columns))
    }

    /// What a line tells, without its newline.
    pub fn row(&self, line: &[u8]) -> Result<SmiRow, Malformed> {
        let cells = self.cells(line)?;
        let cell = |which: SmiColumn| self.cell(&cells, which);
        Ok(SmiRow {
            utilization: share(cell(SmiColumn::Utilization), "utilization.gpu")?,
            memory_utilization: share(cell(SmiColumn::MemoryUtilization), "utilization.memory")?,
            memory_used: mebibytes(cell(SmiColumn::MemoryUsed), "memory.used")?,
            memory_total: mebibytes(cell(SmiColumn::MemoryTotal), "memory.total")?,
            power: number(cell(SmiColumn::Power), "power.draw")?,
            temperature: number(cell(SmiColumn::Temperature), "temperature.gpu")?,
            ..self.whose(&cells)?
        })
    }

    /// When a line is of, and which GPU, as far as it says, and nothing else. One whose numbers
    /// cannot be has its place among the others all the same.
    pub fn place(&self, line: &[u8]) -> Result<SmiRow, Malformed> {
        self.whose(&self.cells(line)?)
    }

    fn cells<'l>(&self, line: &'l [u8]) -> Result<Vec<&'l str>, Malformed> {
        let line = std::str::from_utf8(line).map_err(|_| Malformed("text"))?;
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() < self.0.len() {
            return Err(Malformed("number of columns"));
        }
        Ok(cells)
    }

    fn cell<'l>(&self, cells: &[&'l str], which: SmiColumn) -> Option<&'l str> {
        self.0.iter().position(|column| *column == which).and_then(|place| known(cells[place]))
    }

    fn whose(&self, cells: &[&str]) -> Result<SmiRow, Malformed> {
        let cell = |which: SmiColumn| self.cell(cells, which);
        let index = cell(SmiColumn::Index).map(|index| index.parse());
        let at = cell(SmiColumn::Timestamp).ok_or(Malformed("timestamp"))?;
        Ok(SmiRow {
            at: DateTime::strptime("%Y/%m/%d %H:%M:%S%.f", at)
                .map_err(|_| Malformed("timestamp"))?,
            index: index.transpose().map_err(|_| Malformed("index"))?,
            uuid: cell(SmiColumn::Uuid).map(str::to_owned),
            name: cell(SmiColumn::Name).map(str::to_owned),
            utilization: None,
            memory_utilization: None,
            memory_used: None,
            memory_total: None,
            power: None,
            temperature: None,
        })
    }
}

/// A cell that tells something.
pub(super) fn known(cell: &str) -> Option<&str> {
    let is_missing = matches!(cell, "" | "-" | "N/A") || cell.starts_with('[');
    (!is_missing).then_some(cell)
}

/// A number of a cell, with its unit or without. Words in its place say that there is none.
pub(super) fn number(cell: Option<&str>, field: &'static str) -> Result<Option<f64>, Malformed> {
    let is_word = |cell: &str| cell.starts_with(|first: char| first.is_alphabetic());
    let Some(cell) = cell.filter(|cell| !is_word(cell)) else { return Ok(None) };
    let number = match cell.split_once(' ') {
        Some((number, "%" | "MiB" | "W" | "MHz" | "C")) => number,
        Some(_) => return Err(Malformed(field)),
        None => cell,
    };
    let number = number.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.map(Some).ok_or(Malformed(field))
}

/// A share in percent. More than all there is stands in another column.
pub(super) fn share(cell: Option<&str>, field: &'static str) -> Result<Option<f64>, Malformed> {
    match number(cell, field)? {
        Some(percent) if percent > 100.0 => Err(Malformed(field)),
        percent => Ok(percent.map(|percent| percent / 100.0)),
    }
}

/// Bytes of a number of MiB.
pub(super) fn mebibytes(cell: Option<&str>, field: &'static str) -> Result<Option<u64>, Malformed> {
    Ok(number(cell, field)?.map(|mebibytes| (mebibytes * 1_048_576.0) as u64))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::parse::tests::mangled;

    const LINE: &[u8] = b"2026/11/15 18:17:24.976, 90, 45, 4096, 81920, 350.13, 61, 1980, 2619";

    #[test]
    fn a_line_without_a_header_is_what_pytyche_asked_for() {
        let row = SmiColumns::of_pytyche().row(LINE).unwrap();
        assert_eq!(row.at.to_string(), "2026-11-15T18:17:24.976");
        assert_eq!((row.utilization, row.memory_utilization), (Some(0.9), Some(0.45)));
        assert_eq!((row.memory_used, row.memory_total), (Some(4 << 30), Some(80 << 30)));
        assert_eq!((row.power, row.temperature, row.index), (Some(350.13), Some(61.0), None));
    }

    #[test]
    fn whatever_word_a_driver_has_for_missing_only_that_is_missing() {
        let bracketed = ["[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]"];
        let bare = ["N/A", "Not Supported", "Unknown Error", "ERR!", "GPU is lost", "nan", "-"];
        for word in bracketed.into_iter().chain(bare) {
            let line = format!("2026/11/15 18:17:24.976, 7, {word}, 12, 34, {word}, 61, {word}, 1");
            let row = SmiColumns::of_pytyche().row(line.as_bytes()).unwrap();
            assert_eq!((row.memory_utilization, row.power), (None, None), "{word}");
            assert_eq!((row.utilization, row.memory_used), (Some(0.07), Some(12 << 20)), "{word}");
        }
    }

    #[test]
    fn a_header_says_what_columns_are_and_units_may_stand_behind_numbers() {
        let header = b"index, timestamp, power.draw [W], pstate, memory.used [MiB], name";
        let columns = SmiColumns::of_header(header).unwrap();
        let row = columns.row(b"3, 2026/11/15 18:17:24, 70.5 W, P0, 12 MiB, Tesla T4").unwrap();
        assert_eq!((row.index, row.power, row.memory_used), (Some(3), Some(70.5), Some(12 << 20)));
        assert_eq!((row.name.as_deref(), row.utilization), (Some("Tesla T4"), None));
        assert_eq!(SmiColumns::of_header(LINE), None);
    }

    #[test]
    fn what_is_no_row_is_refused_and_never_guessed_at() {
        for line in [
            "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.",
            "2026/11/15 18:17:24.976, 90, 45, 4096",
            "2026/11/15 18:17:24.976, 257, 45, 4096, 81920, 350.13, 61, 1980, 2619",
            "2026/11/15 18:17:24.976, 90, 45, -4096, 81920, 350.13, 61, 1980, 2619",
            "2026/13/15 18:17:24.976, 90, 45, 4096, 81920, 350.13, 61, 1980, 2619",
            "[N/A], 90, 45, 4096, 81920, 350.13, 61, 1980, 2619",
            "2026/11/15 18:17:24.976, 90, 45, 4096 apples, 81920, 350.13, 61, 1980, 2619",
        ] {
            assert!(SmiColumns::of_pytyche().row(line.as_bytes()).is_err(), "{line}");
        }
    }

    #[test]
    fn a_line_whose_numbers_cannot_be_has_its_place_all_the_same() {
        let line = b"2026/11/15 18:17:24.976, 4294967295, 45, 4096, 81920, 350.13, 61, 1980, 2619";
        let columns = SmiColumns::of_pytyche();
        assert_eq!(columns.row(line), Err(Malformed("utilization.gpu")));
        let place = columns.place(line).unwrap();
        assert_eq!((place.at, place.memory_used), (columns.row(LINE).unwrap().at, None));
        assert!(columns.place(b"No devices were found").is_err());
    }

    #[test]
    fn a_line_cut_at_any_byte_is_refused_or_has_the_columns_before_the_cut() {
        let whole = SmiColumns::of_pytyche().row(LINE).unwrap();
        for end in 0..LINE.len() {
            if let Ok(part) = SmiColumns::of_pytyche().row(&LINE[..end]) {
                assert_eq!(part, whole, "the clocks, which are not kept, are the last columns");
            }
        }
    }

    proptest! {
        #[test]
        fn nothing_makes_it_panic(bytes in mangled(LINE)) {
            let _ = SmiColumns::of_pytyche().row(&bytes);
            let _ = SmiColumns::of_header(&bytes).map(|columns| columns.row(LINE));
        }
    }
}
