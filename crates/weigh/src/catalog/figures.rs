//! What a summary says: every figure is declared once, with `figures!`. Its key in `summary.json`,
//! its label and unit in texts and tables, the reference page and the names for other tools are
//! derived from that declaration. `summary::figures` has the line that fills it, unless the
//! declaration says of which counter it is the sum.

use super::{Metric, Row, metrics};

/// Declares the figures: the name that code uses, the key in `summary.json`, the unit, how values
/// of several phases or nodes combine, where it stands, the label for people, and above it a
/// sentence of help. For a figure of the machine that is the sum of one counter over all devices,
/// `over` that counter: nothing else fills it.
macro_rules! figures {
    (@over) => { None };
    (@over $row:ident $field:ident) => { Some(|| metrics::$row::metric(|row| &mut row.$field)) };
    ($(
        $(#[doc = $help:literal])+
        $id:ident $name:literal $unit:ident $combine:ident [$($scope:ident)+] $label:literal
            $(over $row:ident.$field:ident)?;
    )+) => {
        /// A figure of a summary.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the help of each is in its declaration")]
        pub enum FigureId { $($id,)+ }

        impl FigureId {
            /// Every figure there is.
            pub const ALL: &[FigureId] = &[$(FigureId::$id,)+];

            const fn declaration(self) -> Declaration {
                match self {
                    $(FigureId::$id => Declaration {
                        name: $name,
                        unit: FigureUnit::$unit,
                        combine: Combine::$combine,
                        scopes: &[$(FigureScope::$scope,)+],
                        label: $label,
                        help: &[$($help),+],
                        over: figures!(@over $($row $field)?),
                    },)+
                }
            }
        }
    };
}

struct Declaration {
    name: &'static str,
    unit: FigureUnit,
    combine: Combine,
    scopes: &'static [FigureScope],
    label: &'static str,
    help: &'static [&'static str],
    over: Option<fn() -> Option<&'static Metric>>,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureUnit {
    /// Bytes; people see KiB, MiB, GiB.
    Bytes,
    /// Seconds.
    Seconds,
    /// Joules.
    Joules,
    /// A share: 1 is all of it.
    Ratio,
    /// CPU cores, or parts of one.
    Cores,
    /// GPUs, or parts of one.
    Gpus,
    /// A plain number of things.
    One,
    /// One count for each of another.
    Quotient,
    /// Floating-point operations in a second.
    FlopsPerSecond,
}

impl FigureUnit {
    /// The unit in one word.
    pub const fn name(self) -> &'static str {
        match self {
            FigureUnit::Bytes => "bytes",
            FigureUnit::Seconds => "seconds",
            FigureUnit::Joules => "joules",
            FigureUnit::Ratio => "ratio",
            FigureUnit::Cores => "cores",
            FigureUnit::Gpus => "GPUs",
            FigureUnit::One | FigureUnit::Quotient => "1",
            FigureUnit::FlopsPerSecond => "FLOP/s",
        }
    }
}

/// How values of several phases of one name, or of several nodes, make one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combine {
    /// A counter: they add up.
    Sum,
    /// A gauge: the largest of them counts.
    Max,
    /// A gauge over time: their mean counts.
    Mean,
}

/// Where in a summary a figure stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FigureScope {
    /// `figures`: the run as a whole.
    Run,
    /// `phases[].figures`: one phase.
    Phase,
    /// `parts.main.figures`: the command's own process.
    Main,
    /// `parts.descendants.figures`: everything it started.
    Descendants,
    /// `parts.combined.figures`: both together.
    Combined,
    /// `parts.system.figures`: the machine, whoever used it.
    System,
    /// Tables of reports; `summary.json` has it under `run` or `processes`.
    Report,
}

