//! GPUs, and the processes on them: one set of metrics for all makers.
//!
//! A GPU is named by maker and index (`nvidia0`, `amd1`), a MIG instance also by its own
//! (`nvidia0:1`). Memory and energy of instances are also in those of the whole GPU. In a merged
//! recording the name begins with the node (`node-b/nvidia0`).

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// How busy one GPU is.
    pub struct GpuActivity in Gpu / "activity", "GPU activity" {
        /// Share of the driver's last sample period in which it was busy.
        utilization: Gauge f64 Ratio SupersededBy(busy), "Utilization", from "nvmlDeviceGetUtilizationRates gpu, gpu_busy_percent";
        /// Share of the driver's last sample period in which memory was read or written.
        memory_utilization: Gauge f64 Ratio SupersededBy(memory_busy), "Memory utilization", from "nvmlDeviceGetUtilizationRates memory, mem_busy_percent";
        /// Utilization of the video encoder.
        encoder: Gauge f64 Ratio SupersededBy(encoder_busy), "Encoder", from "nvmlDeviceGetEncoderUtilization";
        /// Utilization of the video decoder.
        decoder: Gauge f64 Ratio SupersededBy(decoder_busy), "Decoder", from "nvmlDeviceGetDecoderUtilization";
        /// Time in which it was busy: all samples of the driver, integrated.
        busy: Counter f64 SecondsInState, "Busy", from "nvmlDeviceGetSamples GPU_UTILIZATION, gpu_metrics gfx_activity_acc";
        /// Time covered by these samples, plus time in which the driver took no samples but reported
        /// `utilization`. `busy` divided by it is the mean utilization.
        observed: Counter f64 SecondsInState ObservedTimeOf(busy, memory_busy), "Observed", from "nvmlDeviceGetSamples GPU_UTILIZATION, gpu_metrics accumulation_counter";
        /// Time in which memory was read or written: all samples of the driver, integrated.
        memory_busy: Counter f64 SecondsInState, "Memory busy", from "nvmlDeviceGetSamples MEMORY_UTILIZATION";
        /// Time in which the video encoder was busy: all samples of the driver, integrated.
        encoder_busy: Counter f64 SecondsInState, "Encoder busy", from "nvmlDeviceGetSamples ENC_UTILIZATION";
        /// Time in which the video decoder was busy: all samples of the driver, integrated.
        decoder_busy: Counter f64 SecondsInState, "Decoder busy", from "nvmlDeviceGetSamples DEC_UTILIZATION";
        /// Processes that use it: all that the driver lists, or those of the run that have memory on it
        /// or keep it busy.
        processes: Gauge u64 One, "Processes", from "nvmlDeviceGet{Compute,Graphics}RunningProcesses, /proc/PID/fdinfo, kfd/proc";
        /// Processes with a compute context on it, without those that only use graphics.
        processes_computing: Gauge u64 One SupersededBy(processes), "Computing processes", from "nvmlDeviceGetComputeRunningProcesses";
        /// Processes that use it and are not in `/proc`.
        processes_unknown: Gauge u64 One, "Unknown processes", from "nvmlDeviceGet{Compute,Graphics}RunningProcesses, kfd/proc";
        /// Time it was asleep: of its parts that sleep separately, as render and media may, the one
        /// that slept least. No part was busy for longer than the rest of the time. Intel only.
        asleep: Counter f64 SecondsInState, "Asleep", from "rc6_residency_ms, gtidle/idle_residency_ms";
        /// How old the values of this row are.
        age: Gauge f64 Seconds Age, "Age of values", from "when the driver was polled";
    }
}

metrics! {
    /// Memory of one GPU.
    pub struct GpuMemory in Gpu / "memory", "GPU memory" {
        /// Memory in use, by all processes. Where there were several polls since the last tick, that of
        /// the poll with the most.
        used: Gauge u64 Bytes, "Used", from "nvmlDeviceGetMemoryInfo used, mem_info_vram_used, and mem_info_gtt_used in a processor";
        /// Memory that is free.
        free: Gauge u64 Bytes SupersededBy(used), "Free", from "nvmlDeviceGetMemoryInfo free, total less used";
        /// All of its memory.
        total: Gauge u64 Bytes CapacityOf(used), "Total", from "nvmlDeviceGetMemoryInfo total, mem_info_vram_total, and mem_info_gtt_total in a processor";
        /// Memory in use that the CPU can access directly.
        bar1_used: Gauge u64 Bytes, "BAR1 used", from "nvmlDeviceGetBAR1MemoryInfo used, mem_info_vis_vram_used";
        /// All memory that the CPU can access directly.
        bar1_total: Gauge u64 Bytes CapacityOf(bar1_used), "BAR1 total", from "nvmlDeviceGetBAR1MemoryInfo total, mem_info_vis_vram_total";
    }
}

