//! Style of text for a terminal: units, colours, and where the columns of a summary are.

use crate::quantity::{self, Units};

/// Style of the text.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// The units of sizes.
    pub units: Units,
    /// Whether to use colours.
    pub colour: bool,
    /// The width of a line.
    pub columns: usize,
}

impl Default for Style {
    fn default() -> Style {
        Style { units: Units::default(), colour: false, columns: COLUMNS }
    }
}

/// The width of a line where there is no terminal.
pub const COLUMNS: usize = 80;

/// A narrower terminal wraps by itself.
const MIN_COLUMNS: usize = 40;

/// Wider lines are harder to read.
const MAX_COLUMNS: usize = 140;

/// Where the values begin, after the labels.
pub(super) const LABEL_END: usize = 13;

/// Fewer columns have no place for notes beside the values.
const MIN_COLUMNS_FOR_NOTES: usize = 72;

pub(super) const BOLD: &str = "\x1b[1m";
pub(super) const DIM: &str = "\x1b[2m";
pub(super) const RED: &str = "\x1b[31m";
pub(super) const GREEN: &str = "\x1b[32m";
pub(super) const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

impl Style {
    pub(super) fn paint(self, colour: &str, text: &str) -> String {
        if self.colour { format!("{colour}{text}{PLAIN}") } else { text.to_owned() }
    }

    pub(super) fn bytes(self, value: f64) -> String {
        quantity::bytes(value, self.units)
    }

    /// The last column of text: the one after it stays empty, because some terminals wrap there.
    pub(super) fn end(self) -> usize {
        self.columns.clamp(MIN_COLUMNS, MAX_COLUMNS) - 1
    }

    pub(super) fn has_notes_beside(self) -> bool {
        self.columns >= MIN_COLUMNS_FOR_NOTES
    }

    /// The column where notes begin.
    pub(super) fn notes(self) -> usize {
        if self.has_notes_beside() { 37 } else { LABEL_END }
    }
}
