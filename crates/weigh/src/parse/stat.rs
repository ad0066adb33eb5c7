//! State and usage of one process: `/proc/<pid>/stat`, and `/proc/<pid>/task/<tid>/stat`.
//!
//! One line of 52 columns (proc_pid_stat(5)), readable by every user; with `hidepid` the processes
//! of other users are hidden. Read to column 24.
//!
//! What surprises: the name may contain anything, parentheses, spaces and newlines included, so
//! columns are counted from the last `)`. The name has at most 15 bytes (63 for kernel workers).

use super::MalformedFile;
use super::fields::{FieldCursor, find, find_last};

/// State and usage of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat<'a> {
    /// The process id, as the reader's pid namespace counts.
    pub pid: u32,
    /// The short name of the program, cut by the kernel at 15 bytes; any bytes but NUL.
    pub name: &'a [u8],
    /// The state as one letter: `R` running, `S` sleeping, `D` waiting for a device, `Z` zombie.
    pub state: u8,
    /// The process id of the parent, 0 if it has none that the reader can see.
    pub parent: u32,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Minor page faults of reaped children.
    pub children_minor_faults: u64,
    /// Major page faults.
    pub major_faults: u64,
    /// Major page faults of reaped children.
    pub children_major_faults: u64,
    /// CPU time in the program's own code, in clock ticks (usually 1/100 s).
    pub user_ticks: u64,
    /// CPU time in the kernel on the program's behalf, in clock ticks.
    pub system_ticks: u64,
    /// User time of reaped children, in clock ticks.
    pub children_user_ticks: u64,
    /// System time of reaped children, in clock ticks.
    pub children_system_ticks: u64,
    /// How many threads the process has.
    pub threads: u32,
    /// Start time in clock ticks since boot; with the pid it identifies a process.
    pub started: u64,
    /// Virtual memory, in bytes.
    pub virtual_bytes: u64,
    /// Resident memory, in pages; the kernel batches this counter, so it may lag by some pages.
    pub resident_pages: u64,
}

/// Reads the bytes of `/proc/<pid>/stat`.
pub fn parse(bytes: &[u8]) -> Result<Stat<'_>, MalformedFile> {
    let open = find(bytes, b'(').ok_or(MalformedFile("comm"))?;
    let close =
        find_last(bytes, b')').filter(|&close| close > open).ok_or(MalformedFile("comm"))?;
    let pid = FieldCursor::new(&bytes[..open]).number32("pid")?;
    let name = &bytes[open + 1..close];

    let mut columns = FieldCursor::new(&bytes[close + 1..]);
    columns.must_pass(b' ', "state")?;
    let state = columns.byte("state")?;
    columns.must_pass(b' ', "state")?;
    let parent = columns.number32("ppid")?;
    for skipped in ["pgrp", "session", "tty_nr", "tpgid", "flags"] {
        columns.skip_column(skipped)?;
    }
    let minor_faults = columns.number("minflt")?;
    let children_minor_faults = columns.number("cminflt")?;
    let major_faults = columns.number("majflt")?;
    let children_major_faults = columns.number("cmajflt")?;
    let user_ticks = columns.number("utime")?;
    let system_ticks = columns.number("stime")?;
    let children_user_ticks = signed_ticks(&mut columns, "cutime")?;
    let children_system_ticks = signed_ticks(&mut columns, "cstime")?;
    for skipped in ["priority", "nice"] {
        columns.skip_column(skipped)?;
    }
    let threads = columns.number32("num_threads")?;
    columns.skip_column("itrealvalue")?;
    let started = columns.number("starttime")?;
    let virtual_bytes = columns.number("vsize")?;
    let resident_pages = columns.number("rss")?;

    Ok(Stat {
        pid,
        name,
        state,
        parent,
        minor_faults,
        children_minor_faults,
        major_faults,
        children_major_faults,
        user_ticks,
        system_ticks,
        children_user_ticks,
        children_system_ticks,
        threads,
        started,
        virtual_bytes,
        resident_pages,
    })
}

