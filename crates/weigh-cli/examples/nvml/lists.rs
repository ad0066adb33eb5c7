//! Calls that return a list: processes, and samples since the last call.

use std::ffi::{c_uint, c_ulonglong};

use nvml_wrapper_sys::bindings::{
    nvmlAccountingStats_t, nvmlConfComputeMemSizeInfo_t, nvmlProcessDetailList_t,
    nvmlProcessInfo_t, nvmlProcessInfo_v1_t, nvmlProcessUtilizationSample_t, nvmlSample_t,
    nvmlSamplingType_t, nvmlValue_t, nvmlValueType_t,
};
use serde_json::Value;

use crate::script::{
    Code, INSUFFICIENT_SIZE, INVALID_ARGUMENT, NOT_FOUND, NOT_SUPPORTED, lines, number,
};
use crate::wave::Wave;
use crate::{about_devices, put, put_all};

/// How many samples a driver's buffer has.
const ROOM: c_uint = 120;

/// What NVML returns for a number it does not know.
const UNKNOWN: u64 = u64::MAX;

/// Processes of a device, as `[pid, bytes]`, or `[pid]` where the driver does not report memory.
fn processes(device: &Value, place: &str) -> Result<Vec<nvmlProcessInfo_t>, Code> {
    let process = |line: Vec<u64>| nvmlProcessInfo_t {
        pid: line.first().copied().unwrap_or(0) as c_uint,
        usedGpuMemory: line.get(1).copied().unwrap_or(UNKNOWN),
        gpuInstanceId: c_uint::MAX,
        computeInstanceId: c_uint::MAX,
    };
    Ok(lines(device, place)?.into_iter().map(process).collect())
}

/// The samples of one kind after a moment.
fn samples(device: &Value, kind: nvmlSamplingType_t, after: u64) -> Result<Vec<(u64, u64)>, Code> {
    if let Ok(wave) = Wave::of(device, kind) {
        return Ok(wave.samples(after));
    }
    let listed = lines(device, &format!("/samples/{kind}"))?;
    let pairs = listed.iter().filter_map(|line| Some((*line.first()?, *line.get(1)?)));
    Ok(pairs.filter(|(time, _)| *time > after).collect())
}

/// An entry as the first drivers of R535 write it, under the name that the shorter one has, too.
#[repr(C)]
struct Longer {
    process: nvmlProcessInfo_t,
    protected: c_ulonglong,
}

/// Writes processes as `_v3` does: in longer entries where the script says so.
fn put_third(
    device: &Value,
    place: &str,
    count: *mut c_uint,
    buffer: *mut nvmlProcessInfo_t,
) -> Result<(), Code> {
    let processes = processes(device, place)?;
    if number(device, "/longer_entries").is_err() {
        return put_all(count, buffer, processes);
    }
    let longer = |process| Longer { process, protected: 0 };
    put_all(count, buffer.cast(), processes.into_iter().map(longer).collect())
}

/// Writes processes as drivers before R450 do.
fn put_first(
    device: &Value,
    place: &str,
    count: *mut c_uint,
    buffer: *mut nvmlProcessInfo_v1_t,
) -> Result<(), Code> {
    let first = |process: nvmlProcessInfo_t| nvmlProcessInfo_v1_t {
        pid: process.pid,
        usedGpuMemory: process.usedGpuMemory,
    };
    put_all(count, buffer, processes(device, place)?.into_iter().map(first).collect())
}

