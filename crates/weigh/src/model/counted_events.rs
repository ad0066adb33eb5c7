//! Which events of perf a run counts, and what is derived from them: as `run.json` has it, so that a
//! recording is read without the tables of microarchitectures.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The events that a run counts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CountedEvents {
    /// What was requested and is counted: groups of events, or events by themselves.
    pub groups: Vec<CountedGroup>,
    /// What is derived from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub derived: Vec<DerivedFormula>,
    /// How many groups take turns, because there are fewer counters than events; 1 when all events
    /// are counted all the time.
    pub rounds: usize,
    /// Events whose name in the rows is shorter, and that name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub shortened: BTreeMap<String, String>,
    /// What was requested and cannot be counted, and why.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub refused: BTreeMap<String, String>,
}

/// Events that are counted together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CountedGroup {
    /// Its name.
    pub name: String,
    /// Its events.
    pub events: Vec<String>,
}

/// A value that is derived from counts.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DerivedFormula {
    /// Its name.
    pub name: String,
    /// How it is computed.
    pub formula: String,
    /// The truth is this or more, for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower_bound: Option<String>,
    /// The truth may be less or more, for this reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimate: Option<String>,
}
