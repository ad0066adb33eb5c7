//! A figure: a value, how it was got, and between which bounds the truth lies.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize, Serializer};

/// How a value was got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The kernel counted it.
    Exact,
    /// It was looked at now and then; between two looks it may have been otherwise.
    Sampled,
    /// It was derived from something else.
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

/// A value and how sure it is. What is unknown is null, never zero, with a reason.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Figure {
    /// The value, in the unit its name ends with.
    #[serde(serialize_with = "whole_when_whole")]
    pub value: Option<f64>,
    /// How it was got.
    pub method: Option<Method>,
    /// The truth is not below this.
    #[serde(serialize_with = "whole_when_whole")]
    pub lower: Option<f64>,
    /// The truth is not above this; null when nothing bounds it.
    #[serde(serialize_with = "whole_when_whole")]
    pub upper: Option<f64>,
    /// Where it comes from.
    pub source: String,
    /// When it was reached, in seconds since the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_seconds: Option<f64>,
    /// Why the value or a bound is null.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Figures by their names.
pub type Figures = BTreeMap<String, Figure>;

impl Figure {
    /// A value that the kernel counted.
    pub fn exact(value: f64, source: &str) -> Figure {
        Figure::between(value, Method::Exact, value, Some(value), source)
    }

    /// A value that was looked at now and then: the truth may be more.
    pub fn sampled(value: f64, source: &str) -> Figure {
        Figure::between(value, Method::Sampled, value, None, source)
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

    /// The same, reached at this moment.
    pub fn at(mut self, seconds: f64) -> Figure {
        self.at_seconds = Some(seconds);
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
