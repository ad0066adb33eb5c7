//! Command lines, marks and labels without the secrets in them.
//!
//! What looks like a secret is found by one table of rules (`rules`): names (`--api-key S`,
//! `DB_PASS=S`, `Authorization: S`), forms (`https://me:S@host`), tokens that services mark as
//! theirs (`ghp_…`) and where programs take a password (`mysql -pS`). `command` applies what
//! depends on the arguments before, `scan` what a text shows by itself; an argument with spaces
//! in it is also read as a shell would (`shell`). Rules miss some: `--no-cmdline` leaves command
//! lines out altogether.
//!
//! In doubt a value is masked: a masked `--key=***` costs a reader less than a password in a
//! report. Time is linear in the length of the arguments.

mod command;
mod index;
mod names;
mod rules;
mod scan;
mod shell;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde_json::Value;

use super::events::{EventData, text};

const MASK: &str = "***";

/// Times that masking is repeated while it finds more: a mask may replace a quote that
/// hid what stands behind it.
const ROUNDS: usize = 8;

/// A command line as text: bytes that are not are shown as `\xNN`, secrets as `***`.
pub fn command<A: AsRef<[u8]>>(arguments: &[A]) -> Vec<String> {
    let mut shown: Vec<String> = arguments.iter().map(|bytes| text(bytes.as_ref())).collect();
    // Such an argument was crafted: nothing is shown of one for which masking does not converge.
    // Its role for the following arguments has changed, so they are scanned again.
    let whole: Mask = |_, _| MASK.to_owned();
    for round in 0..2 * ROUNDS {
        if !mask(&mut shown, if round == ROUNDS { whole } else { replaced }) {
            return shown;
        }
    }
    vec![MASK.to_owned(); shown.len()]
}

/// A text by a user (a mark, a phase's name, a label), by the same rules.
pub fn remark(text: &str) -> String {
    command(&[text]).pop().unwrap_or_default()
}

/// What belongs to a phase or a mark: texts are masked, by their names and by themselves.
pub fn data(mut data: EventData) -> EventData {
    for (name, value) in &mut data {
        mask_value(name, value);
    }
    data
}

fn mask_value(name: &str, value: &mut Value) {
    match value {
        Value::String(text) => *text = label(name, text),
        Value::Array(values) => values.iter_mut().for_each(|value| mask_value(name, value)),
        Value::Object(values) => {
            values.iter_mut().for_each(|(name, value)| mask_value(name, value));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A label's value; its name says what it is.
pub fn label(name: &str, value: &str) -> String {
    let masked = remark(&format!("{name}={value}"));
    match masked.strip_prefix(name).and_then(|rest| rest.strip_prefix('=')) {
        Some(value) => value.to_owned(),
        None => MASK.to_owned(),
    }
}

/// What an argument is shown as, by where its secrets are.
type Mask = fn(&str, Vec<Range<usize>>) -> String;

/// Masks what is found, and returns whether anything changed.
fn mask(arguments: &mut [String], replaced: Mask) -> bool {
    let mut found = FoundSecret { ranges: vec![Vec::new(); arguments.len()] };
    command::find(arguments, &mut found);
    let mut changed = false;
    for (argument, ranges) in arguments.iter_mut().zip(found.ranges) {
        if ranges.iter().any(|range| argument.get(range.clone()) != Some(MASK)) {
            let masked = replaced(argument, ranges);
            changed |= masked != *argument;
            *argument = masked;
        }
    }
    changed
}

/// Where secrets are: byte ranges of each argument.
struct FoundSecret {
    ranges: Vec<Vec<Range<usize>>>,
}

impl FoundSecret {
    fn add(&mut self, argument: usize, range: Range<usize>) {
        if let Some(ranges) = self.ranges.get_mut(argument)
            && !range.is_empty()
        {
            ranges.push(range);
        }
    }
}

/// The text with one mask for all ranges that overlap or touch.
fn replaced(text: &str, mut ranges: Vec<Range<usize>>) -> String {
    ranges.sort_by_key(|range| range.start);
    let (mut masked, mut done) = (String::with_capacity(text.len()), 0);
    let mut ranges = ranges.into_iter().peekable();
    while let Some(mut range) = ranges.next() {
        while let Some(next) = ranges.next_if(|next| next.start <= range.end) {
            range.end = range.end.max(next.end);
        }
        masked.push_str(text.get(done..range.start).unwrap_or_default());
        masked.push_str(MASK);
        done = range.end;
    }
    masked.push_str(text.get(done..).unwrap_or_default());
    masked
}

/// A word of a command line: a whole argument, or a part of one that a shell would take.
#[derive(Clone, Copy)]
struct ScannedWord<'a> {
    text: &'a str,
    argument: usize,
    /// Where it begins in its argument.
    start: usize,
}

impl<'a> ScannedWord<'a> {
    /// A part of it, by its offset.
    fn part(&self, from: usize, to: usize) -> ScannedWord<'a> {
        let text = self.text.get(from..to).unwrap_or_default();
        ScannedWord { text, argument: self.argument, start: self.start + from }
    }

    /// The word without one pair of quotes around it.
    fn unquoted(&self) -> ScannedWord<'a> {
        let quoted = |quote| {
            self.text.len() >= 2 && self.text.starts_with(quote) && self.text.ends_with(quote)
        };
        if quoted('\'') || quoted('"') { self.part(1, self.text.len() - 1) } else { *self }
    }

    /// Where a part of it is in its argument.
    fn range(&self, part: Range<usize>) -> Range<usize> {
        self.start + part.start..self.start + part.end
    }
}
