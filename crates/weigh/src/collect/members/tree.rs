//! The processes that descend from others, found by their parents.
//!
//! Source: the listing of `/proc`, and `stat` of every pid that is new in it. A
//! process belongs when its parent does. For a run weigh is a child subreaper, so one
//! whose parent has ended has weigh as its parent and belongs too. The parent in `stat`
//! is a process, never a thread, so it does not matter which thread forked.
//!
//! Two things make this cheap. Nothing is listed when nobody was born
//! ([`super::fork_counter`]). And each entry's inode changes when its pid is used again, so a
//! pid that was foreign (or ours) is looked at again only when it is somebody else.
//!
//! What surprised us: `/proc/PID/task/TID/children` needs CONFIG_PROC_CHILDREN,
//! is per thread, and costs more than the listing from a few dozen processes on.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;

use super::NewMember;
use super::fork_counter::{ForkCounter, NewPids};
use crate::host::{self, Host};
use crate::model::ProcessId;
use crate::parse;

#[derive(Debug, Clone, Copy)]
struct KnownPid {
    inode: u64,
    round: u64,
    ours: bool,
}

/// Whose descendants belong.
#[derive(Debug)]
enum TreeRoots {
    /// Those of this process, which takes over orphans, without what it had before.
    Reaper(u32),
    /// Those of processes that were named, and they themselves.
    Roots(HashSet<u32>),
    /// Everybody but this process.
    AllBut(u32),
}

/// Everybody on the machine, and whether they are ours.
#[derive(Debug)]
pub struct ProcessTree {
    roots: TreeRoots,
    known: HashMap<u32, KnownPid>,
    round: u64,
    fork_counter: ForkCounter,
    /// The last pid that had been given out at the last look and at the one before; none when
    /// pids have begun anew since.
    last_pids: [Option<u32>; 2],
    /// Somebody of ours went: their pid may be somebody else's by now, and nothing else tell.
    member_exited: bool,
    entries: Vec<MaybeUninit<u8>>,
    unknown: Vec<(u32, u64)>,
    buffer: Vec<u8>,
}

