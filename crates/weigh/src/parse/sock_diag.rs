//! What the kernel says of TCP connections: sock_diag.
//!
//! Messages of netlink (linux/inet_diag.h), several in a row: a head, then fields. The list
//! that is asked for ends with a message of its own; a connection that ends is told of in one
//! of the same form. What was moved is in `struct tcp_info` (linux/tcp.h), which has grown with
//! the kernels: bytes since Linux 4.1, and since 4.19 those that were sent.
//!
//! What surprises:
//! - `tcpi_bytes_acked` counts the beginning and the end of a connection as a byte each, and
//!   lags behind what is on its way. So bytes that were sent, less those sent again, are taken
//!   where they are known.
//! - `tcpi_bytes_received` has one more when the other side has closed. Of a connection that has
//!   ended nobody knows whether it had, or was broken off; it is taken off all the same, so that
//!   what is told is never too much.
//! - A connection that its program has closed has no inode any more, and goes on; its cookie
//!   stays. Of one that waits for stray packets alone (TIME_WAIT) there is no `tcp_info`.
//! - The word that a connection has ended does not say whose it was: it has neither a user
//!   nor an inode then.

use super::MalformedFile;
use super::native::{find, half, long, word};

/// One message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiagMessage {
    /// A connection, or somebody who listens for some.
    Connection(Connection),
    /// The list is whole.
    Done,
    /// What was asked is refused, and why.
    Refused(i32),
}

/// A connection, or somebody who listens for some.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connection {
    /// Its number, which no other has until the next boot.
    pub cookie: u64,
    /// The port on this side.
    pub port: u16,
    /// Whether it listens.
    pub is_listening: bool,
    /// The user who made it; 0 when it has ended.
    pub user: u32,
    /// The inode by which `/proc/PID/fd` knows it; `None` when no program has it.
    pub inode: Option<u32>,
    /// Bytes that were written and are not confirmed by the other side, its end included.
    pub unconfirmed: u32,
    /// What went through it; `None` when the kernel does not tell.
    pub moved: Option<TcpBytes>,
}

/// What a connection carried, without heads.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TcpBytes {
    /// Bytes sent, those that were sent again counted once.
    pub sent: u64,
    /// Bytes received.
    pub received: u64,
}

/// Kinds of messages.
const ERROR: u16 = 2;
const DONE: u16 = 3;
const OF_BOTH_FAMILIES: u16 = 18;
const BY_FAMILY: u16 = 20;

/// Bytes of the head of each message, and of what is said of a connection before the fields.
const HEAD: usize = 16;
const FIXED: usize = 72;

/// The field with `struct tcp_info`.
const INFO: u16 = 2;

const LISTENS: u8 = 10;

/// States in which the other side has closed, or may have: CLOSE, CLOSE_WAIT, LAST_ACK, CLOSING.
const MAY_HAVE_END: [u8; 4] = [7, 8, 9, 11];

/// The messages that came together; one that is not whole is the last.
pub fn messages(mut bytes: &[u8]) -> impl Iterator<Item = Result<DiagMessage, MalformedFile>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let read = word(bytes, 0, "netlink length").and_then(|length| {
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
    match half(whole, 4, "netlink type")? {
        OF_BOTH_FAMILIES | BY_FAMILY => connection(content).map(DiagMessage::Connection),
        DONE => Ok(DiagMessage::Done),
        // The kernel gives the negative.
        ERROR => Ok(DiagMessage::Refused((word(content, 0, "errno")? as i32).wrapping_neg())),
        _ => Err(MalformedFile("netlink type")),
    }
}

fn connection(content: &[u8]) -> Result<Connection, MalformedFile> {
    let fields = content.get(FIXED..).ok_or(MalformedFile("connection"))?;
    let state = content.get(1).copied().ok_or(MalformedFile("state"))?;
    let inode = word(content, 68, "inode")?;
    Ok(Connection {
        cookie: long(content, 44, "cookie")?,
        // Ports are as they are on the wire.
        port: u16::from_be(half(content, 4, "port")?),
        is_listening: state == LISTENS,
        user: word(content, 64, "user")?,
        inode: (inode != 0).then_some(inode),
        unconfirmed: word(content, 60, "queue")?,
        moved: find(fields, INFO)?.and_then(|info| moved(info, MAY_HAVE_END.contains(&state))),
    })
}

/// What went through, as far as this kernel tells.
fn moved(info: &[u8], may_have_end: bool) -> Option<TcpBytes> {
    let at = |place: usize| long(info, place, "tcp_info").ok();
    let sent = match (at(200), at(208)) {
        (Some(sent), Some(again)) => sent.saturating_sub(again),
        // With a byte each for its beginning and its end.
        _ => at(120)?.saturating_sub(2),
    };
    Some(TcpBytes { sent, received: at(128)?.saturating_sub(u64::from(may_have_end)) })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{cut_at_every_byte, parser_tests};
    use super::*;

    /// A list of Linux 6.18: one who listens, and both ends of a connection through the
    /// loopback over which 1000 bytes have gone.
    const LIST: &[u8] = include_bytes!("../../../../fixtures/sock_diag/list.bin");
    /// The word that one of the ends is no more.
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
    fn a_list_has_those_who_listen_and_both_ends_of_a_connection() {
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
    fn a_connection_that_ended_is_known_by_its_cookie_and_nobodys_any_more() {
        let [ended] = connections(ENDED)[..] else { panic!("{:?}", all(ENDED)) };
        let before = connections(LIST).into_iter().find(|one| one.cookie == ended.cookie).unwrap();
        assert_eq!((ended.port, ended.inode), (before.port, None));
        assert_eq!(ended.moved, Some(TcpBytes { sent: 1000, received: 0 }), "an end is no byte");
    }

    #[test]
    fn the_end_of_a_list_and_a_refusal_are_told_apart() {
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
    fn older_kernels_tell_what_was_confirmed_and_the_oldest_nothing() {
        let mut info = vec![0; 224];
        for (place, value) in [(120, 900u64), (128, 50), (200, 1100), (208, 100)] {
            info[place..place + 8].copy_from_slice(&value.to_ne_bytes());
        }
        assert_eq!(moved(&info, false), Some(TcpBytes { sent: 1000, received: 50 }));
        assert_eq!(moved(&info[..192], true), Some(TcpBytes { sent: 898, received: 49 }));
        assert_eq!(moved(&info[..104], false), None);
    }

    #[test]
    fn a_cut_message_is_refused() {
        cut_at_every_byte(ENDED, all, |part, _| part.is_empty());
        cut_at_every_byte(LIST, all, |part, whole| whole.starts_with(part));
    }

    parser_tests! {
        mangled: fn arbitrary_bytes_never_panic() {
            all; LIST
        }
    }
}
