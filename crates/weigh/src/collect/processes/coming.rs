//! Somebody new: found by a look, or told of.

use super::Processes;
use crate::collect::Fault;
use crate::collect::chosen::Chosen;
use crate::collect::members::Newcomer;
use crate::collect::process::{self, Process};
use crate::host::{Host, ProcPath};
use crate::model::{Change, ProcessId, Program, Tick};
use crate::parse;

impl Processes {
    /// Says who somebody is, once.
    pub(super) fn introduce(
        &mut self,
        tick: &mut Tick,
        id: ProcessId,
        parent: u32,
        program: Program,
    ) -> Process {
        let process = self.known(id, parent, &program);
        tick.changes.push(Change::Came { id, parent, program });
        process
    }

    /// Somebody of whom it is known what it runs.
    pub(super) fn known(&self, id: ProcessId, parent: u32, program: &Program) -> Process {
        let mut process = Process::new(id, parent, &program.name, &self.tools);
        process.untold = untold(self.arguments, program);
        process
    }

    /// What somebody runs, as it is to be recorded; `None` when it is not meant.
    pub(super) fn program(&mut self, host: &Host, pid: u32) -> Option<Program> {
        program(host, pid, self.chosen.as_ref(), self.arguments, &mut self.tools.buffer)
    }

    /// Takes somebody in who belongs, if it is meant.
    fn take_in(&mut self, host: &Host, tick: &mut Tick, newcomer: &Newcomer) -> bool {
        if self.list.iter().any(|process| process.id == newcomer.id) {
            return true;
        }
        let pid = newcomer.id.pid;
        let Some(mut program) = self.program(host, pid) else { return false };
        if program.name.is_empty() {
            program.name = newcomer.name().to_vec();
        }
        let is_helper = pid != self.main
            && self.helpers.is_one(host, pid, &program.name, &mut self.tools.buffer);
        if is_helper {
            self.helpers.add(newcomer.clone());
            return true;
        }
        let parent = self.helpers.parent(newcomer.parent);
        let mut process = self.introduce(tick, newcomer.id, parent, program);
        // A helper between the two has reaped it, when it is gone.
        process.parent = newcomer.parent;
        self.list.push(process);
        self.put_clock_on(host, self.list.len() - 1);
        self.footprint.note_change();
        true
    }

    /// Asks those again who were not meant: a process may have become another program.
    fn ask_again(&mut self, host: &Host, tick: &mut Tick) {
        let Some(chosen) = &mut self.chosen else { return };
        let mut to_ask = std::mem::take(&mut self.to_ask);
        chosen.next_to_ask(&mut to_ask);
        for pid in &to_ask {
            let path = ProcPath::new(*pid, "stat");
            let stat = host.proc.read(path.as_c_str(), &mut self.tools.buffer).ok();
            let newcomer = stat.and_then(|bytes| parse::stat::parse(bytes).ok()).map(|stat| {
                let id = ProcessId { pid: *pid, started: stat.started };
                Newcomer::new(id, stat.parent, stat.name)
            });
            let is_done = newcomer.is_none_or(|newcomer| self.take_in(host, tick, &newcomer));
            if let (true, Some(chosen)) = (is_done, &mut self.chosen) {
                chosen.forget(*pid);
            }
        }
        self.to_ask = to_ask;
    }

    /// Takes in those who were weigh's own helpers and have become a command.
    pub fn take_in_commands(&mut self, host: &Host, tick: &mut Tick) {
        let rechecked = self.helpers.recheck(host, &mut self.tools.buffer);
        self.unseen |= rechecked.unseen;
        rechecked.reaped_by.iter().for_each(|parent| self.reaped.note_gone(*parent));
        for newcomer in &rechecked.became {
            self.take_in(host, tick, newcomer);
        }
    }

    /// Returns whether others may have come and gone since the last look.
    pub(super) fn take_in_newcomers(
        &mut self,
        host: &Host,
        tick: &mut Tick,
    ) -> Result<bool, Fault> {
        // The command's process is introduced when it has become the command.
        if let Some(id) = self.root.take() {
            self.take_in(host, tick, &Newcomer::new(id, std::process::id(), b""));
        }
        self.welcome_fresh(tick);
        self.take_in_commands(host, tick);
        if self.is_told && self.has_looked {
            return Ok(false);
        }
        if !self.is_told {
            self.ask_again(host, tick);
        }
        let mut newcomers = std::mem::take(&mut self.newcomers);
        newcomers.clear();
        let looked = self.members.look(host, &mut newcomers);
        for newcomer in &newcomers {
            // One whose entry has another inode may be known all the same.
            let is_new = !self.list.iter().any(|process| process.id == newcomer.id);
            self.unseen |= is_new && self.members.came_out_of_turn(newcomer.id.pid);
            if !self.take_in(host, tick, newcomer)
                && !self.is_told
                && let Some(chosen) = &mut self.chosen
            {
                chosen.pass_over(newcomer.id.pid, self.has_looked);
            }
        }
        self.newcomers = newcomers;
        self.has_looked = true;
        Ok(looked?)
    }
}

/// What somebody runs, as it is to be recorded; `None` when it is not meant.
pub(super) fn program(
    host: &Host,
    pid: u32,
    chosen: Option<&Chosen>,
    arguments: bool,
    buffer: &mut Vec<u8>,
) -> Option<Program> {
    let program = process::program(host, pid, arguments || chosen.is_some(), buffer);
    let mut program = match chosen {
        Some(chosen) => chosen.meant(program)?,
        None => program,
    };
    if !arguments {
        program.arguments = None;
    }
    Some(program)
}

/// How often to ask again for arguments that a process did not have: one that is looked at in
/// the middle of exec has them at the next look, one that cleared them never.
pub(super) fn untold(wanted: bool, program: &Program) -> u8 {
    const TRIES: u8 = 3;
    if wanted && program.arguments.is_none() { TRIES } else { 0 }
}
