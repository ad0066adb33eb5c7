//! All processes of the run: who they are, and what each uses.
//!
//! Ties together who belongs ([`super::members`]), who of them is meant
//! (`super::filter`), what one uses ([`super::process`]) and the expensive part
//! ([`super::footprint`]).

mod address_spaces;
mod discovery;
mod helpers;
mod proc_events;
mod reaped;
#[cfg(test)]
mod tests;

use std::collections::HashSet;

use discovery::{cmdline_retries, program};
use helpers::HelperProcesses;
use reaped::ReapCheck;

use super::footprint::Footprint;
use super::members::{NewMember, ProcessTree, RunMembers};
use super::process::{self, ProcessRead, ProcessReader, ReadContext};
use super::program_filter::ProgramFilter;
use super::rule::ProgramRule;
use super::{Collector, Fault, Probe, Provider, readable};
use crate::catalog::SourceId;
use crate::host::Host;
use crate::model::settings::Settings;
use crate::model::{Change, Entity, ProcessId, Tick};
pub use proc_events::ExitedProcess;
use proc_events::NewFork;

pub(in crate::collect) const PROVIDER: Provider =
    Provider { id: SourceId::Process, probe, collector: None, descriptors: 1 };

fn probe(host: &Host) -> Probe {
    match readable(&host.proc, c"self/smaps_rollup") {
        // Linux 4.14 brought it; without it everything but PSS and USS is there.
        Probe::Absent { why } => Probe::Denied {
            why: format!("no PSS and USS: {why}"),
            hint: "use Linux 4.14 or newer".to_owned(),
        },
        other => other,
    }
}

/// Every process of the run.
pub struct ProcessCollector {
    members: RunMembers,
    /// Who of the members is meant; all, when nothing is said.
    filter: Option<ProgramFilter>,
    list: Vec<ProcessReader>,
    /// Who of the members is weigh itself.
    helpers: HelperProcesses,
    /// Those who were forked since the last look, and may be about to become somebody else.
    new_forks: Vec<NewFork>,
    /// Those who were forked by a tool and gone before they could be met.
    missed_forks: Vec<u32>,
    footprint: Footprint,
    context: ReadContext,
    new_members: Vec<NewMember>,
    arguments: bool,
    /// What could not be read, the first of each kind, until somebody asks.
    refusals: Vec<String>,
    refused: HashSet<&'static str>,
    may_have_missed: bool,
    /// Who has reaped children, and whose children are known to have gone.
    reaped: ReapCheck,
    /// The command's first process, until the first tick.
    root: Option<ProcessId>,
    /// Its pid: whatever it becomes, it is the command.
    main: u32,
    has_listed: bool,
    /// Whether weigh did not start what is measured.
    is_attached: bool,
    /// Whether the kernel tells who comes and goes.
    has_events: bool,
    /// When it began to, in clock ticks since boot.
    events_since: u64,
    to_recheck: Vec<u32>,
}

impl ProcessCollector {
    /// Takes note of the machine before the run begins.
    pub fn before_run(host: &Host, settings: &Settings) -> ProcessCollector {
        let members = ProcessTree::before_run(host, std::process::id());
        let helpers = HelperProcesses::of_own_run(host);
        ProcessCollector {
            is_attached: false,
            helpers,
            ..ProcessCollector::of(host, settings, members, None, 0)
        }
    }

    /// Follows processes that run already, with at most so many descriptors kept open.
    pub fn of(
        host: &Host,
        settings: &Settings,
        members: impl Into<RunMembers>,
        rule: Option<ProgramRule>,
        descriptors: usize,
    ) -> ProcessCollector {
        ProcessCollector {
            members: members.into(),
            filter: rule.map(ProgramFilter::new),
            list: Vec::new(),
            helpers: HelperProcesses::default(),
            new_forks: Vec::new(),
            missed_forks: Vec::new(),
            footprint: Footprint::with_budget(settings.budget),
            context: ReadContext::new(host, descriptors),
            new_members: Vec::new(),
            arguments: settings.command_lines,
            refusals: Vec::new(),
            refused: HashSet::new(),
            may_have_missed: false,
            reaped: ReapCheck::default(),
            root: None,
            main: 0,
            has_listed: false,
            is_attached: true,
            has_events: false,
            events_since: 0,
            to_recheck: Vec::new(),
        }
    }

    /// Follows the command's first process, with at most so many descriptors kept open.
    pub fn begin(&mut self, host: &Host, root: u32, descriptors: usize) -> ProcessId {
        self.context = ReadContext::new(host, descriptors);
        if let Some(tree) = self.members.tree() {
            tree.begin(host, root);
        }
        let started = process::started(host, root, &mut self.context.buffer).unwrap_or(0);
        let id = ProcessId { pid: root, started };
        self.root = Some(id);
        self.main = root;
        id
    }

    /// The processes that were alive at the last look.
    pub fn alive(&self) -> impl Iterator<Item = ProcessId> {
        self.list.iter().map(|process| process.id)
    }

    /// Makes the next tick read PSS and USS of everybody.
    pub fn want_footprint(&mut self) {
        self.footprint.request();
        self.footprint.note_change();
    }

    /// What could not be read since the last question, a sentence each.
    pub fn refusals(&mut self) -> Vec<String> {
        std::mem::take(&mut self.refusals)
    }

    /// Whether processes may have come and gone between two looks.
    pub fn may_have_missed_processes(&self) -> bool {
        self.may_have_missed || self.helpers.is_unsure
    }

