//! Fork, exec, rename and exit events of processes, from the process connector.
//!
//! Source: the process connector (netlink, linux/cn_proc.h, CONFIG_PROC_EVENTS). It reports the
//! processes of all users of the machine. Since Linux 6.6 every user may listen, before that
//! CAP_NET_ADMIN is needed. It works in the machine's initial namespaces only: in another network
//! namespace there is no connector; in another pid or user namespace the kernel silently ignores
//! the request to listen, and if a process outside listens, events with outside pids arrive all the
//! same. So no event is used before the kernel has acknowledged the request, and only an
//! acknowledgement with our own number counts.
//!
//! What surprised us:
//! - Since 6.6 a listener can name the events it wants, and the acknowledgement is then filtered
//!   out with the others. So the plain request is sent first, and the filter once that is
//!   acknowledged; older kernels ignore the filter.
//! - The exit of the first thread is not the end of a process (`host::exit_tracker`).
//! - A listener that dies without unregistering (SIGKILL) is counted by the kernel for ever, and a
//!   message is built in vain at each fork. Dropping a [`Connector`] unregisters.

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

/// Why there are no process events.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no connector.
    #[error("this kernel has no process connector (it was built without CONFIG_PROC_EVENTS)")]
    Absent,
    /// Only root may listen.
    #[error("before Linux 6.6 only root may listen to the process connector")]
    NotAllowed,
    /// It exists in the initial network namespace only.
    #[error("weigh is in a network namespace of its own, where there is no process connector")]
    OtherNetwork,
    /// It works in the initial pid and user namespace only.
    #[error(
        "the process connector does not answer: weigh is in a pid or user namespace of its own, \
         or the kernel was built without CONFIG_PROC_EVENTS"
    )]
    NoAnswer,
    /// Another error.
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

/// An event of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcEvent {
    /// A process was forked; threads are not reported.
    Forked {
        /// Its parent: the process that forked it, or with CLONE_PARENT that one's parent.
        parent: u32,
        /// The new process.
        child: u32,
    },
    /// It called exec. It has one thread now.
    Executed {
        /// Which process.
        pid: u32,
    },
    /// Its first thread was renamed without exec.
    Renamed {
        /// Which process.
        pid: u32,
    },
    /// It exited, with all its threads.
    Ended {
        /// Which process.
        pid: u32,
        /// How.
        end: End,
    },
}

