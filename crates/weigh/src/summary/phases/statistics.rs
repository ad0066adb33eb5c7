//! Statistics over all phases of one name.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::catalog::{Combine, FigureId};
use crate::summary::by_figure::ByFigure;
use crate::summary::figure::whole_when_whole;
use crate::summary::{Figure, Method, Phase};

/// All phases of one name together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PhaseStatistics {
    /// The name.
    pub name: String,
    /// The name of the enclosing phase of the first of them.
    pub parent: Option<String>,
    /// How many have ended.
    pub count: u64,
    /// How many have no end; they are in none of the statistics.
    pub unfinished: u64,
    /// How many had a command that failed.
    pub failed: u64,
    /// The sum of their durations: each counts by itself, also inside or beside another.
    pub total_seconds: f64,
    /// How much of the run they cover: overlaps are counted once.
    pub covered_seconds: f64,
    /// How long one lasted.
    pub duration_seconds: Statistics,
    /// The figures of one.
    pub figures: ByFigure<Statistics>,
}

impl PhaseStatistics {
    /// Marks nothing as exact: the recording is incomplete, and phases may be missing.
    pub(crate) fn are_not_exact(&mut self) {
        for statistics in self.figures.values_mut().chain([&mut self.duration_seconds]) {
            if statistics.method == Some(Method::Exact) {
                statistics.method = Some(Method::Sampled);
            }
        }
    }
}

/// One quantity over several phases.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// How many phases have a value.
    pub count: u64,
    /// The least certain method of the values.
    pub method: Option<Method>,
    /// The smallest.
    #[serde(serialize_with = "whole_when_whole")]
    pub min: Option<f64>,
    /// The largest.
    #[serde(serialize_with = "whole_when_whole")]
    pub max: Option<f64>,
    /// The arithmetic mean.
    #[serde(serialize_with = "whole_when_whole")]
    pub mean: Option<f64>,
    /// The population standard deviation (ddof 0), not the sample estimate.
    #[serde(serialize_with = "whole_when_whole")]
    pub std: Option<f64>,
    /// The sum, where values are additive; without phases inside one of the same name, whose values
    /// are in that one's.
    #[serde(serialize_with = "whole_when_whole")]
    pub total: Option<f64>,
}

/// Statistics of each name, in order of first appearance.
pub fn statistics(phases: &[Phase]) -> Vec<PhaseStatistics> {
    let family = phases.iter().map(|one| (&one.id[..], &one.name[..], one.parent.as_deref()));
    let mut gathered = StatisticsBuilder::of(family);
    phases.iter().for_each(|phase| gathered.take(phase));
    gathered.finish()
}

/// Statistics that are gathered phase by phase: of each only its numbers are kept.
#[derive(Debug)]
pub(super) struct StatisticsBuilder {
    /// The name of each phase and the id of its enclosing phase, by its id.
    family: HashMap<String, (String, Option<String>)>,
    groups: Vec<PhaseGroup>,
    /// Where the group of a name is.
    by_name: HashMap<String, usize>,
}

/// All phases of one name.
#[derive(Debug, Default)]
struct PhaseGroup {
    name: String,
    parent: Option<String>,
    unfinished: u64,
    failed: u64,
    /// When each began and ended.
    spans: Vec<(f64, f64)>,
    durations: Vec<f64>,
    figures: ByFigure<Values>,
}

/// One figure of all of them.
#[derive(Debug, Default)]
struct Values {
    all: Vec<f64>,
    /// Of those that are not inside one of the same name.
    outermost: f64,
    method: Option<Method>,
}

impl StatisticsBuilder {
    /// Nothing yet, of phases with these ids, names and parents.
    pub(super) fn of<'a>(
        all: impl Iterator<Item = (&'a str, &'a str, Option<&'a str>)>,
    ) -> StatisticsBuilder {
        let owned = |(id, name, parent): (&str, &str, Option<&str>)| {
            (id.to_owned(), (name.to_owned(), parent.map(str::to_owned)))
        };
        let (groups, by_name) = (Vec::new(), HashMap::new());
        StatisticsBuilder { family: all.map(owned).collect(), groups, by_name }
    }

