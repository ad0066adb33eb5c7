//! Measures a command, and this program itself: `cargo run --example run -- sleep 1`.

#![allow(clippy::print_stdout, reason = "an example shows its result")]
#![allow(clippy::disallowed_methods, reason = "the bans are the library's")]

use std::ffi::OsString;

use weigh::{FigureId, Session, Settings};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let settings = Settings::default();
    let own = Session::current(&Settings { name: Some("example".to_owned()), ..settings.clone() })?;
    let command: Vec<OsString> = std::env::args_os().skip(1).collect();
    let child = Session::spawn(&command, &settings)?;
    child.wait(None);
    own.mark("the command has exited");
    for session in [child, own] {
        let summary = session.stop()?.summary;
        let cpu = summary.figures.get(FigureId::CpuTime);
        println!("{}: {:?} s of CPU time", summary.run.name, cpu.and_then(|cpu| cpu.value));
    }
    Ok(())
}
