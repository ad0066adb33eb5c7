//! Ten million process rows to Parquet, beside pyarrow writing the same table.
//!
//! The rows are those of a real recording, again and again with later times. pyarrow
//! has the table in memory already and only writes it, with its own defaults; weigh
//! reads, checks and unpacks the recording as well; the goal is half the speed.

use std::process::Command;

use anyhow::{Context, Result, bail};
use weigh::catalog::Scope;
use weigh::record::Recording;

use super::table::{Line, median};
use super::{Bench, longer, timed};
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
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let rows = if bench.quick { 500_000 } else { 10_000_000 };
    let what = format!("{rows} process rows to Parquet");
    let Ok(python) = python::with_readers() else {
        return Ok(vec![Line::new(what, "left out: no pyarrow to be had")]);
    };
    let directory = longer::recording(bench, rows)?;
    let stream = longer::stream(&directory, &Recording::open(&directory)?, Scope::Process);
    let mut pairs = Vec::new();
    for _ in 0..bench.repeats() {
        let arguments = ["export", "-f", "parquet", "--table", "process", "-o"].map(Into::into);
        let export =
            timed(bench, &[&arguments[..], &[bench.fresh("export"), directory.clone()]].concat())?;
        let written = bench.fresh("pyarrow");
        let mut script = Command::new(&python);
        let (out, _) = command::output(script.args(["-c", PYARROW]).arg(&stream).arg(&written))?;
        let (count, seconds) = out.trim().split_once(' ').context("pyarrow printed nothing")?;
        if count.parse::<u64>()? < rows {
            bail!("pyarrow read {count} of {rows} rows");
        }
        pairs.push((export.seconds, seconds.parse::<f64>()?, export.memory));
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
