//! What `stat` leaves out: peak memory, swap, huge pages and context switches, from
//! `/proc/<pid>/status`.
//!
//! Lines `Key:\tvalue` (proc_pid_status(5)), readable by every user. Only five of about sixty lines
//! are read.
//!
//! What surprises: a zombie and a kernel thread have no memory and therefore no
//! `Vm` lines. A newline in the process name is written as `\n`, so no process
//! can forge a line of its own. The context switches are those of the main thread
//! alone; the other threads have theirs under `task/<tid>/status`.

use super::MalformedFile;
use super::fields::{FieldCursor, kilobytes, only_number};

/// Peak memory, swap and context switches of one process or thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// Peak resident memory, in bytes; `None` for a zombie or kernel thread.
    pub resident_peak: Option<u64>,
    /// Anonymous memory that is in swap, in bytes; `None` also on kernels before 2.6.34.
    pub swap: Option<u64>,
    /// Huge pages of hugetlbfs (`MAP_HUGETLB`), shared ones in full, in bytes: neither resident
    /// memory nor its peak includes them. `None` also on kernels without huge pages or before 4.4.
    pub hugetlb: Option<u64>,
    /// Voluntary context switches of the main thread.
    pub voluntary_switches: Option<u64>,
    /// Involuntary context switches of the main thread.
    pub involuntary_switches: Option<u64>,
}

/// Reads the bytes of `/proc/<pid>/status`.
pub fn parse(bytes: &[u8]) -> Result<Status, MalformedFile> {
    if bytes.is_empty() {
        return Err(MalformedFile("empty"));
    }
    let mut status = Status::default();
    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        // The first letter rejects most lines before any key is compared.
        match line[0] {
            b'V' => {
                if let Some(value) = line.strip_prefix(b"VmHWM:") {
                    status.resident_peak = Some(kilobytes(value, "VmHWM")?);
                } else if let Some(value) = line.strip_prefix(b"VmSwap:") {
                    status.swap = Some(kilobytes(value, "VmSwap")?);
                }
            }
            b'H' => {
                if let Some(value) = line.strip_prefix(b"HugetlbPages:") {
                    status.hugetlb = Some(kilobytes(value, "HugetlbPages")?);
                }
            }
            b'v' => {
                if let Some(value) = line.strip_prefix(b"voluntary_ctxt_switches:") {
                    status.voluntary_switches =
                        Some(only_number(value, "voluntary_ctxt_switches")?);
                }
            }
            b'n' => {
                if let Some(value) = line.strip_prefix(b"nonvoluntary_ctxt_switches:") {
                    status.involuntary_switches =
                        Some(only_number(value, "nonvoluntary_ctxt_switches")?);
                }
            }
            _ => {}
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::super::tests::parser_tests;
    use super::*;

    const SOLVER: &[u8] = b"Name:\tsol\\nVmHWM:\t1 kB\nUmask:\t0022\nState:\tS (sleeping)\n\
        VmPeak:\t  306000 kB\nVmHWM:\t  164812 kB\nVmRSS:\t  160000 kB\nVmSwap:\t      12 kB\n\
        HugetlbPages:\t    2048 kB\nThreads:\t8\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t17\n";

    #[test]
    fn kilobytes_become_bytes() {
        let status = parse(SOLVER).unwrap();
        assert_eq!(status.resident_peak, Some(164_812 * 1024));
        assert_eq!(status.swap, Some(12 * 1024));
        assert_eq!(status.hugetlb, Some(2048 * 1024));
        assert_eq!(status.voluntary_switches, Some(150));
        assert_eq!(status.involuntary_switches, Some(17));
    }

    #[test]
    fn zombie_has_switches_but_no_memory() {
        let zombie = b"Name:\tsolver\nState:\tZ (zombie)\nThreads:\t1\n\
            voluntary_ctxt_switches:\t3\nnonvoluntary_ctxt_switches:\t0\n";
        let expected = Status {
            voluntary_switches: Some(3),
            involuntary_switches: Some(0),
            ..Status::default()
        };
        assert_eq!(parse(zombie), Ok(expected));
    }

    #[test]
    fn bad_number_is_an_error_not_a_missing_value() {
        assert_eq!(parse(b"VmHWM:\tmuch kB\n"), Err(MalformedFile("VmHWM")));
        assert_eq!(parse(b"VmSwap:\t1 2 kB\n"), Err(MalformedFile("VmSwap")));
        assert_eq!(parse(b""), Err(MalformedFile("empty")));
    }

    /// What the procfs crate makes of the same bytes.
    fn agrees(ours: Status, theirs: procfs::process::Status) {
        assert!(ours.resident_peak.is_some());
        assert_eq!(ours.resident_peak, theirs.vmhwm.map(|kib| kib * 1024));
        assert_eq!(ours.swap, theirs.vmswap.map(|kib| kib * 1024));
        assert_eq!(ours.hugetlb, theirs.hugetlbpages.map(|kib| kib * 1024));
        assert_eq!(ours.voluntary_switches, theirs.voluntary_ctxt_switches);
        assert_eq!(ours.involuntary_switches, theirs.nonvoluntary_ctxt_switches);
    }

    parser_tests! {
        cut: fn truncated_file_loses_values_but_changes_none() {
            parse, SOLVER =>
                may_lose(resident_peak, swap, hugetlb, voluntary_switches, involuntary_switches);
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; SOLVER
        }

        procfs: fn procfs_crate_agrees() {
            parse, "/proc/self/status" => agrees;
        }
    }
}
