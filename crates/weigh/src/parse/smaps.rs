//! Proportional and private memory of a process: `/proc/<pid>/smaps_rollup`.
//!
//! One header line and about twenty lines `Key: value kB` (proc_pid_smaps(5)), since Linux 4.14.
//! Readable by the owner and root only, and expensive: the kernel walks all page tables of the
//! process, so the cost grows with its memory.
//!
//! What surprises: huge pages from hugetlbfs are in `Private_Hugetlb` or `Shared_Hugetlb` but in
//! neither `Rss` nor `Pss`, and shared ones are not divided by the number of processes that share
//! them. For a process without memory (zombie, kernel thread) the file can be opened, and reading
//! it fails with ESRCH, "No such process", or returns nothing.

use super::MalformedFile;
use super::fields::{FieldCursor, kilobytes};

/// Memory of one process, by how it is shared. All in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rollup {
    /// Memory in use, shared pages counted in full.
    pub rss: u64,
    /// Memory in use, shared pages divided by the number of processes that share them.
    pub pss: u64,
    /// The part of `pss` that is anonymous, and the part that is shared memory or in tmpfs; the
    /// rest is page cache. Since Linux 5.3.
    pub pss_anonymous: Option<u64>,
    /// See above.
    pub pss_shared_memory: Option<u64>,
    /// Memory that no other process uses, huge pages left out.
    pub private: u64,
    /// Huge pages of hugetlbfs that no other process uses.
    pub private_hugetlb: u64,
    /// Huge pages of hugetlbfs that other processes use as well.
    pub shared_hugetlb: u64,
    /// Memory that other processes use as well.
    pub shared: u64,
    /// Anonymous memory that is in swap.
    pub swap: Option<u64>,
    /// Swap divided by the number of processes that share it.
    pub swap_pss: Option<u64>,
}

