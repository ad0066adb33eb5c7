//! Statistics over the rows of the table for each tool: means over rows, and the busiest row.

use std::collections::HashMap;

use super::polls::PollRow;

/// Statistics over all rows.
#[derive(Debug, Default)]
pub(super) struct RowStatistics {
    /// How many there are.
    pub count: u64,
    without_uss: u64,
    by_tool: HashMap<String, ToolRowStatistics>,
    /// Private memory of all rows of the last moment, and the most of any moment.
    uss_at: Option<(f64, u64)>,
    uss_peak: Option<u64>,
}

/// Statistics over the rows of a tool.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct ToolRowStatistics {
    /// How many there are.
    pub count: u64,
    cores: f64,
    /// The most cores that one process kept busy.
    pub cores_peak: Option<f64>,
    with_uss: u64,
    uss: f64,
}

impl RowStatistics {
    /// Takes in a row.
    pub(super) fn add(&mut self, row: &PollRow<'_>) {
        self.count += 1;
        self.without_uss += u64::from(row.uss.is_none());
        if let Some(uss) = row.uss {
            let before = self.uss_at.filter(|(at, _)| *at == row.timestamp);
            let all = before.map_or(0, |(_, all)| all) + uss;
            self.uss_at = Some((row.timestamp, all));
            self.uss_peak = self.uss_peak.max(Some(all));
        }
        if !self.by_tool.contains_key(row.tool) {
            self.by_tool.insert(row.tool.to_owned(), ToolRowStatistics::default());
        }
        if let Some(tool) = self.by_tool.get_mut(row.tool) {
            tool.count += 1;
            tool.cores += row.cores;
            tool.cores_peak = Some(tool.cores_peak.map_or(row.cores, |peak| peak.max(row.cores)));
            if let Some(uss) = row.uss {
                tool.with_uss += 1;
                tool.uss += uss as f64;
            }
        }
    }

    /// The most private memory that the rows of one moment have together.
    pub(super) fn uss_peak(&self) -> Option<f64> {
        self.uss_peak.map(|bytes| bytes as f64)
    }

    /// The statistics of a tool.
    pub(super) fn of(&self, tool: &str) -> ToolRowStatistics {
        self.by_tool.get(tool).copied().unwrap_or_default()
    }

    /// The statistics of all tools but these.
    pub(super) fn of_others(&self, than: &[&str]) -> ToolRowStatistics {
        let others = self.by_tool.iter().filter(|(tool, _)| !than.contains(&tool.as_str()));
        others.fold(ToolRowStatistics::default(), |all, (_, one)| ToolRowStatistics {
            count: all.count + one.count,
            cores: all.cores + one.cores,
            cores_peak: all.cores_peak.into_iter().chain(one.cores_peak).reduce(f64::max),
            with_uss: all.with_uss + one.with_uss,
            uss: all.uss + one.uss,
        })
    }

    /// What is missing in the files.
    pub(super) fn missing(&self) -> Option<String> {
        let (without, all) = (self.without_uss, self.count);
        if all == 0 {
            return Some("the recording holds no processes, so the table has no rows".to_owned());
        }
        (without > 0).then(|| {
            format!(
                "in {without} of {all} rows private memory is not known and the field is empty: \
                 oasislmf leaves these rows out"
            )
        })
    }
}

impl ToolRowStatistics {
    /// Mean of cores over its rows.
    pub(super) fn cores_mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.cores / self.count as f64)
    }

    /// Mean of private memory over the rows in which it is known.
    pub(super) fn uss_mean(&self) -> Option<f64> {
        (self.with_uss > 0).then(|| self.uss / self.with_uss as f64)
    }
}
