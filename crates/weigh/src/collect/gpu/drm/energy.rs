//! What a card takes, as its own counter has it and as its power adds up to.
//!
//! Both are kept where a card tells both: a counter that is found to be wrong is not told any
//! more, and what the power added up to until then is there.
//!
//! What surprised us: the register behind a counter may begin anywhere when a card awakes that
//! was without power. So what is told goes on from where it stood when the card fell asleep, and
//! what it took asleep is not in it.

use std::time::Duration;

use super::super::added_up::AddedUp;
use crate::catalog::metrics::GpuPower;

/// More power than any card takes, in watts.
pub(super) const TOO_MUCH: f64 = 3000.0;

/// Less power than any card takes that is awake, in watts.
const SOME: f64 = 1.0;

/// How long a counter may stand still while power is taken, and what it may then make up for at
/// once. Firmware counts every millisecond.
const STILL: Duration = Duration::from_secs(1);

/// The energy of one card between two looks.
#[derive(Debug, Default)]
pub(super) struct Energy {
    /// When its counter was read, and what it was; nothing when the card slept since.
    counted_before: Option<(Duration, f64)>,
    /// What was told last.
    told: Option<f64>,
    /// What is told beyond what its counter says.
    ahead: f64,
    /// When its counter moved, or did not have to.
    moved: Option<Duration>,
    is_wrong: bool,
    added_up: AddedUp,
}

impl Energy {
    /// It sleeps: what it takes is not known, so nothing is added up, and its counter may be
    /// another when it awakes.
    pub(super) fn sleep(&mut self) {
        self.added_up.pause();
        self.moved = None;
        self.counted_before = None;
    }

    /// Takes in what it told at a look, and puts in what follows from that. Says what is wrong
    /// with its counter, once.
    pub(super) fn see(&mut self, at: Duration, power: &mut GpuPower) -> Option<&'static str> {
        let watts = power.draw;
        power.energy_sampled = self.added_up.see(at, watts);
        let joules = power.energy.take().filter(|_| !self.is_wrong)?;
        let before = self.counted_before.replace((at, joules));
        if let (None, Some(told)) = (before, self.told) {
            self.ahead = told - joules;
        }
        let takes_power = watts.is_some_and(|watts| watts >= SOME);
        if !takes_power || before.is_none_or(|(_, before)| before != joules) {
            self.moved = Some(at);
        }
        let still = at.saturating_sub(*self.moved.get_or_insert(at));
        let wrong = if still >= STILL {
            Some("its counter of energy stands still while it takes power")
        } else if before.is_some_and(|before| leaps(before, (at, joules))) {
            Some("its counter of energy leaps")
        } else {
            None
        };
        self.is_wrong = wrong.is_some();
        if !self.is_wrong {
            self.told = Some(joules + self.ahead);
            power.energy = self.told;
            power.draw = watts.or(before.and_then(|before| rise(before, (at, joules))));
        }
        wrong
    }
}

/// Whether a counter grew by more than a card can take.
fn leaps(before: (Duration, f64), now: (Duration, f64)) -> bool {
    let seconds = now.0.saturating_sub(before.0).max(STILL).as_secs_f64();
    now.1 - before.1 > TOO_MUCH * seconds
}

/// How much a counter grew in a second; one that begins again did not say.
fn rise(before: (Duration, f64), now: (Duration, f64)) -> Option<f64> {
    let (seconds, growth) = (now.0.saturating_sub(before.0).as_secs_f64(), now.1 - before.1);
    (seconds > 0.0 && growth >= 0.0).then(|| growth / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Energy by both ways and what is wrong, after looks half a second apart that find these
    /// watts and these joules.
    fn told(
        looks: &[(Option<f64>, Option<f64>)],
    ) -> Vec<(Option<f64>, Option<f64>, Option<&'static str>)> {
        let mut energy = Energy::default();
        let looks = looks.iter().zip(1..).map(|(&(draw, joules), number)| {
            let mut power = GpuPower { draw, energy: joules, ..GpuPower::default() };
            let wrong = energy.see(Duration::from_millis(500) * number, &mut power);
            (power.energy, power.energy_sampled, wrong)
        });
        looks.collect()
    }

    fn last(looks: &[(f64, f64)]) -> (Option<f64>, Option<f64>, Option<&'static str>) {
        let looks: Vec<_> =
            looks.iter().map(|&(watts, joules)| (Some(watts), Some(joules))).collect();
        *told(&looks).last().unwrap()
    }

    #[test]
    fn a_counter_is_told_beside_what_the_power_adds_up_to() {
        assert_eq!(last(&[(100.0, 7.0), (100.0, 57.5)]), (Some(57.5), Some(50.0), None));
        assert_eq!(told(&[(None, Some(7.0))]), [(Some(7.0), None, None)]);
    }

    #[test]
    fn a_counter_that_stands_still_while_power_is_taken_is_not_told_any_more() {
        let still = [(Some(100.0), Some(7.0)); 5];
        let told = told(&still);
        assert_eq!(told[1], (Some(7.0), Some(50.0), None), "it may be late");
        assert_eq!((told[2].0, told[2].1), (None, Some(100.0)));
        assert!(told[2].2.unwrap().contains("stands still"));
        assert_eq!(told[4], (None, Some(200.0), None), "it is told once");
    }

    #[test]
    fn a_counter_may_stand_still_while_nothing_is_taken() {
        assert_eq!(last(&[(0.0, 7.0); 5]), (Some(7.0), Some(0.0), None));
        assert_eq!(told(&[(None, Some(7.0)); 5])[4], (Some(7.0), None, None));
    }

    #[test]
    fn a_counter_that_leaps_is_not_believed_and_one_that_goes_back_counts_from_there() {
        let (energy, sampled, wrong) = last(&[(100.0, 7.0), (100.0, 1e9)]);
        assert_eq!((energy, sampled), (None, Some(50.0)));
        assert!(wrong.unwrap().contains("leaps"));
        assert_eq!(last(&[(100.0, 1e9), (100.0, 7.0)]), (Some(7.0), Some(50.0), None));
        let (energy, _, wrong) = last(&[(100.0, 7.0), (100.0, 4000.0)]);
        assert_eq!((energy, wrong.is_some()), (None, true), "no card takes 8 kW");
    }

    #[test]
    fn a_look_without_a_count_leaves_the_one_before_to_judge_by() {
        let told = told(&[(None, Some(50_000.0)), (None, None), (None, Some(50_060.0))]);
        assert_eq!(told[2], (Some(50_060.0), None, None));
        let told = self::told(&[(None, Some(50_000.0)), (None, None), (None, Some(90_000.0))]);
        assert!(told[2].2.unwrap().contains("leaps"));
    }

    #[test]
    fn across_sleep_a_counter_goes_on_from_where_it_stood_wherever_it_begins() {
        let (mut energy, at) = (Energy::default(), Duration::from_secs);
        let mut told = |second, joules| {
            let mut power = GpuPower { energy: Some(joules), ..GpuPower::default() };
            assert_eq!(energy.see(at(second), &mut power), None);
            if second == 2 {
                energy.sleep();
            }
            (power.energy, power.draw)
        };
        assert_eq!(told(1, 50.0), (Some(50.0), None));
        assert_eq!(told(2, 80.0), (Some(80.0), Some(30.0)));
        assert_eq!(told(9, 262_000.0), (Some(80.0), None), "no mean over the sleep");
        assert_eq!(told(10, 262_005.0), (Some(85.0), Some(5.0)));
    }
}
