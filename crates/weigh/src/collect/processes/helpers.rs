//! `weigh mark` and `weigh phase` inside a run: helpers that are not measured.
//!
//! Source: `/proc/PID/exe` and `cmdline` of processes that have weigh's own name, readable by their
//! owner. A process that runs the same file as this weigh, with one of these subcommands, is left
//! out; what it starts counts as if its own parent had started it. `weigh run` inside a run is a
//! command like any other.
//!
//! On a node of a batch job, recorders (`weigh job`), the commands that start them on other nodes
//! (`srun … weigh job follow`) and SLURM's daemon for a step are left out in the same way.
//!
//! What surprised us: the child of `weigh phase NAME -- CMD` is a copy of it until exec, so helpers
//! are checked again (`stat`, at each tick) for as long as they live.

use crate::collect::members::NewMember;
use crate::host::{Host, ProcPath};
use crate::parse;

/// The name of our processes, unless the program file was renamed.
const NAME: &[u8] = b"weigh";
const SUBCOMMANDS: [&[u8]; 2] = [b"phase", b"mark"];

/// The subcommand of recorders, and another name under which they may be started.
const JOB: &[u8] = b"job";
const PERFMON: &[u8] = b"perfmon";

/// Programs that start recorders on other nodes.
const LAUNCHERS: [&[u8]; 11] = [
    b"srun",
    b"pbsdsh",
    b"pbs_tmrsh",
    b"oarsh",
    b"ssh",
    b"flux",
    b"mpirun",
    b"mpiexec",
    b"orterun",
    b"prterun",
    b"mpiexec.hydra",
];

/// SLURM's process for a step, above the tasks of the step.
const STEP_DAEMON: &[u8] = b"slurmstepd";

/// The helpers of the run.
#[derive(Debug, Default)]
pub(super) struct HelperProcesses {
    /// Our own program file (device and inode) and name; without it no process is a helper.
    own: Option<((u64, u64), Vec<u8>)>,
    list: Vec<NewMember>,
    /// Whether recorders of a batch job, and what starts them, are helpers, too.
    is_job: bool,
    /// Whether a process was left out that may have been another program.
    pub(super) is_unsure: bool,
}

/// The result of checking the helpers again.
#[derive(Debug, Default)]
pub(super) struct HelperRecheck {
    /// Those that have called exec for another program.
    pub(super) commands: Vec<NewMember>,
    /// The parents of those that exited, one for each.
    pub(super) reaped_by: Vec<u32>,
    /// Whether a forked copy of a helper exited: it may have called exec for a command unseen.
    pub(super) may_have_missed: bool,
}

impl HelperProcesses {
    /// The helpers of a run measured by this process.
    pub(super) fn of_own_run(host: &Host) -> HelperProcesses {
        let mut buffer = Vec::new();
        let name = host.proc.read(c"self/comm", &mut buffer).map(|name| name.trim_ascii().to_vec());
        let file = host.proc.file_id(c"self/exe").ok();
        let own = file.map(|file| (file, name.unwrap_or_default()));
        HelperProcesses { own, ..HelperProcesses::default() }
    }

    /// Those on a node of a batch job.
    pub(super) fn of_job(host: &Host) -> HelperProcesses {
        HelperProcesses { is_job: true, ..HelperProcesses::of_own_run(host) }
    }

    /// The commands that start recorders.
    pub(super) fn launchers(&self) -> impl Iterator<Item = u32> {
        let launchers = self.list.iter().filter(|helper| LAUNCHERS.contains(&helper.name()));
        launchers.map(|helper| helper.id.pid)
    }

    /// The processes that started helpers: they are their ancestors, or wait for them.
    pub(super) fn parents(&self) -> impl Iterator<Item = u32> {
        self.list.iter().map(|helper| helper.parent)
    }

    /// Whether a process of this name belongs to the recording of a batch job: SLURM's daemon, or a
    /// command that starts recorders.
    fn is_of_job(&self, host: &Host, pid: u32, name: &[u8], buffer: &mut Vec<u8>) -> bool {
        self.is_job
            && (name == STEP_DAEMON
                || (LAUNCHERS.contains(&name)
                    && host
                        .proc
                        .read(ProcPath::new(pid, "cmdline").as_c_str(), buffer)
                        .is_ok_and(starts_recorders)))
    }

