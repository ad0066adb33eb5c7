//! Phases and marks sent from inside the run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Monitor;
use crate::host::clock::Offsets;
use crate::record::events::Helper;
use crate::record::inbox::ControlMessage;
use crate::record::{Event, secrets};

/// The current steps of scripts: one for each phase inside whose command a script runs, and one for
/// the run itself, so that parallel scripts do not end each other's.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// The step's id by that of the enclosing phase; empty for those of the run.
    open: BTreeMap<String, String>,
    count: u32,
}

impl Monitor {
    /// Handles control messages; a phase start or end triggers a sample.
    pub(super) fn handle_messages(&mut self, control: Vec<ControlMessage>) {
        let mut at_a_boundary = false;
        for message in control {
            if matches!(message.event, Event::PhaseCommand { .. }) {
                self.watch.add_phase_commands();
            }
            at_a_boundary |=
                matches!(message.event, Event::PhaseStart { .. } | Event::PhaseEnd { .. });
            self.handle_message(message);
        }
        // One sample for all that arrived together: none of them is further from it than from its
        // own.
        if at_a_boundary {
            if let Some(processes) = &mut self.watch.collectors.processes {
                processes.want_footprint();
            }
            self.watch.take_tick();
        }
    }

    fn handle_message(&mut self, message: ControlMessage) {
        let sent = Duration::from_nanos(Offsets::own().from_machine(message.nanoseconds));
        let sent = sent.saturating_sub(self.watch.begin);
        let at = self.not_before_the_last_tick(sent.min(self.watch.now()));
        // It grows a little until its exit: by a tenth where code is not optimised.
        let sender = message.sender_rss_bytes.map_or(0, |bytes| bytes.saturating_add(bytes / 4));
        self.largest_helper = self.largest_helper.max(sender);
        if let Some(used) = message.helper {
            self.helpers.add(&used);
            let within = message.within.clone();
            self.watch.event(at, Event::Helper(Helper { within, used }));
        }
        match without_secrets(message.event) {
            // Steps of a script have no id of their own: each ends the one before.
            Event::PhaseStart { id, name, parent } if id.is_empty() => {
                let around = parent.clone().unwrap_or_default();
                self.end_step(&around, at);
                let id = format!("step-{}", self.steps.count);
                self.steps.count += 1;
                self.steps.open.insert(around, id.clone());
                self.watch.event(at, Event::PhaseStart { id, name, parent });
            }
            // A command that is started in the middle of a step is a part of that step.
            Event::PhaseStart { id, name, parent } => {
                let step = self.steps.open.get(parent.as_deref().unwrap_or_default());
                let parent = step.cloned().or(parent);
                self.watch.event(at, Event::PhaseStart { id, name, parent });
            }
            Event::PhaseEnd { id, .. } if id.is_empty() => {
                self.end_step(&message.within.unwrap_or_default(), at);
            }
            Event::PhaseEnd { id, usage, end, account } => {
                self.end_step(&id, at);
                let account = account.map(|account| account.not_below(self.largest_helper));
                self.watch.event(at, Event::PhaseEnd { id, usage, end, account });
            }
            Event::PhaseCommand { id, pid, started } => {
                let per_second = self.watch.host.ticks_per_second;
                let started = Offsets::own().start_from_machine(started, per_second);
                self.watch.event(at, Event::PhaseCommand { id, pid, started });
            }
            event => self.watch.event(at, event),
        }
    }

    /// A message that was sent before the last sample and received after it comes after it: time
    /// does not run backwards for readers.
    fn not_before_the_last_tick(&self, at: Duration) -> Duration {
        at.max(self.watch.tick.at)
    }

    fn end_step(&mut self, around: &str, at: Duration) {
        if let Some(id) = self.steps.open.remove(around) {
            self.watch.event(at, Event::PhaseEnd { id, usage: None, end: None, account: None });
        }
    }

    /// The run is over, and with it every step.
    pub(super) fn end_steps(&mut self, at: Duration) {
        let at = self.not_before_the_last_tick(at);
        while let Some(around) = self.steps.open.keys().next().cloned() {
            self.end_step(&around, at);
        }
    }
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
