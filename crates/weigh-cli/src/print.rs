//! The only place that writes to the terminal.
//!
//! Colour only where somebody sees it: `anstream` takes it out for pipes, files
//! and NO_COLOR. A reader that has gone away is not an error.

use std::io::{ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use weigh::record::Recording;
use weigh::text::{printable, wrap};

use crate::failure::Failure;

/// Whether something that was asked for could not be written.
static IS_LOST: AtomicBool = AtomicBool::new(false);

/// Writes to stdout. A reader that has gone away wants no more; anything else is a failure.
pub(crate) fn out(text: &str) {
    let mut stdout = anstream::stdout();
    let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    if let Err(error) = written
        && error.kind() != ErrorKind::BrokenPipe
        && !IS_LOST.swap(true, Ordering::Relaxed)
    {
        let hint = "write it where there is room";
        failure(&Failure::new("cannot write to stdout", error, hint));
    }
}

/// Whether something that was asked for could not be written.
pub(crate) fn is_lost() -> bool {
    IS_LOST.load(Ordering::Relaxed)
}

/// Writes to stderr.
pub(crate) fn err(text: &str) {
    let _ = anstream::stderr().write_all(text.as_bytes());
}

/// Whether somebody sees what is written to stderr at once.
pub(crate) fn err_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Says what could not be done, why, and what to type.
pub(crate) fn failure(failure: &Failure) {
    // Names of files, phases and programs are somebody else's words.
    let [what, cause, hint] = [&failure.what, &failure.cause, &failure.hint].map(|s| printable(s));
    err(&format!("weigh: {what}\n  cause: {cause}\n  hint:  {hint}\n"));
}

/// Says what a recording lacks.
pub(crate) fn losses(recording: &Recording) {
    recording
        .losses()
        .sentences()
        .for_each(|lost| warning(&format!("the recording is not whole: {lost}")));
}

/// Says what went wrong without being the end of anything.
pub(crate) fn warning(text: &str) {
    const BEFORE: &str = "weigh: warning: ";
    let text = printable(text);
    // A script finds each on a line of its own.
    let text = if err_is_terminal() { indented(&text, BEFORE.len()) } else { text };
    err(&format!("{BEFORE}{text}\n"));
}

/// Words that end before column 80, their further lines under the first.
pub(crate) fn indented(words: &str, column: usize) -> String {
    wrap(words, 79 - column).join(&format!("\n{:column$}", ""))
}

/// Names files, one on a line, for people and for scripts.
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
