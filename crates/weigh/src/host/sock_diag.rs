//! The TCP connections of a network namespace, and events when they are closed.
//!
//! Source: sock_diag over netlink (CONFIG_INET_DIAG), for every user, in the namespace in which the
//! socket was opened. `parse::sock_diag` describes the messages.
//!
//! What surprised us: for a list the kernel walks its whole hash table of connections, however few
//! there are: 0.2 ms with a quarter of a million buckets. A request by family would walk it twice,
//! for IPv4 and IPv6; the older request returns both at once.

use std::time::Duration;

use rustix::io::Errno;
use rustix::net::netlink::SOCK_DIAG;

pub use super::netlink::Drain;
use super::netlink::NetlinkSocket;
pub use crate::parse::sock_diag::{Connection, TcpBytes};
use crate::parse::sock_diag::{DiagMessage, messages};

/// Why connections cannot be listed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no sock_diag.
    #[error("this kernel does not report connections (it was built without CONFIG_INET_DIAG)")]
    Absent,
    /// It is refused.
    #[error("sock_diag is refused, by a sandbox or a security module")]
    NotAllowed,
    /// The list did not end in time.
    #[error("sock_diag: the list of connections does not end")]
    Endless,
    /// Another error.
    #[error("sock_diag: {0}")]
    Failed(#[from] std::io::Error),
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Error {
        match errno {
            Errno::NOENT | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT | Errno::INVAL => {
                Error::Absent
            }
            Errno::PERM | Errno::ACCESS => Error::NotAllowed,
            other => Error::Failed(other.into()),
        }
    }
}

/// A socket on which the kernel lists connections.
pub struct SockDiag {
    socket: NetlinkSocket,
}

/// `TCPDIAG_GETSOCK`, the request for both families.
const GET: u16 = 18;

/// `NLM_F_REQUEST | NLM_F_DUMP`.
const LIST: u16 = 0x301;

/// The states of interest: those in which data can be in flight, and LISTEN. Connections in
/// SYN_RECV have no data yet, those in TIME_WAIT no more.
const STATES: u32 = 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11;

/// The bit of `idiag_ext` that asks for `struct tcp_info`.
const WITH_INFO: u8 = 1 << 1;

impl SockDiag {
    /// Opens the socket.
    pub fn open() -> Result<SockDiag, Error> {
        Ok(SockDiag { socket: NetlinkSocket::open(SOCK_DIAG, 0)? })
    }

    /// Whether connections can be listed: asks for those in no state, for which the kernel walks
    /// no table.
    pub fn check(&mut self) -> Result<(), Error> {
        self.list(0, |_| {})
    }

    /// Calls `each` with every connection and every listening socket.
    pub fn connections(&mut self, each: impl FnMut(&Connection)) -> Result<(), Error> {
        self.list(STATES, each)
    }

    fn list(&mut self, states: u32, mut each: impl FnMut(&Connection)) -> Result<(), Error> {
        // `struct inet_diag_req`: family, ports and addresses are ignored.
        let mut request = [0; 60];
        (request[0], request[3]) = (libc::AF_INET as u8, WITH_INFO);
        request[52..56].copy_from_slice(&states.to_ne_bytes());
        self.socket.send(GET, LIST, &request)?;
        let ended = self.socket.answer(|bytes| {
            for message in messages(bytes) {
                match message {
                    Ok(DiagMessage::Connection(connection)) => each(&connection),
                    Ok(DiagMessage::Done) => return Some(Ok(())),
                    Ok(DiagMessage::Refused(errno)) => {
                        return Some(Err(Errno::from_raw_os_error(errno).into()));
                    }
                    // Messages that cannot be read are ignored.
                    Err(_) => {}
                }
            }
            None
        });
        ended?.ok_or(Error::Endless)?
    }
}

/// A socket on which the kernel reports closed connections.
///
/// While one is open, closing a connection costs the kernel slightly more.
pub struct ClosedConnections {
    socket: NetlinkSocket,
}

/// The multicast groups for closed connections of IPv4 and IPv6, as bits.
const TCP_CLOSED: u32 = 1 << 0 | 1 << 2;

impl ClosedConnections {
    /// Starts to listen.
    pub fn open() -> Result<ClosedConnections, Error> {
        Ok(ClosedConnections { socket: NetlinkSocket::open(SOCK_DIAG, TCP_CLOSED)? })
    }

    /// Calls `each` with the connections closed since the last call, without blocking.
    pub fn next(&mut self, mut each: impl FnMut(&Connection)) -> Result<Drain, Error> {
        Ok(self.socket.drain(|bytes| {
            for message in messages(bytes) {
                if let Ok(DiagMessage::Connection(connection)) = message {
                    each(&connection);
                }
            }
        })?)
    }

    /// Waits until one is closed, at most this long.
    pub fn wait(&self, at_most: Duration) -> Result<(), Error> {
        Ok(self.socket.wait(at_most)?)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;
    use crate::host::HostClock;
    use crate::host::skip::impossible;

    /// Both ends of a connection, client first.
    fn pair(address: &str) -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind(address).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    fn listed(diag: &mut SockDiag, port: u16) -> Vec<Connection> {
        let mut found = Vec::new();
        let each = |one: &Connection| {
            if one.port == port && !one.is_listening {
                found.push(*one);
            }
        };
        diag.connections(each).unwrap();
        found
    }

    #[test]
    fn bytes_of_a_connection_are_listed_exactly() {
        let mut diag = match SockDiag::open() {
            Ok(diag) => diag,
            Err(error) => return impossible(error),
        };
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(_) = TcpListener::bind(address) else { continue };
            let (mut client, mut server) = pair(address);
            client.write_all(&[1; 70_000]).unwrap();
            server.read_exact(&mut [0; 70_000]).unwrap();
            let sent = listed(&mut diag, client.local_addr().unwrap().port());
            let received = listed(&mut diag, server.local_addr().unwrap().port());
            let moved = |list: &[Connection]| list.iter().map(|one| one.moved).collect::<Vec<_>>();
            assert_eq!(moved(&sent), [Some(TcpBytes { sent: 70_000, received: 0 })], "{address}");
            assert_eq!(moved(&received), [Some(TcpBytes { sent: 0, received: 70_000 })]);
        }
    }

    #[test]
    fn closed_connection_is_reported_with_its_bytes() {
        let mut closed = match ClosedConnections::open() {
            Ok(closed) => closed,
            Err(error) => return impossible(error),
        };
        let (mut client, server) = pair("127.0.0.1:0");
        let port = client.local_addr().unwrap().port();
        client.write_all(&[1; 3000]).unwrap();
        drop(client);
        let mut rest = Vec::new();
        (&server).read_to_end(&mut rest).unwrap();
        drop(server);
        let deadline = HostClock::Monotonic.now() + Duration::from_secs(30);
        let mut ended = None;
        while ended.is_none() {
            assert!(HostClock::Monotonic.now() < deadline, "the kernel reports no event");
            closed.wait(Duration::from_secs(1)).unwrap();
            closed.next(|one| ended = ended.or((one.port == port).then_some(*one))).unwrap();
        }
        assert_eq!(ended.and_then(|one| one.moved).map(|moved| moved.sent), Some(3000));
    }

    #[test]
    fn error_messages_name_the_cause() {
        assert!(Error::from(Errno::NOENT).to_string().contains("CONFIG_INET_DIAG"));
        assert!(Error::from(Errno::PERM).to_string().contains("refused"));
        assert!(Error::from(Errno::NOMEM).to_string().starts_with("sock_diag: "));
    }
}
