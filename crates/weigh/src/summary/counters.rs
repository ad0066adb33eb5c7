//! Events that perf counted for the run, and what is derived from them.
//!
//! An event that had a counter for a part of the time only is scaled to all of it, as perf does, and
//! is then an estimate: a program does not do the same all the time.

use serde::{Deserialize, Serialize};

use super::accumulate::Accumulator;
use super::figure::{Figure, Figures, Method};
use crate::catalog::metrics::EventCount;
use crate::catalog::{FigureId, SourceId};
use crate::counters::{DerivedId, Formula, arithmetic_intensity, flops};
use crate::model::counted_events::{CountedEvents, DerivedFormula};
use crate::model::{Entity, Name, Table};
use crate::quantity;

/// What perf counted for a run.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Counters {
    /// Each event.
    pub events: Vec<EventTotal>,
    /// What is derived from them.
    pub derived: Vec<DerivedTotal>,
    /// What was requested and is not counted, and why.
    #[serde(default, skip_serializing_if = "std::collections::BTreeMap::is_empty")]
    pub refused: std::collections::BTreeMap<String, String>,
}

/// An event, counted over the whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventTotal {
    /// Its name.
    pub name: String,
    /// How often it was counted.
    pub count: u64,
    /// The share of the CPU time of the run in which it was; null for events of the machine.
    pub running_ratio: Option<f64>,
    /// How often it happened.
    pub value: Figure,
}

/// A value that is derived from events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DerivedTotal {
    /// Its name.
    pub name: String,
    /// A few words.
    pub label: String,
    /// Its unit.
    pub unit: String,
    /// What it is over the whole run.
    pub value: Figure,
    /// The same for each second of the run, of an amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_second: Option<f64>,
}

/// What an event counted in some time.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Counted {
    pub(crate) count: f64,
    /// CPU time in which it was counted, and in which it should have been; `None` of the machine.
    pub(crate) times: Option<(f64, f64)>,
}

/// What is missing of the time is no more than reading the clocks takes.
const WHOLE: f64 = 0.999;

impl Counted {
    fn of(row: &EventCount) -> Option<Counted> {
        Some(Counted { count: row.count? as f64, times: row.running.zip(row.enabled) })
    }

    /// The share of the time in which it was counted; `None` of the machine, and when nothing ran.
    fn share(self) -> Option<f64> {
        let (running, enabled) = self.times.filter(|(_, enabled)| *enabled > 0.0)?;
        Some((running / enabled).min(1.0))
    }

    fn is_whole(self) -> bool {
        self.share().is_none_or(|share| share >= WHOLE)
    }

    /// How often it happened, as far as is known.
    fn scaled(self) -> Option<f64> {
        match self.share() {
            None if self.times.is_some() => None,
            None => Some(self.count),
            Some(share) if share > 0.0 => Some(self.count / share),
            Some(_) => None,
        }
    }
}

/// The last counts of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct EventCounts(Vec<(Name, Counted)>);

impl EventCounts {
    /// Adds the rows of a tick.
    pub(super) fn add(&mut self, table: &Table) {
        for (row, entity) in table.entities().iter().enumerate() {
            let (Entity::Named(name), Some(counted)) = (entity, Counted::of(&table.get(row)))
            else {
                continue;
            };
            match self.0.iter_mut().find(|(known, _)| known == name) {
                Some((_, last)) => *last = counted,
                None => self.0.push((*name, counted)),
            }
        }
    }

    fn get(&self, name: &str) -> Option<Counted> {
        let name = Name::new(name.as_bytes());
        self.0.iter().find(|(known, _)| *known == name).map(|(_, counted)| *counted)
    }

    /// The counts that phases have, in the order of [`OF_PHASES`].
    pub(super) fn of_phases(&self) -> PhaseCounts {
        OF_PHASES.map(|name| self.get(name))
    }
}

/// Events of which phases have figures.
pub(crate) const OF_PHASES: [&str; 11] = [
    "instructions",
    "cycles",
    "branches",
    "branch-misses",
    "cache-references",
    "cache-misses",
    "slots",
    "topdown-retiring",
    "topdown-bad-spec",
    "topdown-fe-bound",
    "topdown-be-bound",
];

/// The counts of these events so far, or in some time.
pub(crate) type PhaseCounts = [Option<Counted>; OF_PHASES.len()];

/// Figures that are a derived value.
const DERIVED: [(FigureId, DerivedId); 8] = [
    (FigureId::InstructionsPerCycle, DerivedId::InstructionsPerCycle),
    (FigureId::BranchMissRatio, DerivedId::BranchMissRatio),
    (FigureId::CacheMissRatio, DerivedId::CacheMissRatio),
    (FigureId::MemoryRead, DerivedId::MemoryReadBytes),
    (FigureId::SlotsRetiring, DerivedId::Retiring),
    (FigureId::SlotsBadSpeculation, DerivedId::BadSpeculation),
    (FigureId::SlotsFrontendBound, DerivedId::FrontendBound),
    (FigureId::SlotsBackendBound, DerivedId::BackendBound),
];

