//! GPM: activity between two samples, on Hopper and later.

use std::ffi::c_uint;

use nvml_wrapper_sys::bindings::{
    nvmlDevice_t, nvmlGpmMetricsGet_t, nvmlGpmSample_t, nvmlGpmSupport_t, nvmlReturn_t,
};

use crate::script::{self, INVALID_ARGUMENT, NOT_SUPPORTED};
use crate::{about_devices, answer, put};

/// A sample remembers its device: what is behind the pointer is ours alone.
struct Sample {
    device: nvmlDevice_t,
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlGpmSampleAlloc(buffer: *mut nvmlGpmSample_t) -> nvmlReturn_t {
    if let Err(code) = script::enter("nvmlGpmSampleAlloc", None) {
        return code;
    }
    put(buffer, Box::into_raw(Box::new(Sample { device: std::ptr::null_mut() })).cast());
    0
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlGpmSampleFree(sample: nvmlGpmSample_t) -> nvmlReturn_t {
    if !sample.is_null() {
        // SAFETY: it was allocated by nvmlGpmSampleAlloc, and its owner frees it.
        drop(unsafe { Box::from_raw(sample.cast::<Sample>()) });
    }
    0
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlGpmSampleGet(
    device: nvmlDevice_t,
    sample: nvmlGpmSample_t,
) -> nvmlReturn_t {
    answer("nvmlGpmSampleGet", device, |answers| {
        answers.get("gpm").ok_or(NOT_SUPPORTED)?;
        put(sample.cast::<Sample>(), Sample { device });
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn nvmlGpmMetricsGet(buffer: *mut nvmlGpmMetricsGet_t) -> nvmlReturn_t {
    if buffer.is_null() {
        return INVALID_ARGUMENT;
    }
    // SAFETY: the caller passes a valid request, and its samples are from nvmlGpmSampleAlloc.
    let (request, device) = unsafe {
        let request = &mut *buffer;
        let device = (*request.sample2.cast::<Sample>()).device;
        (request, device)
    };
    answer("nvmlGpmMetricsGet", device, |answers| {
        for metric in request.metrics.iter_mut().take(request.numMetrics as usize) {
            let value = answers["gpm"][metric.metricId.to_string()].as_f64();
            metric.nvmlReturn = if value.is_some() { 0 } else { NOT_SUPPORTED };
            metric.value = value.unwrap_or(0.0);
        }
        Ok(())
    })
}

about_devices! {
    nvmlGpmQueryDeviceSupport(device, buffer: *mut nvmlGpmSupport_t) {
        let supported = c_uint::from(device.get("gpm").is_some());
        put(buffer, nvmlGpmSupport_t { version: 1, isSupportedDevice: supported });
        Ok(())
    }
}
