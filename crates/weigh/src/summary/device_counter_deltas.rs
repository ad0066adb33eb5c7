//! Deltas of the counters of many devices, which may appear, disappear and be reset.

use crate::model::Entity;

/// The delta of a counter over all devices that have one.
#[derive(Debug, Default, Clone)]
pub(super) struct DeviceCounterDeltas {
    tracked: Vec<TrackedCounter>,
    total: f64,
    sample_count: u64,
    /// Whether a device appeared, disappeared or was reset after the first sample.
    changed: bool,
}

#[derive(Debug, Clone)]
struct TrackedCounter {
    entity: Entity,
    last: Option<f64>,
    updated_in: u64,
}

impl DeviceCounterDeltas {
    /// Adds the counters of one tick. Unknown values are carried forward.
    pub(super) fn add(&mut self, counters: impl Iterator<Item = (Entity, Option<f64>)>) {
        self.sample_count += 1;
        for (line, (entity, now)) in counters.enumerate() {
            // Most have not changed since the last sample.
            let here = self.tracked.get(line).filter(|counter| counter.entity == entity);
            let anywhere = || self.tracked.iter().position(|counter| counter.entity == entity);
            let place = here.map(|_| line).or_else(anywhere);
            let place = place.unwrap_or_else(|| {
                self.changed |= self.sample_count > 1;
                self.tracked.push(TrackedCounter { entity, last: None, updated_in: 0 });
                self.tracked.len() - 1
            });
            let counter = &mut self.tracked[place];
            counter.updated_in = self.sample_count;
            let Some(now) = now else { continue };
            match counter.last.replace(now) {
                Some(before) if now >= before => self.total += now - before,
                // Another device of the same name.
                Some(_) => self.changed = true,
                None => {}
            }
        }
        let before = self.tracked.len();
        self.tracked.retain(|counter| counter.updated_in == self.sample_count);
        self.changed |= self.tracked.len() < before;
    }

    /// The delta from the first sample to the last; `None` without two samples.
    pub(super) fn total(&self) -> Option<f64> {
        let known = self.changed || self.tracked.iter().any(|counter| counter.last.is_some());
        (self.sample_count > 1 && known).then_some(self.total)
    }

    /// Whether there may have been more, before the first or after the last sample of a device.
    pub(super) fn may_be_more(&self) -> bool {
        self.changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Name;

    fn delta(sample_times: &[&[(&str, f64)]]) -> (Option<f64>, bool) {
        let mut growth = DeviceCounterDeltas::default();
        for sample in sample_times {
            let entity = |name: &str| Entity::Named(Name::new(name.as_bytes()));
            growth.add(sample.iter().map(|(name, now)| (entity(name), Some(*now))));
        }
        (growth.total(), growth.may_be_more())
    }

    #[test]
    fn baseline_is_not_counted() {
        assert_eq!(delta(&[&[("a", 100.0)]]), (None, false));
        assert_eq!(
            delta(&[&[("a", 100.0), ("b", 7.0)], &[("a", 103.0), ("b", 7.0)]]),
            (Some(3.0), false)
        );
        assert_eq!(delta(&[&[], &[]]), (None, false));
    }

    #[test]
    fn appearing_disappearing_or_reset_devices_add_only_what_was_sampled_and_are_flagged() {
        let appeared =
            delta(&[&[("a", 1.0)], &[("a", 2.0), ("b", 1e12)], &[("a", 3.0), ("b", 1e12 + 5.0)]]);
        assert_eq!(appeared, (Some(7.0), true));
        let disappeared =
            delta(&[&[("a", 1.0), ("b", 2.0)], &[("b", 4.0)], &[("a", 50.0), ("b", 4.0)]]);
        assert_eq!(disappeared, (Some(2.0), true));
        assert_eq!(delta(&[&[("a", 9.0)], &[("a", 2.0)], &[("a", 3.0)]]), (Some(1.0), true));
    }
}
