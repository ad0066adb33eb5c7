//! Whether processes may have been started since the last read.
//!
//! Source: the last pid in `/proc/loadavg`. While it does not change, no process was started, and
//! nothing has to be listed. A sandbox may print a constant, so it is trusted only after it has
//! changed for a known fork.

use crate::host::{CachedFile, Host};
use crate::parse::{self, loadavg::Loadavg};

/// The last pid allocated, as a counter of forks.
#[derive(Debug)]
pub(super) struct ForkCounter {
    state: CounterState,
    file: CachedFile,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum CounterState {
    /// `/proc/loadavg` as last read.
    Working(Option<Loadavg>),
    /// The value does not change with forks, or cannot be read.
    Unusable,
}

/// The pids allocated since the last call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewPids {
    /// None.
    None,
    /// So many, to processes and to threads.
    Count(u32),
    /// An unknown number.
    Unknown,
}

impl ForkCounter {
    /// Reads the counter before a fork that [`ForkCounter::confirm_live`] checks for.
    pub(super) fn new(host: &Host) -> ForkCounter {
        let file = CachedFile::always();
        let mut counter = ForkCounter { state: CounterState::Unusable, file, buffer: Vec::new() };
        counter.state = CounterState::Working(counter.read(host));
        counter
    }

    /// A process was certainly started since `new`: a counter that has not changed is unusable.
    pub(super) fn confirm_live(&mut self, host: &Host) {
        if let CounterState::Working(before) = self.state {
            self.state = match (before, self.read(host)) {
                (Some(before), Some(now)) if before.last_pid != now.last_pid => {
                    CounterState::Working(Some(now))
                }
                _ => CounterState::Unusable,
            };
        }
    }

    /// Processes that were started until now have not been listed yet.
    pub(super) fn forget_last(&mut self) {
        if let CounterState::Working(last) = &mut self.state {
            *last = None;
        }
    }

    /// The last pid at the last call, if the counter is usable.
    pub(super) fn last_pid(&self) -> Option<u32> {
        match self.state {
            CounterState::Working(last) => last.map(|last| last.last_pid),
            CounterState::Unusable => None,
        }
    }

    /// The pids allocated since the last call.
    pub(super) fn new_pids(&mut self, host: &Host) -> NewPids {
        let CounterState::Working(last) = self.state else { return NewPids::Unknown };
        let now = self.read(host);
        self.state = CounterState::Working(now);
        match now.zip(last) {
            Some((now, last)) if now.last_pid == last.last_pid => NewPids::None,
            // Pids ascend; a lower one is a wraparound.
            Some((now, last)) => {
                now.last_pid.checked_sub(last.last_pid).map_or(NewPids::Unknown, NewPids::Count)
            }
            None => NewPids::Unknown,
        }
    }

    fn read(&mut self, host: &Host) -> Option<Loadavg> {
        let bytes = self.file.read(&host.proc, || c"loadavg", &mut self.buffer).ok()?;
        parse::loadavg::parse(bytes).ok()
    }
}
