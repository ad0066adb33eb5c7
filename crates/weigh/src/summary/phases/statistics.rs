//! Statistics over all phases of one name.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::summary::figure::whole_when_whole;
use crate::summary::{Figure, Method, Phase};

/// All phases of one name together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The name of the phase around the first of them.
    pub parent: Option<String>,
    /// How many have ended.
    pub count: u64,
    /// How many have no end; they are in none of the numbers.
    pub unfinished: u64,
    /// How many had a command that failed.
    pub failed: u64,
    /// The time of all together: each counts by itself, also inside or beside another.
    pub total_seconds: f64,
    /// How much of the run they cover: where two overlap it is counted once.
    pub covered_seconds: f64,
    /// How long one lasted.
    pub duration_seconds: Statistics,
    /// The figures of one.
    pub figures: BTreeMap<String, Statistics>,
}

/// What one quantity was over several phases.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct Statistics {
    /// How many phases have a value.
    pub count: u64,
    /// The least sure of the ways in which the values were got.
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
    /// The standard deviation of all there were (ddof 0), not the estimate for more.
    #[serde(serialize_with = "whole_when_whole")]
    pub std: Option<f64>,
    /// The sum, where values add up; without phases inside one of the same name, whose values
    /// are in that one's.
    #[serde(serialize_with = "whole_when_whole")]
    pub total: Option<f64>,
}

/// Statistics of each name, in the order in which the names came up.
pub fn statistics(phases: &[Phase]) -> Vec<Named> {
    let by_id: HashMap<&str, &Phase> =
        phases.iter().map(|phase| (phase.id.as_str(), phase)).collect();
    let mut order: Vec<&str> = Vec::new();
    let mut groups: HashMap<&str, Vec<&Phase>> = HashMap::new();
    for phase in phases {
        let group = groups.entry(&phase.name).or_default();
        if group.is_empty() {
            order.push(&phase.name);
        }
        group.push(phase);
    }
    order.into_iter().map(|name| of_one_name(name, &groups[name], &by_id)).collect()
}

fn of_one_name(name: &str, all: &[&Phase], by_id: &HashMap<&str, &Phase>) -> Named {
    let ended: Vec<&Phase> =
        all.iter().copied().filter(|phase| phase.duration_seconds.is_some()).collect();
    let durations: Vec<f64> = ended.iter().filter_map(|phase| phase.duration_seconds).collect();
    let outermost = |phase: &Phase| around(phase, by_id).all(|outer| outer.name != name);
    let mut figures = BTreeMap::new();
    for figure_name in all.iter().flat_map(|phase| phase.figures.keys()) {
        if figures.contains_key(figure_name) {
            continue;
        }
        let known: Vec<(&Figure, bool)> = ended
            .iter()
            .filter_map(|phase| Some((phase.figures.get(figure_name)?, outermost(phase))))
            .collect();
        figures.insert(figure_name.clone(), of_figure(figure_name, &known));
    }
    Named {
        name: name.to_owned(),
        parent: all.first().and_then(|first| {
            around(first, by_id).find(|outer| outer.name != name).map(|outer| outer.name.clone())
        }),
        count: ended.len() as u64,
        unfinished: (all.len() - ended.len()) as u64,
        failed: ended.iter().filter(|phase| phase.exit_code.is_some_and(|code| code != 0)).count()
            as u64,
        total_seconds: durations.iter().sum(),
        covered_seconds: covered(&ended),
        duration_seconds: Statistics {
            method: (!durations.is_empty()).then_some(Method::Exact),
            total: (!durations.is_empty()).then(|| durations.iter().sum()),
            ..of_values(&durations)
        },
        figures,
    }
}

/// The phases around one, from the inside out.
fn around<'a>(
    phase: &'a Phase,
    by_id: &'a HashMap<&str, &'a Phase>,
) -> impl Iterator<Item = &'a Phase> {
    let parent = |phase: &&'a Phase| by_id.get(phase.parent.as_deref()?).copied();
    // A recording of somebody else's may have circles in it.
    std::iter::successors(parent(&phase), parent).take(by_id.len())
}

fn of_figure(name: &str, known: &[(&Figure, bool)]) -> Statistics {
    let values: Vec<f64> = known.iter().filter_map(|(figure, _)| figure.value).collect();
    let outermost = known.iter().filter(|(_, outermost)| *outermost);
    let total = outermost.filter_map(|(figure, _)| figure.value).sum();
    let surest = |method: &Method| match method {
        Method::Exact => 0,
        Method::Sampled => 1,
        Method::Estimated => 2,
    };
    let methods = known.iter().filter(|(figure, _)| figure.value.is_some());
    Statistics {
        method: methods.filter_map(|(figure, _)| figure.method).max_by_key(surest),
        total: (adds_up(name) && !values.is_empty()).then_some(total),
        ..of_values(&values)
    }
}

/// Whether the values of several phases have a sum that means something.
fn adds_up(name: &str) -> bool {
    name.ends_with("_seconds")
        || name.ends_with("_joules")
        || ["io_", "page_faults_", "context_switches_", "network_"]
            .iter()
            .any(|group| name.starts_with(group))
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

/// How much time these phases cover together.
fn covered(phases: &[&Phase]) -> f64 {
    let mut spans: Vec<(f64, f64)> = phases
        .iter()
        .filter_map(|phase| {
            Some((phase.start_seconds, phase.start_seconds + phase.duration_seconds?))
        })
        .collect();
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
            ("cpu_time_seconds", Figure::exact(cpu, "test")),
            ("memory_peak_bytes", Figure::sampled(100.0, "test")),
            ("threads_peak", Figure::unknown("test", "not seen")),
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
            figures: figures.map(|(name, figure)| (name.to_owned(), figure)).into(),
        }
    }

    #[test]
    fn mean_and_deviation_are_those_of_all_there_were() {
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
    fn phases_without_an_end_are_counted_apart() {
        let phases = [phase("a", None, 0.0, Some(1.0), 1.0), phase("b", None, 2.0, None, 50.0)];
        let block = &statistics(&phases)[0];
        assert_eq!((block.count, block.unfinished), (1, 1));
        assert_eq!(block.figures["cpu_time_seconds"].max, Some(1.0));
    }

    #[test]
    fn what_nobody_measured_has_no_statistics_and_levels_have_no_sum() {
        let block = &statistics(&[phase("a", None, 0.0, Some(1.0), 1.0)])[0];
        assert_eq!(block.figures["threads_peak"], Statistics::default());
        let memory = block.figures["memory_peak_bytes"];
        assert_eq!((memory.max, memory.total), (Some(100.0), None));
        assert_eq!(memory.method, Some(Method::Sampled));
        assert_eq!(statistics(&[]), []);
    }

    #[test]
    fn phases_that_are_inside_each_other_in_a_circle_do_not_hang() {
        let phases = [
            phase("a", Some("b"), 0.0, Some(1.0), 1.0),
            phase("b", Some("a"), 0.0, Some(1.0), 1.0),
        ];
        assert_eq!(statistics(&phases)[0].count, 2);
    }
}
