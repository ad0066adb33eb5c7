//! `--live`: the values of a run on the terminal while it runs, without a trace in its output.
//!
//! The command has the same terminal and writes to it whenever it likes, so no text of weigh may
//! be where its output goes. Two places are not:
//!
//! - The last line, below a scroll region (DECSTBM) of all lines above it, as apt has it for its
//!   progress. The output scrolls above it, and into the terminal's history, as ever. It is set
//!   up after the first second, and given back at the end, at Ctrl-Z and at the first sign of a
//!   program that draws on the whole screen (canonical mode is off). A terminal resets the region
//!   when its size changes; it is set up again then.
//! - The title of the window, which has no part in the output at all.
//!
//! Both save and restore what they change (DECSC and DECRC for the cursor, the title stack of
//! xterm for the title). A terminal that is not ours at the moment gets nothing.

use std::time::Duration;

use weigh::program::{Terminal, variable};
use weigh::quantity::{self, Units};
use weigh::run::{LiveEvent, LiveObserver, LiveValues};
use weigh::text::{ellipsize, printable};

use crate::args::LivePlace;

/// How long to wait for a terminal that takes nothing before what was changed is left as it is.
const PATIENCE: Duration = Duration::from_secs(1);

/// With fewer rows, none is taken away.
const FEWEST_ROWS: u16 = 4;

/// The longest title.
const TITLE: usize = 120;

/// Shows values on the terminal on stderr; `None` where there is none that can.
pub(crate) fn observer(place: LivePlace, units: Units) -> Option<LiveObserver> {
    let kind = variable("TERM")?;
    // The console of Linux has no title.
    if kind.is_empty() || kind == "dumb" || (place == LivePlace::Title && kind == "linux") {
        return None;
    }
    let choice = anstream::AutoStream::choice(&std::io::stderr());
    let mut shown = Shown {
        terminal: Terminal::of_stderr()?,
        place,
        units,
        colour: choice != anstream::ColorChoice::Never,
        held: None,
        text: String::new(),
    };
    Some(Box::new(move |event| match event {
        LiveEvent::Values(values) => shown.show(values),
        LiveEvent::Resized => shown.resize(),
        LiveEvent::Suspended => shown.give_back(),
    }))
}

/// What is on the terminal.
struct Shown {
    terminal: Terminal,
    place: LivePlace,
    units: Units,
    colour: bool,
    /// The rows and columns of the terminal whose last line, or title, is ours now.
    held: Option<(u16, u16)>,
    text: String,
}

impl Shown {
    fn show(&mut self, values: &LiveValues) {
        self.text = status(values, self.units);
        self.draw();
    }

    fn draw(&mut self) {
        let size = self.terminal.size().filter(|(rows, _)| *rows >= FEWEST_ROWS);
        let is_usable = self.terminal.is_ours()
            && (self.place == LivePlace::Title || self.terminal.edits_lines());
        let Some(size) = size.filter(|_| is_usable) else { return self.give_back() };
        let text = match self.place {
            LivePlace::Line => {
                let reserved = match self.held {
                    Some(held) if held == size => String::new(),
                    before => reserve(size, before.is_some()),
                };
                reserved + &line(&self.text, size, self.colour)
            }
            LivePlace::Title => {
                let pushed = if self.held.is_none() { PUSH_TITLE } else { "" };
                format!("{pushed}{}", title(&ellipsize(&self.text, TITLE)))
            }
        };
        // When it takes nothing now, the next second does.
        if self.terminal.write(&text, Duration::ZERO) {
            self.held = Some(size);
        }
    }

    /// The terminal has reset its scroll region.
    fn resize(&mut self) {
        if self.place == LivePlace::Line && self.held.is_some() {
            // No size is this: the line is set up anew, whether rows or columns have changed.
            self.held = Some((0, 0));
            self.draw();
        }
    }