/// Reads the bytes of `/proc/<pid>/smaps_rollup`.
pub fn parse(bytes: &[u8]) -> Result<Rollup, MalformedFile> {
    if bytes.is_empty() {
        return Err(MalformedFile("empty"));
    }
    let (mut rss, mut pss, mut swap, mut swap_pss) = (None, None, None, None);
    let (mut pss_anonymous, mut pss_shared_memory) = (None, None);
    let (mut private_clean, mut private_dirty) = (None, None);
    let (mut private_hugetlb, mut shared_hugetlb) = (None, None);
    let (mut shared_clean, mut shared_dirty) = (None, None);

    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        let Some(colon) = line.iter().position(|&byte| byte == b':') else { continue };
        let (slot, field) = match &line[..colon] {
            b"Rss" => (&mut rss, "Rss"),
            b"Pss" => (&mut pss, "Pss"),
            b"Pss_Anon" => (&mut pss_anonymous, "Pss_Anon"),
            b"Pss_Shmem" => (&mut pss_shared_memory, "Pss_Shmem"),
            b"Private_Clean" => (&mut private_clean, "Private_Clean"),
            b"Private_Dirty" => (&mut private_dirty, "Private_Dirty"),
            b"Private_Hugetlb" => (&mut private_hugetlb, "Private_Hugetlb"),
            b"Shared_Hugetlb" => (&mut shared_hugetlb, "Shared_Hugetlb"),
            b"Shared_Clean" => (&mut shared_clean, "Shared_Clean"),
            b"Shared_Dirty" => (&mut shared_dirty, "Shared_Dirty"),
            b"Swap" => (&mut swap, "Swap"),
            b"SwapPss" => (&mut swap_pss, "SwapPss"),
            _ => continue,
        };
        *slot = Some(kilobytes(&line[colon + 1..], field)?);
    }

    let private_clean: u64 = private_clean.ok_or(MalformedFile("Private_Clean"))?;
    let private_dirty = private_dirty.ok_or(MalformedFile("Private_Dirty"))?;
    let shared_clean: u64 = shared_clean.ok_or(MalformedFile("Shared_Clean"))?;
    let shared_dirty = shared_dirty.ok_or(MalformedFile("Shared_Dirty"))?;
    Ok(Rollup {
        rss: rss.ok_or(MalformedFile("Rss"))?,
        pss: pss.ok_or(MalformedFile("Pss"))?,
        pss_anonymous,
        pss_shared_memory,
        private: private_clean.saturating_add(private_dirty),
        // No line for huge pages means that this kernel has none (CONFIG_HUGETLB_PAGE).
        private_hugetlb: private_hugetlb.unwrap_or(0),
        shared_hugetlb: shared_hugetlb.unwrap_or(0),
        shared: shared_clean.saturating_add(shared_dirty),
        swap,
        swap_pss,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut_at_every_byte, lost_or_same, parser_tests};
    use super::*;

    const SOLVER: &[u8] = b"563b0df7e000-7ffd60d21000 ---p 00000000 00:00 0    [rollup]\n\
        Rss:                1608 kB\nPss:                 472 kB\nPss_Dirty:           112 kB\n\
        Pss_Anon:            108 kB\nPss_File:            360 kB\nPss_Shmem:             4 kB\n\
        Shared_Clean:       1452 kB\nShared_Dirty:          3 kB\nPrivate_Clean:        44 kB\n\
        Private_Dirty:       112 kB\nReferenced:         1608 kB\nShared_Hugetlb:        0 kB\n\
        Private_Hugetlb:       0 kB\nSwap:                 10 kB\nSwapPss:               5 kB\n\
        Locked:                0 kB\n";

    #[test]
    fn private_and_shared_are_sums() {
        let expected = Rollup {
            rss: 1608 * 1024,
            pss: 472 * 1024,
            pss_anonymous: Some(108 * 1024),
            pss_shared_memory: Some(4 * 1024),
            private: (44 + 112) * 1024,
            private_hugetlb: 0,
            shared_hugetlb: 0,
            shared: (1452 + 3) * 1024,
            swap: Some(10 * 1024),
            swap_pss: Some(5 * 1024),
        };
        assert_eq!(parse(SOLVER), Ok(expected));
    }

    #[test]
    fn huge_pages_are_separate_and_swap_may_be_missing() {
        let huge = b"Rss: 1 kB\nPss: 1 kB\nShared_Clean: 0 kB\nShared_Dirty: 0 kB\n\
            Private_Clean: 0 kB\nPrivate_Dirty: 1 kB\nPrivate_Hugetlb: 2048 kB\n\
            Shared_Hugetlb: 4096 kB\n";
        let rollup = parse(huge).unwrap();
        assert_eq!((rollup.private, rollup.private_hugetlb), (1024, 2048 * 1024));
        assert_eq!(rollup.shared_hugetlb, 4096 * 1024);
        assert_eq!((rollup.swap, rollup.swap_pss), (None, None));
        assert_eq!((rollup.pss_anonymous, rollup.pss_shared_memory), (None, None), "before 5.3");
    }

    #[test]
    fn process_without_memory_is_an_empty_file() {
        assert_eq!(parse(b""), Err(MalformedFile("empty")));
    }

    #[test]
    fn missing_line_is_named() {
        assert_eq!(parse(b"Rss: 1 kB\n"), Err(MalformedFile("Private_Clean")));
    }

    #[test]
    fn truncated_file_loses_values_but_changes_none() {
        cut_at_every_byte(SOLVER, parse, |part, whole| {
            // A kernel without huge pages has no lines for them either.
            let whole_but_swap = Rollup {
                swap: part.swap,
                swap_pss: part.swap_pss,
                pss_anonymous: part.pss_anonymous,
                pss_shared_memory: part.pss_shared_memory,
                private_hugetlb: part.private_hugetlb,
                shared_hugetlb: part.shared_hugetlb,
                ..*whole
            };
            *part == whole_but_swap
                && lost_or_same(&part.swap, &whole.swap)
                && lost_or_same(&part.swap_pss, &whole.swap_pss)
                && lost_or_same(&part.pss_anonymous, &whole.pss_anonymous)
                && lost_or_same(&part.pss_shared_memory, &whole.pss_shared_memory)
        });
    }

    /// What the procfs crate makes of the same bytes.
    fn agrees(ours: Rollup, theirs: procfs::process::SmapsRollup) {
        let theirs = &theirs.memory_map_rollup.0[0].extension.map;
        assert_eq!((ours.rss, ours.pss), (theirs["Rss"], theirs["Pss"]));
        assert_eq!(ours.private, theirs["Private_Clean"] + theirs["Private_Dirty"]);
        assert_eq!(ours.private_hugetlb, theirs.get("Private_Hugetlb").copied().unwrap_or(0));
        assert_eq!(ours.shared, theirs["Shared_Clean"] + theirs["Shared_Dirty"]);
        assert_eq!(ours.pss_anonymous, theirs.get("Pss_Anon").copied());
        assert_eq!(ours.pss_shared_memory, theirs.get("Pss_Shmem").copied());
        assert_eq!(ours.swap, theirs.get("Swap").copied());
        assert_eq!(ours.swap_pss, theirs.get("SwapPss").copied());
    }

    parser_tests! {
        mangled: fn arbitrary_bytes_never_panic() {
            parse; SOLVER
        }

        procfs: fn procfs_crate_agrees() {
            parse, "/proc/self/smaps_rollup" => agrees;
        }
    }
}
