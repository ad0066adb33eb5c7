//! GPUs, and the processes on them: one set of metrics for all makers.
//!
//! A GPU is named by maker and index (`nvidia0`, `amd1`), a MIG instance also by its own
//! (`nvidia0:1`). Memory and energy of instances are also in those of the whole GPU. In a merged
//! recording the name begins with the node (`node-b/nvidia0`).

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// How busy one GPU is.
    pub struct GpuActivity in Gpu / "activity", "GPU activity" {
        /// Share of the driver's last sample period in which something was computed.
        utilization: Gauge f64 Ratio Beside(busy), "Utilization", from "nvmlDeviceGetUtilizationRates gpu, gpu_busy_percent";
        /// Share of the driver's last sample period in which memory was read or written.
        memory_utilization: Gauge f64 Ratio Beside(memory_busy), "Memory utilization", from "nvmlDeviceGetUtilizationRates memory, mem_busy_percent";
        /// Share of its time that the video encoder was busy.
        encoder: Gauge f64 Ratio Beside(encoder_busy), "Encoder", from "nvmlDeviceGetEncoderUtilization";
        /// Share of its time that the video decoder was busy.
        decoder: Gauge f64 Ratio Beside(decoder_busy), "Decoder", from "nvmlDeviceGetDecoderUtilization";
        /// Time in which something was computed: all samples of the driver, added up.
        busy: Counter f64 Elapsed, "Busy", from "nvmlDeviceGetSamples GPU_UTILIZATION, gpu_metrics gfx_activity_acc";
        /// Time that those samples cover, and time in which the driver took none and told `utilization`
        /// all the same; `busy` in it is the mean utilization.
        observed: Counter f64 Elapsed Cover(busy, memory_busy), "Observed", from "nvmlDeviceGetSamples GPU_UTILIZATION, gpu_metrics accumulation_counter";
        /// Time in which memory was read or written: all samples of the driver, added up.
        memory_busy: Counter f64 Elapsed, "Memory busy", from "nvmlDeviceGetSamples MEMORY_UTILIZATION";
        /// Time in which the video encoder was busy: all samples of the driver, added up.
        encoder_busy: Counter f64 Elapsed, "Encoder busy", from "nvmlDeviceGetSamples ENC_UTILIZATION";
        /// Time in which the video decoder was busy: all samples of the driver, added up.
        decoder_busy: Counter f64 Elapsed, "Decoder busy", from "nvmlDeviceGetSamples DEC_UTILIZATION";
        /// Processes that use it: all that the driver knows, or those of the run that have memory on it
        /// or for which it works.
        processes: Gauge u64 One, "Processes", from "nvmlDeviceGet{Compute,Graphics}RunningProcesses, /proc/PID/fdinfo, kfd/proc";
        /// Processes that have a compute context on it; those that only draw are not among them.
        processes_computing: Gauge u64 One Beside(processes), "Computing processes", from "nvmlDeviceGetComputeRunningProcesses";
        /// Processes that use it and that are not to be found in `/proc`.
        processes_unknown: Gauge u64 One, "Unknown processes", from "nvmlDeviceGet{Compute,Graphics}RunningProcesses, kfd/proc";
        /// Time it was asleep: of its parts that sleep by themselves, as render and media may, the
        /// one that slept least. No part was busy for more than the rest. Intel's.
        asleep: Counter f64 Elapsed, "Asleep", from "rc6_residency_ms, gtidle/idle_residency_ms";
        /// How old the values of this row are.
        age: Gauge f64 Seconds Age, "Age of values", from "when the driver was asked";
    }
}

metrics! {
    /// Memory of one GPU.
    pub struct GpuMemory in Gpu / "memory", "GPU memory" {
        /// Memory in use, whoever uses it. Where there were several looks since the last tick, at the
        /// one at which most was.
        used: Gauge u64 Bytes, "Used", from "nvmlDeviceGetMemoryInfo used, mem_info_vram_used, and mem_info_gtt_used in a processor";
        /// Memory that is free.
        free: Gauge u64 Bytes Beside(used), "Free", from "nvmlDeviceGetMemoryInfo free, total less used";
        /// All memory it has.
        total: Gauge u64 Bytes Bound(used), "Total", from "nvmlDeviceGetMemoryInfo total, mem_info_vram_total, and mem_info_gtt_total in a processor";
        /// Memory in use that the machine's processors reach directly.
        bar1_used: Gauge u64 Bytes, "BAR1 used", from "nvmlDeviceGetBAR1MemoryInfo used, mem_info_vis_vram_used";
        /// All memory that the machine's processors can reach directly.
        bar1_total: Gauge u64 Bytes Bound(bar1_used), "BAR1 total", from "nvmlDeviceGetBAR1MemoryInfo total, mem_info_vis_vram_total";
    }
}

