//! Which processes of the run have other files open than before: they may have opened a GPU.
//!
//! Reading all descriptors of all processes at each tick would cost more than everything else. So
//! they are read only of a process that started, called exec, has another number of open files, or
//! ran half a minute after the last time: one file may have replaced another.

use std::collections::HashMap;
use std::time::Duration;

use crate::catalog::Scope;
use crate::catalog::metrics::ProcessState;
use crate::host::{Host, ProcPath};
use crate::model::{Change, Entity, ProcessId, Tick};

/// How long an unchanged number of files is trusted.
const TRUSTED: Duration = Duration::from_secs(30);

/// Processes that are remembered before those that exited are removed.
const CAPACITY: usize = 256;

/// The processes of the run, and how many files each had open when.
#[derive(Debug, Default)]
pub(super) struct OpenFiles {
    counts: HashMap<ProcessId, (Option<u64>, Duration)>,
    capacity: usize,
}

impl OpenFiles {
    /// The processes whose files may have changed since the last tick.
    pub(super) fn changed(&mut self, host: &Host, tick: &Tick) -> Vec<ProcessId> {
        let mut changed = Vec::new();
        for change in &tick.changes {
            match change {
                Change::Started { id, .. } | Change::Exec { id, .. } => {
                    self.counts.insert(*id, (None, tick.at));
                    changed.push(*id);
                }
                Change::Exited { id, .. } => drop(self.counts.remove(id)),
                Change::Gpu(_) => {}
            }
        }
        let Some(table) = tick.table(Scope::Process) else { return changed };
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Process(id) = entity else { continue };
            let count = table.get::<ProcessState>(row).files_open;
            let before = self.counts.get(id);
            let is_same = before.is_some_and(|(before, at)| {
                *before == count && tick.at.saturating_sub(*at) < TRUSTED
            });
            if !is_same {
                let is_listed = before.is_some_and(|(n, at)| n.is_none() && *at == tick.at);
                self.counts.insert(*id, (count, tick.at));
                changed.extend((!is_listed).then_some(*id));
            }
        }
        self.remove_exited(host);
        changed
    }

    /// Not every exit is reported here, and a run may have any number of processes.
    fn remove_exited(&mut self, host: &Host) {
        if self.counts.len() > self.capacity.max(CAPACITY) {
            self.counts.retain(|id, _| host.proc.has(ProcPath::new(id.pid, "stat").as_c_str()));
            self.capacity = self.counts.len() * 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Row;
    use crate::host::fake::FakeHost;
    use crate::model::Program;

    const SOLVER: ProcessId = ProcessId { pid: 7, started: 70 };

    fn tick(second: u64, open: Option<u64>) -> Tick {
        let mut tick = Tick::new(&[ProcessState::METRICS]);
        tick.begin(Duration::from_secs(second));
        let row = ProcessState { files_open: open, ..ProcessState::default() };
        tick.put(Entity::Process(SOLVER), &row);
        tick
    }

    #[test]
    fn files_are_listed_when_their_number_changes_or_half_a_minute_later() {
        let (fake, mut files) = (FakeHost::new(), OpenFiles::default());
        let counts = [(0, 3), (1, 3), (2, 4), (3, 4), (31, 4), (32, 4), (33, 4)];
        let changed = counts.map(|(second, open)| {
            !files.changed(&fake.host(), &tick(second, Some(open))).is_empty()
        });
        assert_eq!(changed, [true, false, true, false, false, true, false]);
    }

    #[test]
    fn files_of_a_started_process_are_listed_once() {
        let mut files = OpenFiles::default();
        let mut tick = tick(0, Some(3));
        let started = Change::Started { id: SOLVER, parent: 1, program: Program::default() };
        tick.changes.push(started);
        assert_eq!(files.changed(&FakeHost::new().host(), &tick), [SOLVER]);
    }

    #[test]
    fn exited_processes_are_removed() {
        let (fake, mut files) = (FakeHost::new().proc("7/stat", ""), OpenFiles::default());
        let exited = (0..CAPACITY as u32).map(|n| ProcessId { pid: 1000 + n, started: 1 });
        files.counts.extend(exited.map(|id| (id, (None, Duration::ZERO))));
        files.changed(&fake.host(), &tick(1, Some(3)));
        assert_eq!(files.counts.keys().copied().collect::<Vec<_>>(), [SOLVER]);
    }
}
