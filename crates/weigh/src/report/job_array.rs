//! The jobs of an array as text: least, middle and most of each figure.

use super::columns::TextColumns;
use super::phases::quantity_of;
use super::style::{BOLD, DIM, Style, YELLOW};
use crate::catalog::FigureId;
use crate::summary::job::array::{ArrayJob, ArraySummary, SpreadFigure};
use crate::summary::job::named;
use crate::text::printable;

/// The figures over several jobs.
pub fn text(array: &ArraySummary, style: Style) -> String {
    let count = format!("{} jobs", array.jobs.len());
    let running = array.jobs.iter().filter(|job| job.is_running).count();
    let running = if running > 0 { format!(" · {running} still running") } else { String::new() };
    let mut out =
        format!("{} {}{running}\n", style.paint(DIM, "weigh:"), style.paint(BOLD, &count));
    let of = |is_listed: fn(&ArrayJob) -> bool| -> Vec<String> {
        array.jobs.iter().filter(|job| is_listed(job)).map(name).collect()
    };
    for (what, jobs) in [
        ("without any recording", of(|job| job.nodes_recorded == 0)),
        (
            "with nodes that are missing or ended early",
            of(|job| job.nodes_recorded > 0 && !job.is_whole),
        ),
    ] {
        if !jobs.is_empty() {
            let names = named(jobs.iter().map(String::as_str));
            let line = format!("{} {what}: {names}", jobs.len());
            out.push_str(&format!("  {}\n", style.paint(YELLOW, &line)));
        }
    }
    let columns = TextColumns {
        indent: 2,
        header: ["figure", "min", "median", "max", "of job", "jobs"],
        left_aligned: &[0, 4],
        elastic: 4,
        optional: &[5],
    };
    let row = |figure: &SpreadFigure| {
        let id = FigureId::named(figure.name)?;
        let shown = |value| quantity_of(id, value, style.units);
        let [min, median, max] = [figure.min, figure.median, figure.max].map(shown);
        let most = array.jobs.get(figure.max_job).map(name).unwrap_or_default();
        Some([id.label().to_owned(), min, median, max, most, figure.jobs.to_string()])
    };
    let is_used = |figure: &&SpreadFigure| figure.max > 0.0;
    let rows: Vec<_> = array.figures.iter().filter(is_used).filter_map(row).collect();
    out.push_str(&columns.lines(&rows, style, |_| false));
    out
}

/// The id of a job, or its directory where it is not known.
fn name(job: &ArrayJob) -> String {
    let directory = || job.directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    printable(&job.id.clone().unwrap_or_else(directory))
}