    /// Whether a process of this name is a helper of ours.
    pub(super) fn is_helper(
        &mut self,
        host: &Host,
        pid: u32,
        name: &[u8],
        buffer: &mut Vec<u8>,
    ) -> bool {
        if self.is_of_job(host, pid, name, buffer) {
            return true;
        }
        if !self.has_name(name) {
            return false;
        }
        let path = |file| ProcPath::new(pid, file);
        let file = match host.proc.file_id(path("exe").as_c_str()) {
            Ok(file) => file,
            // An exiting process has only its name left, and most with this name are helpers.
            Err(error) => {
                self.is_unsure |= error.is_gone();
                return error.is_gone();
            }
        };
        self.own.as_ref().is_some_and(|own| own.0 == file)
            && host
                .proc
                .read(path("cmdline").as_c_str(), buffer)
                .is_ok_and(|line| is_of_helper(line) || (self.is_job && is_recorder(line)))
    }

    fn has_name(&self, name: &[u8]) -> bool {
        self.own.as_ref().is_some_and(|(_, own)| name == NAME || name == own.as_slice())
    }

    /// Adds a helper.
    pub(super) fn add(&mut self, helper: NewMember) {
        self.list.push(helper);
    }

    /// Removes a process that weigh is about to reap; returns whether it was a helper.
    pub(super) fn remove(&mut self, pid: u32) -> bool {
        let place = self.list.iter().position(|helper| helper.id.pid == pid);
        place.map(|place| self.list.swap_remove(place)).is_some()
    }

    /// The parent of a process, skipping helpers.
    pub(super) fn parent(&self, parent: u32) -> u32 {
        let mut parent = parent;
        // No chain of parents is longer than the list of helpers.
        for _ in 0..self.list.len() {
            match self.list.iter().find(|helper| helper.id.pid == parent) {
                Some(helper) => parent = helper.parent,
                None => break,
            }
        }
        parent
    }

    /// Checks all helpers again.
    pub(super) fn recheck(&mut self, host: &Host, buffer: &mut Vec<u8>) -> HelperRecheck {
        let mut found = HelperRecheck::default();
        if self.list.is_empty() {
            return found;
        }
        let before = std::mem::take(&mut self.list);
        let is_copy = |one: &NewMember| before.iter().any(|other| other.id.pid == one.parent);
        let mut stays = Vec::with_capacity(before.len());
        for helper in &before {
            let path = ProcPath::new(helper.id.pid, "stat");
            let stat = host.proc.read(path.as_c_str(), buffer).ok();
            let stat = stat.and_then(|bytes| parse::stat::parse(bytes).ok());
            match stat.filter(|stat| stat.started == helper.id.started) {
                None => {
                    found.may_have_missed |= is_copy(helper);
                    found.reaped_by.push(helper.parent);
                }
                Some(stat) => {
                    // A zombie has no file any more, and keeps its last name.
                    let (has_ended, name) = (stat.state == b'Z', stat.name.to_vec());
                    let is_helper = match has_ended {
                        true => self.is_job || self.has_name(&name),
                        false => self.is_helper(host, helper.id.pid, &name, buffer),
                    };
                    if is_helper {
                        stays.push(helper.clone());
                    } else {
                        found.commands.push(helper.clone());
                    }
                }
            }
        }
        self.list = stays;
        found
    }
}

/// Whether this is the command line of a helper. During exec it is empty: the next tick decides.
/// The subcommand is the first argument: weigh has no options before it.
fn is_of_helper(line: &[u8]) -> bool {
    let subcommand = line.split(|byte| *byte == 0).nth(1);
    line.is_empty() || subcommand.is_some_and(|name| SUBCOMMANDS.contains(&name))
}

/// Whether this is the command line of a recorder of a batch job.
fn is_recorder(line: &[u8]) -> bool {
    let mut words = line.split(|byte| *byte == 0);
    words.next().is_some_and(is_perfmon) || words.next() == Some(JOB)
}

/// Whether this is a path of a recorder that was started under the name of perfmon.
fn is_perfmon(program: &[u8]) -> bool {
    program.rsplit(|byte| *byte == b'/').next() == Some(PERFMON)
}

