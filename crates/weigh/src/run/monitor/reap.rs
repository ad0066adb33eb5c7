//! Exited children: a last sample of each, then its exact counts.

use std::collections::HashSet;
use std::time::Duration;

use super::Monitor;
use crate::collect::Collectors;
use crate::collect::processes::ProcessCollector;
use crate::host::{Host, out_of_memory, own, signals, wait};
use crate::model::{FaultSource, Io, ProcessId, Usage};
use crate::record::Event;
use crate::run::LiveEvent;

/// What this process had before the run: children and I/O that are not the run's.
pub(in crate::run) struct PreRunBaseline {
    pub(super) children: HashSet<u32>,
    pub(super) io: Io,
}

impl PreRunBaseline {
    /// Reads the current values.
    pub(in crate::run) fn now(host: &Host) -> PreRunBaseline {
        // What cannot be read now cannot be read at the end either, and is reported then.
        PreRunBaseline {
            children: own::children(host),
            io: own::reaped_io(host).unwrap_or_default(),
        }
    }
}

impl Monitor {
    /// Reaps every exited child.
    pub(super) fn reap(&mut self) {
        while let Some(pid) = wait::next_exited() {
            if self.pre_run_baseline.children.remove(&pid) {
                self.reap_inherited_child(pid);
                continue;
            }
            let at = self.sampling.now();
            let id = self.final_read(pid, at);
            let Some((end, mut usage)) = wait::reap(pid) else { continue };
            let Some(id) = id else {
                // A helper's time is in that of the run; its size is not.
                self.reaped.add(&Usage { largest_rss_bytes: 0, ..usage });
                continue;
            };
            if pid == self.root.pid {
                usage.subtract_pre_exec(self.pause.cpu.as_secs_f64());
                self.ended = Some((end, at));
                out_of_memory::end_with(end);
            }
            self.reaped.add(&usage);
            self.reaped_at = at;
            let exit = Event::ended(id, Some(end), Some(usage));
            self.sampling.event(self.sampling.now(), exit);
        }
        self.stop_with_the_command();
    }

    /// A child from before exec of this program: what it used is not the run's.
    fn reap_inherited_child(&mut self, pid: u32) {
        match self.sampling.zombie_io(pid) {
            Some(io) => self.pre_run_baseline.io = self.pre_run_baseline.io.and(&io),
            None => {
                self.sampling.fault(
                    FaultSource::Io,
                    format!("I/O of process {pid}, which is not part of this run, is included"),
                );
            }
        }
        // How it exited is of no interest here.
        let _ = wait::reap(pid);
    }

    /// Reads what a zombie still has, before it is reaped; returns its identity, unless it was
    /// weigh's own helper.
    fn final_read(&mut self, pid: u32, at: Duration) -> Option<ProcessId> {
        if pid == self.root.pid {
            self.expect_end(at);
            // All processes, for the last time with the command among them.
            self.sampling.take_tick();
            self.record_start_peak();
            if let Some(processes) = &mut self.sampling.collectors.processes {
                processes.forget(pid);
            }
            return Some(self.root);
        }
        self.sampling.final_read(pid, at)
    }

    /// Tells the collectors when the run ends with the command, as far as is known.
    fn expect_end(&mut self, at: Duration) {
        let Collectors { processes, sockets, .. } = &mut self.sampling.collectors;
        let mut known = processes.iter().flat_map(ProcessCollector::alive);
        let is_alone = !self.wait_all && known.all(|id| id == self.root);
        if let Some(sockets) = sockets.as_mut().filter(|_| is_alone) {
            sockets.expect_end(at);
        }
    }

    /// Stops when Ctrl-Z has stopped the command: the shell waits for us, not for it.
    fn stop_with_the_command(&mut self) {
        if self.ended.is_some() {
            return;
        }
        if let Some(signal) = wait::newly_stopped(self.root.pid)
            && self.job_control
            && signals::is_by_terminal(signal)
        {
            self.sampling.tell(LiveEvent::Suspended);
            signals::stop_self();
        }
    }
}
