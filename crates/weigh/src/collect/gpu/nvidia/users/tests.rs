//! Who did what, against samples as drivers give them.

use super::*;

fn sample(pid: u32, at: u64, sm: u32) -> PerProcess {
    PerProcess { pid, at, shares: [sm, 10, 0, 0] }
}

/// What 7 and 8 did by a look at this moment, when the card was sampled last at `newest`.
fn look(users: &mut Users, at: u64, newest: u64, samples: &[PerProcess]) -> [Option<f64>; 2] {
    look_at(users, at, newest, None, samples)
}

/// The same, when the card is this busy.
fn look_at(
    users: &mut Users,
    at: u64,
    newest: u64,
    utilization: Option<f64>,
    samples: &[PerProcess],
) -> [Option<f64>; 2] {
    users.begin();
    users.meet([7, 8].map(|pid| User { pid, memory: None }).into_iter());
    let at = Duration::from_millis(at);
    let after = users.after(at);
    let card = OfCard { newest: Some(newest).filter(|newest| *newest > after), utilization };
    users.did(at, card, samples.iter().copied());
    let did: Vec<_> = users.on(Name::new(b"g")).map(|one| one.share.utilization).collect();
    did.try_into().unwrap()
}

#[test]
fn who_computes_and_draws_is_one_and_has_its_memory_once() {
    let mut users = Users::default();
    let met = [(7, Some(100)), (8, None), (7, Some(100))];
    users.meet(met.map(|(pid, memory)| User { pid, memory }).into_iter());
    assert_eq!(users.count(), 2);
    let memory: Vec<_> = users.on(Name::new(b"g")).map(|one| one.share.memory).collect();
    assert_eq!(memory, [Some(100), None]);
    users.begin();
    assert_eq!(users.count(), 0, "each look begins anew");
}

#[test]
fn what_was_before_the_first_look_is_nobody_s() {
    let mut users = Users::default();
    assert_eq!(look(&mut users, 5000, 0, &[sample(7, 9, 100)]), [None, None]);
    assert_eq!(users.seen.unwrap(), 9);
    assert_eq!(look(&mut users, 5100, 0, &[sample(7, 9, 100)]), [None, None], "once more");
}

#[test]
fn what_a_process_did_is_the_mean_of_its_samples_and_without_any_nothing() {
    let mut users = Users::default();
    look(&mut users, 5000, 0, &[]);
    let samples = [sample(7, 12, 60), sample(7, 15, 80), sample(9, 15, 100)];
    assert_eq!(look(&mut users, 5100, 0, &samples), [Some(0.7), Some(0.0)]);
    assert_eq!(users.seen.unwrap(), 15);
}

#[test]
fn nobody_was_idle_before_a_sample_period_is_over() {
    let mut users = Users::default();
    look(&mut users, 5000, 10, &[]);
    assert_eq!(look(&mut users, 5200, 10, &[]), [None, None]);
    assert_eq!(look(&mut users, 5400, 11, &[]), [Some(0.0); 2], "the card was sampled");
    assert_eq!(users.seen.unwrap(), 11, "from here on, and not from the last busy moment");
    assert_eq!(look(&mut users, 6300, 11, &[]), [None, None]);
    assert_eq!(look(&mut users, 6400, 11, &[]), [Some(0.0); 2], "no period is longer");
    assert_eq!(look(&mut users, 6500, 11, &[]), [None, None]);
}

#[test]
fn bogus_and_stale_samples_are_left_out() {
    let mut users = Users::default();
    look(&mut users, 5000, 10, &[]);
    let samples = [sample(7, 5, 40), sample(0, 13, 1), sample(7, 14, 3_000_000)];
    assert_eq!(look(&mut users, 5100, 10, &samples), [None, None]);
    assert_eq!(users.seen.unwrap(), 10);
    let doubtful = [sample(7, 14, 3_000_000), sample(8, 15, 80)];
    assert_eq!(look(&mut users, 5200, 10, &doubtful), [None, Some(0.8)], "not idle for that");
    let both = [sample(7, 18, 3_000_000), sample(7, 17, 60)];
    assert_eq!(look(&mut users, 5300, 10, &both), [Some(0.6), Some(0.0)]);
    assert_eq!(users.seen.unwrap(), 17);
}

/// Looks every half second at a card that is 80 % busy by 7, and whose driver keeps the last four
/// of these samples. Says what was told of it in the last second.
fn told_in_the_end(times: impl Fn(u64) -> Vec<PerProcess>) -> [Option<f64>; 2] {
    let mut users = Users::default();
    let (mut last, mut all) = ([None; 2], Vec::new());
    for at in (1000..=15_000).step_by(500) {
        all.extend(times(at));
        all.drain(..all.len().saturating_sub(4));
        let after = users.after(Duration::from_millis(at));
        let new: Vec<_> = all.iter().copied().filter(|sample| sample.at > after).collect();
        let told = look_at(&mut users, at, 0, Some(0.8), &new);
        assert_ne!(told[0], Some(0.0), "at {at}: it was not idle");
        last = [last[1], told[0]];
    }
    last
}

#[test]
fn a_clock_that_is_set_back_makes_nobody_idle_and_is_found_out() {
    let hour = 3_600_000;
    let times = |at: u64| vec![sample(7, at + if at < 4000 { hour } else { 0 }, 80)];
    assert_eq!(told_in_the_end(times), [Some(0.8); 2]);
}

#[test]
fn one_sample_of_the_far_future_does_not_hide_all_others() {
    for pid in [7, 77] {
        let times = |at: u64| {
            let bogus = (at == 3000).then(|| sample(pid, at + 1_000_000_000, 3));
            std::iter::once(sample(7, at, 80)).chain(bogus).collect()
        };
        assert_eq!(told_in_the_end(times), [Some(0.8); 2], "of {pid}");
    }
}

#[test]
fn a_card_that_is_busy_by_nobody_tells_of_nobody() {
    let mut users = Users::default();
    look_at(&mut users, 5000, 10, Some(0.8), &[]);
    assert_eq!(look_at(&mut users, 6500, 11, Some(0.8), &[]), [None; 2]);
    let of_another = [sample(9, 12, 80)];
    assert_eq!(look_at(&mut users, 7000, 12, Some(0.8), &of_another), [Some(0.0); 2]);
    assert_eq!(look_at(&mut users, 8500, 13, Some(0.01), &[]), [Some(0.0); 2]);
}
