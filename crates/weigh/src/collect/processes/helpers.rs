//! `weigh mark` and `weigh phase` inside a run: they measure, and are not what is measured.
//!
//! Source: `/proc/PID/exe` and `cmdline` of processes that have weigh's own name, readable by
//! their owner. One that runs the very file that this weigh runs, with one of these verbs, is
//! left out of everything; what it starts counts, as if its own parent had started it. `weigh
//! run` inside a run is a command like any other.
//!
//! What surprised us: the child of `weigh phase NAME -- CMD` is a copy of it until exec, so
//! whoever was left out is looked at again (its `stat`, at each tick) for as long as it lives.

use crate::collect::members::NewMember;
use crate::host::{Host, ProcPath};
use crate::parse;

/// The names that a process of ours has, unless the program's file was given another one.
const NAME: &[u8] = b"weigh";
const VERBS: [&[u8]; 2] = [b"phase", b"mark"];

/// Who is left out.
#[derive(Debug, Default)]
pub(super) struct HelperProcesses {
    /// Our own program's file (device and inode) and name; nobody is left out without.
    own: Option<((u64, u64), Vec<u8>)>,
    list: Vec<NewMember>,
    /// Whether somebody was left out who may have been another program.
    pub(super) is_unsure: bool,
}

/// What became of those who were left out.
#[derive(Debug, Default)]
pub(super) struct HelperRecheck {
    /// They are other programs now.
    pub(super) commands: Vec<NewMember>,
    /// The parents of those that are gone, one for each.
    pub(super) reaped_by: Vec<u32>,
    /// Some were copies of one that was to become a command, and are gone: nobody has seen
    /// whether they became it.
    pub(super) may_have_missed: bool,
}

impl HelperProcesses {
    /// The helpers of a run that this process measures.
    pub(super) fn of_own_run(host: &Host) -> HelperProcesses {
        let mut buffer = Vec::new();
        let name = host.proc.read(c"self/comm", &mut buffer).map(|name| name.trim_ascii().to_vec());
        let file = host.proc.file_id(c"self/exe").ok();
        let own = file.map(|file| (file, name.unwrap_or_default()));
        HelperProcesses { own, ..HelperProcesses::default() }
    }

    /// Whether a process of this name is a helper of ours.
    pub(super) fn is_helper(
        &mut self,
        host: &Host,
        pid: u32,
        name: &[u8],
        buffer: &mut Vec<u8>,
    ) -> bool {
        if !self.has_name(name) {
            return false;
        }
        let path = |file| ProcPath::new(pid, file);
        let file = match host.proc.file_id(path("exe").as_c_str()) {
            Ok(file) => file,
            // Of one that has ended, or is about to, only the name is left, and most with this
            // name are helpers.
            Err(error) => {
                self.is_unsure |= error.is_gone();
                return error.is_gone();
            }
        };
        self.own.as_ref().is_some_and(|own| own.0 == file)
            && host.proc.read(path("cmdline").as_c_str(), buffer).is_ok_and(is_of_helper)
    }

    fn has_name(&self, name: &[u8]) -> bool {
        self.own.as_ref().is_some_and(|(_, own)| name == NAME || name == own.as_slice())
    }

    /// Leaves a process out from now on.
    pub(super) fn add(&mut self, helper: NewMember) {
        self.list.push(helper);
    }

    /// One that weigh is about to reap; says whether it was left out.
    pub(super) fn remove(&mut self, pid: u32) -> bool {
        let place = self.list.iter().position(|helper| helper.id.pid == pid);
        place.map(|place| self.list.swap_remove(place)).is_some()
    }

    /// The parent of what a process has started, as if helpers did not exist.
    pub(super) fn parent(&self, parent: u32) -> u32 {
        let mut parent = parent;
        // No chain of parents is longer than there are helpers.
        for _ in 0..self.list.len() {
            match self.list.iter().find(|helper| helper.id.pid == parent) {
                Some(helper) => parent = helper.parent,
                None => break,
            }
        }
        parent
    }

