//! Counting on a simulated PMU: several rounds, refusals, wraparounds.

use super::packing::RequestedGroup;
use super::plan::Plan;
use super::*;
use crate::catalog::{Row, Scope};
use crate::counters::generic;
use crate::host::fake::FakeHost;
use crate::host::perf::Perf;
use crate::host::perf::simulated::SimulatedPmu;

/// Events of the default set, and what they count in a second.
const RATES: [(&str, u64); 6] = [
    ("cycles", 2_000_000_000),
    ("instructions", 3_000_000_000),
    ("branches", 500_000_000),
    ("branch-misses", 10_000_000),
    ("cache-references", 4_000_000),
    ("cache-misses", 1_000_000),
];

fn event(name: &str) -> CounterEvent {
    generic::event(name).unwrap()
}

fn pmu(counters: usize) -> SimulatedPmu {
    let rates: Vec<_> = RATES.iter().map(|(name, rate)| (code(&event(name)), *rate)).collect();
    SimulatedPmu::new(counters, &rates)
}

fn groups() -> Vec<RequestedGroup> {
    let group = |name: &str, events: &[&str]| RequestedGroup {
        name: name.to_owned(),
        events: events.iter().map(|name| event(name)).collect(),
    };
    vec![
        group("IPC", &["cycles", "instructions"]),
        group("BRANCH", &["branches", "branch-misses"]),
        group("CACHE", &["cache-references", "cache-misses"]),
    ]
}

fn host(pmu: &SimulatedPmu) -> (FakeHost, Host) {
    let fake = FakeHost::new();
    let host = Host { perf: Perf::Simulated(pmu.clone()), ..fake.host() };
    (fake, host)
}

/// The counters of a command that has just called exec.
fn started(pmu: &SimulatedPmu, host: &Host) -> RunCounters {
    let counters = RunCounters::new(host, Plan::of(host, groups())).unwrap();
    let counters = counters.starting_at_exec(host, 4711).unwrap();
    pmu.exec();
    counters
}

/// The rows of a tick.
fn sampled(counters: &mut RunCounters, host: &Host) -> Vec<(String, EventCount)> {
    let mut tick = Tick::new(&[EventCount::METRICS]);
    counters.sample(&Context::of(host), &mut tick).unwrap();
    let table = tick.table(Scope::PerfEvent).unwrap();
    let rows = table.entities().iter().enumerate().map(|(row, entity)| match entity {
        Entity::Named(name) => (name.to_string(), table.get::<EventCount>(row)),
        other => panic!("{other:?}"),
    });
    rows.collect()
}

fn row(rows: &[(String, EventCount)], name: &str) -> EventCount {
    rows.iter().find(|(event, _)| event == name).unwrap_or_else(|| panic!("{rows:?}")).1
}

#[test]
fn events_that_fit_are_counted_from_exec_on_and_all_the_time() {
    let pmu = pmu(6);
    let (_fake, host) = host(&pmu);
    let counters = RunCounters::new(&host, Plan::of(&host, groups())).unwrap();
    let mut counters = counters.starting_at_exec(&host, 4711).unwrap();
    pmu.run(500);
    assert_eq!(row(&sampled(&mut counters, &host), "instructions").count, Some(0), "before exec");
    pmu.exec();
    pmu.run(2000);
    let rows = sampled(&mut counters, &host);
    assert_eq!(rows.len(), RATES.len());
    for (name, rate) in RATES {
        let expected = EventCount { count: Some(2 * rate), running: Some(2.0), enabled: Some(2.0) };
        assert_eq!(row(&rows, name), expected, "{name}");
    }
}

#[test]
fn rounds_take_turns_and_instructions_are_counted_in_each() {
    let pmu = pmu(4);
    let (_fake, host) = host(&pmu);
    let mut counters = started(&pmu, &host);
    // A round of branches, then one of the cache, and so on.
    for _ in 0..10 {
        pmu.run(100);
        sampled(&mut counters, &host);
    }
    let rows = sampled(&mut counters, &host);
    let whole = |name| (row(&rows, name).count, row(&rows, name).running, row(&rows, name).enabled);
    assert_eq!(whole("instructions"), (Some(3_000_000_000), Some(1.0), Some(1.0)));
    for (name, half) in [("branches", 250_000_000), ("cache-misses", 500_000)] {
        assert_eq!(whole(name), (Some(half), Some(0.5), Some(1.0)), "{name}");
    }
}

#[test]
fn round_that_never_had_its_turn_has_no_running_time() {
    let pmu = pmu(4);
    let (_fake, host) = host(&pmu);
    let mut counters = started(&pmu, &host);
    pmu.run(30);
    let rows = sampled(&mut counters, &host);
    assert_eq!(row(&rows, "branches").running, Some(0.03));
    let missed = row(&rows, "cache-misses");
    assert_eq!((missed.count, missed.running, missed.enabled), (Some(0), Some(0.0), Some(0.03)));
}

