//! Which row is of which GPU, where rows do not say.
//!
//! `nvidia-smi -l N` prints one row for each GPU, one after the other within milliseconds, and
//! then waits for N seconds, or with `-lms` for as many milliseconds. So rows come in rounds, and
//! in each round a GPU has the same place. How long is long is not said: a step between two rows
//! is a wait where steps fall into short and long ones ([`QueryRounds::between`]) and the long ones
//! come at a steady pace, with as many rows between them. Nothing more is taken for granted: rows
//! of a round with other rows than most have are of no GPU, and where most differ, it is said that
//! it cannot be told.

use std::collections::BTreeMap;

use super::lines::counted;
use super::times;
use crate::compat::pytyche::import::nvidia_smi::SmiRow;

/// Rows of a round are nearer to each other than this; `-l` waits for a second at least.
const LONGEST_WITHIN: f64 = 0.5;
/// Rows of a round rarely are farther apart than this, and nobody looks so often.
const WITHIN: f64 = 0.05;
/// A single round has no wait to be held against: its rows are nearer than this.
const IN_ONE_GO: f64 = 0.01;
/// How much longer a wait is than every step within a round. RowTimes have milliseconds.
const FACTOR: f64 = 3.0;
const MILLISECOND: f64 = 0.001;
/// Nobody has more GPUs in a machine.
const MOST: usize = 32;

/// Rows that belong together because they were printed in one go.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct QueryRounds {
    /// The rows of each round, by their places.
    rows: Vec<Vec<usize>>,
    /// How many rows a round has when it is whole; none where there is no pattern.
    size: Option<usize>,
}

/// The rows of each GPU, by their places; and how many rows are of none of them.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Apart {
    /// The number of a GPU, and its rows.
    pub gpus: BTreeMap<u32, Vec<usize>>,
    /// Rows of rounds that are not whole.
    pub left_out: usize,
}

/// Rows that cannot be told apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mixed {
    /// Why not.
    pub why: String,
    /// How many rows came together at most: that many GPUs are among them.
    pub most: usize,
}

impl QueryRounds {
    /// The rounds of rows at these moments. Where those leave more than one way to see it, the
    /// number of GPUs in dmon decides.
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

    /// Rows between waits. A clock that goes back was set: no round is that quick.
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

    /// Whether most rounds are as long and waits come at a steady pace. Where rows are slow to
    /// come, a gap between rows of a single GPU looks like that once or twice, not oftener.
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

    /// Rows whose steps are alike: one round, or one GPU.
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

    /// When each begins.
    pub(super) fn begins(&self, rows: &[SmiRow], moments: &[f64]) -> Vec<f64> {
        if let Some(first) = rows.first().filter(|row| row.index.is_some()) {
            let of_first = rows.iter().zip(moments).filter(|(row, _)| row.index == first.index);
            return of_first.map(|(_, at)| *at).collect();
        }
        self.rows.iter().filter_map(|round| Some(moments[*round.first()?])).collect()
    }
}

/// Tells rows apart, or says why that cannot be done. `in_dmon` are the numbers of GPUs in dmon.
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
        let why = "rows come in rounds of different lengths, or at no steady pace";
        mixed(format!("{why}, so which GPU a row is of is not known"))
    })?;
    let numbers: Vec<u32> = match in_dmon.len() == size {
        true => in_dmon.to_vec(),
        false => (0..).take(size).collect(),
    };
    // dmon shows some of many GPUs, and never more than there are.
    if in_dmon.iter().any(|number| !numbers.contains(number)) {
        let (shown, printed) = (counted(in_dmon.len() as u64, "GPU"), counted(size as u64, "row"));
        return Err(mixed(format!(
            "hw_dmon.csv has {shown} and a round of hw_metrics.csv has {printed}, so which GPU a \
             row is of is not known"
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
        let why = "the memory that a GPU has would change, so rows have changed their places";
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
    let told: usize = gpus.values().map(Vec::len).sum();
    Apart { gpus, left_out: rows.len() - told }
}

/// How many rows a round has when it is whole: none has more, and most have as many. The last may
/// have been cut off.
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

/// Whether at most one in so many is unlike the usual one. Where that is long, longer ones are
/// waits as well.
fn is_steady(steps: &[f64], usual: f64, one_in: usize) -> bool {
    let is_off = |step: &&f64| {
        FACTOR * **step < usual || (usual < LONGEST_WITHIN && **step > FACTOR * usual)
    };
    one_in * steps.iter().filter(is_off).count() <= steps.len()
}