metrics! {
    /// Power, heat and clocks of one GPU.
    pub struct GpuPower in Gpu / "power", "GPU power" {
        /// Power it takes.
        draw: Gauge f64 Watts, "Power", from "nvmlDeviceGetPowerUsage, hwmon power1_{average,input}, energy*_input in time, gpu_metrics average_gfx_power";
        /// Power it may take.
        limit: Gauge f64 Watts Bound(draw, energy, energy_sampled), "Power limit", from "nvmlDeviceGetEnforcedPowerLimit, hwmon power1_{cap,max}";
        /// Energy since its driver was loaded or its counter began, by its own counter. What AMD's and
        /// Intel's take asleep is not in it.
        energy: Counter f64 Joules, "Power from energy", from "nvmlDeviceGetTotalEnergyConsumption, gpu_metrics energy_accumulator, hwmon energy*_input";
        /// Energy since it was first looked at: all samples of its power, added up. Of time that no
        /// sample covers, it is as if power had changed evenly.
        energy_sampled: Counter f64 Joules Beside(energy), "Power from samples", from "nvmlDeviceGetSamples TOTAL_POWER, else nvmlDeviceGetPowerUsage in time, hwmon power1_{average,input} in time";
        /// How warm it is.
        temperature: Gauge f64 Celsius, "Temperature", from "nvmlDeviceGetTemperature, hwmon temp{1,2}_input";
        /// How fast its fan is told to be.
        fan: Gauge f64 Ratio, "Fan", from "nvmlDeviceGetFanSpeed, hwmon pwm1";
        /// The clock of graphics.
        clock_graphics: Gauge f64 Hertz, "Graphics clock", from "nvmlDeviceGetClockInfo GRAPHICS, hwmon freq1_input, rps_act_freq_mhz, freq0/act_freq";
        /// The clock of the multiprocessors.
        clock_sm: Gauge f64 Hertz, "SM clock", from "nvmlDeviceGetClockInfo SM";
        /// The clock of the memory.
        clock_memory: Gauge f64 Hertz, "Memory clock", from "nvmlDeviceGetClockInfo MEM, hwmon freq2_input";
    }
}

metrics! {
    /// What held one GPU back.
    pub struct GpuThrottle in Gpu / "throttle", "GPU held back" {
        /// Why it is held back now, a bit for each of NVML's reasons (nvmlClocksThrottleReasons).
        reasons: Gauge u64 One Bits, "Reasons", from "nvmlDeviceGetCurrentClocksThrottleReasons";
        /// Time it was held back by the power it may take.
        power: Counter f64 Elapsed, "By power", from "nvmlDeviceGetViolationStatus POWER, gpu_metrics ppt_residency_acc";
        /// Time it was held back by its heat.
        thermal: Counter f64 Elapsed, "By heat", from "nvmlDeviceGetViolationStatus THERMAL, gpu_metrics {prochot,socket_thm,vr_thm,hbm_thm}_residency_acc";
        /// Time it was held back to keep step with others.
        sync_boost: Counter f64 Elapsed, "By keeping step", from "nvmlDeviceGetViolationStatus SYNC_BOOST";
        /// Time it was held back by its board.
        board_limit: Counter f64 Elapsed, "By its board", from "nvmlDeviceGetViolationStatus BOARD_LIMIT";
        /// Time its clocks were low because it had little to do.
        low_utilization: Counter f64 Elapsed, "By idleness", from "nvmlDeviceGetViolationStatus LOW_UTILIZATION";
        /// Time it was held back for the sake of its voltage.
        reliability: Counter f64 Elapsed, "By reliability", from "nvmlDeviceGetViolationStatus RELIABILITY";
        /// Time below the clocks that were asked for, for whatever reason.
        below_application_clocks: Counter f64 Elapsed, "Below application clocks", from "nvmlDeviceGetViolationStatus TOTAL_APP_CLOCKS";
        /// Time below its base clocks, for whatever reason.
        below_base_clocks: Counter f64 Elapsed, "Below base clocks", from "nvmlDeviceGetViolationStatus TOTAL_BASE_CLOCKS";
    }
}

