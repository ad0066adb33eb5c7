//! The metrics of every source, one file for each: declarations only.
//!
//! A collector of the same name in `collect` fills the rows; readers of recordings use them
//! without any collector.

pub mod cgroup;
pub mod cpu;
pub mod disk;
pub mod energy;
pub mod filesystem;
pub mod frequency;
pub mod gpu;
pub mod infiniband;
pub mod memory;
pub mod network;
pub mod own;
pub mod packets;
pub mod paging;
pub mod perf;
pub mod power_meter;
pub mod pressure;
pub mod process;
pub mod run_totals;
pub mod sockets;
pub mod task_clock;

pub use cgroup::{GroupCpu, GroupIo, GroupMemory, GroupPressure, GroupTasks, GroupThrottling};
pub use cpu::{CpuTime, NodeCpu};
pub use disk::DiskIo;
pub use energy::DomainEnergy;
pub use filesystem::FileSystem;
pub use frequency::{NodeFrequency, NodeThrottle};
pub use gpu::{
    GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuProcessUsage, GpuThrottle, GpuUnits,
};
pub use infiniband::{PortState, PortTraffic};
pub use memory::NodeMemory;
pub use network::{MadeOf, NetworkTraffic, NodeTcp};
pub use own::{OwnCost, OwnTicks};
pub use packets::RunNetwork;
pub use paging::NodePaging;
pub use perf::EventCount;
pub use power_meter::MeterPower;
pub use pressure::NodePressure;
pub use process::{
    AddressSpace, ProcessCpu, ProcessEvents, ProcessIo, ProcessMemory, ProcessState, TaskState,
};
pub use run_totals::{RunTotalCpu, RunTotalGpu, RunTotalIo, RunTotalMemory, RunTotalProcesses};
pub use sockets::RunTcp;
pub use task_clock::RunCpu;