figures! {
    /// From exec to exit of the command.
    Duration "duration_seconds" Seconds Sum [Report] "Duration";
    /// Time in which the run was measured: longer than the command with `--wait-all`.
    Measured "measured_seconds" Seconds Sum [Report] "Measured";
    /// Processes that the run had.
    Processes "processes" One Sum [Report] "Processes";
    /// Processes that were alive together.
    ProcessesPeak "processes_peak" One Max [Report] "Processes, peak";

    /// CPU time in user mode and in the kernel, of all processes.
    CpuTime "cpu_time_seconds" Seconds Sum [Run Phase Main Descendants Combined System] "CPU time";
    /// CPU time in user mode.
    CpuUser "cpu_user_seconds" Seconds Sum [Run Phase] "CPU user";
    /// CPU time in the kernel.
    CpuSystem "cpu_system_seconds" Seconds Sum [Run Phase] "CPU system";
    /// CPU time of the run that no sample attributes to a process: of processes too short to sample,
    /// or used after a process's last sample.
    CpuUnattributed "cpu_unattributed_seconds" Seconds Sum [Run] "CPU unattributed";
    /// CPU cores in use over the measured time.
    CpuCoresMean "cpu_cores_mean" Cores Mean [Run Phase Combined] "CPU cores, mean";
    /// The most CPU cores in use between two ticks.
    CpuCoresPeak "cpu_cores_peak" Cores Max [Run Phase Main Combined System] "CPU cores, peak";
    /// CPU cores in use as a share of those that the run may use, or of `--expected-cores`; of the
    /// machine as a share of all.
    CpuUtilizationMean "cpu_utilization_mean_ratio" Ratio Mean [Run Phase System]
        "CPU utilization, mean";
    /// The same at the busiest moment.
    CpuUtilizationPeak "cpu_utilization_peak_ratio" Ratio Max [Run] "CPU utilization, peak";
    /// Time in which a CPU quota kept the cgroup from running.
    CpuThrottled "cpu_throttled_seconds" Seconds Sum [Run] "CPU throttled";

    /// Peak memory of all processes together, each shared page counted once where PSS is readable.
    MemoryPeak "memory_peak_bytes" Bytes Max [Run Phase Combined] "Memory, peak";
    /// Memory over time, on the same basis as its peak.
    MemoryMean "memory_mean_bytes" Bytes Mean [Run Phase] "Memory, mean";
    /// The highest sum of RSS; pages that processes share are counted for each.
    MemoryRssPeak "memory_rss_peak_bytes" Bytes Max [Run Phase Main Descendants Combined]
        "Memory RSS, peak";
    /// The highest sum of PSS; a page that n processes share counts for an n-th in each.
    MemoryPssPeak "memory_pss_peak_bytes" Bytes Max [Run Phase Main Descendants Combined]
        "Memory PSS, peak";
    /// The highest sum of USS: private pages alone.
    MemoryUssPeak "memory_uss_peak_bytes" Bytes Max [Run Phase Main Descendants Combined]
        "Memory USS, peak";
    /// The highest sum of PSS without page cache: anonymous and shared memory. It is what must be
    /// requested, because the kernel drops page cache when memory is needed.
    MemoryWithoutCachePeak "memory_without_cache_peak_bytes" Bytes Max [Run]
        "Memory without page cache, peak";
    /// The most memory in huge pages of hugetlbfs.
    MemoryHugetlbPeak "memory_hugetlb_peak_bytes" Bytes Max [Run] "Memory hugetlb, peak";
    /// The most anonymous memory of the cgroup.
    MemoryAnonymousPeak "memory_anonymous_peak_bytes" Bytes Max [Run] "Memory anonymous, peak";
    /// The most page cache of the cgroup.
    MemoryCachePeak "memory_cache_peak_bytes" Bytes Max [Run] "Memory cache, peak";
    /// The most memory in use on the machine: `MemTotal` less `MemAvailable`.
    MemoryUsedPeak "memory_used_peak_bytes" Bytes Max [System] "Memory used, peak";
    /// The same over time.
    MemoryUsedMean "memory_used_mean_bytes" Bytes Mean [System] "Memory used, mean";
    /// The most memory that was swapped out.
    SwapPeak "swap_peak_bytes" Bytes Max [Run Phase] "Swap, peak";
    /// Processes that the out-of-memory killer has ended in the cgroup.
    OomKills "oom_kills" One Sum [Run] "OOM kills";

    /// The most threads at one moment.
    ThreadsPeak "threads_peak" One Max [Run Phase Main Descendants Combined] "Threads, peak";
    /// The most open files at one moment.
    FilesOpenPeak "files_open_peak" One Max [Run Phase] "Files open, peak";

    /// Bytes returned by read() and similar system calls, from files, pipes, sockets or terminals.
    IoRead "io_read_bytes" Bytes Sum [Run Phase] "I/O read";
    /// Bytes passed to write() and similar system calls, to files, pipes, sockets or terminals.
    IoWritten "io_written_bytes" Bytes Sum [Run Phase] "I/O written";
    /// Calls of read() and similar system calls.
    IoReadCalls "io_read_calls" One Sum [Run Phase] "I/O read calls";
    /// Calls of write() and similar system calls.
    IoWriteCalls "io_write_calls" One Sum [Run Phase] "I/O write calls";
    /// Bytes that were fetched from storage.
    IoStorageRead "io_storage_read_bytes" Bytes Sum [Run Phase] "I/O storage read";
    /// Bytes that were sent to storage.
    IoStorageWritten "io_storage_written_bytes" Bytes Sum [Run Phase] "I/O storage written";
    /// Read requests of the cgroup to storage.
    IoStorageReadOperations "io_storage_read_operations" One Sum [Run]
        "I/O storage read operations";
    /// Write requests of the cgroup to storage.
    IoStorageWriteOperations "io_storage_write_operations" One Sum [Run]
        "I/O storage write operations";

    /// Bytes that the run sent: payload of its TCP connections, or with `--cgroup` all IP packets;
    /// of the machine what its network devices sent.
    NetworkSent "network_sent_bytes" Bytes Sum [Run System] "Network sent"
        over NetworkTraffic.sent;
    /// Bytes that the run received, counted in the same way.
    NetworkReceived "network_received_bytes" Bytes Sum [Run System] "Network received"
        over NetworkTraffic.received;
    /// Bytes that the run sent through the loopback device.
    NetworkLoopbackSent "network_loopback_sent_bytes" Bytes Sum [Run] "Network loopback sent";
    /// Bytes that the run received through the loopback device.
    NetworkLoopbackReceived "network_loopback_received_bytes" Bytes Sum [Run]
        "Network loopback received";
    /// IP packets that the run sent.
    NetworkPacketsSent "network_packets_sent" One Sum [Run] "Network packets sent";
    /// IP packets that the run received.
    NetworkPacketsReceived "network_packets_received" One Sum [Run] "Network packets received";

    /// Packets that the machine's network devices received and dropped for lack of buffers.
    NetworkDropped "network_packets_dropped" One Sum [System] "Network packets dropped"
        over NetworkTraffic.dropped_received;

    /// Bytes that the machine's InfiniBand, RoCE and Omni-Path ports received.
    InfinibandReceived "infiniband_received_bytes" Bytes Sum [System] "InfiniBand received"
        over PortTraffic.received;
    /// Bytes that these ports sent.
    InfinibandSent "infiniband_sent_bytes" Bytes Sum [System] "InfiniBand sent"
        over PortTraffic.sent;
    /// Bytes that were read from the machine's disks; volumes on top of them are not counted again.
    DiskRead "disk_read_bytes" Bytes Sum [System] "Disk read"
        over DiskIo.read;
    /// Bytes that were written to these disks.
    DiskWritten "disk_written_bytes" Bytes Sum [System] "Disk written"
        over DiskIo.written;

    /// Page faults that read from storage.
    PageFaultsMajor "page_faults_major" One Sum [Run Phase] "Page faults, major";
    /// Page faults that needed no I/O.
    PageFaultsMinor "page_faults_minor" One Sum [Run Phase] "Page faults, minor";
    /// Times a process gave up the CPU by itself.
    ContextSwitchesVoluntary "context_switches_voluntary" One Sum [Run Phase]
        "Context switches, voluntary";
    /// Times the CPU was taken from a process.
    ContextSwitchesInvoluntary "context_switches_involuntary" One Sum [Run Phase]
        "Context switches, involuntary";

    /// Instructions that the processes of the run retired in user mode.
    Instructions "instructions_retired" One Sum [Run Phase] "Instructions";
    /// Cycles in which a core ran them in user mode.
    Cycles "cpu_cycles" One Sum [Run Phase] "Cycles";
    /// Instructions for each cycle.
    InstructionsPerCycle "instructions_per_cycle" Quotient Mean [Run Phase] "Instructions per cycle";
    /// Branches that were predicted wrongly, as a share of all.
    BranchMissRatio "branch_miss_ratio" Ratio Mean [Run Phase] "Branch misses";
    /// Accesses to the last cache level that missed it, as a share of all; which events these are is
    /// the kernel's choice.
    CacheMissRatio "cache_miss_ratio" Ratio Mean [Run Phase] "Cache misses";
    /// Floating-point operations of the run over the measured time.
    FlopsMean "flops_mean" FlopsPerSecond Mean [Run] "Floating-point operations, mean";
    /// Bytes that the cores of the run read from memory.
    MemoryRead "memory_read_bytes" Bytes Sum [Run] "Memory read";
    /// Floating-point operations for each byte that was read from memory.
    ArithmeticIntensity "arithmetic_intensity" Quotient Mean [Run] "Arithmetic intensity";
    /// Issue slots of the cores whose operation was needed, as a share of all.
    SlotsRetiring "slots_retiring_ratio" Ratio Mean [Run Phase] "Slots retiring";
    /// Issue slots that were lost to operations on a wrong path.
    SlotsBadSpeculation "slots_bad_speculation_ratio" Ratio Mean [Run Phase] "Slots lost to wrong paths";
    /// Issue slots for which no operation was fetched or decoded in time.
    SlotsFrontendBound "slots_frontend_bound_ratio" Ratio Mean [Run Phase] "Slots without operations";
    /// Issue slots whose operation waited for data or for an execution unit.
    SlotsBackendBound "slots_backend_bound_ratio" Ratio Mean [Run Phase] "Slots waiting for data or units";

    /// The most GPU memory of the run's processes; of the machine that of all processes.
    GpuMemoryPeak "gpu_memory_peak_bytes" Bytes Max [Run Main Descendants Combined System]
        "GPU memory, peak";
    /// Utilisation of the GPUs that the run may use, over the measured time.
    GpuUtilizationMean "gpu_utilization_mean_ratio" Ratio Mean [Run] "GPU utilization, mean";
    /// The same at the busiest moment.
    GpuUtilizationPeak "gpu_utilization_peak_ratio" Ratio Max [Run] "GPU utilization, peak";
    /// The sum of the utilisations of these GPUs, over the measured time.
    GpusBusyMean "gpus_busy_mean" Gpus Mean [Run] "GPUs busy, mean";
    /// The same at the busiest moment.
    GpusBusyPeak "gpus_busy_peak" Gpus Max [Run] "GPUs busy, peak";
    /// Energy of the GPUs that the run may use.
    GpuEnergy "gpu_energy_joules" Joules Sum [Run] "GPU energy";

    /// Energy of the CPU packages and their memory, whoever used it.
    Energy "energy_joules" Joules Sum [System] "Energy";
    /// The run's part of it, in proportion to its CPU time.
    EnergyRun "energy_run_joules" Joules Sum [System] "Energy run";
}

