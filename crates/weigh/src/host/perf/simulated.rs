//! A PMU made of numbers, for tests: how many counters it has, what each event counts in a second of
//! CPU time, and which events it refuses.
//!
//! It schedules groups as the kernel does: one after the other, as long as counters are left, and
//! another one first after each step of time.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::events::{CountedTask, EventCode, EventReading};

/// A PMU of a test. Clones are the same PMU.
#[derive(Debug, Clone, Default)]
pub struct SimulatedPmu(Rc<RefCell<State>>);

#[derive(Debug, Default)]
struct State {
    counters: usize,
    /// Counters that somebody else uses.
    taken: usize,
    /// Events with a counter of their own.
    fixed: Vec<EventCode>,
    /// Events that need two counters.
    paired: Vec<EventCode>,
    /// What an event counts in a second; one without an entry does not exist.
    rates: HashMap<EventCode, u64>,
    /// The error of every call.
    refusal: Option<i32>,
    /// What counters count modulo, if they wrap around.
    wraps_at: Option<u64>,
    events: Vec<SimulatedEvent>,
    first: usize,
}

#[derive(Debug)]
struct SimulatedEvent {
    code: EventCode,
    /// The place of its leader: its own, if it has none.
    leader: usize,
    is_enabled: bool,
    begins_at_exec: bool,
    is_closed: bool,
    read: EventReading,
}

/// A counter of such a PMU.
#[derive(Debug)]
pub struct SimulatedCounter {
    pmu: SimulatedPmu,
    place: usize,
}

impl SimulatedPmu {
    /// With so many programmable counters, and these events with their counts in a second.
    pub fn new(counters: usize, rates: &[(EventCode, u64)]) -> SimulatedPmu {
        let rates = rates.iter().copied().collect();
        SimulatedPmu(Rc::new(RefCell::new(State { counters, rates, ..State::default() })))
    }

    /// These events have a counter of their own.
    pub fn fixed(self, events: &[EventCode]) -> SimulatedPmu {
        self.0.borrow_mut().fixed = events.to_vec();
        self
    }

    /// These events need two counters.
    pub fn paired(self, events: &[EventCode]) -> SimulatedPmu {
        self.0.borrow_mut().paired = events.to_vec();
        self
    }

    /// Somebody else uses so many counters.
    pub fn taken(self, counters: usize) -> SimulatedPmu {
        self.0.borrow_mut().taken = counters;
        self
    }

    /// Every call fails with this error.
    pub fn refusing(self, errno: i32) -> SimulatedPmu {
        self.0.borrow_mut().refusal = Some(errno);
        self
    }

    /// Counters wrap around at this count.
    pub fn wrapping_at(self, count: u64) -> SimulatedPmu {
        self.0.borrow_mut().wraps_at = Some(count);
        self
    }

    /// How many events are open.
    pub fn open_events(&self) -> usize {
        self.0.borrow().events.iter().filter(|event| !event.is_closed).count()
    }

    /// The command calls exec.
    pub fn exec(&self) {
        for event in &mut self.0.borrow_mut().events {
            event.is_enabled |= std::mem::take(&mut event.begins_at_exec);
        }
    }

    /// The command uses the CPU for so many milliseconds, and the kernel rotates its groups.
    pub fn run(&self, milliseconds: u64) {
        let mut state = self.0.borrow_mut();
        let leaders: Vec<usize> = (0..state.events.len())
            .filter(|place| {
                let event = &state.events[*place];
                event.leader == *place && event.is_enabled && !event.is_closed
            })
            .collect();
        let mut left = state.counters - state.taken;
        let count = leaders.len();
        let first = state.first;
        for turn in 0..count {
            let leader = leaders[(first + turn) % count];
            let needed = state.needed(leader);
            let counts = needed <= left;
            left -= if counts { needed } else { 0 };
            for place in 0..state.events.len() {
                if state.events[place].leader != leader || state.events[place].is_closed {
                    continue;
                }
                let rate = state.rates[&state.events[place].code];
                let wraps_at = state.wraps_at;
                let read = &mut state.events[place].read;
                read.enabled += milliseconds * 1_000_000;
                if counts {
                    read.running += milliseconds * 1_000_000;
                    read.count += rate * milliseconds / 1000;
                    read.count %= wraps_at.unwrap_or(u64::MAX);
                }
            }
        }
        state.first = state.first.wrapping_add(1);
    }

    pub(super) fn open(
        &self,
        code: EventCode,
        task: CountedTask,
        leader: Option<&SimulatedCounter>,
        begins: bool,
    ) -> std::io::Result<SimulatedCounter> {
        let error = std::io::Error::from_raw_os_error;
        let mut state = self.0.borrow_mut();
        if let Some(errno) = state.refusal {
            return Err(error(errno));
        }
        if !state.rates.contains_key(&code) {
            return Err(error(libc::ENOENT));
        }
        let place = state.events.len();
        let starting_at_exec = matches!(task, CountedTask::FromExec(_));
        let leader = leader.map_or(place, |leader| leader.place);
        let leads = leader == place;
        state.events.push(SimulatedEvent {
            code,
            leader,
            is_enabled: leads && begins && matches!(task, CountedTask::FromNow(_)),
            begins_at_exec: leads && begins && starting_at_exec,
            is_closed: false,
            read: EventReading::default(),
        });
        if state.needed(leader) > state.counters {
            state.events.pop();
            return Err(error(libc::EINVAL));
        }
        Ok(SimulatedCounter { pmu: self.clone(), place })
    }
}

impl State {
    /// How many programmable counters the group of a leader takes. A fixed counter is taken by the
    /// first event of its kind in a group.
    fn needed(&self, leader: usize) -> usize {
        let mut fixed = self.fixed.clone();
        let events = self.events.iter().filter(|event| event.leader == leader && !event.is_closed);
        events
            .map(|event| match fixed.iter().position(|one| *one == event.code) {
                _ if event.code.is_software() => 0,
                Some(place) => {
                    fixed.remove(place);
                    0
                }
                None if self.paired.contains(&event.code) => 2,
                None => 1,
            })
            .sum()
    }
}

impl SimulatedCounter {
    pub(super) fn read(&self) -> EventReading {
        self.pmu.0.borrow().events[self.place].read
    }

    pub(super) fn set_enabled(&self, is_enabled: bool) {
        self.pmu.0.borrow_mut().events[self.place].is_enabled = is_enabled;
    }
}

impl Drop for SimulatedCounter {
    fn drop(&mut self) {
        self.pmu.0.borrow_mut().events[self.place].is_closed = true;
    }
}
