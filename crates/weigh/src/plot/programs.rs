//! What each program of a run uses: the parts of the stacked charts.
//!
//! A run of a few processes is shown process by process, a run of many program by program, and what
//! is too small to be visible as "others". Which is which is only known at the end, so parts are
//! merged when there are too many; a part keeps its colour in every chart.
//!
//! CPU time of the run that no sample has found at a process (of processes too short to be
//! sampled, and of the last moments of others) is unattributed, which is no program.

use super::chart::{Chart, ChartSeries, MAX_SERIES, Scale, Timeline};
use super::curve::ChartCurve;
use super::processes::PlottedProcess;
use super::steps::RateSteps;
use super::thin::Thinned;
use super::window::ChartWindow;
use crate::catalog::{Kind, Metric, Unit};
use crate::model::{ProcessId, numbering};

/// What is counted for each program.
#[derive(Debug, Clone)]
pub(super) struct Measure {
    /// The chart's name.
    pub name: String,
    /// What the chart shows, before `by program`.
    pub title: String,
    /// Its source.
    pub note: String,
    /// The unit of the value.
    pub unit: Unit,
    /// How it is shown.
    pub shown: MeasureForm,
    /// What it is.
    pub of: MeasureOf,
}

/// How a measure is shown over time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeasureForm {
    /// As it is; it ends with the process.
    Gauge,
    /// The count so far; it stays after the exit.
    Cumulative,
    /// The rate per second.
    Rate,
}

/// What is counted of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MeasureOf {
    /// The first of two columns, the second where that is not known or above it.
    CappedBy(usize, usize),
    /// CPU time: the sum of two columns, or the third where that is finer.
    CpuTime(usize, usize, Option<usize>),
    /// One column.
    Column(usize),
    /// That it exists.
    Count,
}

impl MeasureOf {
    /// The value; NaN when it is not known.
    fn value(self, values: &[f64]) -> f64 {
        let known = |column: usize| values.get(column).copied().unwrap_or(f64::NAN);
        match self {
            // The sample of the first may be old: it is never above the second. NaN gives way.
            MeasureOf::CappedBy(first, second) => known(first).min(known(second)),
            MeasureOf::Column(column) => known(column),
            // Clock ticks of both are truncated. The third may be old: then it is below them.
            MeasureOf::CpuTime(user, system, finer) => {
                let ticks = known(user) + known(system);
                finer.map_or(ticks, |finer| ticks.max(known(finer)))
            }
            MeasureOf::Count => 1.0,
        }
    }
}

