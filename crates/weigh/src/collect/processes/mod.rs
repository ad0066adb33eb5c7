//! All processes of the run, and what each uses.
//!
//! Combines membership ([`super::members`]), the program filter (`super::program_filter`), the
//! usage of one process ([`super::process`]) and PSS and USS ([`super::pss_uss`]).

mod address_spaces;
mod discovery;
mod helpers;
mod proc_events;
mod reaped;
#[cfg(test)]
mod tests;

use discovery::{cmdline_retries, program};
use helpers::HelperProcesses;
use reaped::ReapCheck;

use super::members::{NewMember, ProcessTree, RunMembers};
use super::process::{self, ProcessClock, ProcessRead, ProcessReader, ReadContext};
use super::program_filter::ProgramFilter;
use super::pss_uss::PssUssReader;
use super::rule::ProgramRule;
use super::{Collector, Context, Fault, MissingParts, Probe, Provider, readable};
use crate::catalog::SourceId;
use crate::host::descent_mark::DescentMark;
use crate::host::{Host, wait};
use crate::model::settings::Settings;
use crate::model::{Change, Entity, ProcessId, Tick};
pub use proc_events::ExitedProcess;
use proc_events::NewFork;

pub(in crate::collect) const PROVIDER: Provider =
    Provider { id: SourceId::Process, probe, collector: None, descriptors: 1 };

