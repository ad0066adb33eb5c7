//! What becomes a line or an area: gauges at points in time, or rates over intervals.

use super::chart::ChartForm;
use super::steps::RateSteps;
use super::thin::Thinned;
use super::window::ChartWindow;

/// Values over time, as few as a chart needs.
#[derive(Debug)]
pub(super) enum ChartCurve {
    /// Gauges at points in time.
    Levels(Thinned),
    /// Counters, drawn as they are.
    Totals(Thinned),
    /// Counters, drawn as rates.
    Rates(ChartWindow, RateSteps),
}

impl ChartCurve {
    /// Adds the gauges or counters of all columns at a time.
    pub(super) fn push(&mut self, at: f64, values: &[f64]) {
        match self {
            ChartCurve::Levels(levels) | ChartCurve::Totals(levels) => levels.push(at, values),
            ChartCurve::Rates(window, steps) => {
                if let Some((from, rates)) = window.rates(at, values) {
                    steps.push(from, at, rates);
                }
            }
        }
    }

    /// The length of the rate window, when it is long enough.
    pub(super) fn due(&self, at: f64) -> Option<f64> {
        match self {
            ChartCurve::Levels(_) | ChartCurve::Totals(_) => None,
            ChartCurve::Rates(window, _) => window.due(at),
        }
    }

    /// Adds one column to another and removes it.
    pub(super) fn merge(&mut self, from: usize, into: usize) {
        match self {
            ChartCurve::Levels(levels) | ChartCurve::Totals(levels) => {
                if levels.columns() > from {
                    levels.merge(from, into);
                }
            }
            ChartCurve::Rates(window, steps) => {
                window.merge(from, into);
                if steps.columns() > from {
                    steps.merge(from, into);
                }
            }
        }
    }

    /// How it is drawn.
    pub(super) fn form(&self, is_stacked: bool) -> ChartForm {
        match (self, is_stacked) {
            (ChartCurve::Levels(_), false) => ChartForm::Lines,
            (ChartCurve::Levels(_), true) => ChartForm::Stack,
            (ChartCurve::Totals(_), false) => ChartForm::Totals,
            (ChartCurve::Totals(_), true) => ChartForm::StackedTotals,
            (ChartCurve::Rates(..), false) => ChartForm::Rates,
            (ChartCurve::Rates(..), true) => ChartForm::StackedRates,
        }
    }

    /// The times, and the values of each column.
    pub(super) fn finish(self) -> (Vec<f64>, Vec<Vec<f64>>) {
        match self {
            ChartCurve::Levels(levels) | ChartCurve::Totals(levels) => levels.finish(),
            ChartCurve::Rates(_, steps) => steps.finish(),
        }
    }
}
