//! The charts of a run, gathered in one pass over its ticks.

use super::arrange::arranged;
use super::catalogued::Catalogued;
use super::chart::{Chart, Timeline};
use super::entities::Entities;
use super::entity_labels::EntityLabels;
use super::limits::{CPU, LimitLines, MEMORY};
use super::processes::{PlottedProcesses, number};
use super::programs::{Measure, MeasureForm, MeasureOf, Programs};
use super::timeline::TimelineBuilder;
use crate::catalog::metrics::{ProcessCpu, ProcessMemory, ProcessState};
use crate::catalog::{Metric, Row, Scope, Unit};
use crate::model::live::LiveProcesses;
use crate::model::{Table, Tick};
use crate::quantity::Units;
use crate::record::{Frame, Manifest, Moment, Recording};
use crate::summary::{Accumulator, Figures};

/// The charts of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RunCharts {
    /// Of its processes, the most relevant first.
    pub run: Vec<Chart>,
    /// Of GPUs and of processes on them.
    pub gpus: Vec<Chart>,
    /// Of the machine.
    pub node: Vec<Chart>,
    /// Of weigh itself.
    pub own: Vec<Chart>,
}

impl RunCharts {
    /// All charts.
    pub fn all(&self) -> impl Iterator<Item = &Chart> {
        self.run.iter().chain(&self.gpus).chain(&self.node).chain(&self.own)
    }
}

/// Gathers the charts of a run.
#[derive(Debug)]
pub struct ChartBuilder {
    processes: PlottedProcesses,
    catalogued: Vec<Catalogued>,
    entities: Vec<(Scope, Entities)>,
    labels: EntityLabels,
    times: TimelineBuilder,
    limits: LimitLines,
    units: Units,
    row: Vec<f64>,
}

