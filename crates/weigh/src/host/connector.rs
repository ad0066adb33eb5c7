//! Processes as they come and go, told by the kernel at the moment it happens.
//!
//! Source: the process connector (netlink, linux/cn_proc.h, CONFIG_PROC_EVENTS). It tells
//! of the whole machine, everybody's processes. Since Linux 6.6 every user may listen,
//! before that CAP_NET_ADMIN is needed. It works in the machine's first namespaces only: a
//! network namespace of one's own has no connector; in a pid or user namespace of one's
//! own the kernel ignores who wants to listen, without a word, and if somebody outside
//! listens, events with the pids of outside arrive all the same. So nothing is believed
//! before the kernel has answered, and an answer is ours only if it has our number.
//!
//! What surprised us:
//! - Since 6.6 a listener can say which events it wants, and the answer is then left out
//!   with the others. So the plain request comes first, and the wish once it is answered;
//!   an older kernel passes over the wish.
//! - The exit of the first thread is not the end of a process (`host::exit_tracker`).
//! - A listener that goes without a word (SIGKILL) is counted by the kernel for ever,
//!   and a message is made for nobody at each fork. Dropping a [`Connector`] says the word.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::CONNECTOR;

use super::exit_tracker::{self, ExitTracker};
pub use super::netlink::Drain;
use super::netlink::NetlinkSocket;
use crate::model::End;
use crate::parse::connector::{ConnectorEvent, parse};

/// Why the kernel does not tell.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It cannot.
    #[error("this kernel has no process connector (it was built without CONFIG_PROC_EVENTS)")]
    Absent,
    /// It tells root only.
    #[error("before Linux 6.6 only root may listen to the process connector")]
    NotAllowed,
    /// It tells in the first network namespace only.
    #[error("weigh is in a network namespace of its own, where there is no process connector")]
    OtherNetwork,
    /// It tells in the first pid and user namespace only.
    #[error(
        "the process connector does not answer: weigh is in a pid or user namespace of its own, \
         or the kernel was built without CONFIG_PROC_EVENTS"
    )]
    NoAnswer,
    /// Something else is wrong.
    #[error("process connector: {0}")]
    Failed(#[from] std::io::Error),
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Error {
        match errno {
            Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => Error::Absent,
            Errno::PERM | Errno::ACCESS => Error::NotAllowed,
            Errno::CONNREFUSED => Error::OtherNetwork,
            other => Error::Failed(other.into()),
        }
    }
}

/// Something that happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcEvent {
    /// A process was made; threads are not told of.
    Forked {
        /// Its parent: who made it, or with CLONE_PARENT the parent of that.
        parent: u32,
        /// The new process.
        child: u32,
    },
    /// It became another program. It has one thread now.
    Executed {
        /// Which process.
        pid: u32,
    },
    /// It gave itself (its first thread) another name without exec.
    Renamed {
        /// Which process.
        pid: u32,
    },
    /// It ended, with all its threads.
    Ended {
        /// Which process.
        pid: u32,
        /// How.
        end: End,
    },
}

/// A line to the kernel on which it tells of processes.
pub struct Connector {
    socket: NetlinkSocket,
    exits: ExitTracker,
}

/// `CN_IDX_PROC` as a set of groups.
const GROUP: u32 = 1;

/// `PROC_CN_MCAST_LISTEN` and `PROC_CN_MCAST_IGNORE`.
const LISTEN: u32 = 1;
const IGNORE: u32 = 2;

/// Forks, execs, renames and exits.
const WANTED: u32 = 0x1 | 0x2 | 0x200 | 0x8000_0000;