impl FigureId {
    /// Its key in `summary.json`, which ends with its unit.
    pub const fn name(self) -> &'static str {
        self.declaration().name
    }

    /// The figure of this key.
    pub fn named(name: &str) -> Option<FigureId> {
        FigureId::ALL.iter().copied().find(|id| id.name() == name)
    }

    /// A few words for a table.
    pub const fn label(self) -> &'static str {
        self.declaration().label
    }

    /// A sentence for people.
    pub fn help(self) -> String {
        self.declaration().help.concat().trim().to_owned()
    }

    /// Its unit.
    pub const fn unit(self) -> FigureUnit {
        self.declaration().unit
    }

    /// How values of several phases or nodes make one.
    pub const fn combine(self) -> Combine {
        self.declaration().combine
    }

    /// Whether it may stand there.
    pub fn is_in(self, scope: FigureScope) -> bool {
        self.declaration().scopes.contains(&scope)
    }

    /// The counter whose sum over all devices of the machine it is.
    pub fn device_counter(self) -> Option<&'static Metric> {
        self.declaration().over.and_then(|metric| metric())
    }

    /// The first word of its name, which says what it is about: `cpu`, `memory`, `io`.
    pub fn family(self) -> &'static str {
        self.name().split('_').next().unwrap_or_default()
    }

    /// Whether it is about GPUs, which many machines do not have.
    pub fn is_of_gpus(self) -> bool {
        ["gpu", "gpus"].contains(&self.family())
    }

    /// The Prometheus name: `weigh_run_cpu_time_seconds`.
    pub fn prometheus(self) -> String {
        format!("weigh_run_{}", self.name())
    }
}

