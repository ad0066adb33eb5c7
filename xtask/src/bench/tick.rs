//! CPU of a tick beside the bare reads, by how many processes there are and how many ran;
//! and the memory that weigh takes for it.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use super::table::{Line, median, time};
use super::weighed::{Shape, Weighed};
use crate::probe::Found;

/// How often weigh writes; a window holds a whole number of writes, so that each tick bears its part of them.
const WRITES_EVERY: Duration = weigh::record::FLUSH_EVERY;

const SHAPES: [Shape; 7] = [
    Shape { count: 1, running: 0 },
    Shape { count: 1, running: 1 },
    Shape { count: 100, running: 0 },
    Shape { count: 100, running: 100 },
    Shape { count: 1000, running: 0 },
    Shape { count: 1000, running: 10 },
    Shape { count: 1000, running: 100 },
];

/// What a tick may cost beside the bare reads.
const AT_MOST: f64 = 1.5;
/// What a tick over 1,000 processes may cost when at most this many of them ran.
const MOSTLY_IDLE: (u32, f64) = (100, 6e-3);

/// CPU of a tick, for every shape.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    let mut pairs = vec![Vec::new(); SHAPES.len()];
    // Round by round, so that a slow minute of the machine affects every shape.
    for _ in 0..bench.repeats() {
        for (shape, pairs) in SHAPES.iter().zip(&mut pairs) {
            pairs.push(one(bench, *shape)?);
        }
    }
    for (shape, pairs) in SHAPES.iter().zip(&pairs) {
        let weigh = median(pairs.iter().map(|pair| pair.0.0));
        let floor = median(pairs.iter().map(|pair| pair.1.cpu));
        let ratio = median(pairs.iter().map(|pair| pair.0.0 / pair.1.cpu));
        let listed = 100.0 * median(pairs.iter().map(|pair| pair.1.listed));
        let what = format!("tick, {}", named(*shape));
        let line = Line::new(what.clone(), time(weigh)).beside(
            format!("bare reads {}, /proc listed in {listed:.0} %", time(floor)),
            format!("{ratio:.2} ×"),
        );
        lines.push(line.goal(format!("≤ {AT_MOST} ×"), ratio <= AT_MOST));
        let all = median(pairs.iter().map(|pair| pair.0.1));
        let ratio = median(pairs.iter().map(|pair| pair.0.1 / pair.1.cpu));
        let line = Line::new(format!("{what}, and recording it"), time(all));
        lines.push(line.beside("the same".to_owned(), format!("{ratio:.2} ×")));
        let (idle, most) = MOSTLY_IDLE;
        if shape.count == 1000 && shape.running <= idle {
            let line = Line::new(format!("{what}, absolute"), time(weigh));
            lines.push(line.goal(format!("≤ {}", time(most)), weigh <= most));
        }
    }
    Ok(lines)
}

/// CPU seconds of a tick of weigh, without and with the recording, and of the bare reads, at the same time on the same load.
fn one(bench: &Bench, shape: Shape) -> Result<((f64, f64), Found)> {
    let window = WRITES_EVERY * if bench.quick { 1 } else { 3 };
    let weighed = Weighed::start(bench, shape, "100ms")?;
    let from = weighed.now() + Duration::from_millis(150);
    let floor = weighed.probe(bench, Duration::from_millis(100), window)?;
    let until = weighed.now();
    Ok((weighed.end()?.cpu_per_tick(from, until)?, floor))
}

/// A load as text.
pub(super) fn named(shape: Shape) -> String {
    let processes = if shape.count == 1 { "process" } else { "processes" };
    match (shape.count, shape.running) {
        (count, 0) => format!("{count} {processes}, idle"),
        (1, 1) => "1 process, running".to_owned(),
        (count, running) if count == running => format!("{count} {processes}, all running"),
        (count, running) => format!("{count} {processes}, {running} running"),
    }
}

/// Resident memory of weigh, with one process and with many.
pub(super) fn memory(bench: &Bench) -> Result<Vec<Line>> {
    let shapes = [(Shape { count: 1, running: 1 }, 12), (Shape { count: 1000, running: 100 }, 20)];
    shapes
        .into_iter()
        .map(|(shape, most)| {
            let weighed = Weighed::start(bench, shape, "100ms")?;
            // Two batches are written meanwhile.
            std::thread::sleep(Duration::from_secs(if bench.quick { 1 } else { 4 }));
            let mib = weighed.end()?.monitor("memory_peak_bytes")? as f64 / f64::from(1 << 20);
            let line = Line::new(format!("memory, {}", named(shape)), format!("{mib:.1} MiB"));
            Ok(line.goal(format!("≤ {most} MiB"), mib <= f64::from(most)))
        })
        .collect()
}
