//! The memory of a command in its first milliseconds.
//!
//! Most commands that exit before the second tick exit within a millisecond or two, and then
//! nothing is left to read: `ru_maxrss` also has the size of the process before exec, which is
//! weigh's. Root gets the exit record of each process from the kernel ([`Taskstats`]), and listens
//! to it for a second. And the high-water mark is polled for five milliseconds: at most thirty
//! times, about 10 µs of a CPU each, and without waiting for a lock that the command holds. On a
//! loaded machine the command may exit before weigh gets a CPU, and then there is only an upper
//! bound.

use std::time::Duration;

use super::{Monitor, Woken};
use crate::catalog::metrics::ProcessMemory;
use crate::host::taskstats::Taskstats;
use crate::host::{CachedFile, Host, ProcPath};
use crate::model::Entity;
use crate::parse;

/// How long after exec the mark is read: the second tick is due then.
const STARTING: Duration = Duration::from_millis(5);

/// How long after exec exit records are listened to: those of all processes of the machine arrive,
/// and a longer process is sampled well.
const LISTENING: Duration = Duration::from_secs(1);

/// The first tick takes a while itself: it waits for as many readings as fit in here.
const BEFORE_THE_FIRST_TICK: Duration = Duration::from_millis(1);

/// What is known of the command's first moments.
pub(super) struct Start {
    pid: u32,
    status: CachedFile,
    buffer: Vec<u8>,
    /// The highest mark so far, in bytes.
    peak: Option<u64>,
    /// The exit records of processes, where the kernel gives them.
    exit_records: Option<Taskstats>,
}

impl Start {
    /// Of a process that is about to exec the command.
    pub(super) fn of(host: &Host, pid: u32) -> Start {
        let exit_records = Taskstats::open(&host.sys).ok();
        Start { pid, status: CachedFile::always(), buffer: Vec::new(), peak: None, exit_records }
    }

    /// Takes the exit records that have arrived: that of the command has its mark.
    fn listen(&mut self) {
        let (pid, peak) = (self.pid, &mut self.peak);
        let heard = self.exit_records.as_mut().map(|exit_records| {
            exit_records.next(|record| {
                if record.pid == pid {
                    *peak = (*peak).max(record.peak_rss_bytes);
                }
            })
        });
        if matches!(heard, Some(Err(_))) {
            self.exit_records = None;
        }
    }

    /// Reads the mark; an exited process has none.
    fn read(&mut self, host: &Host) {
        let pid = self.pid;
        let path = || ProcPath::new(pid, "status");
        let read = self.status.read(&host.proc, path, &mut self.buffer).ok();
        let status = read.and_then(|bytes| parse::status::parse(bytes).ok());
        self.peak = self.peak.max(status.and_then(|status| status.resident_peak));
    }
}

/// The time from one reading to the next, so long after exec.
fn step(since_exec: Duration) -> Duration {
    let dense = since_exec < Duration::from_millis(2);
    Duration::from_micros(if dense { 100 } else { 500 })
}

impl Monitor {
    /// Reads the mark until the first tick is due, or something happens.
    pub(super) fn sample_before_the_first_tick(&mut self) {
        while self.start.is_some() && self.since_exec() < BEFORE_THE_FIRST_TICK {
            self.read_start();
            let woken = self.sleep(step(Duration::ZERO));
            if woken.by_signal || woken.by_message {
                return;
            }
        }
    }

    /// Sleeps until a signal or a control message arrives, at most so long, and reads the mark
    /// meanwhile while the command starts.
    pub(super) fn sleep_sampling_the_start(&mut self, time: Duration) -> Woken {
        let end = self.sampling.now() + time;
        while let Some(start) = &mut self.start {
            start.listen();
            let is_listening = start.exit_records.is_some();
            let since_exec = self.since_exec();
            if since_exec >= STARTING {
                if !is_listening || since_exec >= LISTENING {
                    self.record_start_peak();
                }
                break;
            }
            self.read_start();
            let left = end.saturating_sub(self.sampling.now());
            let woken = self.sleep(left.min(step(since_exec)));
            if woken.by_signal || woken.by_message || self.sampling.now() >= end {
                return woken;
            }
        }
        self.sleep(end.saturating_sub(self.sampling.now()))
    }

    fn since_exec(&self) -> Duration {
        self.sampling.now().saturating_sub(self.executed)
    }

    fn read_start(&mut self) {
        if let Some(start) = &mut self.start {
            start.read(&self.sampling.host);
        }
    }

    /// The first moments are over, or the command exited: records the highest mark that was read.
    pub(super) fn record_start_peak(&mut self) {
        let Some(mut start) = self.start.take() else { return };
        start.listen();
        let Some(peak) = start.peak else { return };
        let row = ProcessMemory { peak: Some(peak), ..ProcessMemory::default() };
        self.sampling.tick.begin(self.sampling.now());
        self.sampling.tick.put(Entity::Process(self.root), &row);
        self.sampling.emit_tick();
    }
}