metrics! {
    /// Power, temperature and clocks of one GPU.
    pub struct GpuPower in Gpu / "power", "GPU power" {
        /// Current power draw.
        draw: Gauge f64 Watts, "Power", from "nvmlDeviceGetPowerUsage, hwmon power1_{average,input}, energy*_input in time, gpu_metrics average_gfx_power";
        /// Enforced power limit.
        limit: Gauge f64 Watts CapacityOf(draw, energy, energy_sampled), "Power limit", from "nvmlDeviceGetEnforcedPowerLimit, hwmon power1_{cap,max}";
        /// Energy since its driver was loaded or its counter started, by its own counter. For AMD and
        /// Intel without the time it was suspended.
        energy: Counter f64 Joules, "Power from energy", from "nvmlDeviceGetTotalEnergyConsumption, gpu_metrics energy_accumulator, hwmon energy*_input";
        /// Energy since the first poll: all samples of its power, integrated. In time without samples
        /// the power is interpolated linearly.
        energy_sampled: Counter f64 Joules SupersededBy(energy), "Power from samples", from "nvmlDeviceGetSamples TOTAL_POWER, else nvmlDeviceGetPowerUsage in time, hwmon power1_{average,input} in time";
        /// Temperature of the GPU.
        temperature: Gauge f64 Celsius, "Temperature", from "nvmlDeviceGetTemperature, hwmon temp{1,2}_input";
        /// Intended fan speed, as a share of the maximum.
        fan: Gauge f64 Ratio, "Fan", from "nvmlDeviceGetFanSpeed, hwmon pwm1";
        /// Current graphics clock.
        clock_graphics: Gauge f64 Hertz, "Graphics clock", from "nvmlDeviceGetClockInfo GRAPHICS, hwmon freq1_input, rps_act_freq_mhz, freq0/act_freq";
        /// Current clock of the multiprocessors.
        clock_sm: Gauge f64 Hertz, "SM clock", from "nvmlDeviceGetClockInfo SM";
        /// Current memory clock.
        clock_memory: Gauge f64 Hertz, "Memory clock", from "nvmlDeviceGetClockInfo MEM, hwmon freq2_input";
    }
}

metrics! {
    /// Throttling of one GPU.
    pub struct GpuThrottle in Gpu / "throttle", "GPU throttling" {
        /// Why it is throttled now, a bit for each of NVML's reasons (nvmlClocksThrottleReasons).
        reasons: Gauge u64 One BitField, "Reasons", from "nvmlDeviceGetCurrentClocksThrottleReasons";
        /// Time it was throttled by its power limit.
        power: Counter f64 SecondsInState, "Power", from "nvmlDeviceGetViolationStatus POWER, gpu_metrics ppt_residency_acc";
        /// Time it was thermally throttled.
        thermal: Counter f64 SecondsInState, "Thermal", from "nvmlDeviceGetViolationStatus THERMAL, gpu_metrics {prochot,socket_thm,vr_thm,hbm_thm}_residency_acc";
        /// Time it was throttled to the clocks of other GPUs in its sync boost group.
        sync_boost: Counter f64 SecondsInState, "Sync boost", from "nvmlDeviceGetViolationStatus SYNC_BOOST";
        /// Time it was throttled by a limit of its board.
        board_limit: Counter f64 SecondsInState, "Board limit", from "nvmlDeviceGetViolationStatus BOARD_LIMIT";
        /// Time its clocks were low because its utilization was.
        low_utilization: Counter f64 SecondsInState, "Low utilization", from "nvmlDeviceGetViolationStatus LOW_UTILIZATION";
        /// Time it was throttled by its voltage, for reliability.
        reliability: Counter f64 SecondsInState, "Reliability", from "nvmlDeviceGetViolationStatus RELIABILITY";
        /// Time below the application clocks, for any reason.
        below_application_clocks: Counter f64 SecondsInState, "Below application clocks", from "nvmlDeviceGetViolationStatus TOTAL_APP_CLOCKS";
        /// Time below the base clocks, for any reason.
        below_base_clocks: Counter f64 SecondsInState, "Below base clocks", from "nvmlDeviceGetViolationStatus TOTAL_BASE_CLOCKS";
    }
}

