//! The energy of a GPU, by its own counter and by its integrated power.
//!
//! Both are recorded where a GPU has both: a counter that is found to be wrong is not reported any
//! more, and the integrated power has the energy until then.
//!
//! What surprised us: the register behind a counter may start at any value when a GPU wakes up that
//! was powered off. So the reported value continues from that before it was suspended, without the
//! energy of that time.

use std::time::Duration;

use super::super::power_integrator::PowerIntegrator;
use crate::catalog::metrics::GpuPower;

/// More power than any GPU draws, in watts.
pub(super) const MAX_WATTS: f64 = 3000.0;

/// Less power than any GPU draws that is awake, in watts.
const MIN_WATTS: f64 = 1.0;

/// How long a counter may not advance while power is drawn, and then catch up at once. Firmware
/// counts every millisecond.
const MAX_STALL: Duration = Duration::from_secs(1);

/// The energy of one GPU, poll by poll.
#[derive(Debug, Default)]
pub(super) struct EnergyCounter {
    /// When its counter was last read, and the value; nothing when it was suspended since.
    before: Option<(Duration, f64)>,
    /// The value that was last reported.
    reported: Option<f64>,
    /// The reported value less that of the counter.
    offset: f64,
    /// When its counter last advanced, or did not have to.
    advanced: Option<Duration>,
    is_wrong: bool,
    power: PowerIntegrator,
}

impl EnergyCounter {
    /// It is suspended: its power is not known, and its counter may start again.
    pub(super) fn suspend(&mut self) {
        self.power.pause();
        self.advanced = None;
        self.before = None;
    }

    /// Takes the values of a poll, and replaces energy and power by those to report. Returns what
    /// is wrong with its counter, once.
    pub(super) fn push(&mut self, at: Duration, power: &mut GpuPower) -> Option<&'static str> {
        let watts = power.draw;
        power.energy_sampled = self.power.push(at, watts);
        let joules = power.energy.take().filter(|_| !self.is_wrong)?;
        let before = self.before.replace((at, joules));
        if let (None, Some(reported)) = (before, self.reported) {
            self.offset = reported - joules;
        }
        let draws_power = watts.is_some_and(|watts| watts >= MIN_WATTS);
        if !draws_power || before.is_none_or(|(_, before)| before != joules) {
            self.advanced = Some(at);
        }
        let stalled = at.saturating_sub(*self.advanced.get_or_insert(at));
        let wrong = if stalled >= MAX_STALL {
            Some("its energy counter does not advance while it draws power")
        } else if before.is_some_and(|before| jumps(before, (at, joules))) {
            Some("its energy counter jumps")
        } else {
            None
        };
        self.is_wrong = wrong.is_some();
        if !self.is_wrong {
            self.reported = Some(joules + self.offset);
            power.energy = self.reported;
            power.draw = watts.or(before.and_then(|before| rate(before, (at, joules))));
        }
        wrong
    }
}

/// Whether a counter advanced by more than a GPU can draw.
fn jumps(before: (Duration, f64), now: (Duration, f64)) -> bool {
    let seconds = now.0.saturating_sub(before.0).max(MAX_STALL).as_secs_f64();
    now.1 - before.1 > MAX_WATTS * seconds
}

/// The rate of a counter; nothing after a reset.
fn rate(before: (Duration, f64), now: (Duration, f64)) -> Option<f64> {
    let (seconds, delta) = (now.0.saturating_sub(before.0).as_secs_f64(), now.1 - before.1);
    (seconds > 0.0 && delta >= 0.0).then(|| delta / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Energy by counter and by integrated power, and what is wrong, at polls half a second apart
    /// of these watts and joules.
    fn reported(
        polls: &[(Option<f64>, Option<f64>)],
    ) -> Vec<(Option<f64>, Option<f64>, Option<&'static str>)> {
        let mut energy = EnergyCounter::default();
        let polls = polls.iter().zip(1..).map(|(&(draw, joules), number)| {
            let mut power = GpuPower { draw, energy: joules, ..GpuPower::default() };
            let wrong = energy.push(Duration::from_millis(500) * number, &mut power);
            (power.energy, power.energy_sampled, wrong)
        });
        polls.collect()
    }

    fn last(polls: &[(f64, f64)]) -> (Option<f64>, Option<f64>, Option<&'static str>) {
        let polls: Vec<_> =
            polls.iter().map(|&(watts, joules)| (Some(watts), Some(joules))).collect();
        *reported(&polls).last().unwrap()
    }

    #[test]
    fn counter_is_reported_beside_the_integrated_power() {
        assert_eq!(last(&[(100.0, 7.0), (100.0, 57.5)]), (Some(57.5), Some(50.0), None));
        assert_eq!(reported(&[(None, Some(7.0))]), [(Some(7.0), None, None)]);
    }

    #[test]
    fn counter_that_does_not_advance_while_power_is_drawn_is_dropped() {
        let polls = reported(&[(Some(100.0), Some(7.0)); 5]);
        assert_eq!(polls[1], (Some(7.0), Some(50.0), None), "it may be late");
        assert_eq!((polls[2].0, polls[2].1), (None, Some(100.0)));
        assert!(polls[2].2.unwrap().contains("does not advance"));
        assert_eq!(polls[4], (None, Some(200.0), None), "reported once");
    }

    #[test]
    fn counter_may_stay_while_no_power_is_drawn() {
        assert_eq!(last(&[(0.0, 7.0); 5]), (Some(7.0), Some(0.0), None));
        assert_eq!(reported(&[(None, Some(7.0)); 5])[4], (Some(7.0), None, None));
    }

    #[test]
    fn counter_that_jumps_is_dropped_and_one_that_resets_continues() {
        let (energy, sampled, wrong) = last(&[(100.0, 7.0), (100.0, 1e9)]);
        assert_eq!((energy, sampled), (None, Some(50.0)));
        assert!(wrong.unwrap().contains("jumps"));
        assert_eq!(last(&[(100.0, 1e9), (100.0, 7.0)]), (Some(7.0), Some(50.0), None));
        let (energy, _, wrong) = last(&[(100.0, 7.0), (100.0, 4000.0)]);
        assert_eq!((energy, wrong.is_some()), (None, true), "no GPU draws 8 kW");
    }

    #[test]
    fn poll_without_a_count_keeps_the_one_before_for_the_check() {
        let polls = reported(&[(None, Some(50_000.0)), (None, None), (None, Some(50_060.0))]);
        assert_eq!(polls[2], (Some(50_060.0), None, None));
        let polls = reported(&[(None, Some(50_000.0)), (None, None), (None, Some(90_000.0))]);
        assert!(polls[2].2.unwrap().contains("jumps"));
    }

    #[test]
    fn counter_continues_after_suspend_wherever_it_starts() {
        let (mut energy, at) = (EnergyCounter::default(), Duration::from_secs);
        let mut reported = |second, joules| {
            let mut power = GpuPower { energy: Some(joules), ..GpuPower::default() };
            assert_eq!(energy.push(at(second), &mut power), None);
            if second == 2 {
                energy.suspend();
            }
            (power.energy, power.draw)
        };
        assert_eq!(reported(1, 50.0), (Some(50.0), None));
        assert_eq!(reported(2, 80.0), (Some(80.0), Some(30.0)));
        assert_eq!(reported(9, 262_000.0), (Some(80.0), None), "no mean over the suspended time");
        assert_eq!(reported(10, 262_005.0), (Some(85.0), Some(5.0)));
    }
}