metrics! {
    /// Errors in the memory of one GPU.
    pub struct GpuEcc in Gpu / "ecc", "GPU memory errors" {
        /// Errors that were corrected, since its driver was loaded.
        corrected: Counter u64 One, "Corrected", from "nvmlDeviceGetTotalEccErrors CORRECTED VOLATILE, ras/umc_err_count ce";
        /// Errors that could not be corrected, since its driver was loaded.
        uncorrected: Counter u64 One, "Uncorrected", from "nvmlDeviceGetTotalEccErrors UNCORRECTED VOLATILE, ras/umc_err_count ue";
        /// Errors that were corrected in its whole life.
        corrected_lifetime: Counter u64 One, "Corrected ever", from "nvmlDeviceGetTotalEccErrors CORRECTED AGGREGATE";
        /// Errors that could not be corrected in its whole life.
        uncorrected_lifetime: Counter u64 One, "Uncorrected ever", from "nvmlDeviceGetTotalEccErrors UNCORRECTED AGGREGATE";
    }
}

metrics! {
    /// Links of one GPU to the machine and to other GPUs.
    pub struct GpuLink in Gpu / "link", "GPU links" {
        /// What it receives over PCIe, counted for 20 ms once a second; in between it stands as it was.
        pcie_received: Gauge u64 BytesPerSecond, "Received over PCIe", from "nvmlDeviceGetPcieThroughput RX_BYTES";
        /// What it sends over PCIe, counted for 20 ms once a second; in between it stands as it was.
        pcie_sent: Gauge u64 BytesPerSecond, "Sent over PCIe", from "nvmlDeviceGetPcieThroughput TX_BYTES";
        /// The generation of PCIe that its link runs with now.
        pcie_generation: Gauge u64 One Bound, "PCIe generation", from "nvmlDeviceGetCurrPcieLinkGeneration, current_link_speed";
        /// The lanes of PCIe that its link has now.
        pcie_width: Gauge u64 One Bound, "PCIe lanes", from "nvmlDeviceGetCurrPcieLinkWidth, current_link_width";
        /// How often something was sent again over PCIe.
        pcie_replays: Counter u64 One, "PCIe replays", from "nvmlDeviceGetPcieReplayCounter, pcie_replay_count";
        /// What it received over NVLink.
        nvlink_received: Counter u64 Bytes, "Received over NVLink", from "nvmlDeviceGetFieldValues NVLINK_THROUGHPUT_DATA_RX";
        /// What it sent over NVLink.
        nvlink_sent: Counter u64 Bytes, "Sent over NVLink", from "nvmlDeviceGetFieldValues NVLINK_THROUGHPUT_DATA_TX";
    }
}

metrics! {
    /// How busy the parts of one GPU are, where it counts that: NVIDIA's Hopper and later.
    pub struct GpuUnits in Gpu / "units", "GPU units" {
        /// Multiprocessors that had work.
        sm: Gauge f64 Ratio, "Multiprocessors", from "nvmlGpmMetricsGet SM_UTIL";
        /// Places for work on the multiprocessors that were taken.
        occupancy: Gauge f64 Ratio, "Occupancy", from "nvmlGpmMetricsGet SM_OCCUPANCY";
        /// Tensor cores.
        tensor: Gauge f64 Ratio, "Tensor cores", from "nvmlGpmMetricsGet ANY_TENSOR_UTIL";
        /// Bandwidth of the memory.
        memory_bandwidth: Gauge f64 Ratio, "Memory bandwidth", from "nvmlGpmMetricsGet DRAM_BW_UTIL";
        /// Units for double precision.
        fp64: Gauge f64 Ratio, "FP64", from "nvmlGpmMetricsGet FP64_UTIL";
        /// Units for single precision.
        fp32: Gauge f64 Ratio, "FP32", from "nvmlGpmMetricsGet FP32_UTIL";
        /// Units for half precision.
        fp16: Gauge f64 Ratio, "FP16", from "nvmlGpmMetricsGet FP16_UTIL";
    }
}

