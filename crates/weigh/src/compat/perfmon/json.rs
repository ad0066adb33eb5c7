//! JSON as `json.dumps(…, indent=4, sort_keys=True)` writes it, a value at a time: the lists of
//! a long run are never in memory. The caller writes keys in order.

use std::io::{Result, Write};

use crate::compat::python::{PythonValue, dumps_line};

const INDENT: usize = 4;

/// JSON that is being written.
pub(super) struct JsonWriter<W> {
    out: W,
    depth: usize,
    /// Whether nothing is in the innermost bracket yet.
    is_empty: bool,
}

impl<W: Write> JsonWriter<W> {
    /// A value at this depth of a document.
    pub(super) fn new(out: W, depth: usize) -> JsonWriter<W> {
        JsonWriter { out, depth, is_empty: true }
    }

    /// Opens a map or a list.
    pub(super) fn open(&mut self, bracket: char) -> Result<()> {
        self.depth += 1;
        self.is_empty = true;
        write!(self.out, "{bracket}")
    }

    /// Closes it.
    pub(super) fn close(&mut self, bracket: char) -> Result<()> {
        self.depth -= 1;
        if !self.is_empty {
            self.line()?;
        }
        self.is_empty = false;
        write!(self.out, "{bracket}")
    }

    /// The key of what comes next.
    pub(super) fn key(&mut self, name: &str) -> Result<()> {
        self.next()?;
        self.value(&PythonValue::Text(name.to_owned()))?;
        write!(self.out, ": ")
    }

    /// One value of a list.
    pub(super) fn item(&mut self, value: &PythonValue) -> Result<()> {
        self.next()?;
        self.value(value)
    }

    /// A number, a text or null, after its key.
    pub(super) fn value(&mut self, value: &PythonValue) -> Result<()> {
        write!(self.out, "{}", dumps_line(value))
    }

    /// Returns what it was written into.
    pub(super) fn finish(mut self) -> Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }

    fn next(&mut self) -> Result<()> {
        if !self.is_empty {
            write!(self.out, ",")?;
        }
        self.is_empty = false;
        self.line()
    }

    fn line(&mut self) -> Result<()> {
        write!(self.out, "\n{:1$}", "", INDENT * self.depth)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::python::dumps;

    #[test]
    fn streamed_json_is_the_same_as_json_written_at_once() {
        let numbers = [PythonValue::Whole(1), PythonValue::Missing, PythonValue::Whole(3)];
        let mut json = JsonWriter::new(Vec::new(), 0);
        json.open('{').unwrap();
        json.key("empty").unwrap();
        json.open('[').unwrap();
        json.close(']').unwrap();
        json.key("né\"").unwrap();
        json.open('{').unwrap();
        json.key("list").unwrap();
        json.open('[').unwrap();
        numbers.iter().try_for_each(|number| json.item(number)).unwrap();
        json.close(']').unwrap();
        json.close('}').unwrap();
        json.key("step").unwrap();
        json.value(&PythonValue::Real(1.5)).unwrap();
        json.close('}').unwrap();
        let written = String::from_utf8(json.finish().unwrap()).unwrap();
        let whole = PythonValue::map([
            ("empty", PythonValue::List(Vec::new())),
            ("né\"", PythonValue::map([("list", PythonValue::List(numbers.to_vec()))])),
            ("step", PythonValue::Real(1.5)),
        ]);
        assert_eq!(written, dumps(&whole, INDENT));
    }
}
