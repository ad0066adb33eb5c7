//! Somebody new: found by a look, or told of.

use super::Processes;
use crate::collect::Fault;
use crate::collect::chosen::Chosen;
use crate::collect::members::Newcomer;
use crate::collect::process::{self, Process};
use crate::host::{Host, ProcPath};
use crate::parse;
use crate::sample::{Change, ProcessId, Program, Tick};

impl Processes {
    /// Says who somebody is, once.
    pub(super) fn introduce(
        &mut self,
        tick: &mut Tick,
        id: ProcessId,
        parent: u32,
        program: Program,
    ) -> Process {
        let process = self.known(id, &program);
        tick.changes.push(Change::Came { id, parent, program });
        process
    }

    /// Somebody of whom it is known what it runs.
    pub(super) fn known(&self, id: ProcessId, program: &Program) -> Process {
        let mut process = Process::new(id, &program.name, &self.tools);
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
        let Some(program) = self.program(host, newcomer.id.pid) else { return false };
        let process = self.introduce(tick, newcomer.id, newcomer.parent, program);
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
                Newcomer { id, parent: stat.parent }
            });
            let is_done = newcomer.is_none_or(|newcomer| self.take_in(host, tick, &newcomer));
            if let (true, Some(chosen)) = (is_done, &mut self.chosen) {
                chosen.forget(*pid);
            }
        }
        self.to_ask = to_ask;
    }

    /// Returns whether others may have come and gone since the last look.
    pub(super) fn take_in_newcomers(
        &mut self,
        host: &Host,
        tick: &mut Tick,
    ) -> Result<bool, Fault> {
        // The command's process is introduced when it has become the command.
        if let Some(id) = self.root.take() {
            self.take_in(host, tick, &Newcomer { id, parent: std::process::id() });
        }
        self.welcome_fresh(tick);
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
