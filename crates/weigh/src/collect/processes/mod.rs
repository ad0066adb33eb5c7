//! All processes of the run: who they are, and what each uses.
//!
//! Ties together who belongs ([`super::members`]), who of them is meant
//! (`super::chosen`), what one uses ([`super::process`]) and the expensive part
//! ([`super::footprint`]).

mod address_spaces;
mod coming;
mod helpers;
mod reaped;
#[cfg(test)]
mod tests;
mod told;

use std::collections::HashSet;

use coming::{program, untold};
use helpers::Helpers;
use reaped::Reaped;

use super::chosen::Chosen;
use super::footprint::Footprint;
use super::members::{Members, Newcomer, Tree};
use super::process::{self, Look, Process, Tools};
use super::rule::Rule;
use super::{Collector, Fault, Probe, Provider, readable};
use crate::catalog::SourceId;
use crate::host::Host;
use crate::model::settings::Settings;
use crate::model::{Change, Entity, ProcessId, Tick};
pub use told::Departed;
use told::Fresh;

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
pub struct Processes {
    members: Members,
    /// Who of the members is meant; all, when nothing is said.
    chosen: Option<Chosen>,
    list: Vec<Process>,
    /// Who of the members is weigh itself.
    helpers: Helpers,
    /// Those who were forked since the last look, and may be about to become somebody else.
    fresh: Vec<Fresh>,
    /// Those who were forked by a tool and gone before they could be met.
    missed: Vec<u32>,
    footprint: Footprint,
    tools: Tools,
    newcomers: Vec<Newcomer>,
    arguments: bool,
    /// What could not be read, the first of each kind, until somebody asks.
    refusals: Vec<String>,
    refused: HashSet<&'static str>,
    unseen: bool,
    /// Who has reaped children, and whose children are known to have gone.
    reaped: Reaped,
    /// The command's first process, until the first tick.
    root: Option<ProcessId>,
    /// Its pid: whatever it becomes, it is the command.
    main: u32,
    has_looked: bool,
    /// Whether weigh did not start what is measured.
    follows: bool,
    /// Whether the kernel tells who comes and goes.
    is_told: bool,
    /// When it began to, in clock ticks since boot.
    came: u64,
    to_ask: Vec<u32>,
}

impl Processes {
    /// Takes note of the machine before the run begins.
    pub fn before_run(host: &Host, settings: &Settings) -> Processes {
        let members = Tree::before_run(host, std::process::id());
        let helpers = Helpers::of_own_run(host);
        Processes { follows: false, helpers, ..Processes::of(host, settings, members, None, 0) }
    }

    /// Follows processes that run already, with at most so many descriptors kept open.
    pub fn of(
        host: &Host,
        settings: &Settings,
        members: impl Into<Members>,
        rule: Option<Rule>,
        descriptors: usize,
    ) -> Processes {
        Processes {
            members: members.into(),
            chosen: rule.map(Chosen::by),
            list: Vec::new(),
            helpers: Helpers::default(),
            fresh: Vec::new(),
            missed: Vec::new(),
            footprint: Footprint::within(settings.budget),
            tools: Tools::new(host, descriptors),
            newcomers: Vec::new(),
            arguments: settings.command_lines,
            refusals: Vec::new(),
            refused: HashSet::new(),
            unseen: false,
            reaped: Reaped::default(),
            root: None,
            main: 0,
            has_looked: false,
            follows: true,
            is_told: false,
            came: 0,
            to_ask: Vec::new(),
        }
    }

    /// Follows the command's first process, with at most so many descriptors kept open.
    pub fn begin(&mut self, host: &Host, root: u32, descriptors: usize) -> ProcessId {
        self.tools = Tools::new(host, descriptors);
        if let Some(tree) = self.members.tree() {
            tree.begin(host, root);
        }
        let started = process::started(host, root, &mut self.tools.buffer).unwrap_or(0);
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
        self.footprint.want();
        self.footprint.note_change();
    }

    /// What could not be read since the last question, a sentence each.
    pub fn refusals(&mut self) -> Vec<String> {
        std::mem::take(&mut self.refusals)
    }

    /// Whether processes may have come and gone between two looks.
    pub fn some_went_unseen(&self) -> bool {
        self.unseen || self.helpers.unsure
    }

