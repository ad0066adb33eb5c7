//! How processes that weigh did not start are noticed: no metrics, but `weigh doctor` reports
//! whether it works.
//!
//! Source: the process connector (`host::connector`), and for root taskstats (`host::taskstats`).
//! Without the first, processes are found by listing `/proc`, and those that live shorter than an
//! interval are missed.

use super::Probe;
use crate::host::Host;
use crate::host::connector::{Connector, Error};
use crate::host::taskstats::{self, Taskstats};

/// A kernel interface that reports processes that weigh did not start. It has no metrics, so it is
/// not among the sources, and `--collect` and `--skip` do not name it.
pub struct Notifier {
    /// Its name.
    pub name: &'static str,
    /// What it is for, in a few words.
    pub about: &'static str,
    /// Whether it is available here.
    pub probe: fn(&Host) -> Probe,
}

/// Every notifier.
pub const NOTIFIERS: &[Notifier] = &[
    Notifier {
        name: "connector",
        about: "new processes are reported at once, also short ones",
        probe: |_| match Connector::open() {
            Ok(_) => Probe::Ready,
            Err(error) => refused(&error),
        },
    },
    Notifier {
        name: "taskstats",
        about: "peak memory of short processes that weigh did not start",
        probe: |host| match Taskstats::open(&host.sys) {
            Ok(_) => Probe::Ready,
            Err(error @ taskstats::Error::NotAllowed) => {
                Probe::Denied { why: error.to_string(), hint: "sudo weigh watch …".to_owned() }
            }
            Err(error) => Probe::Absent { why: error.to_string() },
        },
    },
];

/// Descriptors that notifiers keep open: a socket each.
pub(super) const DESCRIPTORS: usize = NOTIFIERS.len();

/// Why there are no events, and what would enable them.
fn refused(error: &Error) -> Probe {
    let why = error.to_string();
    match error {
        Error::Absent | Error::Failed(_) => Probe::Absent { why },
        Error::NotAllowed => Probe::Denied { why, hint: "sudo weigh watch …".to_owned() },
        Error::OtherNetwork | Error::NoAnswer => Probe::Denied {
            why,
            hint: "run weigh outside the container, or start that with --pid=host --network=host"
                .to_owned(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn container_is_denied_and_missing_kernel_support_absent() {
        let denied = |error| matches!(refused(&error), Probe::Denied { .. });
        assert!(
            denied(Error::OtherNetwork) && denied(Error::NoAnswer) && denied(Error::NotAllowed)
        );
        assert!(!denied(Error::Absent));
    }
}
