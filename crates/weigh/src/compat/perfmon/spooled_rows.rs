//! Rows that are spooled in an unnamed temporary file and read back.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Result, Seek, Write};
use std::path::Path;

/// Bytes of a value: whether there is one, and which.
const CELL: usize = 1 + size_of::<u64>();

/// Rows of `N` values, on the disk.
pub(super) struct SpooledRows<const N: usize> {
    file: BufWriter<File>,
    count: u64,
}

impl<const N: usize> SpooledRows<N> {
    /// No rows yet; the file is in this directory.
    pub(super) fn create(directory: &Path) -> Result<SpooledRows<N>> {
        let file = tempfile::tempfile_in(directory).map(BufWriter::new)?;
        Ok(SpooledRows { file, count: 0 })
    }

    /// Adds a row.
    pub(super) fn put(&mut self, row: [Option<u64>; N]) -> Result<()> {
        for value in row {
            self.file.write_all(&[u8::from(value.is_some())])?;
            self.file.write_all(&value.unwrap_or(0).to_le_bytes())?;
        }
        self.count += 1;
        Ok(())
    }

    /// Calls `each` with the rows, one after the other.
    pub(super) fn each_row(
        &mut self,
        mut each: impl FnMut(&[Option<u64>]) -> Result<()>,
    ) -> Result<()> {
        self.file.rewind()?;
        let mut rows = BufReader::new(self.file.get_ref());
        let mut cell = [0; CELL];
        for _ in 0..self.count {
            let mut row = [None; N];
            for value in &mut row {
                rows.read_exact(&mut cell)?;
                let [is_there, number @ ..] = cell;
                *value = (is_there != 0).then(|| u64::from_le_bytes(number));
            }
            each(&row)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_back_and_missing_stays_missing() {
        let directory = tempfile::tempdir().unwrap();
        let mut rows = SpooledRows::create(directory.path()).unwrap();
        let all = [[Some(1), None, Some(u64::MAX)], [Some(2), None, Some(0)]];
        all.iter().for_each(|row| rows.put(*row).unwrap());
        let mut read = Vec::new();
        rows.each_row(|row| {
            read.push(row.to_vec());
            Ok(())
        })
        .unwrap();
        assert_eq!(read, all.map(|row| row.to_vec()));
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "it has no name");
    }
}