/// By name: the order of the keys in `summary.json` and of the rows in tables.
impl Ord for FigureId {
    fn cmp(&self, other: &FigureId) -> std::cmp::Ordering {
        self.name().cmp(other.name())
    }
}

impl PartialOrd for FigureId {
    fn partial_cmp(&self, other: &FigureId) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_has_a_unique_name_that_ends_with_its_unit() {
        let mut names: Vec<&str> = FigureId::ALL.iter().map(|id| id.name()).collect();
        names.sort_unstable();
        assert!(names.windows(2).all(|two| two[0] != two[1]), "{names:?}");
        for id in FigureId::ALL {
            let unit = id.unit();
            let has_suffix = matches!(
                unit,
                FigureUnit::Bytes | FigureUnit::Seconds | FigureUnit::Joules | FigureUnit::Ratio
            );
            let suffix = format!("_{}", unit.name());
            assert_eq!(id.name().ends_with(&suffix), has_suffix, "{}", id.name());
            assert_eq!(FigureId::named(id.name()), Some(*id));
        }
        assert_eq!(FigureId::named("memory_peak"), None);
    }

    #[test]
    fn every_figure_has_a_label_and_help() {
        for id in FigureId::ALL {
            assert!(id.help().ends_with('.') && !id.help().contains("  "), "{}", id.help());
            assert!(id.label().starts_with(char::is_uppercase), "{}", id.label());
        }
    }
}
