//! Time, from the cycles in which the firmware of a card of AMD's adds up.
//!
//! How often something was the case among all cycles between two looks is the share of that time
//! in which it was: so AMD's own library has it (`amdsmi_get_violation_status`: growth of the
//! residency by growth of `accumulation_counter`), and how busy the card was is added up in
//! percent once a cycle (`amdsmi_get_utilization_count`). Nothing between two looks is missed.
//!
//! What surprised us: these are counts of 32 bits. How busy it was begins again after twelve
//! hours of work, the cycles after seven weeks.

use std::time::Duration;

use crate::catalog::metrics::{GpuActivity, GpuThrottle};
use crate::parse::gpu_metrics::Cycles;

/// What a card's cycles have added up to, in seconds.
#[derive(Debug, Default)]
pub(super) struct Spent {
    /// The last look, and what was counted at it: nothing when the card was asleep.
    before: Option<(Duration, Option<Cycles>)>,
    observed: Option<f64>,
    busy: Option<f64>,
    power: Option<f64>,
    thermal: Option<f64>,
}

impl Spent {
    /// It sleeps, and does nothing.
    pub(super) fn sleep(&mut self, at: Duration) {
        if let Some((then, None)) = self.before.replace((at, None)) {
            let seconds = at.saturating_sub(then).as_secs_f64();
            self.observed = self.observed.map(|observed| observed + seconds);
        }
    }

    /// Takes in what it told at a look.
    pub(super) fn see(&mut self, at: Duration, now: Option<Cycles>) {
        let Some(now) = now else {
            // The next look tells of the time until then, too, unless it slept before.
            self.before.take_if(|(_, before)| before.is_none());
            return;
        };
        let before = self.before.replace((at, Some(now)));
        if now.busy_percent.is_some() {
            self.busy.get_or_insert(0.0);
            self.observed.get_or_insert(0.0);
        }
        if now.power.is_some() {
            self.power.get_or_insert(0.0);
        }
        if heats(&now).any(|heat| heat.is_some()) {
            self.thermal.get_or_insert(0.0);
        }
        let Some((then, Some(before))) = before else { return };
        // One that begins again did not say.
        let Some(cycles) = now.all.checked_sub(before.all).filter(|cycles| *cycles > 0) else {
            return;
        };
        let seconds = at.saturating_sub(then).as_secs_f64();
        if let Some(share) = share(before.busy_percent, now.busy_percent, cycles, 100) {
            add(&mut self.busy, share * seconds);
            add(&mut self.observed, seconds);
        }
        if let Some(share) = share(before.power, now.power, cycles, 1) {
            add(&mut self.power, share * seconds);
        }
        // Several may have been the case at the same time: it was held back by heat in as many
        // cycles as by the most frequent of them, at least.
        let shares = heats(&before).zip(heats(&now));
        let shares = shares.filter_map(|(before, now)| share(before, now, cycles, 1));
        if let Some(share) = shares.reduce(f64::max) {
            add(&mut self.thermal, share * seconds);
        }
    }

    /// Puts in what it added up to.
    pub(super) fn tell(&self, activity: &mut GpuActivity, throttle: &mut GpuThrottle) {
        (activity.busy, activity.observed) = (self.busy, self.observed);
        (throttle.power, throttle.thermal) = (self.power, self.thermal);
    }
}

fn heats(cycles: &Cycles) -> impl Iterator<Item = Option<u64>> + use<> {
    [cycles.prochot, cycles.socket_thermal, cycles.regulator_thermal, cycles.memory_thermal]
        .into_iter()
}

/// The share of these cycles in which something was the case, where a cycle adds so much at most.
fn share(before: Option<u64>, now: Option<u64>, cycles: u64, most: u64) -> Option<f64> {
    let (before, now) = (before?, now?);
    let all = cycles.checked_mul(most)?;
    // Beyond its 32 bits it begins again.
    let grown = now.checked_sub(before).or_else(|| (now + (1 << 32)).checked_sub(before))?;
    (grown <= all).then(|| grown as f64 / all as f64)
}