    /// Reads a child of weigh's for the last time, between its end and its reaping.
    ///
    /// Returns who it was, unless it was weigh's own helper, and so left out; somebody never
    /// seen before is introduced.
    pub fn last_look(&mut self, host: &Host, pid: u32, tick: &mut Tick) -> Option<ProcessId> {
        if self.helpers.remove(pid) {
            self.members.note_went(pid);
            return None;
        }
        let started = process::started(host, pid, &mut self.tools.buffer).unwrap_or(0);
        let known = self.list.iter().position(|process| process.id.pid == pid);
        let mut process = match known {
            Some(place) => self.list.remove(place),
            None => {
                self.unseen = true;
                let program = self.program(host, pid).unwrap_or_default();
                // It has ended, so its file is gone and only its name is left to know it by.
                if self.helpers.is_one(host, pid, &program.name, &mut self.tools.buffer) {
                    self.members.note_went(pid);
                    return None;
                }
                let id = ProcessId { pid, started };
                self.introduce(tick, id, std::process::id(), program)
            }
        };
        process.look(host, &mut self.tools, tick, || {});
        self.members.note_went(pid);
        self.footprint.note_change();
        Some(process.id)
    }

    /// A process has been looked at for the last time; says who it was, if it was known.
    pub fn forget(&mut self, pid: u32) -> Option<ProcessId> {
        let place = self.list.iter().position(|process| process.id.pid == pid)?;
        let process = self.list.remove(place);
        self.members.note_went(pid);
        self.footprint.note_change();
        Some(process.id)
    }

    fn refuse(&mut self, what: &'static str, why: String) {
        if self.refused.insert(what) {
            self.refusals.push(why);
        }
    }
}

impl Collector for Processes {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let is_first = !self.has_looked;
        let more_were_born = self.take_in_newcomers(host, tick)? && !is_first;
        self.settle_address_spaces(host);
        let (tools, footprint) = (&mut self.tools, &mut self.footprint);
        let (chosen, arguments) = (self.chosen.as_ref(), self.arguments);
        let (members, is_told) = (&mut self.members, self.is_told);
        let (reaped, follows) = (&mut self.reaped, self.follows);
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
            let is_counted = process.is_looked_at() || !follows;
            let mut renamed = false;
            match process.look(host, tools, tick, || renamed = true) {
                // The kernel tells its end at once, and its last account with it.
                Look::Gone if is_told && !process.is_gone => {
                    process.is_gone = true;
                    return true;
                }
                Look::Gone => {
                    reaped.note_gone(process.parent);
                    members.note_went(process.id.pid);
                    tick.changes.push(Change::Went { id: process.id });
                    return false;
                }
                Look::Asleep => return true,
                Look::Ran => {}
            }
            if renamed || process.untold > 0 {
                let pid = process.id.pid;
                let Some(program) = program(host, pid, chosen, arguments, &mut tools.buffer) else {
                    // It is another program now, and not one that is meant; a row would bring
                    // it back.
                    tick.withdraw(Entity::Process(process.id));
                    members.note_went(pid);
                    tick.changes.push(Change::Went { id: process.id });
                    return false;
                };
                if pid != main && helpers.is_one(host, pid, &program.name, &mut tools.buffer) {
                    let parent = process::parent(host, pid, &mut tools.buffer).unwrap_or(main);
                    helpers.add(Newcomer::new(process.id, parent, &program.name));
                    // A row would bring it back.
                    tick.withdraw(Entity::Process(process.id));
                    tick.changes.push(Change::Went { id: process.id });
                    return false;
                }
                let is_told = program.arguments.is_some();
                process.untold = match process.untold {
                    _ if is_told => 0,
                    0 => untold(arguments, &program),
                    tries => tries - 1,
                };
                if renamed || is_told {
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
        self.unseen |= (children_ended || self.follows) && more_were_born;
        // Or somebody has reaped a child whom nobody knew. Who tells of everybody else needs no
        // such conclusion, and of those who are not meant nothing is known.
        let unknown_children = self.reaped.settle();
        self.unseen |= unknown_children && !self.is_told && self.chosen.is_none();
        if let Some(error) = denied {
            self.refuse("io", format!("I/O and open files: {error}"));
        }
        let refused = self.footprint.pass(host, &self.list, &mut self.tools, tick);
        if let Some(error) = refused {
            self.refuse("smaps", format!("PSS and USS: {error}"));
        }
        Ok(())
    }
}
