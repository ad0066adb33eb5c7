//! Ten million process rows to Parquet, beside pyarrow writing the same table.
//!
//! The rows are those of a real recording, again and again with later times. pyarrow
//! has the table in memory already and only writes it, with its own defaults; weigh
//! reads, checks and unpacks the recording as well, and is held to half the speed.

use std::fs::File;
use std::io::BufWriter;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use arrow_array::cast::AsArray;
use arrow_array::types::TimestampNanosecondType;
use arrow_array::{RecordBatch, TimestampNanosecondArray};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{IpcWriteOptions, StreamWriter};
use weigh::catalog::Scope;
use weigh::record::Recording;

use super::Bench;
use super::table::{Line, median};
use super::weighed::{Shape, Weighed};
use crate::{command, python};

const SLOWEST: f64 = 0.5;
const MOST_MEMORY: f64 = 200.0;

const PYARROW: &str = "
import sys, time, pyarrow.ipc, pyarrow.parquet
with pyarrow.ipc.open_stream(sys.argv[1]) as stream:
    table = stream.read_all()
begin = time.perf_counter()
pyarrow.parquet.write_table(table, sys.argv[2])
print(len(table), time.perf_counter() - begin)
";

/// Seconds and memory of `weigh export`, and seconds of pyarrow.
pub fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let rows = if bench.quick { 500_000 } else { 10_000_000 };
    let what = format!("{rows} process rows to Parquet");
    let Ok(python) = python::with_readers() else {
        return Ok(vec![Line::new(what, "left out: no pyarrow to be had")]);
    };
    let (directory, stream) = recording(bench, rows)?;
    let mut pairs = Vec::new();
    for _ in 0..bench.repeats() {
        let (weigh, memory) = export(bench, &directory)?;
        let written = bench.fresh("pyarrow");
        let mut script = Command::new(&python);
        let (out, _) = command::output(script.args(["-c", PYARROW]).arg(&stream).arg(&written))?;
        let (count, seconds) = out.trim().split_once(' ').context("pyarrow said nothing")?;
        if count.parse::<u64>()? < rows {
            bail!("pyarrow read {count} of {rows} rows");
        }
        pairs.push((weigh, seconds.parse::<f64>()?, memory));
    }
    let weigh = median(pairs.iter().map(|pair| pair.0));
    let pyarrow = median(pairs.iter().map(|pair| pair.1));
    let speed = median(pairs.iter().map(|pair| pair.1 / pair.0));
    let memory = pairs.iter().map(|pair| pair.2).fold(0.0, f64::max);
    Ok(vec![
        Line::new(what.clone(), format!("{weigh:.1} s"))
            .beside(format!("pyarrow {pyarrow:.1} s"), format!("{speed:.2} × its speed"))
            .goal(format!("≥ {SLOWEST} ×"), speed >= SLOWEST),
        Line::new(format!("{what}, memory"), format!("{memory:.0} MiB"))
            .goal(format!("≤ {MOST_MEMORY} MiB"), memory <= MOST_MEMORY),
    ])
}

/// Seconds that the export took, and the MiB it needed.
fn export(bench: &Bench, directory: &Path) -> Result<(f64, f64)> {
    let mut command = Command::new(&bench.weigh);
    command.arg("export").arg(directory).args(["-f", "parquet", "--table", "process", "-o"]);
    let begin = Instant::now();
    let child = command.arg(bench.fresh("export")).stdout(std::process::Stdio::null()).spawn()?;
    let (mut status, mut usage) = (0, std::mem::MaybeUninit::<libc::rusage>::zeroed());
    // SAFETY: the child is ours and waited for only here; both places are ours.
    unsafe { libc::wait4(child.id() as i32, &raw mut status, 0, usage.as_mut_ptr()) };
    let seconds = begin.elapsed().as_secs_f64();
    if !std::process::ExitStatus::from_raw(status).success() {
        bail!("weigh export failed");
    }
    // SAFETY: all zeros is a valid rusage, and the kernel filled it.
    let kilobytes = unsafe { usage.assume_init() }.ru_maxrss;
    Ok((seconds, kilobytes as f64 / 1024.0))
}

/// A recording with so many rows, and its stream of them.
fn recording(bench: &Bench, rows: u64) -> Result<(PathBuf, PathBuf)> {
    let weighed = Weighed::start(bench, Shape { count: 100, running: 100 }, "20ms")?;
    std::thread::sleep(Duration::from_secs(4));
    let directory = weighed.end_recording()?;
    let recording = Recording::open(&directory)?;
    let batches = recording.batches(Scope::Process)?.context("no rows of processes")?;
    let schema = batches.schema().context("no columns")?;
    let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>()?;
    let host = directory.join(&recording.manifest().host.name);
    let (stream, longer) = (host.join("process.arrows"), host.join("longer"));
    let options = IpcWriteOptions::default().try_with_compression(Some(CompressionType::ZSTD))?;
    let file = BufWriter::new(File::create(&longer)?);
    let mut writer = StreamWriter::try_new_with_options(file, &schema, options)?;
    let (mut written, mut later) = (0, 0);
    while written < rows {
        for batch in &batches {
            writer.write(&shifted(batch, later)?)?;
            written += batch.num_rows() as u64;
        }
        later += 10_000_000_000;
    }
    writer.finish()?;
    drop(writer);
    std::fs::rename(&longer, &stream)?;
    Ok((directory, stream))
}

fn shifted(batch: &RecordBatch, later: i64) -> Result<RecordBatch> {
    let times = batch.column(0).as_primitive::<TimestampNanosecondType>();
    let times: TimestampNanosecondArray = times.unary(|at| at + later);
    let mut columns = batch.columns().to_vec();
    columns[0] = Arc::new(times.with_timezone("UTC"));
    Ok(RecordBatch::try_new(batch.schema(), columns)?)
}
