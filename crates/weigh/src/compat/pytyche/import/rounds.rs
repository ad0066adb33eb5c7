//! Which row is of which GPU, where rows do not have its number.
//!
//! `nvidia-smi -l N` prints one row for each GPU, one after the other within milliseconds, and
//! then waits for N seconds, or with `-lms` for N milliseconds. So rows are in rounds, and in each
//! round a GPU has the same place. The length of a wait is not in the file: a step between two rows
//! is a wait where steps are either short or long ([`QueryRounds::between`]) and the long ones are
//! evenly spaced, with the same number of rows between them. Nothing more is assumed: rows of a
//! round with another number of rows than most belong to no GPU, and where most rounds differ, a
//! note says that GPUs are not known.

use std::collections::BTreeMap;

use super::lines::counted;
use super::times;
use crate::compat::pytyche::import::nvidia_smi::SmiRow;

/// Steps within a round are shorter than this; `-l` waits for at least a second.
const LONGEST_WITHIN: f64 = 0.5;
/// Steps within a round are rarely longer than this, and no one polls that often.
const WITHIN: f64 = 0.05;
/// A single round has no wait to compare with: its steps are shorter than this.
const IN_ONE_GO: f64 = 0.01;
/// How much longer a wait is than every step within a round. Times have milliseconds.
const FACTOR: f64 = 3.0;
const MILLISECOND: f64 = 0.001;
/// The most GPUs that a machine may have.
const MOST: usize = 32;

/// Rows grouped by the round in which they were printed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct QueryRounds {
    /// The rows of each round, by their places.
    rows: Vec<Vec<usize>>,
    /// How many rows a complete round has; `None` where there is no pattern.
    size: Option<usize>,
}

/// The rows of each GPU, by their places; and how many rows could not be attributed.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Apart {
    /// The number of a GPU, and its rows.
    pub gpus: BTreeMap<u32, Vec<usize>>,
    /// Rows of incomplete rounds.
    pub left_out: usize,
}

/// Rows that cannot be attributed to GPUs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mixed {
    /// Why not.
    pub why: String,
    /// The most rows of a round: there are at least that many GPUs.
    pub most: usize,
}

impl QueryRounds {
    /// The rounds of rows at these moments. Where more than one grouping is possible, the number of
    /// GPUs in dmon decides.
    pub(super) fn of(moments: &[f64], in_dmon: usize) -> QueryRounds {
        let mut steps: Vec<f64> = times::steps(moments).filter(|step| *step >= 0.0).collect();
        steps.sort_by(f64::total_cmp);
        let is_jump = |pair: &&[f64]| {
            pair[0] < LONGEST_WITHIN && pair[1] + MILLISECOND >= FACTOR * (pair[0] + MILLISECOND)
        };
        let waits = steps.windows(2).filter(is_jump).map(|pair| pair[1]);
        let ways = waits.map(|shortest| QueryRounds::between(moments, shortest));
        let mut ways: Vec<QueryRounds> = ways.filter(|rounds| rounds.is_regular(moments)).collect();
        match ways.iter().position(|rounds| rounds.size == Some(in_dmon)) {
            Some(place) => ways.swap_remove(place),
            None if ways.is_empty() => QueryRounds::without_a_jump(moments, &steps, in_dmon),
            None => ways.swap_remove(0),
        }
    }

    /// Groups rows between waits. A negative step is a clock that was set back, and ends a round.
    fn between(moments: &[f64], shortest_wait: f64) -> QueryRounds {
        let mut rows: Vec<Vec<usize>> = Vec::new();
        for (place, at) in moments.iter().enumerate() {
            let is_near = |before: usize| (0.0..shortest_wait).contains(&(at - moments[before]));
            match rows.last_mut() {
                Some(round) if is_near(place - 1) => round.push(place),
                _ => rows.push(vec![place]),
            }
        }
        let size = usual_size(&rows);
        QueryRounds { rows, size }
    }

    /// Whether most rounds have the same size and waits are evenly spaced. Gaps between slow rows of
    /// a single GPU may match this once or twice, not more often.
    fn is_regular(&self, moments: &[f64]) -> bool {
        let Some(size) = self.size.filter(|size| *size <= MOST) else { return false };
        let span = |round: &Vec<usize>| moments[round[round.len() - 1]] - moments[round[0]];
        let whole: Vec<&Vec<usize>> = self.rows.iter().filter(|rows| rows.len() == size).collect();
        let spans = sorted(whole.iter().map(|round| span(round)));
        let within = |round: &Vec<usize>| {
            let steps = round.windows(2).map(|pair| moments[pair[1]] - moments[pair[0]]);
            steps.fold(0.0, f64::max)
        };
        let longest_within = self.rows.iter().map(within).fold(0.0, f64::max);
        let waits = self.rows.windows(2).map(|pair| {
            let last = pair[0][pair[0].len() - 1];
            moments[pair[1][0]] - moments[last]
        });
        let waits = sorted(waits.filter(|wait| *wait >= 0.0));
        let (Some(wait), Some(span)) = (middle(&waits), middle(&spans)) else { return false };
        wait > span.max(WITHIN)
            && is_steady(&waits, wait, 5)
            && (longest_within < WITHIN || whole.len() > 2)
    }

