//! Messages about TCP connections: sock_diag.
//!
//! Netlink messages (linux/inet_diag.h), several in a row: a header, then attributes. A requested
//! list ends with a message of its own; a closed connection is reported in the same format. The
//! bytes are in `struct tcp_info` (linux/tcp.h), which has grown over time: acknowledged bytes
//! since Linux 4.1, sent bytes since 4.19.
//!
//! What surprises:
//! - `tcpi_bytes_acked` counts SYN and FIN as a byte each, and excludes bytes in flight. So bytes
//!   sent less bytes retransmitted are used where available.
//! - `tcpi_bytes_received` includes the FIN of the peer. For a closed connection it is unknown
//!   whether the peer sent a FIN or a reset; one byte is subtracted in any case, so that the value
//!   is never too large.
//! - A socket closed by its program has no inode any more, and may still send; its cookie stays. In
//!   TIME_WAIT there is no `tcp_info`.
//! - The event of a closed connection does not name its owner: it has neither a user nor an inode.

use super::MalformedFile;
use super::native::{find, u16_at, u32_at, u64_at};

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagMessage {
    /// A connection, or a listening socket.
    Connection(Connection),
    /// The end of the list.
    Done,
    /// The request failed, with the error number.
    Refused(i32),
}

/// A connection, or a listening socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// Its cookie, unique until the next boot.
    pub cookie: u64,
    /// The local port.
    pub port: u16,
    /// Whether it is a listening socket.
    pub is_listening: bool,
    /// The user who created it; 0 when it is closed.
    pub user: u32,
    /// Its inode, as in `/proc/PID/fd`; `None` when no process has it open.
    pub inode: Option<u32>,
    /// Bytes written and not acknowledged by the peer, FIN included.
    pub unconfirmed: u32,
    /// Its bytes; `None` when the kernel does not report them.
    pub moved: Option<TcpBytes>,
}

/// Payload bytes of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpBytes {
    /// Bytes sent, without retransmissions.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

/// Types of messages.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const OF_BOTH_FAMILIES: u16 = 18;
const BY_FAMILY: u16 = 20;

/// Bytes of the netlink header, and of `struct inet_diag_msg` before the attributes.
const HEAD: usize = 16;
const FIXED: usize = 72;

/// The attribute with `struct tcp_info`.
const INFO: u16 = 2;

const LISTENS: u8 = 10;

/// States in which the peer has closed, or may have: CLOSE, CLOSE_WAIT, LAST_ACK, CLOSING.
const MAY_HAVE_END: [u8; 4] = [7, 8, 9, 11];

/// The messages of one datagram; an incomplete one is the last.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Result<DiagMessage, MalformedFile>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let read = u32_at(bytes, 0, "netlink length").and_then(|length| {
            let length = length as usize;
            let whole = bytes.get(..length).filter(|whole| whole.len() >= HEAD);
            Ok((whole.ok_or(MalformedFile("netlink length"))?, length.next_multiple_of(4)))
        });
        match read {
            Ok((whole, next)) => {
                bytes = bytes.get(next..).unwrap_or_default();
                Some(message(whole))
            }
            Err(malformed) => {
                bytes = &[];
                Some(Err(malformed))
            }
        }
    })
}

fn message(whole: &[u8]) -> Result<DiagMessage, MalformedFile> {
    let content = whole.get(HEAD..).unwrap_or_default();
    match u16_at(whole, 4, "netlink type")? {
        OF_BOTH_FAMILIES | BY_FAMILY => connection(content).map(DiagMessage::Connection),
        DONE => Ok(DiagMessage::Done),
        // The kernel sends it negated.
        ERROR => Ok(DiagMessage::Refused((u32_at(content, 0, "errno")? as i32).wrapping_neg())),
        _ => Err(MalformedFile("netlink type")),
    }
}

fn connection(content: &[u8]) -> Result<Connection, MalformedFile> {
    let fields = content.get(FIXED..).ok_or(MalformedFile("connection"))?;
    let state = content.get(1).copied().ok_or(MalformedFile("state"))?;
    let inode = u32_at(content, 68, "inode")?;
    Ok(Connection {
        cookie: u64_at(content, 44, "cookie")?,
        // Ports are in network byte order.
        port: u16::from_be(u16_at(content, 4, "port")?),
        is_listening: state == LISTENS,
        user: u32_at(content, 64, "user")?,
        inode: (inode != 0).then_some(inode),
        unconfirmed: u32_at(content, 60, "queue")?,
        moved: find(fields, INFO)?.and_then(|info| tcp_bytes(info, MAY_HAVE_END.contains(&state))),
    })
}

