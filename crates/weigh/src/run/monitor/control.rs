//! Phases and marks that are told from inside the run.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Monitor;
use crate::host::clock::Offsets;
use crate::record::events::Helper;
use crate::record::inbox::ControlMessage;
use crate::record::{Event, secrets};

/// The steps of scripts that are under way: one for each phase inside whose command a script
/// runs, and one for the run itself, so that scripts side by side do not end each other's.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// The step's id by that of the phase around it; nothing is around those of the run.
    open: BTreeMap<String, String>,
    count: u32,
}

impl Monitor {
    /// Takes in words; where a phase begins or ends is a good moment to look.
    pub(super) fn handle_messages(&mut self, control: Vec<ControlMessage>) {
        let mut at_a_boundary = false;
        for word in control {
            if matches!(word.event, Event::PhaseCommand { .. }) {
                self.watch.meet_commands();
            }
            at_a_boundary |=
                matches!(word.event, Event::PhaseStart { .. } | Event::PhaseEnd { .. });
            self.word(word);
        }
        // One look for all that came together: none of them is further from it than from its own.
        if at_a_boundary {
            if let Some(processes) = &mut self.watch.processes {
                processes.want_footprint();
            }
            self.watch.take_tick();
        }
    }

    fn word(&mut self, word: ControlMessage) {
        let sent = Duration::from_nanos(Offsets::own().from_machine(word.nanoseconds));
        let sent = sent.saturating_sub(self.watch.begin);
        let at = self.after_the_last_look(sent.min(self.watch.now()));
        // It has grown a little until its end: by a tenth where code is not optimised.
        let sender = word.sender_rss_bytes.map_or(0, |bytes| bytes.saturating_add(bytes / 4));
        self.largest_helper = self.largest_helper.max(sender);
        if let Some(used) = word.helper {
            self.helpers.add(&used);
            let within = word.within.clone();
            self.watch.event(at, Event::Helper(Helper { within, used }));
        }
        match without_secrets(word.event) {
            // Steps of a script have no id of their own: each ends the one before.
            Event::PhaseStart { id, name, parent } if id.is_empty() => {
                let around = parent.clone().unwrap_or_default();
                self.end_step(&around, at);
                let id = format!("step-{}", self.steps.count);
                self.steps.count += 1;
                self.steps.open.insert(around, id.clone());
                self.watch.event(at, Event::PhaseStart { id, name, parent });
            }
            // What a command is started in the middle of a step is a part of that step.
            Event::PhaseStart { id, name, parent } => {
                let step = self.steps.open.get(parent.as_deref().unwrap_or_default());
                let parent = step.cloned().or(parent);
                self.watch.event(at, Event::PhaseStart { id, name, parent });
            }
            Event::PhaseEnd { id, .. } if id.is_empty() => {
                self.end_step(&word.within.unwrap_or_default(), at);
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

    /// Readers take what happened before a tick first: a word that was sent before the last
    /// look and heard after it is put behind it, so that they find the order we had.
    fn after_the_last_look(&self, at: Duration) -> Duration {
        at.max(self.watch.tick.at + Duration::from_micros(1))
    }

    fn end_step(&mut self, around: &str, at: Duration) {
        if let Some(id) = self.steps.open.remove(around) {
            self.watch.event(at, Event::PhaseEnd { id, usage: None, end: None, account: None });
        }
    }

    /// The run is over, and with it every step.
    pub(super) fn end_steps(&mut self, at: Duration) {
        let at = self.after_the_last_look(at);
        while let Some(around) = self.steps.open.keys().next().cloned() {
            self.end_step(&around, at);
        }
    }
}

/// What people and scripts say is masked like command lines, before anything is written.
fn without_secrets(event: Event) -> Event {
    match event {
        Event::Mark { text } => Event::Mark { text: secrets::remark(&text) },
        Event::PhaseStart { id, name, parent } => {
            Event::PhaseStart { id, name: secrets::remark(&name), parent }
        }
        event => event,
    }
}
