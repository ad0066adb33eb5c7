//! Results as text: titles, indented by tabs, and frames as pandas prints them.

use super::statistics::{MeasureStatistics, NAMES};
use crate::compat::python::{PythonValue, repr, rounded};

/// What stands below or beside a title.
#[derive(Debug, Clone)]
pub(super) enum TextBlock {
    /// One value beside the title.
    Line(String),
    /// The lines of a frame below it.
    Frame(Vec<String>),
    /// More titles below it.
    Map(Vec<(String, TextBlock)>),
    /// Several groups of titles, with an empty line after each.
    List(Vec<Vec<(String, TextBlock)>>),
}

/// The text of these entries; names in `verbatim` are not changed to title case.
pub(super) fn text(entries: &[(String, TextBlock)], verbatim: &[String]) -> String {
    let mut text = String::new();
    write(&mut text, entries, 0, verbatim);
    text
}

fn write(text: &mut String, entries: &[(String, TextBlock)], depth: usize, verbatim: &[String]) {
    let indent = "\t".repeat(depth);
    let titles: Vec<String> = entries
        .iter()
        .map(|(name, _)| if verbatim.contains(name) { name.clone() } else { title(name) })
        .collect();
    let widest = titles.iter().map(|title| width(title)).max().unwrap_or(0);
    for (title, (_, shown)) in titles.iter().zip(entries) {
        text.push_str(&format!("{indent}{title}:"));
        if !matches!(shown, TextBlock::Line(_)) {
            text.push('\n');
        }
        match shown {
            TextBlock::Line(value) => {
                let space = " ".repeat(widest - width(title));
                text.push_str(&format!("{space} {value}\n"));
            }
            TextBlock::Frame(lines) => {
                lines.iter().for_each(|line| text.push_str(&format!("{indent}\t{line}\n")));
            }
            TextBlock::Map(entries) => write(text, entries, depth + 1, verbatim),
            TextBlock::List(items) => {
                for entries in items {
                    write(text, entries, depth + 1, verbatim);
                    text.push('\n');
                }
            }
        }
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

/// `main_n_threads` as `Main N Threads`.
fn title(name: &str) -> String {
    let mut begins = true;
    let letter = |letter: char| {
        let was = std::mem::replace(&mut begins, !letter.is_alphabetic());
        match letter {
            '_' => ' ',
            _ if was => letter.to_ascii_uppercase(),
            _ => letter.to_ascii_lowercase(),
        }
    };
    name.chars().map(letter).collect()
}

/// A number to eight places.
fn number(number: f64) -> String {
    if number.is_nan() { "NaN".to_owned() } else { repr(rounded(number, 8)) }
}

/// A frame of statistics, a row for each measure.
pub(super) fn statistics(usage: &[(String, MeasureStatistics)]) -> Vec<String> {
    let index: Vec<&str> = usage.iter().map(|(name, _)| name.as_str()).collect();
    let columns = NAMES.iter().enumerate().map(|(place, name)| {
        let cells = usage.iter().map(|(_, of)| number(of.values()[place])).collect();
        (format!(" {name}"), cells)
    });
    frame(&index, columns.collect())
}

/// A series as a frame of one row.
pub(super) fn series(series: &[(&str, f64)]) -> Vec<String> {
    let all = series.iter().map(|(name, value)| (*name, PythonValue::Real(*value)));
    values(&all.collect::<Vec<_>>())
}

/// A series of numbers of any type as a frame of one row.
pub(super) fn values(series: &[(&str, PythonValue)]) -> Vec<String> {
    let column =
        |(name, value): &(&str, PythonValue)| (format!(" {}", escaped(name)), vec![cell(value)]);
    frame(&[""], series.iter().map(column).collect())
}

fn cell(value: &PythonValue) -> String {
    match value {
        PythonValue::Real(real) => number(*real),
        PythonValue::Whole(whole) => format!(" {whole}"),
        PythonValue::Text(text) => format!(" {}", escaped(text)),
        PythonValue::Missing | PythonValue::List(_) | PythonValue::Map(_) => " NaN".to_owned(),
    }
}

/// What is constant, as a frame of one row.
pub(super) fn constants(values: &[(String, PythonValue)]) -> Vec<String> {
    frame(&[""], values.iter().map(|(name, value)| (name.clone(), vec![cell(value)])).collect())
}

/// Control characters are escaped as pandas does.
fn escaped(text: &str) -> String {
    text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn frame(index: &[&str], columns: Vec<(String, Vec<String>)>) -> Vec<String> {
    let widest = index.iter().map(|name| width(name)).max().unwrap_or(0);
    let pad = |text: &str, to: usize| " ".repeat(to.saturating_sub(width(text)));
    let mut lines: Vec<String> = std::iter::once(&"")
        .chain(index)
        .map(|name| format!("{name}{}", pad(name, widest)))
        .collect();
    for (header, cells) in columns {
        let wide = cells.iter().chain([&header]).map(|cell| width(cell)).max().unwrap_or(0);
        for (line, cell) in lines.iter_mut().zip(std::iter::once(&header).chain(&cells)) {
            line.push_str(&format!(" {}{cell}", pad(cell, wide)));
        }
    }
    lines
}
