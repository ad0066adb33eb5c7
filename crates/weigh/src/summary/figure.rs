//! A figure: a value, its method, and the bounds of the true value.

use super::by_figure::ByFigure;
use super::curve::Peak;
use crate::catalog::FigureId;
use serde::{Deserialize, Serialize, Serializer};

/// How a value was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The kernel counted it; the bounds say by how much its counters disagree.
    Exact,
    /// It was sampled; spikes shorter than the interval may be missed.
    Sampled,
    /// It was derived from other values.
    Estimated,
}

impl Method {
    /// The method in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Method::Exact => "exact",
            Method::Sampled => "sampled",
            Method::Estimated => "estimated",
        }
    }
}

/// A value and how certain it is. What is unknown is null, never zero, with a reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Figure {
    /// The value, in the unit its name ends with.
    #[serde(serialize_with = "whole_when_whole")]
    pub value: Option<f64>,
    /// How it was measured.
    pub method: Option<Method>,
    /// Lower bound of the true value.
    #[serde(serialize_with = "whole_when_whole")]
    pub lower: Option<f64>,
    /// Upper bound of the true value; null when nothing bounds it.
    #[serde(serialize_with = "whole_when_whole")]
    pub upper: Option<f64>,
    /// Where it comes from.
    pub source: String,
    /// When it was reached, in seconds since the run began; null when the time is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_seconds: Option<f64>,
    /// It was reached after this, where only that is known: a high-water mark has no time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_seconds: Option<f64>,
    /// It was reached before this, where only that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_seconds: Option<f64>,
    /// Why the value or a bound is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Whether no sample is in it: it is from the counters at the end of the run, or of a phase's
    /// command, alone. Such a figure stays exact when rows of the recording are lost.
    #[serde(skip)]
    pub(crate) is_from_final_counters: bool,
}

/// The figures of a run, a phase or a part.
pub type Figures = ByFigure<Figure>;

impl Figures {
    /// The value of a figure, if it is known.
    pub fn value(&self, id: FigureId) -> Option<f64> {
        self.get(id)?.value
    }
}

impl Figure {
    /// A value that the kernel counted.
    pub fn exact(value: f64, source: &str) -> Figure {
        Figure::between(value, Method::Exact, value, Some(value), source)
    }

    /// A sampled value: the true value may be larger.
    pub fn sampled(value: f64, source: &str) -> Figure {
        Figure::between(value, Method::Sampled, value, None, source)
    }

    /// Whether the true value may be larger, and not smaller: spikes between two samples are missed.
    pub fn is_lower_bound(&self) -> bool {
        self.value.is_some() && self.lower == self.value && self.upper.is_none()
    }

    /// A value with its bounds.
    pub fn between(
        value: f64,
        method: Method,
        lower: f64,
        upper: Option<f64>,
        source: &str,
    ) -> Figure {
        Figure {
            value: Some(value),
            method: Some(method),
            lower: Some(lower),
            upper,
            source: source.to_owned(),
            ..Figure::default()
        }
    }

    /// A value that is not known, and why.
    pub fn unknown(source: &str, reason: &str) -> Figure {
        Figure { source: source.to_owned(), reason: Some(reason.to_owned()), ..Figure::default() }
    }

    /// The same, reached at this time.
    pub fn at(mut self, seconds: f64) -> Figure {
        self.at_seconds = Some(seconds);
        self
    }

    /// The same, reached when a peak was: at a time, or between two.
    pub fn when(mut self, peak: &Peak) -> Figure {
        match peak.after {
            None => self.at_seconds = Some(peak.at),
            Some(after) => {
                // Before the first sample there is no time to be after.
                self.after_seconds = Some(after).filter(|after| *after > 0.0);
                self.before_seconds = Some(peak.at);
            }
        }
        self
    }

    /// The same, from the counters at the end alone.
    pub(super) fn of_final_counters(mut self) -> Figure {
        self.is_from_final_counters = true;
        self
    }

    /// The same, with the reason for a bound that is null.
    pub fn because(mut self, reason: &str) -> Figure {
        self.reason = Some(reason.to_owned());
        self
    }
}

/// Bytes and counts are whole numbers, and read better as such.
pub(super) fn whole_when_whole<S: Serializer>(
    value: &Option<f64>,
    to: S,
) -> Result<S::Ok, S::Error> {
    const EXACT_UP_TO: f64 = 9_007_199_254_740_992.0;
    match value {
        Some(value) if value.fract() == 0.0 && value.abs() < EXACT_UP_TO => {
            to.serialize_i64(*value as i64)
        }
        Some(value) if value.is_finite() => to.serialize_f64(*value),
        _ => to.serialize_none(),
    }
}
