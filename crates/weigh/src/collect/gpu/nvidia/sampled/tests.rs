//! Sums, against curves that are known.

use super::*;

fn samples(values: &[(u64, u64)]) -> impl Iterator<Item = Sample> {
    values.iter().map(|&(at, value)| Sample { at, value })
}

/// A moment of the monotonic clock, in microseconds.
fn at(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

#[test]
fn samples_stand_for_the_time_since_the_one_before_them() {
    let mut sum = Sum::default();
    assert_eq!((sum.total(), sum.newest()), (None, 0));
    sum.see(at(1_100_000), samples(&[(1_000_000, 100), (1_100_000, 100)]), 100);
    assert_eq!((sum.total(), sum.newest()), (Some(0.0), 1_100_000), "that was before");
    sum.see(at(1_400_000), samples(&[(1_200_000, 50), (1_400_000, 25)]), 100);
    assert!((sum.total().unwrap() - 10.0).abs() < 1e-9, "{sum:?}");
    assert!((sum.covered().unwrap() - 0.3).abs() < 1e-9, "{sum:?}");
    sum.see(at(1_500_000), samples(&[]), 100);
    assert_eq!(sum.newest(), 1_400_000);
}

#[test]
fn a_clock_that_is_set_back_is_noticed_after_a_while() {
    let (mut sum, second) = (Sum::default(), Duration::from_secs);
    sum.see(second(1), samples(&[(9_000_000, 100)]), 100);
    sum.see(second(2), samples(&[(9_100_000, 100)]), 100);
    sum.see(second(3), samples(&[]), 100);
    assert_eq!((sum.after(second(4)), sum.after(second(8))), (9_100_000, 0));
    sum.see(second(8), samples(&[(1_900_000, 50), (2_000_000, 50)]), 100);
    assert_eq!(sum.after(second(9)), 2_000_000, "from here on");
    sum.see(second(9), samples(&[(2_100_000, 50)]), 100);
    assert!((sum.covered().unwrap() - 0.2).abs() < 1e-9, "{sum:?}");
    assert!((sum.total().unwrap() - 15.0).abs() < 1e-9, "{sum:?}");
}

#[test]
fn what_cannot_be_is_left_out_and_a_gap_is_not_covered() {
    let mut sum = Sum::default();
    sum.see(at(1_000_000), samples(&[(1_000_000, 0)]), 100);
    sum.see(at(2_000_000), samples(&[(1_500_000, 4_000_000_000), (2_000_000, 60)]), 100);
    assert_eq!((sum.total(), sum.covered()), (Some(60.0), Some(1.0)));
    sum.see(at(9_000_000), samples(&[(9_000_000, 10)]), 100);
    assert_eq!((sum.total(), sum.covered()), (Some(70.0), Some(2.0)), "a second of seven");
}

#[test]
fn a_sample_after_a_gap_stands_for_as_long_as_its_neighbours_and_the_rest_is_guessed() {
    let mut sum = Sum::default();
    sum.see(at(1_000_000), samples(&[(900_000, 200), (1_000_000, 200)]), 1000);
    // An interval of ten seconds, of which the driver has kept the last three tenths.
    sum.see(
        at(11_000_000),
        samples(&[(10_800_000, 100), (10_900_000, 100), (11_000_000, 100)]),
        1000,
    );
    let near = |one: Option<f64>, other: f64| (one.unwrap() - other).abs() < 1e-9;
    assert!(near(sum.total(), 30.0) && near(sum.covered(), 0.3), "{sum:?}");
    assert!(near(sum.whole(), 30.0 + 150.0 * 9.7), "{sum:?}");
    // Less than a second is a gap, too, where samples are a tenth apart; a late one is none.
    sum.see(at(11_900_000), samples(&[(11_900_000, 100)]), 1000);
    assert!(near(sum.covered(), 0.4) && near(sum.total(), 40.0), "{sum:?}");
    sum.see(at(12_050_000), samples(&[(12_050_000, 100)]), 1000);
    assert!(near(sum.covered(), 0.55), "{sum:?}");
    assert!(near(sum.whole(), 30.0 + 150.0 * 9.7 + 105.0), "{sum:?}");
}

#[test]
fn a_known_curve_is_met_within_a_hundredth_however_looks_fall() {
    // A triangle from 0 to 100 and back in a second, sampled every 20 ms.
    let curve = |micros: u64| 100.0 - (micros % 1_000_000).abs_diff(500_000) as f64 / 5000.0;
    let sampled = |at: u64| Sample { at, value: curve(at - 10_000).round() as u64 };
    let all: Vec<Sample> = (1..=500).map(|n| sampled(n * 20_000)).collect();
    for look in [1, 7, 40, 120] {
        let mut sum = Sum::default();
        for new in all.chunks(look) {
            sum.see(at(new[new.len() - 1].at), new.iter().copied(), 100);
        }
        let (total, covered) = (sum.total().unwrap(), sum.covered().unwrap());
        // What was before the first look is not counted.
        let steps = (look as u64 * 20_000..10_000_000).step_by(1000);
        let truth: f64 = steps.map(|micros| curve(micros) * 1e-3).sum();
        assert!((total / truth - 1.0).abs() < 0.01, "{look}: {total} in {covered} of {truth}");
    }
}

/// A look each second at a driver that samples every 200 ms while there is work, and keeps the
/// last twenty; what it tells at a look is right.
fn looked_at(work: &[u64], wall: impl Fn(u64) -> u64) -> Sum {
    let (mut sum, mut taken) = (Sum::default(), Vec::new());
    for (second, &value) in (1u64..).zip(work) {
        let steps = (1..=5).map(|step| (second - 1) * 1_000_000 + step * 200_000);
        taken.extend(steps.filter(|_| value > 0).map(|micros| (wall(micros), value)));
        let now = at(second * 1_000_000 + 1000);
        let after = sum.after(now);
        taken.drain(..taken.len().saturating_sub(20));
        let mut new: Vec<_> = taken.iter().copied().filter(|(at, _)| *at > after).collect();
        new.sort_unstable();
        sum.see(now, samples(&new), 1000);
        sum.stand_still(now, Some(value as f64));
    }
    sum
}

#[test]
fn a_driver_that_takes_no_samples_of_an_idle_card_tells_that_it_is_idle() {
    let idle_first = [vec![0; 9], vec![93; 3]].concat();
    let idle_last = [vec![93; 3], vec![0; 9]].concat();
    let between = [vec![93; 2], vec![0; 8], vec![93; 2]].concat();
    for work in [idle_first, idle_last, between] {
        let sum = looked_at(&work, |micros| micros);
        let (total, covered) = (sum.total().unwrap(), sum.covered().unwrap());
        // What was before the first look is not counted.
        let truth: u64 = work[1..].iter().sum();
        assert!((covered - 11.0).abs() < 1.01, "{work:?}: {covered} s");
        assert!((total / truth as f64 - 1.0).abs() < 0.01, "{work:?}: {total} of {truth}");
    }
    let never = looked_at(&[0; 4], |micros| micros);
    assert_eq!((never.total(), never.covered()), (Some(0.0), Some(3.0)));
}

#[test]
fn a_clock_that_is_set_makes_no_gap_longer_than_it_was() {
    let work = [100; 12];
    let ahead =
        looked_at(&work, |micros| micros + if micros > 6_000_000 { 3_600_000_000 } else { 0 });
    let back = looked_at(&work, |micros| {
        micros + if micros > 6_000_000 { 1_000_000_000 } else { 9_000_000_000 }
    });
    for sum in [ahead, back] {
        let whole = sum.whole().unwrap();
        // It may be off by one sample.
        assert!((whole - 1100.0).abs() < 20.1, "{whole}: {sum:?}");
    }
}
