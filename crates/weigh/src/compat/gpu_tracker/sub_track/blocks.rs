//! When code blocks began and ended, from a sub-tracking file or the phases of a recording.
//!
//! A sub-tracking file has a process, a name, a position and a time, but no id that pairs a
//! start with its stop. They are paired within one process and name as calls nest: a stop ends
//! the call that began last. Calls of one name that overlap in threads of one process cannot be
//! separated in such a file; their sum is right all the same. Phases of a recording have ids.

use std::collections::BTreeMap;
use std::path::Path;

use super::super::Error;
use super::super::tracking::{TrackingFormat, format_of};
use super::table::{self, CsvColumns};
use crate::compat::python::repr;
use crate::export::unix_seconds;
use crate::record::{Event, Recording};

/// A code block and its calls.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Its name.
    pub name: String,
    /// When each call began and ended, in seconds since 1970.
    pub calls: Vec<(f64, f64)>,
}

/// One row of a sub-tracking file.
#[derive(Debug, Clone, PartialEq)]
pub struct Position {
    /// The process.
    pub process_id: i64,
    /// The name of the code block.
    pub name: String,
    /// Whether it ends here.
    pub stop: bool,
    /// When, in seconds since 1970.
    pub timestamp: f64,
}

/// The columns of a sub-tracking file.
pub const COLUMNS: [&str; 4] = ["process_id", "code_block_name", "position", "timestamp"];

/// The code blocks of a sub-tracking file or a recording, by name.
pub fn read(path: &Path) -> Result<Vec<Block>, Error> {
    if super::is_recording(path) {
        return Ok(of_recording(&Recording::open(path)?));
    }
    pair(&positions(path)?)
}

/// The rows of a sub-tracking file or a recording, in their order.
pub fn positions(path: &Path) -> Result<Vec<Position>, Error> {
    if super::is_recording(path) {
        return Ok(positions_of_recording(&Recording::open(path)?));
    }
    match format_of(path)? {
        TrackingFormat::Csv => positions_of_csv(path),
        TrackingFormat::Sqlite => super::database::positions(path),
    }
}

fn positions_of_csv(path: &Path) -> Result<Vec<Position>, Error> {
    let lines = table::read(path)?;
    let Some((header, rows)) = lines.split_first() else {
        let why = "the file is empty".to_owned();
        return Err(Error::Malformed { path: path.to_owned(), line: 1, why });
    };
    let columns = CsvColumns::find(path, header, &COLUMNS)?;
    rows.iter()
        .map(|line| {
            let process = columns.cell(line, 0)?;
            let wrong = |why: String| columns.wrong(line, why);
            let timestamp = columns.number(line, 3)?;
            if !timestamp.is_finite() {
                return Err(wrong("the timestamp is missing".to_owned()));
            }
            Ok(Position {
                process_id: process
                    .trim()
                    .parse()
                    .map_err(|_| wrong(format!("\"{process}\" is not a process id")))?,
                name: columns.cell(line, 1)?.to_owned(),
                stop: match columns.cell(line, 2)?.trim() {
                    "0" => false,
                    "1" => true,
                    other => {
                        return Err(wrong(format!("position \"{other}\" is neither 0 nor 1")));
                    }
                },
                timestamp,
            })
        })
        .collect()
}

/// Pairs starts with stops. A call that does not end is left out.
pub fn pair(positions: &[Position]) -> Result<Vec<Block>, Error> {
    let mut blocks: BTreeMap<&str, BTreeMap<i64, Vec<&Position>>> = BTreeMap::new();
    for position in positions {
        let processes = blocks.entry(position.name.as_str()).or_default();
        processes.entry(position.process_id).or_default().push(position);
    }
    blocks
        .into_iter()
        .map(|(name, processes)| {
            let mut processes: Vec<(i64, Vec<&Position>)> = processes.into_iter().collect();
            for (_, positions) in &mut processes {
                // A stable sort: rows of the same time keep the order of the file.
                positions.sort_by(|one, other| one.timestamp.total_cmp(&other.timestamp));
            }
            let mut calls = Vec::new();
            for (place, (_, positions)) in processes.iter().enumerate() {
                let next = processes.get(place + 1).and_then(|(_, positions)| positions.first());
                calls.extend(nested(positions, next.copied())?);
            }
            Ok(Block { name: name.to_owned(), calls })
        })
        .collect()
}

