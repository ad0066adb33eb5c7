//! Control messages: how `weigh phase` and `weigh mark` reach the recording.
//!
//! A named pipe in the recording's directory. A line of at most PIPE_BUF bytes arrives whole
//! whatever other processes write; a pipe without a reader refuses at once, so no measured process
//! ever waits for a monitor that has exited.
//!
//! weigh sends JSON with the time at which it was sent. A shell sends a line of plain text, without
//! a process: `printf 'mark loaded\n' 1<>"$WEIGH_INBOX"`. Opened for reading and writing the pipe
//! never blocks; opened for writing alone it would, once the monitor is gone.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode};
use serde::{Deserialize, Serialize};

use super::events::{EventData, HelperUsage};
use super::{Error, Event};

/// What the kernel delivers atomically (`PIPE_BUF`).
const LONGEST: usize = 4096;

/// Messages that are accepted each second; those beyond are counted and dropped. Nobody needs more
/// phases and marks, and each costs a line of the recording.
pub const MOST_EACH_SECOND: u32 = 5_000;

/// A control message that arrived, or is to be sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ControlMessage {
    /// When it was sent by the machine's monotonic clock, in nanoseconds: the run's clock where
    /// both are in the machine's time namespace. A time in the future is when it arrives.
    pub nanoseconds: u64,
    /// The phase inside whose command it was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The peak RSS of the sender, when it is weigh: it is not the run's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sender_rss_bytes: Option<u64>,
    /// What the sender has used itself, when it is weigh and this is its last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper: Option<HelperUsage>,
    /// Its content: a phase's start or end, or a mark.
    #[serde(flatten)]
    pub event: Event,
    /// What the sender says of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<EventData>,
}

/// The pipe of the recording in a directory.
pub fn path(directory: &Path) -> PathBuf {
    directory.join("inbox")
}

impl ControlMessage {
    /// A message that is sent now, by the monotonic clock of this machine.
    pub fn new(now: Duration, event: Event) -> ControlMessage {
        ControlMessage {
            nanoseconds: now.as_nanos() as u64,
            within: None,
            sender_rss_bytes: None,
            helper: None,
            event,
            data: None,
        }
    }

    /// Reads a line: JSON, or `mark TEXT`, `phase NAME` and `phase-end` of a shell. What a shell
    /// sends has the time at which it arrives.
    fn parse(line: &[u8]) -> Option<ControlMessage> {
        if line.starts_with(b"{") {
            return serde_json::from_slice(line).ok();
        }
        let line = std::str::from_utf8(line).ok()?.trim();
        let event =
            match line.split_once(' ').map_or((line, ""), |(kind, text)| (kind, text.trim())) {
                ("mark", text) if !text.is_empty() => Event::Mark { text: text.to_owned() },
                ("phase", name) if !name.is_empty() => {
                    Event::PhaseStart { id: String::new(), name: name.to_owned(), parent: None }
                }
                ("phase-end", "") => {
                    Event::PhaseEnd { id: String::new(), usage: None, end: None, account: None }
                }
                _ => return None,
            };
        Some(ControlMessage { nanoseconds: u64::MAX, ..ControlMessage::new(Duration::ZERO, event) })
    }
}

/// The reading end, which the monitor holds.
pub struct Inbox {
    path: PathBuf,
    pipe: File,
    pending: Vec<u8>,
    /// When this second began, and how many arrived in it.
    second: Duration,
    taken: u32,
    dropped: u64,
}

impl Inbox {
    /// Creates the pipe in a recording's directory.
    pub fn create(directory: &Path) -> Result<Inbox, Error> {
        let path = path(directory);
        let failed = |source: std::io::Error| Error::file(&path, source);
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)
            .map_err(|errno| failed(errno.into()))?;
        // Open for writing too, so that it never reads as closed between two messages.
        let pipe = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&path)
            .map_err(failed)?;
        let (second, taken, dropped) = (Duration::ZERO, 0, 0);
        Ok(Inbox { path, pipe, pending: Vec::new(), second, taken, dropped })
    }

    /// How many messages were dropped because of the rate limit.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The control messages that have arrived until now; anything else is dropped.
    pub fn take(&mut self, now: Duration) -> Vec<ControlMessage> {
        if now >= self.second + Duration::from_secs(1) {
            (self.second, self.taken) = (now, 0);
        }
        // One pipe's worth: a process that floods it does not block everything else.
        let mut bytes = [0; 16 * LONGEST];
        if let Ok(count) = self.pipe.read(&mut bytes) {
            self.pending.extend_from_slice(&bytes[..count]);
        }
        let whole = self.pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let mut messages = Vec::new();
        for line in self.pending[..whole].split_inclusive(|byte| *byte == b'\n') {
            if self.taken == MOST_EACH_SECOND {
                self.dropped += 1;
                continue;
            }
            self.taken += 1;
            messages.extend(ControlMessage::parse(line).filter(is_run_event).map(|mut message| {
                // The message itself: only its receiver knows how long it is.
                if let Some(helper) = &mut message.helper {
                    helper.io.written_bytes += line.len() as u64;
                    helper.io.write_calls += 1;
                }
                message
            }));
        }
        self.pending.drain(..whole);
        // A process that writes endlessly without newlines gets no more of our memory.
        if self.pending.len() > LONGEST {
            self.pending.clear();
        }
        messages
    }
}

