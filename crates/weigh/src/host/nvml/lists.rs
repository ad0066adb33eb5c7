//! Answers that are lists, written into room that is kept from look to look.

use std::ffi::c_uint;
use std::mem::MaybeUninit;

use nvml_wrapper_sys::bindings::{nvmlProcessUtilizationSample_t, nvmlSample_t, nvmlValue_t};

use super::users::{Entry, known};
use super::{Code, Device, call};

/// What the driver samples by itself (`nvmlSamplingType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sampled {
    /// Power, in milliwatts.
    Power = 0,
    /// Computing, in percent.
    Gpu = 1,
    /// Memory being moved, in percent.
    Memory = 2,
    /// The encoder, in percent.
    Encoder = 3,
    /// The decoder, in percent.
    Decoder = 4,
}

/// One sample of the driver's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// When, in microseconds of the driver's clock.
    pub at: u64,
    /// What it was.
    pub value: u64,
}

/// What one process did on a card over some time before a moment, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerProcess {
    /// Its pid, in the first pid namespace of the machine.
    pub pid: u32,
    /// When, in microseconds of the driver's clock.
    pub at: u64,
    /// The multiprocessors, the memory, the encoder, the decoder.
    pub shares: [u32; 4],
}

/// Room for the lists of all cards.
#[derive(Default)]
pub struct Room {
    samples: Vec<nvmlSample_t>,
    pub(super) users: Vec<Entry>,
    processes: Vec<nvmlProcessUtilizationSample_t>,
}

/// A list may have become longer between the call that says so and the next.
const TRIES: usize = 3;

/// Asks for a list until it fits: once, when the room that is there is enough. Says how many of
/// the room's places were written.
///
/// A driver may say that there are a hundred and write three (Syllo/nvtop, issue 110), so the rest
/// is blank and not what another card said before.
pub(super) fn fill<T: Copy>(
    room: &mut Vec<T>,
    least: usize,
    blank: T,
    mut ask: impl FnMut(&mut c_uint, *mut T) -> Result<(), Code>,
) -> Result<usize, Code> {
    if room.len() < least {
        room.resize(least, blank);
    }
    for _ in 0..TRIES {
        room.fill(blank);
        let mut count = room.len() as c_uint;
        match ask(&mut count, room.as_mut_ptr()) {
            Ok(()) => return Ok((count as usize).min(room.len())),
            Err(Code::INSUFFICIENT_SIZE) => {
                room.resize((count as usize).max(room.len()) * 2, blank);
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

/// Samples that a driver keeps: 120 of most kinds.
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

impl Device {
    /// The driver's samples that are newer than a moment, oldest first; none is an empty list.
    pub fn samples(
        self,
        what: Sampled,
        after: u64,
        room: &mut Room,
    ) -> Result<impl Iterator<Item = Sample>, Code> {
        let mut kind = 0;
        let count = or_none(fill(&mut room.samples, SAMPLES, NO_SAMPLE, |count, samples| {
            let (library, handle, what) = (self.library, self.handle, what as u32);
            call!(library, nvmlDeviceGetSamples(handle, what, after, &mut kind, count, samples))
        }))?;
        let samples = &mut room.samples[..count];
        samples.sort_unstable_by_key(|sample| sample.timeStamp);
        let samples = samples.iter().filter(move |sample| sample.timeStamp > after);
        Ok(samples.map(move |sample| {
            // SAFETY: `kind` says which part of the union was written, and all of it is a number.
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

    /// What its processes did, as far as it is newer than a moment; none is an empty list.
    ///
    /// Only those are told of that did anything in the driver's last sample period.
    pub fn per_process(
        self,
        after: u64,
        room: &mut Room,
    ) -> Result<impl Iterator<Item = PerProcess>, Code> {
        let (library, handle) = (self.library, self.handle);
        let count = or_none(fill(&mut room.processes, SAMPLES, NO_PROCESS, |count, samples| {
            call!(library, nvmlDeviceGetProcessUtilization(handle, samples, count, after))
        }))?;
        Ok(room.processes[..count].iter().map(|sample| PerProcess {
            pid: sample.pid,
            at: sample.timeStamp,
            shares: [sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil],
        }))
    }

    /// Whether the driver keeps an account of each process.
    pub fn keeps_accounts(self) -> Result<bool, Code> {
        let mut mode = 0;
        call!(self.library, nvmlDeviceGetAccountingMode(self.handle, &mut mode))?;
        Ok(mode == 1)
    }

    /// The most memory that a process ever had, by the driver's account, where it knows. Of one
    /// that does not run any more the account is another's, who had the same pid.
    pub fn memory_peak(self, pid: u32) -> Result<Option<u64>, Code> {
        let mut account = MaybeUninit::uninit();
        let (library, handle) = (self.library, self.handle);
        call!(library, nvmlDeviceGetAccountingStats(handle, pid, account.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its answer.
        let account = unsafe { account.assume_init() };
        Ok(known(account.maxMemoryUsage).filter(|_| account.isRunning == 1))
    }
}
