//! Calls that initialize and shut down, count devices and find them.

use std::ffi::{c_char, c_int, c_uint};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};

use crate::script::{self, Code, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, number};
use crate::{about_devices, handle, place, put, put_text};

fn status(outcome: Result<(), Code>) -> nvmlReturn_t {
    outcome.err().unwrap_or(0)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInit_v2() -> nvmlReturn_t {
    status(script::enter("nvmlInit_v2", None).map(|_| ()))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlInitWithFlags(_flags: c_uint) -> nvmlReturn_t {
    nvmlInit_v2()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlShutdown() -> nvmlReturn_t {
    status(script::enter("nvmlShutdown", None).map(|_| ()))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlErrorString(code: nvmlReturn_t) -> *const c_char {
    let text = match code {
        0 => c"The operation was successful",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        9 => c"Driver Not Loaded",
        15 => c"GPU is lost",
        _ => c"Unknown Error",
    };
    text.as_ptr()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlSystemGetDriverVersion(
    buffer: *mut c_char,
    length: c_uint,
) -> nvmlReturn_t {
    status(script::enter("nvmlSystemGetDriverVersion", None).and_then(|script| {
        put_text(buffer, length, script["driver"].as_str().ok_or(NOT_SUPPORTED)?)
    }))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlSystemGetCudaDriverVersion_v2(version: *mut c_int) -> nvmlReturn_t {
    status(script::enter("nvmlSystemGetCudaDriverVersion_v2", None).and_then(|script| {
        put(version, number(&script, "/cuda")? as c_int);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> nvmlReturn_t {
    status(script::enter("nvmlDeviceGetCount_v2", None).map(|script| {
        put(count, script["devices"].as_array().map_or(0, Vec::len) as c_uint);
    }))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlDeviceGetHandleByIndex_v2(
    index: c_uint,
    buffer: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    let name = index.to_string();
    status(script::enter("nvmlDeviceGetHandleByIndex_v2", Some(&name)).and_then(|script| {
        script["devices"].get(index as usize).ok_or(INVALID_ARGUMENT)?;
        put(buffer, handle(index as usize, None));
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlDeviceGetMigDeviceHandleByIndex(
    parent: nvmlDevice_t,
    index: c_uint,
    buffer: *mut nvmlDevice_t,
) -> nvmlReturn_t {
    crate::answer("nvmlDeviceGetMigDeviceHandleByIndex", parent, |device| {
        device["migs"].get(index as usize).ok_or(NOT_FOUND)?;
        let (parent, _) = place(parent).ok_or(INVALID_ARGUMENT)?;
        put(buffer, handle(parent, Some(index as usize)));
        Ok(())
    })
}

about_devices! {
    nvmlDeviceGetName(device, buffer: *mut c_char, length: c_uint) {
        put_text(buffer, length, device["name"].as_str().ok_or(NOT_SUPPORTED)?)
    }
    nvmlDeviceGetUUID(device, buffer: *mut c_char, length: c_uint) {
        put_text(buffer, length, device["uuid"].as_str().ok_or(NOT_SUPPORTED)?)
    }
    nvmlDeviceGetMigMode(device, now: *mut c_uint, pending: *mut c_uint) {
        device.get("migs").ok_or(NOT_SUPPORTED)?;
        put(now, 1);
        put(pending, 1);
        Ok(())
    }
    nvmlDeviceGetMaxMigDeviceCount(device, count: *mut c_uint) {
        device.get("migs").ok_or(NOT_SUPPORTED)?;
        put(count, 7);
        Ok(())
    }
    nvmlDeviceGetGpuInstanceId(device, id: *mut c_uint) {
        put(id, number(device, "/gpu_instance")? as c_uint);
        Ok(())
    }
    nvmlDeviceGetAccountingMode(device, mode: *mut c_uint) {
        device.get("accounting").ok_or(NOT_SUPPORTED)?;
        put(mode, 1);
        Ok(())
    }
}
