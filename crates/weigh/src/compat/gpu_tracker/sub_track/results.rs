//! The results of sub-tracking: as JSON, as text, and from JSON again.

use std::path::Path;

use super::super::Error;
use super::statistics::{MeasureStatistics, NAMES};
use super::text_block::{self, TextBlock};
use crate::compat::python::{PythonValue, dumps};
use crate::record::files;

/// What a session used, overall and in each code block.
#[derive(Debug, Clone, PartialEq)]
pub struct SubTrackingResults {
    /// Over all timepoints, by measure.
    pub overall: Vec<(String, MeasureStatistics)>,
    /// Whether the least and the most threads in it are whole numbers, as gpu-tracker stores them
    /// where its tracking file was a database.
    pub has_whole_counts: bool,
    /// What is constant.
    pub static_data: Vec<(String, PythonValue)>,
    /// Each code block.
    pub code_block_results: Vec<CodeBlockResults>,
}

/// What a code block used.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeBlockResults {
    /// Its name.
    pub name: String,
    /// Timepoints within its calls.
    pub num_timepoints: u64,
    /// Calls.
    pub num_calls: u64,
    /// Calls with a timepoint in them.
    pub num_non_empty_calls: u64,
    /// How long its calls took, in seconds.
    pub compute_time: MeasureStatistics,
    /// How long all of them took together, in seconds.
    pub total_time: f64,
    /// Over the timepoints within its calls, by measure.
    pub resource_usage: Vec<(String, MeasureStatistics)>,
}

fn by_name(statistics: &MeasureStatistics) -> Vec<(String, PythonValue)> {
    let values = statistics.values().map(PythonValue::Real);
    NAMES.map(str::to_owned).into_iter().zip(values).collect()
}

/// Whether a statistic of a measure is a whole number: the least or most of a count.
pub(super) fn is_whole(measure: &str, statistic: &str) -> bool {
    measure.ends_with("n_threads") && matches!(statistic, "min" | "max")
}

/// Statistics by the names of the measures, as gpu-tracker's `to_json` has them.
pub fn by_measure(usage: &[(String, MeasureStatistics)]) -> PythonValue {
    let entry =
        |(name, of): &(String, MeasureStatistics)| (name.clone(), PythonValue::Map(by_name(of)));
    PythonValue::Map(usage.iter().map(entry).collect())
}

impl SubTrackingResults {
    /// As gpu-tracker's `to_json` has it.
    pub fn to_value(&self) -> PythonValue {
        PythonValue::map([
            ("overall", self.overall_value()),
            ("static_data", PythonValue::Map(self.static_data.clone())),
            (
                "code_block_results",
                PythonValue::List(
                    self.code_block_results.iter().map(CodeBlockResults::to_value).collect(),
                ),
            ),
        ])
    }

    fn overall_value(&self) -> PythonValue {
        let statistic = |measure: &str, name: &str, value: f64| match self.has_whole_counts
            && is_whole(measure, name)
        {
            true => PythonValue::count(value),
            false => PythonValue::Real(value),
        };
        let measure = |(measure, of): &(String, MeasureStatistics)| {
            let values = NAMES.into_iter().zip(of.values());
            let values =
                values.map(|(name, value)| (name.to_owned(), statistic(measure, name, value)));
            (measure.clone(), PythonValue::Map(values.collect()))
        };
        PythonValue::Map(self.overall.iter().map(measure).collect())
    }

    /// As `sub-track analyze -f json` prints it.
    pub fn to_json(&self) -> String {
        dumps(&self.to_value(), 1)
    }

    /// As `sub-track analyze -f text` prints it.
    pub fn to_text(&self) -> String {
        let blocks = self.code_block_results.iter().map(CodeBlockResults::shown).collect();
        let entries = vec![
            ("overall".to_owned(), TextBlock::Frame(text_block::statistics(&self.overall))),
            ("static_data".to_owned(), TextBlock::Frame(text_block::constants(&self.static_data))),
            ("code_block_results".to_owned(), TextBlock::List(blocks)),
        ];
        text_block::text(&entries, &[])
    }

    /// Reads what `sub-track analyze -f json` has written.
    pub fn read_json(path: &Path) -> Result<SubTrackingResults, Error> {
        let bytes = files::read_regular(path)?;
        let malformed = |why: String| Error::NotResults { path: path.to_owned(), why };
        if bytes.first() == Some(&0x80) {
            return Err(malformed(
                "it is a pickle, and reading a pickle executes what is in it; write the analysis \
                 with --format json"
                    .to_owned(),
            ));
        }
        let text = String::from_utf8(bytes).map_err(|error| malformed(error.to_string()))?;
        SubTrackingResults::of_json(&text).map_err(malformed)
    }