/// Whether a message is about what the run does; all other events are the monitor's to record.
fn is_run_event(message: &ControlMessage) -> bool {
    matches!(
        message.event,
        Event::PhaseStart { .. }
            | Event::PhaseCommand { .. }
            | Event::PhaseEnd { .. }
            | Event::Mark { .. }
    )
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // The run is over; a pipe that is left behind still refuses its writers.
        let _ = std::fs::remove_file(&self.path);
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

/// Sends an event to the recording that is running in a directory.
pub fn send(directory: &Path, now: Duration, event: Event) -> Result<(), Error> {
    send_message(directory, &ControlMessage::new(now, event))
}

/// Sends a control message to the recording that is running in a directory.
pub fn send_message(directory: &Path, message: &ControlMessage) -> Result<(), Error> {
    let path = path(directory);
    let failed = |source: std::io::Error| Error::file(&path, source);
    let mut line = serde_json::to_vec(message).map_err(|error| failed(error.into()))?;
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
    fn control_messages_arrive_in_order_with_the_senders_time() {
        let directory = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::create(directory.path()).unwrap();
        for (time, text) in [(5, "one"), (7, "two\nlines")] {
            send(directory.path(), Duration::from_nanos(time), mark(text)).unwrap();
        }
        let messages = inbox.take(Duration::ZERO);
        assert_eq!(messages.iter().map(|message| message.nanoseconds).collect::<Vec<_>>(), [5, 7]);
        assert_eq!(messages[1].event, mark("two\nlines"));
        assert_eq!(inbox.take(Duration::ZERO), []);
    }

    #[test]
    fn invalid_messages_and_events_of_the_monitor_are_dropped() {
        let directory = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::create(directory.path()).unwrap();
        let fault = Event::Fault { source: "x".into(), why: "y".into() };
        send(directory.path(), Duration::ZERO, fault).unwrap();
        let path = directory.path().join("inbox");
        let invalid = b"hello\n{\"nanoseconds\":1}\n\xff\nmark\nphase \nphase-end x\nmark \xff\n\n";
        std::fs::write(&path, invalid).unwrap();
        send(directory.path(), Duration::ZERO, mark("kept")).unwrap();
        assert_eq!(inbox.take(Duration::ZERO).len(), 1);
    }

    #[test]
    fn shell_sends_marks_and_phases_as_plain_lines() {
        let directory = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::create(directory.path()).unwrap();
        std::fs::write(path(directory.path()), "mark a  b {}\nphase solve it\nphase-end\n")
            .unwrap();
        let messages = inbox.take(Duration::ZERO);
        assert!(messages.iter().all(|message| message.nanoseconds == u64::MAX));
        let events: Vec<Event> = messages.into_iter().map(|message| message.event).collect();
        let (id, parent) = (String::new(), None);
        let phase = Event::PhaseStart { id: id.clone(), name: "solve it".to_owned(), parent };
        let end = Event::PhaseEnd { id, usage: None, end: None, account: None };
        assert_eq!(events, [mark("a  b {}"), phase, end]);
    }

    #[test]
    fn flood_of_marks_is_cut_off_each_second_and_the_dropped_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let mut inbox = Inbox::create(directory.path()).unwrap();
        let (mut sent, mut taken) = (0, 0);
        let flood = |inbox: &mut Inbox, now: Duration| {
            let mut taken = 0;
            for _ in 0..MOST_EACH_SECOND + 100 {
                send(directory.path(), now, mark("x")).unwrap();
                taken += inbox.take(now).len() as u64;
            }
            taken
        };
        for second in 1..=2 {
            taken += flood(&mut inbox, Duration::from_secs(second));
            sent += u64::from(MOST_EACH_SECOND) + 100;
        }
        assert_eq!(taken, 2 * u64::from(MOST_EACH_SECOND));
        assert_eq!(inbox.dropped(), sent - taken);
    }

    #[test]
    fn sender_does_not_wait_without_a_monitor() {
        let directory = tempfile::tempdir().unwrap();
        let inbox = Inbox::create(directory.path()).unwrap();
        let path = inbox.path.clone();
        drop(inbox);
        rustix::fs::mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let refused = send(directory.path(), Duration::ZERO, mark("x")).unwrap_err();
        assert!(refused.to_string().contains("No such device"), "{refused}");
    }
}
