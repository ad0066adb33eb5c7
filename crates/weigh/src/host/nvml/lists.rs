//! Calls that return lists, with buffers that are reused.

use std::ffi::c_uint;
use std::mem::MaybeUninit;

use nvml_wrapper_sys::bindings::{nvmlProcessUtilizationSample_t, nvmlSample_t, nvmlValue_t};

use super::processes::{ProcessEntry, known};
use super::{Code, NvmlDevice, call};

/// What the driver samples by itself (`nvmlSamplingType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// Power, in milliwatts.
    Power = 0,
    /// Utilization of the GPU, in percent.
    Gpu = 1,
    /// Utilization of the memory, in percent.
    Memory = 2,
    /// Utilization of the encoder, in percent.
    Encoder = 3,
    /// Utilization of the decoder, in percent.
    Decoder = 4,
}

/// One sample of the driver's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When, in microseconds of the driver's clock.
    pub at: u64,
    /// Its value.
    pub value: u64,
}

/// Utilization of a GPU by one process, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessSample {
    /// Its pid, in the initial pid namespace of the machine.
    pub pid: u32,
    /// When, in microseconds of the driver's clock.
    pub at: u64,
    /// The multiprocessors, the memory, the encoder, the decoder.
    pub shares: [u32; 4],
}

/// Buffers for the lists of all GPUs.
#[derive(Default)]
pub struct ListBuffers {
    samples: Vec<nvmlSample_t>,
    pub(super) processes: Vec<ProcessEntry>,
    process_samples: Vec<nvmlProcessUtilizationSample_t>,
}

/// A list may grow between the call that reports its length and the next.
const TRIES: usize = 3;

/// Reads a list until it fits into the buffer, which is enlarged if need be. Returns how many
/// entries there are.
///
/// A driver may report a hundred and write three (Syllo/nvtop, issue 110), so the rest is blank and
/// not what an earlier call wrote.
pub(super) fn fill<T: Copy>(
    buffer: &mut Vec<T>,
    min: usize,
    blank: T,
    mut read: impl FnMut(&mut c_uint, *mut T) -> Result<(), Code>,
) -> Result<usize, Code> {
    if buffer.len() < min {
        buffer.resize(min, blank);
    }
    for _ in 0..TRIES {
        buffer.fill(blank);
        let mut count = buffer.len() as c_uint;
        match read(&mut count, buffer.as_mut_ptr()) {
            Ok(()) => return Ok((count as usize).min(buffer.len())),
            Err(Code::INSUFFICIENT_SIZE) => {
                buffer.resize((count as usize).max(buffer.len()) * 2, blank);
            }
            Err(code) => return Err(code),
        }
    }
    Err(Code::INSUFFICIENT_SIZE)
}

/// Nothing newer is an empty list.
fn or_none(filled: Result<usize, Code>) -> Result<usize, Code> {
    match filled {
        Err(Code::NOT_FOUND) => Ok(0),
        other => other,
    }
}

/// Samples that a driver buffers: 120 of most kinds.
const SAMPLES: usize = 256;

const NO_SAMPLE: nvmlSample_t =
    nvmlSample_t { timeStamp: 0, sampleValue: nvmlValue_t { ullVal: 0 } };

const NO_PROCESS: nvmlProcessUtilizationSample_t = nvmlProcessUtilizationSample_t {
    pid: 0,
    timeStamp: 0,
    smUtil: 0,
    memUtil: 0,
    encUtil: 0,
    decUtil: 0,
};

impl NvmlDevice {
    /// The driver's samples after a time, oldest first; none is an empty list.
    pub fn samples(
        self,
        what: Sampled,
        after: u64,
        buffers: &mut ListBuffers,
    ) -> Result<impl Iterator<Item = Sample>, Code> {
        let mut kind = 0;
        let count = or_none(fill(&mut buffers.samples, SAMPLES, NO_SAMPLE, |count, samples| {
            let (library, handle, what) = (self.library, self.handle, what as u32);
            call!(library, nvmlDeviceGetSamples(handle, what, after, &mut kind, count, samples))
        }))?;
        let samples = &mut buffers.samples[..count];
        samples.sort_unstable_by_key(|sample| sample.timeStamp);
        let samples = samples.iter().filter(move |sample| sample.timeStamp > after);
        Ok(samples.map(move |sample| {
            // SAFETY: `kind` says which field of the union was written, and all of them are numbers.
            let value = unsafe {
                let value = &sample.sampleValue;
                match kind {
                    0 => value.dVal as u64,
                    1 => u64::from(value.uiVal),
                    _ => value.ullVal,
                }
            };
            Sample { at: sample.timeStamp, value }
        }))
    }

    /// Samples of its processes after a time; none is an empty list.
    ///
    /// Only processes that did something in the driver's last sample period have one.
    pub fn process_samples(
        self,
        after: u64,
        buffers: &mut ListBuffers,
    ) -> Result<impl Iterator<Item = ProcessSample>, Code> {
        let (library, handle) = (self.library, self.handle);
        let count =
            or_none(fill(&mut buffers.process_samples, SAMPLES, NO_PROCESS, |count, samples| {
                call!(library, nvmlDeviceGetProcessUtilization(handle, samples, count, after))
            }))?;
        Ok(buffers.process_samples[..count].iter().map(|sample| ProcessSample {
            pid: sample.pid,
            at: sample.timeStamp,
            shares: [sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil],
        }))
    }

    /// Whether the driver has accounting mode on.
    pub fn has_accounting(self) -> Result<bool, Code> {
        let mut mode = 0;
        call!(self.library, nvmlDeviceGetAccountingMode(self.handle, &mut mode))?;
        Ok(mode == 1)
    }

    /// The peak memory of a process, by the driver's accounting, where it is known. The account of
    /// a process that exited may be of an earlier one with the same pid.
    pub fn memory_peak(self, pid: u32) -> Result<Option<u64>, Code> {
        let mut account = MaybeUninit::uninit();
        let (library, handle) = (self.library, self.handle);
        call!(library, nvmlDeviceGetAccountingStats(handle, pid, account.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its result.
        let account = unsafe { account.assume_init() };
        Ok(known(account.maxMemoryUsage).filter(|_| account.isRunning == 1))
    }
}
