//! What of the requested events can be counted here, and which of it at the same time.

use super::capacity;
use super::packing::{RefusedGroup, RequestedGroup, Round, pack};
use crate::counters::{CounterEvent, EventScope, Slots, generic};
use crate::host::Host;
use crate::host::perf::events::{CountedTask, EventCode, EventCounter};

/// What is counted of a run.
#[derive(Debug, Default)]
pub struct Plan {
    /// Events that the kernel counts, all the time.
    pub software: Vec<CounterEvent>,
    /// Events of the whole machine, all the time.
    pub machine: Vec<CounterEvent>,
    /// Events that a core counts. Where there are several rounds, they take turns.
    pub rounds: Vec<Round>,
    /// What cannot be counted, and why.
    pub refused: Vec<RefusedGroup>,
}

/// An event as the kernel takes it.
pub fn code(event: &CounterEvent) -> EventCode {
    let CounterEvent { kind, config, config1, config2, .. } = *event;
    EventCode { kind, config, config1, config2 }
}

/// Whether a core counts it for a task.
fn is_of_core(event: &CounterEvent) -> bool {
    event.scope == EventScope::Task && event.slots != Slots::Software
}

impl Plan {
    /// What of these groups can be counted on this machine. Nothing is counted yet.
    pub fn of(host: &Host, groups: Vec<RequestedGroup>) -> Plan {
        let mut plan = Plan::default();
        let (mut of_core, mut of_others) = (Vec::new(), Vec::new());
        for RequestedGroup { name, events } in groups {
            let (core, others): (Vec<_>, Vec<_>) = events.into_iter().partition(is_of_core);
            of_others.push((name.clone(), others));
            if !core.is_empty() {
                of_core.push(RequestedGroup { name, events: core });
            }
        }
        if !of_core.is_empty() {
            plan.add_rounds(host, of_core);
        }
        // What goes with events of a core that is not counted is of no use.
        of_others.retain(|(name, _)| !plan.refused.iter().any(|refused| refused.name == *name));
        for event in of_others.into_iter().flat_map(|(_, events)| events) {
            plan.add_other(host, event);
        }
        plan
    }

    /// Whether nothing can be counted.
    pub fn is_empty(&self) -> bool {
        self.software.is_empty() && self.machine.is_empty() && self.rounds.is_empty()
    }

    fn refuse(&mut self, name: String, why: String) {
        if !self.refused.iter().any(|refused| refused.name == name) {
            self.refused.push(RefusedGroup { name, why });
        }
    }

    fn add_other(&mut self, host: &Host, event: CounterEvent) {
        let (list, opened) = match &event.scope {
            EventScope::Task => {
                let task = CountedTask::Trial;
                (&mut self.software, host.perf.count_event(code(&event), task, None, false).err())
            }
            EventScope::Machine { cpus } => {
                let count = |cpu: &u32| host.perf.count(event.kind, event.config, *cpu).err();
                (&mut self.machine, cpus.iter().find_map(count))
            }
        };
        if list.contains(&event) {
            return;
        }
        match opened {
            None => list.push(event),
            Some(error) => {
                let why = why_refused(&event, &error);
                self.refuse(event.name, why);
            }
        }
    }

    fn add_rounds(&mut self, host: &Host, groups: Vec<RequestedGroup>) {
        let capacity = match capacity::of(host) {
            Ok(capacity) => capacity,
            Err(error) => {
                let why = super::absence::words(host, &error);
                return groups.into_iter().for_each(|group| self.refuse(group.name, why.clone()));
            }
        };
        let opens = |event: &CounterEvent, leader: Option<&EventCounter>| {
            host.perf.count_event(code(event), CountedTask::Trial, leader, false)
        };
        let always: Vec<CounterEvent> = ["cycles", "instructions"]
            .into_iter()
            .filter_map(generic::event)
            .filter(|event| opens(event, None).is_ok())
            .collect();
        let mut counted: Vec<RequestedGroup> = Vec::new();
        for group in groups {
            // Top-down events are only accepted behind their leader.
            let alone = group.events.iter().filter(|event| event.slots != Slots::TopDown);
            let refused = alone.filter_map(|event| Some((event, opens(event, None).err()?))).next();
            match refused {
                Some((event, error)) => {
                    let why = why_refused(event, &error);
                    self.refuse(group.name, why);
                }
                None => counted.push(group),
            }
        }
        // The kernel has the last word: a group that it refuses after all is left out.
        loop {
            let (rounds, refused) = pack(&counted, &always, capacity);
            let accepted = |round: &Round| {
                let leader = round.events.first().map(|leader| opens(leader, None));
                let Some(Ok(leader)) = leader else { return false };
                let mut group = vec![leader];
                round.events[1..].iter().all(|event| match opens(event, group.first()) {
                    Ok(counter) => {
                        group.push(counter);
                        true
                    }
                    Err(_) => false,
                })
            };
            match rounds.iter().find(|round| !accepted(round)) {
                None => {
                    self.rounds = rounds;
                    return refused.into_iter().for_each(|one| self.refuse(one.name, one.why));
                }
                Some(round) => {
                    let last = round.groups.last().cloned().unwrap_or_default();
                    let why = "the kernel does not count its events at the same time".to_owned();
                    counted.retain(|group| group.name != last);
                    self.refuse(last, why);
                }
            }
        }
    }
}

/// Why the kernel does not count an event.
fn why_refused(event: &CounterEvent, error: &std::io::Error) -> String {
    let name = &event.name;
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EINVAL | libc::EOPNOTSUPP | libc::ENODEV) => {
            format!("{name}: this processor or kernel does not count it")
        }
        Some(libc::EACCES | libc::EPERM) => match &event.scope {
            EventScope::Machine { .. } => format!(
                "{name} counts the whole machine: kernel.perf_event_paranoid must be 0 or less, or \
                 weigh run by root"
            ),
            EventScope::Task => format!(
                "{name} counts in the kernel: kernel.perf_event_paranoid must be 1 or less, or \
                 weigh run by root"
            ),
        },
        Some(libc::EBUSY) => format!("{name}: another program uses its counter"),
        _ => format!("{name}: perf_event_open: {error}"),
    }
}
