//! Memory of GPUs that processes of the run have at one moment.

/// Memory of GPUs that some processes have.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Held {
    bytes: f64,
    pub(super) some_told: bool,
    /// Whether there is one of whom the driver does not tell.
    pub(super) some_untold: bool,
}

impl Held {
    pub(super) fn add(&mut self, memory: Option<u64>) {
        self.bytes += memory.unwrap_or(0) as f64;
        self.some_told |= memory.is_some();
        self.some_untold |= memory.is_none();
    }

    pub(super) fn and(self, other: Held) -> Held {
        Held {
            bytes: self.bytes + other.bytes,
            some_told: self.some_told || other.some_told,
            some_untold: self.some_untold || other.some_untold,
        }
    }

    /// How much it is, or at least: that nobody has any is told when users are told at all.
    pub(super) fn known(self, are_told: bool) -> Option<f64> {
        (self.some_told || (are_told && !self.some_untold)).then_some(self.bytes)
    }
}
