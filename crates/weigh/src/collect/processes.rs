//! All processes of the run: who they are, and what each uses.
//!
//! Ties together who belongs ([`super::members`]), what one uses
//! ([`super::process`]) and the expensive part ([`super::footprint`]).

use std::collections::HashSet;

use super::footprint::Footprint;
use super::members::{Members, Newcomer};
use super::process::{
    self, Look, Process, ProcessCpu, ProcessEvents, ProcessIo, ProcessMemory, ProcessState, Tools,
};
use super::{Collector, Fault, Probe, Source, group, readable};
use crate::host::{Host, ProcPath};
use crate::parse;
use crate::sample::{Change, ProcessId, Program, Tick};
use crate::settings::Settings;

pub(super) const SOURCE: Source = Source {
    name: "process",
    about: "CPU, memory, I/O, faults, switches, threads and files of each process of the run",
    groups: &[
        group::<ProcessCpu>(),
        group::<ProcessMemory>(),
        group::<ProcessIo>(),
        group::<ProcessEvents>(),
        group::<ProcessState>(),
    ],
    probe,
    collector: None,
    on_request: false,
    everywhere: true,
};

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
    list: Vec<Process>,
    footprint: Footprint,
    tools: Tools,
    newcomers: Vec<Newcomer>,
    arguments: bool,
    /// What could not be read, the first of each kind, until somebody asks.
    refusals: Vec<String>,
    refused: HashSet<&'static str>,
    unseen: bool,
    /// The command's first process, until the first tick.
    root: Option<ProcessId>,
}

impl Processes {
    /// Takes note of the machine before the run begins.
    pub fn before_run(host: &Host, settings: &Settings) -> Processes {
        Processes {
            members: Members::before_run(host, std::process::id()),
            list: Vec::new(),
            footprint: Footprint::within(settings.budget),
            tools: Tools::new(host, 0),
            newcomers: Vec::new(),
            arguments: settings.command_lines,
            refusals: Vec::new(),
            refused: HashSet::new(),
            unseen: false,
            root: None,
        }
    }

    /// Follows the command's first process, with at most so many descriptors kept open.
    pub fn begin(&mut self, host: &Host, root: u32, descriptors: usize) -> ProcessId {
        self.tools = Tools::new(host, descriptors);
        self.members.begin(host, root);
        let started = self.started(host, root).unwrap_or(0);
        let id = ProcessId { pid: root, started };
        self.root = Some(id);
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
        self.unseen
    }

    /// Reads a child of weigh's for the last time, between its end and its reaping.
    ///
    /// Returns who it was; somebody never seen before is introduced.
    pub fn last_look(&mut self, host: &Host, pid: u32, tick: &mut Tick) -> ProcessId {
        let started = self.started(host, pid).unwrap_or(0);
        let known = self.list.iter().position(|process| process.id.pid == pid);
        let mut process = match known {
            Some(place) => self.list.remove(place),
            None => {
                self.unseen = true;
                self.introduce(host, tick, ProcessId { pid, started }, std::process::id())
            }
        };
        process.look(host, &mut self.tools, tick, || {});
        self.members.note_went();
        self.footprint.note_change();
        process.id
    }

    /// A process has been looked at for the last time.
    pub fn forget(&mut self, pid: u32) {
        self.list.retain(|process| process.id.pid != pid);
        self.members.note_went();
        self.footprint.note_change();
    }

    fn started(&mut self, host: &Host, pid: u32) -> Option<u64> {
        let path = ProcPath::new(pid, "stat");
        let bytes = host.proc.read(path.as_c_str(), &mut self.tools.buffer).ok()?;
        parse::stat::parse(bytes).ok().map(|stat| stat.started)
    }

    fn refuse(&mut self, what: &'static str, why: String) {
        if self.refused.insert(what) {
            self.refusals.push(why);
        }
    }

