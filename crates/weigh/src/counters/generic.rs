//! Events that the kernel names itself, and the groups made of them.
//!
//! Source: `enum perf_hw_id`, `perf_sw_ids` and `perf_hw_cache_*` of `<linux/perf_event.h>`; the
//! names are those of the program perf. Which of them a processor has, only opening one tells.

use super::{
    CounterEvent, Derived, DerivedId, EventGroup, EventScope, FixedCounter, Formula, GroupId,
    PERF_TYPE_HARDWARE, PERF_TYPE_HW_CACHE, PERF_TYPE_SOFTWARE, Slots, Trust,
};

/// Name, number and counter of a hardware event.
const HARDWARE: &[(&str, u64, Slots)] = &[
    ("cycles", 0, Slots::Fixed(FixedCounter::Cycles)),
    ("instructions", 1, Slots::Fixed(FixedCounter::Instructions)),
    ("cache-references", 2, Slots::Programmable),
    ("cache-misses", 3, Slots::Programmable),
    ("branches", 4, Slots::Programmable),
    ("branch-misses", 5, Slots::Programmable),
    ("stalled-cycles-frontend", 7, Slots::Programmable),
    ("stalled-cycles-backend", 8, Slots::Programmable),
];

/// Name and number of a software event.
const SOFTWARE: &[(&str, u64)] = &[
    ("task-clock", 1),
    ("page-faults", 2),
    ("context-switches", 3),
    ("cpu-migrations", 4),
    ("minor-faults", 5),
    ("major-faults", 6),
];

/// Name, cache, operation and result of a cache event.
const CACHE: &[(&str, u64, u64, u64)] = &[
    ("L1-dcache-loads", 0, 0, 0),
    ("L1-dcache-load-misses", 0, 0, 1),
    ("LLC-loads", 2, 0, 0),
    ("LLC-load-misses", 2, 0, 1),
    ("dTLB-loads", 3, 0, 0),
    ("dTLB-load-misses", 3, 0, 1),
];

/// Other names of the same events, as perf has them.
const ALIASES: &[(&str, &str)] = &[
    ("cpu-cycles", "cycles"),
    ("branch-instructions", "branches"),
    ("idle-cycles-frontend", "stalled-cycles-frontend"),
    ("idle-cycles-backend", "stalled-cycles-backend"),
    ("faults", "page-faults"),
    ("cs", "context-switches"),
    ("migrations", "cpu-migrations"),
];

/// The event of this name, if it is one of the kernel's.
pub fn event(name: &str) -> Option<CounterEvent> {
    let name = ALIASES.iter().find(|(alias, _)| *alias == name).map_or(name, |(_, name)| name);
    let of = |kind, config, slots| CounterEvent {
        name: name.to_owned(),
        kind,
        config,
        config1: 0,
        config2: 0,
        scope: EventScope::Task,
        slots,
    };
    let hardware = HARDWARE.iter().find(|(known, ..)| *known == name);
    let software = SOFTWARE.iter().find(|(known, _)| *known == name);
    let cache = CACHE.iter().find(|(known, ..)| *known == name);
    hardware
        .map(|(_, config, slots)| of(PERF_TYPE_HARDWARE, *config, *slots))
        .or_else(|| software.map(|(_, config)| of(PERF_TYPE_SOFTWARE, *config, Slots::Software)))
        .or_else(|| {
            cache.map(|(_, cache, operation, result)| {
                let config = cache | operation << 8 | result << 16;
                of(PERF_TYPE_HW_CACHE, config, Slots::Programmable)
            })
        })
}

/// The names of all these events, without aliases.
pub fn names() -> impl Iterator<Item = &'static str> {
    let hardware = HARDWARE.iter().map(|(name, ..)| *name);
    let software = SOFTWARE.iter().map(|(name, _)| *name);
    hardware.chain(software).chain(CACHE.iter().map(|(name, ..)| *name))
}

/// A group by its id, its events and its derived values.
type Declared = (GroupId, &'static [&'static str], &'static [(DerivedId, &'static str)]);

const USER_CYCLES: &str = "cycles are counted in user mode, and CPU time in the kernel, too";

