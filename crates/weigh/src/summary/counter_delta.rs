//! Counters and limited resources of the machine from the first sample to the last: the delta of a
//! counter and over what time, and the lowest free amount of a resource.

/// The delta of one counter.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CounterDelta {
    first: Option<(f64, f64)>,
    last: (f64, f64),
}

impl CounterDelta {
    /// Adds its value now. A value that could not be read is carried forward.
    pub(super) fn add(&mut self, value: Option<f64>, at: f64) {
        let Some(value) = value else { return };
        match self.first {
            None => (self.first, self.last) = (Some((value, at)), (value, at)),
            // Samples of several monitors of one machine may be out of order.
            Some(_) => self.last = (self.last.0.max(value), at),
        }
    }

    /// Its delta; unknown without two samples.
    pub(super) fn total(&self) -> Option<f64> {
        self.length().map(|_| self.last.0 - self.first.map_or(0.0, |(value, _)| value))
    }

    /// The share of the time, if it counts seconds.
    pub(super) fn share(&self) -> Option<f64> {
        Some(self.total()? / self.length()?)
    }

    fn length(&self) -> Option<f64> {
        let (_, began) = self.first?;
        Some(self.last.1 - began).filter(|length| *length > 0.0)
    }
}

/// A limited resource: free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LowestFreeSpace {
    /// The total.
    pub(super) total: f64,
    /// The lowest free amount, and when.
    pub(super) least: f64,
    pub(super) at: f64,
    first: (f64, f64),
    last: f64,
}

impl LowestFreeSpace {
    /// Adds the free amount now.
    pub(super) fn add(known: &mut Option<LowestFreeSpace>, total: f64, left: f64, at: f64) {
        let supply = known.get_or_insert(LowestFreeSpace {
            total,
            least: left,
            at,
            first: (left, at),
            last: left,
        });
        if left < supply.least {
            (supply.least, supply.at) = (left, at);
        }
        (supply.total, supply.last) = (total, left);
    }

    /// The rate at which it shrank until the lowest value; `None` when it did not.
    pub(super) fn loss_per_second(&self) -> Option<f64> {
        let (lost, time) = (self.first.0 - self.least, self.at - self.first.1);
        (lost > 0.0 && time > 0.0).then(|| lost / time)
    }

    /// How long the rest would have lasted, if it shrank until the end.
    pub(super) fn seconds_left(&self) -> Option<f64> {
        let rate = self.loss_per_second().filter(|_| self.last == self.least)?;
        Some(self.least / rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delta_of_a_counter_is_from_the_first_sample_to_the_last() {
        let mut rise = CounterDelta::default();
        rise.add(Some(100.0), 1.0);
        assert_eq!((rise.total(), rise.share()), (None, None), "it was looked at once");
        rise.add(None, 2.0);
        rise.add(Some(104.0), 5.0);
        rise.add(Some(103.0), 9.0);
        assert_eq!((rise.total(), rise.share()), (Some(4.0), Some(0.5)));
    }

    #[test]
    fn resource_has_its_loss_rate_and_how_long_the_rest_would_have_lasted() {
        let sampled = |samples: &[f64]| {
            let mut supply = None;
            let samples = samples.iter().enumerate();
            samples
                .for_each(|(at, left)| LowestFreeSpace::add(&mut supply, 100.0, *left, at as f64));
            supply.unwrap()
        };
        let shrinking = sampled(&[50.0, 40.0, 30.0]);
        assert_eq!(shrinking.loss_per_second(), Some(10.0));
        assert_eq!(shrinking.seconds_left(), Some(3.0));
        let given_back = sampled(&[50.0, 10.0, 50.0]);
        assert_eq!((given_back.least, given_back.at), (10.0, 1.0));
        assert_eq!((given_back.loss_per_second(), given_back.seconds_left()), (Some(40.0), None));
        assert_eq!(sampled(&[5.0, 5.0]).loss_per_second(), None);
    }
}
