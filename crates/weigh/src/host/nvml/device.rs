//! What one card, or one part of a card, is asked: one call for each answer.

use std::ffi::{c_uint, c_ulonglong};
use std::mem::{MaybeUninit, zeroed};

use nvml_wrapper_sys::bindings::{NvmlLib, nvmlDevice_t, nvmlFieldValue_t, nvmlMemory_v2_t};

use super::{Code, call, text};

/// One card, or one MIG instance of one.
#[derive(Clone, Copy)]
pub struct Device {
    pub(super) library: &'static NvmlLib,
    pub(super) handle: nvmlDevice_t,
}

/// Memory of a card, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// All there is.
    pub total: u64,
    /// What programs use; with older drivers also what the driver keeps for itself.
    pub used: u64,
    /// What is left.
    pub free: u64,
}

/// A clock of a card (`nvmlClockType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Clock {
    /// Of graphics.
    Graphics = 0,
    /// Of the multiprocessors.
    Sm = 1,
    /// Of the memory.
    Memory = 2,
}

/// Why a card was held back (`nvmlPerfPolicyType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// Its power.
    Power = 0,
    /// Its heat.
    Thermal = 1,
    /// Other cards that it keeps step with.
    SyncBoost = 2,
    /// Its board.
    BoardLimit = 3,
    /// It had too little to do.
    LowUtilization = 4,
    /// Its voltage, for the sake of its life.
    Reliability = 5,
    /// Anything, below the clocks that were asked for.
    BelowApplicationClocks = 10,
    /// Anything, below the clocks it always has.
    BelowBaseClocks = 11,
}

/// Which memory errors are counted (`nvmlMemoryErrorType_t`, `nvmlEccCounterType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ecc {
    /// Those that could not be corrected.
    pub uncorrected: bool,
    /// Those of the card's whole life, not only since the driver was loaded.
    pub lifetime: bool,
}

impl Device {
    pub(super) fn new(library: &'static NvmlLib, handle: nvmlDevice_t) -> Device {
        Device { library, handle }
    }

    /// What it is called by its maker.
    pub fn name(self) -> Result<String, Code> {
        text(|room, length| call!(self.library, nvmlDeviceGetName(self.handle, room, length)))
    }

    /// What tells it from every other.
    pub fn uuid(self) -> Result<String, Code> {
        text(|room, length| call!(self.library, nvmlDeviceGetUUID(self.handle, room, length)))
    }

    /// The instances that it is divided into; none when it is not.
    pub fn parts(self) -> Result<Vec<Device>, Code> {
        let (mut now, mut pending, mut most) = (0, 0, 0);
        call!(self.library, nvmlDeviceGetMigMode(self.handle, &mut now, &mut pending))?;
        if now == 0 {
            return Ok(Vec::new());
        }
        call!(self.library, nvmlDeviceGetMaxMigDeviceCount(self.handle, &mut most))?;
        let part = |index| {
            let mut part = std::ptr::null_mut();
            let (library, whole) = (self.library, self.handle);
            call!(library, nvmlDeviceGetMigDeviceHandleByIndex(whole, index, &mut part)).ok()?;
            Some(Device::new(library, part))
        };
        // Numbers that are not in use are not an error.
        Ok((0..most).filter_map(part).collect())
    }

    /// Shares of the last sample period, in percent: computing, and memory being moved.
    pub fn utilization(self) -> Result<(u32, u32), Code> {
        let mut rates = MaybeUninit::uninit();
        call!(self.library, nvmlDeviceGetUtilizationRates(self.handle, rates.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its answer.
        let rates = unsafe { rates.assume_init() };
        Ok((rates.gpu, rates.memory))
    }

    /// How much of its time the encoder is busy, in percent.
    pub fn encoder(self) -> Result<u32, Code> {
        let (mut share, mut period) = (0, 0);
        let (library, handle) = (self.library, self.handle);
        call!(library, nvmlDeviceGetEncoderUtilization(handle, &mut share, &mut period))?;
        Ok(share)
    }

    /// How much of its time the decoder is busy, in percent.
    pub fn decoder(self) -> Result<u32, Code> {
        let (mut share, mut period) = (0, 0);
        let (library, handle) = (self.library, self.handle);
        call!(library, nvmlDeviceGetDecoderUtilization(handle, &mut share, &mut period))?;
        Ok(share)
    }

    /// Its memory. One that has none of its own, but the machine's (GB10), has no answer; some
    /// drivers say so by zeros.
    pub fn memory(self) -> Result<Memory, Code> {
        let memory = self.memory_told()?;
        if memory.total == 0 { Err(Code::NOT_FOUND) } else { Ok(memory) }
    }

    fn memory_told(self) -> Result<Memory, Code> {
        if self.library.nvmlDeviceGetMemoryInfo_v2.is_ok() {
            // SAFETY: numbers may be zero.
            let mut memory: nvmlMemory_v2_t = unsafe { zeroed() };
            memory.version = size_of::<nvmlMemory_v2_t>() as c_uint | 2 << 24;
            call!(self.library, nvmlDeviceGetMemoryInfo_v2(self.handle, &mut memory))?;
            return Ok(Memory { total: memory.total, used: memory.used, free: memory.free });
        }
        let mut memory = MaybeUninit::uninit();
        call!(self.library, nvmlDeviceGetMemoryInfo(self.handle, memory.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its answer.
        let memory = unsafe { memory.assume_init() };
        Ok(Memory { total: memory.total, used: memory.used, free: memory.free })
    }

    /// Memory that the processors of the machine reach directly, in bytes: all, and used.
    pub fn bar1(self) -> Result<(u64, u64), Code> {
        let mut memory = MaybeUninit::uninit();
        call!(self.library, nvmlDeviceGetBAR1MemoryInfo(self.handle, memory.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its answer.
        let memory = unsafe { memory.assume_init() };
        Ok((memory.bar1Total, memory.bar1Used))
    }

    /// Power, in milliwatts.
    pub fn power(self) -> Result<u32, Code> {
        self.number(|number| call!(self.library, nvmlDeviceGetPowerUsage(self.handle, number)))
    }

    /// The power it may have, in milliwatts.
    pub fn power_limit(self) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetEnforcedPowerLimit(handle, number)))
    }

    /// Energy since the driver was loaded, in millijoules.
    pub fn energy(self) -> Result<u64, Code> {
        let mut energy: c_ulonglong = 0;
        call!(self.library, nvmlDeviceGetTotalEnergyConsumption(self.handle, &mut energy))?;
        Ok(energy)
    }

    /// How warm it is, in degrees Celsius.
    pub fn temperature(self) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetTemperature(handle, 0, number)))
    }

