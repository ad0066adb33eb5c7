//! Time on and time waiting for a CPU, to the nanosecond: `/proc/<pid>/schedstat`.
//!
//! Three numbers on one line (the kernel's Documentation/scheduler/sched-stats),
//! readable by every user.
//!
//! What surprises: under `/proc/<pid>` it is the main thread alone; the others
//! have theirs under `task/<tid>/schedstat`. A kernel that has the file but neither
//! CONFIG_SCHEDSTATS nor delay accounting switched on writes three zeros.

use super::MalformedFile;
use super::fields::FieldCursor;

/// How long one thread ran and how long it waited for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedstat {
    /// Nanoseconds spent on a CPU.
    pub running_ns: u64,
    /// Nanoseconds spent runnable and waiting for a CPU.
    pub waiting_ns: u64,
    /// How many times it was scheduled.
    pub slices: u64,
}

/// Reads the bytes of `/proc/<pid>/schedstat` or `/proc/<pid>/task/<tid>/schedstat`.
pub fn parse(bytes: &[u8]) -> Result<Schedstat, MalformedFile> {
    let mut columns = FieldCursor::new(bytes);
    Ok(Schedstat {
        running_ns: columns.number("running time")?,
        waiting_ns: columns.number("waiting time")?,
        slices: columns.number("time slices")?,
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::parser_tests;
    use super::*;

    const THREAD: &[u8] = b"965338 1207 31\n";

    #[test]
    fn the_three_numbers_are_run_wait_and_slices() {
        let expected = Schedstat { running_ns: 965_338, waiting_ns: 1207, slices: 31 };
        assert_eq!(parse(THREAD), Ok(expected));
    }

    #[test]
    fn error_names_the_column() {
        assert_eq!(parse(b"12\n"), Err(MalformedFile("waiting time")));
        assert_eq!(parse(b"12 x 3\n"), Err(MalformedFile("waiting time")));
    }

    parser_tests! {
        cut: fn truncated_line_is_refused() {
            parse, THREAD => refused;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; THREAD
        }
    }
}
