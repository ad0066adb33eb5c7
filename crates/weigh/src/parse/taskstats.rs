//! The exit record of a process: taskstats.
//!
//! Messages of generic netlink (linux/genetlink.h, linux/taskstats.h): a header, then attributes
//! with a length and a type, some of them nested. Each thread that exits has a record; that of the
//! last one is marked and is followed by a sum over all threads, if there were several.
//!
//! What surprises:
//! - The sum has CPU time only; its memory and I/O are 0. So the peak memory is that of the last
//!   thread's record, which is the peak of the memory they all share. The I/O of threads that
//!   exited earlier is not reported.
//! - Bytes of I/O are rounded down to 1024, and so are counts of calls, which are of no use.
//! - `ac_utime` and `ac_stime` are sampled at clock ticks; `cpu_run_virtual_total` is exact.
//! - The exit code is in the record of the first thread only.
//! - Version 15 has new fields in the middle; version 16 moved them to the end.

use std::time::Duration;

use super::MalformedFile;
use super::native::{find, u16_at, u32_at, u64_at};

/// What a process used from fork to exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitRecord {
    /// Which process.
    pub pid: u32,
    /// Its wait status; `None` when its first thread was not the last to exit.
    pub status: Option<i32>,
    /// CPU time of all its threads, without the time spent exiting.
    pub cpu: Duration,
    /// Peak resident memory since its last exec; `None` if it had no memory of its own.
    pub peak_rss_bytes: Option<u64>,
    /// What it read and wrote; `None` when it had several threads.
    pub io: Option<ExitIo>,
}

/// Bytes that a process read and wrote, each rounded down to a multiple of 1024.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExitIo {
    /// By read calls, from any file.
    pub read_bytes: u64,
    /// By write calls, to any file.
    pub written_bytes: u64,
    /// From storage.
    pub storage_read_bytes: u64,
    /// To storage, dirty pages included.
    pub storage_written_bytes: u64,
}

/// Types of messages and attributes.
const ERROR: u16 = 2;
const FAMILY_NUMBER: u16 = 1;
const STATS: u16 = 3;
const OF_THREAD: u16 = 4;
const OF_PROCESS: u16 = 5;

/// `AGROUP`: the last thread of a process.
const LAST: u32 = 0x20;

/// The id of a family, from the answer of generic netlink's controller.
pub fn family(bytes: &[u8]) -> Result<u16, MalformedFile> {
    let (_, fields) = message(bytes)?;
    u16_at(find(fields, FAMILY_NUMBER)?.ok_or(MalformedFile("family"))?, 0, "family")
}

/// The error number of a request (0 for success), if the message is an acknowledgement.
pub fn errno(bytes: &[u8]) -> Option<i32> {
    let is_error = u16_at(bytes, 4, "netlink type") == Ok(ERROR);
    // The kernel sends it negated.
    is_error.then(|| u32_at(bytes, 16, "errno").map(|errno| (errno as i32).wrapping_neg()).ok())?
}

/// Reads a record of the family; `None` when a thread exited and its process goes on.
pub fn parse(bytes: &[u8], family: u16) -> Result<Option<ExitRecord>, MalformedFile> {
    let (kind, fields) = message(bytes)?;
    if kind != family {
        return Err(MalformedFile("family"));
    }
    let thread = find(fields, OF_THREAD)?.ok_or(MalformedFile("record of a thread"))?;
    let thread = find(thread, STATS)?.ok_or(MalformedFile("record of a thread"))?;
    if !matches!(u16_at(thread, 0, "version")?, 12..=14 | 16..) {
        return Err(MalformedFile("version"));
    }
    if u32_at(thread, 8, "flags")? & LAST == 0 {
        return Ok(None);
    }
    let process = match find(fields, OF_PROCESS)? {
        Some(process) => Some(find(process, STATS)?.ok_or(MalformedFile("record of a process"))?),
        None => None,
    };
    let pid = u32_at(thread, 368, "process")?;
    let is_first = u32_at(thread, 128, "thread")? == pid;
    let status = u32_at(thread, 4, "status")? as i32;
    let cpu = u64_at(process.unwrap_or(thread), 72, "CPU time")?;
    let peak = u64_at(thread, 200, "peak")?;
    let moved = ExitIo {
        read_bytes: u64_at(thread, 216, "bytes read")?,
        written_bytes: u64_at(thread, 224, "bytes written")?,
        storage_read_bytes: u64_at(thread, 248, "bytes read from storage")?,
        storage_written_bytes: u64_at(thread, 256, "bytes written to storage")?,
    };
    Ok(Some(ExitRecord {
        pid,
        status: is_first.then_some(status),
        cpu: Duration::from_nanos(cpu),
        peak_rss_bytes: (peak > 0).then(|| peak.saturating_mul(1024)),
        io: process.is_none().then_some(moved),
    }))
}

