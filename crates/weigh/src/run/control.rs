//! Phases and marks sent from inside the run: through the pipe of the recording, or by a caller of
//! the library.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use super::sampling_loop::SamplingLoop;
use crate::host::clock::Offsets;
use crate::model::FaultSource;
use crate::record::events::{Helper, HelperUsage};
use crate::record::inbox::{ControlMessage, Inbox, MOST_EACH_SECOND};
use crate::record::{self, Entry, Event, secrets};

/// What control messages leave behind: open steps, and what their senders have used.
#[derive(Default)]
pub(super) struct Control {
    inbox: Option<Inbox>,
    steps: Steps,
    /// The peak RSS of weigh's own helpers inside the run: what `wait4` reports of the processes
    /// that reaped them is at least this.
    pub(super) largest_helper: u64,
    /// What they have used.
    pub(super) helpers: HelperUsage,
}

/// The current steps of scripts: one for each phase inside whose command a script runs, and one for
/// the run itself, so that parallel scripts do not end each other's.
#[derive(Debug, Default)]
struct Steps {
    /// The step's id by that of the enclosing phase; empty for those of the run.
    open: BTreeMap<String, String>,
    count: u32,
}

impl Control {
    /// Receives what is sent through a pipe; a fault says why there is none.
    pub(super) fn take_inbox(
        &mut self,
        sampling: &mut SamplingLoop,
        inbox: Result<Inbox, record::Error>,
    ) {
        self.inbox = sampling.or_fault(FaultSource::Inbox, inbox);
    }

    /// Readable when messages have arrived.
    pub(super) fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inbox.as_ref().map(std::os::fd::AsFd::as_fd)
    }

    /// Handles the messages that have arrived.
    pub(super) fn receive(&mut self, sampling: &mut SamplingLoop) {
        let now = sampling.now();
        let messages = self.inbox.as_mut().map_or_else(Vec::new, |inbox| inbox.take(now));
        self.handle(sampling, messages);
    }

    /// Handles messages; a phase start or end triggers a sample.
    pub(super) fn handle(&mut self, sampling: &mut SamplingLoop, messages: Vec<ControlMessage>) {
        let mut at_a_boundary = false;
        for message in messages {
            if matches!(message.event, Event::PhaseCommand { .. }) {
                sampling.add_phase_commands();
            }
            at_a_boundary |=
                matches!(message.event, Event::PhaseStart { .. } | Event::PhaseEnd { .. });
            self.handle_message(sampling, message);
        }
        // One sample for all that arrived together: none of them is further from it than from its
        // own.
        if at_a_boundary {
            if let Some(processes) = &mut sampling.collectors.processes {
                processes.request_pss_uss();
            }
            sampling.take_tick();
        }
    }

    fn handle_message(&mut self, sampling: &mut SamplingLoop, message: ControlMessage) {
        let sent = Duration::from_nanos(Offsets::own().in_namespace(message.nanoseconds));
        let sent = sent.saturating_sub(sampling.begin);
        let at = not_before_the_last_tick(sampling, sent.min(sampling.now()));
        // It grows a little until its exit: by a tenth where code is not optimised.
        let sender = message.sender_rss_bytes.map_or(0, |bytes| bytes.saturating_add(bytes / 4));
        self.largest_helper = self.largest_helper.max(sender);
        if let Some(used) = message.helper {
            self.helpers.add(&used);
            let within = message.within.clone();
            sampling.event(at, Event::Helper(Helper { within, used }));
        }
        let data = message.data.map(secrets::data);
        let event = match without_secrets(message.event) {
            // Steps of a script have no id of their own: each ends the one before.
            Event::PhaseStart { id, name, parent } if id.is_empty() => {
                let around = parent.clone().unwrap_or_default();
                self.end_step(sampling, &around, at);
                let id = format!("step-{}", self.steps.count);
                self.steps.count += 1;
                self.steps.open.insert(around, id.clone());
                Event::PhaseStart { id, name, parent }
            }
            // A command that is started in the middle of a step is a part of that step.
            Event::PhaseStart { id, name, parent } => {
                let step = self.steps.open.get(parent.as_deref().unwrap_or_default());
                let parent = step.cloned().or(parent);
                Event::PhaseStart { id, name, parent }
            }
            Event::PhaseEnd { id, .. } if id.is_empty() => {
                return self.end_step(sampling, &message.within.unwrap_or_default(), at);
            }
            Event::PhaseEnd { id, usage, end, account } => {
                self.end_step(sampling, &id, at);
                let account = account.map(|counters| counters.raise_rss_floor(self.largest_helper));
                Event::PhaseEnd { id, usage, end, account }
            }
            Event::PhaseCommand { id, pid, started } => {
                let per_second = sampling.host.ticks_per_second;
                let started = Offsets::own().start_in_namespace(started, per_second);
                Event::PhaseCommand { id, pid, started }
            }
            event => event,
        };
        sampling.entry(Entry { data, ..Entry::new(at, event) });
    }

    fn end_step(&mut self, sampling: &mut SamplingLoop, around: &str, at: Duration) {
        if let Some(id) = self.steps.open.remove(around) {
            sampling.event(at, Event::PhaseEnd { id, usage: None, end: None, account: None });
        }
    }

    /// Handles the messages that were sent before the end and not received yet.
    pub(super) fn finish(&mut self, sampling: &mut SamplingLoop) {
        self.receive(sampling);
        let dropped = self.inbox.take().map_or(0, |inbox| inbox.dropped());
        if dropped > 0 {
            let most = MOST_EACH_SECOND;
            let why =
                format!("{dropped} phases or marks were dropped: more than {most} in a second");
            sampling.fault(FaultSource::Inbox, why);
        }
    }

    /// The run is over, and with it every step.
    pub(super) fn end_steps(&mut self, sampling: &mut SamplingLoop, at: Duration) {
        let at = not_before_the_last_tick(sampling, at);
        while let Some(around) = self.steps.open.keys().next().cloned() {
            self.end_step(sampling, &around, at);
        }
    }
}

/// A message that was sent before the last sample and received after it comes after it: time does
/// not run backwards for readers.
fn not_before_the_last_tick(sampling: &SamplingLoop, at: Duration) -> Duration {
    at.max(sampling.tick.at)
}

/// Texts of people and scripts are masked like command lines, before anything is written.
fn without_secrets(event: Event) -> Event {
    match event {
        Event::Mark { text } => Event::Mark { text: secrets::remark(&text) },
        Event::PhaseStart { id, name, parent } => {
            Event::PhaseStart { id, name: secrets::remark(&name), parent }
        }
        event => event,
    }
}
