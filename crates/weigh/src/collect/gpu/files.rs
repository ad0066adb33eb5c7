//! Which processes of the run have other files open than before: they may have opened a GPU.
//!
//! To look through all descriptors of all processes at each tick would cost more than everything
//! else. So it is done for a process that is new, that became another program, whose number of
//! open files changed, or that ran half a minute later: one file may have taken the place of
//! another.

use std::collections::HashMap;
use std::time::Duration;

use crate::catalog::Scope;
use crate::catalog::metrics::ProcessState;
use crate::host::{Host, ProcPath};
use crate::model::{Change, Entity, ProcessId, Tick};

/// How long the number of files is believed.
const BELIEVED: Duration = Duration::from_secs(30);

/// Processes that may be known before those that ended are looked for.
const ROOM: usize = 256;

/// The processes of the run, and how many files each had open when.
#[derive(Debug, Default)]
pub(super) struct Files {
    open: HashMap<ProcessId, (Option<u64>, Duration)>,
    room: usize,
}

impl Files {
    /// Those whose files are not what they were.
    pub(super) fn moved(&mut self, host: &Host, tick: &Tick) -> Vec<ProcessId> {
        let mut moved = Vec::new();
        for change in &tick.changes {
            match change {
                Change::Started { id, .. } | Change::Exec { id, .. } => {
                    self.open.insert(*id, (None, tick.at));
                    moved.push(*id);
                }
                Change::Exited { id } => drop(self.open.remove(id)),
                Change::Gpu(_) => {}
            }
        }
        let Some(table) = tick.table(Scope::Process) else { return moved };
        for (row, entity) in table.entities().iter().enumerate() {
            let Entity::Process(id) = entity else { continue };
            let now = table.get::<ProcessState>(row).files_open;
            let known = self.open.get(id);
            let is_same = known
                .is_some_and(|(open, at)| *open == now && tick.at.saturating_sub(*at) < BELIEVED);
            if !is_same {
                let is_told = known.is_some_and(|(open, at)| open.is_none() && *at == tick.at);
                self.open.insert(*id, (now, tick.at));
                moved.extend((!is_told).then_some(*id));
            }
        }
        self.forget(host);
        moved
    }

    /// Not everybody's end is told here, and a run may have any number of processes.
    fn forget(&mut self, host: &Host) {
        if self.open.len() > self.room.max(ROOM) {
            self.open.retain(|id, _| host.proc.has(ProcPath::new(id.pid, "stat").as_c_str()));
            self.room = self.open.len() * 2;
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
    fn files_are_looked_through_when_their_number_changes_or_half_a_minute_later() {
        let (fake, mut files) = (FakeHost::new(), Files::default());
        let looks = [(0, 3), (1, 3), (2, 4), (3, 4), (31, 4), (32, 4), (33, 4)];
        let moved: Vec<bool> = looks
            .map(|(second, open)| !files.moved(&fake.host(), &tick(second, Some(open))).is_empty())
            .into();
        assert_eq!(moved, [true, false, true, false, false, true, false]);
    }

    #[test]
    fn who_comes_is_looked_through_once() {
        let mut files = Files::default();
        let mut tick = tick(0, Some(3));
        let came = Change::Started { id: SOLVER, parent: 1, program: Program::default() };
        tick.changes.push(came);
        assert_eq!(files.moved(&FakeHost::new().host(), &tick), [SOLVER]);
    }

    #[test]
    fn processes_that_ended_are_forgotten() {
        let (fake, mut files) = (FakeHost::new().proc("7/stat", ""), Files::default());
        let ended = (0..ROOM as u32).map(|n| ProcessId { pid: 1000 + n, started: 1 });
        files.open.extend(ended.map(|id| (id, (None, Duration::ZERO))));
        files.moved(&fake.host(), &tick(1, Some(3)));
        assert_eq!(files.open.keys().copied().collect::<Vec<_>>(), [SOLVER]);
    }
}