#[test]
fn counters_that_somebody_else_uses_show_in_the_running_time() {
    let pmu = pmu(6).taken(1);
    let (_fake, host) = host(&pmu);
    let mut counters = started(&pmu, &host);
    pmu.run(1000);
    let cycles = row(&sampled(&mut counters, &host), "cycles");
    assert_eq!((cycles.running, cycles.enabled), (Some(0.0), Some(1.0)));
}

#[test]
fn group_with_an_event_that_does_not_exist_is_refused_and_the_others_are_counted() {
    let rates: Vec<_> = RATES
        .iter()
        .filter(|(name, _)| !name.starts_with("cache"))
        .map(|(name, rate)| (code(&event(name)), *rate))
        .collect();
    let pmu = SimulatedPmu::new(6, &rates);
    let (_fake, host) = host(&pmu);
    let plan = Plan::of(&host, groups());
    assert_eq!(plan.rounds.len(), 1);
    let [refused] = &plan.refused[..] else { panic!("{:?}", plan.refused) };
    assert_eq!(refused.name, "CACHE");
    assert!(refused.why.starts_with("cache-references: this processor"), "{}", refused.why);
    assert_eq!(pmu.open_events(), 0, "nothing stays open");
}

#[test]
fn refusal_of_every_event_is_said_in_words() {
    let why = |errno: i32, paranoid: &str| {
        let fake = FakeHost::new().proc("sys/kernel/perf_event_paranoid", paranoid);
        let perf = Perf::Simulated(pmu(6).refusing(errno));
        let host = Host { perf, ..fake.host() };
        let plan = Plan::of(&host, groups());
        assert!(plan.is_empty() && plan.refused.len() == 3);
        (plan.refused[0].why.clone(), probe(&host))
    };
    let (denied, probed) = why(libc::EACCES, "4\n");
    assert_eq!(denied, "kernel.perf_event_paranoid is 4, 2 or less is needed");
    assert!(matches!(probed, Probe::Denied { hint, .. } if hint.contains("sysctl")));
    let (filtered, probed) = why(libc::EPERM, "2\n");
    assert!(filtered.contains("perf_event_open"), "{filtered}");
    assert!(matches!(probed, Probe::Denied { hint, .. } if hint.contains("seccomp")));
    assert_eq!(why(libc::ENOENT, "2\n").0, "the kernel knows no PMU of this processor");
    assert!(why(libc::ENOSYS, "2\n").0.contains("seccomp filter"));
    assert_eq!(why(libc::EBUSY, "2\n").0, "another program uses all counters");
}

#[test]
fn missing_pmu_of_a_guest_is_told_from_a_kernel_that_is_too_old() {
    let why = |flags: &str| {
        let host = FakeHost::new().proc("cpuinfo", flags);
        let Probe::Absent { why } = examine(&host.host()) else { panic!("it is not absent") };
        why
    };
    assert!(why("flags\t\t: fpu vme hypervisor lm\n").starts_with("this virtual machine"));
    assert!(why("flags\t\t: fpu vme lm\n").contains("older than the processor"));
}

#[test]
fn counter_of_48_bits_that_wraps_around_goes_on() {
    let quarter = WRAPS_AT / 4;
    let rates = [(code(&event("cycles")), quarter), (code(&event("instructions")), 1)];
    let pmu = SimulatedPmu::new(6, &rates).wrapping_at(WRAPS_AT);
    let (_fake, host) = host(&pmu);
    let mut counters = started(&pmu, &host);
    for second in 1..=9 {
        pmu.run(1000);
        let cycles = row(&sampled(&mut counters, &host), "cycles");
        assert_eq!(cycles.count, Some(second * quarter), "second {second}");
    }
}

#[test]
fn names_that_are_too_long_are_cut_and_stay_apart() {
    let long = |end: &str| CounterEvent {
        name: format!("OFFCORE_RESPONSE.DEMAND_DATA_RD.L3_MISS.{end}"),
        ..event("branches")
    };
    let plan = Plan {
        rounds: vec![packing::Round {
            groups: vec!["MEM".to_owned()],
            events: vec![long("LOCAL"), long("REMOTE"), long("LOCAL")],
        }],
        ..Plan::default()
    };
    let names: Vec<String> = rows(&plan).iter().map(|row| row.name.to_string()).collect();
    assert_eq!(names, ["OFFCORE_RESPONSE.DEMAND_DATA_RD", "OFFCORE_RESPONSE.DEMAND_DATA_~2"]);
}
