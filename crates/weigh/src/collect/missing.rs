//! Parts of a source that a collector cannot read, while it goes on with the others.

use crate::model::FaultSource;

/// What is missing: the first of each part, until it is reported.
#[derive(Debug, Default)]
pub struct MissingParts {
    known: Vec<&'static str>,
    unreported: Vec<(FaultSource, String)>,
}

impl MissingParts {
    /// Of a source that is not expected to have these parts: they are not reported.
    pub fn all_but(parts: &[&'static str]) -> MissingParts {
        MissingParts { known: parts.to_vec(), unreported: Vec::new() }
    }

    /// Notes that a part is missing, and why, unless it is known.
    pub fn add(
        &mut self,
        part: &'static str,
        of: impl Into<FaultSource>,
        why: impl FnOnce() -> String,
    ) {
        if !self.known.contains(&part) {
            self.known.push(part);
            self.unreported.push((of.into(), why()));
        }
    }

    /// What was not reported yet.
    pub fn report(&mut self) -> impl Iterator<Item = (FaultSource, String)> {
        self.unreported.drain(..)
    }
}
