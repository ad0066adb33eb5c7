//! The processes that match a rule, among all candidates.
//!
//! A process may exec a matching program long after it was started. With process events nothing has
//! to be checked again; otherwise processes that do not match are rechecked: recent ones at every
//! tick, because most call exec soon after fork, older ones in rotation.

use std::collections::VecDeque;

use super::rule::ProgramRule;
use crate::model::Program;

/// How many checks a process counts as recent.
const RECENT_CHECKS: u8 = 5;

/// How many older ones are checked at one tick: about a tenth of the cost of listing thousands of
/// processes.
const OLDER_PER_TICK: usize = 32;

/// The rule, and the processes that do not match it.
#[derive(Debug)]
pub(super) struct ProgramFilter {
    rule: ProgramRule,
    recent: Vec<(u32, u8)>,
    older: VecDeque<u32>,
}

impl ProgramFilter {
    /// A filter by this rule.
    pub(super) fn new(rule: ProgramRule) -> ProgramFilter {
        ProgramFilter { rule, recent: Vec::new(), older: VecDeque::new() }
    }

    /// The program as it is to be recorded, if it matches.
    pub(super) fn matching(&self, mut program: Program) -> Option<Program> {
        let tool = self.rule.tool(&program)?;
        program.tool = Some(tool).filter(|tool| *tool != program.called());
        Some(program)
    }

    /// A process does not match now; it is recent, or existed before weigh attached.
    pub(super) fn defer(&mut self, pid: u32, is_recent: bool) {
        if is_recent {
            self.recent.push((pid, 0));
        } else {
            self.older.push_back(pid);
        }
    }

    /// The processes to be checked again at this tick.
    pub(super) fn next_to_recheck(&mut self, into: &mut Vec<u32>) {
        into.clear();
        let older = &mut self.older;
        self.recent.retain_mut(|(pid, checks)| {
            *checks += 1;
            let is_recent = *checks <= RECENT_CHECKS;
            if is_recent {
                into.push(*pid);
            } else {
                older.push_back(*pid);
            }
            is_recent
        });
        let count = self.older.len().min(OLDER_PER_TICK);
        into.extend(self.older.iter().take(count));
        self.older.rotate_left(count);
    }

    /// A process need not be checked any more: it matches, or has exited.
    pub(super) fn forget(&mut self, pid: u32) {
        self.recent.retain(|(one, _)| *one != pid);
        self.older.retain(|one| *one != pid);
    }
}
