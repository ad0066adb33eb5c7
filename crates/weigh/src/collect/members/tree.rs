//! The processes that descend from others, found by their parents.
//!
//! Source: the listing of `/proc`, and `stat` of every pid that is new in it. A
//! process belongs when its parent does. For a run weigh is a child subreaper, so one
//! whose parent has ended has weigh as its parent and belongs too. The parent in `stat`
//! is a process, never a thread, so it does not matter which thread forked.
//!
//! Two things make this cheap. Nothing is listed when nobody was born
//! ([`super::births`]). And each entry's inode changes when its pid is used again, so a
//! pid that was foreign (or ours) is looked at again only when it is somebody else.
//!
//! What surprised us: `/proc/PID/task/TID/children` needs CONFIG_PROC_CHILDREN,
//! is per thread, and costs more than the listing from a few dozen processes on.

use std::collections::{HashMap, HashSet};
use std::mem::MaybeUninit;

use super::Newcomer;
use super::births::{Births, Born};
use crate::host::{self, Host};
use crate::model::ProcessId;
use crate::parse;

#[derive(Debug, Clone, Copy)]
struct Known {
    inode: u64,
    round: u64,
    ours: bool,
}

/// Whose descendants belong.
#[derive(Debug)]
enum Whose {
    /// Those of this process, which takes over orphans, without what it had before.
    Reaper(u32),
    /// Those of processes that were named, and they themselves.
    Named(HashSet<u32>),
    /// Everybody but this process.
    AnybodyBut(u32),
}

/// Everybody on the machine, and whether they are ours.
#[derive(Debug)]
pub struct Tree {
    whose: Whose,
    known: HashMap<u32, Known>,
    round: u64,
    births: Births,
    /// The last pid that had been given out at the last look and at the one before; none when
    /// pids have begun anew since.
    given_out: [Option<u32>; 2],
    /// Somebody of ours went: their pid may be somebody else's by now, and nothing else tell.
    somebody_went: bool,
    entries: Vec<MaybeUninit<u8>>,
    unknown: Vec<(u32, u64)>,
    buffer: Vec<u8>,
}

impl Tree {
    fn new(host: &Host, whose: Whose) -> Tree {
        Tree {
            whose,
            known: HashMap::new(),
            round: 0,
            births: Births::begin(host),
            given_out: [None; 2],
            somebody_went: false,
            entries: Vec::new(),
            unknown: Vec::new(),
            buffer: Vec::new(),
        }
    }

    /// Takes note of everybody who is there before the run begins: they are not part of it.
    pub fn before_run(host: &Host, reaper: u32) -> Tree {
        let mut tree = Tree::new(host, Whose::Reaper(reaper));
        // A listing that fails now fails again at the first tick, and is reported there.
        let _ = tree.list(host);
        for (pid, inode) in std::mem::take(&mut tree.unknown) {
            tree.know(pid, inode, false);
        }
        tree
    }

    /// Takes in the command's first process, which has just been forked.
    pub fn begin(&mut self, host: &Host, root: u32) {
        self.births.one_was(host);
        self.know(root, 0, true);
    }

    /// Processes that run already and all that descend from them.
    pub fn of(host: &Host, roots: &[u32]) -> Tree {
        let mut tree = Tree::new(host, Whose::Named(roots.iter().copied().collect()));
        tree.believe_births(host);
        tree
    }

    /// Everybody but one.
    pub fn of_anybody_but(host: &Host, pid: u32) -> Tree {
        let mut tree = Tree::new(host, Whose::AnybodyBut(pid));
        tree.believe_births(host);
        tree
    }

    /// A thread has a pid, too: one of our own shows whether the kernel tells of births.
    fn believe_births(&mut self, host: &Host) {
        if std::thread::Builder::new().spawn(|| ()).is_ok_and(|thread| thread.join().is_ok()) {
            self.births.one_was(host);
        }
    }

    /// Whether somebody who was found by the last look cannot have come by this pid in turn:
    /// pids are given out in ascending order, unless `ns_last_pid` was written. Then nobody
    /// knows how many there were.
    ///
    /// A process has its pid a moment before it can be found, so what had been given out at the
    /// last look says nothing yet.
    pub fn came_out_of_turn(&self, pid: u32) -> bool {
        self.given_out[1].is_some_and(|last| pid <= last)
    }

    /// One of ours went; its pid is free to be used again.
    pub fn note_went(&mut self) {
        self.somebody_went = true;
    }

    /// Whether a process is known to be one of ours.
    pub fn has(&self, pid: u32) -> bool {
        match &self.whose {
            Whose::AnybodyBut(one) => pid != *one,
            _ => self.known.get(&pid).is_some_and(|known| known.ours),
        }
    }