    /// The names of the enclosing phases of one, from the inside out.
    fn enclosing<'a>(&'a self, phase: &'a Phase) -> impl Iterator<Item = &'a str> {
        /// A foreign recording may have cycles in it.
        const DEEPEST: usize = 1000;
        let outer = |parent: &Option<String>| self.family.get(parent.as_ref()?);
        let first = outer(&phase.parent);
        std::iter::successors(first, move |(_, parent)| outer(parent))
            .take(DEEPEST)
            .map(|(name, _)| name.as_str())
    }

    pub(super) fn take(&mut self, phase: &Phase) {
        let is_outermost = self.enclosing(phase).all(|outer| outer != phase.name);
        let place = match self.by_name.get(&phase.name) {
            Some(place) => *place,
            None => {
                let mut outer = self.enclosing(phase).filter(|outer| *outer != phase.name);
                let parent = outer.next().map(str::to_owned);
                drop(outer);
                let name = phase.name.clone();
                self.groups.push(PhaseGroup { name, parent, ..PhaseGroup::default() });
                self.by_name.insert(phase.name.clone(), self.groups.len() - 1);
                self.groups.len() - 1
            }
        };
        self.groups[place].take(phase, is_outermost);
    }

    pub(super) fn finish(self) -> Vec<PhaseStatistics> {
        self.groups.into_iter().map(PhaseGroup::finish).collect()
    }
}

impl PhaseGroup {
    fn take(&mut self, phase: &Phase, is_outermost: bool) {
        let has_ended = phase.duration_seconds.is_some();
        for (id, figure) in phase.figures.iter() {
            let values = self.figures.entry(id);
            if has_ended {
                values.take(figure, is_outermost);
            }
        }
        match phase.duration_seconds {
            Some(duration) => {
                self.durations.push(duration);
                self.spans.push((phase.start_seconds, phase.start_seconds + duration));
                self.failed += u64::from(phase.exit_code.is_some_and(|code| code != 0));
            }
            None => self.unfinished += 1,
        }
    }

    fn finish(self) -> PhaseStatistics {
        let (durations, figures) = (self.durations, self.figures);
        let total: f64 = durations.iter().sum();
        PhaseStatistics {
            name: self.name,
            parent: self.parent,
            count: durations.len() as u64,
            unfinished: self.unfinished,
            failed: self.failed,
            total_seconds: total,
            covered_seconds: covered(self.spans),
            duration_seconds: Statistics {
                method: (!durations.is_empty()).then_some(Method::Exact),
                total: (!durations.is_empty()).then_some(total),
                ..of_values(&durations)
            },
            figures: figures.iter().map(|(id, values)| (id, values.finish(id))).collect(),
        }
    }
}

impl Values {
    fn take(&mut self, figure: &Figure, is_outermost: bool) {
        let Some(value) = figure.value else { return };
        let least_sure = |method: &Option<Method>| match method {
            None => 0,
            Some(Method::Exact) => 1,
            Some(Method::Sampled) => 2,
            Some(Method::Estimated) => 3,
        };
        self.all.push(value);
        self.outermost += if is_outermost { value } else { 0.0 };
        self.method = std::cmp::max_by_key(self.method, figure.method, least_sure);
    }

    fn finish(&self, id: FigureId) -> Statistics {
        let adds_up = id.combine() == Combine::Sum && !self.all.is_empty();
        let total = adds_up.then_some(self.outermost);
        Statistics { method: self.method, total, ..of_values(&self.all) }
    }
}

fn of_values(values: &[f64]) -> Statistics {
    if values.is_empty() {
        return Statistics::default();
    }
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    Statistics {
        count: values.len() as u64,
        min: values.iter().copied().reduce(f64::min),
        max: values.iter().copied().reduce(f64::max),
        mean: Some(mean),
        std: Some(variance.sqrt()),
        ..Statistics::default()
    }
}