    /// Says who somebody is, once.
    fn introduce(&mut self, host: &Host, tick: &mut Tick, id: ProcessId, parent: u32) -> Process {
        let program = process::program(host, id.pid, self.arguments, &mut self.tools.buffer);
        let mut process = Process::new(id, &program.name, &self.tools);
        process.untold = untold(self.arguments, &program);
        tick.changes.push(Change::Came { id, parent, program });
        process
    }

    /// Returns whether others may have come and gone since the last look.
    fn take_in_newcomers(&mut self, host: &Host, tick: &mut Tick) -> Result<bool, Fault> {
        // The command's process is introduced when it has become the command.
        if let Some(id) = self.root.take() {
            let process = self.introduce(host, tick, id, std::process::id());
            self.list.push(process);
        }
        let mut newcomers = std::mem::take(&mut self.newcomers);
        newcomers.clear();
        let looked = self.members.look(host, &mut newcomers);
        for newcomer in &newcomers {
            if self.list.iter().any(|process| process.id == newcomer.id) {
                continue;
            }
            let process = self.introduce(host, tick, newcomer.id, newcomer.parent);
            self.list.push(process);
            self.footprint.note_change();
        }
        self.newcomers = newcomers;
        Ok(looked?)
    }
}

/// How often to ask again for arguments that a process did not have: one that is looked at in
/// the middle of exec has them at the next look, one that cleared them never.
fn untold(wanted: bool, program: &Program) -> u8 {
    const TRIES: u8 = 3;
    if wanted && program.arguments.is_none() { TRIES } else { 0 }
}