    /// Somebody was born, which nobody has to find out any more.
    pub fn was_born(&mut self, parent: u32, child: u32) {
        // Who is everybody's is asked for no parent.
        if !matches!(self.whose, Whose::AnybodyBut(_)) {
            let ours = self.has(parent);
            self.know(child, 0, ours);
        }
    }

    /// Somebody ended, which nobody has to find out any more.
    pub fn has_ended(&mut self, pid: u32) {
        self.known.remove(&pid);
    }

    /// Adds to `found` everybody who has joined since the last look, parents first.
    ///
    /// Returns whether more may have been born than are there now.
    pub fn look(&mut self, host: &Host, found: &mut Vec<Newcomer>) -> Result<bool, host::Error> {
        let given_out = self.births.last_pid();
        let born = self.births.since(host);
        self.given_out = match born {
            Born::Unknown => [None; 2],
            _ => [given_out, self.given_out[0]],
        };
        if born == Born::Nobody && !self.somebody_went {
            return Ok(false);
        }
        self.somebody_went = false;
        self.list(host)?;
        let more = match born {
            Born::Nobody => false,
            Born::Count(count) => count as usize > self.unknown.len(),
            Born::Unknown => true,
        };
        let unknown = std::mem::take(&mut self.unknown);
        for &(pid, inode) in &unknown {
            // A child met before its parent has settled the parent on the way.
            let settled = self.known.get(&pid).is_some_and(|known| known.inode == inode);
            if !settled {
                self.settle(host, pid, inode, found, 0);
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
    fn settle(
        &mut self,
        host: &Host,
        pid: u32,
        inode: u64,
        found: &mut Vec<Newcomer>,
        depth: u32,
    ) -> bool {
        /// Deeper chains of processes that are all new since the last tick are a loop.
        const DEEPEST: u32 = 10_000;
        let path = host::ProcPath::new(pid, "stat");
        let Ok(bytes) = host.proc.read(path.as_c_str(), &mut self.buffer) else {
            // Gone again, or hidden from us: in both cases there is nothing to read of it.
            self.know(pid, inode, false);
            return false;
        };
        let Ok(stat) = parse::stat::parse(bytes) else {
            self.know(pid, inode, false);
            return false;
        };
        let id = ProcessId { pid, started: stat.started };
        let (parent, is_zombie) = (stat.parent, stat.state == b'Z');
        let newcomer = Newcomer::new(id, parent, stat.name);
        let by_itself = match &mut self.whose {
            Whose::Reaper(reaper) => (parent == *reaper).then_some(true),
            // Once: whoever has the pid afterwards is somebody else.
            Whose::Named(roots) => {
                let is_root = roots.remove(&pid);
                // weigh is no part of what it measures, although a shell that is followed may
                // have started it.
                (is_root || pid == std::process::id()).then_some(is_root)
            }
            Whose::AnybodyBut(one) => Some(pid != *one),
        };
        let ours = by_itself.unwrap_or_else(|| match self.known.get(&parent) {
            Some(known) if known.round == self.round => known.ours,
            // The parent is newer than the listing, or not settled yet.
            _ => {
                parent > 1 && depth < DEEPEST && {
                    let inode = self.listed_inode(parent);
                    self.settle(host, parent, inode, found, depth + 1)
                }
            }
        });
        self.know(pid, inode, ours);
        // Whoever had ended before anybody looked is nobody's any more, unless weigh waits for it.
        let is_over = is_zombie && !matches!(self.whose, Whose::Reaper(_));
        if ours && !is_over {
            found.push(newcomer);
        }
        ours
    }

    fn listed_inode(&self, pid: u32) -> u64 {
        self.unknown.iter().find(|(listed, _)| *listed == pid).map_or(0, |(_, inode)| *inode)
    }

    fn know(&mut self, pid: u32, inode: u64, ours: bool) {
        self.known.insert(pid, Known { inode, round: self.round, ours });
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

    fn born(fake: &FakeHost, pid: u32, parent: u32) {
        fake.set_proc(&format!("{pid}/stat"), &stat(pid, parent, u64::from(pid)));
        fake.set_proc("loadavg", &format!("0.0 0.0 0.0 1/2 {pid}\n"));
    }

    fn found(members: &mut Tree, fake: &FakeHost) -> Vec<u32> {
        let mut found = Vec::new();
        members.look(&fake.host(), &mut found).unwrap();
        found.iter().map(|newcomer| newcomer.id.pid).collect()
    }

    fn running(fake: &FakeHost) -> Tree {
        let mut members = Tree::before_run(&fake.host(), WEIGH);
        born(fake, 20, WEIGH);
        members.begin(&fake.host(), 20);
        members
    }

    #[test]
    fn descendants_belong_and_others_do_not() {
        let fake = machine();
        let mut members = running(&fake);
        born(&fake, 21, 20);
        born(&fake, 22, 21);
        born(&fake, 30, 11);
        assert_eq!(found(&mut members, &fake), [21, 22]);
        assert_eq!(found(&mut members, &fake), [0; 0], "nobody is found twice");
    }

    #[test]
    fn a_daemon_whose_parent_has_ended_belongs() {
        let fake = machine();
        let mut members = running(&fake);
        born(&fake, 25, WEIGH);
        assert_eq!(found(&mut members, &fake), [25]);
    }

    #[test]
    fn children_that_weigh_had_before_the_run_do_not_belong() {
        let fake = machine();
        born(&fake, 12, WEIGH);
        let mut members = running(&fake);
        assert_eq!(found(&mut members, &fake), [0; 0]);
    }

    #[test]
    fn a_child_with_a_lower_pid_than_its_parent_belongs() {
        let fake = machine();
        let mut members = running(&fake);
        born(&fake, 90, 20);
        born(&fake, 15, 90);
        assert_eq!(found(&mut members, &fake), [90, 15], "parents first");
    }

    #[test]
    fn a_pid_used_again_is_somebody_new() {
        let fake = machine();
        let mut members = running(&fake);
        born(&fake, 30, 11);
        assert_eq!(found(&mut members, &fake), [0; 0]);
        fake.end_proc("30");
        born(&fake, 30, 20);
        fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 31\n");
        assert_eq!(found(&mut members, &fake), [30]);
    }

    #[test]
    fn a_pid_given_out_twice_without_a_turn_around_is_noticed() {
        let fake = machine();
        let mut members = running(&fake);
        found(&mut members, &fake);
        born(&fake, 30, 20);
        assert_eq!(found(&mut members, &fake), [30]);
        assert!(!members.came_out_of_turn(30));
        assert_eq!(found(&mut members, &fake), [0; 0]);
        // ns_last_pid was written: 30 is given out again, and /proc/loadavg says 30 as before.
        fake.end_proc("30");
        born(&fake, 30, 20);
        members.note_went();
        assert_eq!(found(&mut members, &fake), [30]);
        assert!(members.came_out_of_turn(30));
    }

    #[test]
    fn a_kernel_that_does_not_tell_of_births_is_not_believed() {
        let fake = machine();
        let mut members = Tree::before_run(&fake.host(), WEIGH);
        fake.set_proc("20/stat", &stat(20, WEIGH, 20));
        members.begin(&fake.host(), 20);
        fake.set_proc("21/stat", &stat(21, 20, 21));
        assert_eq!(found(&mut members, &fake), [21], "although loadavg never moved");
    }

    #[test]
    fn pids_given_out_to_nobody_who_is_there_tell_of_short_lives() {
        let fake = machine();
        let mut members = running(&fake);
        let mut look = |fake: &FakeHost| members.look(&fake.host(), &mut Vec::new()).unwrap();
        look(&fake);
        born(&fake, 21, 20);
        assert!(!look(&fake));
        born(&fake, 24, 20);
        assert!(look(&fake), "22 and 23 came and went");
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
        born(&fake, 20, 11);
        born(&fake, 21, 20);
        born(&fake, 19, 21);
        born(&fake, 30, 1);
        let mut members = Tree::of(&fake.host(), &[20]);
        assert_eq!(found(&mut members, &fake), [20, 21, 19]);
        born(&fake, 31, 19);
        born(&fake, 32, 30);
        assert_eq!(found(&mut members, &fake), [31]);
    }

    #[test]
    fn the_pid_of_one_who_was_named_belongs_to_nobody_else() {
        let fake = machine();
        born(&fake, 20, 11);
        let mut members = Tree::of(&fake.host(), &[20]);
        assert_eq!(found(&mut members, &fake), [20]);
        fake.end_proc("20");
        born(&fake, 20, 11);
        members.note_went();
        assert_eq!(found(&mut members, &fake), [0; 0]);
    }

    #[test]
    fn everybody_belongs_but_one() {
        let fake = machine();
        let mut members = Tree::of_anybody_but(&fake.host(), WEIGH);
        let mut everybody = found(&mut members, &fake);
        everybody.sort_unstable();
        assert_eq!(everybody, [1, 11]);
    }

    #[test]
    fn births_and_ends_that_are_told_need_no_look() {
        let fake = machine();
        born(&fake, 20, 11);
        let mut members = Tree::of(&fake.host(), &[20]);
        found(&mut members, &fake);
        members.was_born(20, 40);
        members.was_born(40, 41);
        members.was_born(11, 42);
        assert_eq!([40, 41, 42].map(|pid| members.has(pid)), [true, true, false]);
        members.has_ended(40);
        assert!(!members.has(40));
    }
}
