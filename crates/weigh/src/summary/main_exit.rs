//! The size with which `wait4` gives the command's process back, and whose it is.
//!
//! `ru_maxrss` of a process is also that of the children it has waited for, and of
//! whatever it was before exec (a vforked one carries its parent's size). So it is
//! taken for the command's own process where neither can be, which the end of the run
//! tells, and for others only when nothing else is known of them.

use crate::collect::process::ProcessEvents;
use crate::host::wait::Usage;
use crate::record::events::RunEnd;
use crate::sample::{ProcessId, Table};

/// What is known of the command's process at its end.
#[derive(Debug)]
pub(crate) struct MainExit {
    main: ProcessId,
    /// Whether it has waited for a child.
    waited: bool,
    size: Option<u64>,
}

impl MainExit {
    /// Of the command's process.
    pub(crate) fn of(main: ProcessId) -> MainExit {
        MainExit { main, waited: false, size: None }
    }

    /// Takes in a row about a process.
    pub(crate) fn row(&mut self, id: ProcessId, table: &Table, row: usize) {
        if id == self.main {
            let children = table.get::<ProcessEvents>(row).children_faults;
            self.waited |= children.is_some_and(|faults| faults > 0);
        }
    }

    /// A process was reaped; says whether its size may be the command's own, which the end of
    /// the run tells.
    pub(crate) fn ended(&mut self, id: ProcessId, usage: &Usage) -> bool {
        let may_be = id == self.main && !self.waited;
        if may_be {
            self.size = Some(usage.largest_rss_bytes);
        }
        may_be
    }

    /// The size, when it is the command's own.
    pub(crate) fn own(&mut self, end: &RunEnd) -> Option<u64> {
        end.after_exec(self.size.take()?)
    }
}
