//! Values of one GPU or MIG instance: one call each.

use std::ffi::{c_uint, c_ulonglong};
use std::mem::{MaybeUninit, zeroed};

use nvml_wrapper_sys::bindings::{NvmlLib, nvmlDevice_t, nvmlFieldValue_t, nvmlMemory_v2_t};

use super::{Code, call, text};

/// One GPU, or one MIG instance of one.
#[derive(Clone, Copy)]
pub struct NvmlDevice {
    pub(super) library: &'static NvmlLib,
    pub(super) handle: nvmlDevice_t,
}

/// Memory of a GPU, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmlMemory {
    /// All of it.
    pub total: u64,
    /// In use by programs; with older drivers also what the driver reserves.
    pub used: u64,
    /// Free.
    pub free: u64,
}

/// A clock of a GPU (`nvmlClockType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NvmlClock {
    /// Of graphics.
    Graphics = 0,
    /// Of the multiprocessors.
    Sm = 1,
    /// Of the memory.
    Memory = 2,
}

/// Why a GPU was throttled (`nvmlPerfPolicyType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Violation {
    /// Its power limit.
    Power = 0,
    /// Its temperature.
    Thermal = 1,
    /// The clocks of other GPUs in its sync boost group.
    SyncBoost = 2,
    /// A limit of its board.
    BoardLimit = 3,
    /// Its low utilization.
    LowUtilization = 4,
    /// Its voltage, for reliability.
    Reliability = 5,
    /// Any reason, below the application clocks.
    BelowApplicationClocks = 10,
    /// Any reason, below the base clocks.
    BelowBaseClocks = 11,
}

/// Which memory errors to read (`nvmlMemoryErrorType_t`, `nvmlEccCounterType_t`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ecc {
    /// Those that could not be corrected.
    pub uncorrected: bool,
    /// Those of its whole life, not only since the driver was loaded.
    pub lifetime: bool,
}

impl NvmlDevice {
    pub(super) fn new(library: &'static NvmlLib, handle: nvmlDevice_t) -> NvmlDevice {
        NvmlDevice { library, handle }
    }

    /// Its product name.
    pub fn name(self) -> Result<String, Code> {
        text(|buffer, length| call!(self.library, nvmlDeviceGetName(self.handle, buffer, length)))
    }

    /// Its UUID.
    pub fn uuid(self) -> Result<String, Code> {
        text(|buffer, length| call!(self.library, nvmlDeviceGetUUID(self.handle, buffer, length)))
    }

    /// Its MIG instances; none when MIG is off.
    pub fn mig_instances(self) -> Result<Vec<NvmlDevice>, Code> {
        let (mut mode, mut pending, mut max) = (0, 0, 0);
        call!(self.library, nvmlDeviceGetMigMode(self.handle, &mut mode, &mut pending))?;
        if mode == 0 {
            return Ok(Vec::new());
        }
        call!(self.library, nvmlDeviceGetMaxMigDeviceCount(self.handle, &mut max))?;
        let instance = |index| {
            let mut handle = std::ptr::null_mut();
            let (library, whole) = (self.library, self.handle);
            call!(library, nvmlDeviceGetMigDeviceHandleByIndex(whole, index, &mut handle)).ok()?;
            Some(NvmlDevice::new(library, handle))
        };
        // Indices that are not in use are not an error.
        Ok((0..max).filter_map(instance).collect())
    }