    /// How fast its fan should be, in percent of what it can.
    pub fn fan(self) -> Result<u32, Code> {
        self.number(|number| call!(self.library, nvmlDeviceGetFanSpeed(self.handle, number)))
    }

    /// How fast a clock is, in megahertz.
    pub fn clock(self, clock: Clock) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetClockInfo(handle, clock as u32, number)))
    }

    /// Why it is held back now, a bit for each reason.
    pub fn throttle_reasons(self) -> Result<u64, Code> {
        let mut reasons: c_ulonglong = 0;
        call!(self.library, nvmlDeviceGetCurrentClocksThrottleReasons(self.handle, &mut reasons))?;
        Ok(reasons)
    }

    /// How long it was held back for one reason, in nanoseconds.
    pub fn violation(self, why: Violation) -> Result<u64, Code> {
        let mut time = MaybeUninit::uninit();
        let (library, handle) = (self.library, self.handle);
        call!(library, nvmlDeviceGetViolationStatus(handle, why as u32, time.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its answer.
        Ok(unsafe { time.assume_init() }.violationTime)
    }

    /// How many errors of its memory were counted.
    pub fn ecc(self, which: Ecc) -> Result<u64, Code> {
        let (error, counter) = (u32::from(which.uncorrected), u32::from(which.lifetime));
        let mut count: c_ulonglong = 0;
        call!(self.library, nvmlDeviceGetTotalEccErrors(self.handle, error, counter, &mut count))?;
        Ok(count)
    }

    /// What its link to the machine carries, in thousands of bytes a second.
    pub fn pcie_throughput(self, received: bool) -> Result<u32, Code> {
        let (library, handle, way) = (self.library, self.handle, u32::from(received));
        self.number(|number| call!(library, nvmlDeviceGetPcieThroughput(handle, way, number)))
    }

    /// The generation of its link to the machine, as it runs now.
    pub fn pcie_generation(self) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetCurrPcieLinkGeneration(handle, number)))
    }

    /// The lanes of its link to the machine, as it runs now.
    pub fn pcie_width(self) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetCurrPcieLinkWidth(handle, number)))
    }

    /// How often something had to be sent again over its link to the machine.
    pub fn pcie_replays(self) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetPcieReplayCounter(handle, number)))
    }

    /// What its links to other cards carried, in KiB: sent, and received.
    pub fn nvlink(self) -> Result<(u64, u64), Code> {
        // NVML_FI_DEV_NVLINK_THROUGHPUT_DATA_TX and _RX, of all links together.
        let mut fields = [138, 139].map(|field| {
            // SAFETY: numbers may be zero.
            let mut value: nvmlFieldValue_t = unsafe { zeroed() };
            (value.fieldId, value.scopeId) = (field, c_uint::MAX);
            value
        });
        call!(self.library, nvmlDeviceGetFieldValues(self.handle, 2, fields.as_mut_ptr()))?;
        for field in &fields {
            Code::of(field.nvmlReturn)?;
        }
        // SAFETY: these fields are of the type that this part of the union is.
        let [sent, received] = fields.map(|field| unsafe { field.value.ullVal });
        Ok((sent, received))
    }

    fn number(self, call: impl FnOnce(&mut c_uint) -> Result<(), Code>) -> Result<u32, Code> {
        let mut number = 0;
        call(&mut number)?;
        Ok(number)
    }
}
