//! The end of a run: the account is closed, the recording finished.

use std::time::Duration;

use super::Monitor;
use crate::collect::processes::Processes;
use crate::host::child::Pause;
use crate::host::own;
use crate::host::wait::End;
use crate::record::events::RunEnd;
use crate::record::{Entry, Event, files};
use crate::run::Outcome;

impl Monitor {
    /// Closes the account and the recording.
    pub(in crate::run) fn finish(mut self, mut warnings: Vec<String>) -> Outcome {
        // Words that were sent before the end and not heard yet.
        let words = self.inbox.take().map_or_else(Vec::new, |mut inbox| inbox.take());
        self.hear(words);
        let (end, at) = self.ended.unwrap_or((End::Code(1), self.now()));
        self.end_steps(at);
        let run_end = self.close_account(end, at);
        let now = self.now();
        self.event(now, Event::RunEnd(run_end));
        if let Some(mut writer) = self.writer.take() {
            let directory = writer.directory().to_owned();
            writer.flush(now);
            let faults = writer.finish(now, || self.is_told_to_give_up(now));
            let whole = faults.is_empty();
            if !whole {
                let why = faults.join("; ");
                warnings.push(format!("the recording is not whole: {why}"));
                let source = "recording".to_owned();
                self.accumulator.event(&Entry::new(now, Event::Fault { source, why }));
            }
            let summary = self.accumulator.finish();
            let written = serde_json::to_vec_pretty(&summary)
                .map_err(|error| error.to_string())
                .and_then(|json| {
                    files::write_whole(&directory.join("summary.json"), &json)
                        .map_err(|error| error.to_string())
                });
            // One warning is enough: the second would have the same cause.
            if let Err(why) = written
                && whole
            {
                warnings.push(format!("no summary.json: {why}"));
            }
            let recording = directory.join("run.json").exists().then_some(directory);
            return Outcome { end, summary, recording, warnings };
        }
        Outcome { end, summary: self.accumulator.finish(), recording: None, warnings }
    }

    /// Whether somebody wants the end of a recording that takes long: its disk may hang.
    ///
    /// Not at once: whoever ends a run often tells everybody, and more than once.
    fn is_told_to_give_up(&mut self, since: Duration) -> bool {
        const PATIENCE: Duration = Duration::from_secs(2);
        let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
        let told = self.signals.arrived().is_some_and(|signal| ends.contains(&signal.number));
        told && self.now().saturating_sub(since) > PATIENCE
    }

    fn close_account(&mut self, end: End, at: Duration) -> RunEnd {
        let clock = self.task_clock.as_mut().map(|clock| clock.0.read());
        let task_clock_seconds = match clock {
            Some(Ok(time)) => Some(time.as_secs_f64()),
            Some(Err(error)) => {
                self.fault("task-clock", error.to_string());
                None
            }
            None => None,
        };
        let io = own::reaped_io(&self.host)
            .map(|io| io.less(&Pause::IO).less(&self.inheritance.io))
            .map_err(|error| self.fault("io", error.to_string()));
        RunEnd {
            end,
            duration_seconds: at.saturating_sub(self.executed).as_secs_f64(),
            reaped: self.reaped,
            task_clock_seconds,
            io: io.ok(),
            left: self.processes.iter().flat_map(|all| all.alive()).map(|id| id.pid).collect(),
            some_unseen: self.processes.as_ref().is_none_or(Processes::some_went_unseen),
            rss_before_exec_bytes: self.pause.largest_rss,
            monitor_cpu_seconds: own::usage().cpu_seconds(),
        }
    }
}
