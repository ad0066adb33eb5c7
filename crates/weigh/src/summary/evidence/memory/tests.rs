//! Every row of the decision table.

use super::*;

const EXACT: Option<Method> = Some(Method::Exact);
const SAMPLED: Option<Method> = Some(Method::Sampled);
const ESTIMATED: Option<Method> = Some(Method::Estimated);

const OF_ONE: &str = "VmHWM, ru_maxrss";
const OF_SEVERAL: &str = "smaps_rollup, VmHWM, ru_maxrss";
const OF_ATTACHED: &str = "smaps_rollup, VmHWM since weigh attached";
const OF_PHASE: &str = "smaps_rollup, VmHWM";
const OF_COMMAND: &str = "smaps_rollup, VmHWM, ru_maxrss of its command";
const RSS_SUM: &str = "/proc/PID/stat rss, summed";
const NOTHING: &str = "nothing was read";
const REMOVED: &str = "the cgroup was removed";

type Row =
    (Option<f64>, Option<Method>, Option<f64>, Option<f64>, &'static str, Option<&'static str>);

fn peak(value: f64) -> Peak {
    Peak { value: Some(value), at: 1.0, after: None }
}

/// Several processes, of which nothing is known but that they are all of them.
fn several() -> MemoryEvidence<'static> {
    MemoryEvidence {
        owner: MemoryOwner::Run,
        is_one_process: false,
        largest_process: Peak::default(),
        maxrss: [Peak::default(); 2],
        unproven_maxrss: None,
        pss_sum: Peak::default(),
        rss_sum: Peak::default(),
        bounds: MemoryBounds {
            high_water_sum: None,
            command: None,
            huge_pages: Some(0.0),
            is_complete: true,
            has_end: true,
        },
        cgroup: None,
        why_nothing: NOTHING,
    }
}

fn one() -> MemoryEvidence<'static> {
    MemoryEvidence { is_one_process: true, ..several() }
}

/// The processes had 100 together, and each of them at most 60.
fn sampled() -> MemoryEvidence<'static> {
    let bounds = MemoryBounds { high_water_sum: Some(130.0), ..several().bounds };
    let (largest_process, pss_sum, rss_sum) = (peak(60.0), peak(100.0), peak(140.0));
    MemoryEvidence { largest_process, pss_sum, rss_sum, bounds, ..several() }
}

