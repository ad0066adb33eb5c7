//! Power integrated over time: the energy of a GPU without an energy counter, or with one that is
//! not to be trusted.

use std::time::Duration;

/// The integral of the power of one GPU, poll by poll.
#[derive(Debug, Default)]
pub(super) struct PowerIntegrator {
    /// When the power was last read, and its value.
    before: Option<(Duration, f64)>,
    joules: Option<f64>,
}

impl PowerIntegrator {
    /// The power is not known from now on, until the next value.
    pub(super) fn pause(&mut self) {
        self.before = None;
    }

    /// Adds the energy since the last poll, if the power was known at both, and returns the sum;
    /// nothing before the first value.
    pub(super) fn push(&mut self, at: Duration, watts: Option<f64>) -> Option<f64> {
        let before = std::mem::replace(&mut self.before, watts.map(|watts| (at, watts)));
        if let Some(watts) = watts {
            let joules = self.joules.get_or_insert(0.0);
            if let Some((at_before, watts_before)) = before {
                let seconds = at.saturating_sub(at_before).as_secs_f64();
                *joules += (watts + watts_before) / 2.0 * seconds;
            }
        }
        self.joules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_is_integrated_where_it_is_known_at_both_ends() {
        let (mut power, second) = (PowerIntegrator::default(), Duration::from_secs);
        assert_eq!(power.push(second(1), None), None);
        assert_eq!(power.push(second(2), Some(100.0)), Some(0.0));
        assert_eq!(power.push(second(4), Some(200.0)), Some(300.0));
        assert_eq!(power.push(second(5), None), Some(300.0));
        assert_eq!(power.push(second(6), Some(200.0)), Some(300.0), "unknown at the last poll");
        power.pause();
        assert_eq!(power.push(second(8), Some(200.0)), Some(300.0));
        assert_eq!(power.push(second(9), Some(200.0)), Some(500.0));
    }
}