fn probe(host: &Host) -> Probe {
    match readable(&host.proc, c"self/smaps_rollup") {
        // Since Linux 4.14; without it everything but PSS and USS is available.
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
    /// Which members are measured; all, without a filter.
    filter: Option<ProgramFilter>,
    list: Vec<ProcessReader>,
    /// Members that are weigh's own helpers.
    helpers: HelperProcesses,
    /// Processes forked by a matching process, which may be about to call exec.
    new_forks: Vec<NewFork>,
    /// Pids forked by a matching process that were gone before they could be read.
    missed_forks: Vec<u32>,
    pss_uss: PssUssReader,
    context: ReadContext,
    new_members: Vec<NewMember>,
    arguments: bool,
    missing: MissingParts,
    may_have_missed: bool,
    /// Processes that reaped children, and parents of known children that exited.
    reaped: ReapCheck,
    /// The command's first process, until the first tick.
    root: Option<ProcessId>,
    /// Its pid: it stays the command after any exec.
    main: u32,
    has_listed: bool,
    /// Whether weigh attached to processes instead of starting them.
    is_attached: bool,
    /// Whether process events are received.
    has_events: bool,
    /// Since when, in clock ticks since boot.
    events_since: u64,
    /// Processes that started since then get a task clock.
    clocks_since: Option<u64>,
    to_recheck: Vec<u32>,
}

impl ProcessCollector {
    /// Prepares for a run: the processes that exist before it are not its.
    pub fn before_run(host: &Host, settings: &Settings) -> ProcessCollector {
        let members = ProcessTree::before_run(host, std::process::id(), wait::has_children());
        let helpers = HelperProcesses::of_own_run(host);
        ProcessCollector {
            is_attached: false,
            helpers,
            ..ProcessCollector::of(host, settings, members, None, 0)
        }
    }

    /// A child of another program that weigh is part of, and all it starts; other children of that
    /// program are not members.
    pub fn of_child(
        host: &Host,
        settings: &Settings,
        pid: u32,
        descriptors: usize,
    ) -> ProcessCollector {
        let members = ProcessTree::rooted_at(host, &[pid]);
        ProcessCollector::of_command(host, settings, members, descriptors)
    }

    /// The same, and its orphans, which that program adopts: they have the mark of the command.
    pub fn of_marked_child(
        host: &Host,
        settings: &Settings,
        mark: DescentMark,
        descriptors: usize,
    ) -> ProcessCollector {
        let members = ProcessTree::of_command(host, mark);
        ProcessCollector::of_command(host, settings, members, descriptors)
    }

    fn of_command(
        host: &Host,
        settings: &Settings,
        members: ProcessTree,
        descriptors: usize,
    ) -> ProcessCollector {
        ProcessCollector {
            is_attached: false,
            ..ProcessCollector::of(host, settings, members, None, descriptors)
        }
    }

    /// Attaches to running processes, with at most so many descriptors open.
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
            pss_uss: PssUssReader::with_budget(settings.budget),
            context: ReadContext::new(host, descriptors),
            new_members: Vec::new(),
            arguments: settings.command_lines,
            missing: MissingParts::default(),
            may_have_missed: false,
            reaped: ReapCheck::default(),
            root: None,
            main: 0,
            has_listed: false,
            is_attached: true,
            has_events: false,
            events_since: 0,
            clocks_since: None,
            to_recheck: Vec::new(),
        }
    }

    /// Attaches to the processes of a batch job on this node, but for recorders and what starts
    /// them.
    pub fn of_job(
        host: &Host,
        settings: &Settings,
        members: impl Into<RunMembers>,
        descriptors: usize,
    ) -> ProcessCollector {
        let helpers = HelperProcesses::of_job(host);
        ProcessCollector {
            helpers,
            ..ProcessCollector::of(host, settings, members, None, descriptors)
        }
    }

    /// The commands that start recorders on this node and others.
    pub fn launchers(&self) -> impl Iterator<Item = u32> {
        self.helpers.launchers()
    }

    /// Whether the command that starts the recorders runs here: the job's script does, too.
    pub fn has_launcher(&self) -> bool {
        self.launchers().next().is_some()
    }

    /// Whether a measured process runs a program of this name.
    pub fn has_program(&self, name: &[u8]) -> bool {
        self.list.iter().any(|process| process.name() == name)
    }

    /// Whether all processes are ancestors of a recorder, or of the command that started it, and
    /// did not run at the last tick: a script that waits for the recorders. False without any
    /// process.
    pub fn only_waits_for_recorders(&self) -> bool {
        let mut waiting: Vec<u32> = self.helpers.parents().collect();
        let mut next = 0;
        while let Some(&pid) = waiting.get(next) {
            next += 1;
            let known = self.list.iter().find(|process| process.id.pid == pid);
            let parent = known.map(|process| process.parent);
            waiting.extend(parent.filter(|parent| !waiting.contains(parent)));
        }
        let waits =
            |process: &ProcessReader| process.is_asleep && waiting.contains(&process.id.pid);
        !self.list.is_empty() && self.list.iter().all(waits)
    }

    /// Adds the command's first process, with at most so many descriptors open.
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

    /// The command is about to exec: it has started nothing yet.
    pub fn before_exec(&mut self, host: &Host) {
        if let Some(tree) = self.members.tree() {
            tree.before_exec(host);
        }
    }

    /// The processes that were alive at the last tick.
    pub fn alive(&self) -> impl Iterator<Item = ProcessId> {
        self.list.iter().map(|process| process.id)
    }

    /// The processes, without the command, whose parent is none of them: it has exited, unless it is
    /// a helper of weigh.
    pub fn without_parent(&self) -> Vec<ProcessId> {
        let mut pids: Vec<u32> = self.list.iter().map(|process| process.id.pid).collect();
        pids.sort_unstable();
        let has_none = |process: &&ProcessReader| {
            process.id.pid != self.main && pids.binary_search(&process.parent).is_err()
        };
        self.list.iter().filter(has_none).map(|process| process.id).collect()
    }

    /// Makes the next tick read PSS and USS of all processes.
    pub fn request_pss_uss(&mut self) {
        self.pss_uss.request();
        self.pss_uss.note_change();
    }

    /// Whether processes may have started and exited unseen between two ticks.
    pub fn may_have_missed_processes(&self) -> bool {
        self.may_have_missed || self.helpers.is_unsure
    }

    /// Reads a child of weigh for the last time, between its exit and its reaping.
    ///
    /// Returns its id, unless it was weigh's own helper, which is not measured; the start of an
    /// unknown process is reported.
    pub fn final_read(&mut self, host: &Host, pid: u32, tick: &mut Tick) -> Option<ProcessId> {
        if self.helpers.remove(pid) {
            self.members.note_exit(pid);
            return None;
        }
        let started = process::started(host, pid, &mut self.context.buffer).unwrap_or(0);
        let known = self.list.iter().position(|process| process.id.pid == pid);
        let mut process = match known {
            Some(place) => self.list.remove(place),
            None => {
                self.may_have_missed = true;
                let program = self.program(host, pid).unwrap_or_default();
                // It has exited, so its file is gone and only its name identifies it.
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
        self.pss_uss.note_change();
        Some(process.id)
    }

    /// Removes a process that will not be read again; returns its id, if it was known.
    pub fn forget(&mut self, pid: u32) -> Option<ProcessId> {
        let place = self.list.iter().position(|process| process.id.pid == pid)?;
        let process = self.list.remove(place);
        self.members.note_exit(pid);
        self.pss_uss.note_change();
        Some(process.id)
    }
}

/// The exit of a process, with what its clock has counted.
fn exited(process: &mut ProcessReader) -> Change {
    let cpu_seconds = process.clock.as_mut().and_then(ProcessClock::read);
    Change::Exited { id: process.id, cpu_seconds }
}

impl Collector for ProcessCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let is_first = !self.has_listed;
        let more_pids_than_processes = self.add_new_members(host, tick)? && !is_first;
        self.update_address_spaces(host);
        let (context, pss_uss) = (&mut self.context, &mut self.pss_uss);
        let (filter, arguments) = (self.filter.as_ref(), self.arguments);
        let (members, has_events) = (&mut self.members, self.has_events);
        let (reaped, is_attached) = (&mut self.reaped, self.is_attached);
        let (helpers, main) = (&mut self.helpers, self.main);
        let before = self.list.len();
        let mut children_reaped = false;
        let mut denied = None;
        // In order of start: a parent's counters of reaped children are read before the children's
        // own, so time that moves from one to the other between two reads is never counted twice.
        self.list.retain_mut(|process| {
            // Not read again: a row would add it again.
            if members.has_left(process.id.pid) {
                tick.changes.push(exited(process));
                return false;
            }
            let (resident, children) = (process.resident, process.children_faults);
            // What an attached process has reaped before its first read is part of its baseline.
            let is_counted = process.has_been_read() || !is_attached;
            let mut renamed = false;
            match process.read(host, context, tick, || renamed = true) {
                // The exit event and the exit record will follow.
                ProcessRead::Exited if has_events && !process.exit_pending => {
                    process.exit_pending = true;
                    return true;
                }
                ProcessRead::Exited => {
                    reaped.note_exit(process.parent);
                    members.note_exit(process.id.pid);
                    tick.changes.push(exited(process));
                    return false;
                }
                ProcessRead::Asleep => {
                    process.is_asleep = true;
                    return true;
                }
                ProcessRead::Ran => process.is_asleep = false,
            }
            if renamed || process.cmdline_retries_left > 0 {
                let pid = process.id.pid;
                let Some(program) = program(host, pid, filter, arguments, &mut context.buffer)
                else {
                    // It is another program now, which does not match; a row would add it again.
                    tick.remove_last_row(Entity::Process(process.id));
                    members.note_exit(pid);
                    tick.changes.push(Change::Exited { id: process.id, cpu_seconds: None });
                    return false;
                };
                if pid != main && helpers.is_helper(host, pid, &program.name, &mut context.buffer) {
                    let parent = process::parent(host, pid, &mut context.buffer).unwrap_or(main);
                    helpers.add(NewMember::new(process.id, parent, &program.name));
                    // A row would add it again.
                    tick.remove_last_row(Entity::Process(process.id));
                    tick.changes.push(Change::Exited { id: process.id, cpu_seconds: None });
                    return false;
                }
                let has_arguments = program.arguments.is_some();
                process.cmdline_retries_left = match process.cmdline_retries_left {
                    _ if has_arguments => 0,
                    0 => cmdline_retries(arguments, &program),
                    tries => tries - 1,
                };
                if renamed || has_arguments {
                    tick.changes.push(Change::Exec { id: process.id, program });
                }
            }
            if process.resident != resident {
                pss_uss.note_change();
            }
            children_reaped |= process.children_faults != children;
            if process.children_faults != children && is_counted {
                reaped.note_reaping(process.id.pid);
            }
            denied = process.denied.take().or(denied.take());
            true
        });
        let exited = before - self.list.len();
        if exited > 0 {
            self.pss_uss.note_change();
        }
        // More pids were allocated than processes are known, and a child was reaped (or, attached,
        // nothing else would show it).
        self.may_have_missed |= (children_reaped || self.is_attached) && more_pids_than_processes;
        // Or a process has reaped an unknown child. With process events this check is not needed,
        // and with a filter other children are unknown anyway.
        let unknown_child_reaped = self.reaped.finish_tick();
        self.may_have_missed |= unknown_child_reaped && !self.has_events && self.filter.is_none();
        if let Some(error) = denied {
            self.missing.add("io", SourceId::Process, || format!("I/O and open files: {error}"));
        }
        let refused = self.pss_uss.pass(host, &self.list, &mut self.context, tick);
        if let Some(error) = refused {
            self.missing.add("smaps", SourceId::Process, || format!("PSS and USS: {error}"));
        }
        Ok(())
    }

    fn missing(&mut self) -> Option<&mut MissingParts> {
        Some(&mut self.missing)
    }
}
