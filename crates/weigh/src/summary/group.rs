//! The control group that is followed, as the summary keeps it.

use super::curve::{Mean, Peak};
use crate::collect::cgroup::{GroupCpu, GroupIo, GroupMemory, GroupTasks, GroupThrottling};
use crate::sample::Table;

/// What the kernel says of the group.
#[derive(Debug, Default)]
pub(super) struct Group {
    /// Its counters as last seen.
    pub(super) cpu: GroupCpu,
    pub(super) throttling: GroupThrottling,
    pub(super) io: GroupIo,
    pub(super) oom_kills: Option<u64>,
    /// The most that was seen at once: all its memory, that of programs, and of the page cache.
    pub(super) current: Peak,
    pub(super) anonymous: Peak,
    pub(super) cache: Peak,
    pub(super) swap: Peak,
    pub(super) mean: Mean,
    /// The kernel's own mark at the first look: it may be from before weigh came.
    mark_before: Option<f64>,
    mark: Peak,
    /// When it was last seen.
    pub(super) seen: Option<f64>,
}

impl Group {
    /// Takes in the row of a tick.
    pub(super) fn see(&mut self, table: &Table, at: f64) {
        let cpu: GroupCpu = table.get(0);
        let io: GroupIo = table.get(0);
        let throttling: GroupThrottling = table.get(0);
        let memory: GroupMemory = table.get(0);
        // One that could not be read this time is what it was.
        self.cpu = GroupCpu {
            usage: cpu.usage.or(self.cpu.usage),
            user: cpu.user.or(self.cpu.user),
            system: cpu.system.or(self.cpu.system),
        };
        self.io = GroupIo {
            read: io.read.or(self.io.read),
            written: io.written.or(self.io.written),
            reads: io.reads.or(self.io.reads),
            writes: io.writes.or(self.io.writes),
        };
        self.throttling.throttled = throttling.throttled.or(self.throttling.throttled);
        self.oom_kills = table.get::<GroupTasks>(0).oom_kills.or(self.oom_kills);
        let levels = [
            (&mut self.current, memory.current),
            (&mut self.anonymous, memory.anonymous),
            (&mut self.cache, memory.file),
            (&mut self.swap, memory.swap),
            (&mut self.mark, memory.peak),
        ];
        for (peak, level) in levels {
            if let Some(level) = level {
                peak.see(level as f64, at);
            }
        }
        if let Some(current) = memory.current {
            self.mean.see(current as f64, at);
        }
        self.mark_before = self.mark_before.or(self.mark.value);
        self.seen = Some(at);
    }

    /// The kernel's mark, if it rose since the first look: then it is of our time.
    pub(super) fn risen(&self) -> Option<Peak> {
        let before = self.mark_before?;
        Some(self.mark).filter(|mark| mark.value.is_some_and(|value| value > before))
    }

    /// The kernel's mark from before the first look: what came after is not above it, unless
    /// it rose.
    pub(super) fn mark_before(&self) -> Option<f64> {
        self.mark_before
    }
}