const GROUPS: &[Declared] = &[
    (
        GroupId::Ipc,
        &["cycles", "instructions"],
        &[(DerivedId::InstructionsPerCycle, "instructions / cycles")],
    ),
    (
        GroupId::Clock,
        &["cycles", "task-clock"],
        // The task clock counts nanoseconds.
        &[(DerivedId::ClockFrequency, "cycles / task-clock * 1000000000")],
    ),
    (
        GroupId::Software,
        &["task-clock", "context-switches", "cpu-migrations", "minor-faults", "major-faults"],
        &[],
    ),
    (
        GroupId::Branch,
        &["branches", "branch-misses", "instructions"],
        &[
            (DerivedId::BranchMissRatio, "branch-misses / branches"),
            (DerivedId::BranchShare, "branches / instructions"),
        ],
    ),
    (
        GroupId::Cache,
        &["cache-references", "cache-misses"],
        &[(DerivedId::CacheMissRatio, "cache-misses / cache-references")],
    ),
    (
        GroupId::Stall,
        &["cycles", "stalled-cycles-frontend", "stalled-cycles-backend"],
        &[
            (DerivedId::StalledFrontendShare, "stalled-cycles-frontend / cycles"),
            (DerivedId::StalledBackendShare, "stalled-cycles-backend / cycles"),
        ],
    ),
    (
        GroupId::L1d,
        &["L1-dcache-loads", "L1-dcache-load-misses"],
        &[(DerivedId::L1DataMissRatio, "L1-dcache-load-misses / L1-dcache-loads")],
    ),
    (
        GroupId::Llc,
        &["LLC-loads", "LLC-load-misses"],
        &[(DerivedId::LastLevelMissRatio, "LLC-load-misses / LLC-loads")],
    ),
    (
        GroupId::Tlb,
        &["dTLB-loads", "dTLB-load-misses"],
        &[(DerivedId::DataTlbMissRatio, "dTLB-load-misses / dTLB-loads")],
    ),
];

/// The group of this id, if it is made of events of the kernel on every machine.
pub fn group(id: GroupId) -> Option<EventGroup> {
    let (_, events, derived) = GROUPS.iter().find(|(declared, ..)| *declared == id)?;
    let derived = derived.iter().map(|(id, formula)| {
        // Events of a core are counted in user mode, CPU time in the kernel, too.
        let trust = match id {
            DerivedId::ClockFrequency => Trust::LowerBound(USER_CYCLES.to_owned()),
            _ => Trust::Counted,
        };
        Some(Derived { id: *id, formula: Formula::parse(formula).ok()?, trust })
    });
    let events = events.iter().map(|name| event(name));
    Some(EventGroup {
        id,
        events: events.collect::<Option<_>>()?,
        derived: derived.collect::<Option<_>>()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_kernel() {
        for (name, kind, config) in [
            ("cycles", 0, 0),
            ("instructions", 0, 1),
            ("branch-misses", 0, 5),
            ("stalled-cycles-backend", 0, 8),
            ("task-clock", 1, 1),
            ("context-switches", 1, 3),
            ("major-faults", 1, 6),
            ("L1-dcache-load-misses", 3, 0x1_0000),
            ("LLC-loads", 3, 2),
            ("dTLB-load-misses", 3, 0x1_0003),
            ("cs", 1, 3),
        ] {
            let event = event(name).unwrap();
            assert_eq!((event.kind, event.config), (kind, config), "{name}");
        }
        assert_eq!(event("cpu-cycles").unwrap().name, "cycles");
        assert!(event("cycle").is_none());
    }

    #[test]
    fn every_name_is_an_event() {
        assert!(names().all(|name| event(name).is_some_and(|event| event.name == name)));
    }

    #[test]
    fn every_group_is_read_and_counts_what_its_formulas_need() {
        for (id, ..) in GROUPS {
            let group = group(*id).unwrap_or_else(|| panic!("{}", id.name()));
            let has = |name: &str| group.events.iter().any(|event| event.name == name);
            for derived in &group.derived {
                assert!(derived.formula.names().into_iter().all(has), "{}", derived.id.name());
            }
        }
        assert!(group(GroupId::FlopsDp).is_none(), "it differs between microarchitectures");
    }

    #[test]
    fn formulas_give_known_answers() {
        let counts = |name: &str| {
            Some(match name {
                "cycles" => 2e9,
                "instructions" => 3e9,
                "task-clock" => 1e9,
                "branches" => 5e8,
                "branch-misses" => 1e7,
                "cache-references" => 4e6,
                "cache-misses" => 1e6,
                "stalled-cycles-frontend" => 2e8,
                "stalled-cycles-backend" => 1e9,
                "L1-dcache-loads" | "dTLB-loads" => 1e9,
                "L1-dcache-load-misses" => 5e7,
                "LLC-loads" => 1e6,
                "LLC-load-misses" => 2.5e5,
                "dTLB-load-misses" => 1e6,
                _ => return None,
            })
        };
        let expected = [
            (DerivedId::InstructionsPerCycle, 1.5),
            (DerivedId::ClockFrequency, 2e9),
            (DerivedId::BranchMissRatio, 0.02),
            (DerivedId::BranchShare, 1.0 / 6.0),
            (DerivedId::CacheMissRatio, 0.25),
            (DerivedId::StalledFrontendShare, 0.1),
            (DerivedId::StalledBackendShare, 0.5),
            (DerivedId::L1DataMissRatio, 0.05),
            (DerivedId::LastLevelMissRatio, 0.25),
            (DerivedId::DataTlbMissRatio, 0.001),
        ];
        let all = GROUPS.iter().flat_map(|(id, ..)| group(*id).unwrap().derived);
        let found: Vec<_> =
            all.map(|derived| (derived.id, derived.evaluate(&counts).unwrap())).collect();
        assert_eq!(found, expected);
    }
}
