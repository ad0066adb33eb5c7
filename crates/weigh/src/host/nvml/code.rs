//! What NVML returns when it has no answer.

use nvml_wrapper_sys::bindings::nvmlReturn_t;

/// Why a call has no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub nvmlReturn_t);

impl Code {
    /// This card has no such thing.
    pub const NOT_SUPPORTED: Code = Code(3);
    /// This user may not.
    pub const NO_PERMISSION: Code = Code(4);
    /// There is none; of samples: none is newer.
    pub const NOT_FOUND: Code = Code(6);
    /// The room for a list is too small.
    pub const INSUFFICIENT_SIZE: Code = Code(7);
    /// There is no driver.
    pub const DRIVER_NOT_LOADED: Code = Code(9);
    /// The driver is too old for it.
    pub const FUNCTION_NOT_FOUND: Code = Code(13);
    /// The card fell off the bus.
    pub const GPU_IS_LOST: Code = Code(15);

    pub(super) fn of(returned: nvmlReturn_t) -> Result<(), Code> {
        if returned == 0 { Ok(()) } else { Err(Code(returned)) }
    }

    /// Whether asking again is no use, for this card and this question.
    pub fn is_for_good(self) -> bool {
        matches!(self, Code::NOT_SUPPORTED | Code::NO_PERMISSION | Code::FUNCTION_NOT_FOUND)
    }

    /// Whether the card itself is gone: lost, in need of a reset, or not found any more.
    pub fn is_loss(self) -> bool {
        matches!(self.0, 15 | 16 | 28)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words = match self.0 {
            1 => "the library was not begun",
            2 => "it does not know what it was asked",
            3 => "not supported",
            4 => "permission denied",
            6 => "not found",
            9 => "no driver is loaded",
            10 => "it took too long",
            11 => "interrupts do not arrive",
            13 => "the driver is too old",
            14 => "the card's own memory of itself is damaged",
            15 => "the card is lost: it fell off the bus, or does not answer any more",
            16 => "the card needs a reset",
            17 => "the operating system refused",
            18 => "library and driver are of different versions; restart the machine",
            20 => "there is not enough memory",
            28 => "the card is not there any more",
            _ => return write!(formatter, "NVML error {}", self.0),
        };
        formatter.write_str(words)
    }
}
