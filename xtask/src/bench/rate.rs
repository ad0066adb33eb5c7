//! Whether ticks are on time.

use std::time::Duration;

use anyhow::Result;

use super::Bench;
use super::table::Line;
use super::tick::named;
use super::weighed::{Shape, Weighed};

/// Ticks on time, compared to those of the bare reads at the same time: other programs
/// take the cores now and then, from both.
const HELD: f64 = 0.99;

/// Ticks on time, of those that were due.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let ms = Duration::from_millis(1);
    let cases = [
        (Shape { count: 100, running: 100 }, 10 * ms, "10ms", "100 Hz"),
        (Shape { count: 1, running: 1 }, ms, "1ms", "1 kHz"),
    ];
    cases
        .into_iter()
        .map(|(shape, interval, written, rate)| {
            let weighed = Weighed::start(bench, shape, written)?;
            let window = Duration::from_secs(if bench.quick { 1 } else { 5 });
            let from = weighed.now();
            let bare = weighed.probe(bench, interval, window)?.on_time;
            let until = weighed.now();
            let on_time = weighed.end()?.on_time(from, until)?;
            let line = Line::new(
                format!("{rate} held, {}", named(shape)),
                format!("{:.1} % of ticks", 100.0 * on_time),
            );
            let ratio = on_time / bare;
            let line =
                line.beside(format!("bare reads {:.1} %", 100.0 * bare), format!("{ratio:.3} ×"));
            Ok(line.goal(format!("≥ {HELD} ×"), ratio >= HELD))
        })
        .collect()
}
