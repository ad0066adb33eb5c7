//! The result of a run as gpu-tracker's text.
//!
//! Its text is its JSON without braces, quotes and commas, with floats to three
//! places and some words in capitals. A value that was not measured is `null`.

use crate::compat::python::{PythonValue, dumps, rounded};

const INDENT: usize = 3;

/// Replaced one after the other: later ones see what earlier ones wrote.
const WORDS: [(&str, &str); 19] = [
    ("max", "Max"),
    ("ram", "RAM"),
    ("unit", "Unit"),
    ("system", "System"),
    ("compute", "Compute"),
    ("time: ", "Time: "),
    ("rss", "RSS"),
    ("total", "Total"),
    ("private", "Private"),
    ("shared", "Shared"),
    ("main", "Main"),
    ("descendants", "Descendants"),
    ("combined", "Combined"),
    ("gpu", "GPU"),
    ("mean", "Mean"),
    ("cpu", "CPU"),
    ("n threads", "number of threads"),
    ("n expected", "Number of expected"),
    (",", ""),
];

/// The text of a result.
pub(super) fn of_usage(usage: PythonValue) -> String {
    let json = dumps(&to_three_places(usage), INDENT);
    let lines: Vec<&str> = json
        .lines()
        .filter(|line| !matches!(line.trim(), "{" | "}" | "},"))
        .map(|line| line.get(INDENT..).unwrap_or_default())
        .collect();
    let text = lines.join("\n").replace(": {", ":").replace('_', " ").replace('"', "");
    WORDS.iter().fold(text, |text, (word, larger)| text.replace(word, larger))
}

fn to_three_places(value: PythonValue) -> PythonValue {
    match value {
        PythonValue::Real(number) => PythonValue::Real(rounded(number, 3)),
        PythonValue::Map(entries) => PythonValue::Map(
            entries.into_iter().map(|(key, value)| (key, to_three_places(value))).collect(),
        ),
        other => other,
    }
}
