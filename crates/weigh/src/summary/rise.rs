//! Counters and supplies of the machine from the first look to the last: how far a counter
//! rose and over what time, and how low a supply fell.

/// The rise of one counter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CounterRise {
    first: Option<(f64, f64)>,
    last: (f64, f64),
}

impl CounterRise {
    /// Takes in what it is now. One that could not be read this time is what it was.
    pub(super) fn see(&mut self, value: Option<f64>, at: f64) {
        let Some(value) = value else { return };
        match self.first {
            None => (self.first, self.last) = (Some((value, at)), (value, at)),
            // Looks of several watchers at one machine may cross each other.
            Some(_) => self.last = (self.last.0.max(value), at),
        }
    }

    /// How far it rose; unknown when it was not looked at twice.
    pub(super) fn total(&self) -> Option<f64> {
        self.length().map(|_| self.last.0 - self.first.map_or(0.0, |(value, _)| value))
    }

    /// The part of the time that it stands for, if it counts seconds.
    pub(super) fn share(&self) -> Option<f64> {
        Some(self.total()? / self.length()?)
    }

    fn length(&self) -> Option<f64> {
        let (_, began) = self.first?;
        Some(self.last.1 - began).filter(|length| *length > 0.0)
    }
}

/// Something there is only so much of: room on a file system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Supply {
    /// All there is.
    pub(super) total: f64,
    /// The least that was left, and when.
    pub(super) least: f64,
    pub(super) at: f64,
    first: (f64, f64),
    last: f64,
}

impl Supply {
    /// Takes in what is left now.
    pub(super) fn see(known: &mut Option<Supply>, total: f64, left: f64, at: f64) {
        let supply =
            known.get_or_insert(Supply { total, least: left, at, first: (left, at), last: left });
        if left < supply.least {
            (supply.least, supply.at) = (left, at);
        }
        (supply.total, supply.last) = (total, left);
    }

    /// How fast it became less until there was least; `None` when it did not.
    pub(super) fn loss_per_second(&self) -> Option<f64> {
        let (lost, time) = (self.first.0 - self.least, self.at - self.first.1);
        (lost > 0.0 && time > 0.0).then(|| lost / time)
    }

    /// How long the rest would have lasted, if it became less until the end.
    pub(super) fn seconds_left(&self) -> Option<f64> {
        let rate = self.loss_per_second().filter(|_| self.last == self.least)?;
        Some(self.least / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_rises_from_the_first_look_to_the_last() {
        let mut rise = CounterRise::default();
        rise.see(Some(100.0), 1.0);
        assert_eq!((rise.total(), rise.share()), (None, None), "it was looked at once");
        rise.see(None, 2.0);
        rise.see(Some(104.0), 5.0);
        rise.see(Some(103.0), 9.0);
        assert_eq!((rise.total(), rise.share()), (Some(4.0), Some(0.5)));
    }

    #[test]
    fn a_supply_knows_how_fast_it_shrank_and_how_long_the_rest_would_have_lasted() {
        let seen = |samples: &[f64]| {
            let mut supply = None;
            let samples = samples.iter().enumerate();
            samples.for_each(|(at, left)| Supply::see(&mut supply, 100.0, *left, at as f64));
            supply.unwrap()
        };
        let shrinking = seen(&[50.0, 40.0, 30.0]);
        assert_eq!(shrinking.loss_per_second(), Some(10.0));
        assert_eq!(shrinking.seconds_left(), Some(3.0));
        let given_back = seen(&[50.0, 10.0, 50.0]);
        assert_eq!((given_back.least, given_back.at), (10.0, 1.0));
        assert_eq!((given_back.loss_per_second(), given_back.seconds_left()), (Some(40.0), None));
        assert_eq!(seen(&[5.0, 5.0]).loss_per_second(), None);
    }
}
