//! Orphaned descendants of a session's command, where the program is a child subreaper for it.
//!
//! All children of the program look alike: those that it has started, and orphans that the kernel
//! has given it. Only what has the mark of the command is reaped, by its pidfd. A program that waits
//! for any child (`waitpid(-1)`) gets orphans, too; then they are lost to the session, which notices
//! that by the page faults of reaped children (getrusage(2)): every process has some.

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};

use crate::catalog::SourceId;
use crate::collect::process;
use crate::host::descent_mark::DescentMark;
use crate::host::pidfd::PidFd;
use crate::host::subreaper::ChildSubreaper;
use crate::host::{Host, own, signals};
use crate::model::{Io, ProcessId, Usage};
use crate::record::Event;
use crate::run::attach::AttachMonitor;

/// The orphans of a command.
pub(super) struct Orphans {
    pub(super) mark: DescentMark,
    /// Until the end: from then on orphans are given to the next reaper, as without weigh.
    subreaper: Option<ChildSubreaper>,
    /// Those that are children of this process and have not been reaped.
    adopted: Vec<PidFd>,
    /// What those that were reaped have used.
    reaped: Usage,
    /// Their I/O; `None` when that of one is not known.
    io: Option<Io>,
    /// Page faults of all children of this process that were reaped before.
    faults_before: u64,
    /// Those of children that this session has reaped.
    faults: u64,
    /// Somebody else has reaped one.
    is_one_lost: bool,
}

impl Orphans {
    /// Makes this process a child subreaper, or says why orphans cannot be told from its children.
    pub(super) fn adopt() -> Result<Orphans, String> {
        if signals::children_are_auto_reaped() {
            return Err("this program ignores SIGCHLD, so the kernel reaps its children".to_owned());
        }
        let mark = DescentMark::new()
            .ok_or("orphans could not be recognised: this program has a limit RLIMIT_RTTIME")?;
        let subreaper = ChildSubreaper::hold()
            .map_err(|error| format!("prctl(PR_SET_CHILD_SUBREAPER): {error}"))?;
        Ok(Orphans {
            mark,
            subreaper: Some(subreaper),
            adopted: Vec::new(),
            reaped: Usage::default(),
            io: Some(Io::default()),
            faults_before: Usage::of_children().minor_faults,
            faults: 0,
            is_one_lost: false,
        })
    }

    /// Counts a child that this session has reaped.
    pub(super) fn note_reaped(&mut self, usage: &Usage) {
        self.faults += usage.minor_faults;
    }

    /// Adds what orphans used to what the command did.
    pub(super) fn add_to(&self, reaped: &mut Usage, io: &mut Option<Io>) {
        reaped.add(&self.reaped);
        *io = io.zip(self.io).map(|(command, orphans)| command.and(&orphans));
    }

    /// Whether another child was reaped than those of this session: it may have been an orphan that
    /// no sample has found.
    pub(super) fn may_be_lost(&self) -> bool {
        self.is_one_lost || Usage::of_children().minor_faults != self.faults_before + self.faults
    }

    fn has(&self, pid: u32) -> bool {
        self.adopted.iter().any(|pidfd| pidfd.pid == pid)
    }

    /// Adds a process, if it is a child of this one and has the mark.
    fn add(&mut self, host: &Host, pid: u32, started: Option<u64>) {
        let mut buffer = Vec::new();
        let Ok(pidfd) = PidFd::open(pid) else { return };
        // Of the process that was found, and not of another one that has its pid by now.
        let is_same = started.is_none_or(|started| {
            process::started(host, pid, &mut buffer).is_some_and(|now| now == started)
        });
        if is_same && pidfd.is_child() && self.mark.is_on(host, pid, &mut buffer) {
            self.adopted.push(pidfd);
        }
    }

    /// Removes one that has exited.
    fn next_ended(&mut self) -> Option<PidFd> {
        let place = self.adopted.iter().position(PidFd::has_ended)?;
        Some(self.adopted.swap_remove(place))
    }
}

impl AttachMonitor {
    fn orphans(&mut self) -> Option<&mut Orphans> {
        self.command.as_mut()?.orphans.as_mut()
    }

    /// What becomes readable when an orphan exits.
    pub(in crate::run) fn orphan_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let orphans = self.command.as_ref().and_then(|command| command.orphans.as_ref());
        orphans.into_iter().flat_map(|orphans| orphans.adopted.iter().map(AsFd::as_fd))
    }

    /// Finds orphans among the processes of the last sample.
    pub(in crate::run) fn find_orphans(&mut self) {
        let Some(orphans) = self.command.as_mut().and_then(|command| command.orphans.as_mut())
        else {
            return;
        };
        let Some(processes) = &self.sampling.collectors.processes else { return };
        for ProcessId { pid, started } in processes.without_parent() {
            if !orphans.has(pid) {
                orphans.add(&self.sampling.host, pid, Some(started));
            }
        }
    }

    /// Takes the final counts of the orphans that have exited, and reaps them.
    pub(in crate::run) fn reap_orphans(&mut self) {
        while let Some(pidfd) = self.orphans().and_then(Orphans::next_ended) {
            let at = self.sampling.now();
            let io = self.sampling.zombie_io(pidfd.pid);
            let id = self.sampling.final_read(pidfd.pid, at);
            let reaped = pidfd.reap();
            let Some(orphans) = self.orphans() else { return };
            orphans.io = orphans.io.zip(io).map(|(all, one)| all.and(&one));
            let (end, mut usage) = reaped.unzip();
            match &mut usage {
                Some(usage) => {
                    orphans.note_reaped(usage);
                    if id.is_none() {
                        // A helper's time is in that of the run; its size is not.
                        usage.largest_rss_bytes = 0;
                    }
                    orphans.reaped.add(usage);
                }
                None => orphans.is_one_lost = true,
            }
            if usage.is_none() {
                let why =
                    format!("process {} was reaped by another part of this program", pidfd.pid);
                self.sampling.fault(SourceId::Process, why);
            }
            if let Some(id) = id {
                self.sampling.event(self.sampling.now(), Event::ended(id, end, usage));
            }
        }
    }

    /// The end: nothing more is adopted, what has exited is reaped, and a thread waits for the rest,
    /// so that none of them stays a zombie of the program.
    pub(in crate::run) fn release_orphans(&mut self) {
        let Some(command) = &mut self.command else { return };
        let Some(orphans) = &mut command.orphans else { return };
        orphans.subreaper = None;
        // Also those that no sample has found. The command itself is the program's.
        let mut children = own::children(&self.sampling.host);
        children.remove(&command.id.pid);
        for pid in children {
            if !orphans.has(pid) {
                orphans.add(&self.sampling.host, pid, None);
            }
        }
        self.reap_orphans();
        let left = self.orphans().map(|orphans| std::mem::take(&mut orphans.adopted));
        if let Some(left) = left.filter(|left| !left.is_empty()) {
            let thread = std::thread::Builder::new().name("weigh-reaper".to_owned());
            // Without a thread they stay until the program waits for any child.
            let _ = thread.spawn(|| reap_at_their_exit(left));
        }
    }
}

/// Reaps processes as they exit.
fn reap_at_their_exit(mut left: Vec<PidFd>) {
    signals::block_all();
    while !left.is_empty() {
        let mut sources: Vec<_> =
            left.iter().map(|pidfd| PollFd::new(pidfd, PollFlags::IN)).collect();
        let waited = poll(&mut sources, None);
        left.retain(|pidfd| !pidfd.has_ended() || (pidfd.reap().is_none() && pidfd.is_child()));
        if waited.is_err() {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
}
