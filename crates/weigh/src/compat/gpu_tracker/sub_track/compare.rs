//! Several sessions beside each other.

use std::path::Path;

use super::super::Error;
use super::results::{CodeBlockResults, SubTrackingResults, is_whole};
use super::statistics::{MeasureStatistics, NAMES};
use super::text_block::{self, TextBlock};
use super::{analyze_files, is_recording};
use crate::compat::python::{PythonValue, dumps};

/// Sessions that fit together, by name.
#[derive(Debug, Clone)]
pub struct Sessions {
    /// Their results, with the code blocks in the order in which they are matched.
    pub sessions: Vec<(String, SubTrackingResults)>,
    /// Where the match is doubtful.
    pub warnings: Vec<String>,
}

/// One value for each session, the least first.
pub(super) type SessionValues = Vec<(String, f64)>;

/// Several sessions beside each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Over all timepoints, by measure.
    pub overall_resource_usage: Vec<(String, SessionValues)>,
    /// The measures of these whose values are whole numbers in every session.
    pub whole_measures: Vec<String>,
    /// By measure and code block.
    pub code_block_resource_usage: Vec<(String, Vec<(String, SessionValues)>)>,
    /// By code block, in seconds.
    pub code_block_compute_time: Vec<(String, SessionValues)>,
}

/// Reads a session: the JSON of an analysis, or a recording.
pub(super) fn read(path: &Path) -> Result<SubTrackingResults, Error> {
    if is_recording(path) { analyze_files(path, path) } else { SubTrackingResults::read_json(path) }
}

impl Sessions {
    /// Reads sessions, each the JSON of an analysis or a recording, and matches their blocks.
    pub fn read<'a>(
        paths: impl IntoIterator<Item = (String, &'a Path)>,
    ) -> Result<Sessions, Error> {
        let sessions = paths.into_iter().map(|(name, path)| Ok((name, read(path)?)));
        Sessions::new(sessions.collect::<Result<_, Error>>()?)
    }

    /// Matches the code blocks of sessions: in the order of their names, and of their line
    /// numbers where only those differ.
    pub fn new(mut sessions: Vec<(String, SubTrackingResults)>) -> Result<Sessions, Error> {
        for (_, results) in &mut sessions {
            let blocks = &mut results.code_block_results;
            let lines = blocks.iter().filter_map(|block| line_number(&block.name)).map(str::len);
            let digits = lines.max().unwrap_or(0);
            blocks.sort_by_cached_key(|block| sort_key(&block.name, digits));
        }
        let mut warnings = Vec::new();
        let least = sessions.iter().min_by(|one, other| one.0.cmp(&other.0));
        let Some((first, results)) = least else {
            return Err(Error::Invalid("There is no session to compare.".to_owned()));
        };
        for (name, other) in sessions.iter().filter(|(name, _)| name != first) {
            let (first_blocks, blocks) = (&results.code_block_results, &other.code_block_results);
            if first_blocks.len() != blocks.len() {
                return Err(Error::Invalid(format!(
                    "All sub-tracking results must have the same number of code blocks. The first \
                     has {} code blocks but tracking session \"{name}\" has {} code blocks.",
                    first_blocks.len(),
                    blocks.len()
                )));
            }
            for (one, two) in first_blocks.iter().zip(blocks) {
                warnings.extend(matched((first, &one.name), (name, &two.name))?);
            }
            for unit in ["ram_unit", "gpu_ram_unit"] {
                let of = |results: &SubTrackingResults| {
                    results.static_data.iter().find(|(key, _)| key == unit).cloned()
                };
                if of(results) != of(other) {
                    warnings.push(format!("sessions \"{first}\" and \"{name}\" differ in {unit}"));
                }
            }
        }
        Ok(Sessions { sessions, warnings })
    }

    /// Compares one statistic: `min`, `max`, `mean` or `std`.
    pub fn compare(&self, statistic: &str) -> Result<Comparison, Error> {
        if !NAMES.contains(&statistic) {
            let names = NAMES.join(" ");
            return Err(Error::Invalid(format!(
                "Invalid summary statistic '{statistic}'. Valid values are {names}."
            )));
        }
        let least = self.sessions.iter().min_by(|one, other| one.0.cmp(&other.0));
        let first = least.map(|(_, results)| results);
        let measures: Vec<&String> =
            first.iter().flat_map(|results| &results.overall).map(|(name, _)| name).collect();
        let of = |usage: &[(String, MeasureStatistics)], measure: &str| {
            let found = usage.iter().find(|(name, _)| name == measure);
            found
                .and_then(|(_, of)| of.named(statistic))
                .ok_or_else(|| Error::Invalid(format!("A session has no measure {measure}.")))
        };
        let mut comparison = Comparison {
            overall_resource_usage: Vec::new(),
            whole_measures: Vec::new(),
            code_block_resource_usage: Vec::new(),
            code_block_compute_time: Vec::new(),
        };
        for measure in &measures {
            let values = self.sessions.iter();
            let values = values.map(|(name, all)| Ok((name.clone(), of(&all.overall, measure)?)));
            let series = sorted(values.collect::<Result<_, Error>>()?);
            comparison.overall_resource_usage.push(((*measure).clone(), series));
            let are_whole = self.sessions.iter().all(|(_, all)| all.has_whole_counts);
            if are_whole && is_whole(measure, statistic) {
                comparison.whole_measures.push((*measure).clone());
            }
        }
        if first.is_some_and(|results| !results.code_block_results.is_empty()) {
            for measure in measures {
                let blocks = self.by_block(|block| of(&block.resource_usage, measure))?;
                comparison.code_block_resource_usage.push((measure.clone(), blocks));
            }
            let time = |block: &CodeBlockResults| {
                Ok(block.compute_time.named(statistic).unwrap_or(f64::NAN))
            };
            comparison.code_block_compute_time = self.by_block(time)?;
        }
        Ok(comparison)
    }

