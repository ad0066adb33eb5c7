//! Answers that are lists, written into room that is kept from look to look.

use std::ffi::c_uint;
use std::mem::MaybeUninit;

use nvml_wrapper_sys::bindings::{nvmlProcessInfo_t, nvmlProcessUtilizationSample_t, nvmlSample_t};

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

/// A process that uses a card, by the pid the driver has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// Its pid, in the first pid namespace of the machine.
    pub pid: u32,
    /// Memory of the card that it has, in bytes, where the driver knows it.
    pub memory: Option<u64>,
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
    users: Vec<nvmlProcessInfo_t>,
    processes: Vec<nvmlProcessUtilizationSample_t>,
}

/// A list may have become longer between the call that says so and the next.
const TRIES: usize = 3;

/// Asks for a list until it fits: once, when the room that is there is enough.
fn fill<T>(
    room: &mut Vec<T>,
    least: usize,
    mut ask: impl FnMut(&mut c_uint, *mut T) -> Result<(), Code>,
) -> Result<(), Code> {
    for _ in 0..TRIES {
        room.clear();
        room.reserve(least);
        let mut count = room.capacity() as c_uint;
        match ask(&mut count, room.spare_capacity_mut().as_mut_ptr().cast()) {
            Ok(()) => {
                let count = (count as usize).min(room.capacity());
                // SAFETY: the call has written this many, and there was room for them.
                unsafe { room.set_len(count) };
                return Ok(());
            }
            Err(Code::INSUFFICIENT_SIZE) => room.reserve((count as usize).max(least) * 2),
            Err(code) => return Err(code),
        }
    }
    Err(Code::INSUFFICIENT_SIZE)
}

/// Samples that a driver keeps: 120 of most kinds.
const SAMPLES: usize = 256;

/// Processes that most machines have on one card at most.
const USERS: usize = 64;

impl Device {
    /// The driver's samples that are newer than a moment, oldest first; none is an empty list.
    pub fn samples(
        self,
        what: Sampled,
        after: u64,
        room: &mut Room,
        mut each: impl FnMut(Sample),
    ) -> Result<(), Code> {
        let mut kind = 0;
        let filled = fill(&mut room.samples, SAMPLES, |count, samples| {
            let (library, handle, what) = (self.library, self.handle, what as u32);
            call!(library, nvmlDeviceGetSamples(handle, what, after, &mut kind, count, samples))
        });
        match filled {
            Ok(()) => {}
            Err(Code::NOT_FOUND) => return Ok(()),
            Err(code) => return Err(code),
        }
        room.samples.sort_unstable_by_key(|sample| sample.timeStamp);
        for sample in room.samples.iter().filter(|sample| sample.timeStamp > after) {
            // SAFETY: `kind` says which part of the union was written.
            let value = unsafe {
                let value = &sample.sampleValue;
                match kind {
                    0 => value.dVal as u64,
                    1 => u64::from(value.uiVal),
                    _ => value.ullVal,
                }
            };
            each(Sample { at: sample.timeStamp, value });
        }
        Ok(())
    }

    /// Processes that compute on it.
    pub fn computing(self, room: &mut Room, each: impl FnMut(User)) -> Result<(), Code> {
        let (library, handle) = (self.library, self.handle);
        fill(&mut room.users, USERS, |count, users| {
            call!(library, nvmlDeviceGetComputeRunningProcesses_v3(handle, count, users))
        })?;
        room.users.iter().map(user).for_each(each);
        Ok(())
    }

    /// Processes that draw on it.
    pub fn drawing(self, room: &mut Room, each: impl FnMut(User)) -> Result<(), Code> {
        let (library, handle) = (self.library, self.handle);
        fill(&mut room.users, USERS, |count, users| {
            call!(library, nvmlDeviceGetGraphicsRunningProcesses_v3(handle, count, users))
        })?;
        room.users.iter().map(user).for_each(each);
        Ok(())
    }

    /// What its processes did, as far as it is newer than a moment.
    pub fn per_process(
        self,
        after: u64,
        room: &mut Room,
        each: impl FnMut(PerProcess),
    ) -> Result<(), Code> {
        let (library, handle) = (self.library, self.handle);
        let filled = fill(&mut room.processes, SAMPLES, |count, samples| {
            call!(library, nvmlDeviceGetProcessUtilization(handle, samples, count, after))
        });
        match filled {
            Ok(()) => {}
            Err(Code::NOT_FOUND) => return Ok(()),
            Err(code) => return Err(code),
        }
        let processes = room.processes.iter().map(|sample| PerProcess {
            pid: sample.pid,
            at: sample.timeStamp,
            shares: [sample.smUtil, sample.memUtil, sample.encUtil, sample.decUtil],
        });
        processes.for_each(each);
        Ok(())
    }

    /// Whether the driver keeps an account of each process.
    pub fn keeps_accounts(self) -> Result<bool, Code> {
        let mut mode = 0;
        call!(self.library, nvmlDeviceGetAccountingMode(self.handle, &mut mode))?;
        Ok(mode == 1)
    }

    /// The most memory that a process ever had, by the driver's account.
    pub fn memory_peak(self, pid: u32) -> Result<u64, Code> {
        let mut account = MaybeUninit::uninit();
        let (library, handle) = (self.library, self.handle);
        call!(library, nvmlDeviceGetAccountingStats(handle, pid, account.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its answer.
        Ok(unsafe { account.assume_init() }.maxMemoryUsage)
    }
}

fn user(process: &nvmlProcessInfo_t) -> User {
    // All bits set is NVML's word for "not known".
    let memory = (process.usedGpuMemory != u64::MAX).then_some(process.usedGpuMemory);
    User { pid: process.pid, memory }
}
