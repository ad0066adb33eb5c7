//! A report of a million process samples, beside reading the same recording.

use anyhow::Result;

use super::table::{Line, median};
use super::{Bench, longer, timed};

const MOST_SECONDS: f64 = 3.0;
const MOST_MEMORY: f64 = 300.0;
const LARGEST_PAGE: f64 = 2.0;

/// Seconds, memory and size of the page; and of the paper.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let rows = if bench.quick { 100_000 } else { 1_000_000 };
    let directory = longer::recording(bench, rows)?;
    let mut lines = Vec::new();
    for (kind, name) in [("html", "page"), ("pdf", "paper")] {
        let what = format!("{rows} process samples to a {name}");
        let mut runs = Vec::new();
        for _ in 0..bench.repeats() {
            let out = bench.fresh("report");
            let arguments = ["report", "-f", kind, "-o"].map(Into::into);
            let report =
                timed(bench, &[&arguments[..], &[out.clone(), directory.clone()]].concat())?;
            let show = timed(bench, &["show".into(), directory.clone()])?;
            let size = std::fs::metadata(out.join(format!("report.{kind}")))?.len();
            runs.push((report, show, size as f64 / f64::from(1 << 20)));
        }
        let seconds = median(runs.iter().map(|run| run.0.seconds));
        let show = median(runs.iter().map(|run| run.1.seconds));
        let ratio = median(runs.iter().map(|run| run.0.seconds / run.1.seconds));
        let memory = runs.iter().map(|run| run.0.memory).fold(0.0, f64::max);
        let size = runs[0].2;
        let beside = format!("weigh show {show:.2} s");
        lines.push(
            Line::new(what.clone(), format!("{seconds:.2} s"))
                .beside(beside, format!("{ratio:.2} ×"))
                .goal(format!("≤ {MOST_SECONDS} s"), seconds <= MOST_SECONDS),
        );
        lines.push(
            Line::new(format!("{what}, memory"), format!("{memory:.0} MiB"))
                .goal(format!("≤ {MOST_MEMORY} MiB"), memory <= MOST_MEMORY),
        );
        lines.push(
            Line::new(format!("{what}, its size"), format!("{size:.2} MiB"))
                .goal(format!("≤ {LARGEST_PAGE} MiB"), size <= LARGEST_PAGE),
        );
    }
    Ok(lines)
}
