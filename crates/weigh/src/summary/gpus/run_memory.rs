//! GPU memory of processes of the run at one tick.

/// GPU memory of some processes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RunMemory {
    bytes: f64,
    pub(super) some_known: bool,
    /// Whether there is a process whose memory the driver does not report.
    pub(super) some_unknown: bool,
}

impl RunMemory {
    pub(super) fn add(&mut self, memory: Option<u64>) {
        self.bytes += memory.unwrap_or(0) as f64;
        self.some_known |= memory.is_some();
        self.some_unknown |= memory.is_none();
    }

    pub(super) fn plus(self, other: RunMemory) -> RunMemory {
        RunMemory {
            bytes: self.bytes + other.bytes,
            some_known: self.some_known || other.some_known,
            some_unknown: self.some_unknown || other.some_unknown,
        }
    }

    /// The sum, or a lower bound. It is 0 without processes only where the driver lists them.
    pub(super) fn known(self, are_listed: bool) -> Option<f64> {
        (self.some_known || (are_listed && !self.some_unknown)).then_some(self.bytes)
    }
}
