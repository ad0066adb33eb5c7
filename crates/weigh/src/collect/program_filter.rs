//! The processes that are meant among all that could be.
//!
//! A process may become a program that is meant long after it was born. Where the kernel
//! tells of it nobody has to ask; else those who are not meant are asked again: the young
//! ones at every look, because a process mostly becomes what it will be soon after its
//! birth, the others in turn.

use std::collections::VecDeque;

use super::rule::ProgramRule;
use crate::model::Program;

/// How many looks somebody is young.
const RECENT_CHECKS: u8 = 5;

/// How many of the others are asked at one look: about a tenth of what listing thousands of
/// processes costs.
const OLDER_PER_TICK: usize = 32;

/// The rule, and those who do not meet it.
#[derive(Debug)]
pub(super) struct ProgramFilter {
    rule: ProgramRule,
    recent: Vec<(u32, u8)>,
    older: VecDeque<u32>,
}

impl ProgramFilter {
    /// By this rule.
    pub(super) fn new(rule: ProgramRule) -> ProgramFilter {
        ProgramFilter { rule, recent: Vec::new(), older: VecDeque::new() }
    }

    /// The program as it is to be recorded, if it is meant.
    pub(super) fn matching(&self, mut program: Program) -> Option<Program> {
        let tool = self.rule.tool(&program)?;
        program.tool = Some(tool).filter(|tool| *tool != program.called());
        Some(program)
    }

    /// Somebody is not meant now, who was just born or was there before anybody looked.
    pub(super) fn defer(&mut self, pid: u32, is_recent: bool) {
        if is_recent {
            self.recent.push((pid, 0));
        } else {
            self.older.push_back(pid);
        }
    }

    /// Who is to be asked again at this look.
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
        let turn = self.older.len().min(OLDER_PER_TICK);
        into.extend(self.older.iter().take(turn));
        self.older.rotate_left(turn);
    }

    /// Nobody needs to ask for this one any more: it is meant, or gone.
    pub(super) fn forget(&mut self, pid: u32) {
        self.recent.retain(|(one, _)| *one != pid);
        self.older.retain(|one| *one != pid);
    }
}