/// A socket on which the kernel reports process events.
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
    /// Starts to listen. Processes that exist already are not reported: list `/proc` after this.
    pub fn open() -> Result<Connector, Error> {
        let socket = NetlinkSocket::open(CONNECTOR, GROUP)?;
        let mut connector = Connector { socket, exits: ExitTracker::default() };
        let number = RandomState::new().build_hasher().finish() as u32;
        connector.send(number, &[LISTEN])?;
        let ours = number.wrapping_add(1);
        let answer = connector.socket.answer(|bytes| match parse(bytes).ok()?.event {
            ConnectorEvent::Answer { number, errno } if number == ours => Some(errno),
            _ => None,
        })?;
        match answer.ok_or(Error::NoAnswer)? {
            0 => {}
            errno => return Err(Errno::from_raw_os_error(errno).into()),
        }
        connector.send(number, &[LISTEN, WANTED])?;
        Ok(connector)
    }

    /// Calls `each` with the events since the last call and their times on the monotonic clock.
    ///
    /// Does not block: poll the descriptor, and call it once a tick in any case, since the exit of
    /// a process whose threads are traced may have no event of its own. Events of one process are
    /// in order; exits come after the other events of the same call, in no particular order.
    pub fn next(&mut self, mut each: impl FnMut(Duration, ProcEvent)) -> Result<Drain, Error> {
        let drained = self.socket.drain(|bytes| {
            // Messages that are cut or not of this connector are ignored.
            if let Ok(message) = parse(bytes) {
                self.exits.take(message, &mut each);
            }
        })?;
        if drained != Drain::More {
            self.exits.report_exited(exit_tracker::has_exited, &mut each);
        }
        Ok(drained)
    }

    fn send(&self, number: u32, operands: &[u32]) -> rustix::io::Result<()> {
        // struct cn_msg: the recipient, two numbers of which the second is acknowledged, the
        // length, flags.
        let length = size_of_val(operands) as u16;
        let mut message = Vec::new();
        for word in [GROUP, 1, 0, number] {
            message.extend(word.to_ne_bytes());
        }
        message.extend(length.to_ne_bytes());
        message.extend([0; 2]);
        operands.iter().for_each(|operand| message.extend(operand.to_ne_bytes()));
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
        // If the kernel does not accept it, nothing can be done.
        let _ = self.send(0, &[IGNORE]);
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::host::HostClock;
    use crate::host::skip::{impossible, skipped};

    /// A connector, or a skip message where there is none.
    fn listening() -> Option<Connector> {
        match Connector::open() {
            Ok(connector) => Some(connector),
            Err(error) => {
                impossible(error);
                None
            }
        }
    }

    /// Reads events until `last` matches, and returns those of these processes.
    fn events_until(
        connector: &mut Connector,
        last: impl Fn(ProcEvent) -> bool,
        of: &[u32],
    ) -> Vec<ProcEvent> {
        let mut events = Vec::new();
        let deadline = HostClock::Monotonic.now() + Duration::from_secs(20);
        while !events.iter().copied().any(&last) {
            assert!(HostClock::Monotonic.now() < deadline, "the kernel reports no event");
            connector.socket.wait(Duration::from_secs(1)).unwrap();
            connector.next(|_, event| events.push(event)).unwrap();
        }
        events.retain(|event| match event {
            ProcEvent::Forked { child: pid, .. }
            | ProcEvent::Executed { pid }
            | ProcEvent::Renamed { pid }
            | ProcEvent::Ended { pid, .. } => of.contains(pid),
        });
        events
    }

    fn ended(pid: u32) -> impl Fn(ProcEvent) -> bool {
        move |event| matches!(event, ProcEvent::Ended { pid: exited, .. } if exited == pid)
    }

    fn started(program: &str, arguments: &[&str]) -> Child {
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap()
    }

    #[test]
    fn fork_exec_and_exit_are_reported() {
        let Some(mut connector) = listening() else { return };
        let mut child = started("sh", &["-c", "exit 7"]);
        let pid = child.id();
        child.wait().unwrap();
        let events = events_until(&mut connector, ended(pid), &[pid]);
        let forked = ProcEvent::Forked { parent: std::process::id(), child: pid };
        let end = ProcEvent::Ended { pid, end: End::Code(7) };
        assert_eq!(events, [forked, ProcEvent::Executed { pid }, end]);
    }

    #[test]
    fn killed_process_has_its_signal_before_it_is_reaped() {
        let Some(mut connector) = listening() else { return };
        let mut child = started("sh", &["-c", "kill -9 $$"]);
        let events = events_until(&mut connector, ended(child.id()), &[child.id()]);
        let end = ProcEvent::Ended { pid: child.id(), end: End::Signal(libc::SIGKILL) };
        assert_eq!(events.last(), Some(&end));
        child.wait().unwrap();
    }

    #[test]
    fn event_times_are_on_the_monotonic_clock() {
        let Some(mut connector) = listening() else { return };
        let before = HostClock::Monotonic.now();
        let mut child = started("true", &[]);
        child.wait().unwrap();
        let after = HostClock::Monotonic.now();
        let mut times = Vec::new();
        connector
            .next(|at, event| {
                if matches!(event, ProcEvent::Executed { pid } if pid == child.id()) {
                    times.push(at);
                }
            })
            .unwrap();
        assert!(matches!(times[..], [at] if before < at && at < after), "{times:?}");
    }

    #[test]
    fn threads_are_not_reported() {
        let Some(mut connector) = listening() else { return };
        let thread = std::thread::spawn(|| rustix::thread::gettid().as_raw_pid() as u32);
        let thread = thread.join().unwrap();
        let mut child = started("true", &[]);
        child.wait().unwrap();
        let events = events_until(&mut connector, ended(child.id()), &[thread, std::process::id()]);
        assert_eq!(events, []);
    }

    #[test]
    fn overrun_of_the_receive_buffer_is_reported_once() {
        let Some(mut connector) = listening() else { return };
        let smallest_buffer = 0;
        rustix::net::sockopt::set_socket_recv_buffer_size(&connector, smallest_buffer).unwrap();
        for _ in 0..10 {
            started("true", &[]).wait().unwrap();
        }
        assert_eq!(connector.next(|_, _| {}).unwrap(), Drain::Overrun);
        assert_eq!(connector.next(|_, _| {}).unwrap(), Drain::Complete);
    }

    #[test]
    fn process_exits_with_its_last_thread() {
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
        let events = events_until(&mut connector, ended(marker.id()), &[child.id()]);
        assert!(!events.iter().copied().any(ended(child.id())), "{events:?}");
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let events = events_until(&mut connector, ended(child.id()), &[child.id()]);
        assert_eq!(events, [ProcEvent::Ended { pid: child.id(), end: End::Code(7) }]);
        child.wait().unwrap();
    }

    #[test]
    fn error_messages_name_the_cause() {
        let text = |errno| Error::from(errno).to_string();
        assert!(text(Errno::CONNREFUSED).contains("network namespace"));
        assert!(text(Errno::PERM).contains("only root"));
        assert!(text(Errno::PROTONOSUPPORT).contains("no process connector"));
        assert!(text(Errno::NOMEM).starts_with("process connector: "));
    }
}