    /// Looks at everybody who was left out once more.
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
                    // What has ended has no file any more, and keeps its last name.
                    let (has_ended, name) = (stat.state == b'Z', stat.name.to_vec());
                    let is_helper = match has_ended {
                        true => self.has_name(&name),
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

/// Whether these are the arguments of a helper. In the middle of exec there are none yet: the
/// next look tells. The verb is the first word: weigh has no option that stands before it.
fn is_of_helper(line: &[u8]) -> bool {
    let verb = line.split(|byte| *byte == 0).nth(1);
    line.is_empty() || verb.is_some_and(|verb| VERBS.contains(&verb))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::super::ProcessCollector;
    use crate::catalog::Scope;
    use crate::catalog::metrics::process::SOURCE;
    use crate::collect::Collector;
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

    /// A machine on which the command runs, and weigh is the program of this test.
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

    /// Who came, with their parents, and who went, at one more tick.
    fn changes(
        fake: &FakeHost,
        all: &mut ProcessCollector,
        tick: &mut Tick,
    ) -> (Vec<[u32; 2]>, Vec<u32>) {
        tick.begin(tick.at + Duration::from_secs(1));
        all.sample(&fake.host(), tick).unwrap();
        let (mut came, mut went) = (Vec::new(), Vec::new());
        for change in &tick.changes {
            match change {
                Change::Came { id, parent, .. } => came.push([id.pid, *parent]),
                Change::Went { id } => went.push(id.pid),
                _ => {}
            }
        }
        (came, went)
    }

    #[test]
    fn own_helper_is_left_out_and_what_it_starts_counts_for_its_parent() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh phase x -- weigh phase y -- work");
        runs(&fake, [202, 201], "weigh", OURS, "weigh phase y -- work");
        runs(&fake, [203, 202], "work", OTHERS, "work");
        let weigh = std::process::id();
        let (came, _) = changes(&fake, &mut all, &mut tick);
        assert_eq!(came, [[ROOT, weigh], [203, ROOT]]);
        assert_eq!(all.alive().count(), 2);
    }

    #[test]
    fn copy_of_a_helper_counts_once_it_has_become_the_command() {
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
    fn copy_of_a_helper_that_is_gone_may_have_been_a_command_that_nobody_saw() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh phase x -- work");
        runs(&fake, [202, 201], "weigh", OURS, "weigh phase x -- work");
        changes(&fake, &mut all, &mut tick);
        fake.remove_proc("202");
        assert_eq!(changes(&fake, &mut all, &mut tick), (vec![], vec![]));
        assert!(all.may_have_missed_processes());
    }

    #[test]
    fn process_that_becomes_a_helper_is_gone_from_then_on() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "sh", OTHERS, "sh script");
        assert_eq!(changes(&fake, &mut all, &mut tick).0.len(), 2);
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh mark here");
        assert_eq!(changes(&fake, &mut all, &mut tick).1, [201]);
        let of_it = |entity: &&Entity| matches!(entity, Entity::Process(id) if id.pid == 201);
        let rows = tick.table(Scope::Process).unwrap().entities();
        assert_eq!(rows.iter().filter(of_it).count(), 0, "a row would bring it back");
        fake.remove_proc("201");
        assert_eq!(changes(&fake, &mut all, &mut tick), (vec![], vec![]));
        assert!(!all.may_have_missed_processes());
    }

    #[test]
    fn ended_process_with_the_name_of_a_helper_leaves_it_open_whether_it_was_one() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [201, ROOT], "weigh", "/proc/self/no-such-file", "");
        assert_eq!(changes(&fake, &mut all, &mut tick).0.len(), 1, "the command of the run");
        assert!(all.may_have_missed_processes());
    }

    #[test]
    fn command_of_a_phase_that_has_gone_hides_no_unknown_child_of_the_phase_s_parent() {
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
    fn helper_that_ended_before_any_tick_is_left_out_when_it_is_reaped() {
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
    fn run_inside_a_run_another_weigh_and_the_command_itself_count() {
        let (fake, mut all, mut tick) = begin();
        runs(&fake, [ROOT, std::process::id()], "weigh", OURS, "weigh phase x -- work");
        runs(&fake, [201, ROOT], "weigh", OURS, "weigh run work");
        runs(&fake, [202, ROOT], "weigh", OTHERS, "weigh mark here");
        assert_eq!(changes(&fake, &mut all, &mut tick).0.len(), 3);
    }
}