impl ProcessTree {
    fn new(host: &Host, roots: TreeRoots) -> ProcessTree {
        ProcessTree {
            roots,
            known: HashMap::new(),
            round: 0,
            fork_counter: ForkCounter::new(host),
            last_pids: [None; 2],
            member_exited: false,
            entries: Vec::new(),
            unknown: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Takes note of everybody who is there before the run begins: they are not part of it.
    pub fn before_run(host: &Host, reaper: u32) -> ProcessTree {
        let mut tree = ProcessTree::new(host, TreeRoots::Reaper(reaper));
        // A listing that fails now fails again at the first tick, and is reported there.
        let _ = tree.list(host);
        for (pid, inode) in std::mem::take(&mut tree.unknown) {
            tree.remember(pid, inode, false);
        }
        tree
    }

    /// Takes in the command's first process, which has just been forked.
    pub fn begin(&mut self, host: &Host, root: u32) {
        self.fork_counter.confirm_live(host);
        self.remember(root, 0, true);
    }

    /// Processes that run already and all that descend from them.
    pub fn of(host: &Host, roots: &[u32]) -> ProcessTree {
        let mut tree = ProcessTree::new(host, TreeRoots::Roots(roots.iter().copied().collect()));
        tree.verify_fork_counter(host);
        tree
    }

    /// Everybody but one.
    pub fn all_but(host: &Host, pid: u32) -> ProcessTree {
        let mut tree = ProcessTree::new(host, TreeRoots::AllBut(pid));
        tree.verify_fork_counter(host);
        tree
    }

    /// A thread has a pid, too: one of our own shows whether the kernel tells of births.
    fn verify_fork_counter(&mut self, host: &Host) {
        if std::thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok()) {
            self.fork_counter.confirm_live(host);
        }
    }

    /// Whether somebody who was found by the last look cannot have come by this pid in turn:
    /// pids are given out in ascending order, unless `ns_last_pid` was written. Then nobody
    /// knows how many there were.
    ///
    /// A process has its pid a moment before it can be found, so what had been given out at the
    /// last look says nothing yet.
    pub fn pid_out_of_order(&self, pid: u32) -> bool {
        self.last_pids[1].is_some_and(|last| pid <= last)
    }

    /// One of ours went; its pid is free to be used again.
    pub fn note_exit(&mut self) {
        self.member_exited = true;
    }

    /// Whether a process is known to be one of ours.
    pub fn has(&self, pid: u32) -> bool {
        match &self.roots {
            TreeRoots::AllBut(one) => pid != *one,
            _ => self.known.get(&pid).is_some_and(|known| known.ours),
        }
    }

    /// Somebody was born, which nobody has to find out any more.
    pub fn forked(&mut self, parent: u32, child: u32) {
        // Who is everybody's is asked for no parent.
        if !matches!(self.roots, TreeRoots::AllBut(_)) {
            let ours = self.has(parent);
            self.remember(child, 0, ours);
        }
    }

    /// Somebody ended, which nobody has to find out any more.
    pub fn exited(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// Adds to `found` everybody who has joined since the last look, parents first.
    ///
    /// Returns whether more may have been born than are there now.
    pub fn update(&mut self, host: &Host, found: &mut Vec<NewMember>) -> Result<bool, host::Error> {
        let last_pids = self.fork_counter.last_pid();
        let new_pids = self.fork_counter.new_pids(host);
        self.last_pids = match new_pids {
            NewPids::Unknown => [None; 2],
            _ => [last_pids, self.last_pids[0]],
        };
        if new_pids == NewPids::None && !self.member_exited {
            return Ok(false);
        }
        self.member_exited = false;
        self.list(host)?;
        let more = match new_pids {
            NewPids::None => false,
            NewPids::Count(count) => count as usize > self.unknown.len(),
            NewPids::Unknown => true,
        };
        let unknown = std::mem::take(&mut self.unknown);
        for &(pid, inode) in &unknown {
            // A child met before its parent has settled the parent on the way.
            let is_classified = self.known.get(&pid).is_some_and(|known| known.inode == inode);
            if !is_classified {
                self.classify(host, pid, inode, found, 0);
            }
        }
        self.unknown = unknown;
        self.known.retain(|_, known| known.round == self.round);
        Ok(more)
    }

    /// Lists `/proc`, renews who is known and leaves the others in `unknown`.
    fn list(&mut self, host: &Host) -> Result<(), host::Error> {
        self.round += 1;
        self.unknown.clear();
        let (known, unknown, round) = (&mut self.known, &mut self.unknown, self.round);
        host.proc.entries(&mut self.entries, |name, inode| {
            let Some(pid) = pid_of(name.to_bytes()) else { return };
            match known.get_mut(&pid) {
                // Inode 0: taken in by pid before it was ever listed.
                Some(seen) if seen.inode == inode || seen.inode == 0 => {
                    seen.inode = inode;
                    seen.round = round;
                }
                _ => unknown.push((pid, inode)),
            }
        })
    }

    /// Decides whether `pid` is ours, by its parent, and says so.
    fn classify(
        &mut self,
        host: &Host,
        pid: u32,
        inode: u64,
        found: &mut Vec<NewMember>,
        depth: u32,
    ) -> bool {
        /// Deeper chains of processes that are all new since the last tick are a loop.
        const DEEPEST: u32 = 10_000;
        let path = host::ProcPath::new(pid, "stat");
        let Ok(bytes) = host.proc.read(path.as_c_str(), &mut self.buffer) else {
            // Gone again, or hidden from us: in both cases there is nothing to read of it.
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
            // Once: whoever has the pid afterwards is somebody else.
            TreeRoots::Roots(roots) => {
                let is_root = roots.remove(&pid);
                // weigh is no part of what it measures, although a shell that is followed may
                // have started it.
                (is_root || pid == std::process::id()).then_some(is_root)
            }
            TreeRoots::AllBut(one) => Some(pid != *one),
        };
        let ours = by_itself.unwrap_or_else(|| match self.known.get(&parent) {
            Some(known) if known.round == self.round => known.ours,
            // The parent is newer than the listing, or not settled yet.
            _ => {
                parent > 1 && depth < DEEPEST && {
                    let inode = self.listed_inode(parent);
                    self.classify(host, parent, inode, found, depth + 1)
                }
            }
        });
        self.remember(pid, inode, ours);
        // Whoever had ended before anybody looked is nobody's any more, unless weigh waits for it.
        let is_over = is_zombie && !matches!(self.roots, TreeRoots::Reaper(_));
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
        let mut members = ProcessTree::before_run(&fake.host(), WEIGH);
        fork(fake, 20, WEIGH);
        members.begin(&fake.host(), 20);
        members
    }

    #[test]
    fn descendants_belong_and_others_do_not() {
        let fake = machine();
        let mut members = running(&fake);
        fork(&fake, 21, 20);
        fork(&fake, 22, 21);
        fork(&fake, 30, 11);
        assert_eq!(found(&mut members, &fake), [21, 22]);
        assert_eq!(found(&mut members, &fake), [0; 0], "nobody is found twice");
    }

    #[test]
    fn a_daemon_whose_parent_has_ended_belongs() {
        let fake = machine();
        let mut members = running(&fake);
        fork(&fake, 25, WEIGH);
        assert_eq!(found(&mut members, &fake), [25]);
    }

    #[test]
    fn children_that_weigh_had_before_the_run_do_not_belong() {
        let fake = machine();
        fork(&fake, 12, WEIGH);
        let mut members = running(&fake);
        assert_eq!(found(&mut members, &fake), [0; 0]);
    }

    #[test]
    fn a_child_with_a_lower_pid_than_its_parent_belongs() {
        let fake = machine();
        let mut members = running(&fake);
        fork(&fake, 90, 20);
        fork(&fake, 15, 90);
        assert_eq!(found(&mut members, &fake), [90, 15], "parents first");
    }

    #[test]
    fn a_pid_used_again_is_somebody_new() {
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
    fn a_pid_given_out_twice_without_a_turn_around_is_noticed() {
        let fake = machine();
        let mut members = running(&fake);
        found(&mut members, &fake);
        fork(&fake, 30, 20);
        assert_eq!(found(&mut members, &fake), [30]);
        assert!(!members.pid_out_of_order(30));
        assert_eq!(found(&mut members, &fake), [0; 0]);
        // ns_last_pid was written: 30 is given out again, and /proc/loadavg says 30 as before.
        fake.exit_proc("30");
        fork(&fake, 30, 20);
        members.note_exit();
        assert_eq!(found(&mut members, &fake), [30]);
        assert!(members.pid_out_of_order(30));
    }

    #[test]
    fn a_kernel_that_does_not_tell_of_births_is_not_believed() {
        let fake = machine();
        let mut members = ProcessTree::before_run(&fake.host(), WEIGH);
        fake.set_proc("20/stat", &stat(20, WEIGH, 20));
        members.begin(&fake.host(), 20);
        fake.set_proc("21/stat", &stat(21, 20, 21));
        assert_eq!(found(&mut members, &fake), [21], "although loadavg never moved");
    }

    #[test]
    fn pids_given_out_to_nobody_who_is_there_tell_of_short_lives() {
        let fake = machine();
        let mut members = running(&fake);
        let mut update = |fake: &FakeHost| members.update(&fake.host(), &mut Vec::new()).unwrap();
        update(&fake);
        fork(&fake, 21, 20);
        assert!(!update(&fake));
        fork(&fake, 24, 20);
        assert!(update(&fake), "22 and 23 came and went");
    }

    #[test]
    fn a_process_that_is_gone_before_it_is_read_is_not_an_error() {
        let fake = machine();
        let mut members = running(&fake);
        fake.set_proc("40/empty", "");
        fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 40\n");
        assert_eq!(found(&mut members, &fake), [0; 0]);
    }

    #[test]
    fn who_runs_already_belongs_with_all_that_descend_from_it() {
        let fake = machine();
        fork(&fake, 20, 11);
        fork(&fake, 21, 20);
        fork(&fake, 19, 21);
        fork(&fake, 30, 1);
        let mut members = ProcessTree::of(&fake.host(), &[20]);
        assert_eq!(found(&mut members, &fake), [20, 21, 19]);
        fork(&fake, 31, 19);
        fork(&fake, 32, 30);
        assert_eq!(found(&mut members, &fake), [31]);
    }

    #[test]
    fn the_pid_of_one_who_was_named_belongs_to_nobody_else() {
        let fake = machine();
        fork(&fake, 20, 11);
        let mut members = ProcessTree::of(&fake.host(), &[20]);
        assert_eq!(found(&mut members, &fake), [20]);
        fake.exit_proc("20");
        fork(&fake, 20, 11);
        members.note_exit();
        assert_eq!(found(&mut members, &fake), [0; 0]);
    }

    #[test]
    fn everybody_belongs_but_one() {
        let fake = machine();
        let mut members = ProcessTree::all_but(&fake.host(), WEIGH);
        let mut everybody = found(&mut members, &fake);
        everybody.sort_unstable();
        assert_eq!(everybody, [1, 11]);
    }

    #[test]
    fn births_and_ends_that_are_told_need_no_look() {
        let fake = machine();
        fork(&fake, 20, 11);
        let mut members = ProcessTree::of(&fake.host(), &[20]);
        found(&mut members, &fake);
        members.forked(20, 40);
        members.forked(40, 41);
        members.forked(11, 42);
        assert_eq!([40, 41, 42].map(|pid| members.has(pid)), [true, true, false]);
        members.exited(40);
        assert!(!members.has(40));
    }
}
