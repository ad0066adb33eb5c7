//! A recording of a real run, made longer: its rows again and again with later times.

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{RecordBatch, TimestampNanosecondArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use weigh::catalog::Scope;
use weigh::record::Recording;

use super::Bench;
use super::weighed::{Shape, Weighed};

/// The run lasts less, so no two pieces overlap.
const PIECE: i64 = 10_000_000_000;

/// A recording with this many rows of processes. None of them exits.
pub(super) fn recording(bench: &Bench, rows: u64) -> Result<PathBuf> {
    let weighed = Weighed::start(bench, Shape { count: 100, running: 100 }, "20ms")?;
    std::thread::sleep(Duration::from_secs(4));
    let directory = weighed.end_recording()?;
    let recording = Recording::open(&directory)?;
    let all = batches(&recording, Scope::Process)?.context("no rows of processes")?;
    let pieces = rows.div_ceil(all.iter().map(|batch| batch.num_rows() as u64).sum());
    for scope in Scope::ALL {
        if let Some(batches) = batches(&recording, scope)? {
            lengthen(&stream(&directory, &recording, scope), &batches, pieces as i64)?;
        }
    }
    let events = directory.join("events.jsonl");
    let events_text = std::fs::read_to_string(&events)?;
    let ends = |line: &&str| !line.contains("\"process_exit\"") && !line.contains("\"run_end\"");
    let remaining: String =
        events_text.lines().filter(ends).map(|line| format!("{line}\n")).collect();
    std::fs::write(&events, remaining)?;
    Ok(directory)
}

/// The file of a scope.
pub(super) fn stream(directory: &Path, recording: &Recording, scope: Scope) -> PathBuf {
    directory.join(&recording.manifest().host.name).join(format!("{}.arrows", scope.name()))
}

fn batches(recording: &Recording, scope: Scope) -> Result<Option<Vec<RecordBatch>>> {
    let batches = recording.batches(scope)?;
    Ok(batches.map(Iterator::collect::<Result<_, _>>).transpose()?)
}

fn lengthen(stream: &Path, batches: &[RecordBatch], pieces: i64) -> Result<()> {
    let Some(first) = batches.first() else { return Ok(()) };
    let longer = stream.with_extension("longer");
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
    let file = BufWriter::new(File::create(&longer)?);
    let mut writer = StreamWriter::try_new_with_options(file, &first.schema(), options)?;
    for piece in 0..pieces {
        for batch in batches {
            writer.write(&shifted(batch, piece * PIECE)?)?;
        }
    }
    writer.finish()?;
    drop(writer);
    Ok(std::fs::rename(&longer, stream)?)
}

fn shifted(batch: &RecordBatch, later: i64) -> Result<RecordBatch> {
    let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
    let times: TimestampNanosecondArray = times.unary(|at| at + later);
    let mut columns = batch.columns().to_vec();
    columns[0] = Arc::new(times.with_timezone("UTC"));
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}
