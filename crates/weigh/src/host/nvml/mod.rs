//! NVIDIA's management library, loaded at run time.
//!
//! Source: `libnvidia-ml.so.1`, which comes with the driver and is found by the dynamic loader;
//! `WEIGH_NVML_LIBRARY` names another one. Every user may make nearly every call.
//!
//! The declarations are those of nvml-wrapper-sys: what bindgen makes of NVIDIA's header, with
//! libloading. nvml-wrapper, the safe layer above it, allocates every list, and makes two calls for
//! it, the first for its length; here buffers are reused.
//!
//! What surprised us: a function that the installed driver is too old for fails when it is
//! called, not when the library is loaded. And the library is never unloaded: a call that hangs
//! may return at any time.

mod code;
mod device;
mod gpm;
mod lists;
mod processes;

use std::ffi::{CStr, OsString, c_char};

use nvml_wrapper_sys::bindings::NvmlLib;

pub use code::Code;
pub use device::{Ecc, NvmlClock, NvmlDevice, Violation};
pub use gpm::{Gpm, GpmActivity};
pub use lists::{ListBuffers, ProcessSample, Sample, Sampled};
pub use processes::NvmlProcess;

use super::environment;

/// The variable that names another library than the driver's own.
pub const LIBRARY_VARIABLE: &str = "WEIGH_NVML_LIBRARY";

/// Whether the environment names a library.
pub fn is_named() -> bool {
    named().is_some()
}

fn named() -> Option<OsString> {
    environment::variable(LIBRARY_VARIABLE).filter(|path| !path.is_empty())
}

/// Why there is no NVML.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The library cannot be loaded.
    #[error("the library of the NVIDIA driver cannot be loaded: {0}")]
    NoLibrary(String),
    /// The library is there, and no driver is loaded.
    #[error("no NVIDIA driver is loaded")]
    NoDriver,
    /// This user has no permission to call the driver.
    #[error("no permission to call the NVIDIA driver: {0}")]
    NotAllowed(Code),
    /// Another error.
    #[error("the NVIDIA driver failed: {0}")]
    Failed(Code),
}

impl From<Code> for Error {
    fn from(code: Code) -> Error {
        match code {
            Code::DRIVER_NOT_LOADED => Error::NoDriver,
            Code::NO_PERMISSION => Error::NotAllowed(code),
            other => Error::Failed(other),
        }
    }
}

/// Calls a function of the library; one that it does not have is an error code like any other.
macro_rules! call {
    ($library:expr, $name:ident($($argument:expr),*)) => {
        match &$library.$name {
            // SAFETY: it is the function of that name, declared as NVIDIA's header has it; what
            // is pointed to is of the declared type and lives until the call returns.
            Ok(function) => $crate::host::nvml::Code::of(unsafe { function($($argument),*) }),
            Err(_) => Err($crate::host::nvml::Code::FUNCTION_NOT_FOUND),
        }
    };
}
use call;

/// NVML, loaded and initialized.
#[derive(Clone, Copy)]
pub struct Nvml {
    library: &'static NvmlLib,
}

impl Nvml {
    /// Loads and initializes the library. It may take seconds: a driver without persistence mode
    /// wakes its GPUs up.
    pub fn load() -> Result<Nvml, Error> {
        let path = named().unwrap_or_else(|| "libnvidia-ml.so.1".into());
        // SAFETY: what runs when it is loaded is NVIDIA's code, or that of the library the user named.
        let loaded = unsafe { NvmlLib::new(path) };
        let library = loaded.map_err(|error| Error::NoLibrary(error.to_string()))?;
        let library: &'static NvmlLib = Box::leak(Box::new(library));
        call!(library, nvmlInit_v2())?;
        Ok(Nvml { library })
    }

    /// The number of GPUs.
    pub fn count(self) -> Result<u32, Code> {
        let mut count = 0;
        call!(self.library, nvmlDeviceGetCount_v2(&mut count))?;
        Ok(count)
    }

    /// One of the GPUs.
    pub fn device(self, index: u32) -> Result<NvmlDevice, Code> {
        let mut handle = std::ptr::null_mut();
        call!(self.library, nvmlDeviceGetHandleByIndex_v2(index, &mut handle))?;
        Ok(NvmlDevice::new(self.library, handle))
    }

    /// The driver's version.
    pub fn driver(self) -> Result<String, Code> {
        text(|buffer, length| call!(self.library, nvmlSystemGetDriverVersion(buffer, length)))
    }
}

/// Text that a call writes into a buffer.
fn text(call: impl FnOnce(*mut c_char, u32) -> Result<(), Code>) -> Result<String, Code> {
    // The longest that NVML has is 96 (NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_…).
    let mut buffer = [0u8; 256];
    call(buffer.as_mut_ptr().cast(), buffer.len() as u32)?;
    let text = CStr::from_bytes_until_nul(&buffer).unwrap_or_default();
    Ok(text.to_string_lossy().into_owned())
}
