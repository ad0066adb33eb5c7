//! Measures a running process for three seconds: `cargo run --example attach -- PID`.

#![allow(clippy::print_stdout, reason = "an example shows its result")]
#![allow(clippy::disallowed_methods, reason = "the bans are the library's")]

use std::time::Duration;

use weigh::{FigureId, Session, Settings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let pid = std::env::args().nth(1).ok_or("which process?")?.parse()?;
    let settings = Settings { interval: Duration::from_millis(100), ..Settings::default() };
    let session = Session::attach(&[pid], &settings)?;
    // Returns early when the process exits.
    session.wait(Some(Duration::from_secs(3)));
    let outcome = session.stop()?;
    for id in [FigureId::CpuTime, FigureId::MemoryPeak] {
        if let Some(figure) = outcome.summary.figures.get(id) {
            let bounds = (figure.lower, figure.upper);
            println!("{}: {:?}, {:?}, between {bounds:?}", id.name(), figure.value, figure.method);
        }
    }
    println!("recorded in {:?}", outcome.recording);
    Ok(())
}
