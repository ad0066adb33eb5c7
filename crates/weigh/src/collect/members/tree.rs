//! Processes by descent, found by their parents.
//!
//! Source: the listing of `/proc`, and `stat` of every pid that is new in it. A process is a member
//! when its parent is. For a run weigh is a child subreaper, so an orphan has weigh as its parent
//! and is a member, too. The parent in `stat` is a process, never a thread, so it does not matter
//! which thread forked.
//!
//! Two things make this cheap. Nothing is listed when no process was started
//! ([`super::fork_counter`]). And each entry's inode changes when its pid is reused, so a known pid
//! is read again only when it is another process.
//!
//! What surprised us: `/proc/PID/task/TID/children` needs CONFIG_PROC_CHILDREN,
//! is per thread, and costs more than the listing from a few dozen processes on.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;

use super::NewMember;
use super::fork_counter::{ForkCounter, NewPids};
use crate::host::descent_mark::DescentMark;
use crate::host::{self, Host};
use crate::model::ProcessId;
use crate::parse;

#[derive(Debug, Clone, Copy)]
struct KnownPid {
    inode: u64,
    round: u64,
    ours: bool,
}

/// Whose descendants are members.
#[derive(Debug)]
enum TreeRoots {
    /// Those of this process, a subreaper, without the children it had before.
    Reaper(u32),
    /// Those of a command whose orphans this process adopts: of its children those with the mark.
    Command(DescentMark),
    /// Given processes and their descendants.
    Roots(HashSet<u32>),
    /// All processes but this one.
    AllBut(u32),
    /// Processes with a variable in their environment, and their descendants.
    Marked(EnvironmentMarker),
}

/// A variable in the environment of processes, as `NAME=value`.
///
/// Source: `/proc/PID/environ`, readable by the owner of the process; it is the environment that
/// the process was started with.
#[derive(Debug, Clone)]
pub struct EnvironmentMarker {
    variable: Vec<u8>,
    /// Daemons of MPI launchers stand for it, those started later than this, in clock ticks since
    /// boot.
    daemons_since: Option<u64>,
}

/// What MPI launchers start on each host, to start the ranks there: of Open MPI, PRRTE, MPICH and
/// Intel MPI, MVAPICH. They get few variables, and their ranks only those.
const MPI_DAEMONS: [&[u8]; 6] =
    [b"orted", b"prted", b"hydra_pmi_proxy", b"hydra_bstrap_pr", b"pmi_proxy", b"mpispawn"];

impl EnvironmentMarker {
    /// A variable with this value.
    pub fn new(name: &str, value: &str) -> EnvironmentMarker {
        let variable = format!("{name}={value}").into_bytes();
        EnvironmentMarker { variable, daemons_since: None }
    }

    /// The same, or being a daemon of an MPI launcher, of the user of this process, that was
    /// started later than this many clock ticks after boot.
    pub fn or_mpi_daemon(self, since: u64) -> EnvironmentMarker {
        EnvironmentMarker { daemons_since: Some(since), ..self }
    }

    fn is_on(&self, host: &Host, pid: u32, buffer: &mut Vec<u8>) -> bool {
        let environment = host.proc.read(host::ProcPath::new(pid, "environ").as_c_str(), buffer);
        environment
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|one| one == self.variable))
    }

    fn is_daemon(&self, host: &Host, pid: u32, name: &[u8], started: u64) -> bool {
        let is_later = self.daemons_since.is_some_and(|since| started >= since);
        is_later && MPI_DAEMONS.contains(&name) && {
            let owner = host.proc.owner(host::ProcPath::new(pid, "").as_c_str());
            owner.is_ok_and(|owner| owner == rustix::process::geteuid().as_raw())
        }
    }
}

/// A process that is no member yet.
#[derive(Debug, Clone, Copy)]
struct Recheck {
    pid: u32,
    inode: u64,
    /// At how many more updates it is read again.
    times: u32,
}

/// How often a new process is read again until it may have become a daemon: sshd, a shell and its
/// start files come before it.
const UNTIL_DAEMON: u32 = 50;

