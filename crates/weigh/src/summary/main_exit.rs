//! The size that `wait4` reports for the command's process, and whether it is the command's.
//!
//! `ru_maxrss` of a process includes that of its reaped children, and of the process before exec (a
//! vforked one carries its parent's size). So it is taken for the command's own process where
//! neither is possible, which is known at the end of the run, and for others only when nothing else
//! is known of them.

use crate::catalog::metrics::ProcessEvents;
use crate::model::{ProcessId, Table, Usage};
use crate::record::FinalCounters;

/// What is known of the command's process at its end, or of those of several.
#[derive(Debug, Clone)]
pub(crate) struct MainExit(Vec<Main>);

#[derive(Debug, Clone)]
struct Main {
    id: ProcessId,
    /// Whether it has reaped a child.
    has_reaped: bool,
    size: Option<u64>,
}

impl MainExit {
    /// Of the commands' processes.
    pub(crate) fn of(mains: &[ProcessId]) -> MainExit {
        let main = |id: &ProcessId| Main { id: *id, has_reaped: false, size: None };
        let mut mains: Vec<Main> = mains.iter().map(main).collect();
        mains.sort_unstable_by_key(|main| main.id);
        MainExit(mains)
    }

    fn find(&mut self, id: ProcessId) -> Option<&mut Main> {
        let place = self.0.binary_search_by_key(&id, |main| main.id).ok()?;
        self.0.get_mut(place)
    }

    /// Adds a row of a process.
    pub(crate) fn row(&mut self, id: ProcessId, table: &Table, row: usize) {
        if let Some(main) = self.find(id) {
            let children = table.get::<ProcessEvents>(row).children_faults;
            main.has_reaped |= children.is_some_and(|faults| faults > 0);
        }
    }

    /// A process was reaped; returns whether its size may be the command's own, which is known at
    /// the end of the run.
    pub(crate) fn ended(&mut self, id: ProcessId, usage: &Usage) -> bool {
        let Some(main) = self.find(id).filter(|main| !main.has_reaped) else { return false };
        main.size = Some(usage.largest_rss_bytes);
        true
    }

    /// The sizes that are the commands' own.
    pub(crate) fn own(&mut self, account: &FinalCounters) -> Vec<(ProcessId, u64)> {
        let own = |main: &mut Main| Some((main.id, account.proven_maxrss(main.size.take()?)?));
        self.0.iter_mut().filter_map(own).collect()
    }
}
