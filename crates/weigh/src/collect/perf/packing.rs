//! Which events are counted at the same time: as many as there are counters.
//!
//! A round is a group of the kernel: it is counted as a whole or not at all. Each round has
//! instructions and cycles, and as many of the requested groups of events as fit beside them, each
//! as a whole, so that its ratios are of one time. What does not fit is in another round, and rounds
//! take turns.

use crate::counters::{CounterEvent, FixedCounter, Slots};

/// The counters of a core that a task may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Programmable counters.
    pub programmable: usize,
    /// Whether instructions and cycles have counters of their own.
    pub has_fixed: bool,
}

/// Events that were requested together, and what they are called.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestedGroup {
    /// The name of the group, or of the event.
    pub name: String,
    /// Its events that count in a core.
    pub events: Vec<CounterEvent>,
}

/// Events that are counted at the same time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Round {
    /// The groups that are in it.
    pub groups: Vec<String>,
    /// Its events, the leader first.
    pub events: Vec<CounterEvent>,
}

/// A group that cannot be counted, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedGroup {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// How many programmable counters these events take together.
pub fn needed(events: &[CounterEvent], capacity: Capacity) -> usize {
    let own = |event: &CounterEvent| match event.slots {
        Slots::Software | Slots::Uncore | Slots::TopDown => 0,
        // It exists where there are top-down events at all.
        Slots::Fixed(FixedCounter::Slots) => 0,
        Slots::Fixed(FixedCounter::Instructions | FixedCounter::Cycles) => {
            usize::from(!capacity.has_fixed)
        }
        Slots::Programmable => 1,
        Slots::Paired => 2,
    };
    events.iter().map(own).sum()
}

/// The leader first: `slots` must lead its group.
fn rank(event: &CounterEvent) -> u8 {
    match event.slots {
        Slots::Fixed(FixedCounter::Slots) => 0,
        Slots::TopDown => 1,
        Slots::Fixed(FixedCounter::Cycles) => 2,
        Slots::Fixed(FixedCounter::Instructions) => 3,
        _ => 4,
    }
}

/// What is counted of two lists together.
fn union(one: &[CounterEvent], other: &[CounterEvent]) -> Vec<CounterEvent> {
    let mut all = one.to_vec();
    all.extend(other.iter().filter(|event| !one.contains(event)).cloned());
    all.sort_by_key(rank);
    all
}

