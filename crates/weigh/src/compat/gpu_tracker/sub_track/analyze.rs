//! What each code block used.

use super::super::tracking::MEASURES;
use super::blocks::Block;
use super::results::{CodeBlockResults, SubTrackingResults};
use super::statistics::{MeasureStatistics, Summing};
use super::tracked::Tracked;

/// Everything over the whole session, and over the calls of each code block.
pub fn analyze(tracked: &Tracked, blocks: &[Block]) -> SubTrackingResults {
    let mut sorted = tracked.timestamps.clone();
    sorted.sort_by(f64::total_cmp);
    SubTrackingResults {
        has_whole_counts: false,
        overall: overall(tracked),
        static_data: tracked.constants.clone(),
        code_block_results: blocks
            .iter()
            .map(|block| analyze_block(tracked, &sorted, block))
            .collect(),
    }
}

/// Statistics of each measure over all timepoints.
pub fn overall(tracked: &Tracked) -> Vec<(String, MeasureStatistics)> {
    let measures = MEASURES.iter().zip(&tracked.measures);
    measures
        .map(|(name, values)| ((*name).to_owned(), MeasureStatistics::of(values, tracked.summing)))
        .collect()
}

/// The rows of the timepoints within any of these calls, in their order.
pub fn rows_within(tracked: &Tracked, calls: &[(f64, f64)]) -> Vec<usize> {
    let spans = merged(calls);
    let is_inside = |at: f64| {
        let next = spans.partition_point(|(start, _)| *start <= at);
        next.checked_sub(1).is_some_and(|place| at <= spans[place].1)
    };
    (0..tracked.timestamps.len()).filter(|row| is_inside(tracked.timestamps[*row])).collect()
}

fn analyze_block(tracked: &Tracked, sorted: &[f64], block: &Block) -> CodeBlockResults {
    let inside = rows_within(tracked, &block.calls);
    let has_any = |(start, stop): &&(f64, f64)| {
        let first = sorted.partition_point(|at| at < start);
        sorted.get(first).is_some_and(|at| at <= stop)
    };
    let lengths: Vec<f64> = block.calls.iter().map(|(start, stop)| stop - start).collect();
    let usage = MEASURES.iter().zip(&tracked.measures).map(|(name, values)| {
        let values: Vec<f64> = inside.iter().map(|row| values[*row]).collect();
        ((*name).to_owned(), MeasureStatistics::of(&values, Summing::Pairwise))
    });
    CodeBlockResults {
        name: block.name.clone(),
        num_timepoints: inside.len() as u64,
        num_calls: block.calls.len() as u64,
        num_non_empty_calls: block.calls.iter().filter(has_any).count() as u64,
        compute_time: MeasureStatistics::of(&lengths, Summing::Pairwise),
        total_time: Summing::Pairwise.sum(&lengths),
        resource_usage: usage.collect(),
    }
}

/// Calls that overlap as one, in the order of time.
fn merged(calls: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut calls = calls.to_vec();
    calls.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut spans: Vec<(f64, f64)> = Vec::new();
    for (start, stop) in calls {
        match spans.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(stop),
            _ => spans.push((start, stop)),
        }
    }
    spans
}
