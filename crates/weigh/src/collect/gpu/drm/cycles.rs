//! Time, from the cycles in which the firmware of AMD's GPUs counts.
//!
//! The delta of a residency by the delta of all cycles is its share of the time between two polls:
//! so AMD's own library has it (`amdsmi_get_violation_status`: delta of the residency by delta of
//! `accumulation_counter`). Utilization is summed in percent once a cycle
//! (`amdsmi_get_utilization_count`). Nothing between two polls is missed.
//!
//! What surprised us: these are 32-bit counters. Utilization wraps around after twelve hours of
//! work, the cycles after seven weeks.

use std::time::Duration;

use crate::catalog::metrics::{GpuActivity, GpuThrottle};
use crate::parse::gpu_metrics::Cycles;

/// The time in the states that the firmware counts, in seconds.
#[derive(Debug, Default)]
pub(super) struct CycleIntegrator {
    /// The last poll, and its counters: none when the GPU was suspended.
    before: Option<(Duration, Option<Cycles>)>,
    observed: Option<f64>,
    busy: Option<f64>,
    power: Option<f64>,
    thermal: Option<f64>,
}

impl CycleIntegrator {
    /// It is suspended, and idle.
    pub(super) fn suspend(&mut self, at: Duration) {
        if let Some((then, None)) = self.before.replace((at, None)) {
            let seconds = at.saturating_sub(then).as_secs_f64();
            self.observed = self.observed.map(|observed| observed + seconds);
        }
    }

    /// Adds the counters of a poll.
    pub(super) fn push(&mut self, at: Duration, now: Option<Cycles>) {
        let Some(now) = now else {
            // The next poll covers the time until then, too, unless it was suspended before.
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
        if thermal(&now).any(|count| count.is_some()) {
            self.thermal.get_or_insert(0.0);
        }
        let Some((then, Some(before))) = before else { return };
        // Nothing after a reset.
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
        // Several may apply at the same time: it was thermally throttled in as many cycles as by the
        // most frequent of them, at least.
        let shares = thermal(&before).zip(thermal(&now));
        let shares = shares.filter_map(|(before, now)| share(before, now, cycles, 1));
        if let Some(share) = shares.reduce(f64::max) {
            add(&mut self.thermal, share * seconds);
        }
    }

    /// Fills in the sums.
    pub(super) fn fill(&self, activity: &mut GpuActivity, throttle: &mut GpuThrottle) {
        (activity.busy, activity.observed) = (self.busy, self.observed);
        (throttle.power, throttle.thermal) = (self.power, self.thermal);
    }
}

fn thermal(cycles: &Cycles) -> impl Iterator<Item = Option<u64>> + use<> {
    [cycles.prochot, cycles.socket_thermal, cycles.regulator_thermal, cycles.memory_thermal]
        .into_iter()
}

/// The delta of a counter as a share of these cycles, where a cycle adds `max` at most.
fn share(before: Option<u64>, now: Option<u64>, cycles: u64, max: u64) -> Option<f64> {
    let (before, now) = (before?, now?);
    let all = cycles.checked_mul(max)?;
    // The counter has 32 bits and wraps around.
    let delta = now.checked_sub(before).or_else(|| (now + (1 << 32)).checked_sub(before))?;
    (delta <= all).then(|| delta as f64 / all as f64)
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

    /// Busy and observed after each of these polls, which are two seconds apart.
    fn sums(polls: &[Option<Cycles>]) -> Vec<(f64, f64)> {
        let mut cycles = CycleIntegrator::default();
        let polls = polls.iter().zip(1..).map(|(poll, number)| {
            cycles.push(Duration::from_secs(2 * number), *poll);
            cycles.busy.zip(cycles.observed).unwrap_or((-1.0, -1.0))
        });
        polls.collect()
    }

    #[test]
    fn utilization_is_a_share_of_all_cycles_between_two_polls() {
        let polls = [busy(1000, 50_000), busy(3000, 150_000), busy(5000, 150_000)];
        assert_eq!(sums(&polls), [(0.0, 0.0), (1.0, 2.0), (1.0, 4.0)]);
    }

    #[test]
    fn failed_poll_is_covered_by_the_next() {
        let polls = [busy(1000, 0), None, busy(5000, 200_000)];
        assert_eq!(sums(&polls), [(0.0, 0.0), (0.0, 0.0), (2.0, 4.0)]);
        assert_eq!(sums(&[None]), [(-1.0, -1.0)], "unknown is not 0");
    }

    #[test]
    fn wraparound_of_32_bits_is_unwrapped() {
        let polls = [busy(1000, (1 << 32) - 50_000), busy(3000, 50_000)];
        assert_eq!(sums(&polls)[1], (1.0, 2.0));
    }

    #[test]
    fn reset_stalled_or_impossible_cycles_add_nothing() {
        let polls = [busy(5000, 0), busy(10, 1000), busy(10, 1000), busy(20, 5000), busy(30, 900)];
        assert_eq!(sums(&polls)[4], (0.0, 0.0));
        let polls = [busy(5000, 0), busy(10, 1000), busy(2010, 101_000)];
        assert_eq!(sums(&polls)[2], (1.0, 2.0), "it counts from then on");
    }

    #[test]
    fn thermal_throttling_by_several_sensors_at_once_counts_once() {
        let mut cycles = CycleIntegrator::default();
        let (mut activity, mut throttle) = Default::default();
        let first = Cycles { socket_thermal: Some(5), memory_thermal: Some(9), ..NOTHING };
        cycles.push(Duration::from_secs(1), Some(first));
        cycles.fill(&mut activity, &mut throttle);
        assert_eq!((throttle.power, throttle.thermal), (None, Some(0.0)));
        let hot = Cycles {
            all: 1000,
            power: Some(700),
            socket_thermal: Some(505),
            memory_thermal: Some(259),
            ..NOTHING
        };
        cycles.push(Duration::from_secs(2), Some(hot));
        let later = Cycles { all: 2000, power: Some(950), ..hot };
        cycles.push(Duration::from_secs(3), Some(later));
        cycles.fill(&mut activity, &mut throttle);
        assert_eq!((throttle.power, throttle.thermal), (Some(0.25), Some(0.5)));
        assert_eq!((activity.busy, activity.observed), (None, None));
    }

    #[test]
    fn suspended_gpu_is_observed_to_be_idle() {
        let mut cycles = CycleIntegrator::default();
        let at = Duration::from_secs;
        cycles.suspend(at(1));
        cycles.suspend(at(2));
        assert_eq!(cycles.observed, None, "no counters yet");
        cycles.push(at(3), busy(1000, 0));
        cycles.push(at(4), busy(2000, 100_000));
        (5..8).for_each(|second| cycles.suspend(at(second)));
        // When it was suspended and woken up is not known.
        cycles.push(at(8), busy(2500, 100_000));
        assert_eq!((cycles.busy, cycles.observed), (Some(1.0), Some(3.0)));
    }
}
