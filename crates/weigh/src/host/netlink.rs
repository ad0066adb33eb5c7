//! A netlink socket that accepts messages from the kernel only.
//!
//! Any process may send to a netlink socket whose port it guesses. Messages that are not from the
//! kernel (port 0) or longer than the kernel's are ignored. When messages arrive faster than they
//! are read, the kernel drops them and reports it once (ENOBUFS); it goes on dropping until the
//! socket is empty.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::netlink::SocketAddrNetlink;
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendFlags, SocketFlags, SocketType, bind, recvfrom, sendto,
    socket_with, sockopt,
};

use super::HostClock;

/// Size of the receive buffer. A message of the process connector takes about 800 bytes of it, so
/// this holds a burst of twenty thousand.
const RECEIVE_BUFFER: usize = 8 << 20;

/// No requested message is longer, and the kernel fills messages of a list up to this.
const LONGEST_MESSAGE: usize = 32 << 10;

/// The kernel answers before `sendto` returns; this is a safety margin.
const ANSWER_TIMEOUT: Duration = Duration::from_millis(200);

/// Bytes of `struct nlmsghdr`.
const HEADER: usize = 16;

/// Messages read in one call, so that a flood does not block the caller.
const MAX_BATCH: usize = 16_384;

/// How far the socket was drained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drain {
    /// Every queued message was read.
    Complete,
    /// There are more messages queued.
    More,
    /// Messages were dropped. To know all processes, list `/proc` now.
    Overrun,
}

/// A socket to the kernel.
pub(super) struct NetlinkSocket {
    fd: OwnedFd,
    /// Zeroed by the kernel where it is used: most answers are short.
    buffer: Vec<u8>,
    /// Whether messages were dropped since the socket was last found empty.
    lost: bool,
}

/// The result of one receive call.
enum Received<'a> {
    /// A complete message of the kernel.
    Message(&'a [u8]),
    /// Messages were dropped before this.
    Overrun,
    /// The queue is empty.
    Empty,
}

impl NetlinkSocket {
    /// A socket subscribed to a set of multicast groups.
    pub(super) fn open(protocol: Protocol, groups: u32) -> rustix::io::Result<NetlinkSocket> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let kind = SocketType::DGRAM;
        let fd = socket_with(AddressFamily::NETLINK, kind, flags, Some(protocol))?;
        // Only root may exceed the limit (net.core.rmem_max).
        if sockopt::set_socket_recv_buffer_size_force(&fd, RECEIVE_BUFFER).is_err() {
            sockopt::set_socket_recv_buffer_size(&fd, RECEIVE_BUFFER)?;
        }
        bind(&fd, &SocketAddrNetlink::new(0, groups))?;
        Ok(NetlinkSocket { fd, buffer: vec![0; LONGEST_MESSAGE], lost: false })
    }

    /// Sends one message to the kernel and puts the header before it.
    pub(super) fn send(&self, kind: u16, flags: u16, payload: &[u8]) -> rustix::io::Result<()> {
        let length = HEADER + payload.len();
        let mut message = Vec::with_capacity(length);
        message.extend((length as u32).to_ne_bytes());
        message.extend(kind.to_ne_bytes());
        message.extend(flags.to_ne_bytes());
        // Sequence number and our port: there is one request at a time, and the kernel knows our
        // port.
        message.extend([0; 8]);
        message.extend(payload);
        sendto(&self.fd, &message, SendFlags::empty(), &SocketAddrNetlink::new(0, 0))?;
        Ok(())
    }

    /// Calls `each` with the queued messages, without blocking.
    pub(super) fn drain(&mut self, mut each: impl FnMut(&[u8])) -> rustix::io::Result<Drain> {
        for _ in 0..MAX_BATCH {
            match self.receive()? {
                Received::Message(bytes) => each(bytes),
                Received::Overrun => self.lost = true,
                Received::Empty => {
                    let lost = std::mem::take(&mut self.lost);
                    return Ok(if lost { Drain::Overrun } else { Drain::Complete });
                }
            }
        }
        Ok(Drain::More)
    }

    /// Skips messages until one is the answer; `None` after the timeout.
    pub(super) fn answer<T>(
        &mut self,
        mut read: impl FnMut(&[u8]) -> Option<T>,
    ) -> rustix::io::Result<Option<T>> {
        let until = HostClock::Monotonic.now() + ANSWER_TIMEOUT;
        loop {
            match self.receive()? {
                Received::Message(bytes) => {
                    if let Some(answer) = read(bytes) {
                        return Ok(Some(answer));
                    }
                }
                Received::Overrun => {}
                Received::Empty => self.wait(until.saturating_sub(HostClock::Monotonic.now()))?,
            }
            // Other messages may arrive without end.
            if HostClock::Monotonic.now() >= until {
                return Ok(None);
            }
        }
    }

    /// The next queued message.
    fn receive(&mut self) -> rustix::io::Result<Received<'_>> {
        let length = loop {
            match recvfrom(&self.fd, &mut self.buffer[..], RecvFlags::TRUNC) {
                Ok((_, length, sender)) => {
                    let sender = sender.and_then(|any| SocketAddrNetlink::try_from(any).ok());
                    let from_kernel = sender.is_some_and(|sender| sender.pid() == 0);
                    if from_kernel && length <= LONGEST_MESSAGE {
                        break length;
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Received::Empty),
                Err(Errno::NOBUFS) => return Ok(Received::Overrun),
                Err(error) => return Err(error),
            }
        };
        Ok(Received::Message(&self.buffer[..length]))
    }

    /// Waits for a message, at most this long.
    pub(super) fn wait(&self, at_most: Duration) -> rustix::io::Result<()> {
        let mut source = [PollFd::new(&self.fd, PollFlags::IN)];
        let at_most = Timespec {
            tv_sec: at_most.as_secs() as i64,
            tv_nsec: i64::from(at_most.subsec_nanos()),
        };
        match poll(&mut source, Some(&at_most)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl AsFd for NetlinkSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
