//! What a recording takes on disk.

use std::time::Duration;

use anyhow::{Result, bail};

use super::Bench;
use super::table::Line;
use super::tick::named;
use super::weighed::{Shape, Weighed};

const AT_MOST: f64 = 30.0;

/// Bytes of process.arrows for each row in it, the schema left out: it stands there once,
/// whether the run lasts a second or a week.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    [Shape { count: 100, running: 100 }, Shape { count: 1, running: 1 }]
        .into_iter()
        .map(|shape| {
            let weighed = Weighed::start(bench, shape, "100ms")?;
            let seconds = if bench.quick { 2 } else { 20 };
            std::thread::sleep(Duration::from_secs(seconds).saturating_sub(Duration::from_secs(1)));
            let ended = weighed.end()?;
            let ((bytes, schema), rows) = (ended.process_bytes()?, ended.process_rows);
            if rows == 0 {
                bail!("no rows of processes in the recording");
            }
            let each = (bytes - schema) as f64 / rows as f64;
            let what = format!("at rest, {}, {seconds} s at 10 Hz", named(shape));
            let line = Line::new(what, format!("{each:.1} bytes a row"));
            let line = line.beside(format!("{rows} rows, and {schema} bytes of schema once"), "–");
            Ok(line.goal(format!("≤ {AT_MOST} bytes"), each <= AT_MOST))
        })
        .collect()
}