    /// Results from the JSON of an analysis, or what is wrong with it.
    pub fn of_json(text: &str) -> Result<SubTrackingResults, String> {
        let json: serde_json::Value =
            serde_json::from_str(&without_nan(text)).map_err(|error| error.to_string())?;
        of_json(&json).ok_or_else(|| "it is not the JSON of an analysis".to_owned())
    }
}

impl CodeBlockResults {
    fn compute_time(&self) -> Vec<(String, PythonValue)> {
        let mut times = by_name(&self.compute_time);
        times.push(("total".to_owned(), PythonValue::Real(self.total_time)));
        times
    }

    fn to_value(&self) -> PythonValue {
        PythonValue::map([
            ("name", PythonValue::Text(self.name.clone())),
            ("num_timepoints", PythonValue::whole(Some(self.num_timepoints))),
            ("num_calls", PythonValue::whole(Some(self.num_calls))),
            ("num_non_empty_calls", PythonValue::whole(Some(self.num_non_empty_calls))),
            ("compute_time", PythonValue::Map(self.compute_time())),
            ("resource_usage", by_measure(&self.resource_usage)),
        ])
    }

    fn shown(&self) -> Vec<(String, TextBlock)> {
        let mut times: Vec<(&str, f64)> =
            NAMES.into_iter().zip(self.compute_time.values()).collect();
        times.push(("total", self.total_time));
        vec![
            ("name".to_owned(), TextBlock::Line(self.name.clone())),
            ("num_timepoints".to_owned(), TextBlock::Line(self.num_timepoints.to_string())),
            ("num_calls".to_owned(), TextBlock::Line(self.num_calls.to_string())),
            (
                "num_non_empty_calls".to_owned(),
                TextBlock::Line(self.num_non_empty_calls.to_string()),
            ),
            ("compute_time".to_owned(), TextBlock::Frame(text_block::series(&times))),
            (
                "resource_usage".to_owned(),
                TextBlock::Frame(text_block::statistics(&self.resource_usage)),
            ),
        ]
    }
}

/// Python writes NaN and Infinity, which are not JSON; outside of strings they become null.
fn without_nan(text: &str) -> String {
    let plain = text.replace("\\\\", "\\u005c").replace("\\\"", "\\u0022");
    let part = |(place, part): (usize, &str)| match place % 2 {
        0 => ["-Infinity", "Infinity", "NaN"]
            .iter()
            .fold(part.to_owned(), |part, word| part.replace(word, "null")),
        _ => part.to_owned(),
    };
    plain.split('"').enumerate().map(part).collect::<Vec<_>>().join("\"")
}

fn number(json: &serde_json::Value) -> Option<f64> {
    if json.is_null() { Some(f64::NAN) } else { json.as_f64() }
}

fn statistics(json: &serde_json::Value) -> Option<MeasureStatistics> {
    let value = |name: &str| number(json.get(name)?);
    Some(MeasureStatistics {
        min: value("min")?,
        max: value("max")?,
        mean: value("mean")?,
        std: value("std")?,
    })
}

fn usage(json: &serde_json::Value) -> Option<Vec<(String, MeasureStatistics)>> {
    let entries = json.as_object()?.iter();
    entries.map(|(name, of)| Some((name.clone(), statistics(of)?))).collect()
}

fn constant(json: &serde_json::Value) -> PythonValue {
    match json {
        serde_json::Value::String(text) => PythonValue::Text(text.clone()),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(whole) => PythonValue::Whole(whole),
            None => PythonValue::real(number.as_f64()),
        },
        _ => PythonValue::Real(f64::NAN),
    }
}

fn of_json(json: &serde_json::Value) -> Option<SubTrackingResults> {
    let block = |json: &serde_json::Value| {
        let count = |name: &str| json.get(name)?.as_u64();
        let times = json.get("compute_time")?;
        Some(CodeBlockResults {
            name: json.get("name")?.as_str()?.to_owned(),
            num_timepoints: count("num_timepoints")?,
            num_calls: count("num_calls")?,
            num_non_empty_calls: count("num_non_empty_calls")?,
            compute_time: statistics(times)?,
            total_time: number(times.get("total")?)?,
            resource_usage: usage(json.get("resource_usage")?)?,
        })
    };
    let constants = json.get("static_data")?.as_object()?.iter();
    let overall = json.get("overall")?;
    let is_stored_whole = |(measure, of): (&String, &serde_json::Value)| {
        is_whole(measure, "min") && of.get("min").is_some_and(serde_json::Value::is_i64)
    };
    Some(SubTrackingResults {
        has_whole_counts: overall.as_object()?.iter().any(is_stored_whole),
        overall: usage(overall)?,
        static_data: constants.map(|(name, value)| (name.clone(), constant(value))).collect(),
        code_block_results: json
            .get("code_block_results")?
            .as_array()?
            .iter()
            .map(block)
            .collect::<Option<_>>()?,
    })
}
