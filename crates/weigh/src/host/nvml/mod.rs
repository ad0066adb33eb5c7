//! NVIDIA's management library, loaded when it is asked for.
//!
//! Source: `libnvidia-ml.so.1`, which comes with the driver and is found by the dynamic loader;
//! `WEIGH_NVML_LIBRARY` names another one. Every user may ask it nearly everything.
//!
//! Only the declarations are somebody else's (nvml-wrapper-sys: what bindgen makes of NVIDIA's
//! header, and libloading under it). nvml-wrapper, the safe layer above it, makes a new list
//! for every call that answers with one, asks for its length with a call of its own first, and
//! so makes two calls of one; here lists are kept from look to look.
//!
//! What surprised us: a function that the installed driver is too old for fails when it is
//! called, not when the library is loaded. And a library is never unloaded here: a driver that
//! hangs may return one day.

mod code;
mod device;
mod gpm;
mod lists;
mod users;

use std::ffi::{CStr, OsString, c_char};

use nvml_wrapper_sys::bindings::NvmlLib;

pub use code::Code;
pub use device::{Clock, Device, Ecc, Memory, Violation};
pub use gpm::{Gpm, GpmActivity};
pub use lists::{PerProcess, Room, Sample, Sampled};
pub use users::User;

use super::environment;

/// The variable that names another library than the driver's own.
pub const LIBRARY_VARIABLE: &str = "WEIGH_NVML_LIBRARY";

/// Whether somebody named a library.
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
    /// The library is there, and no driver behind it.
    #[error("no NVIDIA driver is loaded")]
    NoDriver,
    /// The driver is there, and this user may not ask it.
    #[error("the NVIDIA driver may not be asked: {0}")]
    NotAllowed(Code),
    /// Something else is wrong.
    #[error("the NVIDIA driver cannot be asked: {0}")]
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

/// Calls a function of the library; one that it does not have is a code like any other.
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

/// NVML, loaded and begun.
#[derive(Clone, Copy)]
pub struct Nvml {
    library: &'static NvmlLib,
}

impl Nvml {
    /// Loads the library and begins. It may take seconds: a driver without persistence mode
    /// wakes its cards up.
    pub fn load() -> Result<Nvml, Error> {
        let path = named().unwrap_or_else(|| "libnvidia-ml.so.1".into());
        // SAFETY: what runs when this library is loaded is NVIDIA's, or of whoever named it.
        let loaded = unsafe { NvmlLib::new(path) };
        let library = loaded.map_err(|error| Error::NoLibrary(error.to_string()))?;
        let library: &'static NvmlLib = Box::leak(Box::new(library));
        call!(library, nvmlInit_v2())?;
        Ok(Nvml { library })
    }

    /// How many cards there are.
    pub fn count(self) -> Result<u32, Code> {
        let mut count = 0;
        call!(self.library, nvmlDeviceGetCount_v2(&mut count))?;
        Ok(count)
    }

    /// One of the cards.
    pub fn device(self, index: u32) -> Result<Device, Code> {
        let mut handle = std::ptr::null_mut();
        call!(self.library, nvmlDeviceGetHandleByIndex_v2(index, &mut handle))?;
        Ok(Device::new(self.library, handle))
    }

    /// The driver's version.
    pub fn driver(self) -> Result<String, Code> {
        text(|room, length| call!(self.library, nvmlSystemGetDriverVersion(room, length)))
    }
}

/// Text that a call writes into the room it is given.
fn text(call: impl FnOnce(*mut c_char, u32) -> Result<(), Code>) -> Result<String, Code> {
    // The longest that NVML has is 96 (NVML_DEVICE_UUID_V2_BUFFER_SIZE, NVML_DEVICE_NAME_V2_…).
    let mut room = [0u8; 256];
    call(room.as_mut_ptr().cast(), room.len() as u32)?;
    let text = CStr::from_bytes_until_nul(&room).unwrap_or_default();
    Ok(text.to_string_lossy().into_owned())
}
