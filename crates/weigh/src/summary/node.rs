//! The whole machine, as the summary follows it.

use super::curve::{Mean, Peak, Rate};
use crate::collect::cpu::NodeCpu;
use crate::collect::memory::NodeMemory;

/// The whole machine.
#[derive(Debug, Default)]
pub(super) struct Node {
    first: Option<(f64, f64)>,
    last: Option<(f64, f64)>,
    first_elsewhere: Option<f64>,
    last_elsewhere: f64,
    pub(super) busy: Rate,
    pub(super) used: Peak,
    pub(super) used_mean: Mean,
}

impl Node {
    /// CPU time used on the machine between the first and the last look, and all there was.
    pub(super) fn cpu(&self) -> Option<(f64, f64)> {
        let ((busy, all), (busy_before, all_before)) = (self.last?, self.first?);
        (all > all_before).then_some((busy - busy_before, all - all_before))
    }

    /// CPU time that went to interrupts and to other guests between the first and last look.
    pub(super) fn elsewhere(&self) -> f64 {
        self.last_elsewhere - self.first_elsewhere.unwrap_or(self.last_elsewhere)
    }

    /// Interrupts and other guests since the machine started.
    pub(super) fn elsewhere_so_far(&self) -> f64 {
        self.last_elsewhere
    }

    pub(super) fn see(&mut self, cpu: &NodeCpu, memory: &NodeMemory, at: f64) {
        if let Some((busy, all)) = cpu.busy_and_all() {
            self.first = self.first.or(Some((busy, all)));
            self.last = Some((busy, all));
            self.busy.see(busy, at);
        }
        let elsewhere = cpu.interrupts.unwrap_or(0.0) + cpu.steal.unwrap_or(0.0);
        self.first_elsewhere = self.first_elsewhere.or(Some(elsewhere));
        self.last_elsewhere = elsewhere;
        if let (Some(total), Some(available)) = (memory.total, memory.available) {
            let used = total.saturating_sub(available) as f64;
            self.used.see(used, at);
            self.used_mean.see(used, at);
        }
    }
}