/// cutime and cstime, the only ticks that proc_pid_stat(5) prints with a sign.
///
/// A negative sum means that the kernel lost count of the children, while all other columns of the
/// process are valid. It reads as 0, so that the process is not lost with it.
fn signed_ticks(columns: &mut FieldCursor<'_>, field: &'static str) -> Result<u64, MalformedFile> {
    let mut ahead = *columns;
    ahead.must_pass(b' ', field)?;
    if !ahead.passes(b'-') {
        return columns.number(field);
    }
    ahead.digits(field)?;
    columns.skip_column(field)?;
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::super::tests::parser_tests;
    use super::*;

    const SOLVER: &[u8] = b"4182 (solver) S 4100 4182 4100 34816 4182 4194304 1520 77 3 1 \
        9021 412 15 6 20 0 8 0 105005 313344000 35811 18446744073709551615 94811637415936 \
        94811637435817 140726227827040 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0\n";

    const NASTY: &[u8] = b"7 (a) R 1 (\n) ) Z 1 -1 -1 0 -1 4 5 6 7 8 9 10 -11 -12 20 0 1 0 42 0 \
        0 18446744073709551615 0 0\n";

    #[test]
    fn columns_are_read_into_their_fields() {
        let expected = Stat {
            pid: 4182,
            name: b"solver",
            state: b'S',
            parent: 4100,
            minor_faults: 1520,
            children_minor_faults: 77,
            major_faults: 3,
            children_major_faults: 1,
            user_ticks: 9021,
            system_ticks: 412,
            children_user_ticks: 15,
            children_system_ticks: 6,
            threads: 8,
            started: 105005,
            virtual_bytes: 313_344_000,
            resident_pages: 35811,
        };
        assert_eq!(parse(SOLVER), Ok(expected));
    }

    #[test]
    fn name_may_contain_parentheses_spaces_and_newlines() {
        let stat = parse(NASTY).unwrap();
        assert_eq!(stat.name, b"a) R 1 (\n) ");
        assert_eq!((stat.pid, stat.state, stat.parent, stat.started), (7, b'Z', 1, 42));
    }

    #[test]
    fn negative_time_of_children_reads_as_zero() {
        let stat = parse(NASTY).unwrap();
        assert_eq!((stat.children_user_ticks, stat.children_system_ticks), (0, 0));
        assert_eq!(stat.system_ticks, 10);
    }

    #[test]
    fn error_names_the_column() {
        assert_eq!(parse(b""), Err(MalformedFile("comm")));
        assert_eq!(parse(b"1 )x("), Err(MalformedFile("comm")));
        assert_eq!(parse(b"x (a) R 1 "), Err(MalformedFile("pid")));
        assert_eq!(parse(b"1 (a) R -1 "), Err(MalformedFile("ppid")));
        assert_eq!(parse(b"1 (a) R 0 1 1 0 -1 4 5 6 7 8 9x "), Err(MalformedFile("utime")));
    }

    /// What the procfs crate makes of the same bytes.
    fn agrees(ours: Stat<'_>, theirs: procfs::process::Stat) {
        assert_eq!(i64::from(ours.pid), i64::from(theirs.pid));
        assert_eq!(ours.name, theirs.comm.as_bytes());
        assert_eq!(char::from(ours.state), theirs.state);
        assert_eq!(i64::from(ours.parent), i64::from(theirs.ppid));
        assert_eq!(
            (ours.minor_faults, ours.children_minor_faults),
            (theirs.minflt, theirs.cminflt)
        );
        assert_eq!(
            (ours.major_faults, ours.children_major_faults),
            (theirs.majflt, theirs.cmajflt)
        );
        assert_eq!((ours.user_ticks, ours.system_ticks), (theirs.utime, theirs.stime));
        assert_eq!(i64::try_from(ours.children_user_ticks).unwrap(), theirs.cutime);
        assert_eq!(i64::try_from(ours.children_system_ticks).unwrap(), theirs.cstime);
        assert_eq!(i64::from(ours.threads), theirs.num_threads);
        assert_eq!((ours.started, ours.resident_pages), (theirs.starttime, theirs.rss));
        assert_eq!(ours.virtual_bytes, theirs.vsize);
    }

    parser_tests! {
        cut: fn truncated_line_is_refused_or_reads_the_same() {
            parse, SOLVER => same;
            // A cut in the name's own ")" looks like a finished name, but then the columns are
            // missing.
            parse, NASTY => same;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; SOLVER, NASTY
        }

        procfs: fn procfs_crate_agrees() {
            parse, "/proc/self/stat" => agrees;
        }
    }
}
