//! Counters as rates, over windows that are long enough for a meaningful rate.

/// Turns counters into rates.
#[derive(Debug, Clone, Default)]
pub(crate) struct ChartWindow {
    start: Option<f64>,
    before: Vec<f64>,
    rates: Vec<f64>,
    /// The value of a counter before its first reading.
    absent: f64,
}

pub(crate) use crate::summary::SHORTEST_WINDOW as SHORTEST;

impl ChartWindow {
    /// Of counters that were zero when the run began.
    pub(crate) fn from_start() -> ChartWindow {
        ChartWindow { start: Some(0.0), ..ChartWindow::default() }
    }

    /// Of entities that may appear late with counters that started earlier: no baseline is known.
    pub(crate) fn of_entities() -> ChartWindow {
        ChartWindow { absent: f64::NAN, ..ChartWindow::default() }
    }

    /// The length of the window, when it is long enough for a rate.
    pub(crate) fn due(&self, at: f64) -> Option<f64> {
        self.start.map(|start| at - start).filter(|length| *length >= SHORTEST)
    }

    /// The start of the window and its rates, when it is long enough. A counter without a baseline,
    /// or one that decreased, has no rate.
    pub(crate) fn rates(&mut self, at: f64, totals: &[f64]) -> Option<(f64, &[f64])> {
        let Some(start) = self.start else {
            self.begin(at, totals);
            return None;
        };
        let length = self.due(at)?;
        self.before.resize(totals.len().max(self.before.len()), self.absent);
        self.rates.clear();
        self.rates.extend(
            totals.iter().zip(&self.before).map(|(now, before)| {
                if now >= before { (now - before) / length } else { f64::NAN }
            }),
        );
        self.begin(at, totals);
        Some((start, &self.rates))
    }

    fn begin(&mut self, at: f64, totals: &[f64]) {
        self.start = Some(at);
        self.before.clear();
        self.before.extend_from_slice(totals);
    }

    /// Adds one column to another and removes it.
    pub(crate) fn merge(&mut self, from: usize, into: usize) {
        let most = self.before.len().max(from + 1).max(into + 1);
        self.before.resize(most, self.absent);
        self.before[into] += self.before[from];
        self.before.remove(from);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_device_starts_without_a_burst() {
        let mut window = ChartWindow::of_entities();
        window.rates(0.0, &[1.0]);
        let (_, rates) = window.rates(1.0, &[2.0, 1e12]).unwrap();
        assert!(rates[0] == 1.0 && rates[1].is_nan(), "{rates:?}");
        let (_, rates) = window.rates(2.0, &[f64::NAN, 1e12 + 5.0]).unwrap();
        assert!(rates[0].is_nan() && rates[1] == 5.0, "{rates:?}");
    }

    #[test]
    fn rate_needs_a_window_and_a_growing_counter() {
        let mut window = ChartWindow::from_start();
        assert_eq!(window.rates(0.05, &[1.0]), None);
        assert_eq!(window.rates(0.5, &[1.0]), Some((0.0, &[2.0][..])));
        let (_, rates) = window.rates(1.5, &[0.5, 3.0]).unwrap();
        assert!(rates[0].is_nan() && rates[1] == 3.0, "{rates:?}");
        assert_eq!(ChartWindow::default().rates(9.0, &[1.0]), None, "not known what was before");
    }
}