    fn by_block(
        &self,
        value: impl Fn(&CodeBlockResults) -> Result<f64, Error>,
    ) -> Result<Vec<(String, SessionValues)>, Error> {
        let count = self.sessions.first().map_or(0, |(_, all)| all.code_block_results.len());
        (0..count)
            .map(|place| {
                let blocks = self.sessions.iter();
                let blocks = blocks.map(|(name, all)| (name, &all.code_block_results[place]));
                let mut names: Vec<&str> =
                    blocks.clone().map(|(_, block)| block.name.as_str()).collect();
                names.sort_unstable();
                names.dedup();
                let values = blocks.map(|(name, block)| Ok((name.clone(), value(block)?)));
                Ok((names.join(" -> "), sorted(values.collect::<Result<_, Error>>()?)))
            })
            .collect()
    }
}

/// The least first; what is missing last.
fn sorted(mut series: SessionValues) -> SessionValues {
    series.sort_by(|one, other| {
        let order = one.1.is_nan().cmp(&other.1.is_nan());
        order.then(one.1.partial_cmp(&other.1).unwrap_or(std::cmp::Ordering::Equal))
    });
    series
}

/// The line number at the end of `file.py:12`.
fn line_number(name: &str) -> Option<&str> {
    let (_, line) = name.rsplit_once(':')?;
    let digits = line.strip_prefix(['+', '-']).unwrap_or(line);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then_some(line)
}

fn sort_key(name: &str, digits: usize) -> String {
    match line_number(name) {
        Some(line) => {
            let file = &name[..name.len() - line.len()];
            format!("{file}{line:0>digits$}")
        }
        None => name.to_owned(),
    }
}

/// Whether two blocks are the same one, perhaps with a warning.
fn matched(
    (session1, block1): (&str, &str),
    (session2, block2): (&str, &str),
) -> Result<Option<String>, Error> {
    if block1 == block2 {
        return Ok(None);
    }
    let file =
        |name: &str| line_number(name).map(|line| name[..name.len() - line.len()].to_owned());
    match (file(block1), file(block2)) {
        (Some(one), Some(other)) if one == other => Ok(Some(format!(
            "Code block name \"{block1}\" of tracking session \"{session1}\" matched with code \
             block name \"{block2}\" of tracking session \"{session2}\" but they differ by line \
             number. If these code blocks were not meant to match, their comparison will not be \
             valid and their names must be disambiguated."
        ))),
        _ => Err(Error::Invalid(format!(
            "Code block name \"{block1}\" of tracking session \"{session1}\" does not match code \
             block name \"{block2}\" of tracking session \"{session2}\""
        ))),
    }
}

/// A value of a session; whole where its measure is one of these.
fn number(measure: &str, whole: &[String], value: f64) -> PythonValue {
    match whole.iter().any(|name| name == measure) {
        true => PythonValue::count(value),
        false => PythonValue::Real(value),
    }
}

fn value(all: &[(String, SessionValues)], whole: &[String]) -> PythonValue {
    let map = |(name, series): &(String, SessionValues)| {
        let values = series.iter();
        let values = values.map(|(session, value)| (session.clone(), number(name, whole, *value)));
        (name.clone(), PythonValue::Map(values.collect()))
    };
    PythonValue::Map(all.iter().map(map).collect())
}

fn frames(all: &[(String, SessionValues)], whole: &[String]) -> TextBlock {
    let frame = |(name, series): &(String, SessionValues)| {
        let values: Vec<(&str, PythonValue)> = series
            .iter()
            .map(|(session, value)| (session.as_str(), number(name, whole, *value)))
            .collect();
        (name.clone(), TextBlock::Frame(text_block::values(&values)))
    };
    TextBlock::Map(all.iter().map(frame).collect())
}

impl Comparison {
    /// As gpu-tracker's `to_json` has it.
    pub fn to_value(&self) -> PythonValue {
        let by_measure = self.code_block_resource_usage.iter();
        let by_measure =
            by_measure.map(|(name, blocks)| (name.clone(), value(blocks, &[]))).collect();
        PythonValue::map([
            ("overall_resource_usage", value(&self.overall_resource_usage, &self.whole_measures)),
            ("code_block_resource_usage", PythonValue::Map(by_measure)),
            ("code_block_compute_time", value(&self.code_block_compute_time, &[])),
        ])
    }

    /// As `sub-track compare -f json` prints it.
    pub fn to_json(&self) -> String {
        dumps(&self.to_value(), 1)
    }

    /// As `sub-track compare -f text` prints it.
    pub fn to_text(&self) -> String {
        let by_measure = self.code_block_resource_usage.iter();
        let by_measure =
            by_measure.map(|(name, blocks)| (name.clone(), frames(blocks, &[]))).collect();
        let entries = vec![
            (
                "overall_resource_usage".to_owned(),
                frames(&self.overall_resource_usage, &self.whole_measures),
            ),
            ("code_block_resource_usage".to_owned(), TextBlock::Map(by_measure)),
            ("code_block_compute_time".to_owned(), frames(&self.code_block_compute_time, &[])),
        ];
        let names: Vec<String> =
            self.code_block_compute_time.iter().map(|(name, _)| name.clone()).collect();
        text_block::text(&entries, &names)
    }
}
