//! Swapping and OOM kills of the machine: `/proc/vmstat`.
//!
//! About 180 lines `key value` (proc_vmstat(5)), readable by every user.
//!
//! What surprises: swapped pages are counted in pages, though `pgpgin` above them is in KiB; and
//! out-of-memory kills are counted here (4.13), whichever cgroup the process was in.

use super::MalformedFile;
use super::fields::{FieldCursor, only_number};

/// Counts since boot; `None` is a line this kernel does not write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vmstat {
    /// Pages swapped in (`pswpin`).
    pub swapped_in: Option<u64>,
    /// Pages swapped out (`pswpout`).
    pub swapped_out: Option<u64>,
    /// Out-of-memory kills (`oom_kill`).
    pub oom_kills: Option<u64>,
}

/// Reads the bytes of `/proc/vmstat`.
pub fn parse(bytes: &[u8]) -> Result<Vmstat, MalformedFile> {
    let mut vmstat = Vmstat::default();
    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        // Nearly all other lines are rejected by their first letter.
        let (slot, value, field) = match line.first() {
            Some(b'p') if line.starts_with(b"pswpin ") => {
                (&mut vmstat.swapped_in, &line[7..], "pswpin")
            }
            Some(b'p') if line.starts_with(b"pswpout ") => {
                (&mut vmstat.swapped_out, &line[8..], "pswpout")
            }
            Some(b'o') if line.starts_with(b"oom_kill ") => {
                (&mut vmstat.oom_kills, &line[9..], "oom_kill")
            }
            _ => continue,
        };
        *slot = Some(only_number(value, field)?);
    }
    Ok(vmstat)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{of_this_kernel, parser_tests};
    use super::*;

    const VMSTAT: &[u8] = b"nr_free_pages 5439045\npgpgin 74593289\npswpin 12\npswpout 345\n\
        pgalloc_dma 0\noom_kill 2\noom_kill_other 9\n";

    #[test]
    fn three_counters_are_found_among_many() {
        let expected = Vmstat { swapped_in: Some(12), swapped_out: Some(345), oom_kills: Some(2) };
        assert_eq!(parse(VMSTAT), Ok(expected));
        assert_eq!(parse(b"pgpgin 1\n"), Ok(Vmstat::default()));
        assert_eq!(parse(b"pswpin x\n"), Err(MalformedFile("pswpin")));
    }

    parser_tests! {
        cut: fn truncated_file_loses_counts_but_changes_none() {
            parse, VMSTAT => may_lose(swapped_in, swapped_out, oom_kills);
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; VMSTAT
        }
    }

    #[test]
    fn this_kernel_has_the_counters() {
        assert!(parse(&of_this_kernel("/proc/vmstat")).unwrap().oom_kills.is_some());
    }
}