/// Counts, and what is known of them.
struct Evidence<'a> {
    declared: &'a CountedEvents,
    count: &'a dyn Fn(&str) -> Option<Counted>,
    /// Why none of it is exact.
    doubt: Option<&'a str>,
}

impl Evidence<'_> {
    fn counted(&self, event: &str) -> Option<Counted> {
        let row = self.declared.shortened.get(event).map_or(event, String::as_str);
        (self.count)(row)
    }

    /// How often an event happened.
    fn event(&self, event: &str) -> Figure {
        let source = format!("perf {event}");
        let Some(counted) = self.counted(event) else {
            return Figure::unknown(&source, NOT_COUNTED);
        };
        let Some(value) = counted.scaled() else {
            return Figure::unknown(&source, self.why_never(counted));
        };
        let least = counted.count;
        let mut figure = match (counted.times, counted.is_whole(), self.doubt) {
            (None, ..) => Figure::exact(value, &source).because(OF_MACHINE),
            (_, true, None) => Figure::exact(value, &source),
            (_, true, Some(doubt)) => Figure::sampled(value, &source).because(doubt),
            (_, false, _) => {
                let reason = partial(counted.share().unwrap_or(0.0));
                Figure::between(value, Method::Estimated, least, None, &source).because(&reason)
            }
        };
        figure.lower = figure.lower.map(|lower| lower.min(value));
        figure
    }

    fn why_never(&self, counted: Counted) -> &'static str {
        match counted.times {
            Some((_, enabled)) if enabled <= 0.0 => "nothing ran in user mode",
            _ if self.declared.rounds > 1 => {
                "the run was too short for each group to have its turn"
            }
            _ => "its counters were in use by others: the NMI watchdog, or another perf",
        }
    }

    /// A derived value.
    fn derived(&self, derived: &DerivedFormula) -> Figure {
        let source = format!("perf {}", derived.formula);
        let Ok(formula) = Formula::parse(&derived.formula) else {
            return Figure::unknown(&source, "its formula cannot be read");
        };
        let names = formula.names();
        let parts: Vec<Figure> = names.iter().map(|name| self.event(name)).collect();
        if let Some(missing) = parts.iter().find(|part| part.value.is_none()) {
            return Figure::unknown(&source, missing.reason.as_deref().unwrap_or(NOT_COUNTED));
        }
        let value = |name: &str| {
            let place = names.iter().position(|known| *known == name)?;
            parts[place].value
        };
        let Some(value) = formula.evaluate(&value) else {
            return Figure::unknown(&source, "nothing that it is a share of happened");
        };
        let is_exact = parts.iter().all(|part| part.method == Some(Method::Exact));
        let reasons = parts.iter().find_map(|part| part.reason.clone());
        let figure = match (&derived.lower_bound, &derived.estimate) {
            (None, None) if is_exact => Figure::exact(value, &source),
            (Some(why), _) if is_exact => {
                return Figure::between(value, Method::Estimated, value, None, &source)
                    .because(why);
            }
            (lower, estimate) => {
                let figure = Figure {
                    value: Some(value),
                    method: Some(Method::Estimated),
                    source: source.clone(),
                    ..Figure::default()
                };
                match lower.as_ref().or(estimate.as_ref()) {
                    Some(why) => return figure.because(why),
                    None => figure,
                }
            }
        };
        Figure { reason: reasons, ..figure }
    }

    fn named(&self, id: DerivedId) -> Option<Figure> {
        let declared = self.declared.derived.iter().find(|derived| derived.name == id.name())?;
        Some(self.derived(declared))
    }
}

const NOT_COUNTED: &str = "it was not counted";
const OF_MACHINE: &str = "of the whole machine, whatever ran on it";
const FOUND_LATER: &str = "processes are counted from the sample in which they are first found";

fn partial(share: f64) -> String {
    format!("counted in {} of the CPU time, and scaled", quantity::ratio(share))
}

/// The figures of some counts: those of which the events are counted.
fn figures(evidence: &Evidence<'_>) -> Figures {
    let mut figures = Figures::new();
    let counts = [(FigureId::Instructions, "instructions"), (FigureId::Cycles, "cycles")];
    for (id, event) in counts {
        if evidence.counted(event).is_some() {
            figures.insert(id, evidence.event(event));
        }
    }
    for (id, derived) in DERIVED {
        figures.extend(evidence.named(derived).map(|figure| (id, figure)));
    }
    figures
}

