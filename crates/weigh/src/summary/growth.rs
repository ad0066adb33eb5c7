//! How much the counters of many things grew: devices that come and go, and begin again.

use crate::model::Entity;

/// The growth of a counter over all things that have one.
#[derive(Debug, Default)]
pub(super) struct Growth {
    things: Vec<Thing>,
    total: f64,
    sample_times: u64,
    /// Whether something came, went or began again after the first look.
    changed: bool,
}

#[derive(Debug)]
struct Thing {
    entity: Entity,
    last: Option<f64>,
    seen: u64,
}

impl Growth {
    /// Takes in the counters of one moment. What is not known of one stands as it was.
    pub(super) fn see(&mut self, counters: impl Iterator<Item = (Entity, Option<f64>)>) {
        self.sample_times += 1;
        for (line, (entity, now)) in counters.enumerate() {
            // Most stand where they stood at the last look.
            let here = self.things.get(line).filter(|thing| thing.entity == entity);
            let anywhere = || self.things.iter().position(|thing| thing.entity == entity);
            let place = here.map(|_| line).or_else(anywhere);
            let place = place.unwrap_or_else(|| {
                self.changed |= self.sample_times > 1;
                self.things.push(Thing { entity, last: None, seen: 0 });
                self.things.len() - 1
            });
            let thing = &mut self.things[place];
            thing.seen = self.sample_times;
            let Some(now) = now else { continue };
            match thing.last.replace(now) {
                Some(before) if now >= before => self.total += now - before,
                // Another thing of the same name.
                Some(_) => self.changed = true,
                None => {}
            }
        }
        let before = self.things.len();
        self.things.retain(|thing| thing.seen == self.sample_times);
        self.changed |= self.things.len() < before;
    }

    /// Takes in one counter of the rows of one moment.
    pub(super) fn see_all<R>(
        &mut self,
        rows: impl Iterator<Item = (Entity, R)>,
        of: fn(&R) -> Option<u64>,
    ) {
        self.see(rows.map(|(entity, row)| (entity, of(&row).map(|count| count as f64))));
    }

    /// The growth from the first look to the last; nothing when nothing was looked at twice.
    pub(super) fn total(&self) -> Option<f64> {
        let known = self.changed || self.things.iter().any(|thing| thing.last.is_some());
        (self.sample_times > 1 && known).then_some(self.total)
    }

    /// Whether there may have been more, before something was first or after it was last seen.
    pub(super) fn may_be_more(&self) -> bool {
        self.changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Name;

    fn seen(sample_times: &[&[(&str, f64)]]) -> (Option<f64>, bool) {
        let mut growth = Growth::default();
        for look in sample_times {
            let entity = |name: &str| Entity::Named(Name::new(name.as_bytes()));
            growth.see(look.iter().map(|(name, now)| (entity(name), Some(*now))));
        }
        (growth.total(), growth.may_be_more())
    }

    #[test]
    fn what_was_before_the_run_is_not_counted() {
        assert_eq!(seen(&[&[("a", 100.0)]]), (None, false));
        assert_eq!(
            seen(&[&[("a", 100.0), ("b", 7.0)], &[("a", 103.0), ("b", 7.0)]]),
            (Some(3.0), false)
        );
        assert_eq!(seen(&[&[], &[]]), (None, false));
    }

    #[test]
    fn who_comes_goes_or_begins_again_adds_only_what_was_seen_and_it_is_said() {
        let came =
            seen(&[&[("a", 1.0)], &[("a", 2.0), ("b", 1e12)], &[("a", 3.0), ("b", 1e12 + 5.0)]]);
        assert_eq!(came, (Some(7.0), true));
        let went = seen(&[&[("a", 1.0), ("b", 2.0)], &[("b", 4.0)], &[("a", 50.0), ("b", 4.0)]]);
        assert_eq!(went, (Some(2.0), true));
        assert_eq!(seen(&[&[("a", 9.0)], &[("a", 2.0)], &[("a", 3.0)]]), (Some(1.0), true));
    }
}
