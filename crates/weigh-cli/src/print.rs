//! The only place that writes to the terminal.
//!
//! Colour only on a terminal: `anstream` removes it for pipes, files and NO_COLOR. A closed pipe
//! is not an error.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use terminal_size::{Height, Width, terminal_size_of};
use weigh::quantity::Units;
use weigh::record::Recording;
use weigh::report::text::{COLUMNS, Style};
use weigh::text::{printable, wrap};

use crate::failure::Failure;

/// Whether output could not be written.
static OUTPUT_FAILED: AtomicBool = AtomicBool::new(false);

/// Writes to stdout. A closed pipe is ignored; anything else is a failure.
pub(crate) fn out(text: &str) {
    let mut stdout = anstream::stdout();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
        && !OUTPUT_FAILED.swap(true, Ordering::Relaxed)
    {
        let hint = "write it where there is free space";
        failure(&Failure::new("cannot write to stdout", error, hint));
    }
}

/// Whether output could not be written.
pub(crate) fn output_failed() -> bool {
    OUTPUT_FAILED.load(Ordering::Relaxed)
}

/// Writes to stderr.
pub(crate) fn err(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// The style of text on stdout.
pub(crate) fn style(units: Units) -> Style {
    Style { units, colour: true, columns: out_columns() }
}

/// The width of a line on stdout.
pub(crate) fn out_columns() -> usize {
    columns(terminal_size_of(std::io::stdout()))
}

/// The width of a line on stderr.
pub(crate) fn err_columns() -> usize {
    columns(terminal_size_of(std::io::stderr()))
}

fn columns(size: Option<(Width, Height)>) -> usize {
    // A terminal that does not know its size has 0.
    size.map(|(Width(columns), _)| usize::from(columns)).filter(|n| *n > 0).unwrap_or(COLUMNS)
}

/// Whether stdout is a terminal.
pub(crate) fn out_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether stderr is a terminal.
pub(crate) fn err_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Prints what failed, why, and what to type.
pub(crate) fn failure(failure: &Failure) {
    // Names of files, phases and programs are untrusted text.
    let [what, cause, hint] = [&failure.what, &failure.cause, &failure.hint].map(|s| printable(s));
    let list: String =
        failure.list.iter().map(|line| format!("         {}\n", printable(line))).collect();
    err(&format!("weigh: {what}\n  cause: {cause}\n{list}  hint:  {hint}\n"));
}

/// Warns of what a recording lacks.
pub(crate) fn losses(recording: &Recording) {
    recording
        .losses()
        .sentences()
        .for_each(|lost| warning(&format!("the recording is incomplete: {lost}")));
}

/// Prints a warning.
pub(crate) fn warning(text: &str) {
    const BEFORE: &str = "weigh: warning: ";
    let text = printable(text);
    // For scripts each warning is one line.
    let text = if err_is_terminal() { indented(&text, BEFORE.len(), err_columns()) } else { text };
    err(&format!("{BEFORE}{text}\n"));
}

/// Wraps text where the terminal ends, with the following lines under the first.
pub(crate) fn indented(text: &str, column: usize, columns: usize) -> String {
    wrap(text, columns.clamp(40, COLUMNS) - 1 - column).join(&format!("\n{:column$}", ""))
}

/// Prints the names of files, one on a line.
pub(crate) fn files(files: &[PathBuf]) {
    out(&files.iter().map(|path| format!("{}\n", path.display())).collect::<String>());
}

/// A table without borders, for people.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut table = comfy_table::Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(header.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
    rows.into_iter().for_each(|row| {
        table.add_row(row);
    });
    let text = table.to_string();
    // Every cell has a space on its left; the first one needs none.
    let lines: Vec<&str> =
        text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).trim_end()).collect();
    lines.join("\n") + "\n"
}
