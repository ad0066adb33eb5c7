//! The lines of the table, their verdicts, and the file they are written into.

use anyhow::{Context, Result};

use crate::command::root;

const FILE: &str = "BENCHMARKS.md";
const BEGIN: &str = "<!-- From here: written by `cargo xtask bench`. Do not edit. -->";
const END: &str = "<!-- Until here. -->";
const PARTS_BEGIN: &str =
    "<!-- From here: written by `cargo xtask bench --only NAME`. Do not edit. -->";
const PARTS_END: &str = "<!-- Until here, since the last full run. -->";

/// One measurement.
#[derive(Debug)]
pub(crate) struct Line {
    /// What was measured.
    pub what: String,
    /// The result.
    pub weigh: String,
    /// What it is compared with, in the same run.
    pub beside: String,
    /// The quotient of the two.
    pub ratio: String,
    /// What it should be, and whether it is.
    pub goal: Option<(String, Verdict)>,
}

/// Whether a goal is reached.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Verdict {
    /// It is.
    Reached,
    /// It is not.
    Missed,
    /// The error is larger than the difference.
    Undecided,
}

impl Line {
    /// A line with a result only.
    pub(crate) fn new(what: impl Into<String>, weigh: impl Into<String>) -> Line {
        Line {
            what: what.into(),
            weigh: weigh.into(),
            beside: "–".to_owned(),
            ratio: "–".to_owned(),
            goal: None,
        }
    }

    /// Beside something else.
    pub(crate) fn beside(self, beside: impl Into<String>, ratio: impl Into<String>) -> Line {
        Line { beside: beside.into(), ratio: ratio.into(), ..self }
    }

    /// With a goal, which is reached or not.
    pub(crate) fn goal(self, goal: impl Into<String>, reached: bool) -> Line {
        self.judged(goal, if reached { Verdict::Reached } else { Verdict::Missed })
    }

    /// With a goal and what is known about reaching it.
    pub(crate) fn judged(self, goal: impl Into<String>, verdict: Verdict) -> Line {
        Line { goal: Some((goal.into(), verdict)), ..self }
    }
}

/// The table as Markdown, which a terminal shows well enough.
pub(super) fn markdown(lines: &[Line]) -> String {
    let header = ["measured", "weigh", "beside it", "ratio", "goal", ""].map(str::to_owned);
    let mut rows = vec![header.to_vec(), vec!["---".to_owned(); 6]];
    rows.extend(lines.iter().map(|line| {
        let (goal, verdict) = match &line.goal {
            Some((goal, Verdict::Reached)) => (goal.as_str(), "✓"),
            Some((goal, Verdict::Missed)) => (goal.as_str(), "✗"),
            Some((goal, Verdict::Undecided)) => (goal.as_str(), "?"),
            None => ("–", ""),
        };
        [&line.what, &line.weigh, &line.beside, &line.ratio, goal, verdict]
            .map(str::to_owned)
            .to_vec()
    }));
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..6).map(|column| width(column).unwrap_or(0)).collect();
    let padded = |row: &Vec<String>| {
        let cells: Vec<String> =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("| {} |", cells.join(" | "))
    };
    rows.iter().map(padded).collect::<Vec<_>>().join("\n")
}

/// Puts the report of a full run into BENCHMARKS.md; parts that were measured alone are outdated.
pub(super) fn write(report: &str) -> Result<()> {
    change(|there| {
        let whole = replaced(there, [BEGIN, END], |_| format!("\n\n{report}\n\n"))?;
        replaced(&whole, [PARTS_BEGIN, PARTS_END], |_| "\n".to_owned())
    })
}

/// Puts the report of one part that was measured alone below the others.
pub(super) fn write_part(name: &str, report: &str) -> Result<()> {
    change(|there| {
        replaced(there, [PARTS_BEGIN, PARTS_END], |parts| with_part(parts, name, report))
    })
}

fn change(change: impl Fn(&str) -> Result<String>) -> Result<()> {
    let path = root().join(FILE);
    let there = std::fs::read_to_string(&path).context(FILE)?;
    std::fs::write(&path, change(&there)?).context(FILE)?;
    println!("wrote {FILE}");
    Ok(())
}

/// The text with what is between two marks replaced.
fn replaced(there: &str, marks: [&str; 2], inside: impl Fn(&str) -> String) -> Result<String> {
    let lacks = |mark: &str| format!("{FILE} has no {mark}");
    let (before, rest) = there.split_once(marks[0]).with_context(|| lacks(marks[0]))?;
    let (old, after) = rest.split_once(marks[1]).with_context(|| lacks(marks[1]))?;
    Ok(format!("{before}{}{}{}{after}", marks[0], inside(old), marks[1]))
}

/// The parts with this one as it is now, in its place if it was there.
fn with_part(parts: &str, name: &str, report: &str) -> String {
    let mut sections: Vec<(String, String)> = parts
        .split("\n## ")
        .skip(1)
        .filter_map(|section| section.split_once('\n'))
        .map(|(title, text)| (title.to_owned(), text.trim().to_owned()))
        .collect();
    match sections.iter_mut().find(|(title, _)| title == name) {
        Some((_, text)) => report.clone_into(text),
        None => sections.push((name.to_owned(), report.to_owned())),
    }
    let sections = sections.iter().map(|(title, text)| format!("\n\n## {title}\n\n{text}"));
    sections.collect::<String>() + "\n\n"
}

/// The middle one; of an even number the mean of the two in the middle.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match (values.len(), values.len() / 2) {
        (0, _) => f64::NAN,
        (count, middle) if count % 2 == 1 => values[middle],
        (_, middle) => (values[middle - 1] + values[middle]) / 2.0,
    }
}

/// A time as people read it.
pub(super) fn time(seconds: f64) -> String {
    if seconds < 1e-3 {
        format!("{:.1} µs", seconds * 1e6)
    } else {
        format!("{:.2} ms", seconds * 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_is_the_middle_value() {
        assert_eq!(median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median([]).is_nan());
    }

    #[test]
    fn part_that_is_measured_again_replaces_its_own_result_and_no_other() {
        let one = with_part("\n", "start", "1 ms");
        let two = with_part(&one, "rest", "2 bytes");
        let again = with_part(&two, "start", "3 ms");
        assert_eq!(again, "\n\n## start\n\n3 ms\n\n## rest\n\n2 bytes\n\n");
        let file = format!("a{PARTS_BEGIN}{again}{PARTS_END}b");
        let emptied = replaced(&file, [PARTS_BEGIN, PARTS_END], |_| "\n".to_owned()).unwrap();
        assert_eq!(emptied, format!("a{PARTS_BEGIN}\n{PARTS_END}b"));
    }

    #[test]
    fn missed_goal_is_marked() {
        let line = Line::new("tick", "2 ms").goal("≤ 1 ms", false);
        assert!(markdown(&[line]).ends_with("| ≤ 1 ms | ✗   |"));
    }
}
