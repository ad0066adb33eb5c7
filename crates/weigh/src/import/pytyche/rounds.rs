//! Which row is of which GPU, where rows do not say.
//!
//! `nvidia-smi -l N` prints one row for each GPU, one after the other within milliseconds, and
//! then waits for N seconds, one at least. So rows come in rounds, and in each round a GPU has
//! the same place. Nothing more is taken for granted: a round with other rows than most have is
//! left out, and where most differ, it is said that it cannot be told.

use std::collections::BTreeMap;

use crate::parse::nvidia_smi::Row;

/// Rows of a round are nearer to each other than this, and rounds farther apart.
const BETWEEN_ROUNDS: f64 = 0.5;

/// The rows of each GPU, by their places; and how many rows are of none of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Apart {
    /// The number of a GPU, and its rows.
    pub gpus: BTreeMap<u32, Vec<usize>>,
    /// Rows of rounds that are not whole.
    pub left_out: usize,
}

/// Tells rows apart, or says why that cannot be done. `in_dmon` is how many GPUs dmon shows.
pub fn apart(rows: &[Row], moments: &[f64], in_dmon: usize) -> Result<Apart, String> {
    if rows.is_empty() || rows.iter().any(|row| row.index.is_some()) {
        return Ok(by_index(rows));
    }
    let rounds = rounds(moments);
    let size = usual_size(&rounds)
        .ok_or("rows come in rounds of different lengths, so which GPU a row is of is not known")?;
    // dmon shows some of many GPUs, and never more than there are.
    if in_dmon > size {
        return Err(format!(
            "hw_dmon.csv has {in_dmon} GPUs and rounds of hw_metrics.csv have {size} rows, so \
             which GPU a row is of is not known"
        ));
    }
    let mut gpus: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    let mut left_out = 0;
    for round in rounds {
        if round.len() != size {
            left_out += round.len();
            continue;
        }
        for (place, row) in (0..).zip(round) {
            gpus.entry(place).or_default().push(row);
        }
    }
    let changes = |places: &Vec<usize>| {
        let mut totals = places.iter().filter_map(|row| rows[*row].memory_total);
        totals.next().is_some_and(|first| totals.any(|total| total != first))
    };
    if gpus.values().any(changes) {
        let why = "the memory that a GPU has would change, so rows have changed their places";
        return Err(why.to_owned());
    }
    Ok(Apart { gpus, left_out })
}

/// When each round begins.
pub fn begins(rows: &[Row], moments: &[f64]) -> Vec<f64> {
    if let Some(first) = rows.first().filter(|row| row.index.is_some()) {
        let of_first = rows.iter().zip(moments).filter(|(row, _)| row.index == first.index);
        return of_first.map(|(_, at)| *at).collect();
    }
    rounds(moments).iter().filter_map(|round| Some(moments[*round.first()?])).collect()
}

fn by_index(rows: &[Row]) -> Apart {
    let mut gpus: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        if let Some(index) = row.index {
            gpus.entry(index).or_default().push(place);
        }
    }
    let told: usize = gpus.values().map(Vec::len).sum();
    Apart { gpus, left_out: rows.len() - told }
}

fn rounds(moments: &[f64]) -> Vec<Vec<usize>> {
    let mut rounds: Vec<Vec<usize>> = Vec::new();
    for (place, at) in moments.iter().enumerate() {
        let is_next = |before: usize| (at - moments[before]).abs() < BETWEEN_ROUNDS;
        match rounds.last_mut() {
            Some(round) if is_next(place - 1) => round.push(place),
            _ => rounds.push(vec![place]),
        }
    }
    rounds
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
