//! The lines of a file, and a count of those that cannot be read.
//!
//! A program that is killed may leave half a line, and half a number is a valid number: a last
//! line without a newline is not read.

use serde::Serialize;

use crate::text::printable;

/// A line that is not as its program writes it, with the field at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not in the expected form: {0}")]
pub struct Malformed(pub &'static str);

/// What was found in a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct FileRead {
    /// Its name.
    pub name: String,
    /// Lines with values.
    pub rows: u64,
    /// Lines that cannot be read.
    pub unreadable_lines: u64,
    /// The first of them; null when there is none.
    pub first_unreadable: Option<Unreadable>,
    /// Whether the last line has no newline, and was left out.
    pub is_torn: bool,
    /// When its rows were written; null when they have no time.
    pub times: Option<super::times::RowTimes>,
}

/// A line that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreadable {
    /// Its number, from 1.
    pub line: u64,
    /// What is wrong with it.
    pub why: String,
    /// How it begins.
    pub text: String,
}

/// `1 row`, `2 rows`.
pub(super) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Characters of a line that are shown.
const SHOWN: usize = 80;

/// Calls `take` for each line of a file; it returns whether the line was a row.
pub(super) fn each_line(
    name: &str,
    bytes: &[u8],
    mut take: impl FnMut(&[u8]) -> Result<bool, Malformed>,
) -> FileRead {
    let mut file = FileRead { name: name.to_owned(), ..FileRead::default() };
    // Editors on Windows write a byte order mark before the first line.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
        let Some(line) = line.strip_suffix(b"\n") else {
            file.is_torn = true;
            break;
        };
        let line = line.trim_ascii_end();
        if line.is_empty() {
            continue;
        }
        match take(line) {
            Ok(is_row) => file.rows += u64::from(is_row),
            Err(Malformed(why)) => {
                file.unreadable_lines += 1;
                let text =
                    || printable(&String::from_utf8_lossy(line)).chars().take(SHOWN).collect();
                file.first_unreadable.get_or_insert_with(|| Unreadable {
                    line: number,
                    why: why.to_owned(),
                    text: text(),
                });
            }
        }
    }
    file
}

impl FileRead {
    /// What is missing or doubtful in the numbers.
    pub fn notes(&self) -> Vec<String> {
        let name = &self.name;
        let mut notes = Vec::new();
        if let Some(Unreadable { line, why, text }) = &self.first_unreadable {
            let count = counted(self.unreadable_lines, "line");
            notes.push(format!(
                "{name}: {count} cannot be read; the first is line {line} (not in the expected \
                 form: {why}): {text}"
            ));
        }
        if self.is_torn {
            notes.push(format!("{name}: the last line has no newline and is left out"));
        }
        if self.rows == 0 && self.unreadable_lines == 0 {
            notes.push(format!("{name} has no row: the program that writes it printed nothing"));
        }
        if let Some(times) = self.times.as_ref() {
            notes.extend(times.notes().into_iter().map(|note| format!("{name}: {note}")));
        }
        notes
    }
}
