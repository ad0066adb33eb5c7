//! One process that is alive, and sums over several at one moment.

use super::curve::Peak;
use crate::collect::process::{ProcessCpu, ProcessEvents, ProcessIo, ProcessMemory, ProcessState};
use crate::sample::Table;

/// What was last read of a process that is alive.
#[derive(Debug, Clone, Copy, Default)]
pub struct Alive {
    pub(super) cpu: ProcessCpu,
    memory: ProcessMemory,
    pub(super) io: ProcessIo,
    pub(super) events: ProcessEvents,
    state: ProcessState,
}

/// Takes the new value where there is one: what was not read is as it was.
macro_rules! renew {
    ($old:expr, $new:expr, $($field:ident),+) => {
        $( $old.$field = $new.$field.or($old.$field); )+
    };
}

impl Alive {
    /// Takes in a row about it.
    pub fn renew(&mut self, table: &Table, row: usize) {
        let cpu = table.get::<ProcessCpu>(row);
        renew!(self.cpu, cpu, user, system, children_user, children_system);
        let memory = table.get::<ProcessMemory>(row);
        renew!(self.memory, memory, rss, peak, pss, uss, swap);
        let io = table.get::<ProcessIo>(row);
        renew!(self.io, io, read, written, read_calls, write_calls, storage_read, storage_written);
        let events = table.get::<ProcessEvents>(row);
        renew!(
            self.events,
            events,
            faults_minor,
            faults_major,
            children_faults,
            switches_voluntary,
            switches_involuntary
        );
        let state = table.get::<ProcessState>(row);
        renew!(self.state, state, threads, files_open);
    }

    /// CPU time of its own.
    pub fn own_cpu(&self) -> Option<f64> {
        Some(self.cpu.user? + self.cpu.system?)
    }

    /// I/O with that of the children it has waited for: bytes read and written, calls that
    /// read and write, bytes from and to storage.
    pub fn all_io(&self) -> Option<[f64; 6]> {
        let io = &self.io;
        let all = [
            io.read?,
            io.written?,
            io.read_calls?,
            io.write_calls?,
            io.storage_read?,
            io.storage_written?,
        ];
        Some(all.map(|count| count as f64))
    }

    /// With the children it has waited for.
    pub fn cpu(&self) -> Option<f64> {
        Some(self.own_cpu()? + self.cpu.children_user? + self.cpu.children_system?)
    }

    /// The most this process can have had so far.
    pub fn ceiling(&self) -> Option<u64> {
        self.memory.peak.max(self.memory.rss)
    }

    /// Its resident memory.
    pub fn resident(&self) -> Option<u64> {
        self.memory.rss
    }

    /// Its share of the memory of all, if that was ever looked at.
    ///
    /// The look may be old; a share is never above what is resident now.
    fn share(&self) -> Option<u64> {
        self.memory.pss.map(|pss| self.memory.rss.map_or(pss, |rss| pss.min(rss)))
    }
}

/// Peaks of one part of the tree.
#[derive(Debug, Clone, Copy, Default)]
pub struct Levels {
    /// Resident memory, shared pages counted in full.
    pub rss: Peak,
    /// Proportional memory.
    pub pss: Peak,
    /// Private memory.
    pub uss: Peak,
    /// Swapped memory.
    pub swap: Peak,
    /// Threads.
    pub threads: Peak,
    /// Open files.
    pub files: Peak,
}

/// Sums over one part of the tree at one moment; `None` where nobody had a value.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sums {
    pub(super) rss: Option<f64>,
    pub(super) pss: Option<f64>,
    share: Option<f64>,
    /// Shares, and where there is none what is resident.
    pub memory: Option<f64>,
    /// CPU time with that of the children they have waited for.
    pub cpu: Option<f64>,
    uss: Option<f64>,
    swap: Option<f64>,
    threads: Option<f64>,
    files: Option<f64>,
}

/// Adds a value to a sum, if there is one.
pub fn add(sum: &mut Option<f64>, value: Option<u64>) {
    if let Some(value) = value {
        *sum = Some(sum.unwrap_or(0.0) + value as f64);
    }
}

impl Sums {
    /// Takes a process into the sums.
    pub fn add(&mut self, process: &Alive) {
        add(&mut self.rss, process.memory.rss);
        add(&mut self.share, process.share());
        add(&mut self.memory, process.share().or(process.memory.rss));
        if let Some(cpu) = process.cpu() {
            self.cpu = Some(self.cpu.unwrap_or(0.0) + cpu);
        }
        add(&mut self.pss, process.memory.pss);
        add(&mut self.uss, process.memory.uss);
        add(&mut self.swap, process.memory.swap);
        add(&mut self.threads, process.state.threads);
        add(&mut self.files, process.state.files_open);
    }

    /// Peaks of a part of the run: what was looked at before it does not count.
    pub fn into_part(mut self, levels: &mut Levels, at: f64) {
        self.pss = self.share;
        self.into(levels, at);
    }

    /// Peaks of a part of the tree.
    pub fn into(self, levels: &mut Levels, at: f64) {
        for (sum, peak) in [
            (self.rss, &mut levels.rss),
            (self.pss, &mut levels.pss),
            (self.uss, &mut levels.uss),
            (self.swap, &mut levels.swap),
            (self.threads, &mut levels.threads),
            (self.files, &mut levels.files),
        ] {
            if let Some(sum) = sum {
                peak.see(sum, at);
            }
        }
    }
}