/// Adds the figures of the run.
pub(super) fn add(run: &Accumulator, figures: &mut Figures) {
    let Some(declared) = &run.manifest.events else { return };
    let evidence = Evidence { declared, count: &|name| run.counts.get(name), doubt: doubt(run) };
    figures.extend(self::figures(&evidence));
    let value = |id| evidence.named(id)?.value;
    let source = "perf, floating-point operations / measured time";
    if let Some(flops) = flops(&value) {
        let of = [DerivedId::Flops, DerivedId::SingleFlops, DerivedId::DoubleFlops];
        let parts = of.into_iter().filter_map(|id| evidence.named(id));
        let whole = parts.clone().all(|part| part.method == Some(Method::Exact));
        let seconds = run.duration();
        let rate = (seconds > 0.0).then(|| flops / seconds);
        let method = if whole { Method::Exact } else { Method::Estimated };
        let figure = match rate {
            Some(rate) if whole => Figure::between(rate, method, rate, Some(rate), source),
            Some(rate) => Figure {
                value: Some(rate),
                method: Some(method),
                source: source.to_owned(),
                reason: parts.clone().find_map(|part| part.reason),
                ..Figure::default()
            },
            None => Figure::unknown(source, "the run has no duration"),
        };
        figures.insert(FigureId::FlopsMean, figure);
    }
    if let Some(intensity) = arithmetic_intensity(&value) {
        let source = "perf, floating-point operations / bytes read from memory";
        let figure = Figure {
            value: Some(intensity),
            method: Some(Method::Estimated),
            source: source.to_owned(),
            reason: evidence.named(DerivedId::MemoryReadBytes).and_then(|bytes| bytes.reason),
            ..Figure::default()
        };
        figures.insert(FigureId::ArithmeticIntensity, figure);
    }
}

/// The figures of a phase, by what was counted in it.
pub(super) fn of_phase(run: &Accumulator, counts: &PhaseCounts, is_sharp: bool) -> Figures {
    let Some(declared) = &run.manifest.events else { return Figures::new() };
    let count = |name: &str| {
        let place = OF_PHASES.iter().position(|known| *known == name)?;
        counts[place]
    };
    let between = "interpolated: no sample was taken at the start or end of the phase";
    let doubt = doubt(run).or((!is_sharp).then_some(between));
    let evidence = Evidence { declared, count: &count, doubt };
    let mut figures = figures(&evidence);
    // What needs other events has no reason that a reader could act on.
    figures.retain(|_, figure| figure.value.is_some());
    figures
}

/// Why counts of the run may lack something.
fn doubt(run: &Accumulator) -> Option<&'static str> {
    run.manifest.finds_processes_later().then_some(FOUND_LATER)
}

/// All that was counted, for those who ask for it.
pub(super) fn counters(run: &Accumulator) -> Option<Counters> {
    let declared = run.manifest.events.as_ref()?;
    let evidence = Evidence { declared, count: &|name| run.counts.get(name), doubt: doubt(run) };
    let mut names: Vec<&str> = Vec::new();
    let events = declared.groups.iter().flat_map(|group| &group.events);
    for name in ["instructions", "cycles"].into_iter().chain(events.map(String::as_str)) {
        if !names.contains(&name) && evidence.counted(name).is_some() {
            names.push(name);
        }
    }
    let event = |name: &str| {
        let counted = evidence.counted(name)?;
        Some(EventTotal {
            name: name.to_owned(),
            count: counted.count as u64,
            running_ratio: counted.share(),
            value: evidence.event(name),
        })
    };
    let seconds = run.duration();
    let derived = |declared: &DerivedFormula| {
        let id = DerivedId::named(&declared.name)?;
        let value = evidence.derived(declared);
        let amount = value.value.filter(|_| id.unit().is_amount() && seconds > 0.0);
        Some(DerivedTotal {
            name: declared.name.clone(),
            label: id.label().to_owned(),
            unit: id.unit().name().to_owned(),
            per_second: amount.map(|amount| amount / seconds),
            value,
        })
    };
    let counters = Counters {
        events: names.into_iter().filter_map(event).collect(),
        derived: declared.derived.iter().filter_map(derived).collect(),
        refused: declared.refused.clone(),
    };
    let why = run.reason(SourceId::Perf).filter(|_| counters.events.is_empty());
    match why {
        Some(why) => Some(Counters {
            refused: [(SourceId::Perf.name().to_owned(), why.to_owned())].into(),
            ..counters
        }),
        None => Some(counters).filter(|all| !all.events.is_empty() || !all.refused.is_empty()),
    }
}

#[cfg(test)]
mod tests;