metrics! {
    /// What one process has of one GPU.
    pub struct GpuShare in GpuProcess / "share", "GPU by process" {
        /// Memory of the GPU that it has. Where there were several looks since the last tick, that of
        /// the look at which most memory was in use.
        memory: Gauge u64 Bytes, "GPU memory", from "nvmlDeviceGet{Compute,Graphics}RunningProcesses usedGpuMemory, drm-{resident,memory}-*, kfd/proc/PID/vram_*";
        /// The most memory it ever had, where the driver keeps accounts; else the most that the looks
        /// since the last tick found, where there were several.
        memory_peak: Gauge u64 Bytes Beside(memory), "GPU memory peak", from "nvmlDeviceGetAccountingStats maxMemoryUsage";
        /// Share of the time of what computes (multiprocessors, or the busiest kind of engine) that was
        /// its own, on average since the last tick.
        utilization: Gauge f64 Ratio, "GPU utilization", from "nvmlDeviceGetProcessUtilization smUtil, drm-engine-*, drm-cycles-*";
        /// Share of the memory's time that was its own.
        memory_utilization: Gauge f64 Ratio, "GPU memory utilization", from "nvmlDeviceGetProcessUtilization memUtil";
        /// Share of the video encoder's time that was its own. AMD's RDNA3, MI300 and later
        /// decode there, too.
        encoder: Gauge f64 Ratio, "GPU encoder", from "nvmlDeviceGetProcessUtilization encUtil, drm-engine-enc";
        /// Share of the video decoder's time that was its own.
        decoder: Gauge f64 Ratio, "GPU decoder", from "nvmlDeviceGetProcessUtilization decUtil, drm-engine-dec";
        /// Share of the time of engines for all of video that was its own: Intel's.
        video: Gauge f64 Ratio, "GPU video", from "drm-engine-video, drm-cycles-vcs";
        /// Share of the time of engines that copy that was its own: AMD's and Intel's.
        copy: Gauge f64 Ratio, "GPU copying", from "drm-engine-{dma,copy}, drm-cycles-bcs";
        /// Share of the compute units that worked for it at the moment: AMD's, of processes of the
        /// run, because the kernel asks the whole card for it.
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
        GpuShare::METRICS,
    ],
    on_request: false,
    everywhere: false,
};

/// Whether this is a whole GPU: what parts have is in what the whole has.
pub fn is_whole(gpu: &str) -> bool {
    !gpu.contains(':')
}

/// What a GPU is called on its own machine: among those of several, `node-b/nvidia0` is one.
pub fn name_there(gpu: &str) -> &str {
    gpu.rsplit('/').next().unwrap_or(gpu)
}

/// The name of the whole that a part is of; of a whole one its own.
pub fn whole_of(gpu: &str) -> &str {
    gpu.split(':').next().unwrap_or_default()
}

/// Memory that a process may have on a GPU that it merely has open: page tables, and what a
/// runtime puts on every GPU.
///
/// What surprised us: ROCm opens every GPU, also those that `ROCR_VISIBLE_DEVICES` hides from the
/// program, because what reads that variable is built upon what opens them.
const MERELY_OPEN: u64 = 16 << 20;

impl GpuShare {
    /// Whether it shows that the process uses the GPU: work, or more memory than an open GPU takes.
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
        let open = GpuShare { memory: Some(2 << 20), utilization: Some(0.0), ..Default::default() };
        assert!(open.is_merely_open());
        assert!(!GpuShare { memory: Some(1 << 30), ..open }.is_merely_open());
        assert!(!GpuShare { memory_peak: Some(1 << 30), ..open }.is_merely_open());
        assert!(!GpuShare { utilization: Some(0.1), ..open }.is_merely_open());
        assert!(!GpuShare { occupancy: Some(0.1), ..open }.is_merely_open());
        let unknown = GpuShare { memory: None, ..open };
        assert_eq!((unknown.is_merely_open(), unknown.is_use()), (false, false));
    }
}