    /// Reads a child of weigh's for the last time, between its end and its reaping.
    ///
    /// Returns who it was, unless it was weigh's own helper, and so left out; somebody never
    /// seen before is introduced.
    pub fn final_read(&mut self, host: &Host, pid: u32, tick: &mut Tick) -> Option<ProcessId> {
        if self.helpers.remove(pid) {
            self.members.note_exit(pid);
            return None;
        }
        let started = process::started(host, pid, &mut self.context.buffer).unwrap_or(0);
        let new_reader = self.list.iter().position(|process| process.id.pid == pid);
        let mut process = match new_reader {
            Some(place) => self.list.remove(place),
            None => {
                self.may_have_missed = true;
                let program = self.program(host, pid).unwrap_or_default();
                // It has ended, so its file is gone and only its name is left to know it by.
                if self.helpers.is_helper(host, pid, &program.name, &mut self.context.buffer) {
                    self.members.note_exit(pid);
                    return None;
                }
                let id = ProcessId { pid, started };
                self.report_start(tick, id, std::process::id(), program)
            }
        };
        process.read(host, &mut self.context, tick, || {});
        self.members.note_exit(pid);
        self.footprint.note_change();
        Some(process.id)
    }

    /// A process has been looked at for the last time; says who it was, if it was known.
    pub fn forget(&mut self, pid: u32) -> Option<ProcessId> {
        let place = self.list.iter().position(|process| process.id.pid == pid)?;
        let process = self.list.remove(place);
        self.members.note_exit(pid);
        self.footprint.note_change();
        Some(process.id)
    }

    fn refuse(&mut self, what: &'static str, why: String) {
        if self.refused.insert(what) {
            self.refusals.push(why);
        }
    }
}

impl Collector for ProcessCollector {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let is_first = !self.has_listed;
        let more_were_born = self.add_new_members(host, tick)? && !is_first;
        self.settle_address_spaces(host);
        let (context, footprint) = (&mut self.context, &mut self.footprint);
        let (filter, arguments) = (self.filter.as_ref(), self.arguments);
        let (members, has_events) = (&mut self.members, self.has_events);
        let (reaped, is_attached) = (&mut self.reaped, self.is_attached);
        let (helpers, main) = (&mut self.helpers, self.main);
        let before = self.list.len();
        let mut children_ended = false;
        let mut denied = None;
        // In order of birth: a parent's account of its children is read before theirs, so
        // time that moves from one to the other between two reads is never seen twice.
        self.list.retain_mut(|process| {
            // Not looked at once more: a row would bring it back.
            if members.has_left(process.id.pid) {
                tick.changes.push(Change::Went { id: process.id });
                return false;
            }
            let (resident, children) = (process.resident, process.children_faults);
            // What somebody who ran already has reaped was before weigh came.
            let is_counted = process.has_been_read() || !is_attached;
            let mut renamed = false;
            match process.read(host, context, tick, || renamed = true) {
                // The kernel tells its end at once, and its last account with it.
                ProcessRead::Exited if has_events && !process.exit_pending => {
                    process.exit_pending = true;
                    return true;
                }
                ProcessRead::Exited => {
                    reaped.note_exit(process.parent);
                    members.note_exit(process.id.pid);
                    tick.changes.push(Change::Went { id: process.id });
                    return false;
                }
                ProcessRead::Asleep => return true,
                ProcessRead::Ran => {}
            }
            if renamed || process.cmdline_retries_left > 0 {
                let pid = process.id.pid;
                let Some(program) = program(host, pid, filter, arguments, &mut context.buffer)
                else {
                    // It is another program now, and not one that is meant; a row would bring
                    // it back.
                    tick.withdraw(Entity::Process(process.id));
                    members.note_exit(pid);
                    tick.changes.push(Change::Went { id: process.id });
                    return false;
                };
                if pid != main && helpers.is_helper(host, pid, &program.name, &mut context.buffer) {
                    let parent = process::parent(host, pid, &mut context.buffer).unwrap_or(main);
                    helpers.add(NewMember::new(process.id, parent, &program.name));
                    // A row would bring it back.
                    tick.withdraw(Entity::Process(process.id));
                    tick.changes.push(Change::Went { id: process.id });
                    return false;
                }
                let has_events = program.arguments.is_some();
                process.cmdline_retries_left = match process.cmdline_retries_left {
                    _ if has_events => 0,
                    0 => cmdline_retries(arguments, &program),
                    tries => tries - 1,
                };
                if renamed || has_events {
                    tick.changes.push(Change::Became { id: process.id, program });
                }
            }
            if process.resident != resident {
                footprint.note_change();
            }
            children_ended |= process.children_faults != children;
            if process.children_faults != children && is_counted {
                reaped.note_reaping(process.id.pid);
            }
            denied = process.denied.take().or(denied.take());
            true
        });
        let went = before - self.list.len();
        if went > 0 {
            self.footprint.note_change();
        }
        // More were born than are known, and somebody waited for a child, or nobody would tell.
        self.may_have_missed |= (children_ended || self.is_attached) && more_were_born;
        // Or somebody has reaped a child whom nobody knew. Who tells of everybody else needs no
        // such conclusion, and of those who are not meant nothing is known.
        let unknown_children = self.reaped.finish_tick();
        self.may_have_missed |= unknown_children && !self.has_events && self.filter.is_none();
        if let Some(error) = denied {
            self.refuse("io", format!("I/O and open files: {error}"));
        }
        let refused = self.footprint.pass(host, &self.list, &mut self.context, tick);
        if let Some(error) = refused {
            self.refuse("smaps", format!("PSS and USS: {error}"));
        }
        Ok(())
    }
}
