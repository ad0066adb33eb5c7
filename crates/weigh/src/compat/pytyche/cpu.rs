//! The machine's CPU time between two looks, an interval apart.
//!
//! Theirs adds up every column of `/proc/stat`, guest time among them, which is inside
//! user time already. A recording holds it once.
//!
//! The kernel may take back a little of what it counted as I/O wait (see proc_stat(5)) and
//! call it idle. That was idle before this row, and is none of its time.

use std::time::Duration;

use super::CPU;
use crate::catalog::metrics::NodeCpu;
use crate::compat::row_spacing::{RowSpacing, SHORTEST};

/// Parts of all CPU time there was between two looks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Shares {
    /// In user mode, at low priority too.
    pub user: f64,
    /// With nothing to do.
    pub idle: f64,
}

/// The shares of what was counted between two looks; none when that is not known.
pub(super) fn shares(before: &NodeCpu, now: &NodeCpu) -> Option<Shares> {
    // Steps of the clock are whole, and the seconds they became are not.
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

/// Looks at the machine, of which some are an interval apart.
#[derive(Debug)]
pub(super) struct Sampler {
    spacing: RowSpacing,
    /// Where the next row begins.
    since: Option<(Duration, NodeCpu)>,
    last: Option<(Duration, NodeCpu)>,
    rows: u64,
    /// Rows that cannot be, because a counter went back or is not read any more.
    left_out: u64,
    /// Rows that cannot be, because the kernel counted nothing: not even idle time.
    standing: u64,
}

impl Sampler {
    /// Rows that are so far apart.
    pub(super) fn new(spacing: RowSpacing) -> Sampler {
        Sampler { spacing, since: None, last: None, rows: 0, left_out: 0, standing: 0 }
    }

    /// Takes in a look; the first of an interval ends a row. One that tells nothing is none.
    pub(super) fn see(&mut self, at: Duration, now: NodeCpu) -> Option<CpuRow> {
        now.busy_and_all()?;
        self.last = Some((at, now));
        let (since, before) = *self.since.get_or_insert((at, now));
        if !self.spacing.is_over(since, at) {
            return None;
        }
        self.since = self.last;
        let shares = shares(&before, &now);
        match shares {
            Some(_) => self.rows += 1,
            None if before == now => self.standing += 1,
            None => self.left_out += 1,
        }
        shares.map(|shares| CpuRow { at, shares })
    }

    /// The row of a run that was over before its first interval was.
    pub(super) fn only(&mut self) -> Option<CpuRow> {
        let ((since, before), (at, now)) = (self.since?, self.last?);
        if self.rows + self.left_out + self.standing > 0 || at.saturating_sub(since) < SHORTEST {
            return None;
        }
        let shares = shares(&before, &now)?;
        self.rows += 1;
        Some(CpuRow { at, shares })
    }

    /// What the table does not have, and why.
    pub(super) fn missing(&self) -> Vec<String> {
        let of = self.rows + self.left_out + self.standing;
        let reasons = [
            (self.left_out, "because counters of the kernel went back"),
            (self.standing, "because /proc/stat stood still: not even idle time was counted"),
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
        match (self.since, self.last) {
            (Some((since, before)), Some((at, now))) => match before == now {
                true if at.saturating_sub(since) >= SHORTEST => {
                    "/proc/stat stood still: not even idle time was counted"
                }
                _ => "the machine was looked at for less than 0.1 s",
            },
            _ => "CPU time of one machine is not recorded",
        }
    }
}
