//! What becomes a line or an area: gauges at points in time, or rates over intervals.

use super::chart::ChartForm;
use super::steps::RateSteps;
use super::thin::Thinned;
use super::window::ChartWindow;

/// Values over time, as few as a chart needs.
#[derive(Debug)]
pub(super) enum ChartCurve {
    /// Gauges at points in time.
    Gauges(Thinned),
    /// Counters, drawn as they are.
    Counters(Thinned),
    /// Counters, drawn as rates.
    Rates(ChartWindow, RateSteps),
}

impl ChartCurve {
    /// Adds the gauges or counters of all columns at a time.
    pub(super) fn push(&mut self, at: f64, values: &[f64]) {
        match self {
            ChartCurve::Gauges(values_at) | ChartCurve::Counters(values_at) => {
                values_at.push(at, values);
            }
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
            ChartCurve::Gauges(_) | ChartCurve::Counters(_) => None,
            ChartCurve::Rates(window, _) => window.due(at),
        }
    }

    /// Adds one column to another and removes it.
    pub(super) fn merge(&mut self, from: usize, into: usize) {
        match self {
            ChartCurve::Gauges(values_at) | ChartCurve::Counters(values_at) => {
                if values_at.columns() > from {
                    values_at.merge(from, into);
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
            (ChartCurve::Gauges(_), false) => ChartForm::Lines,
            (ChartCurve::Gauges(_), true) => ChartForm::Stack,
            (ChartCurve::Counters(_), false) => ChartForm::Counters,
            (ChartCurve::Counters(_), true) => ChartForm::StackedCounters,
            (ChartCurve::Rates(..), false) => ChartForm::Rates,
            (ChartCurve::Rates(..), true) => ChartForm::StackedRates,
        }
    }

    /// The times, and the values of each column.
    pub(super) fn finish(self) -> (Vec<f64>, Vec<Vec<f64>>) {
        match self {
            ChartCurve::Gauges(values_at) | ChartCurve::Counters(values_at) => values_at.finish(),
            ChartCurve::Rates(_, steps) => steps.finish(),
        }
    }
}