    /// Rows with similar steps: one round, or one GPU.
    fn without_a_jump(moments: &[f64], steps: &[f64], in_dmon: usize) -> QueryRounds {
        let longest = steps.last().copied().unwrap_or(0.0);
        let is_all_there_is = moments.len() == in_dmon && longest < LONGEST_WITHIN;
        if is_all_there_is || (longest < IN_ONE_GO && moments.len() <= MOST) {
            return QueryRounds::between(moments, LONGEST_WITHIN);
        }
        let alone = QueryRounds::between(moments, 0.0);
        let usual = middle(steps).unwrap_or(0.0);
        let is_one_by_one = steps.first().is_some_and(|shortest| *shortest >= LONGEST_WITHIN)
            || (usual >= WITHIN
                && is_steady(steps, usual, 10)
                && (in_dmon == 1 || steps.iter().all(|step| FACTOR * step > usual)));
        if is_one_by_one {
            return alone;
        }
        let rounds = if longest < LONGEST_WITHIN {
            alone
        } else {
            QueryRounds::between(moments, LONGEST_WITHIN)
        };
        QueryRounds { size: None, ..rounds }
    }

    /// When each round begins.
    pub(super) fn begins(&self, rows: &[SmiRow], moments: &[f64]) -> Vec<f64> {
        if let Some(first) = rows.first().filter(|row| row.index.is_some()) {
            let of_first = rows.iter().zip(moments).filter(|(row, _)| row.index == first.index);
            return of_first.map(|(_, at)| *at).collect();
        }
        self.rows.iter().filter_map(|round| Some(moments[*round.first()?])).collect()
    }
}

/// Attributes rows to GPUs, or returns why that is not possible. `in_dmon` are the numbers of GPUs
/// in dmon.
pub(super) fn apart(
    rows: &[SmiRow],
    rounds: &QueryRounds,
    in_dmon: &[u32],
) -> Result<Apart, Mixed> {
    if rows.is_empty() || rows.iter().any(|row| row.index.is_some()) {
        return Ok(by_index(rows));
    }
    let most = rounds.rows.iter().map(Vec::len).max().unwrap_or(0);
    let mixed = |why: String| Mixed { why, most };
    let size = rounds.size.ok_or_else(|| {
        let why = "rounds have different numbers of rows, or no steady interval";
        mixed(format!("{why}, so the GPU of a row is not known"))
    })?;
    let numbers: Vec<u32> = match in_dmon.len() == size {
        true => in_dmon.to_vec(),
        false => (0..).take(size).collect(),
    };
    // dmon shows some of many GPUs, and never more than there are.
    if in_dmon.iter().any(|number| !numbers.contains(number)) {
        let (shown, printed) = (counted(in_dmon.len() as u64, "GPU"), counted(size as u64, "row"));
        return Err(mixed(format!(
            "hw_dmon.csv has {shown} and a round of hw_metrics.csv has {printed}, so the GPU of a \
            row is not known"
        )));
    }
    let mut gpus: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut left_out = 0;
    for round in &rounds.rows {
        if round.len() != size {
            left_out += round.len();
            continue;
        }
        for (number, row) in numbers.iter().zip(round) {
            gpus.entry(*number).or_default().push(*row);
        }
    }
    let changes = |places: &Vec<usize>| {
        let mut totals = places.iter().filter_map(|row| rows[*row].memory_total);
        totals.next().is_some_and(|first| totals.any(|total| total != first))
    };
    if gpus.values().any(changes) {
        let why = "the memory size of a GPU would change, so the order of rows has changed";
        return Err(mixed(why.to_owned()));
    }
    Ok(Apart { gpus, left_out })
}

fn by_index(rows: &[SmiRow]) -> Apart {
    let mut gpus: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        if let Some(index) = row.index {
            gpus.entry(index).or_default().push(place);
        }
    }
    let attributed: usize = gpus.values().map(Vec::len).sum();
    Apart { gpus, left_out: rows.len() - attributed }
}

/// How many rows a complete round has: none has more, and most have as many. The last may be cut
/// off.
fn usual_size(rounds: &[Vec<usize>]) -> Option<usize> {
    let before_last = match rounds {
        [before @ .., _] if !before.is_empty() => before,
        _ => rounds,
    };
    let size = rounds.iter().map(Vec::len).max()?;
    let whole = before_last.iter().filter(|round| round.len() == size).count();
    (2 * whole > before_last.len()).then_some(size)
}

fn sorted(steps: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut steps: Vec<f64> = steps.collect();
    steps.sort_by(f64::total_cmp);
    steps
}

fn middle(sorted: &[f64]) -> Option<f64> {
    sorted.get(sorted.len() / 2).copied()
}

/// Whether at most one in `one_in` steps differs from the usual one. Where that is long, longer
/// ones are waits as well.
fn is_steady(steps: &[f64], usual: f64, one_in: usize) -> bool {
    let is_off = |step: &&f64| {
        FACTOR * **step < usual || (usual < LONGEST_WITHIN && **step > FACTOR * usual)
    };
    one_in * steps.iter().filter(is_off).count() <= steps.len()
}
