//! The kernel's text files and its messages, and lines of other programs, from bytes to structs.
//!
//! Nothing here opens a file: the caller (`host`, a test, a captured machine) passes the bytes, so
//! every parser can be fed anything. The ones that run for every process at every tick (`stat`,
//! `status`, `io`, `smaps`, `schedstat`, `loadavg`, `system_stat`) or for the machine (`net_dev`,
//! `diskstats`, `pressure`, `vmstat`, `attribute`, `drm_fdinfo`) do not allocate and do not check
//! UTF-8, since names need not be UTF-8.
//!
//! Messages of the kernel (`connector`, `sock_diag`, `taskstats`) and `gpu_metrics` are binary, in
//! the byte order of the machine.
//!
//! Lines of other programs (`nvidia_smi`, `dmon`, `cpu_metrics`) come without their newline: the
//! caller knows whether the last line is complete.
//!
//! What surprises: a file read into too small a buffer ends in the middle of a number, and a
//! truncated number is still a number. So each number must be followed by its space or newline, and
//! each line by its newline; bytes that end earlier are [`MalformedFile`].

pub mod attribute;
pub mod cgroup;
pub mod connector;
pub mod cpuinfo;
pub mod cpulist;
pub mod diskstats;
pub mod drm_fdinfo;
mod fields;
pub mod gpu_metrics;
pub mod group_stat;
pub mod io;
pub mod kernel_log;
pub mod limits;
pub mod loadavg;
pub mod meminfo;
pub mod mounts;
mod native;
pub mod net_dev;
pub mod net_snmp;
pub mod os_release;
pub mod pressure;
pub mod schedstat;
pub mod smaps;
pub mod sock_diag;
pub mod stat;
pub mod status;
pub mod system_stat;
pub mod taskstats;
pub mod vmstat;

/// A file or message of the kernel in an unexpected format; holds the field at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not in the expected form: {0}")]
pub struct MalformedFile(pub &'static str);

#[cfg(test)]
pub(crate) mod tests;