impl Connector {
    /// Begins to listen. Who was there before is not told of: look through `/proc` after this.
    pub fn open() -> Result<Connector, Error> {
        let socket = NetlinkSocket::open(CONNECTOR, GROUP)?;
        let mut connector = Connector { socket, exits: ExitTracker::default() };
        let number = RandomState::new().build_hasher().finish() as u32;
        connector.say(number, &[LISTEN])?;
        let ours = number.wrapping_add(1);
        let answer = connector.socket.answer(|bytes| match parse(bytes).ok()?.event {
            ConnectorEvent::Answer { number, errno } if number == ours => Some(errno),
            _ => None,
        })?;
        match answer.ok_or(Error::NoAnswer)? {
            0 => {}
            errno => return Err(Errno::from_raw_os_error(errno).into()),
        }
        connector.say(number, &[LISTEN, WANTED])?;
        Ok(connector)
    }

    /// Hands over what happened since the last call and when, on the monotonic clock.
    ///
    /// Does not wait: poll the descriptor, and ask once a tick in any case, since the end of
    /// a process whose threads are traced may have no event of its own. Events of a process
    /// come in order; ends come after what else is told in the same call, in no order of theirs.
    pub fn next(&mut self, mut each: impl FnMut(Duration, ProcEvent)) -> Result<Drain, Error> {
        let heard = self.socket.drain(|bytes| {
            // A message that is not whole or not of this connector is none.
            if let Ok(message) = parse(bytes) {
                self.exits.take(message, &mut each);
            }
        })?;
        if heard != Drain::More {
            self.exits.report_exited(exit_tracker::has_exited, &mut each);
        }
        Ok(heard)
    }

    fn say(&self, number: u32, words: &[u32]) -> rustix::io::Result<()> {
        // struct cn_msg: whom it is for, two numbers of which the second is answered,
        // how long it is, flags.
        let length = size_of_val(words) as u16;
        let mut message = Vec::new();
        for word in [GROUP, 1, 0, number] {
            message.extend(word.to_ne_bytes());
        }
        message.extend(length.to_ne_bytes());
        message.extend([0; 2]);
        words.iter().for_each(|word| message.extend(word.to_ne_bytes()));
        self.socket.send(libc::NLMSG_DONE as u16, 0, &message)
    }
}

