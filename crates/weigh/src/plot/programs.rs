//! What each program of a run has and does: the parts of the charts that are stacked.
//!
//! A run of a few processes is shown process by process, a run of many program by program,
//! and what is too small to be seen as "others". Which is which is only known at the end, so
//! parts are merged as they become too many; a part keeps its colour in every chart.

use super::chart::{Chart, MOST_SERIES, Scale, Series, Timeline};
use super::crowd::Member;
use super::curve::Curve;
use super::steps::Steps;
use super::thin::Thinned;
use super::window::Window;
use crate::catalog::{Kind, Metric, Unit};
use crate::sample::{ProcessId, numbering};

/// What is counted for each program.
#[derive(Debug, Clone)]
pub struct Measure {
    /// The chart's name.
    pub name: String,
    /// What the chart shows, before `by program`.
    pub title: String,
    /// How it was got.
    pub note: String,
    /// The unit of the value.
    pub unit: Unit,
    /// How it is shown.
    pub shown: Shown,
    /// What it is.
    pub of: Of,
}

/// How a measure is shown over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// As it is; it goes with the process.
    Level,
    /// What was counted so far; it stays when the process goes.
    Total,
    /// What is counted in a second.
    Rate,
}

/// What is counted of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The first of two columns, the second where that is not known or above it.
    Either(usize, usize),
    /// The sum of two columns.
    Both(usize, usize),
    /// One column.
    Column(usize),
    /// That it is there.
    Being,
}

impl Of {
    /// The value; NaN when it is not known.
    fn value(self, values: &[f64]) -> f64 {
        let known = |column: usize| values.get(column).copied().unwrap_or(f64::NAN);
        match self {
            // The look at the first may be old: it is never above the second. NaN gives way.
            Of::Either(first, second) => known(first).min(known(second)),
            Of::Column(column) => known(column),
            Of::Both(one, other) => known(one) + known(other),
            Of::Being => 1.0,
        }
    }
}

impl Measure {
    /// A metric of the catalogue, by program.
    pub fn of(metric: &Metric, column: usize) -> Measure {
        Measure {
            name: metric.name(),
            title: metric.label.to_owned(),
            note: metric.help.to_owned(),
            unit: metric.unit,
            shown: if metric.kind == Kind::Counter { Shown::Rate } else { Shown::Level },
            of: Of::Column(column),
        }
    }
}

/// A part of the stacked charts: a process, a program, or the others.
#[derive(Debug)]
struct Slot {
    program: String,
    /// The process, while each has a slot of its own.
    process: Option<ProcessId>,
}

#[derive(Debug)]
struct Counter {
    measure: Measure,
    /// What each slot has.
    sums: Vec<f64>,
    /// How many of each slot it is not known of.
    unknown: Vec<u32>,
    /// The most that each slot had.
    peaks: Vec<f64>,
    curve: Curve,
}

/// What each program has and does, over time.
#[derive(Debug)]
pub struct Programs {
    /// The first is the others.
    slots: Vec<Slot>,
    counters: Vec<Counter>,
    merges: Vec<(usize, usize)>,
    by_process: bool,
    /// CPU time that the run used and no process was seen with.
    unseen: f64,
}

/// Where everybody is counted who has no slot.
const OTHERS: usize = 0;

/// Processes are told apart up to here.
const MOST_PROCESSES: usize = MOST_SERIES - 1;

/// Programs that are followed at once; the small ones are found out at the end.
const MOST_FOLLOWED: usize = 24;

impl Programs {
    /// Nobody yet. The first measure says how large a program is, the second what CPU time it
    /// took: by these two the small ones are found.
    pub fn new(measures: Vec<Measure>) -> Programs {
        let counter = |measure: Measure| Counter {
            curve: match measure.shown {
                Shown::Rate => Curve::Rates(Window::from_start(), Steps::stack()),
                Shown::Level | Shown::Total => Curve::Levels(Thinned::stack()),
            },
            measure,
            sums: vec![0.0],
            unknown: vec![0],
            peaks: vec![0.0],
        };
        Programs {
            slots: vec![Slot { program: "others".to_owned(), process: None }],
            counters: measures.into_iter().map(counter).collect(),
            merges: Vec::new(),
            by_process: true,
            unseen: 0.0,
        }
    }

    /// Programs are told apart from the beginning, not their processes. Before anybody comes.
    pub fn tell_programs_apart(&mut self) {
        self.by_process = false;
    }