metrics! {
    /// Errors in the memory of one GPU.
    pub struct GpuEcc in Gpu / "ecc", "GPU memory errors" {
        /// Corrected errors since its driver was loaded.
        corrected: Counter u64 One, "Corrected", from "nvmlDeviceGetTotalEccErrors CORRECTED VOLATILE, ras/umc_err_count ce";
        /// Uncorrected errors since its driver was loaded.
        uncorrected: Counter u64 One, "Uncorrected", from "nvmlDeviceGetTotalEccErrors UNCORRECTED VOLATILE, ras/umc_err_count ue";
        /// Corrected errors in its whole life.
        corrected_lifetime: Counter u64 One, "Corrected ever", from "nvmlDeviceGetTotalEccErrors CORRECTED AGGREGATE";
        /// Uncorrected errors in its whole life.
        uncorrected_lifetime: Counter u64 One, "Uncorrected ever", from "nvmlDeviceGetTotalEccErrors UNCORRECTED AGGREGATE";
    }
}

metrics! {
    /// Links of one GPU to the machine and to other GPUs.
    pub struct GpuLink in Gpu / "link", "GPU links" {
        /// Received over PCIe, measured for 20 ms once a second; in between carried forward.
        pcie_received: Gauge u64 BytesPerSecond, "Received over PCIe", from "nvmlDeviceGetPcieThroughput RX_BYTES";
        /// Sent over PCIe, measured for 20 ms once a second; in between carried forward.
        pcie_sent: Gauge u64 BytesPerSecond, "Sent over PCIe", from "nvmlDeviceGetPcieThroughput TX_BYTES";
        /// Current PCIe generation of its link.
        pcie_generation: Gauge u64 One CapacityOf, "PCIe generation", from "nvmlDeviceGetCurrPcieLinkGeneration, current_link_speed";
        /// Current PCIe lanes of its link.
        pcie_width: Gauge u64 One CapacityOf, "PCIe lanes", from "nvmlDeviceGetCurrPcieLinkWidth, current_link_width";
        /// PCIe replays.
        pcie_replays: Counter u64 One, "PCIe replays", from "nvmlDeviceGetPcieReplayCounter, pcie_replay_count";
        /// Received over NVLink.
        nvlink_received: Counter u64 Bytes, "Received over NVLink", from "nvmlDeviceGetFieldValues NVLINK_THROUGHPUT_DATA_RX";
        /// Sent over NVLink.
        nvlink_sent: Counter u64 Bytes, "Sent over NVLink", from "nvmlDeviceGetFieldValues NVLINK_THROUGHPUT_DATA_TX";
    }
}

metrics! {
    /// Utilization of the units of one GPU, where it is counted: NVIDIA's Hopper and later.
    pub struct GpuUnits in Gpu / "units", "GPU units" {
        /// Utilization of the multiprocessors.
        sm: Gauge f64 Ratio, "Multiprocessors", from "nvmlGpmMetricsGet SM_UTIL";
        /// Occupancy of the warp slots of the multiprocessors.
        occupancy: Gauge f64 Ratio, "Occupancy", from "nvmlGpmMetricsGet SM_OCCUPANCY";
        /// Utilization of the tensor cores.
        tensor: Gauge f64 Ratio, "Tensor cores", from "nvmlGpmMetricsGet ANY_TENSOR_UTIL";
        /// Utilization of the memory bandwidth.
        memory_bandwidth: Gauge f64 Ratio, "Memory bandwidth", from "nvmlGpmMetricsGet DRAM_BW_UTIL";
        /// Utilization of the double precision units.
        fp64: Gauge f64 Ratio, "FP64", from "nvmlGpmMetricsGet FP64_UTIL";
        /// Utilization of the single precision units.
        fp32: Gauge f64 Ratio, "FP32", from "nvmlGpmMetricsGet FP32_UTIL";
        /// Utilization of the half precision units.
        fp16: Gauge f64 Ratio, "FP16", from "nvmlGpmMetricsGet FP16_UTIL";
    }
}