impl AsFd for Connector {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Connector {
    fn drop(&mut self) {
        // Nothing can be done about a kernel that does not take it.
        let _ = self.say(0, &[IGNORE]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::host::Clock;
    use crate::host::skip::{impossible, skipped};

    /// A line to the kernel, or a word that there is none here.
    fn listening() -> Option<Connector> {
        match Connector::open() {
            Ok(connector) => Some(connector),
            Err(error) => {
                impossible(error);
                None
            }
        }
    }

    /// Listens until something happens, and says what of these processes happened before.
    fn heard_until(
        connector: &mut Connector,
        last: impl Fn(ProcEvent) -> bool,
        of: &[u32],
    ) -> Vec<ProcEvent> {
        let mut heard = Vec::new();
        let patience = Clock::Monotonic.now() + Duration::from_secs(20);
        while !heard.iter().copied().any(&last) {
            assert!(Clock::Monotonic.now() < patience, "the kernel does not tell");
            connector.socket.wait(Duration::from_secs(1)).unwrap();
            connector.next(|_, happened| heard.push(happened)).unwrap();
        }
        heard.retain(|happened| match happened {
            ProcEvent::Forked { child: pid, .. }
            | ProcEvent::Executed { pid }
            | ProcEvent::Renamed { pid }
            | ProcEvent::Ended { pid, .. } => of.contains(pid),
        });
        heard
    }

    fn ended(pid: u32) -> impl Fn(ProcEvent) -> bool {
        move |happened| matches!(happened, ProcEvent::Ended { pid: who, .. } if who == pid)
    }

    fn started(program: &str, arguments: &[&str]) -> Child {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn a_process_is_told_of_from_fork_to_end() {
        let Some(mut connector) = listening() else { return };
        let mut child = started("sh", &["-c", "exit 7"]);
        let pid = child.id();
        child.wait().unwrap();
        let heard = heard_until(&mut connector, ended(pid), &[pid]);
        let forked = ProcEvent::Forked { parent: std::process::id(), child: pid };
        let end = ProcEvent::Ended { pid, end: End::Code(7) };
        assert_eq!(heard, [forked, ProcEvent::Executed { pid }, end]);
    }

    #[test]
    fn a_process_that_was_killed_has_its_signal_before_anybody_waits_for_it() {
        let Some(mut connector) = listening() else { return };
        let mut child = started("sh", &["-c", "kill -9 $$"]);
        let heard = heard_until(&mut connector, ended(child.id()), &[child.id()]);
        let end = ProcEvent::Ended { pid: child.id(), end: End::Signal(libc::SIGKILL) };
        assert_eq!(heard.last(), Some(&end));
        child.wait().unwrap();
    }

    #[test]
    fn times_are_those_of_the_monotonic_clock() {
        let Some(mut connector) = listening() else { return };
        let before = Clock::Monotonic.now();
        let mut child = started("true", &[]);
        child.wait().unwrap();
        let after = Clock::Monotonic.now();
        let mut times = Vec::new();
        connector
            .next(|at, happened| {
                if matches!(happened, ProcEvent::Executed { pid } if pid == child.id()) {
                    times.push(at);
                }
            })
            .unwrap();
        assert!(matches!(times[..], [at] if before < at && at < after), "{times:?}");
    }

    #[test]
    fn threads_are_not_processes() {
        let Some(mut connector) = listening() else { return };
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_pid() as u32);
        let thread = thread.join().unwrap();
        let mut child = started("true", &[]);
        child.wait().unwrap();
        let heard = heard_until(&mut connector, ended(child.id()), &[thread, std::process::id()]);
        assert_eq!(heard, []);
    }

    #[test]
    fn what_comes_faster_than_it_is_heard_is_said_to_be_lost() {
        let Some(mut connector) = listening() else { return };
        let room_for_few = 0;
        rustix::net::sockopt::set_socket_recv_buffer_size(&connector, room_for_few).unwrap();
        for _ in 0..10 {
            started("true", &[]).wait().unwrap();
        }
        assert_eq!(connector.next(|_, _| {}).unwrap(), Drain::Overrun);
        assert_eq!(connector.next(|_, _| {}).unwrap(), Drain::Complete);
    }

    #[test]
    fn a_process_whose_first_thread_ended_goes_on_until_its_last_one_does() {
        let Some(mut connector) = listening() else { return };
        let script = r#"
import ctypes, os, platform, threading, time
def first_has_ended():
    return open(f"/proc/{os.getpid()}/stat").read().rsplit(")")[-1].split()[0] == "Z"
def go_on():
    while not first_has_ended():
        time.sleep(0.001)
    print("alone", flush=True)
    os.read(0, 1)
    os._exit(7)
threading.Thread(target=go_on).start()
ctypes.CDLL(None).syscall({"x86_64": 60, "aarch64": 93}[platform.machine()], 3)
"#;
        if Command::new("python3").arg("-V").output().is_err() {
            return skipped("there is no python3");
        }
        let mut child = started("python3", &["-c", script]);
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "alone\n");
        let mut marker = started("true", &[]);
        marker.wait().unwrap();
        let heard = heard_until(&mut connector, ended(marker.id()), &[child.id()]);
        assert!(!heard.iter().copied().any(ended(child.id())), "{heard:?}");
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let heard = heard_until(&mut connector, ended(child.id()), &[child.id()]);
        assert_eq!(heard, [ProcEvent::Ended { pid: child.id(), end: End::Code(7) }]);
        child.wait().unwrap();
    }

    #[test]
    fn an_error_says_why_in_words() {
        let words = |errno| Error::from(errno).to_string();
        assert!(words(Errno::CONNREFUSED).contains("network namespace"));
        assert!(words(Errno::PERM).contains("only root"));
        assert!(words(Errno::PROTONOSUPPORT).contains("no process connector"));
        assert!(words(Errno::NOMEM).starts_with("process connector: "));
    }
}
