//! What a process has read and written: `/proc/<pid>/io`.
//!
//! Seven lines (proc_pid_io(5)), on kernels built with CONFIG_TASK_IO_ACCOUNTING.
//! Readable by the owner of the process and by root only: it takes the same
//! permission as attaching a debugger.
//!
//! What surprises: the counters include all threads and reaped children. `rchar` and `wchar` count
//! what passed through read() and write(), page cache, pipes and terminals included; `read_bytes`
//! and `write_bytes` count storage, and a write counts when the page becomes dirty, not when it
//! reaches the disk. Files used through mmap are in the latter only.

use super::MalformedFile;
use super::fields::{FieldCursor, only_number};
use crate::model::Io;

/// Reads the bytes of `/proc/<pid>/io`.
pub fn parse(bytes: &[u8]) -> Result<Io, MalformedFile> {
    let mut lines = FieldCursor::new(bytes);
    // The order is the kernel's (do_io_accounting) since the file exists, 2.6.20.
    Ok(Io {
        read_bytes: value(&mut lines, b"rchar:", "rchar")?,
        written_bytes: value(&mut lines, b"wchar:", "wchar")?,
        read_calls: value(&mut lines, b"syscr:", "syscr")?,
        write_calls: value(&mut lines, b"syscw:", "syscw")?,
        storage_read_bytes: value(&mut lines, b"read_bytes:", "read_bytes")?,
        storage_written_bytes: value(&mut lines, b"write_bytes:", "write_bytes")?,
        cancelled_bytes: value(&mut lines, b"cancelled_write_bytes:", "cancelled_write_bytes")?,
    })
}

#[inline]
fn value(
    lines: &mut FieldCursor<'_>,
    key: &[u8],
    field: &'static str,
) -> Result<u64, MalformedFile> {
    let line = lines.line()?.ok_or(MalformedFile(field))?;
    only_number(line.strip_prefix(key).ok_or(MalformedFile(field))?, field)
}

#[cfg(test)]
mod tests {
    use super::super::tests::parser_tests;
    use super::*;

    const SOLVER: &[u8] = b"rchar: 7274\nwchar: 298\nsyscr: 12\nsyscw: 1\nread_bytes: 8192\n\
        write_bytes: 4096\ncancelled_write_bytes: 512\n";

    #[test]
    fn calls_and_storage_are_separate_counters() {
        let expected = Io {
            read_bytes: 7274,
            written_bytes: 298,
            read_calls: 12,
            write_calls: 1,
            storage_read_bytes: 8192,
            storage_written_bytes: 4096,
            cancelled_bytes: 512,
        };
        assert_eq!(parse(SOLVER), Ok(expected));
    }

    #[test]
    fn missing_line_is_named() {
        assert_eq!(parse(b""), Err(MalformedFile("rchar")));
        assert_eq!(parse(b"rchar: 1\nsyscr: 2\n"), Err(MalformedFile("wchar")));
        assert_eq!(parse(b"rchar: -1\n"), Err(MalformedFile("rchar")));
    }

    /// What the procfs crate makes of the same bytes.
    fn agrees(ours: Io, theirs: procfs::process::Io) {
        assert_eq!((ours.read_bytes, ours.written_bytes), (theirs.rchar, theirs.wchar));
        assert_eq!((ours.read_calls, ours.write_calls), (theirs.syscr, theirs.syscw));
        assert_eq!(ours.storage_read_bytes, theirs.read_bytes);
        assert_eq!(ours.storage_written_bytes, theirs.write_bytes);
        assert_eq!(ours.cancelled_bytes, theirs.cancelled_write_bytes);
    }

    parser_tests! {
        cut: fn truncated_file_is_refused() {
            parse, SOLVER => refused;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; SOLVER
        }

        procfs: fn procfs_crate_agrees() {
            parse, "/proc/self/io" => agrees;
        }
    }
}