impl ChartBuilder {
    /// Of a run that is about to be read. These metrics have charts of their own, too.
    pub fn new(
        manifest: &Manifest,
        groups: &[&'static [Metric]],
        more: &[&'static Metric],
    ) -> ChartBuilder {
        let columns = |scope| Table::new(scope, groups).metrics().to_vec();
        let processes = columns(Scope::Process);
        let mut measures = measures(&processes);
        let mut catalogued = Catalogued::of(Scope::Process, &processes);
        let mut entities = Vec::new();
        for scope in Scope::ALL.into_iter().filter(|scope| *scope != Scope::Process) {
            if scope.is_single() {
                catalogued.extend(Catalogued::of(scope, &columns(scope)));
            } else {
                let charts = Entities::of(&columns(scope), more);
                entities.extend(charts.into_iter().map(|chart| (scope, chart)));
            }
        }
        for metric in more {
            let place = columns(metric.scope).iter().position(|column| column == metric);
            match (place, metric.scope) {
                (Some(column), Scope::Process) => measures.push(Measure::of(metric, column)),
                (Some(column), scope) if scope.is_single() => {
                    catalogued.push(Catalogued::only(metric, column));
                }
                _ => {}
            }
        }
        ChartBuilder {
            processes: PlottedProcesses::new(
                &processes,
                Programs::new(measures, f64::from(manifest.host.cores)),
            ),
            catalogued,
            entities,
            labels: EntityLabels::default(),
            times: TimelineBuilder::default(),
            limits: LimitLines {
                memory: manifest.host.memory_allowed_bytes().map(|bytes| bytes as f64),
                memory_is_limited: manifest.host.tight_memory_limit_bytes().is_some(),
                cores: manifest.host.cores_allowed,
            },
            units: Units::Binary,
            row: Vec::new(),
        }
    }

    /// The same, with sizes written in these units.
    pub fn in_units(self, units: Units) -> ChartBuilder {
        ChartBuilder { units, ..self }
    }

    /// The charts of a recording.
    pub fn of(
        recording: &Recording,
        more: &[&'static Metric],
        units: Units,
    ) -> Result<RunCharts, crate::record::Error> {
        let groups = crate::catalog::all_groups();
        let chart_builder = ChartBuilder::new(recording.manifest(), &groups, more);
        chart_builder.in_units(units).through(recording, &groups)
    }

    /// The charts of a recording by program, also where each process could have a part of its
    /// own.
    pub fn of_programs(
        recording: &Recording,
        more: &[&'static Metric],
    ) -> Result<RunCharts, crate::record::Error> {
        let groups = crate::catalog::all_groups();
        let mut chart_builder = ChartBuilder::new(recording.manifest(), &groups, more);
        chart_builder.processes.programs.group_by_program();
        chart_builder.through(recording, &groups)
    }

    /// Uses parts for programs from the beginning, not for processes.
    #[cfg(test)]
    pub(super) fn group_by_program(&mut self) {
        self.processes.programs.group_by_program();
    }

    fn through(
        mut self,
        recording: &Recording,
        groups: &[&'static [Metric]],
    ) -> Result<RunCharts, crate::record::Error> {
        let mut summary = Accumulator::new(recording.manifest());
        let frames = recording.replay(groups, |frame| {
            summary.frame(frame);
            self.frame(frame, &summary);
        })?;
        Ok(self.finish(&summary.finish(frames.live()).figures))
    }

    /// Adds a frame. The summary has already added it: charts and figures are made of the same
    /// numbers.
    pub fn frame(&mut self, frame: &Frame<'_>, summary: &Accumulator) {
        match frame.moment {
            Moment::Tick(tick) => self.tick(tick, frame.live, summary),
            Moment::Event(entry) => {
                self.processes.event(entry, frame.live);
                self.times.event(entry);
            }
        }
    }

    fn tick(&mut self, tick: &Tick, live: &LiveProcesses, summary: &Accumulator) {
        let at = tick.at.as_secs_f64();
        self.times.extend_to(at);
        self.processes.rows(live);
        if let Some(table) = tick.table(Scope::GpuProcess) {
            self.labels.learn(table, |id| Some(live.get(id)?.program.clone()));
        }
        for table in tick.tables().iter().filter(|table| !table.is_empty()) {
            if table.scope().is_single() {
                self.single(at, table);
            } else {
                let charts = self.entities.iter_mut().filter(|(scope, _)| *scope == table.scope());
                charts.for_each(|(_, chart)| chart.push(at, table));
            }
        }
        if tick.is_complete() {
            self.processes.tick(live, at, summary.cpu_so_far());
            let sums = self.processes.sums(live.sampled_len());
            let charts = self.catalogued.iter_mut().filter(|chart| chart.scope == Scope::Process);
            charts.for_each(|chart| chart.push(at, sums));
        }
    }

    /// The one row of the machine, of the run or of weigh.
    fn single(&mut self, at: f64, table: &Table) {
        self.row.clear();
        self.row.extend(table.columns().iter().map(|cells| number(cells, 0).unwrap_or(f64::NAN)));
        let charts = self.catalogued.iter_mut().filter(|chart| chart.scope == table.scope());
        charts.for_each(|chart| chart.push(at, &self.row));
    }

    /// The charts of a run with these figures.
    pub fn finish(self, figures: &Figures) -> RunCharts {
        let timeline = self.times.finish();
        let mut run_charts =
            RunCharts { run: self.processes.programs.charts(&timeline), ..RunCharts::default() };
        for (scope, chart) in arranged(self.entities, &timeline, &self.labels) {
            match scope {
                Scope::Gpu | Scope::GpuProcess => run_charts.gpus.push(chart),
                Scope::PerfEvent => run_charts.run.push(chart),
                _ => run_charts.node.push(chart),
            }
        }
        let mut node = Vec::new();
        for catalogued in self.catalogued {
            let section = match catalogued.scope {
                Scope::Own => &mut run_charts.own,
                Scope::Run | Scope::Cgroup | Scope::Process => &mut run_charts.run,
                _ => &mut node,
            };
            section.extend(catalogued.chart(&timeline));
        }
        run_charts.node.splice(0..0, node);
        let RunCharts { run, gpus, node, own } = &mut run_charts;
        for chart in [run, gpus, node, own].into_iter().flatten() {
            chart.scale.units = self.units;
            self.limits.mark(chart, figures);
            chart.note = format!("{} {}", chart.note, not_drawn(&timeline)).trim().to_owned();
        }
        run_charts
    }
}

/// What is missing on the time axis, in a sentence.
fn not_drawn(timeline: &Timeline) -> String {
    match timeline.left_out {
        (0, 0) => String::new(),
        (phases, 0) => format!("{phases} of the phases are not drawn."),
        (0, marks) => format!("{marks} of the marks are not drawn."),
        (phases, marks) => {
            format!("{phases} of the phases and {marks} of the marks are not drawn.")
        }
    }
}

/// The names of the charts that a run may have beside those of single metrics.
pub(super) fn names() -> Vec<String> {
    let groups = crate::catalog::all_groups();
    let columns = |scope| Table::new(scope, &groups).metrics().to_vec();
    let measures = measures(&columns(Scope::Process)).into_iter().map(|measure| measure.name);
    let drawn =
        Scope::ALL.into_iter().filter(|scope| scope.is_single() || *scope == Scope::Process);
    let catalogued = drawn.flat_map(|scope| Catalogued::of(scope, &columns(scope)));
    measures.chain(catalogued.map(|chart| chart.name)).collect()
}

/// What every run has charts of, program by program.
fn measures(columns: &[&'static Metric]) -> Vec<Measure> {
    let place = |metric: Option<&Metric>| columns.iter().position(|one| Some(*one) == metric);
    let both = |one: Option<usize>, other: Option<usize>| one.zip(other);
    let measure = |name: &str, title: &str, note: &str, unit, shown, of| Measure {
        name: name.to_owned(),
        title: title.to_owned(),
        note: note.to_owned(),
        unit,
        shown,
        of,
    };
    let sizes = both(
        place(ProcessMemory::metric(|row| &mut row.pss)),
        place(ProcessMemory::metric(|row| &mut row.rss)),
    );
    let times = both(
        place(ProcessCpu::metric(|row| &mut row.user)),
        place(ProcessCpu::metric(|row| &mut row.system)),
    );
    let finer = place(ProcessCpu::metric(|row| &mut row.run_time));
    let threads = place(ProcessState::metric(|row| &mut row.threads));
    let size = sizes.map(|(pss, rss)| {
        let note = "Shared pages are divided among their users (PSS) where that could be read; \
                    never less than the largest process.";
        measure(
            MEMORY,
            "Memory",
            note,
            Unit::Bytes,
            MeasureForm::Gauge,
            MeasureOf::CappedBy(pss, rss),
        )
    });
    let cores = times.map(|(user, system)| {
        let note = "Cores used. CPU time of the run that no sample found at a process (short \
                    processes, and the last moments of others) is unattributed.";
        measure(
            CPU,
            "CPU",
            note,
            Unit::Seconds,
            MeasureForm::Rate,
            MeasureOf::CpuTime(user, system, finer),
        )
    });
    let time = times.map(|(user, system)| {
        let note = "CPU time used so far, of each as it was last sampled; the rest of the run's \
                    is unattributed.";
        let of = MeasureOf::CpuTime(user, system, finer);
        measure("cpu-time", "CPU time", note, Unit::Seconds, MeasureForm::Cumulative, of)
    });
    let count =
        measure("processes", "Processes", "", Unit::One, MeasureForm::Gauge, MeasureOf::Count);
    let threads = threads.map(|threads| {
        measure("threads", "Threads", "", Unit::One, MeasureForm::Gauge, MeasureOf::Column(threads))
    });
    [size, cores, time, Some(count), threads].into_iter().flatten().collect()
}
