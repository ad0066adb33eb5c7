//! The heaviest processes of a run, however many there are.
//!
//! The list is cut when it has grown to a few times what is retained, so the cost per process is
//! small.

use super::Process;
use crate::model::ProcessId;
use crate::summary::tools::by_weight;

/// The longest useful list of processes.
pub(super) const MOST_PROCESSES: usize = 500;
/// How much a list may grow beyond what is retained before it is cut.
const SLACK: usize = 4;

/// What is at these places.
fn only<T>(list: Vec<T>, places: &[usize]) -> Vec<T> {
    let mut slots: Vec<Option<T>> = list.into_iter().map(Some).collect();
    places.iter().filter_map(|place| slots[*place].take()).collect()
}

/// Exited processes.
#[derive(Debug)]
pub(super) struct ExitedProcesses {
    main_ids: Vec<ProcessId>,
    /// The commands' own, which are always listed.
    mains: Vec<Process>,
    list: Vec<Process>,
    left_out: u64,
}

impl ExitedProcesses {
    /// No process has exited yet.
    pub(super) fn of(main_ids: Vec<ProcessId>) -> ExitedProcesses {
        ExitedProcesses { main_ids, mains: Vec::new(), list: Vec::new(), left_out: 0 }
    }

    pub(super) fn push(&mut self, process: Process) {
        // Of very many commands not even these are all listed.
        if self.mains.len() < MOST_PROCESSES && self.main_ids.contains(&process.id) {
            self.mains.push(process);
            return;
        }
        self.list.push(process);
        if self.list.len() >= SLACK * MOST_PROCESSES {
            self.cut(MOST_PROCESSES);
        }
    }

    /// A command's own process had this size.
    pub(super) fn raise_main_size(&mut self, id: ProcessId, size: u64) {
        if let Some(main) = self.mains.iter_mut().find(|main| main.id == id) {
            main.largest_bytes = main.largest_bytes.max(Some(size));
        }
    }

    fn cut(&mut self, keep: usize) {
        if self.list.len() <= keep {
            return;
        }
        let weights: Vec<_> =
            self.list.iter().map(|process| (process.cpu_seconds, process.largest_bytes)).collect();
        let mut places = by_weight(&weights);
        places.truncate(keep);
        // In the order of exits, so that ties are always cut in the same way.
        places.sort_unstable();
        self.left_out += (self.list.len() - places.len()) as u64;
        self.list = only(std::mem::take(&mut self.list), &places);
    }

    /// Those with most CPU time first, and how many are not among them.
    pub(super) fn finish(mut self) -> (Vec<Process>, u64) {
        self.cut(MOST_PROCESSES - self.mains.len());
        self.list.append(&mut self.mains);
        self.list.sort_by(|a, b| {
            let cpu = |process: &Process| process.cpu_seconds.unwrap_or(0.0);
            let size = b.largest_bytes.cmp(&a.largest_bytes);
            cpu(b).total_cmp(&cpu(a)).then(size).then(a.id.cmp(&b.id))
        });
        (self.list, self.left_out)
    }
}
