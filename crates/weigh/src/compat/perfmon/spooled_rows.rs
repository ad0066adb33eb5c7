//! Rows that are spooled in an unnamed temporary file and read back column by column.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Result, Seek, Write};
use std::path::Path;

/// Bytes of a value: whether there is one, and which.
const CELL: usize = 1 + size_of::<u64>();

/// Rows of `N` values, on the disk.
pub(super) struct SpooledRows<const N: usize> {
    file: BufWriter<File>,
    count: u64,
    /// Whether a column ever had a value.
    ever_set: [bool; N],
}

impl<const N: usize> SpooledRows<N> {
    /// No rows yet; the file is in this directory.
    pub(super) fn create(directory: &Path) -> Result<SpooledRows<N>> {
        let file = tempfile::tempfile_in(directory).map(BufWriter::new)?;
        Ok(SpooledRows { file, count: 0, ever_set: [false; N] })
    }

    /// Adds a row.
    pub(super) fn put(&mut self, row: [Option<u64>; N]) -> Result<()> {
        for (value, ever_set) in row.iter().zip(&mut self.ever_set) {
            *ever_set |= value.is_some();
            self.file.write_all(&[u8::from(value.is_some())])?;
            self.file.write_all(&value.unwrap_or(0).to_le_bytes())?;
        }
        self.count += 1;
        Ok(())
    }

    /// Which columns ever had a value.
    pub(super) fn ever_set(&self) -> &[bool; N] {
        &self.ever_set
    }

    /// The values of a column, one after the other.
    pub(super) fn column(
        &mut self,
        which: usize,
        mut each: impl FnMut(Option<u64>) -> Result<()>,
    ) -> Result<()> {
        self.file.rewind()?;
        let mut rows = BufReader::new(self.file.get_ref());
        let (mut before, mut cell) = (vec![0; which * CELL], [0; CELL]);
        let mut behind = vec![0; (N - 1 - which) * CELL];
        for _ in 0..self.count {
            rows.read_exact(&mut before)?;
            rows.read_exact(&mut cell)?;
            rows.read_exact(&mut behind)?;
            let [is_there, value @ ..] = cell;
            each((is_there != 0).then(|| u64::from_le_bytes(value)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_have_the_values_of_the_rows_and_missing_stays_missing() {
        let directory = tempfile::tempdir().unwrap();
        let mut rows = SpooledRows::create(directory.path()).unwrap();
        rows.put([Some(1), None, Some(u64::MAX)]).unwrap();
        rows.put([Some(2), None, Some(0)]).unwrap();
        let mut column = |which| {
            let mut values = Vec::new();
            rows.column(which, |value| {
                values.push(value);
                Ok(())
            })
            .unwrap();
            values
        };
        assert_eq!(column(2), [Some(u64::MAX), Some(0)]);
        assert_eq!(column(0), [Some(1), Some(2)]);
        assert_eq!(column(1), [None, None]);
        assert_eq!(rows.ever_set(), &[true, false, true]);
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it has no name");
    }
}