/// The type of a complete message, and its attributes.
fn message(bytes: &[u8]) -> Result<(u16, &[u8]), MalformedFile> {
    let length = u32_at(bytes, 0, "netlink length")? as usize;
    let fields = bytes.get(20..length).ok_or(MalformedFile("netlink length"))?;
    Ok((u16_at(bytes, 4, "netlink type")?, fields))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::super::tests::parser_tests;
    use super::*;

    const FAMILY: u16 = 31;

    fn field(kind: u16, content: &[u8]) -> Vec<u8> {
        let mut bytes = (4 + content.len() as u16).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(content);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn message_of(kind: u16, fields: &[u8]) -> Vec<u8> {
        let mut bytes = (20 + fields.len() as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 14]);
        bytes.extend(fields);
        bytes
    }

    /// `struct taskstats` of an exit, with these 32-bit values at these offsets.
    fn stats(words: &[(usize, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; 416];
        let every = [(0, 13), (4, 0x700), (72, 250_000_000), (200, 2048), (216, 4096), (368, 20)];
        for (place, word) in every.iter().chain(words) {
            bytes[*place..place + 4].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    fn record(kind: u16, thread: u32, stats: &[u8]) -> Vec<u8> {
        field(kind, &[field(1, &thread.to_ne_bytes()), field(STATS, stats)].concat())
    }

    fn read(fields: &[u8]) -> Result<Option<ExitRecord>, MalformedFile> {
        parse(&message_of(FAMILY, fields), FAMILY)
    }

    #[test]
    fn record_of_a_single_thread_is_complete() {
        let only = stats(&[(8, LAST), (128, 20)]);
        let exit = read(&record(OF_THREAD, 20, &only)).unwrap().unwrap();
        assert_eq!((exit.pid, exit.status), (20, Some(0x700)));
        assert_eq!(exit.cpu, Duration::from_millis(250));
        assert_eq!(exit.peak_rss_bytes, Some(2 << 20));
        assert_eq!(exit.io.unwrap().read_bytes, 4096);
    }

    #[test]
    fn threads_sum_cpu_time_and_share_peak_memory() {
        let last = stats(&[(8, LAST), (128, 21)]);
        let all = stats(&[(72, 900_000_000), (200, 0), (368, 0)]);
        let both = [record(OF_THREAD, 21, &last), record(OF_PROCESS, 20, &all)].concat();
        let exit = read(&both).unwrap().unwrap();
        assert_eq!((exit.pid, exit.cpu), (20, Duration::from_millis(900)));
        assert_eq!(exit.peak_rss_bytes, Some(2 << 20));
        assert_eq!((exit.status, exit.io), (None, None));
    }

    #[test]
    fn thread_exit_is_not_a_process_exit() {
        assert_eq!(read(&record(OF_THREAD, 21, &stats(&[(128, 21)]))), Ok(None));
    }

    #[test]
    fn process_without_memory_has_no_peak() {
        let only = stats(&[(8, LAST), (128, 20), (200, 0)]);
        let exit = read(&record(OF_THREAD, 20, &only)).unwrap().unwrap();
        assert_eq!(exit.peak_rss_bytes, None);
    }

    #[test]
    fn versions_with_another_layout_are_refused() {
        for version in [8, 11, 15] {
            let odd = read(&record(OF_THREAD, 20, &stats(&[(0, version)])));
            assert_eq!(odd, Err(MalformedFile("version")));
        }
        assert_eq!(read(&record(OF_THREAD, 20, &stats(&[(0, 17)]))), Ok(None));
    }

    #[test]
    fn family_id_is_read_and_errors_are_recognised() {
        let named = message_of(16, &[field(2, b"TASKSTATS\0"), field(1, &[31, 0])].concat());
        assert_eq!(family(&named), Ok(31));
        assert_eq!(errno(&named), None);
        let mut refused = message_of(ERROR, &[]);
        refused[16..].copy_from_slice(&(-1i32).to_ne_bytes());
        assert_eq!(errno(&refused), Some(1));
        assert_eq!(parse(&named, FAMILY), Err(MalformedFile("family")));
    }

    static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let only = stats(&[(8, LAST), (128, 20)]);
        message_of(FAMILY, &record(OF_THREAD, 20, &only))
    });

    parser_tests! {
        cut: fn truncated_record_is_refused() {
            |bytes| parse(bytes, FAMILY), &WHOLE => refused;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            |bytes| parse(bytes, FAMILY), family, errno; &WHOLE
        }
    }
}
