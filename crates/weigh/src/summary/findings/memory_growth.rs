//! Memory that grows steadily until the end.

use serde_json::json;

use super::super::memory_growth::SteadyGrowth;
use super::super::{Finding, Severity, Summary};
use super::finding;
use crate::catalog::FigureId;
use crate::model::numbering;
use crate::quantity::{self, Units};

/// What would be full later than this is not worth naming.
const SOON_SECONDS: f64 = 30.0 * 86_400.0;

/// The finding, with the rate, the process that grew and when the memory would be full.
pub(super) fn of(summary: &Summary, growth: &SteadyGrowth) -> Option<Finding> {
    let bytes = |value: f64| quantity::bytes(value, Units::Binary);
    let left = free(summary, growth).map(|(free, what)| {
        let seconds = free.max(0.0) / growth.bytes_per_second;
        (seconds, what)
    });
    let left = left.filter(|(seconds, _)| *seconds < SOON_SECONDS);
    let process = growth.grower.as_ref().map_or_else(String::new, |grower| {
        format!(", most of it in {} ({})", grower.name, numbering::shown(grower.pid))
    });
    let full = left.as_ref().map_or_else(String::new, |(seconds, what)| {
        format!(" At this rate {what} would be full {} later.", quantity::seconds(*seconds))
    });
    let sentence = format!(
        "Its memory grew steadily until the end: by {} a minute, from {} at {} to {} at \
         {}{process}.{full}",
        bytes(growth.bytes_per_second * 60.0),
        bytes(growth.from),
        quantity::seconds(growth.since),
        bytes(growth.to),
        quantity::seconds(growth.until),
    );
    let full_after = left.as_ref().map(|(seconds, _)| *seconds);
    // As long again, and it is killed.
    let is_near = full_after.is_some_and(|seconds| seconds < growth.until);
    finding(
        "memory.growth",
        if is_near { Severity::Warning } else { Severity::Note },
        sentence,
        json!({
            "bytes_per_second": growth.bytes_per_second,
            "from_bytes": growth.from,
            "from_seconds": growth.since,
            "to_bytes": growth.to,
            "to_seconds": growth.until,
            "pid": growth.grower.as_ref().map(|grower| grower.pid),
            "program": growth.grower.as_ref().map(|grower| &grower.name),
            "full_after_seconds": full_after,
        }),
        "If it should not keep all that it has read or computed, look for memory that is never freed.",
    )
}

/// What is free at the end, and of what: the run's cgroup, or else the machine.
fn free(summary: &Summary, growth: &SteadyGrowth) -> Option<(f64, String)> {
    let bytes = |value: u64| quantity::bytes(value as f64, Units::Binary);
    // The limit is that of weigh's own cgroup, which does not apply to other processes.
    let limit = summary.host.tight_memory_limit_bytes().filter(|_| summary.run.target.is_none());
    if let Some(limit) = limit {
        return Some((limit as f64 - growth.to, format!("the {} of its cgroup", bytes(limit))));
    }
    let total = summary.host.memory_bytes?;
    let used = summary.parts.system.figures.value(FigureId::MemoryUsedPeak);
    let free = total as f64 - used.unwrap_or(growth.to).max(growth.to);
    Some((free, format!("the {} of the machine", bytes(total))))
}
