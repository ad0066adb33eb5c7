//! Words from inside the run: how `weigh phase` and `weigh mark` reach the recording.
//!
//! A named pipe in the recording's directory. A line of at most PIPE_BUF bytes
//! arrives whole whoever else writes; a pipe without a reader refuses at once,
//! so nobody who is measured ever waits for a monitor that is gone.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};
use serde::{Deserialize, Serialize};

use super::{Error, Event};

/// What the kernel delivers in one piece (`PIPE_BUF`).
const LONGEST: usize = 4096;

/// A word that arrived, or is to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Word {
    /// The sender's monotonic clock, in nanoseconds: the same clock as the run's.
    pub nanoseconds: u64,
    /// The phase inside whose command it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// What it says: a phase's start or end, or a mark.
    #[serde(flatten)]
    pub event: Event,
}

/// The reading end, which the monitor holds.
pub struct Inbox {
    path: PathBuf,
    pipe: File,
    pending: Vec<u8>,
}

impl Inbox {
    /// Makes the pipe in a recording's directory.
    pub fn create(directory: &Path) -> Result<Inbox, Error> {
        let path = directory.join("inbox");
        let failed = |source: std::io::Error| Error::file(&path, source);
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(|errno| failed(errno.into()))?;
        // Open for writing too, so that it never reads as closed between two words.
        let pipe = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .map_err(failed)?;
        Ok(Inbox { path, pipe, pending: Vec::new() })
    }

    /// The words that have arrived; what is not a word of ours is dropped.
    pub fn take(&mut self) -> Vec<Word> {
        // One pipe's worth: whoever floods it does not keep us from everything else.
        let mut bytes = [0; 16 * LONGEST];
        if let Ok(count) = self.pipe.read(&mut bytes) {
            self.pending.extend_from_slice(&bytes[..count]);
        }
        let whole = self.pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let words = self.pending[..whole]
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<Word>(line).ok())
            .filter(|word| {
                matches!(
                    word.event,
                    Event::PhaseStart { .. }
                        | Event::PhaseCommand { .. }
                        | Event::PhaseEnd { .. }
                        | Event::Mark { .. }
                )
            })
            .collect();
        self.pending.drain(..whole);
        // Somebody who writes without end and without newlines gets no more of our memory.
        if self.pending.len() > LONGEST {
            self.pending.clear();
        }
        words
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // The run is over; a pipe that stays behind refuses its writers all the same.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Puts an event into the recording that is running in a directory.
pub fn send(directory: &Path, now: Duration, event: Event) -> Result<(), Error> {
    send_word(directory, &Word { nanoseconds: now.as_nanos() as u64, within: None, event })
}

/// Sends a word to the recording that is running in a directory.
pub fn send_word(directory: &Path, word: &Word) -> Result<(), Error> {
    let path = directory.join("inbox");
    let failed = |source: std::io::Error| Error::file(&path, source);
    let mut line = serde_json::to_vec(word).map_err(|error| failed(error.into()))?;
    line.push(b'\n');
    if line.len() > LONGEST {
        return Err(Error::malformed(
            &path,
            format!("a name or text is longer than {LONGEST} bytes"),
        ));
    }
    let mut pipe = OpenOptions::new()
        .write(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(&path)
        .map_err(failed)?;
    pipe.write_all(&line).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(text: &str) -> Event {
        Event::Mark { text: text.to_owned() }
    }

    #[test]
    fn words_arrive_in_order_with_the_senders_time() {
        let directory = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::create(directory.path()).unwrap();
        for (time, text) in [(5, "one"), (7, "two\nlines")] {
            send(directory.path(), Duration::from_nanos(time), mark(text)).unwrap();
        }
        let words = inbox.take();
        assert_eq!(words.iter().map(|word| word.nanoseconds).collect::<Vec<_>>(), [5, 7]);
        assert_eq!(words[1].event, mark("two\nlines"));
        assert_eq!(inbox.take(), []);
    }

    #[test]
    fn nonsense_and_events_that_are_not_the_commands_to_tell_are_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::create(directory.path()).unwrap();
        let fault = Event::Fault { source: "x".into(), why: "y".into() };
        send(directory.path(), Duration::ZERO, fault).unwrap();
        let path = directory.path().join("inbox");
        std::fs::write(&path, b"hello\n{\"nanoseconds\":1}\n\xff\n").unwrap();
        send(directory.path(), Duration::ZERO, mark("kept")).unwrap();
        assert_eq!(inbox.take().len(), 1);
    }

    #[test]
    fn without_a_monitor_nobody_waits() {
        let directory = tempfile::tempdir().unwrap();
        let inbox = Inbox::create(directory.path()).unwrap();
        let path = inbox.path.clone();
        drop(inbox);
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let refused = send(directory.path(), Duration::ZERO, mark("x")).unwrap_err();
        assert!(refused.to_string().contains("No such device"), "{refused}");
    }
}