fn bounded(evidence: MemoryEvidence<'static>, bounds: MemoryBounds) -> MemoryEvidence<'static> {
    MemoryEvidence { bounds, ..evidence }
}

fn in_cgroup(cgroup: CgroupMemory<'static>) -> MemoryEvidence<'static> {
    MemoryEvidence { cgroup: Some(cgroup), ..sampled() }
}

fn check(name: &str, figure: &Figure, (value, method, lower, upper, source, reason): Row) {
    assert_eq!((figure.value, figure.method), (value, method), "{name}");
    assert_eq!((figure.lower, figure.upper), (lower, upper), "{name}");
    assert_eq!((&figure.source[..], figure.reason.as_deref()), (source, reason), "{name}");
}

#[test]
fn every_row_of_the_processes_gives_its_value_method_bounds_source_and_reason() {
    let high_water = |sum| MemoryBounds { high_water_sum: Some(sum), ..several().bounds };
    let no_pss = MemoryEvidence { pss_sum: Peak::default(), ..sampled() };
    let maxrss = [peak(70.0), peak(120.0)];
    let table: [(&str, MemoryEvidence<'_>, Row); 10] = [
        ("nothing", several(), (None, None, None, None, OF_SEVERAL, Some(NOTHING))),
        (
            "one process, and its size may be from before exec",
            MemoryEvidence { unproven_maxrss: Some(5.0), ..one() },
            (None, None, None, Some(5.0), OF_ONE, Some(BEFORE_EXEC)),
        ),
        (
            "several processes, and the command's size may be from before exec",
            MemoryEvidence { unproven_maxrss: Some(5.0), ..several() },
            (None, None, None, None, OF_SEVERAL, Some(NOTHING)),
        ),
        (
            "one process by its high-water mark",
            bounded(MemoryEvidence { largest_process: peak(60.0), ..one() }, high_water(60.0)),
            (Some(60.0), EXACT, Some(60.0), Some(60.0), OF_ONE, None),
        ),
        (
            "one process that may have grown after its last sample",
            bounded(MemoryEvidence { largest_process: peak(60.0), ..one() }, high_water(80.0)),
            (Some(60.0), SAMPLED, Some(60.0), Some(80.0), OF_ONE, None),
        ),
        (
            "the sum of PSS",
            sampled(),
            (Some(100.0), SAMPLED, Some(100.0), Some(130.0), OF_SEVERAL, None),
        ),
        (
            "a process larger than the sum of PSS",
            MemoryEvidence { largest_process: peak(110.0), ..sampled() },
            (Some(110.0), SAMPLED, Some(110.0), Some(130.0), OF_SEVERAL, None),
        ),
        (
            "a reaped process larger than the sum of PSS",
            MemoryEvidence { maxrss, ..sampled() },
            (Some(120.0), SAMPLED, Some(120.0), Some(130.0), OF_SEVERAL, None),
        ),
        (
            "several processes without a PSS",
            no_pss,
            (Some(140.0), ESTIMATED, Some(60.0), None, RSS_SUM, Some(SHARED_MORE_THAN_ONCE)),
        ),
        (
            "the same, and a reaped process was larger than the sum of RSS",
            MemoryEvidence { maxrss: [peak(150.0), Peak::default()], ..no_pss },
            (Some(150.0), ESTIMATED, Some(150.0), None, RSS_SUM, Some(SHARED_MORE_THAN_ONCE)),
        ),
    ];
    for (name, evidence, row) in table {
        check(name, &evidence.peak(), row);
    }
}

#[test]
fn every_row_of_a_phase_gives_its_value_method_bounds_source_and_reason() {
    let phase = |has_maxrss| MemoryOwner::Phase { has_maxrss };
    let command = |size: f64| {
        let bounds = MemoryBounds { command: Some((2, size)), ..sampled().bounds };
        MemoryEvidence { owner: phase(true), unproven_maxrss: Some(size), bounds, ..sampled() }
    };
    let unsampled = MemoryEvidence {
        largest_process: Peak::default(),
        pss_sum: Peak::default(),
        rss_sum: Peak::default(),
        ..command(5.0)
    };
    let table: [(&str, MemoryEvidence<'_>, Row); 7] = [
        (
            "the whole run while it lasted",
            MemoryEvidence { owner: phase(false), ..sampled() },
            (Some(100.0), SAMPLED, Some(100.0), Some(130.0), OF_PHASE, None),
        ),
        (
            "nothing",
            MemoryEvidence { owner: phase(false), ..several() },
            (None, None, None, None, OF_PHASE, Some(NOTHING)),
        ),
        (
            "without a PSS it is at least the largest process",
            MemoryEvidence { owner: phase(false), pss_sum: Peak::default(), ..sampled() },
            (Some(60.0), SAMPLED, Some(60.0), Some(130.0), OF_PHASE, None),
        ),
        (
            "a command that was too short to sample",
            unsampled,
            (Some(5.0), SAMPLED, Some(0.0), Some(10.0), OF_COMMAND, None),
        ),
        (
            "two processes of its command, none larger than its ru_maxrss",
            MemoryEvidence { pss_sum: peak(60.0), maxrss: [peak(62.0); 2], ..command(62.0) },
            (Some(62.0), SAMPLED, Some(62.0), Some(124.0), OF_COMMAND, None),
        ),
        (
            "one process of its command",
            MemoryEvidence {
                is_one_process: true,
                pss_sum: peak(50.0),
                maxrss: [peak(62.0), Peak::default()],
                bounds: MemoryBounds { command: Some((1, 62.0)), ..sampled().bounds },
                ..command(62.0)
            },
            (Some(62.0), EXACT, Some(62.0), Some(62.0), OF_COMMAND, None),
        ),
        (
            "its command, where processes were missed",
            bounded(command(62.0), MemoryBounds { is_complete: false, ..command(62.0).bounds }),
            (Some(100.0), SAMPLED, Some(100.0), None, OF_COMMAND, Some(MISSED)),
        ),
    ];
    for (name, evidence, row) in table {
        check(name, &evidence.peak(), row);
    }
}

#[test]
fn missing_upper_bound_has_its_reason() {
    let bounds = sampled().bounds;
    let no_huge_pages = MemoryBounds { huge_pages: None, ..bounds };
    let missed = MemoryBounds { is_complete: false, ..bounds };
    let unended = MemoryBounds { has_end: false, ..missed };
    let attached = MemoryEvidence { owner: MemoryOwner::AttachedRun, ..sampled() };
    let pool = MemoryBounds { huge_pages: Some(20.0), ..bounds };
    let row = |upper, source, reason| (Some(100.0), SAMPLED, Some(100.0), upper, source, reason);
    let table: [(&str, MemoryEvidence<'_>, Row); 7] = [
        ("huge pages are added", bounded(sampled(), pool), row(Some(150.0), OF_SEVERAL, None)),
        (
            "huge pages without a number",
            bounded(sampled(), no_huge_pages),
            row(None, OF_SEVERAL, Some(HUGE_PAGES)),
        ),
        ("processes missed", bounded(sampled(), missed), row(None, OF_SEVERAL, Some(MISSED))),
        ("no end", bounded(sampled(), unended), row(None, OF_SEVERAL, Some(NO_END))),
        ("attached", bounded(attached, missed), row(None, OF_ATTACHED, Some(BEFORE_ATTACH))),
        ("attached, no end", bounded(attached, unended), row(None, OF_ATTACHED, Some(NO_END))),
        (
            "bound below what is known",
            bounded(sampled(), MemoryBounds { high_water_sum: Some(90.0), ..bounds }),
            row(Some(100.0), OF_SEVERAL, None),
        ),
    ];
    for (name, evidence, row) in table {
        check(name, &evidence.peak(), row);
    }
}

#[test]
fn every_row_of_a_cgroup_gives_its_value_method_bounds_source_and_reason() {
    const MIB: f64 = (1u64 << 20) as f64;
    let risen = |value, not_final| CgroupMemory::Peak { peak: peak(value), not_final };
    let current = |mark_before, not_final| CgroupMemory::Current {
        peak: peak(200.0),
        mark_before,
        not_final,
    };
    let left = MemoryEvidence { pss_sum: peak(305.0 * MIB), ..in_cgroup(risen(300.0 * MIB, None)) };
    let uncharged = MemoryEvidence { pss_sum: peak(304.0 * MIB), ..left };
    let unread = CgroupMemory::Peak { peak: Peak::default(), not_final: None };
    let table: [(&str, MemoryEvidence<'_>, Row); 9] = [
        (
            "memory.peak that rose",
            in_cgroup(risen(200.0, None)),
            (Some(200.0), EXACT, Some(200.0), Some(200.0), PEAK, None),
        ),
        (
            "the same, last read before the end",
            in_cgroup(risen(200.0, Some(REMOVED))),
            (Some(200.0), SAMPLED, Some(200.0), None, PEAK, Some(REMOVED)),
        ),
        (
            "memory.current, with an older memory.peak",
            in_cgroup(current(Some(500.0), None)),
            (Some(200.0), SAMPLED, Some(200.0), Some(500.0), CURRENT, None),
        ),
        (
            "memory.current above an older memory.peak",
            in_cgroup(current(Some(50.0), None)),
            (Some(200.0), SAMPLED, Some(200.0), Some(200.0), CURRENT, None),
        ),
        (
            "memory.current where there is no memory.peak",
            in_cgroup(current(None, None)),
            (Some(200.0), SAMPLED, Some(200.0), None, CURRENT, Some(SHORT)),
        ),
        (
            "memory.current, last read before the end",
            in_cgroup(current(Some(500.0), Some(REMOVED))),
            (Some(200.0), SAMPLED, Some(200.0), None, CURRENT, Some(REMOVED)),
        ),
        (
            "processes have a little more: the program's own pages are not charged",
            uncharged,
            (Some(300.0 * MIB), EXACT, Some(300.0 * MIB), Some(304.0 * MIB), PEAK, None),
        ),
        (
            "processes have more, so they have left it",
            MemoryEvidence { pss_sum: peak(307.0 * MIB), ..left },
            (Some(307.0 * MIB), SAMPLED, Some(307.0 * MIB), Some(307.0 * MIB), OF_SEVERAL, None),
        ),
        (
            "a cgroup that was never read",
            in_cgroup(unread),
            (Some(100.0), SAMPLED, Some(100.0), Some(130.0), OF_SEVERAL, None),
        ),
    ];
    for (name, evidence, row) in table {
        check(name, &evidence.peak(), row);
    }
}

#[test]
fn every_row_of_the_mean_has_the_basis_of_the_peak() {
    let means = MemoryMeans {
        cgroup: None,
        shared_once: Some(80.0),
        rss_sum: Some(110.0),
        why_nothing: NOTHING,
    };
    let no_pss = MemoryEvidence { pss_sum: Peak::default(), ..sampled() };
    let phase = MemoryEvidence { owner: MemoryOwner::Phase { has_maxrss: false }, ..no_pss };
    let alone = MemoryEvidence { is_one_process: true, ..sampled() };
    let row = |value, upper, source| (Some(value), SAMPLED, Some(0.0), upper, source, Some(SHORT));
    let of_one = "resident memory over time: /proc/PID/stat rss";
    let summed = "/proc/PID/stat rss, summed, over time";
    let table: [(&str, MemoryEvidence<'_>, MemoryMeans<'_>, Row); 6] = [
        ("several", sampled(), means, row(80.0, Some(130.0), SHARED_COUNTED_ONCE)),
        ("one process", alone, means, row(80.0, Some(130.0), of_one)),
        (
            "several without a PSS",
            no_pss,
            means,
            (Some(110.0), ESTIMATED, Some(0.0), None, summed, Some(SHARED_MORE_THAN_ONCE)),
        ),
        ("a phase without a PSS", phase, means, row(80.0, Some(130.0), SHARED_COUNTED_ONCE)),
        (
            "a cgroup",
            sampled(),
            MemoryMeans { cgroup: Some(150.0), ..means },
            row(150.0, None, CURRENT),
        ),
        (
            "nothing",
            sampled(),
            MemoryMeans { shared_once: None, ..means },
            (None, None, None, None, SHARED_COUNTED_ONCE, Some(NOTHING)),
        ),
    ];
    for (name, evidence, means, row) in table {
        check(name, &evidence.mean(&means), row);
    }
}

#[test]
fn peak_has_the_time_of_the_evidence_that_is_believed() {
    let at = |value, at, after| Peak { value: Some(value), at, after };
    let evidence = MemoryEvidence {
        largest_process: at(60.0, 1.0, None),
        pss_sum: at(100.0, 2.0, None),
        maxrss: [at(100.0, 9.0, Some(8.0)), Peak::default()],
        ..sampled()
    };
    assert_eq!(evidence.peak().at_seconds, Some(2.0), "of equal ones that with a time");
    let larger = MemoryEvidence { maxrss: [at(101.0, 9.0, Some(8.0)); 2], ..evidence };
    let figure = larger.peak();
    assert_eq!((figure.after_seconds, figure.before_seconds), (Some(8.0), Some(9.0)));
    let cgroup = CgroupMemory::Peak { peak: at(200.0, 3.0, None), not_final: None };
    let charged = MemoryEvidence { cgroup: Some(cgroup), ..evidence };
    assert_eq!(charged.peak().at_seconds, Some(3.0));
}

#[test]
fn shared_pages_count_once_and_at_least_as_the_largest_process() {
    assert_eq!(pss_or_largest_rss(Some(100), 60), 100);
    assert_eq!(pss_or_largest_rss(Some(50), 60), 60);
    assert_eq!(pss_or_largest_rss(None, 60), 60);
}
