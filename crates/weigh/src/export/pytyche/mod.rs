//! What the run_monitor of pytyche 0.2.1 would have written: `cpu_metrics.csv` of its
//! HWMonitor, and the lines of its RunLog.
//!
//! Names, columns, digits and the order of keys are theirs to the byte; the numbers are
//! weigh's. A moment is written as theirs is, in UTC and cut to a millisecond, and comes
//! from one clock in both files, so a phase can be laid over the rows it lasted.
//!
//! What surprised us: `RunLog.write` is told where to write, so the log has no name of its
//! own. Here it is `run_log.jsonl`. A summary by their reader is a mean over rows, whatever
//! time a row stands for; that is why rows are an interval apart here, also where weigh
//! looked oftener.

mod cpu;
mod log;
#[cfg(test)]
mod tests;

use std::path::Path;

use super::{Error, Exported, unfinished, unix_nanoseconds};
use crate::catalog::Scope;
use crate::collect;
use crate::destination::{Destination, Lines};
use crate::record::{Moment, Recording, files};
use crate::summary::{Accumulator, Summary};
use cpu::Sampler;

/// The file with a row for each interval.
const CPU: &str = "cpu_metrics.csv";
/// The names of its columns.
const HEADER: &str = "timestamp,usr_pct,idle_pct";
/// The file with a line for each phase and event.
const LOG: &str = "run_log.jsonl";

/// Writes what pytyche's HWMonitor and RunLog would have written of a run into a directory.
///
/// Both files are written before one of them has its name; one that exists is only replaced
/// with `force`. Memory does not grow with the length of the recording.
pub fn export(recording: &Recording, directory: &Path, force: bool) -> Result<Exported, Error> {
    if files::is_recording(directory) {
        return Err(Error::IntoRecording { path: directory.to_owned() });
    }
    let paths = [CPU, LOG].map(|name| directory.join(name));
    paths.iter().try_for_each(|path| Destination::check(path, force))?;
    let begin = |path| Lines::create(Destination::create(path, force)?, "\n");
    let (mut table, mut lines) = (begin(&paths[0])?, begin(&paths[1])?);
    let (summary, sampler) = track(recording, &mut table)?;
    for line in log::lines(recording, &summary) {
        lines.line(&line)?;
    }
    let mut missing = unfinished(recording);
    missing.extend(sampler.missing());
    missing.extend(log::missing(&summary));
    Ok(Exported { files: vec![table.finish()?, lines.finish()?], missing })
}

/// Goes through the recording once: writes the table, and says what the run used.
fn track(recording: &Recording, table: &mut Lines) -> Result<(Summary, Sampler), Error> {
    let manifest = recording.manifest();
    let mut accumulator = Accumulator::new(manifest);
    let mut sampler = Sampler::every(manifest.interval_seconds);
    table.line(HEADER)?;
    let mut failed = None;
    let mut each = |row: cpu::Row| {
        let time = timestamp(manifest.started, row.at.as_secs_f64());
        let (user, idle) = (100.0 * row.shares.user, 100.0 * row.shares.idle);
        if failed.is_none() {
            failed = table.line(&format!("{time},{user:.1},{idle:.1}")).err();
        }
    };
    recording.replay(&collect::all_groups(), |moment| match moment {
        Moment::Tick(tick) => {
            accumulator.tick(tick);
            let looked = tick.table(Scope::Node).filter(|table| !table.is_empty());
            if let Some(row) = looked.and_then(|table| sampler.see(tick.at, table.get(0))) {
                each(row);
            }
        }
        Moment::Event(entry) => accumulator.event(entry),
    })?;
    if let Some(row) = sampler.only() {
        each(row);
    }
    failed.map_or(Ok(()), Err)?;
    Ok((accumulator.finish(), sampler))
}

/// A moment of a run as `datetime.isoformat(timespec="milliseconds")` writes it.
fn timestamp(started: jiff::Timestamp, seconds: f64) -> String {
    let [least, most] =
        [jiff::Timestamp::MIN, jiff::Timestamp::MAX].map(jiff::Timestamp::as_nanosecond);
    let nanoseconds = unix_nanoseconds(started, seconds).clamp(least, most);
    let moment = jiff::Timestamp::from_nanosecond(nanoseconds).unwrap_or(started);
    moment.strftime("%Y-%m-%dT%H:%M:%S%.3f+00:00").to_string()
}
