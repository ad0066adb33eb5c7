//! A value for each of some figures, by their ids; in JSON by their names.

use std::collections::BTreeMap;
use std::ops::Index;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::catalog::FigureId;

/// A value for each of some figures, in the order of their names.
#[derive(Debug, Clone, PartialEq)]
pub struct ByFigure<T>(BTreeMap<FigureId, T>);

impl<T> ByFigure<T> {
    /// None yet.
    pub const fn new() -> ByFigure<T> {
        ByFigure(BTreeMap::new())
    }

    /// The value of a figure, if there is one.
    pub fn get(&self, id: FigureId) -> Option<&T> {
        self.0.get(&id)
    }

    /// The value of a figure, mutable.
    pub fn get_mut(&mut self, id: FigureId) -> Option<&mut T> {
        self.0.get_mut(&id)
    }

    /// Sets the value of a figure.
    pub fn insert(&mut self, id: FigureId, value: T) {
        self.0.insert(id, value);
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (FigureId, &T)> {
        self.0.iter().map(|(id, value)| (*id, value))
    }

    /// All of them, mutable.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (FigureId, &mut T)> {
        self.0.iter_mut().map(|(id, value)| (*id, value))
    }

    /// Removes those that are not wanted.
    pub fn retain(&mut self, mut is_wanted: impl FnMut(FigureId, &mut T) -> bool) {
        self.0.retain(|id, value| is_wanted(*id, value));
    }

    /// All values, mutable.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.0.values_mut()
    }
}

impl<T: Default> ByFigure<T> {
    /// The value of a figure, mutable; a new one if there was none.
    pub fn entry(&mut self, id: FigureId) -> &mut T {
        self.0.entry(id).or_default()
    }
}

impl<T> Default for ByFigure<T> {
    fn default() -> ByFigure<T> {
        ByFigure::new()
    }
}

impl<T> IntoIterator for ByFigure<T> {
    type Item = (FigureId, T);
    type IntoIter = std::collections::btree_map::IntoIter<FigureId, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<T> Extend<(FigureId, T)> for ByFigure<T> {
    fn extend<I: IntoIterator<Item = (FigureId, T)>>(&mut self, more: I) {
        self.0.extend(more);
    }
}

impl<T> FromIterator<(FigureId, T)> for ByFigure<T> {
    fn from_iter<I: IntoIterator<Item = (FigureId, T)>>(all: I) -> ByFigure<T> {
        ByFigure(all.into_iter().collect())
    }
}

impl<T, const N: usize> From<[(FigureId, T); N]> for ByFigure<T> {
    fn from(all: [(FigureId, T); N]) -> ByFigure<T> {
        all.into_iter().collect()
    }
}

/// By its JSON key.
impl<T> Index<&str> for ByFigure<T> {
    type Output = T;

    fn index(&self, name: &str) -> &T {
        let known = FigureId::named(name).and_then(|id| self.get(id));
        known.unwrap_or_else(|| panic!("there is no figure {name}"))
    }
}

impl<T: Serialize> Serialize for ByFigure<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.iter().map(|(id, value)| (id.name(), value)))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for ByFigure<T> {
    /// A later version may have figures that this one does not know; they are left out.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ByFigure<T>, D::Error> {
        let all = BTreeMap::<String, T>::deserialize(from)?;
        let known =
            all.into_iter().filter_map(|(name, value)| Some((FigureId::named(&name)?, value)));
        Ok(known.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_by_name_in_json_and_unknown_ones_are_left_out() {
        let all = ByFigure::from([(FigureId::MemoryPeak, 2), (FigureId::CpuTime, 1)]);
        let json = serde_json::to_string(&all).unwrap();
        assert_eq!(json, r#"{"cpu_time_seconds":1,"memory_peak_bytes":2}"#);
        let later = json.replace('{', r#"{"quanta_entangled":7,"#);
        assert_eq!(serde_json::from_str::<ByFigure<i32>>(&later).unwrap(), all);
        assert_eq!(all["memory_peak_bytes"], 2);
    }
}