/// How much time phases with these starts and ends cover together.
fn covered(mut spans: Vec<(f64, f64)>) -> f64 {
    spans.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut covered = 0.0;
    let mut reached = f64::NEG_INFINITY;
    for (start, end) in spans {
        covered += (end - start.max(reached)).max(0.0);
        reached = reached.max(end);
    }
    covered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phase(id: &str, parent: Option<&str>, start: f64, duration: Option<f64>, cpu: f64) -> Phase {
        let figures = [
            (FigureId::CpuTime, Figure::exact(cpu, "test")),
            (FigureId::MemoryPeak, Figure::sampled(100.0, "test")),
            (FigureId::ThreadsPeak, Figure::unknown("test", "not seen")),
        ];
        Phase {
            id: id.to_owned(),
            name: "block".to_owned(),
            parent: parent.map(str::to_owned),
            start_seconds: start,
            duration_seconds: duration,
            cpu_time_seconds: None,
            largest_process_bytes: None,
            exit_code: None,
            figures: figures.into(),
        }
    }

    #[test]
    fn mean_and_standard_deviation_are_of_the_population() {
        let phases = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]
            .map(|length| phase(&length.to_string(), None, length * 10.0, Some(length), length));
        let [block] = &statistics(&phases)[..] else { panic!("one name") };
        assert_eq!((block.count, block.unfinished, block.total_seconds), (8, 0, 40.0));
        let time = block.duration_seconds;
        assert_eq!((time.min, time.max), (Some(2.0), Some(9.0)));
        assert_eq!((time.mean, time.std), (Some(5.0), Some(2.0)));
        let cpu = block.figures["cpu_time_seconds"];
        assert_eq!((cpu.count, cpu.std, cpu.total), (8, Some(2.0), Some(40.0)));
        assert_eq!(cpu.method, Some(Method::Exact));
    }

    #[test]
    fn recursion_counts_each_phase_and_covers_time_once() {
        let phases = [
            phase("outer", None, 0.0, Some(4.0), 3.0),
            phase("inner", Some("outer"), 1.0, Some(2.0), 1.0),
            phase("beside", None, 3.0, Some(2.0), 1.0),
            phase("later", None, 10.0, Some(1.0), 1.0),
        ];
        let block = &statistics(&phases)[0];
        assert_eq!((block.count, block.total_seconds, block.covered_seconds), (4, 9.0, 6.0));
        let cpu = block.figures["cpu_time_seconds"];
        assert_eq!(cpu.total, Some(5.0), "what the inner one used is in the outer one");
        assert_eq!(block.parent, None);
    }

    #[test]
    fn phases_without_an_end_are_counted_separately() {
        let phases = [phase("a", None, 0.0, Some(1.0), 1.0), phase("b", None, 2.0, None, 50.0)];
        let block = &statistics(&phases)[0];
        assert_eq!((block.count, block.unfinished), (1, 1));
        assert_eq!(block.figures["cpu_time_seconds"].max, Some(1.0));
    }

    #[test]
    fn unmeasured_values_have_no_statistics_and_gauges_have_no_sum() {
        let block = &statistics(&[phase("a", None, 0.0, Some(1.0), 1.0)])[0];
        assert_eq!(block.figures["threads_peak"], Statistics::default());
        let memory = block.figures["memory_peak_bytes"];
        assert_eq!((memory.max, memory.total), (Some(100.0), None));
        assert_eq!(memory.method, Some(Method::Sampled));
        assert_eq!(statistics(&[]), []);
    }

    #[test]
    fn cyclic_phases_do_not_hang() {
        let phases = [
            phase("a", Some("b"), 0.0, Some(1.0), 1.0),
            phase("b", Some("a"), 0.0, Some(1.0), 1.0),
        ];
        assert_eq!(statistics(&phases)[0].count, 2);
    }
}
