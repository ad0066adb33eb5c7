//! The error codes of NVML (`nvmlReturn_t`).

use nvml_wrapper_sys::bindings::nvmlReturn_t;

/// Why a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code(pub nvmlReturn_t);

impl Code {
    /// This GPU does not have it.
    pub const NOT_SUPPORTED: Code = Code(3);
    /// This user has no permission.
    pub const NO_PERMISSION: Code = Code(4);
    /// Not found; of samples: none is newer.
    pub const NOT_FOUND: Code = Code(6);
    /// The buffer for a list is too small.
    pub const INSUFFICIENT_SIZE: Code = Code(7);
    /// No driver is loaded.
    pub const DRIVER_NOT_LOADED: Code = Code(9);
    /// The driver is too old for it.
    pub const FUNCTION_NOT_FOUND: Code = Code(13);
    /// The GPU fell off the bus.
    #[cfg(test)]
    pub const GPU_IS_LOST: Code = Code(15);

    pub(super) fn of(returned: nvmlReturn_t) -> Result<(), Code> {
        if returned == 0 { Ok(()) } else { Err(Code(returned)) }
    }

    /// Whether this call of this GPU will always fail.
    pub fn is_permanent(self) -> bool {
        matches!(self, Code::NOT_SUPPORTED | Code::NO_PERMISSION | Code::FUNCTION_NOT_FOUND)
    }

    /// Whether the GPU itself is lost: it fell off the bus, needs a reset, or is not found any more.
    pub fn is_loss(self) -> bool {
        matches!(self.0, 15 | 16 | 28)
    }
}

impl std::fmt::Display for Code {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self.0 {
            1 => "the library is not initialized",
            2 => "invalid argument",
            3 => "not supported",
            4 => "permission denied",
            6 => "not found",
            9 => "no driver is loaded",
            10 => "timed out",
            11 => "the driver receives no interrupts",
            13 => "the driver is too old",
            14 => "the infoROM of the GPU is corrupted",
            15 => "the GPU is lost: it fell off the bus, or does not respond any more",
            16 => "the GPU needs a reset",
            17 => "the operating system refused the request",
            18 => "library and driver have different versions; restart the machine",
            20 => "not enough memory",
            28 => "the GPU is not found any more",
            _ => return write!(formatter, "NVML error {}", self.0),
        };
        formatter.write_str(text)
    }
}