    /// Slots that became one since the last time: the higher is part of the lower now.
    pub fn take_merges(&mut self) -> Vec<(usize, usize)> {
        std::mem::take(&mut self.merges)
    }

    /// Where somebody is counted.
    pub fn slot(&mut self, id: ProcessId, program: &str) -> usize {
        if self.by_process && self.slots.len() > MOST_PROCESSES {
            self.by_process = false;
            self.slots.iter_mut().for_each(|slot| slot.process = None);
            for from in (2..self.slots.len()).rev() {
                let into = (1..from).find(|s| self.slots[*s].program == self.slots[from].program);
                if let Some(into) = into {
                    self.merge(from, into);
                }
            }
        }
        let named = self.slots.iter().skip(1).position(|slot| slot.program == program);
        if let Some(place) = named.filter(|_| !self.by_process) {
            return place + 1;
        }
        if self.slots.len() > MOST_FOLLOWED {
            let weights = self.weights();
            let smallest = (1..weights.len()).min_by(|a, b| weights[*a].total_cmp(&weights[*b]));
            self.merge(smallest.unwrap_or(1), OTHERS);
        }
        let process = self.by_process.then_some(id);
        self.slots.push(Slot { program: program.to_owned(), process });
        for counter in &mut self.counters {
            counter.sums.push(0.0);
            counter.unknown.push(0);
            counter.peaks.push(0.0);
        }
        self.slots.len() - 1
    }

    /// A process runs another program now.
    pub fn became(&mut self, member: &Member, id: ProcessId, program: &str) -> usize {
        if self.by_process {
            self.slots[member.slot].program = program.to_owned();
            return member.slot;
        }
        self.went(member);
        let slot = self.slot(id, program);
        for (counter, counted) in self.counters.iter_mut().zip(&member.counted) {
            counter.add(slot, *counted);
        }
        slot
    }

    /// What is counted of somebody who has just come to a slot: nothing is known yet.
    pub fn came(&mut self, slot: usize) -> Vec<f64> {
        for counter in &mut self.counters {
            counter.add(slot, f64::NAN);
        }
        vec![f64::NAN; self.counters.len()]
    }

    /// The values of a process changed.
    pub fn changed(&mut self, member: &mut Member) {
        for (counter, counted) in self.counters.iter_mut().zip(&mut member.counted) {
            let value = counter.measure.of.value(&member.values);
            if value.is_nan() {
                continue;
            }
            if counter.measure.shown == Shown::Level {
                counter.take(member.slot, *counted);
                counter.add(member.slot, value);
                *counted = value;
            } else if counted.is_nan() || value > *counted {
                counter.sums[member.slot] += value - if counted.is_nan() { 0.0 } else { *counted };
                *counted = value;
            }
        }
    }

    /// A process went.
    pub fn went(&mut self, member: &Member) {
        for (counter, counted) in self.counters.iter_mut().zip(&member.counted) {
            counter.take(member.slot, *counted);
        }
    }

    /// Everybody was looked at. The kernel's own count of the run's CPU time, where there is
    /// one, tells what those took who were too short to be seen.
    pub fn look(&mut self, at: f64, run_cpu: Option<f64>) {
        let mut unseen = 0.0;
        if let (Some(all), Some(cpu)) = (run_cpu, self.counters.get(CPU)) {
            unseen = (all - cpu.sums.iter().sum::<f64>()).max(0.0);
            self.unseen = self.unseen.max(unseen);
        }
        for counter in &mut self.counters {
            // What is counted for nobody is counted for the others while we look. The clock
            // ticks of processes come in late: a rate of the others is not taken back for it.
            let extra = match counter.measure.shown {
                Shown::Rate if counter.measure.is_cpu_time() => self.unseen,
                Shown::Total if counter.measure.is_cpu_time() => unseen,
                _ => 0.0,
            };
            counter.sums[OTHERS] += extra;
            counter.look(at);
            counter.sums[OTHERS] -= extra;
        }
    }

    /// How much each slot matters: its share of the largest size and of the CPU time.
    fn weights(&self) -> Vec<f64> {
        let mut weights = vec![0.0; self.slots.len()];
        let mut add = |parts: &[f64]| {
            let all = parts.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            weights.iter_mut().zip(parts).for_each(|(weight, part)| *weight += part / all);
        };
        if let Some(size) = self.counters.get(SIZE) {
            // Somebody who has just come has no peak yet.
            let sizes = size.peaks.iter().zip(&size.sums).map(|(peak, sum)| peak.max(*sum));
            add(&sizes.collect::<Vec<_>>());
        }
        if let Some(cpu) = self.counters.get(CPU) {
            add(&cpu.sums);
        }
        weights
    }

