//! Lines that `nvidia-smi --query-gpu=… --format=csv` prints.
//!
//! With `noheader` the columns are those that pytyche queries. With a header they are found by
//! name, in any order, and unknown ones are skipped. With or without `nounits`.
//!
//! What surprised us: the text for "not available" differs by driver and by column (`[N/A]`,
//! `[Not Supported]`, `N/A`, `ERR!`, `[Unknown Error]`, `[GPU is lost]`), and errors are sentences
//! on stdout in the place of a line. The time is in the machine's time zone, which is not printed.

use jiff::civil::DateTime;

use super::lines::Malformed;

/// What a column has.
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

/// One line: one GPU at one moment. What is not available is `None`.
#[derive(Debug, Clone, PartialEq)]
pub struct SmiRow {
    /// When, in the machine's local time.
    pub at: DateTime,
    /// The number of the GPU.
    pub index: Option<u32>,
    /// Its UUID.
    pub uuid: Option<String>,
    /// Its model.
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
    /// Temperature, in °C.
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
    /// What pytyche queries, without a header.
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

    /// The columns of a header; `None` when the line is not a header.
    pub fn of_header(line: &[u8]) -> Option<SmiColumns> {
        let columns: Vec<SmiColumn> =
            std::str::from_utf8(line).ok()?.split(',').map(column).collect();
        columns.contains(&SmiColumn::Timestamp).then_some(SmiColumns(columns))
    }

    /// Parses a line without its newline.
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
            ..self.time_and_gpu(&cells)?
        })
    }

    /// Parses only the time and the GPU of a line: a line with impossible numbers keeps its place
    /// in its round.
    pub fn place(&self, line: &[u8]) -> Result<SmiRow, Malformed> {
        self.time_and_gpu(&self.cells(line)?)
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

    fn time_and_gpu(&self, cells: &[&str]) -> Result<SmiRow, Malformed> {
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

/// A cell with a value.
pub(super) fn known(cell: &str) -> Option<&str> {
    let is_missing = matches!(cell, "" | "-" | "N/A") || cell.starts_with('[');
    (!is_missing).then_some(cell)
}

/// A number of a cell, with or without its unit. Text in its place means that there is none.
pub(super) fn number(cell: Option<&str>, field: &'static str) -> Result<Option<f64>, Malformed> {
    let is_text = |cell: &str| cell.starts_with(|first: char| first.is_alphabetic());
    let Some(cell) = cell.filter(|cell| !is_text(cell)) else { return Ok(None) };
    let number = match cell.split_once(' ') {
        Some((number, "%" | "MiB" | "W" | "MHz" | "C")) => number,
        Some(_) => return Err(Malformed(field)),
        None => cell,
    };
    let number = number.parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0);
    number.map(Some).ok_or(Malformed(field))
}

/// A share in percent. More than 100 belongs to another column.
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
    fn line_without_a_header_has_the_columns_that_pytyche_queries() {
        let row = SmiColumns::of_pytyche().row(LINE).unwrap();
        assert_eq!(row.at.to_string(), "2026-11-15T18:17:24.976");
        assert_eq!((row.utilization, row.memory_utilization), (Some(0.9), Some(0.45)));
        assert_eq!((row.memory_used, row.memory_total), (Some(4 << 30), Some(80 << 30)));
        assert_eq!((row.power, row.temperature, row.index), (Some(350.13), Some(61.0), None));
    }

    #[test]
    fn every_text_for_not_available_makes_only_that_value_missing() {
        let bracketed = ["[N/A]", "[Not Supported]", "[Unknown Error]", "[GPU is lost]"];
        let bare = ["N/A", "Not Supported", "Unknown Error", "ERR!", "GPU is lost", "nan", "-"];
        for text in bracketed.into_iter().chain(bare) {
            let line = format!("2026/11/15 18:17:24.976, 7, {text}, 12, 34, {text}, 61, {text}, 1");
            let row = SmiColumns::of_pytyche().row(line.as_bytes()).unwrap();
            assert_eq!((row.memory_utilization, row.power), (None, None), "{text}");
            assert_eq!((row.utilization, row.memory_used), (Some(0.07), Some(12 << 20)), "{text}");
        }
    }

    #[test]
    fn header_names_the_columns_and_units_may_follow_numbers() {
        let header = b"index, timestamp, power.draw [W], pstate, memory.used [MiB], name";
        let columns = SmiColumns::of_header(header).unwrap();
        let row = columns.row(b"3, 2026/11/15 18:17:24, 70.5 W, P0, 12 MiB, Tesla T4").unwrap();
        assert_eq!((row.index, row.power, row.memory_used), (Some(3), Some(70.5), Some(12 << 20)));
        assert_eq!((row.name.as_deref(), row.utilization), (Some("Tesla T4"), None));
        assert_eq!(SmiColumns::of_header(LINE), None);
    }

    #[test]
    fn malformed_row_is_refused_and_never_guessed() {
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
    fn line_with_impossible_numbers_keeps_its_place() {
        let line = b"2026/11/15 18:17:24.976, 4294967295, 45, 4096, 81920, 350.13, 61, 1980, 2619";
        let columns = SmiColumns::of_pytyche();
        assert_eq!(columns.row(line), Err(Malformed("utilization.gpu")));
        let place = columns.place(line).unwrap();
        assert_eq!((place.at, place.memory_used), (columns.row(LINE).unwrap().at, None));
        assert!(columns.place(b"No devices were found").is_err());
    }

    #[test]
    fn line_cut_at_any_byte_is_refused_or_has_the_columns_before_the_cut() {
        let whole = SmiColumns::of_pytyche().row(LINE).unwrap();
        for end in 0..LINE.len() {
            if let Ok(part) = SmiColumns::of_pytyche().row(&LINE[..end]) {
                assert_eq!(part, whole, "the last columns are the clocks, which are not read");
            }
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_cause_no_panic(bytes in mangled(LINE)) {
            let _ = SmiColumns::of_pytyche().row(&bytes);
            let _ = SmiColumns::of_header(&bytes).map(|columns| columns.row(LINE));
        }
    }
}