/// All processes of the machine, and which of them are members.
#[derive(Debug)]
pub struct ProcessTree {
    roots: TreeRoots,
    known: HashMap<u32, KnownPid>,
    /// The last pid allocated before the command's exec, until processes are listed for the first
    /// time: those with lower pids are older, and not members.
    last_before_exec: Option<u32>,
    round: u64,
    fork_counter: ForkCounter,
    /// The last pid allocated at the last update and at the one before; `None` after a wraparound
    /// of pids.
    last_pids: [Option<u32>; 2],
    /// A member exited: its pid may be reused already, without any other sign.
    member_exited: bool,
    /// Processes that were no members at the last update, when they were new: between fork and exec
    /// a process has the environment of its parent.
    to_recheck: Vec<Recheck>,
    entries: Vec<MaybeUninit<u8>>,
    unknown: Vec<(u32, u64)>,
    buffer: Vec<u8>,
}

impl ProcessTree {
    fn new(host: &Host, roots: TreeRoots) -> ProcessTree {
        ProcessTree {
            roots,
            known: HashMap::new(),
            last_before_exec: None,
            round: 0,
            fork_counter: ForkCounter::new(host),
            last_pids: [None; 2],
            member_exited: false,
            to_recheck: Vec::new(),
            entries: Vec::new(),
            unknown: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Prepares for a run: processes that exist before it are not members.
    ///
    /// They are listed now only if this process has children. Otherwise their pids tell them from
    /// the run's, and they need not be listed at all until one is started: the command waits.
    pub fn before_run(host: &Host, reaper: u32, has_children: bool) -> ProcessTree {
        let mut tree = ProcessTree::new(host, TreeRoots::Reaper(reaper));
        if has_children {
            tree.note_existing(host);
        }
        tree
    }

    /// Adds the command's first process, which has just been forked and has started no other yet.
    pub fn begin(&mut self, host: &Host, root: u32) {
        self.fork_counter.confirm_live(host);
        self.remember(root, 0, true);
        self.last_before_exec = self.fork_counter.last_pid();
        if self.last_before_exec.is_none() {
            self.note_existing(host);
        }
    }

    /// The command's first process is about to exec, and has still started no other: pids that were
    /// allocated until now are those of other processes and of weigh's own threads.
    pub fn before_exec(&mut self, host: &Host) {
        self.fork_counter.new_pids(host);
        self.last_before_exec = self.fork_counter.last_pid();
    }

    /// Lists the processes that exist now; those that are not known are not members.
    fn note_existing(&mut self, host: &Host) {
        // A listing that fails now fails again at a tick, and is reported there.
        let _ = self.list(host);
        for (pid, inode) in std::mem::take(&mut self.unknown) {
            self.remember(pid, inode, false);
        }
    }

    /// Of the processes in the first list, those from before exec are not members: pids ascend.
    fn note_older(&mut self, new_pids: NewPids) {
        let last = self.last_before_exec.take().filter(|_| new_pids != NewPids::Unknown);
        let Some(last) = last else { return };
        let unknown = std::mem::take(&mut self.unknown);
        let (older, newer): (Vec<_>, _) = unknown.into_iter().partition(|(pid, _)| *pid <= last);
        self.unknown = newer;
        for (pid, inode) in older {
            self.remember(pid, inode, false);
        }
    }

    /// Running processes and their descendants.
    pub fn rooted_at(host: &Host, roots: &[u32]) -> ProcessTree {
        let mut tree = ProcessTree::new(host, TreeRoots::Roots(roots.iter().copied().collect()));
        tree.verify_fork_counter(host);
        tree
    }

    /// The descendants of a command that will be [begun](Self::begin), also when they are orphans that
    /// this process has adopted: they have the mark of the command.
    pub fn of_command(host: &Host, mark: DescentMark) -> ProcessTree {
        let mut tree = ProcessTree::new(host, TreeRoots::Command(mark));
        tree.verify_fork_counter(host);
        tree
    }

    /// All processes but one.
    pub fn all_but(host: &Host, pid: u32) -> ProcessTree {
        let mut tree = ProcessTree::new(host, TreeRoots::AllBut(pid));
        tree.verify_fork_counter(host);
        tree
    }

    /// Processes with this variable in their environment, and their descendants, but weigh.
    pub fn marked(host: &Host, marker: EnvironmentMarker) -> ProcessTree {
        let mut tree = ProcessTree::new(host, TreeRoots::Marked(marker));
        tree.verify_fork_counter(host);
        tree
    }

    /// A thread has a pid, too: starting one shows whether the counter works.
    fn verify_fork_counter(&mut self, host: &Host) {
        if std::thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok()) {
            self.fork_counter.confirm_live(host);
        }
        self.fork_counter.forget_last();
    }

    /// Whether a member found by the last update has a pid that was allocated out of order: pids
    /// ascend, unless `ns_last_pid` was written. Then it is unknown how many processes there were.
    ///
    /// A process has its pid a moment before it is listed, so the last pid of the latest update is
    /// too recent.
    pub fn pid_out_of_order(&self, pid: u32) -> bool {
        self.last_pids[1].is_some_and(|last| pid <= last)
    }

    /// A member exited; its pid may be reused.
    pub fn note_exit(&mut self) {
        self.member_exited = true;
    }

    /// Whether a process is a known member.
    pub fn has(&self, pid: u32) -> bool {
        match &self.roots {
            TreeRoots::AllBut(one) => pid != *one,
            _ => self.known.get(&pid).is_some_and(|known| known.ours),
        }
    }

    /// A process was forked, as an event reported.
    pub fn forked(&mut self, parent: u32, child: u32) {
        // With `AllBut`, parents do not matter.
        if !matches!(self.roots, TreeRoots::AllBut(_)) {
            let ours = self.has(parent);
            self.remember(child, 0, ours);
        }
    }

    /// A process exited, as an event reported.
    pub fn exited(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// Adds to `found` the members that joined since the last update, parents first.
    ///
    /// Returns whether more processes may have been started than exist now.
    pub fn update(&mut self, host: &Host, found: &mut Vec<NewMember>) -> Result<bool, host::Error> {
        let last_pid = self.fork_counter.last_pid();
        let new_pids = self.fork_counter.new_pids(host);
        self.last_pids = match new_pids {
            NewPids::Unknown => [None; 2],
            _ => [last_pid, self.last_pids[0]],
        };
        if new_pids == NewPids::None && !self.member_exited && self.to_recheck.is_empty() {
            return Ok(false);
        }
        self.member_exited = false;
        self.list(host)?;
        self.note_older(new_pids);
        let more = match new_pids {
            NewPids::None => false,
            NewPids::Count(count) => count as usize > self.unknown.len(),
            NewPids::Unknown => true,
        };
        let is_same = |known: Option<&KnownPid>, inode| known.is_some_and(|one| one.inode == inode);
        for recheck in std::mem::take(&mut self.to_recheck) {
            let Recheck { pid, inode, times } = recheck;
            let is_there = is_same(self.known.get(&pid), inode);
            if is_there && !self.classify(host, pid, inode, found, 0) && times > 1 {
                self.to_recheck.push(Recheck { times: times - 1, ..recheck });
            }
        }
        for place in 0..self.unknown.len() {
            let (pid, inode) = self.unknown[place];
            // A child listed before its parent has classified the parent, too.
            if !is_same(self.known.get(&pid), inode) {
                self.classify(host, pid, inode, found, 0);
            }
        }
        if let TreeRoots::Marked(marker) = &self.roots {
            let times = if marker.daemons_since.is_some() { UNTIL_DAEMON } else { 1 };
            let is_other = |pid: &u32| !self.known.get(pid).is_some_and(|known| known.ours);
            let others = self.unknown.iter().filter(|(pid, _)| is_other(pid));
            self.to_recheck.extend(others.map(|(pid, inode)| Recheck {
                pid: *pid,
                inode: *inode,
                times,
            }));
        }
        self.known.retain(|_, known| known.round == self.round);
        Ok(more)
    }

    /// Lists `/proc`, refreshes known pids and leaves the others in `unknown`.
    fn list(&mut self, host: &Host) -> Result<(), host::Error> {
        self.round += 1;
        self.unknown.clear();
        let (known, unknown, round) = (&mut self.known, &mut self.unknown, self.round);
        host.proc.entries(&mut self.entries, |name, inode| {
            let Some(pid) = pid_of(name.to_bytes()) else { return };
            match known.get_mut(&pid) {
                // Inode 0: added by pid before it was ever listed.
                Some(seen) if seen.inode == inode || seen.inode == 0 => {
                    seen.inode = inode;
                    seen.round = round;
                }
                _ => unknown.push((pid, inode)),
            }
        })
    }

    /// Decides by its parent whether `pid` is a member.
    fn classify(
        &mut self,
        host: &Host,
        pid: u32,
        inode: u64,
        found: &mut Vec<NewMember>,
        depth: u32,
    ) -> bool {
        /// A deeper chain of processes that are all new is a loop.
        const DEEPEST: u32 = 10_000;
        let path = host::ProcPath::new(pid, "stat");
        let Ok(bytes) = host.proc.read(path.as_c_str(), &mut self.buffer) else {
            // It has exited, or is hidden from us: there is nothing to read.
            self.remember(pid, inode, false);
            return false;
        };
        let Ok(stat) = parse::stat::parse(bytes) else {
            self.remember(pid, inode, false);
            return false;
        };
        let id = ProcessId { pid, started: stat.started };
        let (parent, is_zombie) = (stat.parent, stat.state == b'Z');
        let member = NewMember::new(id, parent, stat.name);
        let by_itself = match &mut self.roots {
            TreeRoots::Reaper(reaper) => (parent == *reaper).then_some(true),
            TreeRoots::Command(_) if pid == std::process::id() => Some(false),
            TreeRoots::Command(mark) => {
                (parent == std::process::id()).then(|| mark.is_on(host, pid, &mut self.buffer))
            }
            // Once: a process with this pid afterwards is another one.
            TreeRoots::Roots(roots) => {
                let is_root = roots.remove(&pid);
                // weigh is not measured, although an attached shell may have started it.
                (is_root || pid == std::process::id()).then_some(is_root)
            }
            TreeRoots::AllBut(one) => Some(pid != *one),
            TreeRoots::Marked(_) if pid == std::process::id() => Some(false),
            TreeRoots::Marked(marker) => {
                let is_root = marker.is_daemon(host, pid, member.name(), id.started)
                    || marker.is_on(host, pid, &mut self.buffer);
                is_root.then_some(true)
            }
        };
        let ours = by_itself.unwrap_or_else(|| match self.known.get(&parent) {
            Some(known) if known.round == self.round => known.ours,
            // The parent is newer than the listing, or not classified yet.
            _ => {
                parent > 1 && depth < DEEPEST && {
                    let inode = self.listed_inode(parent);
                    self.classify(host, parent, inode, found, depth + 1)
                }
            }
        });
        self.remember(pid, inode, ours);
        // A process that was a zombie when attached does not count, unless weigh reaps it.
        let is_reaper = matches!(self.roots, TreeRoots::Reaper(_) | TreeRoots::Command(_));
        let is_over = is_zombie && !is_reaper;
        if ours && !is_over {
            found.push(member);
        }
        ours
    }

    fn listed_inode(&self, pid: u32) -> u64 {
        self.unknown.iter().find(|(listed, _)| *listed == pid).map_or(0, |(_, inode)| *inode)
    }

    fn remember(&mut self, pid: u32, inode: u64, ours: bool) {
        self.known.insert(pid, KnownPid { inode, round: self.round, ours });
    }
}

fn pid_of(name: &[u8]) -> Option<u32> {
    if !name.first()?.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(name).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    const WEIGH: u32 = 10;

    fn stat(pid: u32, parent: u32, started: u64) -> String {
        format!(
            "{pid} (x) S {parent} 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0 0 0 0 0 0 0 0 0 \
             0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
        )
    }

    fn machine() -> FakeHost {
        let fake = FakeHost::new().proc("loadavg", "0.0 0.0 0.0 1/2 10\n");
        for (pid, parent) in [(1, 0), (WEIGH, 1), (11, 1)] {
            fake.set_proc(&format!("{pid}/stat"), &stat(pid, parent, 5));
        }
        fake
    }

    fn fork(fake: &FakeHost, pid: u32, parent: u32) {
        fake.set_proc(&format!("{pid}/stat"), &stat(pid, parent, u64::from(pid)));
        fake.set_proc("loadavg", &format!("0.0 0.0 0.0 1/2 {pid}\n"));
    }

    fn found(members: &mut ProcessTree, fake: &FakeHost) -> Vec<u32> {
        let mut found = Vec::new();
        members.update(&fake.host(), &mut found).unwrap();
        found.iter().map(|member| member.id.pid).collect()
    }

    fn running(fake: &FakeHost) -> ProcessTree {
        let mut members = ProcessTree::before_run(&fake.host(), WEIGH, false);
        fork(fake, 20, WEIGH);
        members.begin(&fake.host(), 20);
        members
    }

    #[test]
    fn only_descendants_are_members() {
        let fake = machine();
        let mut members = running(&fake);
        fork(&fake, 21, 20);
        fork(&fake, 22, 21);
        fork(&fake, 30, 11);
        assert_eq!(found(&mut members, &fake), [21, 22]);
        assert_eq!(found(&mut members, &fake), [0; 0], "no process is found twice");
    }

    #[test]
    fn nothing_is_listed_until_there_is_a_new_pid_after_exec() {
        let fake = machine();
        let mut members = running(&fake);
        // A thread of weigh, or a process of somebody else.
        fork(&fake, 21, 11);
        members.before_exec(&fake.host());
        let listed = members.round;
        assert_eq!(found(&mut members, &fake), [0; 0]);
        assert_eq!(members.round, listed, "no process was started since exec");
        fork(&fake, 22, 20);
        assert_eq!(found(&mut members, &fake), [22]);
    }

    #[test]
    fn orphan_is_a_member() {
        let fake = machine();
        let mut members = running(&fake);
        fork(&fake, 25, WEIGH);
        assert_eq!(found(&mut members, &fake), [25]);
    }

    #[test]
    fn earlier_children_of_weigh_are_not_members() {
        for is_listed_before in [false, true] {
            let fake = machine();
            fork(&fake, 12, WEIGH);
            let mut members = ProcessTree::before_run(&fake.host(), WEIGH, is_listed_before);
            fork(&fake, 20, WEIGH);
            members.begin(&fake.host(), 20);
            assert_eq!(found(&mut members, &fake), [0; 0]);
            fork(&fake, 21, 20);
            assert_eq!(found(&mut members, &fake), [21]);
        }
    }

    #[test]
    fn earlier_children_of_weigh_are_not_members_after_a_wraparound_of_pids() {
        let fake = machine();
        fork(&fake, 12, WEIGH);
        let mut members = ProcessTree::before_run(&fake.host(), WEIGH, true);
        fork(&fake, 20, WEIGH);
        members.begin(&fake.host(), 20);
        members.before_exec(&fake.host());
        fork(&fake, 5, 20);
        assert_eq!(found(&mut members, &fake), [5]);
    }

    #[test]
    fn child_with_a_lower_pid_than_its_parent_is_a_member() {
        let fake = machine();
        let mut members = running(&fake);
        fork(&fake, 90, 20);
        fork(&fake, 15, 90);
        assert_eq!(found(&mut members, &fake), [90, 15], "parents first");
    }

    #[test]
    fn reused_pid_is_another_process() {
        let fake = machine();
        let mut members = running(&fake);
        fork(&fake, 30, 11);
        assert_eq!(found(&mut members, &fake), [0; 0]);
        fake.exit_proc("30");
        fork(&fake, 30, 20);
        fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 31\n");
        assert_eq!(found(&mut members, &fake), [30]);
    }

    #[test]
    fn pid_reuse_without_wraparound_is_noticed() {
        let fake = machine();
        let mut members = running(&fake);
        found(&mut members, &fake);
        fork(&fake, 30, 20);
        assert_eq!(found(&mut members, &fake), [30]);
        assert!(!members.pid_out_of_order(30));
        assert_eq!(found(&mut members, &fake), [0; 0]);
        // ns_last_pid was written: 30 is allocated again, and /proc/loadavg says 30 as before.
        fake.exit_proc("30");
        fork(&fake, 30, 20);
        members.note_exit();
        assert_eq!(found(&mut members, &fake), [30]);
        assert!(members.pid_out_of_order(30));
    }

    #[test]
    fn constant_loadavg_is_not_trusted() {
        let fake = machine();
        let mut members = ProcessTree::before_run(&fake.host(), WEIGH, false);
        fake.set_proc("20/stat", &stat(20, WEIGH, 20));
        members.begin(&fake.host(), 20);
        fake.set_proc("21/stat", &stat(21, 20, 21));
        assert_eq!(found(&mut members, &fake), [21], "although loadavg never changed");
    }

    #[test]
    fn unused_pids_reveal_short_processes() {
        let fake = machine();
        let mut members = running(&fake);
        let mut update = |fake: &FakeHost| members.update(&fake.host(), &mut Vec::new()).unwrap();
        update(&fake);
        fork(&fake, 21, 20);
        assert!(!update(&fake));
        fork(&fake, 24, 20);
        assert!(update(&fake), "22 and 23 started and exited");
    }

    #[test]
    fn process_gone_before_it_is_read_is_not_an_error() {
        let fake = machine();
        let mut members = running(&fake);
        fake.set_proc("40/empty", "");
        fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 40\n");
        assert_eq!(found(&mut members, &fake), [0; 0]);
    }

    #[test]
    fn process_with_the_variable_of_the_job_and_its_descendants_are_members() {
        let fake = machine();
        fork(&fake, 20, 11);
        fake.set_proc("20/environ", "HOME=/\0JOB_ID=7\0");
        fork(&fake, 21, 20);
        fake.set_proc("21/environ", "HOME=/\0");
        fork(&fake, 30, 1);
        fake.set_proc("30/environ", "JOB_ID=77\0X_JOB_ID=7\0");
        let mut members = ProcessTree::marked(&fake.host(), EnvironmentMarker::new("JOB_ID", "7"));
        assert_eq!(found(&mut members, &fake), [20, 21]);
        assert_eq!(found(&mut members, &fake), [0; 0]);
    }

    #[test]
    fn ranks_below_a_new_daemon_of_an_mpi_launcher_are_members_where_it_stands_for_the_variable() {
        let fake = machine();
        let daemon = |pid: u32| {
            let stat = stat(pid, 1, u64::from(pid)).replace("(x)", "(orted)");
            fake.set_proc(&format!("{pid}/stat"), &stat);
        };
        daemon(30);
        fork(&fake, 31, 30);
        daemon(40);
        fork(&fake, 41, 40);
        fork(&fake, 50, 1);
        let marker = || EnvironmentMarker::new("JOB_ID", "7");
        let mut members = ProcessTree::marked(&fake.host(), marker());
        assert_eq!(found(&mut members, &fake), [0; 0]);
        let mut members = ProcessTree::marked(&fake.host(), marker().or_mpi_daemon(35));
        assert_eq!(found(&mut members, &fake), [40, 41], "the other one is older");
        assert_eq!(found(&mut members, &fake), [0; 0]);
        daemon(50);
        fork(&fake, 51, 50);
        assert_eq!(found(&mut members, &fake), [50, 51], "it was a shell until now");
    }

    #[test]
    fn process_found_between_fork_and_exec_is_a_member_after_exec() {
        let fake = machine();
        let mut members = ProcessTree::marked(&fake.host(), EnvironmentMarker::new("JOB_ID", "7"));
        fork(&fake, 20, 11);
        fake.set_proc("20/environ", "HOME=/\0");
        assert_eq!(found(&mut members, &fake), [0; 0]);
        fake.set_proc("20/environ", "JOB_ID=7\0");
        assert_eq!(found(&mut members, &fake), [20], "although no process was started meanwhile");
        assert_eq!(found(&mut members, &fake), [0; 0]);
    }

    #[test]
    fn given_process_and_its_descendants_are_members() {
        let fake = machine();
        fork(&fake, 20, 11);
        fork(&fake, 21, 20);
        fork(&fake, 19, 21);
        fork(&fake, 30, 1);
        let mut members = ProcessTree::rooted_at(&fake.host(), &[20]);
        assert_eq!(found(&mut members, &fake), [20, 21, 19]);
        fork(&fake, 31, 19);
        fork(&fake, 32, 30);
        assert_eq!(found(&mut members, &fake), [31]);
    }

    #[test]
    fn reused_pid_of_a_given_process_is_no_member() {
        let fake = machine();
        fork(&fake, 20, 11);
        let mut members = ProcessTree::rooted_at(&fake.host(), &[20]);
        assert_eq!(found(&mut members, &fake), [20]);
        fake.exit_proc("20");
        fork(&fake, 20, 11);
        members.note_exit();
        assert_eq!(found(&mut members, &fake), [0; 0]);
    }

    #[test]
    fn all_processes_but_one_are_members() {
        let fake = machine();
        let mut members = ProcessTree::all_but(&fake.host(), WEIGH);
        let mut all = found(&mut members, &fake);
        all.sort_unstable();
        assert_eq!(all, [1, 11]);
    }

    #[test]
    fn forks_and_exits_from_events_need_no_listing() {
        let fake = machine();
        fork(&fake, 20, 11);
        let mut members = ProcessTree::rooted_at(&fake.host(), &[20]);
        found(&mut members, &fake);
        members.forked(20, 40);
        members.forked(40, 41);
        members.forked(11, 42);
        assert_eq!([40, 41, 42].map(|pid| members.has(pid)), [true, true, false]);
        members.exited(40);
        assert!(!members.has(40));
    }
}
