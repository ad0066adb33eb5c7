//! What processes used and how they ended, as the kernel counts it at their exit.

use serde::{Deserialize, Serialize};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

impl End {
    /// The exit code a shell would give: the code, or 128 and the signal.
    pub fn exit_code(self) -> i32 {
        match self {
            End::Code(code) => code,
            End::Signal(number) => 128 + number,
        }
    }
}

/// The name of a signal, as in `kill -l`.
pub fn signal_name(number: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
        "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
        "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    match usize::try_from(number).ok().and_then(|number| NAMES.get(number.wrapping_sub(1))) {
        Some(name) => format!("SIG{name}"),
        None => format!("signal {number}"),
    }
}

/// What a process and its reaped descendants used, as `wait4` reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// CPU time in user mode, in seconds.
    pub user_seconds: f64,
    /// CPU time in the kernel, in seconds.
    pub system_seconds: f64,
    /// The largest resident size that any one of them had, in bytes.
    pub largest_rss_bytes: u64,
    /// Page faults that needed no I/O.
    pub minor_faults: u64,
    /// Page faults that read from storage.
    pub major_faults: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl Usage {
    /// All CPU time, in seconds.
    pub fn cpu_seconds(&self) -> f64 {
        self.user_seconds + self.system_seconds
    }

    /// Subtracts the time before exec: it was weigh's, in the kernel for the most part.
    pub fn subtract_pre_exec(&mut self, seconds: f64) {
        let from_system = seconds.min(self.system_seconds);
        self.system_seconds -= from_system;
        self.user_seconds = (self.user_seconds - (seconds - from_system)).max(0.0);
    }

    /// The rest without a part of it; the largest size stays. The kernel splits the CPU time of
    /// both by its clock ticks, so an excess in the one is subtracted from the other.
    pub fn less(&self, part: &Usage) -> Usage {
        let user = self.user_seconds - part.user_seconds;
        let system = self.system_seconds - part.system_seconds;
        Usage {
            user_seconds: (user + system.min(0.0)).max(0.0),
            system_seconds: (system + user.min(0.0)).max(0.0),
            largest_rss_bytes: self.largest_rss_bytes,
            minor_faults: self.minor_faults.saturating_sub(part.minor_faults),
            major_faults: self.major_faults.saturating_sub(part.major_faults),
            voluntary_switches: self.voluntary_switches.saturating_sub(part.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(part.involuntary_switches),
        }
    }

    /// Adds what another process used; the largest size stays the largest of one.
    pub fn add(&mut self, other: &Usage) {
        self.user_seconds += other.user_seconds;
        self.system_seconds += other.system_seconds;
        self.largest_rss_bytes = self.largest_rss_bytes.max(other.largest_rss_bytes);
        self.minor_faults += other.minor_faults;
        self.major_faults += other.major_faults;
        self.voluntary_switches += other.voluntary_switches;
        self.involuntary_switches += other.involuntary_switches;
    }
}

/// What one process has read and written since it started.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Io {
    /// Bytes returned by read() and its relatives, wherever they came from (`rchar`).
    pub read_bytes: u64,
    /// Bytes handed to write() and its relatives, wherever they went (`wchar`).
    pub written_bytes: u64,
    /// How often the process called read() or a relative (`syscr`).
    pub read_calls: u64,
    /// How often the process called write() or a relative (`syscw`).
    pub write_calls: u64,
    /// Bytes fetched from storage (`read_bytes`).
    pub storage_read_bytes: u64,
    /// Bytes sent to storage (`write_bytes`).
    pub storage_written_bytes: u64,
    /// Bytes counted as written whose file was truncated before writeback
    /// (`cancelled_write_bytes`).
    pub cancelled_bytes: u64,
}

impl Io {
    /// Both together.
    pub fn and(&self, other: &Io) -> Io {
        Io {
            read_bytes: self.read_bytes + other.read_bytes,
            written_bytes: self.written_bytes + other.written_bytes,
            read_calls: self.read_calls + other.read_calls,
            write_calls: self.write_calls + other.write_calls,
            storage_read_bytes: self.storage_read_bytes + other.storage_read_bytes,
            storage_written_bytes: self.storage_written_bytes + other.storage_written_bytes,
            cancelled_bytes: self.cancelled_bytes + other.cancelled_bytes,
        }
    }

    /// The six counts that figures report, in their order.
    pub fn counts(&self) -> [u64; 6] {
        [
            self.read_bytes,
            self.written_bytes,
            self.read_calls,
            self.write_calls,
            self.storage_read_bytes,
            self.storage_written_bytes,
        ]
    }

    /// The same, from those six.
    pub fn of_counts(counts: [f64; 6]) -> Io {
        let [read_bytes, written_bytes, read_calls, write_calls, from_storage, to_storage] =
            counts.map(|count| count as u64);
        Io {
            read_bytes,
            written_bytes,
            read_calls,
            write_calls,
            storage_read_bytes: from_storage,
            storage_written_bytes: to_storage,
            cancelled_bytes: 0,
        }
    }

    /// The rest without a part of it.
    pub fn less(&self, part: &Io) -> Io {
        Io {
            read_bytes: self.read_bytes.saturating_sub(part.read_bytes),
            written_bytes: self.written_bytes.saturating_sub(part.written_bytes),
            read_calls: self.read_calls.saturating_sub(part.read_calls),
            write_calls: self.write_calls.saturating_sub(part.write_calls),
            storage_read_bytes: self.storage_read_bytes.saturating_sub(part.storage_read_bytes),
            storage_written_bytes: self
                .storage_written_bytes
                .saturating_sub(part.storage_written_bytes),
            cancelled_bytes: self.cancelled_bytes.saturating_sub(part.cancelled_bytes),
        }
    }
}