/// Packs groups into rounds, in their order; `always` is in every round.
pub fn pack(
    groups: &[RequestedGroup],
    always: &[CounterEvent],
    capacity: Capacity,
) -> (Vec<Round>, Vec<RefusedGroup>) {
    let (mut rounds, mut refused): (Vec<Round>, _) = (Vec::new(), Vec::new());
    let fits = |events: &[CounterEvent]| needed(events, capacity) <= capacity.programmable;
    for group in groups {
        let place = rounds.iter().position(|round| fits(&union(&round.events, &group.events)));
        let alone = union(always, &group.events);
        match place {
            Some(place) => {
                let round = &mut rounds[place];
                round.events = union(&round.events, &group.events);
                round.groups.push(group.name.clone());
            }
            None if fits(&alone) => {
                rounds.push(Round { groups: vec![group.name.clone()], events: alone });
            }
            None => {
                let (needed, there) = (needed(&alone, capacity), capacity.programmable);
                let why = format!(
                    "its events must be counted together and need {needed} counters; there {}",
                    match there {
                        1 => "is 1".to_owned(),
                        _ => format!("are {there}"),
                    }
                );
                refused.push(RefusedGroup { name: group.name.clone(), why });
            }
        }
    }
    (rounds, refused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counters::generic;

    fn group(name: &str, events: &[&str]) -> RequestedGroup {
        let events = events.iter().map(|name| generic::event(name).unwrap()).collect();
        RequestedGroup { name: name.to_owned(), events }
    }

    fn always() -> Vec<CounterEvent> {
        group("", &["cycles", "instructions"]).events
    }

    fn default_groups() -> [RequestedGroup; 3] {
        [
            group("IPC", &["cycles", "instructions"]),
            group("BRANCH", &["branches", "branch-misses", "instructions"]),
            group("CACHE", &["cache-references", "cache-misses"]),
        ]
    }

    fn packed(programmable: usize, has_fixed: bool) -> (Vec<Vec<String>>, Vec<String>) {
        let capacity = Capacity { programmable, has_fixed };
        let (rounds, refused) = pack(&default_groups(), &always(), capacity);
        for round in &rounds {
            assert!(needed(&round.events, capacity) <= programmable, "{round:?}");
            let has = |name: &str| round.events.iter().any(|event| event.name == name);
            assert!(has("cycles") && has("instructions"), "{round:?}");
        }
        let rounds = rounds.into_iter().map(|round| round.groups).collect();
        (rounds, refused.into_iter().map(|group| group.name).collect())
    }

    #[test]
    fn default_set_is_one_round_where_it_fits() {
        let one = (vec![vec!["IPC".to_owned(), "BRANCH".to_owned(), "CACHE".to_owned()]], vec![]);
        // Intel with hyper-threading, AMD with its six counters, ARM, Intel without.
        for (programmable, has_fixed) in [(4, true), (6, false), (8, true)] {
            assert_eq!(packed(programmable, has_fixed), one, "{programmable}");
        }
    }

    #[test]
    fn groups_are_never_split_between_rounds() {
        let two = vec![vec!["IPC".to_owned(), "BRANCH".to_owned()], vec!["CACHE".to_owned()]];
        assert_eq!(packed(2, true), (two.clone(), vec![]));
        assert_eq!(packed(3, true), (two.clone(), vec![]));
        assert_eq!(packed(4, false), (two, vec![]));
    }

    #[test]
    fn group_that_needs_more_counters_than_there_are_is_refused_and_the_others_are_counted() {
        let (rounds, refused) = packed(2, false);
        assert_eq!(rounds, [["IPC"]]);
        assert_eq!(refused, ["BRANCH", "CACHE"]);
        let capacity = Capacity { programmable: 1, has_fixed: true };
        let (_, refused) = pack(&default_groups(), &always(), capacity);
        assert_eq!(
            refused[0].why,
            "its events must be counted together and need 2 counters; there is 1"
        );
    }

    #[test]
    fn paired_event_takes_two_counters_and_slots_leads_its_group() {
        let paired = |name: &str| CounterEvent {
            name: name.to_owned(),
            slots: Slots::Paired,
            ..generic::event("branches").unwrap()
        };
        let flops = RequestedGroup { name: "FLOPS".to_owned(), events: vec![paired("flops")] };
        let cache = group("CACHE", &["cache-references", "cache-misses"]);
        let capacity = Capacity { programmable: 6, has_fixed: false };
        assert_eq!(needed(&flops.events, capacity), 2);
        let both = [flops, cache, group("BRANCH", &["branches", "branch-misses"])];
        let (rounds, _) = pack(&both, &always(), capacity);
        assert_eq!(rounds.len(), 2, "two and two beside instructions and cycles, then two more");

        let top_down = |name: &str, slots| CounterEvent {
            name: name.to_owned(),
            slots,
            ..generic::event("branches").unwrap()
        };
        let events = vec![
            top_down("topdown-retiring", Slots::TopDown),
            top_down("slots", Slots::Fixed(FixedCounter::Slots)),
        ];
        let capacity = Capacity { programmable: 4, has_fixed: true };
        let tma = RequestedGroup { name: "TMA".to_owned(), events };
        let (rounds, _) = pack(&[tma], &always(), capacity);
        let names: Vec<&str> = rounds[0].events.iter().map(|event| &event.name[..]).collect();
        assert_eq!(names, ["slots", "topdown-retiring", "cycles", "instructions"]);
    }
}