    /// Utilization in the last sample period, in percent: GPU and memory.
    pub fn utilization(self) -> Result<(u32, u32), Code> {
        let mut rates = MaybeUninit::uninit();
        call!(self.library, nvmlDeviceGetUtilizationRates(self.handle, rates.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its result.
        let rates = unsafe { rates.assume_init() };
        Ok((rates.gpu, rates.memory))
    }

    /// Utilization of the encoder, in percent.
    pub fn encoder(self) -> Result<u32, Code> {
        let (mut share, mut period) = (0, 0);
        let (library, handle) = (self.library, self.handle);
        call!(library, nvmlDeviceGetEncoderUtilization(handle, &mut share, &mut period))?;
        Ok(share)
    }

    /// Utilization of the decoder, in percent.
    pub fn decoder(self) -> Result<u32, Code> {
        let (mut share, mut period) = (0, 0);
        let (library, handle) = (self.library, self.handle);
        call!(library, nvmlDeviceGetDecoderUtilization(handle, &mut share, &mut period))?;
        Ok(share)
    }

    /// Its memory. For a GPU that uses the machine's memory (GB10) it is not available, or some
    /// drivers report zeros.
    pub fn memory(self) -> Result<NvmlMemory, Code> {
        let memory = self.memory_info()?;
        if memory.total == 0 { Err(Code::NOT_FOUND) } else { Ok(memory) }
    }

    fn memory_info(self) -> Result<NvmlMemory, Code> {
        if self.library.nvmlDeviceGetMemoryInfo_v2.is_ok() {
            // SAFETY: numbers may be zero.
            let mut memory: nvmlMemory_v2_t = unsafe { zeroed() };
            memory.version = size_of::<nvmlMemory_v2_t>() as c_uint | 2 << 24;
            call!(self.library, nvmlDeviceGetMemoryInfo_v2(self.handle, &mut memory))?;
            return Ok(NvmlMemory { total: memory.total, used: memory.used, free: memory.free });
        }
        let mut memory = MaybeUninit::uninit();
        call!(self.library, nvmlDeviceGetMemoryInfo(self.handle, memory.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its result.
        let memory = unsafe { memory.assume_init() };
        Ok(NvmlMemory { total: memory.total, used: memory.used, free: memory.free })
    }

    /// Memory that the CPU can access directly (BAR1), in bytes: all, and used.
    pub fn bar1(self) -> Result<(u64, u64), Code> {
        let mut memory = MaybeUninit::uninit();
        call!(self.library, nvmlDeviceGetBAR1MemoryInfo(self.handle, memory.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its result.
        let memory = unsafe { memory.assume_init() };
        Ok((memory.bar1Total, memory.bar1Used))
    }

    /// Power draw, in milliwatts.
    pub fn power(self) -> Result<u32, Code> {
        self.number(|number| call!(self.library, nvmlDeviceGetPowerUsage(self.handle, number)))
    }

    /// Power limit, in milliwatts.
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

    /// Temperature, in degrees Celsius.
    pub fn temperature(self) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetTemperature(handle, 0, number)))
    }

    /// Intended fan speed, in percent of the maximum.
    pub fn fan(self) -> Result<u32, Code> {
        self.number(|number| call!(self.library, nvmlDeviceGetFanSpeed(self.handle, number)))
    }

    /// A clock, in megahertz.
    pub fn clock(self, clock: NvmlClock) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetClockInfo(handle, clock as u32, number)))
    }

    /// Why it is throttled now, a bit for each reason.
    pub fn throttle_reasons(self) -> Result<u64, Code> {
        let mut reasons: c_ulonglong = 0;
        call!(self.library, nvmlDeviceGetCurrentClocksThrottleReasons(self.handle, &mut reasons))?;
        Ok(reasons)
    }

    /// How long it was throttled for one reason, in nanoseconds.
    pub fn violation(self, why: Violation) -> Result<u64, Code> {
        let mut time = MaybeUninit::uninit();
        let (library, handle) = (self.library, self.handle);
        call!(library, nvmlDeviceGetViolationStatus(handle, why as u32, time.as_mut_ptr()))?;
        // SAFETY: a call that succeeds has written its result.
        Ok(unsafe { time.assume_init() }.violationTime)
    }

    /// The count of memory errors.
    pub fn ecc(self, which: Ecc) -> Result<u64, Code> {
        let (error, counter) = (u32::from(which.uncorrected), u32::from(which.lifetime));
        let mut count: c_ulonglong = 0;
        call!(self.library, nvmlDeviceGetTotalEccErrors(self.handle, error, counter, &mut count))?;
        Ok(count)
    }

    /// PCIe throughput, in thousands of bytes a second.
    pub fn pcie_throughput(self, received: bool) -> Result<u32, Code> {
        let (library, handle, way) = (self.library, self.handle, u32::from(received));
        self.number(|number| call!(library, nvmlDeviceGetPcieThroughput(handle, way, number)))
    }

    /// The current PCIe generation.
    pub fn pcie_generation(self) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetCurrPcieLinkGeneration(handle, number)))
    }

    /// The current PCIe lanes.
    pub fn pcie_width(self) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetCurrPcieLinkWidth(handle, number)))
    }

    /// The count of PCIe replays.
    pub fn pcie_replays(self) -> Result<u32, Code> {
        let (library, handle) = (self.library, self.handle);
        self.number(|number| call!(library, nvmlDeviceGetPcieReplayCounter(handle, number)))
    }

    /// NVLink traffic of all links, in KiB: sent, and received.
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
        // SAFETY: these fields are of type unsigned long long.
        let [sent, received] = fields.map(|field| unsafe { field.value.ullVal });
        Ok((sent, received))
    }

    fn number(self, call: impl FnOnce(&mut c_uint) -> Result<(), Code>) -> Result<u32, Code> {
        let mut number = 0;
        call(&mut number)?;
        Ok(number)
    }
}
