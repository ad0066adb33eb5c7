//! Calls that answer with a number or two.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlBAR1Memory_t, nvmlClockType_t, nvmlEccCounterType_t, nvmlMemory_t, nvmlMemory_v2_t,
    nvmlMemoryErrorType_t, nvmlPcieUtilCounter_t, nvmlPerfPolicyType_t, nvmlTemperatureSensors_t,
    nvmlUtilization_t, nvmlViolationTime_t,
};

use crate::script::{INVALID_ARGUMENT, NOT_SUPPORTED, number};
use crate::wave::Wave;
use crate::{about_devices, put};

about_devices! {
    nvmlDeviceGetUtilizationRates(device, buffer: *mut nvmlUtilization_t) {
        let share = |place, kind| {
            let waved = |_| Wave::of(device, kind).map(|wave| wave.now());
            number(device, place).or_else(waved).map(|share| share as c_uint)
        };
        put(buffer, nvmlUtilization_t {
            gpu: share("/utilization/gpu", 1)?,
            memory: share("/utilization/memory", 2)?,
        });
        Ok(())
    }
    nvmlDeviceGetEncoderUtilization(device, share: *mut c_uint, period: *mut c_uint) {
        put(share, number(device, "/encoder")? as c_uint);
        put(period, 167_000);
        Ok(())
    }
    nvmlDeviceGetDecoderUtilization(device, share: *mut c_uint, period: *mut c_uint) {
        put(share, number(device, "/decoder")? as c_uint);
        put(period, 167_000);
        Ok(())
    }
    nvmlDeviceGetMemoryInfo(device, buffer: *mut nvmlMemory_t) {
        // "Sum of Reserved and Allocated device memory", as its documentation says.
        let reserved = number(device, "/memory/reserved").unwrap_or(0);
        put(buffer, nvmlMemory_t {
            total: number(device, "/memory/total")?,
            free: number(device, "/memory/free")?,
            used: number(device, "/memory/used")? + reserved,
        });
        Ok(())
    }
    nvmlDeviceGetMemoryInfo_v2(device, buffer: *mut nvmlMemory_v2_t) {
        put(buffer, nvmlMemory_v2_t {
            version: size_of::<nvmlMemory_v2_t>() as c_uint | 2 << 24,
            total: number(device, "/memory/total")?,
            reserved: number(device, "/memory/reserved")?,
            free: number(device, "/memory/free")?,
            used: number(device, "/memory/used")?,
        });
        Ok(())
    }
    nvmlDeviceGetBAR1MemoryInfo(device, buffer: *mut nvmlBAR1Memory_t) {
        let (total, used) = (number(device, "/bar1/total")?, number(device, "/bar1/used")?);
        put(buffer, nvmlBAR1Memory_t { bar1Total: total, bar1Free: total - used, bar1Used: used });
        Ok(())
    }
    nvmlDeviceGetPowerUsage(device, milliwatts: *mut c_uint) {
        put(milliwatts, number(device, "/power")? as c_uint);
        Ok(())
    }
    nvmlDeviceGetEnforcedPowerLimit(device, milliwatts: *mut c_uint) {
        put(milliwatts, number(device, "/power_limit")? as c_uint);
        Ok(())
    }
    nvmlDeviceGetTotalEnergyConsumption(device, millijoules: *mut c_ulonglong) {
        let counted = number(device, "/energy");
        let waved = || Wave::of(device, 0).map(|wave| wave.integral());
        put(millijoules, counted.or_else(|_| waved())?);
        Ok(())
    }
    nvmlDeviceGetTemperature(device, sensor: nvmlTemperatureSensors_t, degrees: *mut c_uint) {
        if sensor != 0 {
            return Err(INVALID_ARGUMENT);
        }
        put(degrees, number(device, "/temperature")? as c_uint);
        Ok(())
    }
    nvmlDeviceGetFanSpeed(device, share: *mut c_uint) {
        put(share, number(device, "/fan")? as c_uint);
        Ok(())
    }
    nvmlDeviceGetClockInfo(device, clock: nvmlClockType_t, megahertz: *mut c_uint) {
        put(megahertz, number(device, &format!("/clocks/{clock}"))? as c_uint);
        Ok(())
    }
    nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons: *mut c_ulonglong) {
        put(reasons, number(device, "/throttle_reasons")?);
        Ok(())
    }
    nvmlDeviceGetViolationStatus(
        device,
        policy: nvmlPerfPolicyType_t,
        buffer: *mut nvmlViolationTime_t
    ) {
        let nanoseconds = number(device, &format!("/violations/{policy}"))?;
        put(buffer, nvmlViolationTime_t { referenceTime: 1, violationTime: nanoseconds });
        Ok(())
    }
    nvmlDeviceGetTotalEccErrors(
        device,
        error: nvmlMemoryErrorType_t,
        counter: nvmlEccCounterType_t,
        count: *mut c_ulonglong
    ) {
        put(count, number(device, &format!("/ecc/{error}/{counter}"))?);
        Ok(())
    }
    nvmlDeviceGetPcieThroughput(device, counter: nvmlPcieUtilCounter_t, kilobytes: *mut c_uint) {
        put(kilobytes, number(device, &format!("/pcie/throughput/{counter}"))? as c_uint);
        Ok(())
    }
    nvmlDeviceGetCurrPcieLinkGeneration(device, generation: *mut c_uint) {
        put(generation, number(device, "/pcie/generation")? as c_uint);
        Ok(())
    }
    nvmlDeviceGetCurrPcieLinkWidth(device, lanes: *mut c_uint) {
        put(lanes, number(device, "/pcie/width")? as c_uint);
        Ok(())
    }
    nvmlDeviceGetPcieReplayCounter(device, count: *mut c_uint) {
        put(count, number(device, "/pcie/replays")? as c_uint);
        Ok(())
    }
    nvmlDeviceGetFieldValues(
        device,
        count: std::ffi::c_int,
        buffer: *mut nvml_wrapper_sys::bindings::nvmlFieldValue_t
    ) {
        device.get("nvlink").ok_or(NOT_SUPPORTED)?;
        for place in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: the caller passes a buffer for `count` values.
            let value = unsafe { &mut *buffer.add(place) };
            match number(device, &format!("/nvlink/{}", value.fieldId)) {
                Ok(number) => {
                    value.valueType = 3;
                    value.value.ullVal = number;
                    value.nvmlReturn = 0;
                }
                Err(code) => value.nvmlReturn = code,
            }
        }
        Ok(())
    }
}