about_devices! {
    nvmlDeviceGetComputeRunningProcesses_v3(
        device,
        count: *mut c_uint,
        buffer: *mut nvmlProcessInfo_t
    ) {
        put_third(device, "/compute", count, buffer)
    }
    nvmlDeviceGetComputeRunningProcesses_v2(
        device,
        count: *mut c_uint,
        buffer: *mut nvmlProcessInfo_t
    ) {
        put_all(count, buffer, processes(device, "/compute")?)
    }
    nvmlDeviceGetComputeRunningProcesses(
        device,
        count: *mut c_uint,
        buffer: *mut nvmlProcessInfo_v1_t
    ) {
        put_first(device, "/compute", count, buffer)
    }
    nvmlDeviceGetMPSComputeRunningProcesses_v3(
        device,
        count: *mut c_uint,
        buffer: *mut nvmlProcessInfo_t
    ) {
        put_third(device, "/mps", count, buffer)
    }
    nvmlDeviceGetMPSComputeRunningProcesses_v2(
        device,
        count: *mut c_uint,
        buffer: *mut nvmlProcessInfo_t
    ) {
        put_all(count, buffer, processes(device, "/mps")?)
    }
    nvmlDeviceGetMPSComputeRunningProcesses(
        device,
        count: *mut c_uint,
        buffer: *mut nvmlProcessInfo_v1_t
    ) {
        put_first(device, "/mps", count, buffer)
    }
    nvmlDeviceGetGraphicsRunningProcesses_v3(
        device,
        count: *mut c_uint,
        buffer: *mut nvmlProcessInfo_t
    ) {
        put_third(device, "/graphics", count, buffer)
    }
    nvmlDeviceGetGraphicsRunningProcesses_v2(
        device,
        count: *mut c_uint,
        buffer: *mut nvmlProcessInfo_t
    ) {
        put_all(count, buffer, processes(device, "/graphics")?)
    }
    nvmlDeviceGetGraphicsRunningProcesses(
        device,
        count: *mut c_uint,
        buffer: *mut nvmlProcessInfo_v1_t
    ) {
        put_first(device, "/graphics", count, buffer)
    }
    // No client calls these two: whether a driver has them shows how long its entries are.
    nvmlDeviceGetConfComputeMemSizeInfo(_device, _room: *mut nvmlConfComputeMemSizeInfo_t) {
        Err(NOT_SUPPORTED)
    }
    nvmlDeviceGetRunningProcessDetailList(_device, _room: *mut nvmlProcessDetailList_t) {
        Err(NOT_SUPPORTED)
    }
    nvmlDeviceGetSamples(
        device,
        kind: nvmlSamplingType_t,
        after: c_ulonglong,
        value_type: *mut nvmlValueType_t,
        count: *mut c_uint,
        buffer: *mut nvmlSample_t
    ) {
        let samples = samples(device, kind, after)?;
        put(value_type, 1);
        if buffer.is_null() {
            put(count, ROOM);
            return Ok(());
        }
        if samples.is_empty() {
            return Err(NOT_FOUND);
        }
        let sample = |(timeStamp, value): (u64, u64)| nvmlSample_t {
            timeStamp,
            sampleValue: nvmlValue_t { ullVal: value },
        };
        put_all(count, buffer, samples.into_iter().map(sample).collect())
    }
    nvmlDeviceGetProcessUtilization(
        device,
        buffer: *mut nvmlProcessUtilizationSample_t,
        count: *mut c_uint,
        after: c_ulonglong
    ) {
        let sample = |line: &Vec<u64>| match line[..] {
            [pid, timeStamp, sm, memory, encoder, decoder] => Some(nvmlProcessUtilizationSample_t {
                pid: pid as c_uint,
                timeStamp,
                smUtil: sm as c_uint,
                memUtil: memory as c_uint,
                encUtil: encoder as c_uint,
                decUtil: decoder as c_uint,
            }),
            _ => None,
        };
        let samples = lines(device, "/process_samples")?;
        let samples: Option<Vec<_>> = samples.iter().map(sample).collect();
        let samples = samples.ok_or(INVALID_ARGUMENT)?;
        if buffer.is_null() {
            put(count, ROOM);
            return Err(INSUFFICIENT_SIZE);
        }
        // Real drivers also return samples that are older than requested.
        let stale = number(device, "/gives_stale").is_ok();
        let new = samples.into_iter().filter(|one| stale || one.timeStamp > after);
        let new: Vec<_> = new.collect();
        if new.is_empty() {
            return Err(NOT_FOUND);
        }
        put_all(count, buffer, new)
    }
    nvmlDeviceGetAccountingStats(device, pid: c_uint, buffer: *mut nvmlAccountingStats_t) {
        let of = |what: &str| number(device, &format!("/accounting/{pid}/{what}"));
        put(buffer, nvmlAccountingStats_t {
            gpuUtilization: 50,
            memoryUtilization: 20,
            maxMemoryUsage: of("max_memory").map_err(|_| NOT_FOUND)?,
            time: of("time").map_err(|_| NOT_FOUND)?,
            startTime: 0,
            isRunning: of("running").unwrap_or(1) as c_uint,
            reserved: [0; 5],
        });
        Ok(())
    }
}
