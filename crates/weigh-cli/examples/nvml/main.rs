//! `libnvidia-ml.so.1` of the tests: NVIDIA's management library as weigh uses it, without a GPU.
//!
//! It has the C interface of NVML, versioned names included, and is loaded by the same loader as
//! the real one. `script` is where its answers are from. That it implements NVML and not only
//! what weigh expects is tested with NVIDIA's own Python client.
#![allow(missing_docs, non_snake_case, reason = "the names are NVIDIA's, and so is what they mean")]
#![allow(clippy::disallowed_methods, reason = "this stands in for a machine")]

mod calls;
mod gpm;
mod lists;
mod script;
mod system;
mod wave;

use std::ffi::{c_char, c_uint};

use nvml_wrapper_sys::bindings::{nvmlDevice_t, nvmlReturn_t};
use script::{Code, INSUFFICIENT_SIZE, INVALID_ARGUMENT};
use serde_json::Value;

/// A handle is a number: the device from one up, and its MIG instance from one up.
fn handle(device: usize, part: Option<usize>) -> nvmlDevice_t {
    (((device + 1) << 8) | part.map_or(0, |part| part + 1)) as nvmlDevice_t
}

/// The device of a handle, and its MIG instance.
fn place(handle: nvmlDevice_t) -> Option<(usize, Option<usize>)> {
    let number = handle as usize;
    Some(((number >> 8).checked_sub(1)?, (number & 0xff).checked_sub(1)))
}

/// Answers a call about a device.
fn answer(
    call: &str,
    handle: nvmlDevice_t,
    body: impl FnOnce(&Value) -> Result<(), Code>,
) -> nvmlReturn_t {
    let Some((index, part)) = place(handle) else { return INVALID_ARGUMENT };
    let name = match part {
        Some(part) => format!("{index}:{part}"),
        None => index.to_string(),
    };
    let answered = script::enter(call, Some(&name)).and_then(|script| {
        let device = script["devices"].get(index).ok_or(INVALID_ARGUMENT)?;
        let device = part.map_or(Some(device), |part| device["migs"].get(part));
        body(device.ok_or(INVALID_ARGUMENT)?)
    });
    answered.err().unwrap_or(0)
}

/// Writes one answer.
fn put<T>(buffer: *mut T, value: T) {
    if !buffer.is_null() {
        // SAFETY: the caller of NVML passes a buffer for one value.
        unsafe { buffer.write(value) };
    }
}

/// Writes a list of answers into a buffer for `count` of them, and their number into `count`.
///
/// With a buffer that is too small only the number is written, as NVML does.
fn put_all<T>(count: *mut c_uint, buffer: *mut T, values: Vec<T>) -> Result<(), Code> {
    if count.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: the caller of NVML passes the length of its buffer here.
    let capacity = unsafe { count.read() } as usize;
    put(count, values.len() as c_uint);
    if values.len() > capacity {
        return Err(INSUFFICIENT_SIZE);
    }
    for (place, value) in values.into_iter().enumerate() {
        // SAFETY: the buffer has `there_is` values, and this is one of the first.
        put(unsafe { buffer.add(place) }, value);
    }
    Ok(())
}

/// Writes text with a terminating zero.
fn put_text(buffer: *mut c_char, length: c_uint, text: &str) -> Result<(), Code> {
    if text.len() >= length as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    for (place, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: the text and its zero fit into the buffer, whose length the caller passes.
        put(unsafe { buffer.add(place) }, byte as c_char);
    }
    Ok(())
}

/// Exports calls about a device: the name, what the closure calls the device, the arguments.
macro_rules! about_devices {
    ($($call:ident($device:ident $(, $argument:ident: $type:ty)*) $body:block)*) => {
        $(
            #[unsafe(no_mangle)]
            pub(crate) extern "C" fn $call(
                handle: nvml_wrapper_sys::bindings::nvmlDevice_t
                $(, $argument: $type)*
            ) -> nvml_wrapper_sys::bindings::nvmlReturn_t {
                crate::answer(stringify!($call), handle, |$device| $body)
            }
        )*
    };
}
pub(crate) use about_devices;
