//! The processes that are meant among all that could be.
//!
//! A process may become a program that is meant long after it was born. Where the kernel
//! tells of it nobody has to ask; else those who are not meant are asked again: the young
//! ones at every look, because a process mostly becomes what it will be soon after its
//! birth, the others in turn.

use std::collections::VecDeque;

use super::rule::Rule;
use crate::model::Program;

/// How many looks somebody is young.
const YOUNG: u8 = 5;

/// How many of the others are asked at one look: about a tenth of what listing thousands of
/// processes costs.
const IN_TURN: usize = 32;

/// The rule, and those who do not meet it.
#[derive(Debug)]
pub(super) struct Chosen {
    rule: Rule,
    young: Vec<(u32, u8)>,
    others: VecDeque<u32>,
}

impl Chosen {
    /// By this rule.
    pub(super) fn by(rule: Rule) -> Chosen {
        Chosen { rule, young: Vec::new(), others: VecDeque::new() }
    }

    /// The program as it is to be recorded, if it is meant.
    pub(super) fn meant(&self, mut program: Program) -> Option<Program> {
        let tool = self.rule.tool(&program)?;
        program.tool = Some(tool).filter(|tool| *tool != program.called());
        Some(program)
    }

    /// Somebody is not meant now, who was just born or was there before anybody looked.
    pub(super) fn pass_over(&mut self, pid: u32, is_young: bool) {
        if is_young {
            self.young.push((pid, 0));
        } else {
            self.others.push_back(pid);
        }
    }

    /// Who is to be asked again at this look.
    pub(super) fn next_to_ask(&mut self, into: &mut Vec<u32>) {
        into.clear();
        let others = &mut self.others;
        self.young.retain_mut(|(pid, looks)| {
            *looks += 1;
            let is_young = *looks <= YOUNG;
            if is_young {
                into.push(*pid);
            } else {
                others.push_back(*pid);
            }
            is_young
        });
        let turn = self.others.len().min(IN_TURN);
        into.extend(self.others.iter().take(turn));
        self.others.rotate_left(turn);
    }

    /// Nobody needs to ask for this one any more: it is meant, or gone.
    pub(super) fn forget(&mut self, pid: u32) {
        self.young.retain(|(one, _)| *one != pid);
        self.others.retain(|one| *one != pid);
    }
}
