//! Somebody new: found by a look, or told of.

use super::ProcessCollector;
use crate::collect::Fault;
use crate::collect::members::NewMember;
use crate::collect::process::{self, ProcessReader};
use crate::collect::program_filter::ProgramFilter;
use crate::host::{Host, ProcPath};
use crate::model::{Change, ProcessId, Program, Tick};
use crate::parse;

impl ProcessCollector {
    /// Says who somebody is, once.
    pub(super) fn report_start(
        &mut self,
        tick: &mut Tick,
        id: ProcessId,
        parent: u32,
        program: Program,
    ) -> ProcessReader {
        let process = self.new_reader(id, parent, &program);
        tick.changes.push(Change::Came { id, parent, program });
        process
    }

    /// Somebody of whom it is known what it runs.
    pub(super) fn new_reader(
        &self,
        id: ProcessId,
        parent: u32,
        program: &Program,
    ) -> ProcessReader {
        let mut process = ProcessReader::new(id, parent, &program.name, &self.context);
        process.cmdline_retries_left = cmdline_retries(self.arguments, program);
        process
    }

    /// What somebody runs, as it is to be recorded; `None` when it is not meant.
    pub(super) fn program(&mut self, host: &Host, pid: u32) -> Option<Program> {
        program(host, pid, self.filter.as_ref(), self.arguments, &mut self.context.buffer)
    }

    /// Takes somebody in who belongs, if it is meant.
    fn add_member(&mut self, host: &Host, tick: &mut Tick, member: &NewMember) -> bool {
        if self.list.iter().any(|process| process.id == member.id) {
            return true;
        }
        let pid = member.id.pid;
        let Some(mut program) = self.program(host, pid) else { return false };
        if program.name.is_empty() {
            program.name = member.name().to_vec();
        }
        let is_helper = pid != self.main
            && self.helpers.is_helper(host, pid, &program.name, &mut self.context.buffer);
        if is_helper {
            self.helpers.add(member.clone());
            return true;
        }
        let parent = self.helpers.parent(member.parent);
        let mut process = self.report_start(tick, member.id, parent, program);
        // A helper between the two has reaped it, when it is gone.
        process.parent = member.parent;
        self.list.push(process);
        self.attach_clock(host, self.list.len() - 1);
        self.footprint.note_change();
        true
    }

    /// Asks those again who were not meant: a process may have become another program.
    fn recheck_programs(&mut self, host: &Host, tick: &mut Tick) {
        let Some(filter) = &mut self.filter else { return };
        let mut to_recheck = std::mem::take(&mut self.to_recheck);
        filter.next_to_recheck(&mut to_recheck);
        for pid in &to_recheck {
            let path = ProcPath::new(*pid, "stat");
            let stat = host.proc.read(path.as_c_str(), &mut self.context.buffer).ok();
            let member = stat.and_then(|bytes| parse::stat::parse(bytes).ok()).map(|stat| {
                let id = ProcessId { pid: *pid, started: stat.started };
                NewMember::new(id, stat.parent, stat.name)
            });
            let is_done = member.is_none_or(|member| self.add_member(host, tick, &member));
            if let (true, Some(filter)) = (is_done, &mut self.filter) {
                filter.forget(*pid);
            }
        }
        self.to_recheck = to_recheck;
    }

    /// Takes in those who were weigh's own helpers and have become a command.
    pub fn add_helper_commands(&mut self, host: &Host, tick: &mut Tick) {
        let rechecked = self.helpers.recheck(host, &mut self.context.buffer);
        self.may_have_missed |= rechecked.may_have_missed;
        rechecked.reaped_by.iter().for_each(|parent| self.reaped.note_exit(*parent));
        for member in &rechecked.commands {
            self.add_member(host, tick, member);
        }
    }

    /// Returns whether others may have come and gone since the last look.
    pub(super) fn add_new_members(&mut self, host: &Host, tick: &mut Tick) -> Result<bool, Fault> {
        // The command's process is introduced when it has become the command.
        if let Some(id) = self.root.take() {
            self.add_member(host, tick, &NewMember::new(id, std::process::id(), b""));
        }
        self.add_settled_forks(tick);
        self.add_helper_commands(host, tick);
        if self.has_events && self.has_listed {
            return Ok(false);
        }
        if !self.has_events {
            self.recheck_programs(host, tick);
        }
        let mut new_members = std::mem::take(&mut self.new_members);
        new_members.clear();
        let updated = self.members.update(host, &mut new_members);
        for member in &new_members {
            // One whose entry has another inode may be known all the same.
            let is_new = !self.list.iter().any(|process| process.id == member.id);
            self.may_have_missed |= is_new && self.members.pid_out_of_order(member.id.pid);
            if !self.add_member(host, tick, member)
                && !self.has_events
                && let Some(filter) = &mut self.filter
            {
                filter.defer(member.id.pid, self.has_listed);
            }
        }
        self.new_members = new_members;
        self.has_listed = true;
        Ok(updated?)
    }
}

/// What somebody runs, as it is to be recorded; `None` when it is not meant.
pub(super) fn program(
    host: &Host,
    pid: u32,
    filter: Option<&ProgramFilter>,
    arguments: bool,
    buffer: &mut Vec<u8>,
) -> Option<Program> {
    let program = process::program(host, pid, arguments || filter.is_some(), buffer);
    let mut program = match filter {
        Some(filter) => filter.matching(program)?,
        None => program,
    };
    if !arguments {
        program.arguments = None;
    }
    Some(program)
}

/// How often to ask again for arguments that a process did not have: one that is looked at in
/// the middle of exec has them at the next look, one that cleared them never.
pub(super) fn cmdline_retries(wanted: bool, program: &Program) -> u8 {
    const TRIES: u8 = 3;
    if wanted && program.arguments.is_none() { TRIES } else { 0 }
}