impl Measure {
    /// A metric of the catalogue, by program.
    pub(super) fn of(metric: &Metric, column: usize) -> Measure {
        Measure {
            name: metric.name(),
            title: metric.label.to_owned(),
            note: metric.help.to_owned(),
            unit: metric.unit,
            shown: if metric.kind == Kind::Counter {
                MeasureForm::Rate
            } else {
                MeasureForm::Gauge
            },
            of: MeasureOf::Column(column),
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

/// CPU time as it is drawn: in total at most what the run used.
#[derive(Debug, Default)]
struct Attributed {
    /// What of each slot is drawn so far.
    totals: Vec<f64>,
    /// CPU time of the run at the end of the last window.
    run: f64,
}

#[derive(Debug)]
struct StackedMeasure {
    measure: Measure,
    /// The value of each slot.
    sums: Vec<f64>,
    /// Of how many members of each slot it is not known.
    unknown: Vec<u32>,
    /// The peak of each slot.
    peaks: Vec<f64>,
    curve: ChartCurve,
}

/// What each program uses, over time.
#[derive(Debug)]
pub(super) struct Programs {
    /// The first is the others, the second what is unattributed.
    slots: Vec<Slot>,
    counters: Vec<StackedMeasure>,
    merges: Vec<(usize, usize)>,
    by_process: bool,
    attributed: Attributed,
    /// At most so many cores can be used.
    cores: f64,
}

/// A part with less of the largest size and the CPU time together is a few pixels of both charts.
const INVISIBLE: f64 = 0.03;

/// Where processes without a slot are counted.
const OTHERS: usize = 0;

/// Where CPU time of the run is counted that no sample has found at a process.
const UNATTRIBUTED: usize = 1;

/// The first slot of a process or program.
const FIRST: usize = 2;

/// Processes have slots of their own up to this number.
const MOST_PROCESSES: usize = MAX_SERIES - 1;

/// Programs that are tracked at once; the small ones are determined at the end.
const MOST_FOLLOWED: usize = 24;

impl Programs {
    /// No process yet, on a machine of so many cores. The first measure is the size of a program,
    /// the second its CPU time: these two determine the small ones.
    pub(super) fn new(measures: Vec<Measure>, cores: f64) -> Programs {
        let counter = |measure: Measure| StackedMeasure {
            curve: match measure.shown {
                MeasureForm::Rate => {
                    ChartCurve::Rates(ChartWindow::from_start(), RateSteps::stack())
                }
                MeasureForm::Gauge => ChartCurve::Gauges(Thinned::stack()),
                MeasureForm::Cumulative => ChartCurve::Counters(Thinned::stack()),
            },
            measure,
            sums: vec![0.0; FIRST],
            unknown: vec![0; FIRST],
            peaks: vec![0.0; FIRST],
        };
        let slot = |name: &str| Slot { program: name.to_owned(), process: None };
        Programs {
            slots: vec![slot("others"), slot("Unattributed")],
            counters: measures.into_iter().map(counter).collect(),
            merges: Vec::new(),
            by_process: true,
            attributed: Attributed::default(),
            cores,
        }
    }

    /// Uses slots for programs from the beginning, not for processes. Before the first process.
    pub(super) fn group_by_program(&mut self) {
        self.by_process = false;
    }

    /// Slots merged since the last call: the higher is part of the lower now.
    pub(super) fn take_merges(&mut self) -> Vec<(usize, usize)> {
        std::mem::take(&mut self.merges)
    }

    /// Where a process is counted.
    pub(super) fn slot(&mut self, id: ProcessId, program: &str) -> usize {
        if self.by_process && self.slots.len() - FIRST >= MOST_PROCESSES {
            self.by_process = false;
            self.slots.iter_mut().for_each(|slot| slot.process = None);
            for from in (FIRST + 1..self.slots.len()).rev() {
                let program = &self.slots[from].program;
                let into = (FIRST..from).find(|slot| self.slots[*slot].program == *program);
                if let Some(into) = into {
                    self.merge(from, into);
                }
            }
        }
        let named = self.slots.iter().skip(FIRST).position(|slot| slot.program == program);
        if let Some(place) = named.filter(|_| !self.by_process) {
            return place + FIRST;
        }
        if self.slots.len() - FIRST >= MOST_FOLLOWED {
            self.merge_smallest();
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

    /// A process called exec.
    pub(super) fn execs(&mut self, member: &PlottedProcess, id: ProcessId, program: &str) -> usize {
        if self.by_process {
            self.slots[member.slot].program = program.to_owned();
            return member.slot;
        }
        self.exit(member);
        let slot = self.slot(id, program);
        for (counter, counted) in self.counters.iter_mut().zip(&member.counted) {
            counter.add(slot, *counted);
        }
        slot
    }

    /// The counts of a process that was just added to a slot: nothing is known yet.
    pub(super) fn started(&mut self, slot: usize) -> Vec<f64> {
        for counter in &mut self.counters {
            counter.add(slot, f64::NAN);
        }
        vec![f64::NAN; self.counters.len()]
    }

    /// The values of a process changed.
    pub(super) fn changed(&mut self, member: &mut PlottedProcess, values: &[f64]) {
        for (counter, counted) in self.counters.iter_mut().zip(&mut member.counted) {
            let value = counter.measure.of.value(values);
            if value.is_nan() {
                continue;
            }
            if counter.measure.shown == MeasureForm::Gauge {
                counter.take(member.slot, *counted);
                counter.add(member.slot, value);
                *counted = value;
            } else if counted.is_nan() || value > *counted {
                counter.sums[member.slot] += value - if counted.is_nan() { 0.0 } else { *counted };
                *counted = value;
            }
        }
    }

    /// A process exited.
    pub(super) fn exit(&mut self, member: &PlottedProcess) {
        for (counter, counted) in self.counters.iter_mut().zip(&member.counted) {
            counter.take(member.slot, *counted);
        }
    }

    /// All processes were sampled, and the run has used so much CPU time in all. `largest` is the
    /// slot and the resident memory of the largest process.
    pub(super) fn tick(&mut self, at: f64, run_cpu: f64, largest: Option<(usize, f64)>) {
        let sampled = self.counters.get(CPU).map_or(0.0, |cpu| cpu.sums.iter().sum());
        for counter in &mut self.counters {
            match (counter.measure.is_cpu_time(), counter.measure.shown) {
                (true, MeasureForm::Rate) => {
                    self.attributed.window(counter, at, run_cpu, self.cores);
                }
                (true, MeasureForm::Cumulative) => {
                    counter.tick_with(at, (run_cpu - sampled).max(0.0));
                }
                _ if counter.measure.is_size() => counter.tick_at_least(at, largest),
                _ => counter.tick(at),
            }
        }
    }

    /// The weight of each slot: its share of the largest size and of the CPU time.
    fn weights(&self) -> Vec<f64> {
        let mut weights = vec![0.0; self.slots.len()];
        let mut add = |parts: &[f64]| {
            let all = parts.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            weights.iter_mut().zip(parts).for_each(|(weight, part)| *weight += part / all);
        };
        if let Some(size) = self.counters.get(SIZE) {
            // A process that has just started has no peak yet.
            let sizes = size.peaks.iter().zip(&size.sums).map(|(peak, sum)| peak.max(*sum));
            add(&sizes.collect::<Vec<_>>());
        }
        if let Some(cpu) = self.counters.get(CPU) {
            add(&cpu.sums);
        }
        weights
    }

    /// Whether there are parts that nobody can see, beside those that are merged already: a single
    /// one keeps its name.
    fn has_invisible(&self) -> bool {
        let weights = self.weights();
        let invisible = weights.iter().skip(FIRST).filter(|weight| **weight < INVISIBLE).count();
        invisible > usize::from(weights[OTHERS] == 0.0)
    }

    fn merge_smallest(&mut self) {
        let weights = self.weights();
        let smallest = (FIRST..weights.len()).min_by(|a, b| weights[*a].total_cmp(&weights[*b]));
        self.merge(smallest.unwrap_or(FIRST), OTHERS);
    }

    fn merge(&mut self, from: usize, into: usize) {
        self.slots.remove(from);
        self.attributed.merge(from, into);
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

    /// The charts, in the order of the measures; those without values are omitted.
    pub(super) fn charts(mut self, timeline: &Timeline) -> Vec<Chart> {
        while self.slots.len() - FIRST >= MAX_SERIES || self.has_invisible() {
            self.merge_smallest();
        }
        let weights = self.weights();
        let mut order: Vec<usize> = (FIRST..self.slots.len()).collect();
        order.sort_by(|a, b| weights[*b].total_cmp(&weights[*a]));
        order.extend([OTHERS, UNATTRIBUTED]);
        let names: Vec<String> = self.slots.iter().map(Slot::name).collect();
        let parted = if self.by_process { BY_PROCESS } else { "by program" };
        let charts = self.counters.into_iter();
        charts.filter_map(|counter| counter.chart(&names, &order, parted, timeline)).collect()
    }
}

const BY_PROCESS: &str = "by process";

/// The index of the measure of sizes.
const SIZE: usize = 0;
/// The index of the measure of CPU time.
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
        matches!(self.of, MeasureOf::CpuTime(..))
    }

    fn is_size(&self) -> bool {
        matches!(self.of, MeasureOf::CappedBy(..))
    }
}

impl Attributed {
    /// Draws the CPU time of a window that is long enough for a rate.
    ///
    /// The run's counter is exact, and clock ticks of processes are late: their excess over what
    /// the run used in this window was used before it, and is drawn when it fits. So the areas sum
    /// up to what the run used, as in the figures.
    fn window(&mut self, counter: &mut StackedMeasure, at: f64, run: f64, cores: f64) {
        let Some(length) = counter.curve.due(at) else { return };
        self.totals.resize(counter.sums.len(), 0.0);
        let used = (run - self.run).clamp(0.0, cores * length);
        let waits = counter.sums.iter().zip(&self.totals).enumerate();
        let waiting: f64 = waits
            .filter(|(slot, _)| *slot != UNATTRIBUTED)
            .map(|(_, (sampled, drawn))| sampled - drawn)
            .sum();
        let share = if waiting > used { used / waiting } else { 1.0 };
        for (slot, drawn) in self.totals.iter_mut().enumerate() {
            *drawn += match slot {
                // Smaller differences are rounding errors of floating-point sums.
                UNATTRIBUTED if used - waiting < 1e-6 => 0.0,
                UNATTRIBUTED => used - waiting,
                slot => (counter.sums[slot] - *drawn) * share,
            };
        }
        self.run = run;
        counter.curve.push(at, &self.totals);
    }

    fn merge(&mut self, from: usize, into: usize) {
        if from < self.totals.len() {
            let drawn = self.totals.remove(from);
            self.totals[into] += drawn;
        }
    }
}

impl StackedMeasure {
    /// Adds a gauge to a slot; counters are only ever raised.
    fn add(&mut self, slot: usize, level: f64) {
        if self.measure.shown == MeasureForm::Gauge {
            if level.is_nan() { self.unknown[slot] += 1 } else { self.sums[slot] += level }
        }
    }

    /// Subtracts a gauge from a slot.
    fn take(&mut self, slot: usize, level: f64) {
        if self.measure.shown == MeasureForm::Gauge {
            if level.is_nan() { self.unknown[slot] -= 1 } else { self.sums[slot] -= level }
        }
    }

    /// The same, with so much that is unattributed.
    fn tick_with(&mut self, at: f64, unattributed: f64) {
        self.sums[UNATTRIBUTED] = unattributed;
        self.tick(at);
    }

    /// The same, with at least the memory of the largest process: its share may have been read while
    /// it shared pages with processes that have exited since. The figures have the same basis.
    fn tick_at_least(&mut self, at: f64, largest: Option<(usize, f64)>) {
        let sum: f64 = self.sums.iter().sum();
        let Some((slot, size)) = largest.filter(|(_, size)| *size > sum) else {
            return self.tick(at);
        };
        self.sums[slot] += size - sum;
        self.tick(at);
        self.sums[slot] -= size - sum;
    }

    fn tick(&mut self, at: f64) {
        for (peak, sum) in self.peaks.iter_mut().zip(&self.sums) {
            *peak = peak.max(*sum);
        }
        if self.unknown.iter().all(|count| *count == 0) {
            self.curve.push(at, &self.sums);
            return;
        }
        // If one of them is not known, neither is the sum.
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
        let series: Vec<ChartSeries> = order
            .iter()
            .enumerate()
            .map(|(place, slot)| ChartSeries {
                name: names[*slot].clone(),
                colour: match *slot {
                    OTHERS => MAX_SERIES - 1,
                    UNATTRIBUTED => MAX_SERIES,
                    _ => place,
                },
                values: std::mem::take(&mut columns[*slot]),
            })
            .filter(|series| is_something(&series.values))
            .collect();
        let rate = self.measure.shown == MeasureForm::Rate;
        (!series.is_empty()).then(|| Chart {
            name: self.measure.name,
            title: match self.measure.of {
                // Each process is one.
                MeasureOf::Count if parted == BY_PROCESS => self.measure.title,
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
