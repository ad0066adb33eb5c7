//! Power over time: what a card has taken that does not count its energy, or whose counter is
//! not to be believed.

use std::time::Duration;

/// What the power of one card has added up to, look by look.
#[derive(Debug, Default)]
pub(super) struct AddedUp {
    /// When its power was told, and what it was.
    before: Option<(Duration, f64)>,
    joules: Option<f64>,
}

impl AddedUp {
    /// What it takes is not known from now on, until it is told again.
    pub(super) fn pause(&mut self) {
        self.before = None;
    }

    /// Adds what was taken since the last look, if the power was known at both of its ends, and
    /// says what it comes to; nothing before the first power was told.
    pub(super) fn see(&mut self, at: Duration, watts: Option<f64>) -> Option<f64> {
        let before = std::mem::replace(&mut self.before, watts.map(|watts| (at, watts)));
        if let Some(watts) = watts {
            let joules = self.joules.get_or_insert(0.0);
            if let Some((then, watts_then)) = before {
                *joules += (watts + watts_then) / 2.0 * at.saturating_sub(then).as_secs_f64();
            }
        }
        self.joules
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_adds_up_while_it_is_known_at_both_ends() {
        let (mut added, second) = (AddedUp::default(), Duration::from_secs);
        assert_eq!(added.see(second(1), None), None);
        assert_eq!(added.see(second(2), Some(100.0)), Some(0.0));
        assert_eq!(added.see(second(4), Some(200.0)), Some(300.0));
        assert_eq!(added.see(second(5), None), Some(300.0));
        assert_eq!(added.see(second(6), Some(200.0)), Some(300.0), "what was before is not known");
        added.pause();
        assert_eq!(added.see(second(8), Some(200.0)), Some(300.0));
        assert_eq!(added.see(second(9), Some(200.0)), Some(500.0));
    }
}
