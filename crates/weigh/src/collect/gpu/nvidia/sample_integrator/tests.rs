//! Integrals, against known curves.

use super::*;

fn samples(values: &[(u64, u64)]) -> impl Iterator<Item = Sample> {
    values.iter().map(|&(at, value)| Sample { at, value })
}

/// A time of the monotonic clock, in microseconds.
fn at(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

#[test]
fn sample_stands_for_the_time_since_the_one_before() {
    let mut integral = SampleIntegrator::default();
    assert_eq!((integral.total(), integral.newest()), (None, 0));
    integral.push(at(1_100_000), samples(&[(1_000_000, 100), (1_100_000, 100)]), 100);
    assert_eq!(
        (integral.total(), integral.newest()),
        (Some(0.0), 1_100_000),
        "before the first poll"
    );
    integral.push(at(1_400_000), samples(&[(1_200_000, 50), (1_400_000, 25)]), 100);
    assert!((integral.total().unwrap() - 10.0).abs() < 1e-9, "{integral:?}");
    assert!((integral.covered().unwrap() - 0.3).abs() < 1e-9, "{integral:?}");
    integral.push(at(1_500_000), samples(&[]), 100);
    assert_eq!(integral.newest(), 1_400_000);
}

#[test]
fn clock_set_back_is_detected_after_a_while() {
    let (mut integral, second) = (SampleIntegrator::default(), Duration::from_secs);
    integral.push(second(1), samples(&[(9_000_000, 100)]), 100);
    integral.push(second(2), samples(&[(9_100_000, 100)]), 100);
    integral.push(second(3), samples(&[]), 100);
    assert_eq!((integral.after(second(4)), integral.after(second(8))), (9_100_000, 0));
    integral.push(second(8), samples(&[(1_900_000, 50), (2_000_000, 50)]), 100);
    assert_eq!(integral.after(second(9)), 2_000_000, "from here on");
    integral.push(second(9), samples(&[(2_100_000, 50)]), 100);
    assert!((integral.covered().unwrap() - 0.2).abs() < 1e-9, "{integral:?}");
    assert!((integral.total().unwrap() - 15.0).abs() < 1e-9, "{integral:?}");
}

#[test]
fn invalid_samples_are_dropped_and_a_gap_is_not_covered() {
    let mut integral = SampleIntegrator::default();
    integral.push(at(1_000_000), samples(&[(1_000_000, 0)]), 100);
    integral.push(at(2_000_000), samples(&[(1_500_000, 4_000_000_000), (2_000_000, 60)]), 100);
    assert_eq!((integral.total(), integral.covered()), (Some(60.0), Some(1.0)));
    integral.push(at(9_000_000), samples(&[(9_000_000, 10)]), 100);
    assert_eq!(
        (integral.total(), integral.covered()),
        (Some(70.0), Some(2.0)),
        "a second of seven"
    );
}

#[test]
fn sample_after_a_gap_stands_for_one_period_and_the_gap_is_interpolated() {
    let mut integral = SampleIntegrator::default();
    integral.push(at(1_000_000), samples(&[(900_000, 200), (1_000_000, 200)]), 1000);
    // An interval of ten seconds, of which the driver has buffered the last three tenths.
    integral.push(
        at(11_000_000),
        samples(&[(10_800_000, 100), (10_900_000, 100), (11_000_000, 100)]),
        1000,
    );
    let near = |one: Option<f64>, other: f64| (one.unwrap() - other).abs() < 1e-9;
    assert!(near(integral.total(), 30.0) && near(integral.covered(), 0.3), "{integral:?}");
    assert!(near(integral.with_gaps(), 30.0 + 150.0 * 9.7), "{integral:?}");
    // Less than a second is a gap, too, where samples are a tenth apart; a late one is none.
    integral.push(at(11_900_000), samples(&[(11_900_000, 100)]), 1000);
    assert!(near(integral.covered(), 0.4) && near(integral.total(), 40.0), "{integral:?}");
    integral.push(at(12_050_000), samples(&[(12_050_000, 100)]), 1000);
    assert!(near(integral.covered(), 0.55), "{integral:?}");
    assert!(near(integral.with_gaps(), 30.0 + 150.0 * 9.7 + 105.0), "{integral:?}");
}

#[test]
fn known_curve_is_integrated_within_a_hundredth_for_any_polls() {
    // A triangle from 0 to 100 and back in a second, sampled every 20 ms.
    let curve = |micros: u64| 100.0 - (micros % 1_000_000).abs_diff(500_000) as f64 / 5000.0;
    let sampled = |at: u64| Sample { at, value: curve(at - 10_000).round() as u64 };
    let all: Vec<Sample> = (1..=500).map(|n| sampled(n * 20_000)).collect();
    for per_poll in [1, 7, 40, 120] {
        let mut integral = SampleIntegrator::default();
        for new in all.chunks(per_poll) {
            integral.push(at(new[new.len() - 1].at), new.iter().copied(), 100);
        }
        let (total, covered) = (integral.total().unwrap(), integral.covered().unwrap());
        // Time before the first poll is not counted.
        let steps = (per_poll as u64 * 20_000..10_000_000).step_by(1000);
        let truth: f64 = steps.map(|micros| curve(micros) * 1e-3).sum();
        assert!((total / truth - 1.0).abs() < 0.01, "{per_poll}: {total} in {covered} of {truth}");
    }
}

/// A poll each second of a driver that samples every 200 ms while there is work, and buffers the
/// last twenty; the value at a poll is right.
fn polled(work: &[u64], wall: impl Fn(u64) -> u64) -> SampleIntegrator {
    let (mut integral, mut taken) = (SampleIntegrator::default(), Vec::new());
    for (second, &value) in (1u64..).zip(work) {
        let steps = (1..=5).map(|step| (second - 1) * 1_000_000 + step * 200_000);
        taken.extend(steps.filter(|_| value > 0).map(|micros| (wall(micros), value)));
        let now = at(second * 1_000_000 + 1000);
        let after = integral.after(now);
        taken.drain(..taken.len().saturating_sub(20));
        let mut new: Vec<_> = taken.iter().copied().filter(|(at, _)| *at > after).collect();
        new.sort_unstable();
        integral.push(now, samples(&new), 1000);
        integral.hold_last(now, Some(value as f64));
    }
    integral
}

#[test]
fn gpu_without_samples_is_as_idle_as_the_driver_reports() {
    let idle_first = [vec![0; 9], vec![93; 3]].concat();
    let idle_last = [vec![93; 3], vec![0; 9]].concat();
    let between = [vec![93; 2], vec![0; 8], vec![93; 2]].concat();
    for work in [idle_first, idle_last, between] {
        let integral = polled(&work, |micros| micros);
        let (total, covered) = (integral.total().unwrap(), integral.covered().unwrap());
        // Time before the first poll is not counted.
        let truth: u64 = work[1..].iter().sum();
        assert!((covered - 11.0).abs() < 1.01, "{work:?}: {covered} s");
        assert!((total / truth as f64 - 1.0).abs() < 0.01, "{work:?}: {total} of {truth}");
    }
    let never = polled(&[0; 4], |micros| micros);
    assert_eq!((never.total(), never.covered()), (Some(0.0), Some(3.0)));
}

#[test]
fn clock_step_does_not_lengthen_a_gap() {
    let work = [100; 12];
    let ahead = polled(&work, |micros| micros + if micros > 6_000_000 { 3_600_000_000 } else { 0 });
    let back = polled(&work, |micros| {
        micros + if micros > 6_000_000 { 1_000_000_000 } else { 9_000_000_000 }
    });
    for integral in [ahead, back] {
        let total = integral.with_gaps().unwrap();
        // It may be off by one sample.
        assert!((total - 1100.0).abs() < 20.1, "{total}: {integral:?}");
    }
}
