//! The lists of each host as text, spooled until all hosts are read: in the file they are sorted
//! by name, but nodes are read one after the other.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Read, Result, Seek, SeekFrom, Write};
use std::path::Path;

use super::json::JsonWriter;
use crate::compat::python::PythonValue;

/// How deep the lists of a host are in the document.
const DEPTH: usize = 1;

/// What has been written of each host.
pub(super) struct Sections {
    file: File,
    /// Where the text of each begins, and how long it is.
    places: BTreeMap<String, (u64, u64)>,
}

impl Sections {
    /// No hosts yet; text is spooled in an unnamed file in this directory.
    pub(super) fn create(directory: &Path) -> Result<Sections> {
        Ok(Sections { file: tempfile::tempfile_in(directory)?, places: BTreeMap::new() })
    }

    /// Whether there is no host.
    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Adds a host.
    pub(super) fn add(
        &mut self,
        host: String,
        write: impl FnOnce(&mut JsonWriter<BufWriter<&File>>) -> Result<()>,
    ) -> Result<()> {
        let from = self.file.stream_position()?;
        let mut json = JsonWriter::new(BufWriter::new(&self.file), DEPTH);
        write(&mut json)?;
        json.finish()?;
        let length = self.file.stream_position()? - from;
        self.places.insert(host, (from, length));
        Ok(())
    }

    /// Writes the whole document. Rows are `step` seconds apart.
    pub(super) fn write(mut self, into: File, step: f64) -> Result<()> {
        const HOSTS: &str = "host_names";
        const STEP: &str = "sampling_frequency";
        let names = self.places.keys().cloned().map(PythonValue::Text).collect::<Vec<_>>();
        let mut keys: Vec<&str> = self.places.keys().map(String::as_str).collect();
        keys.extend([HOSTS, STEP]);
        keys.sort_unstable();
        let mut json = JsonWriter::new(BufWriter::new(into), 0);
        json.open('{')?;
        for key in keys {
            json.key(key)?;
            match (self.places.get(key), key) {
                (Some((from, length)), _) => {
                    self.file.seek(SeekFrom::Start(*from))?;
                    json.copy(&mut (&self.file).take(*length))?;
                }
                (None, HOSTS) => {
                    json.open('[')?;
                    names.iter().try_for_each(|name| json.item(name))?;
                    json.close(']')?;
                }
                (None, _) => json.value(&PythonValue::count(step))?,
            }
        }
        json.close('}')?;
        json.finish()?.flush()
    }
}
