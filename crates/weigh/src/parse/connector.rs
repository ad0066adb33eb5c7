//! Messages of the kernel's process connector: fork, exec, rename and exit.
//!
//! Three consecutive headers (linux/netlink.h, linux/connector.h, linux/cn_proc.h), in native byte
//! order. Later kernels may append to a message, so trailing bytes are ignored.
//!
//! What surprises: the kernel's "pid" is a thread and its "tgid" a process, creating a thread is a
//! fork event, and each thread has an exit event.

use std::time::Duration;

use super::MalformedFile;
use super::native::{u16_at, u32_at, u64_at};

/// One message of the connector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectorMessage {
    /// Its time on the monotonic clock.
    pub at: Duration,
    /// The event.
    pub event: ConnectorEvent,
}

/// The event in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectorEvent {
    /// The acknowledgement of a request to listen or to stop.
    Answer {
        /// The number of the request plus one.
        number: u32,
        /// The error number, 0 for success.
        errno: i32,
    },
    /// A thread was created, in a new process or in that of its creator.
    Fork {
        /// The parent process.
        parent: u32,
        /// The new thread.
        child: Task,
    },
    /// A process called exec.
    Exec(Task),
    /// A thread was renamed without exec.
    Rename(Task),
    /// A thread exited.
    Exit {
        /// The thread.
        task: Task,
        /// Its wait status.
        status: i32,
    },
    /// Any other event.
    Other,
}

/// A thread of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Task {
    /// The thread.
    pub thread: u32,
    /// Its process.
    pub process: u32,
}

impl Task {
    /// Whether it is the first thread, whose id is the pid.
    pub fn is_first(self) -> bool {
        self.thread == self.process
    }
}

/// Bytes before the event: `struct nlmsghdr` and `struct cn_msg`.
const HEADERS: usize = 16 + 20;

/// `NLMSG_DONE`, the type of everything the connector sends.
const DONE: u16 = 3;

/// `CN_IDX_PROC` and `CN_VAL_PROC`.
const PROCESSES: (u32, u32) = (1, 1);

/// Reads one message.
pub fn parse(bytes: &[u8]) -> Result<ConnectorMessage, MalformedFile> {
    let whole = u32_at(bytes, 0, "netlink length")? as usize;
    let length = usize::from(u16_at(bytes, 32, "event length")?);
    if whole < HEADERS + length {
        return Err(MalformedFile("netlink length"));
    }
    let event = bytes.get(HEADERS..HEADERS + length).ok_or(MalformedFile("event length"))?;
    if u16_at(bytes, 4, "netlink type")? != DONE {
        return Err(MalformedFile("netlink type"));
    }
    if (u32_at(bytes, 16, "connector")?, u32_at(bytes, 20, "connector")?) != PROCESSES {
        return Err(MalformedFile("connector"));
    }
    let field = |index: usize, name| u32_at(event, 16 + index * 4, name);
    let task = |index: usize| {
        Ok(Task { thread: field(index, "thread")?, process: field(index + 1, "process")? })
    };
    let at = Duration::from_nanos(u64_at(event, 8, "time")?);
    let event = match u32_at(event, 0, "event")? {
        0 => {
            let number = u32_at(bytes, 28, "acknowledged number")?;
            ConnectorEvent::Answer { number, errno: field(0, "errno")? as i32 }
        }
        1 => ConnectorEvent::Fork { parent: field(1, "parent")?, child: task(2)? },
        2 => ConnectorEvent::Exec(task(0)?),
        0x200 => ConnectorEvent::Rename(task(0)?),
        0x8000_0000 => ConnectorEvent::Exit { task: task(0)?, status: field(2, "status")? as i32 },
        _ => ConnectorEvent::Other,
    };
    Ok(ConnectorMessage { at, event })
}

#[cfg(test)]
mod tests {
    use super::super::tests::parser_tests;
    use super::*;

    /// A message as the kernel sends it: 40 bytes of event for every kind.
    const fn message(event: u32, fields: [u32; 6]) -> [u8; 76] {
        let mut words = [0; 19];
        words[0] = 76;
        words[1] = DONE as u32;
        words[4] = 1;
        words[5] = 1;
        words[7] = 4242;
        words[8] = 40;
        words[9] = event;
        words[10] = 1;
        words[11] = 1_500_000_000;
        let mut index = 0;
        while index < fields.len() {
            words[13 + index] = fields[index];
            index += 1;
        }
        let mut bytes = [0; 76];
        let mut index = 0;
        while index < bytes.len() {
            // Lengths and types are 16 bits wide; in little-endian order, which both supported
            // architectures use, they are at the right offsets.
            bytes[index] = words[index / 4].to_le_bytes()[index % 4];
            index += 1;
        }
        bytes
    }

    const FORK: &[u8] = &message(1, [10, 9, 21, 20, 0, 0]);

    fn event_of(bytes: &[u8]) -> ConnectorEvent {
        parse(bytes).unwrap().event
    }

    #[test]
    fn each_kind_of_message_is_read() {
        let first = Task { thread: 20, process: 20 };
        let other = Task { thread: 21, process: 20 };
        assert_eq!(event_of(FORK), ConnectorEvent::Fork { parent: 9, child: other });
        assert!(first.is_first() && !other.is_first());
        assert_eq!(event_of(&message(2, [20, 20, 0, 0, 0, 0])), ConnectorEvent::Exec(first));
        assert_eq!(event_of(&message(0x200, [21, 20, 0, 0, 0, 0])), ConnectorEvent::Rename(other));
        let exit = event_of(&message(0x8000_0000, [20, 20, 0x700, 17, 10, 9]));
        assert_eq!(exit, ConnectorEvent::Exit { task: first, status: 0x700 });
        let answer = event_of(&message(0, [1, 0, 0, 0, 0, 0]));
        assert_eq!(answer, ConnectorEvent::Answer { number: 4242, errno: 1 });
        assert_eq!(event_of(&message(0x40, [1, 0, 0, 0, 0, 0])), ConnectorEvent::Other);
        assert_eq!(parse(FORK).unwrap().at, Duration::from_millis(1500));
    }

    #[test]
    fn trailing_bytes_of_later_kernels_are_ignored() {
        let mut longer = FORK.to_vec();
        longer.extend([7; 8]);
        longer[0] += 8;
        longer[32] += 8;
        assert_eq!(parse(&longer), parse(FORK));
    }

    #[test]
    fn messages_of_other_senders_are_refused() {
        let with = |place: usize, byte: u8| {
            let mut bytes = FORK.to_vec();
            bytes[place] = byte;
            parse(&bytes).unwrap_err().0
        };
        assert_eq!(with(4, 2), "netlink type");
        assert_eq!(with(16, 3), "connector");
        assert_eq!(with(20, 3), "connector");
    }

    #[test]
    fn contradicting_lengths_are_refused() {
        let mut bytes = FORK.to_vec();
        bytes[0] = 75;
        assert_eq!(parse(&bytes), Err(MalformedFile("netlink length")));
        bytes[0] = 76;
        bytes[32] = 8;
        assert!(parse(&bytes).is_err(), "an event without its time");
        bytes[32] = 16;
        assert!(parse(&bytes).is_err(), "a fork without its processes");
    }

    parser_tests! {
        cut: fn truncated_message_is_refused() {
            parse, FORK => refused;
        }

        mangled: fn arbitrary_bytes_never_panic() {
            parse; FORK
        }
    }
}
