//! The counters that a run asks for: what they are called is turned into events here.

use super::RunCounters;
use super::packing::{RefusedGroup, RequestedGroup};
use super::plan::Plan;
use crate::counters::named;
use crate::counters::tables::{self, Microarchitecture};
use crate::counters::{Derived, GroupId, Trust, generic};
use crate::host::hardware::microarchitecture;
use crate::host::{Dir, Host};
use crate::model::counted_events::{CountedEvents, CountedGroup, DerivedFormula};
use crate::model::settings::{self, Settings};
use crate::parse::cpuinfo;

/// Counters that are ready to be opened.
#[derive(Default)]
pub struct PreparedCounters {
    /// The counters; `None` when nothing can be counted.
    pub counters: Option<RunCounters>,
    /// What they count.
    pub declared: CountedEvents,
    /// What was requested by name and cannot be counted.
    pub faults: Vec<String>,
}

/// What is known of the counters of this machine's processor.
fn table(host: &Host) -> Option<Microarchitecture> {
    let mut buffer = Vec::new();
    let bytes = host.proc.read(c"cpuinfo", &mut buffer).ok()?;
    tables::of(microarchitecture::of(&cpuinfo::parse(bytes).ok()?).ok()?)
}

/// Everything that was requested, by name.
#[derive(Default)]
struct RequestedEvents {
    groups: Vec<RequestedGroup>,
    derived: Vec<(String, Derived)>,
    refused: Vec<RefusedGroup>,
}

impl RequestedEvents {
    fn of(host: &Host, settings: &Settings) -> Result<RequestedEvents, settings::Error> {
        let ids = match &settings.perf {
            Some(names) => group_ids(names)?,
            // Each inherited event makes every fork of the run slower: only who asks pays for it.
            None => Vec::new(),
        };
        // Generic events need nothing of the machine, and its list of processors may be long.
        let is_generic = |id: &GroupId| generic::group(*id).is_some();
        let needs_table = !settings.events.is_empty() || !ids.iter().all(is_generic);
        let table = needs_table.then(|| table(host)).flatten();
        let mut requests = RequestedEvents::default();
        for id in ids {
            requests.add_group(id, table.as_ref(), &host.sys);
        }
        for text in &settings.events {
            let events = named::parse(text, &host.sys, table.as_ref()).map_err(|error| {
                let (what, nearest) = (error.to_string(), error.nearest);
                settings::Error::PerfEvent { what, nearest }
            })?;
            requests.groups.push(RequestedGroup { name: text.clone(), events });
        }
        Ok(requests)
    }

    fn add_group(&mut self, id: GroupId, table: Option<&Microarchitecture>, files: &Dir) {
        for group in tables::groups(id, table, files) {
            let name = id.name().to_owned();
            match group {
                Ok(group) => {
                    let derived = group.derived.into_iter();
                    self.derived.extend(derived.map(|derived| (name.clone(), derived)));
                    self.groups.push(RequestedGroup { name, events: group.events });
                }
                Err(missing) => self.refused.push(RefusedGroup { name, why: missing.why }),
            }
        }
    }
}

fn group_ids(names: &[String]) -> Result<Vec<GroupId>, settings::Error> {
    GroupId::list(&names.join(",")).map_err(|error| {
        let (what, nearest) = (error.to_string(), error.nearest);
        settings::Error::PerfEvent { what, nearest }
    })
}

/// Finds the events that the settings ask for, and what of them can be counted here. Nothing is
/// counted yet. An error is a name that means no event.
pub fn prepare(host: &Host, settings: &Settings) -> Result<PreparedCounters, settings::Error> {
    let RequestedEvents { groups, derived, refused } = RequestedEvents::of(host, settings)?;
    let requested: Vec<CountedGroup> = groups
        .iter()
        .map(|group| CountedGroup {
            name: group.name.clone(),
            events: group.events.iter().map(|event| event.name.clone()).collect(),
        })
        .collect();
    let mut plan = Plan::of(host, groups);
    plan.refused.extend(refused);
    let is_refused = |name: &str| plan.refused.iter().any(|refused| refused.name == name);
    let mut declared = CountedEvents {
        groups: requested.into_iter().filter(|group| !is_refused(&group.name)).collect(),
        derived: derived
            .into_iter()
            .filter(|(group, _)| !is_refused(group))
            .map(|(_, derived)| recorded(&derived))
            .collect(),
        rounds: plan.rounds.len(),
        ..CountedEvents::default()
    };
    declared.refused = plan.refused.iter().map(|one| (one.name.clone(), one.why.clone())).collect();
    let refused = plan.refused.iter();
    let mut faults: Vec<String> =
        refused.map(|RefusedGroup { name, why }| format!("{name}: {why}")).collect();
    let counters = (!plan.is_empty()).then(|| RunCounters::new(host, plan));
    let counters = counters.and_then(|counters| counters.map_err(|why| faults.push(why)).ok());
    if let Some(counters) = &counters {
        let names = counters.shortened_names();
        let names = names.map(|(event, row)| (event.to_owned(), row.to_owned()));
        declared.shortened = names.collect();
    }
    Ok(PreparedCounters { counters, declared, faults })
}

fn recorded(derived: &Derived) -> DerivedFormula {
    let (lower_bound, estimate) = match &derived.trust {
        Trust::Counted => (None, None),
        Trust::LowerBound(why) => (Some(why.clone()), None),
        Trust::Estimate(why) => (None, Some(why.clone())),
    };
    let (name, formula) = (derived.id.name().to_owned(), derived.formula.to_string());
    DerivedFormula { name, formula, lower_bound, estimate }
}
