//! CSV files of other programs: cells with their line numbers.

use std::io::Read;
use std::path::{Path, PathBuf};

use super::super::Error;
use crate::record::files;

/// One record of a file.
#[derive(Debug, PartialEq)]
pub(super) struct CsvLine {
    /// The line it begins in, from 1.
    pub number: usize,
    /// Its cells.
    pub cells: Vec<String>,
}

/// The records of a file, empty lines left out.
pub(super) fn read(path: &Path) -> Result<Vec<CsvLine>, Error> {
    let mut text = String::new();
    files::open_regular(path)?.read_to_string(&mut text).map_err(Error::file(path))?;
    split(&text).map_err(|line| Error::Malformed {
        path: path.to_owned(),
        line,
        why: "a quote is not closed".to_owned(),
    })
}

/// Records and their cells, quoted as RFC 4180 has it; or the line of an open quote.
fn split(text: &str) -> Result<Vec<CsvLine>, usize> {
    let mut lines = Vec::new();
    let mut line = CsvLine { number: 1, cells: Vec::new() };
    let mut cell = String::new();
    let (mut number, mut quoted) = (1, false);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                cell.push('"');
            }
            '"' if quoted => quoted = false,
            '"' if cell.is_empty() => quoted = true,
            ',' if !quoted => line.cells.push(std::mem::take(&mut cell)),
            '\r' if !quoted && characters.peek() == Some(&'\n') => {}
            '\n' => {
                number += 1;
                if quoted {
                    cell.push('\n');
                } else {
                    line.cells.push(std::mem::take(&mut cell));
                    let next = CsvLine { number, cells: Vec::new() };
                    lines.push(std::mem::replace(&mut line, next));
                }
            }
            other => cell.push(other),
        }
    }
    if quoted {
        return Err(line.number);
    }
    line.cells.push(cell);
    lines.push(line);
    lines.retain(|line| line.cells != [""]);
    Ok(lines)
}

/// Where the named columns are in a header.
pub(super) struct CsvColumns {
    path: PathBuf,
    places: Vec<usize>,
    width: usize,
}

impl CsvColumns {
    /// Finds them, or reports which one is missing.
    pub(super) fn find(path: &Path, header: &CsvLine, names: &[&str]) -> Result<CsvColumns, Error> {
        let place = |name: &&str| {
            header.cells.iter().position(|cell| cell == name).ok_or_else(|| Error::Malformed {
                path: path.to_owned(),
                line: header.number,
                why: format!("there is no column {name}"),
            })
        };
        let places = names.iter().map(place).collect::<Result<_, _>>()?;
        Ok(CsvColumns { path: path.to_owned(), places, width: header.cells.len() })
    }

    /// The cell of the column that was named first, second, …
    pub(super) fn cell<'a>(&self, line: &'a CsvLine, column: usize) -> Result<&'a str, Error> {
        if line.cells.len() != self.width {
            let why = format!("{} cells instead of {}", line.cells.len(), self.width);
            return Err(self.wrong(line, why));
        }
        Ok(line.cells[self.places[column]].as_str())
    }

    /// The number in a cell; NaN when it is empty.
    pub(super) fn number(&self, line: &CsvLine, column: usize) -> Result<f64, Error> {
        let cell = self.cell(line, column)?.trim();
        if cell.is_empty() {
            return Ok(f64::NAN);
        }
        cell.parse().map_err(|_| self.wrong(line, format!("\"{cell}\" is not a number")))
    }

    /// The error of a malformed line.
    pub(super) fn wrong(&self, line: &CsvLine, why: impl ToString) -> Error {
        Error::Malformed { path: self.path.clone(), line: line.number, why: why.to_string() }
    }
}

/// Cells as one line, quoted where that is needed.
pub(super) fn join<'a>(cells: impl IntoIterator<Item = &'a str>) -> String {
    let quote = |cell: &str| match cell.contains(['"', ',', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.to_owned(),
    };
    cells.into_iter().map(quote).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_line_ends_are_read_as_they_are_written() {
        let lines = split("a,b\r\n\r\n\"x, \"\"y\"\"\n\",2\n3,").unwrap();
        let cells: Vec<_> = lines.iter().map(|line| (line.number, line.cells.join("|"))).collect();
        let expected = [(1, "a|b"), (3, "x, \"y\"\n|2"), (5, "3|")];
        assert_eq!(cells, expected.map(|(number, cells)| (number, cells.to_owned())));
        assert_eq!(split("a\n\"b"), Err(2));
        assert_eq!(join(["x, \"y\"", "2"]), "\"x, \"\"y\"\"\",2");
    }
}
