//! Levels that are not to be passed, where they are in sight of the curves.

use super::chart::{Chart, Form, Limit};

/// What a run may not pass.
#[derive(Debug)]
pub struct Limits {
    /// Memory, in bytes.
    pub memory: Option<f64>,
    /// Cores.
    pub cores: f64,
}

/// The names of the charts whose highest point is marked, and which have a limit.
pub const MEMORY: &str = "memory";
pub const CPU: &str = "cpu";

impl Limits {
    /// Marks the peak of a chart, and its limits where they are in sight.
    pub fn mark(&self, chart: &mut Chart) {
        let of_run = match chart.name.as_str() {
            MEMORY => Some(("machine memory", self.memory)),
            CPU => Some(("may use", Some(self.cores))),
            _ => None,
        };
        if let Some((name, value)) = of_run {
            chart.peak = chart.highest();
            chart.limits.extend(value.map(|value| Limit { name: name.to_owned(), value }));
        }
        let Some(peak) = chart.highest().filter(|_| chart.form != Form::Heat) else { return };
        // Far above everything else a line would leave the rest no room.
        let (near, far): (Vec<Limit>, Vec<Limit>) =
            chart.limits.drain(..).partition(|limit| peak.value > limit.value * 0.3);
        chart.limits = near;
        for Limit { name, value } in far {
            chart.note =
                format!("{} {}: {}.", chart.note, capital(&name), chart.scale.shown(value));
        }
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
