//! New processes, from a listing or from events.

use super::ProcessCollector;
use crate::collect::Fault;
use crate::collect::members::NewMember;
use crate::collect::process::{self, ProcessReader};
use crate::collect::program_filter::ProgramFilter;
use crate::host::{Host, ProcPath};
use crate::model::{Change, ProcessId, Program, Tick};
use crate::parse;

impl ProcessCollector {
    /// Reports the start of a process, once.
    pub(super) fn report_start(
        &mut self,
        tick: &mut Tick,
        id: ProcessId,
        parent: u32,
        program: Program,
    ) -> ProcessReader {
        let process = self.new_reader(id, parent, &program);
        tick.changes.push(Change::Started { id, parent, program });
        process
    }

    /// A reader for a process whose program is known.
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

    /// The program of a process, as it is to be recorded; `None` when it does not match.
    pub(super) fn program(&mut self, host: &Host, pid: u32) -> Option<Program> {
        program(host, pid, self.filter.as_ref(), self.arguments, &mut self.context.buffer)
    }

    /// Adds a member, if it matches the filter.
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
        // If there is a helper between the two, that one reaps it.
        process.parent = member.parent;
        self.list.push(process);
        self.attach_clock(host, self.list.len() - 1);
        self.pss_uss.note_change();
        true
    }

    /// Checks processes again that did not match: they may have called exec.
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

    /// Adds processes that were weigh's own helpers and have called exec for a command.
    pub fn add_helper_commands(&mut self, host: &Host, tick: &mut Tick) {
        let rechecked = self.helpers.recheck(host, &mut self.context.buffer);
        self.may_have_missed |= rechecked.may_have_missed;
        rechecked.reaped_by.iter().for_each(|parent| self.reaped.note_exit(*parent));
        for member in &rechecked.commands {
            self.add_member(host, tick, member);
        }
    }

    /// Adds new members. Returns whether others may have started and exited since the last tick.
    pub(super) fn add_new_members(&mut self, host: &Host, tick: &mut Tick) -> Result<bool, Fault> {
        // The start of the command's process is reported once it has called exec.
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
        let has_unseen = self.members.update(host, &mut new_members);
        for member in &new_members {
            // One with another inode may still be a known process.
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
        Ok(has_unseen?)
    }
}

/// The program of a process, as it is to be recorded; `None` when it does not match.
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

/// How often to read the command line again when it was empty: a process that is read during exec
/// has it at the next tick, one that cleared it never.
pub(super) fn cmdline_retries(wanted: bool, program: &Program) -> u8 {
    const TRIES: u8 = 3;
    if wanted && program.arguments.is_none() { TRIES } else { 0 }
}