metrics! {
    /// What one process has of one GPU.
    pub struct GpuProcessUsage in GpuProcess / "share", "GPU by process" {
        /// GPU memory of it. Where there were several polls since the last tick, that of the poll with
        /// the most memory in use.
        memory: Gauge u64 Bytes, "GPU memory", from "nvmlDeviceGet{Compute,Graphics}RunningProcesses usedGpuMemory, drm-{resident,memory}-*, kfd/proc/PID/vram_*";
        /// Peak memory, where the driver has accounting on; else of the polls since the last tick, where
        /// there were several.
        memory_peak: Gauge u64 Bytes SupersededBy(memory), "GPU memory peak", from "nvmlDeviceGetAccountingStats maxMemoryUsage";
        /// Utilization of the multiprocessors, or of the busiest kind of engine, by it, on average since
        /// the last tick.
        utilization: Gauge f64 Ratio, "GPU utilization", from "nvmlDeviceGetProcessUtilization smUtil, drm-engine-*, drm-cycles-*";
        /// Memory utilization by it.
        memory_utilization: Gauge f64 Ratio, "GPU memory utilization", from "nvmlDeviceGetProcessUtilization memUtil";
        /// Utilization of the video encoder by it. AMD's RDNA3, MI300 and later decode there, too.
        encoder: Gauge f64 Ratio, "GPU encoder", from "nvmlDeviceGetProcessUtilization encUtil, drm-engine-enc";
        /// Utilization of the video decoder by it.
        decoder: Gauge f64 Ratio, "GPU decoder", from "nvmlDeviceGetProcessUtilization decUtil, drm-engine-dec";
        /// Utilization of the video engines by it: Intel only.
        video: Gauge f64 Ratio, "GPU video", from "drm-engine-video, drm-cycles-vcs";
        /// Utilization of the copy engines by it: AMD and Intel.
        copy: Gauge f64 Ratio, "GPU copying", from "drm-engine-{dma,copy}, drm-cycles-bcs";
        /// Share of the compute units that work for it now: AMD only, of processes of the run, because
        /// the kernel reads the whole GPU for it.
        occupancy: Gauge f64 Ratio, "GPU occupancy", from "kfd/proc/PID/stats_*/cu_occupancy";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Gpu,
    name: "gpu",
    about: "GPUs and what each process has of them (NVIDIA, AMD, Intel)",
    groups: &[
        GpuActivity::METRICS,
        GpuMemory::METRICS,
        GpuPower::METRICS,
        GpuThrottle::METRICS,
        GpuEcc::METRICS,
        GpuLink::METRICS,
        GpuUnits::METRICS,
        GpuProcessUsage::METRICS,
    ],
    on_request: false,
    everywhere: false,
};

/// Whether this is a whole GPU: values of MIG instances are also in those of the whole.
pub fn is_whole(gpu: &str) -> bool {
    !gpu.contains(':')
}

/// The name of a GPU on its own machine, without the node of `node-b/nvidia0`.
pub fn name_there(gpu: &str) -> &str {
    gpu.rsplit('/').next().unwrap_or(gpu)
}

/// The name of the whole GPU of a MIG instance; of a whole one its own.
pub fn whole_of(gpu: &str) -> &str {
    gpu.split(':').next().unwrap_or_default()
}

/// Memory that a process may have on a GPU that it only has open: page tables, and what a runtime
/// allocates on every GPU.
///
/// What surprised us: ROCm opens every GPU, also those that `ROCR_VISIBLE_DEVICES` hides from the
/// program, because the layer that reads the variable is above the one that opens them.
const MERELY_OPEN: u64 = 16 << 20;

impl GpuProcessUsage {
    /// Whether it shows that the process uses the GPU: work, or more memory than an open GPU needs.
    pub fn is_use(&self) -> bool {
        let works = [
            self.utilization,
            self.memory_utilization,
            self.encoder,
            self.decoder,
            self.video,
            self.copy,
            self.occupancy,
        ];
        self.memory.max(self.memory_peak) > Some(MERELY_OPEN)
            || works.into_iter().flatten().any(|share| share > 0.0)
    }

    /// Whether it shows that the process does not use the GPU; unknown memory shows nothing.
    pub fn is_merely_open(&self) -> bool {
        self.memory.or(self.memory_peak).is_some() && !self.is_use()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_or_memory_is_use_and_unknown_memory_shows_nothing() {
        let open =
            GpuProcessUsage { memory: Some(2 << 20), utilization: Some(0.0), ..Default::default() };
        assert!(open.is_merely_open());
        assert!(!GpuProcessUsage { memory: Some(1 << 30), ..open }.is_merely_open());
        assert!(!GpuProcessUsage { memory_peak: Some(1 << 30), ..open }.is_merely_open());
        assert!(!GpuProcessUsage { utilization: Some(0.1), ..open }.is_merely_open());
        assert!(!GpuProcessUsage { occupancy: Some(0.1), ..open }.is_merely_open());
        let unknown = GpuProcessUsage { memory: None, ..open };
        assert_eq!((unknown.is_merely_open(), unknown.is_use()), (false, false));
    }
}
