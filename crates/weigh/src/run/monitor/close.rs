//! The end of a run: the final counters are read, the recording is finished.

use std::time::Duration;

use super::Monitor;
use crate::catalog::SourceId;
use crate::collect::processes::ProcessCollector;
use crate::host::cgroup::Cgroup;
use crate::host::child::PreExecUsage;
use crate::host::own;
use crate::host::run_cgroup::RunCgroup;
use crate::model::{End, FaultSource};
use crate::parse::kernel_log;
use crate::record::events::Victim;
use crate::record::{Event, FinalCounters, RunEnd};
use crate::run::{Outcome, requests};

impl Monitor {
    /// Reads the final counters and closes the recording.
    pub(in crate::run) fn finish(mut self, warnings: Vec<String>) -> Outcome {
        self.control.finish(&mut self.sampling);
        let (end, at) = self.ended.unwrap_or((End::Code(1), self.sampling.now()));
        self.control.end_steps(&mut self.sampling, at);
        self.sampling.finish_sockets();
        self.sampling.finish_counters();
        self.leave_group();
        let run_end = self.close_account(end, at);
        let signals = &mut self.signals;
        self.sampling.close(run_end, || requests::is_impatient(signals), warnings)
    }

    /// Takes the final counters of the cgroup that the command was in, and removes the one that was
    /// created for it.
    fn leave_group(&mut self) {
        if self.own_group.is_some() {
            self.sampling.take_tick();
        }
        if let Some((group, before)) = self.group.take() {
            let kills = group.oom_kills().and_then(|kills| kills.checked_sub(before));
            if let Some(kills) = kills.filter(|kills| *kills > 0) {
                let (now, victims) = (self.sampling.now(), self.victims(&group));
                self.sampling.event(now, Event::OutOfMemory { kills, victims });
            }
        }
        // The BPF programs attached to it are removed first.
        self.sampling.collectors.packets = None;
        if let Some(Err(error)) = self.own_group.take().map(RunCgroup::remove) {
            self.sampling.fault(
                SourceId::Cgroup,
                format!("the command's cgroup could not be removed: {error}"),
            );
        }
    }

    /// The processes that the kernel log lists as killed in a cgroup or below it.
    fn victims(&mut self, group: &Cgroup) -> Vec<Victim> {
        let mut victims = Vec::new();
        let Some(log) = &mut self.kernel_log else { return victims };
        let path = group.path.trim_end_matches('/');
        log.next(|record| {
            let killed = kernel_log::oom_victim(record);
            let below = |killed: &kernel_log::OomVictim<'_>| {
                let rest = killed.group.strip_prefix(path.as_bytes());
                // All processes of the machine are below the root, and not of the run.
                !path.is_empty()
                    && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
            };
            if let Some(killed) = killed.filter(below) {
                let name = String::from_utf8_lossy(killed.name).into_owned();
                victims.push(Victim { pid: killed.pid, name });
            }
        });
        victims
    }

    fn close_account(&mut self, end: End, at: Duration) -> RunEnd {
        let task_clock_seconds = self.sampling.read_task_clock();
        let io = own::reaped_io(&self.sampling.host)
            .map(|io| io.less(&PreExecUsage::IO).less(&self.pre_run_baseline.io));
        let io = self.sampling.or_fault(FaultSource::Io, io);
        // Remaining processes use CPU time until it is read above.
        let until = if self.has_children() { self.sampling.now() } else { self.reaped_at.max(at) };
        let processes = self.sampling.collectors.processes.as_ref();
        RunEnd {
            why: None,
            exit: Some(end),
            duration_seconds: at.saturating_sub(self.executed).as_secs_f64(),
            measured_seconds: Some(until.saturating_sub(self.executed).as_secs_f64()),
            task_clock_seconds,
            task_clock_began_seconds: task_clock_seconds.map(|_| 0.0),
            still_running: processes.iter().flat_map(|all| all.alive()).map(|id| id.pid).collect(),
            may_miss_processes: self.loses_orphans
                || processes.is_none_or(ProcessCollector::may_have_missed_processes),
            monitor_cpu_seconds: own::usage().cpu_seconds(),
            final_counters: Some(Box::new(FinalCounters {
                reaped: self.reaped,
                io,
                rss_before_exec_bytes: self.pause.largest_rss.max(self.control.largest_helper),
                cpu_before_exec_seconds: self.pause.cpu.as_secs_f64(),
                helpers: self.control.helpers,
            })),
        }
    }
}