/// The payload bytes, as far as this kernel reports them.
fn tcp_bytes(info: &[u8], may_have_end: bool) -> Option<TcpBytes> {
    let at = |place: usize| u64_at(info, place, "tcp_info").ok();
    let sent = match (at(200), at(208)) {
        (Some(sent), Some(again)) => sent.saturating_sub(again),
        // SYN and FIN count as a byte each.
        _ => at(120)?.saturating_sub(2),
    };
    Some(TcpBytes { sent, received: at(128)?.saturating_sub(u64::from(may_have_end)) })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut_at_every_byte, parser_tests};
    use super::*;

    /// A list of Linux 6.18: a listening socket, and both ends of a loopback connection that
    /// carried 1000 bytes.
    const LIST: &[u8] = include_bytes!("../../../../fixtures/sock_diag/list.bin");
    /// The event that one of the ends is closed.
    const ENDED: &[u8] = include_bytes!("../../../../fixtures/sock_diag/ended.bin");

    fn all(bytes: &[u8]) -> Result<Vec<DiagMessage>, MalformedFile> {
        messages(bytes).collect()
    }

    fn connections(bytes: &[u8]) -> Vec<Connection> {
        let each = all(bytes).unwrap().into_iter();
        let connections = each.filter_map(|message| match message {
            DiagMessage::Connection(connection) => Some(connection),
            _ => None,
        });
        connections.collect()
    }

    #[test]
    fn list_has_listeners_and_both_ends_of_a_connection() {
        let list = connections(LIST);
        assert_eq!(list.len(), 3);
        let listener = list.iter().find(|one| one.is_listening).unwrap();
        let ends: Vec<_> = list.iter().filter(|one| !one.is_listening).collect();
        let server = ends.iter().find(|one| one.port == listener.port).unwrap();
        let client = ends.iter().find(|one| one.port != listener.port).unwrap();
        assert_eq!(client.moved, Some(TcpBytes { sent: 1000, received: 0 }));
        assert_eq!(server.moved, Some(TcpBytes { sent: 0, received: 1000 }));
        assert!(list.iter().all(|one| one.inode.is_some() && one.user == 0));
    }

    #[test]
    fn closed_connection_has_a_cookie_and_no_owner() {
        let [ended] = connections(ENDED)[..] else { panic!("{:?}", all(ENDED)) };
        let before = connections(LIST).into_iter().find(|one| one.cookie == ended.cookie).unwrap();
        assert_eq!((ended.port, ended.inode), (before.port, None));
        assert_eq!(ended.moved, Some(TcpBytes { sent: 1000, received: 0 }), "an end is no byte");
    }

    #[test]
    fn end_of_list_and_error_are_recognised() {
        let head = |length: u32, kind: u16| {
            [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10]].concat()
        };
        assert_eq!(all(&[head(20, DONE), vec![0; 4]].concat()), Ok(vec![DiagMessage::Done]));
        let refused = [head(20, ERROR), (-13i32).to_ne_bytes().to_vec()].concat();
        assert_eq!(all(&refused), Ok(vec![DiagMessage::Refused(13)]));
        assert_eq!(all(&head(16, 99)), Err(MalformedFile("netlink type")));
        assert_eq!(
            all(&head(4, DONE)),
            Err(MalformedFile("netlink length")),
            "it must not stand still"
        );
    }

    #[test]
    fn older_kernels_report_acknowledged_bytes_or_none() {
        let mut info = vec![0; 224];
        for (place, value) in [(120, 900u64), (128, 50), (200, 1100), (208, 100)] {
            info[place..place + 8].copy_from_slice(&value.to_ne_bytes());
        }
        assert_eq!(tcp_bytes(&info, false), Some(TcpBytes { sent: 1000, received: 50 }));
        assert_eq!(tcp_bytes(&info[..192], true), Some(TcpBytes { sent: 898, received: 49 }));
        assert_eq!(tcp_bytes(&info[..104], false), None);
    }

    #[test]
    fn truncated_message_is_refused() {
        cut_at_every_byte(ENDED, all, |part, _| part.is_empty());
        cut_at_every_byte(LIST, all, |part, whole| whole.starts_with(part));
    }

    parser_tests! {
        mangled: fn arbitrary_bytes_never_panic() {
            all; LIST
        }
    }
}
