//! Which processes belong to the run.
//!
//! Source: the listing of `/proc`, and `stat` of every pid that is new in it. A
//! process belongs when its parent does; weigh is a child subreaper, so one whose
//! parent has ended has weigh as its parent and belongs too. The parent in
//! `stat` is a process, never a thread, so it does not matter which thread forked.
//!
//! Two things make this cheap. `/proc/loadavg` names the last pid that was given
//! out: when it stands still nobody was born and nothing is listed. And each
//! entry's inode changes when its pid is used again, so a pid that was foreign
//! (or ours) is looked at again only when it is somebody else.
//!
//! What surprised us: `/proc/PID/task/TID/children` needs CONFIG_PROC_CHILDREN,
//! is per thread, and costs more than the listing from a few dozen processes on.

use std::collections::HashMap;
use std::mem::MaybeUninit;

use crate::host::{self, Host, Kept};
use crate::parse::{self, loadavg::Loadavg};
use crate::sample::ProcessId;

/// A process that was found to belong to the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Newcomer {
    /// Which one.
    pub id: ProcessId,
    /// Its parent when it was found.
    pub parent: u32,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    inode: u64,
    round: u64,
    ours: bool,
}

/// Everybody on the machine, and whether they are ours.
#[derive(Debug)]
pub struct Members {
    reaper: u32,
    known: HashMap<u32, Known>,
    round: u64,
    births: Births,
    /// Somebody of ours went: their pid may be somebody else's by now, and nothing else tell.
    somebody_went: bool,
    loadavg: Kept,
    entries: Vec<MaybeUninit<u8>>,
    unknown: Vec<(u32, u64)>,
    buffer: Vec<u8>,
}

/// Whether somebody may have been born since the last look.
#[derive(Debug, Clone, Copy)]
enum Births {
    /// The last pid given out at the last look.
    Told(Option<Loadavg>),
    /// This kernel does not tell; the listing has to be read every time.
    Untold,
}

impl Members {
    /// Takes note of everybody who is there before the run begins: they are not part of it.
    pub fn before_run(host: &Host, reaper: u32) -> Members {
        let mut members = Members {
            reaper,
            known: HashMap::new(),
            round: 0,
            births: Births::Told(None),
            loadavg: Kept::always(),
            somebody_went: false,
            entries: Vec::new(),
            unknown: Vec::new(),
            buffer: Vec::new(),
        };
        members.births = Births::Told(members.last_born(host));
        // A listing that fails now fails again at the first tick, and is reported there.
        let _ = members.list(host);
        for (pid, inode) in std::mem::take(&mut members.unknown) {
            members.know(pid, inode, false);
        }
        members
    }

    /// Takes in the command's first process, which has just been forked.
    pub fn begin(&mut self, host: &Host, root: u32) {
        // A sandbox may answer with a loadavg that never changes. A child was born since
        // `before_run`, so one that tells the truth has moved.
        if let Births::Told(before) = self.births {
            self.births = match (before, self.last_born(host)) {
                (Some(before), Some(now)) if before.last_pid != now.last_pid => Births::Told(None),
                _ => Births::Untold,
            };
        }
        self.know(root, 0, true);
    }

    /// One of ours went; its pid is free to be used again.
    pub fn note_went(&mut self) {
        self.somebody_went = true;
    }

    /// Adds to `found` everybody who has joined the run since the last look, parents first.
    ///
    /// Returns whether more may have been born than are there now.
    pub fn look(&mut self, host: &Host, found: &mut Vec<Newcomer>) -> Result<bool, host::Error> {
        let mut given_out = None;
        if let Births::Told(last) = self.births {
            let now = self.last_born(host);
            let nobody_born =
                now.zip(last).is_some_and(|(now, last)| now.last_pid == last.last_pid);
            if nobody_born && !self.somebody_went {
                return Ok(false);
            }
            // Pids are given out one after the other; one that went back has begun anew.
            given_out =
                now.zip(last).and_then(|(now, last)| now.last_pid.checked_sub(last.last_pid));
            self.births = Births::Told(now);
        }
        self.somebody_went = false;
        self.list(host)?;
        let more = given_out.is_none_or(|count| count as usize > self.unknown.len());
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
        let parent = stat.parent;
        let ours = parent == self.reaper
            || match self.known.get(&parent) {
                Some(known) if known.round == self.round => known.ours,
                // The parent is newer than the listing, or not settled yet.
                _ => {
                    parent > 1 && depth < DEEPEST && {
                        let inode = self.listed_inode(parent);
                        self.settle(host, parent, inode, found, depth + 1)
                    }
                }
            };
        self.know(pid, inode, ours);
        if ours {
            found.push(Newcomer { id, parent });
        }
        ours
    }

    /// Who was born last, if this kernel says.
    fn last_born(&mut self, host: &Host) -> Option<Loadavg> {
        let bytes = self.loadavg.read(&host.proc, || c"loadavg", &mut self.buffer).ok()?;
        parse::loadavg::parse(bytes).ok()
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

    fn found(members: &mut Members, fake: &FakeHost) -> Vec<u32> {
        let mut found = Vec::new();
        members.look(&fake.host(), &mut found).unwrap();
        found.iter().map(|newcomer| newcomer.id.pid).collect()
    }

    fn running(fake: &FakeHost) -> Members {
        let mut members = Members::before_run(&fake.host(), WEIGH);
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
    fn a_kernel_that_does_not_tell_of_births_is_not_believed() {
        let fake = machine();
        let mut members = Members::before_run(&fake.host(), WEIGH);
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
}
