//! Whether somebody may have been born since the last look.
//!
//! Source: `/proc/loadavg`, which names the last pid that was given out. While it stands
//! still nobody was born, and nothing has to be listed. A sandbox may print a constant, so
//! it is believed only after it has moved for a birth that certainly was.

use crate::host::{Host, Kept};
use crate::parse::{self, loadavg::Loadavg};

/// The births of the machine.
#[derive(Debug)]
pub(super) struct Births {
    state: State,
    file: Kept,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The last pid given out at the last look.
    Told(Option<Loadavg>),
    /// This kernel does not tell.
    Untold,
}

/// What is known of the time since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Born {
    /// Nobody was.
    Nobody,
    /// So many pids were given out, to processes and to threads.
    Count(u32),
    /// It cannot be told how many.
    Unknown,
}

impl Births {
    /// Begins to look, before a birth that [`Births::one_was`] tells of.
    pub(super) fn begin(host: &Host) -> Births {
        let file = Kept::always();
        let mut births = Births { state: State::Untold, file, buffer: Vec::new() };
        births.state = State::Told(births.last(host));
        births
    }

    /// Somebody was certainly born since `begin`: a kernel that tells the truth says so.
    pub(super) fn one_was(&mut self, host: &Host) {
        if let State::Told(before) = self.state {
            self.state = match (before, self.last(host)) {
                (Some(before), Some(now)) if before.last_pid != now.last_pid => State::Told(None),
                _ => State::Untold,
            };
        }
    }

    /// The last pid that was given out at the last question, where the kernel tells.
    pub(super) fn last_pid(&self) -> Option<u32> {
        match self.state {
            State::Told(last) => last.map(|last| last.last_pid),
            State::Untold => None,
        }
    }

    /// Who was born since the last question.
    pub(super) fn since(&mut self, host: &Host) -> Born {
        let State::Told(last) = self.state else { return Born::Unknown };
        let now = self.last(host);
        self.state = State::Told(now);
        match now.zip(last) {
            Some((now, last)) if now.last_pid == last.last_pid => Born::Nobody,
            // Pids are given out one after the other; one that went back has begun anew.
            Some((now, last)) => {
                now.last_pid.checked_sub(last.last_pid).map_or(Born::Unknown, Born::Count)
            }
            None => Born::Unknown,
        }
    }

    fn last(&mut self, host: &Host) -> Option<Loadavg> {
        let bytes = self.file.read(&host.proc, || c"loadavg", &mut self.buffer).ok()?;
        parse::loadavg::parse(bytes).ok()
    }
}
