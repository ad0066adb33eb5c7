//! One row about a run: its metadata, how it ended, and its figures.

use arrow_array::RecordBatch;

use super::table_builder::TableBuilder;
use super::{Cause, Error, tables};
use crate::record::Recording;
use crate::summary::{self, Summary};

/// The row of a run.
pub(super) fn row(recording: &Recording) -> Result<RecordBatch, Error> {
    let summary = summary::of(recording)?;
    let figures = summary.figures.clone();
    let labels = serde_json::to_string(&summary.run.labels).map_err(Cause::from)?;
    let rows = [summary];
    let mut columns = TableBuilder::default();
    let began = tables::started(recording);
    columns.times("time", "When it began", &rows, |_| Some(began));
    columns.texts("name", "Its name", &rows, |row| Some(row.run.name.clone()));
    columns.texts("command", "The command, with spaces between its arguments", &rows, |row| {
        row.run.command.as_ref().map(|command| command.join(" "))
    });
    columns.texts("labels", "Labels of the run, as JSON", &rows, |_| Some(labels.clone()));
    let code = |row: &Summary| row.run.exit_code.map(i64::from);
    columns.integers("exit_code", "128 and the signal when one killed it", &rows, code);
    columns.numbers("duration_seconds", "From exec to exit", &rows, |row| {
        Some(row.run.duration_seconds)
    });
    let help = "From exec to the end of the measurement, which rates are over";
    columns.numbers("measured_seconds", help, &rows, |row| Some(row.run.measured()));
    columns.integers("complete", "1 when its end is recorded", &rows, |row| {
        Some(i64::from(row.run.complete))
    });
    for (id, figure) in figures.iter() {
        columns.numbers(id.name(), &figure.source, &rows, |_| figure.value);
    }
    Ok(columns.done().map_err(Cause::from)?)
}
