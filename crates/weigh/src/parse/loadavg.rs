//! The number of threads and the last pid: `/proc/loadavg`.
//!
//! One line (proc_loadavg(5)), readable by every user. It is the cheapest way to see that a process
//! was started since the last read: the last pid has changed.
//!
//! What surprises: the number after the slash counts threads, not processes, of
//! the whole machine, even inside a container; the last pid is the last one of
//! the reader's pid namespace. New threads take pids as well.
//! The load averages themselves say nothing about one run and are not read.

use super::MalformedFile;
use super::fields::FieldCursor;

/// Threads of the machine and the last pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loadavg {
    /// Threads that exist on the machine, kernel threads included.
    pub threads: u32,
    /// The pid or thread id that was allocated last.
    pub last_pid: u32,
}

/// Reads the bytes of `/proc/loadavg`.
pub fn parse(bytes: &[u8]) -> Result<Loadavg, MalformedFile> {
    let mut columns = FieldCursor::new(bytes);
    for average in ["1 minute load", "5 minute load", "15 minute load"] {
        columns.skip_column(average)?;
    }
    columns.must_pass(b' ', "runnable threads")?;
    columns.digits("runnable threads")?;
    columns.must_pass(b'/', "threads")?;
    Ok(Loadavg { threads: columns.number32("threads")?, last_pid: columns.number32("last pid")? })
}

#[cfg(test)]
mod tests {
    use super::super::tests::parser_tests;
    use super::*;

    const QUIET: &[u8] = b"0.61 0.75 0.35 1/84 5783\n";

    #[test]
    fn thread_count_is_after_the_slash() {
        assert_eq!(parse(QUIET), Ok(Loadavg { threads: 84, last_pid: 5783 }));
    }

    #[test]
    fn error_names_the_column() {
        assert_eq!(parse(b"0.1 0.2\n"), Err(MalformedFile("15 minute load")));
        assert_eq!(parse(b"0.1 0.2 0.3 4 5\n"), Err(MalformedFile("threads")));
        assert_eq!(parse(b"0.1 0.2 0.3 1/4 \n"), Err(MalformedFile("last pid")));
        assert_eq!(parse(b"0.1 0.2 0.3 1/4294967296 5\n"), Err(MalformedFile("threads")));
    }

    parser_tests! {
        cut: fn truncated_line_is_refused() {
            parse, QUIET => refused;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; QUIET
        }
    }
}
