//! Whether somebody may have been born since the last look.
//!
//! Source: `/proc/loadavg`, which names the last pid that was given out. While it stands
//! still nobody was born, and nothing has to be listed. A sandbox may print a constant, so
//! it is believed only after it has moved for a birth that certainly was.

use crate::host::{CachedFile, Host};
use crate::parse::{self, loadavg::Loadavg};

/// The births of the machine.
#[derive(Debug)]
pub(super) struct ForkCounter {
    state: CounterState,
    file: CachedFile,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum CounterState {
    /// The last pid given out at the last look.
    Working(Option<Loadavg>),
    /// This kernel does not tell.
    Unusable,
}

/// What is known of the time since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NewPids {
    /// Nobody was.
    None,
    /// So many pids were given out, to processes and to threads.
    Count(u32),
    /// It cannot be told how many.
    Unknown,
}

impl ForkCounter {
    /// Begins to look, before a birth that [`ForkCounter::confirm_live`] tells of.
    pub(super) fn new(host: &Host) -> ForkCounter {
        let file = CachedFile::always();
        let mut counter = ForkCounter { state: CounterState::Unusable, file, buffer: Vec::new() };
        counter.state = CounterState::Working(counter.read(host));
        counter
    }

    /// Somebody was certainly born since `new`: a kernel that tells the truth says so.
    pub(super) fn confirm_live(&mut self, host: &Host) {
        if let CounterState::Working(before) = self.state {
            self.state = match (before, self.read(host)) {
                (Some(before), Some(now)) if before.last_pid != now.last_pid => {
                    CounterState::Working(None)
                }
                _ => CounterState::Unusable,
            };
        }
    }

    /// The last pid that was given out at the last question, where the kernel tells.
    pub(super) fn last_pid(&self) -> Option<u32> {
        match self.state {
            CounterState::Working(last) => last.map(|last| last.last_pid),
            CounterState::Unusable => None,
        }
    }

    /// Who was born since the last question.
    pub(super) fn new_pids(&mut self, host: &Host) -> NewPids {
        let CounterState::Working(last) = self.state else { return NewPids::Unknown };
        let now = self.read(host);
        self.state = CounterState::Working(now);
        match now.zip(last) {
            Some((now, last)) if now.last_pid == last.last_pid => NewPids::None,
            // Pids are given out one after the other; one that went back has begun anew.
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