/// Pairs the starts and stops of one process; `after` is the first row of the next process.
///
/// What is wrong is reported as gpu-tracker does, which takes a stop without a start for a start,
/// and the row after it for its stop.
fn nested(positions: &[&Position], after: Option<&Position>) -> Result<Vec<(f64, f64)>, Error> {
    let mut open = Vec::new();
    let mut calls = Vec::new();
    for (place, position) in positions.iter().enumerate() {
        if !position.stop {
            open.push(position.timestamp);
            continue;
        }
        let Some(start) = open.pop() else {
            let (at, process) = (repr(position.timestamp), position.process_id);
            let what = match (positions.get(place + 1), after) {
                (Some(next), _) => format!(
                    "Detected timestamp pair ({at}, {}) of process ID {process} with a start time \
                     greater than the stop time.",
                    repr(next.timestamp)
                ),
                (None, Some(next)) => format!(
                    "Detected timestamp pair ({at}, {}) with differing process IDs: {process} and \
                     {}.",
                    repr(next.timestamp),
                    next.process_id
                ),
                (None, None) => format!(
                    "\"{}\" of process ID {process} stops at {at} without a start.",
                    position.name
                ),
            };
            return Err(Error::Invalid(format!("Sub-tracking file is invalid. {what}")));
        };
        calls.push((start, position.timestamp));
    }
    calls.sort_by(|one, other| one.0.total_cmp(&other.0));
    Ok(calls)
}

/// The phases of a recording; one that did not end is left out.
pub fn of_recording(recording: &Recording) -> Vec<Block> {
    let mut blocks: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for phase in phases(recording) {
        let calls = blocks.entry(phase.name.to_owned()).or_default();
        calls.extend(phase.stop.map(|stop| (phase.start, stop)));
    }
    blocks.into_iter().map(|(name, calls)| Block { name, calls }).collect()
}

struct PhaseSpan<'a> {
    id: &'a str,
    name: &'a str,
    start: f64,
    stop: Option<f64>,
}

fn phases(recording: &Recording) -> Vec<PhaseSpan<'_>> {
    let mut phases: Vec<PhaseSpan<'_>> = Vec::new();
    for entry in recording.entries() {
        let at = unix_seconds(recording.manifest().started, entry.seconds);
        match &entry.event {
            Event::PhaseStart { id, name, .. } => {
                phases.push(PhaseSpan { id, name, start: at, stop: None });
            }
            Event::PhaseEnd { id, .. } => {
                let open = phases.iter_mut().rfind(|phase| phase.id == id && phase.stop.is_none());
                if let Some(phase) = open {
                    phase.stop = Some(at);
                }
            }
            _ => {}
        }
    }
    phases
}

/// The phases of a recording as a sub-tracking file has them, all of the command's process.
fn positions_of_recording(recording: &Recording) -> Vec<Position> {
    let process_id = i64::from(recording.manifest().pid);
    let position = |phase: &PhaseSpan<'_>, stop: bool, timestamp: f64| Position {
        process_id,
        name: phase.name.to_owned(),
        stop,
        timestamp,
    };
    let mut positions: Vec<Position> = phases(recording)
        .iter()
        .flat_map(|phase| {
            let start = position(phase, false, phase.start);
            let stop = phase.stop.map(|stop| position(phase, true, stop));
            std::iter::once(start).chain(stop)
        })
        .collect();
    positions.sort_by(|one, other| one.timestamp.total_cmp(&other.timestamp));
    positions
}
