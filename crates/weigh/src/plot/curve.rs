//! What becomes a line or an area: levels at moments, or rates over stretches of time.

use super::chart::Form;
use super::steps::Steps;
use super::thin::Thinned;
use super::window::Window;

/// Values over time, as few as a picture needs.
#[derive(Debug)]
pub(super) enum Curve {
    /// Levels at moments.
    Levels(Thinned),
    /// What was counted so far, at moments.
    Totals(Thinned),
    /// Running totals, drawn as rates.
    Rates(Window, Steps),
}

impl Curve {
    /// Takes in the levels or totals of all columns at a moment.
    pub(super) fn push(&mut self, at: f64, values: &[f64]) {
        match self {
            Curve::Levels(levels) | Curve::Totals(levels) => levels.push(at, values),
            Curve::Rates(window, steps) => {
                if let Some((from, rates)) = window.rates(at, values) {
                    steps.push(from, at, rates);
                }
            }
        }
    }

    /// How long the window of a rate is now, when it is long enough.
    pub(super) fn due(&self, at: f64) -> Option<f64> {
        match self {
            Curve::Levels(_) | Curve::Totals(_) => None,
            Curve::Rates(window, _) => window.due(at),
        }
    }

    /// Adds one column to another and leaves it out.
    pub(super) fn merge(&mut self, from: usize, into: usize) {
        match self {
            Curve::Levels(levels) | Curve::Totals(levels) => {
                if levels.columns() > from {
                    levels.merge(from, into);
                }
            }
            Curve::Rates(window, steps) => {
                window.merge(from, into);
                if steps.columns() > from {
                    steps.merge(from, into);
                }
            }
        }
    }

    /// How it is drawn.
    pub(super) fn form(&self, is_stacked: bool) -> Form {
        match (self, is_stacked) {
            (Curve::Levels(_), false) => Form::Lines,
            (Curve::Levels(_), true) => Form::Stack,
            (Curve::Totals(_), false) => Form::Totals,
            (Curve::Totals(_), true) => Form::StackedTotals,
            (Curve::Rates(..), false) => Form::Rates,
            (Curve::Rates(..), true) => Form::StackedRates,
        }
    }

    /// The times, and the values of each column.
    pub(super) fn finish(self) -> (Vec<f64>, Vec<Vec<f64>>) {
        match self {
            Curve::Levels(levels) | Curve::Totals(levels) => levels.finish(),
            Curve::Rates(_, steps) => steps.finish(),
        }
    }
}
