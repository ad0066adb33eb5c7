//! I/O of every block device: `/proc/diskstats`.
//!
//! A line for each device and partition: major, minor, name, then 11 columns, 15 since
//! 4.18, 17 since 5.5 (Documentation/admin-guide/iostats.rst), readable by every user.
//!
//! What surprises: sectors are 512 bytes, whatever the sector size of the disk is. Partitions are
//! listed among their disks, so a sum over all lines counts their I/O twice.

use super::MalformedFile;
use super::fields::FieldCursor;

/// Bytes in a sector of this file.
const SECTOR: u64 = 512;

/// One device or partition since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockDevice<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// Reads that were completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Milliseconds that reads took, summed.
    pub read_milliseconds: u64,
    /// Writes that were completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Milliseconds that writes took, summed.
    pub write_milliseconds: u64,
    /// Milliseconds in which it had requests in flight.
    pub busy_milliseconds: u64,
}

impl BlockDevice<'_> {
    /// Whether anything was ever read or written.
    pub fn was_used(&self) -> bool {
        self.reads > 0 || self.writes > 0
    }
}

/// The devices; each malformed line is an error of its own.
pub fn devices(bytes: &[u8]) -> impl Iterator<Item = Result<BlockDevice<'_>, MalformedFile>> {
    let mut lines = FieldCursor::new(bytes);
    std::iter::from_fn(move || match lines.line() {
        Ok(Some(line)) => Some(device(line)),
        Ok(None) => None,
        Err(malformed) => {
            lines = FieldCursor::new(b"");
            Some(Err(malformed))
        }
    })
}

fn device(line: &[u8]) -> Result<BlockDevice<'_>, MalformedFile> {
    let mut columns = FieldCursor::new(line);
    columns.number("major")?;
    columns.number("minor")?;
    let name = columns.column("device")?;
    let bytes = |sectors: u64| sectors.checked_mul(SECTOR).ok_or(MalformedFile("sectors"));
    let reads = columns.number("reads")?;
    columns.number("reads merged")?;
    let read_bytes = bytes(columns.number("sectors read")?)?;
    let read_milliseconds = columns.number("time reading")?;
    let writes = columns.number("writes")?;
    columns.number("writes merged")?;
    let written_bytes = bytes(columns.number("sectors written")?)?;
    let write_milliseconds = columns.number("time writing")?;
    columns.number("in progress")?;
    let busy_milliseconds = columns.number("time busy")?;
    Ok(BlockDevice {
        name,
        reads,
        read_bytes,
        read_milliseconds,
        writes,
        written_bytes,
        write_milliseconds,
        busy_milliseconds,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_this_kernel, parser_tests};
    use super::*;

    const DISKS: &[u8] = b"   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n 259       0 \
        nvme0n1 2230996 104104 149186578 11456305 2247332 578852 386465968 2189623 2 877560 \
        13938441 1728406 659 349603304 253975 259665 38536\n   8       0 sda 1 2 3 4 5 6 7 8 9 10 11\n";

    fn read(bytes: &[u8]) -> Result<Vec<BlockDevice<'_>>, MalformedFile> {
        devices(bytes).collect()
    }

    #[test]
    fn sectors_become_bytes_and_old_kernels_have_fewer_columns() {
        let devices = read(DISKS).unwrap();
        let disk = devices[1];
        assert_eq!((disk.name, disk.reads, disk.writes), (&b"nvme0n1"[..], 2_230_996, 2_247_332));
        assert_eq!((disk.read_bytes, disk.written_bytes), (149_186_578 * 512, 386_465_968 * 512));
        assert_eq!((disk.read_milliseconds, disk.write_milliseconds), (11_456_305, 2_189_623));
        assert_eq!((disk.busy_milliseconds, disk.was_used()), (877_560, true));
        assert!(!devices[0].was_used());
        assert_eq!((devices[2].name, devices[2].busy_milliseconds), (&b"sda"[..], 10));
    }

    #[test]
    fn malformed_line_loses_one_device() {
        let text = b"8 0 sda 1 2 3 x\n8 1 sdb 1 2 3 4 5 6 7 8 9 10 11\n8 2\n";
        let read: Vec<_> = devices(text).collect();
        assert_eq!(read[0], Err(MalformedFile("time reading")));
        assert_eq!(read[1].unwrap().name, b"sdb");
        assert_eq!(read[2], Err(MalformedFile("device")));
        let huge = b"8 0 sda 1 2 18446744073709551615 4 5 6 7 8 9 10 11\n";
        assert_eq!(devices(huge).next(), Some(Err(MalformedFile("sectors"))));
    }

    parser_tests! {
        cut: fn truncated_file_loses_devices_but_changes_none() {
            read, DISKS => begins;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            |bytes| devices(bytes).for_each(drop); DISKS
        }
    }

    #[test]
    fn every_line_of_this_kernel_is_parsed() {
        let bytes = of_this_kernel("/proc/diskstats");
        let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(read(&bytes).unwrap().len(), lines);
    }
}