/// Whether a command starts recorders: its last words are `weigh job follow` or `perfmon`, and
/// options. ssh gets them as one argument.
fn starts_recorders(line: &[u8]) -> bool {
    let words: Vec<&[u8]> = line.split(|byte| matches!(byte, 0 | b' ')).collect();
    words.windows(2).any(|two| two == [JOB, b"follow"])
        || words.iter().skip(1).any(|word| is_perfmon(word))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ProcessCollector;
    use crate::catalog::Scope;
    use crate::catalog::metrics::process::SOURCE;
    use crate::collect::members::ProcessTree;
    use crate::collect::{Collector, Context};
    use crate::host::fake::FakeHost;
    use crate::model::settings::Settings;
    use crate::model::{Change, Entity, Tick};

    const ROOT: u32 = 200;

    /// A process of this name and file, with these arguments.
    fn runs(fake: &FakeHost, [pid, parent]: [u32; 2], name: &str, file: &str, arguments: &str) {
        let stat = format!(
            "{pid} ({name}) S {parent} 1 1 0 -1 0 7 0 0 0 1 0 0 0 20 0 1 0 50 0 100 0 0 \
             0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        );
        fake.set_proc(&format!("{pid}/stat"), &stat);
        fake.set_proc(&format!("{pid}/comm"), &format!("{name}\n"));
        fake.set_proc(&format!("{pid}/cmdline"), &arguments.replace(' ', "\0"));
        let link = fake.path("proc").join(format!("{pid}/exe"));
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(file, link).unwrap();
        fake.set_proc("loadavg", &format!("0.0 0.0 0.0 1/2 {}\n", ROOT.max(pid)));
    }

    /// A machine on which the command runs, where weigh is this test program.
    fn begin() -> (FakeHost, ProcessCollector, Tick) {
        let fake = FakeHost::new().proc_link("self/exe", OURS).proc("self/comm", "weigh\n");
        fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 10\n");
        let mut processes = ProcessCollector::before_run(&fake.host(), &Settings::default());
        runs(&fake, [ROOT, std::process::id()], "sh", OTHERS, "sh script");
        processes.begin(&fake.host(), ROOT, 0);
        (fake, processes, Tick::new(SOURCE.groups))
    }

    const OURS: &str = "/proc/self/exe";
    const OTHERS: &str = "/bin/sh";

    /// Started processes with their parents, and exited ones, at one more tick.
    fn changes(
        fake: &FakeHost,
        all: &mut ProcessCollector,
        tick: &mut Tick,
    ) -> (Vec<[u32; 2]>, Vec<u32>) {
        tick.begin(tick.at + Duration::from_secs(1));
        all.sample(&Context::of(&fake.host()), tick).unwrap();
        let (mut started, mut exited) = (Vec::new(), Vec::new());
        for change in &tick.changes {
            match change {
                Change::Started { id, parent, .. } => started.push([id.pid, *parent]),
                Change::Exited { id, .. } => exited.push(id.pid),
                _ => {}
            }
        }
        (started, exited)
    }

    #[test]
    fn children_of_a_helper_count_for_its_parent() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh phase x -- weigh phase y -- work");
        runs(&fake, [202, 201], "weigh", OURS, "weigh phase y -- work");
        runs(&fake, [203, 202], "work", OTHERS, "work");
        let weigh = std::process::id();
        let (started, _) = changes(&fake, &mut all, &mut tick);
        assert_eq!(started, [[ROOT, weigh], [203, ROOT]]);
        assert_eq!(all.alive().count(), 2);
    }

    #[test]
    fn copy_of_a_helper_counts_after_exec() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh phase x -- work");
        runs(&fake, [202, 201], "weigh", OURS, "weigh phase x -- work");
        assert_eq!(changes(&fake, &mut all, &mut tick).0.len(), 1, "the command of the run");
        runs(&fake, [202, 201], "work", OTHERS, "work");
        assert_eq!(changes(&fake, &mut all, &mut tick).0, [[202, ROOT]]);
        fake.remove_proc("202");
        assert_eq!(changes(&fake, &mut all, &mut tick).1, [202]);
        assert!(!all.may_have_missed_processes());
    }

    #[test]
    fn exited_copy_of_a_helper_may_have_been_an_unseen_command() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh phase x -- work");
        runs(&fake, [202, 201], "weigh", OURS, "weigh phase x -- work");
        changes(&fake, &mut all, &mut tick);
        fake.remove_proc("202");
        assert_eq!(changes(&fake, &mut all, &mut tick), (vec![], vec![]));
        assert!(all.may_have_missed_processes());
    }

    #[test]
    fn process_that_execs_a_helper_is_left_out() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "sh", OTHERS, "sh script");
        assert_eq!(changes(&fake, &mut all, &mut tick).0.len(), 2);
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh mark here");
        assert_eq!(changes(&fake, &mut all, &mut tick).1, [201]);
        let of_it = |entity: &&Entity| matches!(entity, Entity::Process(id) if id.pid == 201);
        let rows = tick.table(Scope::Process).unwrap().entities();
        assert_eq!(rows.iter().filter(of_it).count(), 0, "a row would add it again");
        fake.remove_proc("201");
        assert_eq!(changes(&fake, &mut all, &mut tick), (vec![], vec![]));
        assert!(!all.may_have_missed_processes());
    }

    #[test]
    fn zombie_with_the_name_of_a_helper_is_uncertain() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "weigh", "/proc/self/no-such-file", "");
        assert_eq!(changes(&fake, &mut all, &mut tick).0.len(), 1, "the command of the run");
        assert!(all.may_have_missed_processes());
    }

    #[test]
    fn exited_phase_command_hides_no_unknown_child() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh phase x -- work");
        runs(&fake, [202, 201], "work", OTHERS, "work");
        changes(&fake, &mut all, &mut tick);
        fake.remove_proc("202");
        assert_eq!(changes(&fake, &mut all, &mut tick).1, [202]);
        assert!(!all.may_have_missed_processes());
        // It has the page faults of a child now, and the phase has not ended.
        let stat = fake.host().proc.read(c"200/stat", &mut Vec::new()).unwrap().to_vec();
        let stat = String::from_utf8(stat).unwrap().replace(" 7 0 0 0 1 ", " 7 9 0 0 2 ");
        fake.set_proc("200/stat", &stat);
        changes(&fake, &mut all, &mut tick);
        assert!(all.may_have_missed_processes());
    }

    #[test]
    fn helper_that_exited_before_any_tick_is_left_out() {
        let (fake, mut all, mut tick) = begin();
        changes(&fake, &mut all, &mut tick);
        for (pid, name, is_left_out) in [(201, "weigh", true), (202, "sh", false)] {
            runs(&fake, [pid, std::process::id()], name, "/proc/self/no-such-file", "");
            tick.begin(tick.at + Duration::from_secs(1));
            let reaped = all.final_read(&fake.host(), pid, &mut tick);
            assert_eq!(reaped.is_none(), is_left_out, "{name}");
            assert_eq!(tick.changes.is_empty(), is_left_out, "{name}: {:?}", tick.changes);
            let rows = tick.table(Scope::Process).unwrap().entities();
            assert_eq!(rows.is_empty(), is_left_out, "{name}: {rows:?}");
        }
        assert!(
            all.may_have_missed_processes(),
            "by its name alone, it may have been another program"
        );
    }

    #[test]
    fn recorders_of_a_job_and_what_starts_them_are_left_out() {
        let fake = FakeHost::new().proc_link("self/exe", OURS).proc("self/comm", "weigh\n");
        fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 10\n");
        let step = "srun --overlap weigh job follow -o out";
        for (pid, parent, name, line, file) in [
            (100, 1, "slurmstepd", "slurmstepd: [3.batch]", OTHERS),
            (101, 100, "bash", "bash -c srun weigh job follow & srun solver", OTHERS),
            (102, 101, "srun", step, OTHERS),
            (103, 102, "srun", step, OTHERS),
            (104, 101, "srun", "srun solver", OTHERS),
            (105, 100, "weigh", "weigh job follow -o out", OURS),
            (106, 105, "weigh", "weigh run work", OURS),
        ] {
            runs(&fake, [pid, parent], name, file, line);
        }
        let members = ProcessTree::rooted_at(&fake.host(), &[100]);
        let mut all = ProcessCollector::of_job(&fake.host(), &Settings::default(), members, 0);
        let mut tick = Tick::new(SOURCE.groups);
        let (mut started, _) = changes(&fake, &mut all, &mut tick);
        started.sort_unstable();
        assert_eq!(started, [[101, 1], [104, 101], [106, 1]]);
        assert!(!all.only_waits_for_recorders(), "the solver is there");
        fake.remove_proc("104");
        fake.remove_proc("106");
        changes(&fake, &mut all, &mut tick);
        // The script has not run since.
        fake.set_proc("101/schedstat", "5 0 1\n");
        changes(&fake, &mut all, &mut tick);
        changes(&fake, &mut all, &mut tick);
        assert!(all.only_waits_for_recorders());
        fake.set_proc("101/schedstat", "6 0 2\n");
        changes(&fake, &mut all, &mut tick);
        assert!(!all.only_waits_for_recorders(), "it works itself");
    }

    #[test]
    fn run_inside_a_run_another_weigh_and_the_command_itself_count() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [ROOT, std::process::id()], "weigh", OURS, "weigh phase x -- work");
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh run work");
        runs(&fake, [202, ROOT], "weigh", OTHERS, "weigh mark here");
        assert_eq!(changes(&fake, &mut all, &mut tick).0.len(), 3);
    }
}
