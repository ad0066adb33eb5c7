//! The machine's CPU time between two samples, an interval apart.
//!
//! pytyche sums all columns of `/proc/stat`, with guest time, which is included in user time
//! already. A recording has it once.
//!
//! The kernel's I/O wait may decrease (see proc_stat(5)): some of it becomes idle time. That was
//! idle before this row, and does not belong to its time.

use std::time::Duration;

use super::CPU;
use crate::catalog::metrics::NodeCpu;
use crate::compat::row_spacing::{RowSpacing, SHORTEST};

/// Shares of all CPU time between two samples.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shares {
    /// In user mode, with nice time.
    pub user: f64,
    /// Idle.
    pub idle: f64,
}

/// The shares of CPU time between two samples; `None` when they are not known.
pub(super) fn shares(before: &NodeCpu, now: &NodeCpu) -> Option<Shares> {
    // Clock ticks are whole numbers, the seconds made from them are not.
    const ROUNDING: f64 = 1e-6;
    let optional = |cpu: &NodeCpu| [cpu.iowait, cpu.interrupts, cpu.steal].map(|one| one.is_some());
    if optional(before) != optional(now) {
        return None;
    }
    let user_of = |cpu: &NodeCpu| Some(cpu.user? + cpu.nice?);
    let ((_, all_before), (_, all_now)) = (before.busy_and_all()?, now.busy_and_all()?);
    let user = user_of(now)? - user_of(before)?;
    let taken_back = (before.iowait.unwrap_or(0.0) - now.iowait.unwrap_or(0.0)).max(0.0);
    let idle = now.idle? - before.idle? - taken_back;
    let all = all_now - all_before;
    let parts = user >= -ROUNDING && idle >= -ROUNDING && user + idle <= all + ROUNDING;
    let share = |part: f64| (part / all).clamp(0.0, 1.0);
    (parts && all > ROUNDING).then(|| Shares { user: share(user), idle: share(idle) })
}

/// A row of the table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CpuRow {
    /// When its time ends, since the run began.
    pub at: Duration,
    /// What its time was used for.
    pub shares: Shares,
}

/// Makes rows an interval apart from samples of the machine.
#[derive(Debug)]
pub(super) struct Sampler {
    spacing: RowSpacing,
    /// Where the next row begins.
    begin: Option<(Duration, NodeCpu)>,
    last: Option<(Duration, NodeCpu)>,
    rows: u64,
    /// Rows left out because a counter decreased or could not be read any more.
    left_out: u64,
    /// Rows left out because no counter changed, not even idle time.
    unchanged: u64,
}

impl Sampler {
    /// Rows with this spacing.
    pub(super) fn new(spacing: RowSpacing) -> Sampler {
        Sampler { spacing, begin: None, last: None, rows: 0, left_out: 0, unchanged: 0 }
    }

    /// Takes in a sample; the first of an interval ends a row. An empty one is ignored.
    pub(super) fn sample(&mut self, at: Duration, now: NodeCpu) -> Option<CpuRow> {
        now.busy_and_all()?;
        self.last = Some((at, now));
        let (begin, before) = *self.begin.get_or_insert((at, now));
        if !self.spacing.is_over(begin, at) {
            return None;
        }
        self.begin = self.last;
        let shares = shares(&before, &now);
        match shares {
            Some(_) => self.rows += 1,
            None if before == now => self.unchanged += 1,
            None => self.left_out += 1,
        }
        shares.map(|shares| CpuRow { at, shares })
    }

    /// The only row of a run shorter than an interval.
    pub(super) fn only(&mut self) -> Option<CpuRow> {
        let ((begin, before), (at, now)) = (self.begin?, self.last?);
        if self.rows + self.left_out + self.unchanged > 0 || at.saturating_sub(begin) < SHORTEST {
            return None;
        }
        let shares = shares(&before, &now)?;
        self.rows += 1;
        Some(CpuRow { at, shares })
    }

    /// Whether the table has a row.
    pub(super) fn has_rows(&self) -> bool {
        self.rows > 0
    }

    /// What the table does not have, and why.
    pub(super) fn missing(&self) -> Vec<String> {
        let of = self.rows + self.left_out + self.unchanged;
        let reasons = [
            (self.left_out, "because counters of the kernel decreased"),
            (self.unchanged, "because /proc/stat did not change: not even idle time was counted"),
        ];
        let left_out = |(lost, why): (u64, &str)| {
            (lost > 0).then(|| format!("{CPU}: {lost} of {of} rows are left out, {why}"))
        };
        let mut missing: Vec<String> = reasons.into_iter().filter_map(left_out).collect();
        if of == 0 {
            missing.push(format!("{CPU} has no row: {}", self.why_no_row()));
        }
        missing
    }

    /// Why not even the only row of a short run could be written.
    fn why_no_row(&self) -> &'static str {
        match (self.begin, self.last) {
            (Some((begin, before)), Some((at, now))) => match before == now {
                true if at.saturating_sub(begin) >= SHORTEST => {
                    "/proc/stat did not change: not even idle time was counted"
                }
                _ => "the machine was sampled for less than 0.1 s",
            },
            _ => "CPU time of one machine is not recorded",
        }
    }
}
