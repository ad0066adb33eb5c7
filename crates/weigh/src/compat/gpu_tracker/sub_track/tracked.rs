//! What was used when, from a tracking file or a recording.

use std::path::Path;

use super::super::tracking::{
    CONSTANTS, Constants, MEASURES, TIMESTAMP, TrackingFormat, TrackingRow, format_of,
};
use super::super::{Error, GpuTrackerOptions, replay};
use super::statistics::Summing;
use super::table::{self, CsvColumns};
use crate::compat::python::PythonValue;
use crate::record::Recording;

/// A tracked session.
#[derive(Debug, Clone, PartialEq)]
pub struct Tracked {
    /// What is constant, by name.
    pub constants: Vec<(String, PythonValue)>,
    /// When something was measured, in seconds since 1970.
    pub timestamps: Vec<f64>,
    /// The measures, in the order of [`MEASURES`]; NaN where one is missing.
    pub measures: Vec<Vec<f64>>,
    /// The order in which gpu-tracker adds values from this source.
    pub summing: Summing,
}

impl Tracked {
    pub(super) fn new(constants: Vec<(String, PythonValue)>, summing: Summing) -> Tracked {
        let measures = vec![Vec::new(); MEASURES.len()];
        Tracked { constants, timestamps: Vec::new(), measures, summing }
    }

    pub(super) fn push(&mut self, timestamp: f64, measures: impl IntoIterator<Item = f64>) {
        self.timestamps.push(timestamp);
        for (column, value) in self.measures.iter_mut().zip(measures) {
            column.push(value);
        }
    }
}

/// Reads a tracking file, or a recording in the default units.
pub fn read(path: &Path) -> Result<Tracked, Error> {
    if super::is_recording(path) {
        return of_recording(&Recording::open(path)?, &GpuTrackerOptions::default());
    }
    match format_of(path)? {
        TrackingFormat::Csv => of_csv(path),
        TrackingFormat::Sqlite => super::database::tracked(path),
    }
}

/// The ticks of a recording.
pub fn of_recording(recording: &Recording, options: &GpuTrackerOptions) -> Result<Tracked, Error> {
    let constants = Constants::of(recording, options);
    let named = CONSTANTS.iter().map(|name| (*name).to_owned()).zip(constants.values());
    let mut tracked = Tracked::new(named.collect(), Summing::Pairwise);
    replay(recording, options, |timepoint| {
        let row: TrackingRow = constants.row(timepoint);
        let number = |value: &PythonValue| match value {
            PythonValue::Whole(number) => *number as f64,
            PythonValue::Real(number) => *number,
            _ => f64::NAN,
        };
        tracked.push(timepoint.timestamp, row.iter().map(number));
    })?;
    Ok(tracked)
}

fn of_csv(path: &Path) -> Result<Tracked, Error> {
    let lines = table::read(path)?;
    let [header, values, ..] = lines.as_slice() else {
        let why = "the static data are missing".to_owned();
        return Err(Error::Malformed { path: path.to_owned(), line: 1, why });
    };
    let columns = CsvColumns::find(path, header, &CONSTANTS)?;
    let constants = CONSTANTS
        .iter()
        .enumerate()
        .map(|(place, name)| Ok(((*name).to_owned(), constant(columns.cell(values, place)?))))
        .collect::<Result<_, Error>>()?;
    let mut tracked = Tracked::new(constants, Summing::Pairwise);
    // A session that ended before its first sample has no second header either.
    let Some((header, rows)) = lines[2..].split_first() else { return Ok(tracked) };
    let mut names = MEASURES.to_vec();
    names.push(TIMESTAMP);
    let columns = CsvColumns::find(path, header, &names)?;
    for line in rows {
        let numbers = (0..names.len())
            .map(|place| columns.number(line, place))
            .collect::<Result<Vec<_>, _>>()?;
        let timestamp = numbers[MEASURES.len()];
        if !timestamp.is_finite() {
            return Err(columns.wrong(line, "the timestamp is missing"));
        }
        tracked.push(timestamp, numbers);
    }
    Ok(tracked)
}

fn constant(cell: &str) -> PythonValue {
    if let Ok(number) = cell.parse::<i64>() {
        return PythonValue::Whole(number);
    }
    match cell.parse::<f64>() {
        Ok(number) => PythonValue::Real(number),
        Err(_) if cell.is_empty() => PythonValue::Real(f64::NAN),
        Err(_) => PythonValue::Text(cell.to_owned()),
    }
}