    fn merge(&mut self, from: usize, into: usize) {
        self.slots.remove(from);
        for counter in &mut self.counters {
            let (sum, peak) = (counter.sums.remove(from), counter.peaks.remove(from));
            counter.sums[into] += sum;
            counter.peaks[into] += peak;
            let unknown = counter.unknown.remove(from);
            counter.unknown[into] += unknown;
            counter.curve.merge(from, into);
        }
        self.merges.push((from, into));
    }

    /// The charts, in the order of the measures; of what never was anything there is none.
    pub fn charts(mut self, timeline: &Timeline) -> Vec<Chart> {
        while self.slots.len() > MOST_SERIES {
            let weights = self.weights();
            let smallest = (1..weights.len()).min_by(|a, b| weights[*a].total_cmp(&weights[*b]));
            self.merge(smallest.unwrap_or(1), OTHERS);
        }
        let weights = self.weights();
        let mut order: Vec<usize> = (1..self.slots.len()).collect();
        order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
        order.push(OTHERS);
        let names: Vec<String> = self.slots.iter().map(Slot::name).collect();
        let parted = if self.by_process { BY_PROCESS } else { "by program" };
        let charts = self.counters.into_iter();
        charts.filter_map(|counter| counter.chart(&names, &order, parted, timeline)).collect()
    }
}

const BY_PROCESS: &str = "by process";

/// The place of the measure of sizes.
const SIZE: usize = 0;
/// The place of the measure of CPU time.
const CPU: usize = 1;

impl Slot {
    fn name(&self) -> String {
        match self.process {
            Some(id) => format!("{} {}", self.program, numbering::shown(id.pid)),
            None => self.program.clone(),
        }
    }
}

impl Measure {
    fn is_cpu_time(&self) -> bool {
        matches!(self.of, Of::Both(..)) && self.unit == Unit::Seconds
    }
}

impl Counter {
    /// A level is added to a slot; totals are only ever raised.
    fn add(&mut self, slot: usize, level: f64) {
        if self.measure.shown == Shown::Level {
            if level.is_nan() { self.unknown[slot] += 1 } else { self.sums[slot] += level }
        }
    }

    /// A level is taken from a slot.
    fn take(&mut self, slot: usize, level: f64) {
        if self.measure.shown == Shown::Level {
            if level.is_nan() { self.unknown[slot] -= 1 } else { self.sums[slot] -= level }
        }
    }

    fn look(&mut self, at: f64) {
        for (peak, sum) in self.peaks.iter_mut().zip(&self.sums) {
            *peak = peak.max(*sum);
        }
        if self.unknown.iter().all(|count| *count == 0) {
            self.curve.push(at, &self.sums);
            return;
        }
        // What is not known of one of them is not known of all together.
        let known = self.sums.iter().zip(&self.unknown);
        let row: Vec<f64> =
            known.map(|(sum, count)| if *count > 0 { f64::NAN } else { *sum }).collect();
        self.curve.push(at, &row);
    }

    fn chart(
        self,
        names: &[String],
        order: &[usize],
        parted: &str,
        timeline: &Timeline,
    ) -> Option<Chart> {
        let form = self.curve.form(true);
        let (times, mut columns) = self.curve.finish();
        columns.resize(names.len(), vec![0.0; times.len()]);
        let is_something = |values: &[f64]| values.iter().any(|value| *value > 0.0);
        let series: Vec<Series> = order
            .iter()
            .enumerate()
            .map(|(place, slot)| Series {
                name: names[*slot].clone(),
                colour: if *slot == OTHERS { MOST_SERIES - 1 } else { place },
                values: std::mem::take(&mut columns[*slot]),
            })
            .filter(|series| is_something(&series.values))
            .collect();
        let rate = self.measure.shown == Shown::Rate;
        (!series.is_empty()).then(|| Chart {
            name: self.measure.name,
            title: match self.measure.of {
                // Each process is one.
                Of::Being if parted == BY_PROCESS => self.measure.title,
                _ => format!("{} {parted}", self.measure.title),
            },
            note: self.measure.note,
            scale: if rate {
                Scale::rate(self.measure.unit)
            } else {
                Scale::level(self.measure.unit)
            },
            form,
            times,
            series,
            limits: Vec::new(),
            peak: None,
            timeline: timeline.clone(),
        })
    }
}