fn add(sum: &mut Option<f64>, seconds: f64) {
    *sum = Some(sum.unwrap_or(0.0) + seconds);
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Cycles = Cycles {
        all: 0,
        prochot: None,
        power: None,
        socket_thermal: None,
        regulator_thermal: None,
        memory_thermal: None,
        busy_percent: None,
    };

    fn busy(all: u64, percents: u64) -> Option<Cycles> {
        Some(Cycles { all, busy_percent: Some(percents), ..NOTHING })
    }

    /// Busy and observed after each of these looks, which are two seconds apart.
    fn told(looks: &[Option<Cycles>]) -> Vec<(f64, f64)> {
        let mut spent = Spent::default();
        let looks = looks.iter().zip(1..).map(|(look, number)| {
            spent.see(Duration::from_secs(2 * number), *look);
            spent.busy.zip(spent.observed).unwrap_or((-1.0, -1.0))
        });
        looks.collect()
    }

    #[test]
    fn how_busy_it_was_is_a_share_of_all_cycles_between_two_looks() {
        let looks = [busy(1000, 50_000), busy(3000, 150_000), busy(5000, 150_000)];
        assert_eq!(told(&looks), [(0.0, 0.0), (1.0, 2.0), (1.0, 4.0)]);
    }

    #[test]
    fn a_look_that_failed_is_made_up_for_by_the_next() {
        let looks = [busy(1000, 0), None, busy(5000, 200_000)];
        assert_eq!(told(&looks), [(0.0, 0.0), (0.0, 0.0), (2.0, 4.0)]);
        assert_eq!(told(&[None]), [(-1.0, -1.0)], "what was never told is not 0");
    }

    #[test]
    fn a_count_of_32_bits_goes_on_when_it_begins_again() {
        let looks = [busy(1000, (1 << 32) - 50_000), busy(3000, 50_000)];
        assert_eq!(told(&looks)[1], (1.0, 2.0));
    }

    #[test]
    fn cycles_that_begin_again_stand_still_or_cannot_be_add_nothing() {
        let looks = [busy(5000, 0), busy(10, 1000), busy(10, 1000), busy(20, 5000), busy(30, 900)];
        assert_eq!(told(&looks)[4], (0.0, 0.0));
        let looks = [busy(5000, 0), busy(10, 1000), busy(2010, 101_000)];
        assert_eq!(told(&looks)[2], (1.0, 2.0), "from then on it counts again");
    }

    #[test]
    fn heat_that_is_felt_at_several_places_at_once_counts_once() {
        let mut spent = Spent::default();
        let (mut activity, mut throttle) = Default::default();
        let first = Cycles { socket_thermal: Some(5), memory_thermal: Some(9), ..NOTHING };
        spent.see(Duration::from_secs(1), Some(first));
        spent.tell(&mut activity, &mut throttle);
        assert_eq!((throttle.power, throttle.thermal), (None, Some(0.0)));
        let hot = Cycles {
            all: 1000,
            power: Some(700),
            socket_thermal: Some(505),
            memory_thermal: Some(259),
            ..NOTHING
        };
        spent.see(Duration::from_secs(2), Some(hot));
        let later = Cycles { all: 2000, power: Some(950), ..hot };
        spent.see(Duration::from_secs(3), Some(later));
        spent.tell(&mut activity, &mut throttle);
        assert_eq!((throttle.power, throttle.thermal), (Some(0.25), Some(0.5)));
        assert_eq!((activity.busy, activity.observed), (None, None));
    }

    #[test]
    fn asleep_it_is_observed_to_do_nothing() {
        let mut spent = Spent::default();
        let at = Duration::from_secs;
        spent.sleep(at(1));
        spent.sleep(at(2));
        assert_eq!(spent.observed, None, "it has told nothing yet");
        spent.see(at(3), busy(1000, 0));
        spent.see(at(4), busy(2000, 100_000));
        (5..8).for_each(|second| spent.sleep(at(second)));
        // Nobody knows when it fell asleep, nor when it awoke.
        spent.see(at(8), busy(2500, 100_000));
        assert_eq!((spent.busy, spent.observed), (Some(1.0), Some(3.0)));
    }
}