impl Collector for Processes {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let more_were_born = self.take_in_newcomers(host, tick)?;
        let (tools, footprint, arguments) = (&mut self.tools, &mut self.footprint, self.arguments);
        let before = self.list.len();
        let mut children_ended = false;
        let mut denied = None;
        // In order of birth: a parent's account of its children is read before theirs, so
        // time that moves from one to the other between two reads is never seen twice.
        self.list.retain_mut(|process| {
            let (resident, children) = (process.resident, process.children_faults);
            let mut renamed = false;
            match process.look(host, tools, tick, || renamed = true) {
                Look::Gone => {
                    tick.changes.push(Change::Went { id: process.id });
                    return false;
                }
                Look::Asleep => return true,
                Look::Ran => {}
            }
            if renamed || process.untold > 0 {
                let program = process::program(host, process.id.pid, arguments, &mut tools.buffer);
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
            denied = process.denied.take().or(denied.take());
            true
        });
        let went = before - self.list.len();
        if went > 0 {
            self.members.note_went();
            self.footprint.note_change();
        }
        // Somebody waited for a child, and more were born than are known.
        self.unseen |= children_ended && more_were_born;
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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::catalog::Scope;
    use crate::host::fake::FakeHost;
    use crate::sample::Entity;

    const ROOT: u32 = 200;

    fn stat(pid: u32, parent: u32, started: u64, ticks: u64) -> String {
        format!(
            "{pid} (work) S {parent} 1 1 0 -1 0 7 0 0 0 {ticks} 0 0 0 20 0 1 0 {started} 0 100 0 0 \
             0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    /// A process that has run for so many clock ticks.
    fn runs(fake: &FakeHost, pid: u32, parent: u32, started: u64, ticks: u64) {
        fake.set_proc(&format!("{pid}/stat"), &stat(pid, parent, started, ticks));
        fake.set_proc(&format!("{pid}/schedstat"), &format!("{} 0 1\n", ticks * 10_000_000 + 1));
        fake.set_proc(&format!("{pid}/comm"), "work\n");
        fake.set_proc(&format!("{pid}/cmdline"), "work\0hard\0");
    }

    fn begin(fake: &FakeHost, descriptors: usize) -> (Processes, Tick) {
        fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 10\n");
        let settings = Settings::default();
        let mut processes = Processes::before_run(&fake.host(), &settings);
        runs(fake, ROOT, std::process::id(), 50, 0);
        fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 200\n");
        processes.begin(&fake.host(), ROOT, descriptors);
        (processes, Tick::new(SOURCE.groups))
    }

    /// The pids that have a row after one more tick.
    fn rows(processes: &mut Processes, tick: &mut Tick, fake: &FakeHost) -> Vec<u32> {
        tick.begin(tick.at + Duration::from_secs(1));
        processes.sample(&fake.host(), tick).unwrap();
        let table = tick.table(Scope::Process).unwrap();
        let pid = |entity: &Entity| match entity {
            Entity::Process(id) => id.pid,
            _ => unreachable!("a table of processes"),
        };
        table.entities().iter().map(pid).collect()
    }

    #[test]
    fn only_who_ran_is_read() {
        let fake = FakeHost::new();
        let (mut processes, mut tick) = begin(&fake, 100);
        assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT]);
        assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0], "it slept");
        runs(&fake, ROOT, std::process::id(), 50, 3);
        assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT]);
        let cpu = tick.table(Scope::Process).unwrap().get::<ProcessCpu>(0);
        assert_eq!(cpu.user, Some(0.03));
    }

    #[test]
    fn a_vanished_process_is_not_an_error() {
        let fake = FakeHost::new();
        let (mut processes, mut tick) = begin(&fake, 0);
        rows(&mut processes, &mut tick, &fake);
        fake.remove_proc("200");
        assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0]);
        assert!(matches!(tick.changes[..], [Change::Went { .. }]));
        assert_eq!(processes.alive().count(), 0);
    }

    #[test]
    fn a_pid_used_again_is_not_the_same_process() {
        let fake = FakeHost::new();
        let (mut processes, mut tick) = begin(&fake, 0);
        rows(&mut processes, &mut tick, &fake);
        runs(&fake, ROOT, 1, 99, 8);
        assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0]);
        assert!(matches!(tick.changes[..], [Change::Went { id }] if id.started == 50));
    }

    #[test]
    fn a_newcomer_is_introduced_with_its_name_and_arguments() {
        let fake = FakeHost::new();
        let (mut processes, mut tick) = begin(&fake, 100);
        runs(&fake, 201, ROOT, 60, 1);
        fake.set_proc("loadavg", "0.0 0.0 0.0 1/3 201\n");
        assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT, 201]);
        let [_, Change::Came { id, parent, program }] = &tick.changes[..] else { panic!() };
        assert_eq!((id.pid, id.started, *parent), (201, 60, ROOT));
        assert_eq!(program.name, b"work");
        assert_eq!(program.arguments, Some(vec![b"work".to_vec(), b"hard".to_vec()]));
    }

    #[test]
    fn arguments_that_are_not_there_during_exec_are_asked_for_again() {
        let fake = FakeHost::new();
        let (mut processes, mut tick) = begin(&fake, 100);
        fake.set_proc("200/cmdline", "");
        rows(&mut processes, &mut tick, &fake);
        let [Change::Came { program, .. }] = &tick.changes[..] else { panic!() };
        assert_eq!(program.arguments, None);
        runs(&fake, ROOT, std::process::id(), 50, 1);
        tick.changes.clear();
        rows(&mut processes, &mut tick, &fake);
        let [Change::Became { program, .. }] = &tick.changes[..] else { panic!() };
        assert_eq!(program.arguments, Some(vec![b"work".to_vec(), b"hard".to_vec()]));
        // Once told, nothing more is asked.
        for ticks in 2..4 {
            runs(&fake, ROOT, std::process::id(), 50, ticks);
            tick.changes.clear();
            rows(&mut processes, &mut tick, &fake);
            assert!(tick.changes.is_empty());
        }
    }

    #[test]
    fn memory_that_cannot_be_read_is_missing_and_not_zero() {
        let fake = FakeHost::new();
        let (mut processes, mut tick) = begin(&fake, 100);
        rows(&mut processes, &mut tick, &fake);
        let memory = tick.table(Scope::Process).unwrap().get::<ProcessMemory>(0);
        assert_eq!((memory.rss, memory.pss), (Some(100 * 4096), None));
    }
}