    /// Leaves the terminal as it was.
    fn give_back(&mut self) {
        let Some((rows, _)) = self.held.take() else { return };
        let text = match self.place {
            LivePlace::Line => release(self.terminal.size().map_or(rows, |(rows, _)| rows)),
            LivePlace::Title => format!("{}{POP_TITLE}", title("")),
        };
        self.terminal.write(&text, PATIENCE);
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Makes the last line ours, with the output above it. A line that was ours before and is
/// somewhere below the cursor is erased.
///
/// The cursor goes down and up again first (IND, CUU): on the last line that scrolls the output up
/// by one, elsewhere it does nothing. DECSTBM moves the cursor home, hence the save and restore.
fn reserve((rows, _): (u16, u16), erase: bool) -> String {
    let erased = if erase { "\x1b7\x1b[E\x1b[J\x1b8" } else { "" };
    format!("\x1b7\x1b[r\x1b8\x1bD\x1b[A{erased}\x1b7\x1b[1;{}r\x1b8", rows - 1)
}

/// Writes into the last line, outside of the scroll region.
fn line(text: &str, (rows, columns): (u16, u16), colour: bool) -> String {
    // The last column stays empty: some terminals wrap there at once.
    let text = ellipsize(text, usize::from(columns).saturating_sub(1));
    let (dim, plain) = if colour { ("\x1b[0;2m", "\x1b[0m") } else { ("\x1b[0m", "") };
    format!("\x1b7\x1b[{rows};1H{dim}{text}{plain}\x1b[K\x1b8")
}

/// Gives the last line back, erased.
fn release(rows: u16) -> String {
    format!("\x1b7\x1b[r\x1b[{rows};1H\x1b[0m\x1b[2K\x1b8")
}

/// The title stack of xterm; a terminal without one keeps the empty title that is set before.
const PUSH_TITLE: &str = "\x1b[22;2t";
const POP_TITLE: &str = "\x1b[23;2t";

fn title(text: &str) -> String {
    format!("\x1b]2;{text}\x07")
}

/// The values in one line.
fn status(values: &LiveValues, units: Units) -> String {
    let bytes = |bytes: u64| quantity::bytes(bytes as f64, units);
    let cpu = values.cores.map(|cores| format!("CPU {cores:.2} cores"));
    let memory = values.memory.map(|memory| {
        let bound = if memory.is_upper_bound { "at most " } else { "" };
        format!("memory {bound}{}", bytes(memory.bytes))
    });
    let gpu = match (values.gpus, values.gpu_memory_bytes) {
        (Some(busy), Some(memory)) => Some(format!("GPUs in use {busy:.2}, {}", bytes(memory))),
        (Some(busy), None) => Some(format!("GPUs in use {busy:.2}")),
        (None, memory) => memory.map(|memory| format!("GPU memory {}", bytes(memory))),
    };
    let processes = values.processes.map(|count| match count {
        1 => "1 process".to_owned(),
        _ => format!("{} processes", quantity::count(count as f64)),
    });
    let phase = values.phase.as_deref().map(|name| format!("phase {}", printable(name)));
    let parts = [Some(clock(values.elapsed)), cpu, memory, gpu, phase, processes];
    format!("weigh {}", parts.into_iter().flatten().collect::<Vec<_>>().join(" · "))
}

/// A time as a clock shows it: `0:07`, `12:05`, `1:02:05`.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use weigh::run::LiveMemory;

    use super::*;

    #[test]
    fn status_has_what_is_known_and_nothing_else() {
        let mut values = LiveValues {
            elapsed: Duration::from_secs(3725),
            cores: Some(1.873),
            memory: Some(LiveMemory { bytes: 3 << 29, is_upper_bound: false }),
            processes: Some(1),
            ..LiveValues::default()
        };
        let shown = status(&values, Units::Binary);
        assert_eq!(shown, "weigh 1:02:05 · CPU 1.87 cores · memory 1.50 GiB · 1 process");
        values.memory = Some(LiveMemory { bytes: 1 << 20, is_upper_bound: true });
        (values.gpus, values.gpu_memory_bytes) = (Some(0.5), Some(1 << 30));
        (values.phase, values.processes, values.cores) = (Some("a\x1bb".into()), None, None);
        let shown = status(&values, Units::Binary);
        let expected =
            "weigh 1:02:05 · memory at most 1.00 MiB · GPUs in use 0.50, 1.00 GiB · phase ";
        assert!(shown.starts_with(expected) && !shown.contains('\x1b'), "{shown}");
    }

    #[test]
    fn line_is_shorter_than_the_terminal() {
        let text = line("weigh 0:01 · CPU", (24, 10), false);
        assert_eq!(text, "\x1b7\x1b[24;1H\x1b[0mweigh 0:…\x1b[K\x1b8");
        assert!(line("weigh", (24, 10), true).contains("\x1b[0;2mweigh\x1b[0m"));
    }
}
