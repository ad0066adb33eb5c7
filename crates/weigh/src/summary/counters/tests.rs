//! Figures of made-up counts with known answers.

use super::*;
use crate::catalog::metrics::RunCpu;
use crate::counters::{GroupId, generic};
use crate::model::counted_events::CountedGroup;
use crate::testing::{FakeRun, MAIN, cpu};

/// The default groups, as `run.json` has them.
fn declared(rounds: usize) -> CountedEvents {
    let groups =
        [GroupId::Ipc, GroupId::Branch, GroupId::Cache].map(|id| generic::group(id).unwrap());
    let derived = groups.iter().flat_map(|group| &group.derived).map(|derived| DerivedFormula {
        name: derived.id.name().to_owned(),
        formula: derived.formula.to_string(),
        ..DerivedFormula::default()
    });
    let derived = derived.collect();
    let groups = groups.iter().map(|group| CountedGroup {
        name: group.id.name().to_owned(),
        events: group.events.iter().map(|event| event.name.clone()).collect(),
    });
    CountedEvents { groups: groups.collect(), derived, rounds, ..CountedEvents::default() }
}

/// Events with their count, and the time in which each was counted.
type Counts<'a> = &'a [(&'a str, u64, f64)];

fn run_with(rounds: usize, samples: &[(f64, Counts<'_>)]) -> FakeRun {
    let mut run = FakeRun::new();
    run.manifest.events = Some(declared(rounds));
    run.starts(0.0, MAIN, "work");
    for (at, counts) in samples {
        run.sample(*at, |tick| {
            cpu(tick, MAIN, *at, 0.0);
            tick.put(Entity::Single, &RunCpu { time: Some(*at) });
            for (name, count, running) in *counts {
                let row =
                    EventCount { count: Some(*count), running: Some(*running), enabled: Some(*at) };
                tick.put(Entity::Named(Name::new(name.as_bytes())), &row);
            }
        });
    }
    run
}

#[test]
fn counts_of_the_whole_time_are_exact_and_so_are_their_ratios() {
    let counts: Counts<'_> = &[
        ("cycles", 4_000, 2.0),
        ("instructions", 6_000, 2.0),
        ("branches", 1_000, 2.0),
        ("branch-misses", 20, 2.0),
    ];
    let mut run = run_with(1, &[(2.0, counts)]);
    run.ends(2.0, |_| {});
    let summary = run.summary();
    for (id, value) in [
        (FigureId::Instructions, 6_000.0),
        (FigureId::Cycles, 4_000.0),
        (FigureId::InstructionsPerCycle, 1.5),
        (FigureId::BranchMissRatio, 0.02),
    ] {
        let figure = summary.figures.get(id).unwrap();
        assert_eq!((figure.value, figure.method), (Some(value), Some(Method::Exact)), "{id:?}");
        assert_eq!((figure.lower, figure.upper), (Some(value), Some(value)), "{id:?}");
    }
    let cache = summary.figures.get(FigureId::CacheMissRatio).unwrap();
    assert_eq!((cache.value, cache.reason.as_deref()), (None, Some(NOT_COUNTED)));
}

#[test]
fn event_that_was_counted_for_half_of_the_time_is_scaled_and_estimated() {
    let counts: Counts<'_> = &[
        ("cycles", 4_000, 2.0),
        ("instructions", 6_000, 2.0),
        ("branches", 500, 1.0),
        ("branch-misses", 10, 1.0),
        ("cache-references", 0, 0.0),
        ("cache-misses", 0, 0.0),
    ];
    let mut run = run_with(2, &[(2.0, counts)]);
    run.ends(2.0, |_| {});
    let summary = run.summary();
    let counters = summary.counters.as_ref().unwrap();
    let branches = counters.events.iter().find(|event| event.name == "branches").unwrap();
    assert_eq!((branches.count, branches.running_ratio), (500, Some(0.5)));
    let value = &branches.value;
    assert_eq!((value.value, value.method), (Some(1_000.0), Some(Method::Estimated)));
    assert_eq!((value.lower, value.upper), (Some(500.0), None));
    let ratio = summary.figures.get(FigureId::BranchMissRatio).unwrap();
    assert_eq!((ratio.value, ratio.method), (Some(0.02), Some(Method::Estimated)));
    assert!(ratio.reason.as_ref().unwrap().contains("50 %"), "{ratio:?}");
    // A group that never had its turn is unknown, not 0.
    let cache = summary.figures.get(FigureId::CacheMissRatio).unwrap();
    assert_eq!(cache.value, None);
    assert!(cache.reason.as_ref().unwrap().contains("turn"), "{cache:?}");
}

#[test]
fn counters_that_others_use_all_the_time_leave_no_number() {
    let counts: Counts<'_> = &[("cycles", 0, 0.0), ("instructions", 0, 0.0)];
    let mut run = run_with(1, &[(2.0, counts)]);
    run.ends(2.0, |_| {});
    let figure = run.summary().figures.get(FigureId::Instructions).cloned().unwrap();
    assert_eq!(figure.value, None);
    assert!(figure.reason.unwrap().contains("NMI watchdog"));
}

#[test]
fn phase_has_the_counts_of_its_own_time() {
    let first: Counts<'_> = &[("cycles", 1_000, 1.0), ("instructions", 1_000, 1.0)];
    let second: Counts<'_> = &[("cycles", 3_000, 2.0), ("instructions", 7_000, 2.0)];
    let mut run = run_with(1, &[(1.0, first)]);
    run.phase_starts(1.0, "p", "solve");
    run.sample(1.001, |tick| put(tick, first, 1.0));
    run.phase_ends(2.0, "p");
    run.sample(2.001, |tick| put(tick, second, 2.0));
    run.ends(3.0, |_| {});
    let summary = run.summary();
    let figures = &summary.phases[0].figures;
    assert_eq!(figures.value(FigureId::Instructions), Some(6_000.0));
    assert_eq!(figures.value(FigureId::InstructionsPerCycle), Some(3.0));
    assert_eq!(figures.get(FigureId::Cycles).unwrap().method, Some(Method::Exact));
    assert_eq!(figures.get(FigureId::BranchMissRatio), None);
}

fn put(tick: &mut crate::model::Tick, counts: Counts<'_>, at: f64) {
    cpu(tick, MAIN, at, 0.0);
    tick.put(Entity::Single, &RunCpu { time: Some(at) });
    for (name, count, running) in counts {
        let row = EventCount { count: Some(*count), running: Some(*running), enabled: Some(at) };
        tick.put(Entity::Named(Name::new(name.as_bytes())), &row);
    }
}

#[test]
fn formulas_that_are_bounds_or_estimates_say_so() {
    let mut run = run_with(1, &[(1.0, &[("cache-misses", 10, 1.0)])]);
    let events = run.manifest.events.as_mut().unwrap();
    events.derived = vec![DerivedFormula {
        name: DerivedId::MemoryReadBytes.name().to_owned(),
        formula: "cache-misses * 64".to_owned(),
        lower_bound: Some("prefetches are not counted".to_owned()),
        estimate: None,
    }];
    run.ends(1.0, |_| {});
    let summary = run.summary();
    let read = summary.figures.get(FigureId::MemoryRead).unwrap();
    assert_eq!((read.value, read.lower, read.upper), (Some(640.0), Some(640.0), None));
    assert_eq!(read.method, Some(Method::Estimated));
    assert_eq!(read.reason.as_deref(), Some("prefetches are not counted"));
    let derived = &summary.counters.as_ref().unwrap().derived[0];
    assert_eq!((derived.unit.as_str(), derived.per_second), ("bytes", Some(640.0)));
}

#[test]
fn run_that_counts_nothing_has_neither_figures_nor_counters() {
    let mut run = FakeRun::new();
    run.ends(1.0, |_| {});
    let summary = run.summary();
    assert!(summary.counters.is_none());
    assert!(summary.figures.get(FigureId::Instructions).is_none());
}
