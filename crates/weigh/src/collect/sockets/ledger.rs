//! Attributes connections to the run, and sums their traffic.
//!
//! Reads nothing: it is given lists of connections, the inodes of the sockets that the run's
//! processes have open, and close events. A connection is identified by its cookie, which stays
//! when its program has closed it; the bytes in a list are exact at that moment.
//!
//! The owner of a connection that was opened and closed between two lists is unknown, unless its
//! port is one on which the run began to listen. Traffic of such connections is counted as
//! unattributed. A socket that listened before may be shared with processes outside the run:
//! workers of a running server, or a command that inherited it.

use std::collections::{HashMap, HashSet};

use crate::catalog::metrics::RunTcp;
use crate::host::sock_diag::{Connection, TcpBytes};

/// The connections of a network namespace.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Whether connections of the first list do not count: a command has them only by inheritance,
    /// and the process that passed them on may use them as well.
    starts_empty: bool,
    known: HashMap<u64, TrackedConnection>,
    /// Ports on which only the run listens.
    ports: HashSet<u16>,
    /// The number of lists so far.
    lists: u64,
    ours: TcpSum,
    /// Unattributed connections.
    unowned: TcpSum,
}

#[derive(Debug)]
struct TrackedConnection {
    owner: Owner,
    inode: Option<u32>,
    port: u16,
    is_listening: bool,
    /// Whether it existed before the run.
    is_preexisting: bool,
    /// Bytes before it counts, and at the last list.
    before: TcpBytes,
    moved: TcpBytes,
    /// Whether its program has closed it, and it is still sending.
    is_sending: bool,
    /// The last list that contained it.
    listed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A process of the run.
    Run,
    /// Another process.
    Another,
    /// Unknown, after so many checks of open sockets.
    Unknown(u8),
}

#[derive(Debug, Default)]
struct TcpSum {
    connections: u64,
    moved: TcpBytes,
}

impl TcpSum {
    fn add(&mut self, now: TcpBytes, before: TcpBytes) {
        self.moved.sent += now.sent.saturating_sub(before.sent);
        self.moved.received += now.received.saturating_sub(before.received);
    }

    /// Counts a connection, if it carried anything.
    fn carried(&mut self, now: TcpBytes, before: TcpBytes) {
        if now != before {
            self.connections += 1;
            self.add(now, before);
        }
    }
}

/// Checks of open sockets after which a connection is another process's: a process may start
/// between listing processes and connections.
const OWNER_CHECKS: u8 = 2;

/// Lists for which a close event is awaited, when a connection is not listed any more.
const CLOSE_EVENT_LISTS: u64 = 3;

impl Ledger {
    /// For a command that has no connection yet.
    pub(super) fn of_command() -> Ledger {
        Ledger { starts_empty: true, ..Ledger::default() }
    }

    /// How often connections were listed.
    #[cfg(test)]
    pub(super) fn lists(&self) -> u64 {
        self.lists
    }

    /// Starts a new list.
    pub(super) fn begin_list(&mut self) {
        self.lists += 1;
    }

    /// Handles a connection of the list; `may_be_ours` is false for another user's.
    ///
    /// What a connection of the first list has carried is its baseline.
    pub(super) fn update(&mut self, connection: &Connection, may_be_ours: bool) {
        let Connection { cookie, port, is_listening, inode, moved, .. } = *connection;
        let is_sending = inode.is_none() && connection.unconfirmed > 0;
        let Some(known) = self.known.get_mut(&cookie) else {
            // Without counters there is no baseline.
            let Some(moved) = moved else { return };
            let is_preexisting = self.lists == 1;
            let before = if is_preexisting { moved } else { TcpBytes::default() };
            let may_be_ours = may_be_ours && !(is_preexisting && self.starts_empty);
            let owner = if may_be_ours { Owner::Unknown(0) } else { Owner::Another };
            let listed = self.lists;
            self.known.insert(
                cookie,
                TrackedConnection {
                    owner,
                    inode,
                    port,
                    is_listening,
                    is_preexisting,
                    before,
                    moved,
                    is_sending,
                    listed,
                },
            );
            return;
        };
        known.listed = self.lists;
        (known.inode, known.is_sending) = (inode, is_sending);
        if let Some(now) = moved {
            if known.owner == Owner::Run {
                self.ours.add(now, known.moved);
            }
            known.moved = now;
        }
    }

    /// Removes connections that are not listed any more; with close events, only once the event
    /// should have arrived.
    pub(super) fn end_list(&mut self, has_close_events: bool) {
        let lists_to_wait = if has_close_events { CLOSE_EVENT_LISTS } else { 0 };
        let oldest = self.lists.saturating_sub(lists_to_wait);
        self.known.retain(|_, known| known.listed >= oldest);
    }

    /// Whether open sockets have to be checked.
    pub(super) fn has_unknown(&self) -> bool {
        self.known.values().any(|known| {
            matches!(known.owner, Owner::Unknown(_))
                && known.inode.is_some()
                && known.listed == self.lists
        })
    }

    /// Handles the inodes of the sockets that the run's processes have open.
    pub(super) fn claim(&mut self, held: &HashSet<u32>) {
        for known in self.known.values_mut() {
            let is_inherited = known.is_preexisting && self.starts_empty;
            let is_open = known.owner != Owner::Run && !is_inherited;
            let Some(inode) = known.inode.filter(|_| is_open) else { continue };
            known.owner = match known.owner {
                _ if held.contains(&inode) => {
                    self.ours.add(known.moved, known.before);
                    self.ours.connections += u64::from(!known.is_listening);
                    Owner::Run
                }
                Owner::Unknown(checks) if checks + 1 < OWNER_CHECKS => Owner::Unknown(checks + 1),
                _ => Owner::Another,
            };
        }
        let ports = |is_ours: bool| {
            let is_owned =
                |known: &TrackedConnection| known.owner == Owner::Run && !known.is_preexisting;
            let listening = self.known.values().filter(|known| known.is_listening);
            listening.filter(move |known| is_owned(known) == is_ours).map(|known| known.port)
        };
        let shared: HashSet<u16> = ports(false).collect();
        self.ports = ports(true).filter(|port| !shared.contains(port)).collect();
    }

    /// Handles the close event of a connection.
    pub(super) fn closed(&mut self, connection: &Connection) {
        let now = connection.moved;
        match self.known.remove(&connection.cookie) {
            Some(known) => {
                let now = now.unwrap_or(known.moved);
                match known.owner {
                    Owner::Run => self.ours.add(now, known.moved),
                    Owner::Another => {}
                    Owner::Unknown(_) if self.ports.contains(&known.port) => {
                        self.ours.connections += 1;
                        self.ours.add(now, known.before);
                    }
                    Owner::Unknown(_) => self.unowned.carried(now, known.before),
                }
            }
            None if self.ports.contains(&connection.port) => {
                self.ours.connections += 1;
                self.ours.add(now.unwrap_or_default(), TcpBytes::default());
            }
            None => self.unowned.carried(now.unwrap_or_default(), TcpBytes::default()),
        }
    }

    /// Whether a connection of the run is about to close, or its close event has not arrived yet.
    pub(super) fn awaits_close(&self) -> bool {
        let is_over = |known: &TrackedConnection| known.listed < self.lists || known.is_sending;
        self.known.values().any(|known| known.owner == Owner::Run && is_over(known))
    }

    /// The current sums.
    pub(super) fn row(&self) -> RunTcp {
        RunTcp {
            sent: Some(self.ours.moved.sent),
            received: Some(self.ours.moved.received),
            connections: Some(self.ours.connections),
            unowned_sent: Some(self.unowned.moved.sent),
            unowned_received: Some(self.unowned.moved.received),
            unowned_connections: Some(self.unowned.connections),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A connection: cookie, inode (0 for none), bytes sent and received.
    fn one(cookie: u64, inode: u32, sent: u64, received: u64) -> Connection {
        let inode = (inode != 0).then_some(inode);
        let moved = Some(TcpBytes { sent, received });
        let (port, is_listening, user, unconfirmed) = (4000, false, 7, 0);
        Connection { cookie, port, is_listening, user, inode, unconfirmed, moved }
    }

    fn listener(cookie: u64, inode: u32, port: u16) -> Connection {
        Connection { port, is_listening: true, ..one(cookie, inode, 0, 0) }
    }

    fn list(ledger: &mut Ledger, connections: &[Connection], held: &[u32]) {
        ledger.begin_list();
        connections.iter().for_each(|one| ledger.update(one, true));
        ledger.end_list(true);
        if ledger.has_unknown() {
            ledger.claim(&held.iter().copied().collect());
        }
    }

    /// Bytes sent and received by the run, and unattributed.
    fn sums(ledger: &Ledger) -> [u64; 4] {
        let row = ledger.row();
        [row.sent, row.received, row.unowned_sent, row.unowned_received].map(Option::unwrap)
    }

    #[test]
    fn existing_connection_counts_from_the_first_list() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[one(1, 11, 500, 50)], &[11]);
        assert_eq!(sums(&ledger), [0; 4]);
        list(&mut ledger, &[one(1, 11, 700, 51), one(2, 12, 30, 3)], &[11, 12]);
        assert_eq!(sums(&ledger), [230, 4, 0, 0]);
    }

    #[test]
    fn connection_of_another_process_counts_once_it_is_passed_on() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[], &[]);
        for sent in [10, 20, 30] {
            list(&mut ledger, &[one(1, 11, sent, 0)], &[]);
        }
        assert!(!ledger.has_unknown(), "it belongs to another process");
        ledger.closed(&one(1, 0, 40, 0));
        assert_eq!(sums(&ledger), [0; 4]);
        for _ in 0..2 {
            list(&mut ledger, &[one(2, 12, 5, 0)], &[]);
        }
        list(&mut ledger, &[one(2, 12, 6, 0), one(3, 13, 0, 0)], &[12, 13]);
        assert_eq!(sums(&ledger), [6, 0, 0, 0]);
    }

    #[test]
    fn closing_connection_counts_until_its_close_event() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[], &[]);
        list(&mut ledger, &[one(1, 11, 100, 0)], &[11]);
        list(&mut ledger, &[Connection { unconfirmed: 9, ..one(1, 0, 150, 0) }], &[]);
        assert!(ledger.awaits_close(), "it is still sending");
        list(&mut ledger, &[one(1, 0, 151, 0)], &[]);
        assert!(!ledger.awaits_close());
        list(&mut ledger, &[], &[]);
        assert!(ledger.awaits_close(), "its close event has not arrived");
        ledger.closed(&one(1, 0, 180, 1));
        assert_eq!(sums(&ledger), [180, 1, 0, 0]);
        assert!(!ledger.awaits_close());
    }

    #[test]
    fn short_connection_is_attributed_by_listening_port_or_unowned() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[], &[]);
        list(&mut ledger, &[listener(1, 11, 80), listener(2, 12, 90)], &[11]);
        ledger.closed(&one(3, 0, 7, 70));
        assert_eq!(sums(&ledger), [0, 0, 7, 70]);
        ledger.closed(&Connection { port: 80, ..one(4, 0, 5, 50) });
        ledger.closed(&Connection { port: 90, ..one(5, 0, 1, 1) });
        assert_eq!(sums(&ledger), [5, 50, 8, 71]);
        assert_eq!(ledger.row().unowned_connections, Some(2));
        assert_eq!(ledger.row().connections, Some(1), "a listening socket is no connection");
    }

    #[test]
    fn inherited_connections_do_not_count() {
        let mut ledger = Ledger::of_command();
        let before = [one(1, 11, 500, 50), listener(2, 12, 80)];
        list(&mut ledger, &before, &[11, 12]);
        list(&mut ledger, &[one(1, 11, 900, 50), listener(2, 12, 80)], &[11, 12]);
        ledger.closed(&Connection { port: 80, ..one(4, 0, 5, 50) });
        assert_eq!(sums(&ledger), [0, 0, 5, 50]);
        list(&mut ledger, &[listener(2, 12, 80), listener(3, 13, 90)], &[12, 13]);
        ledger.closed(&Connection { port: 90, ..one(6, 0, 1, 10) });
        assert_eq!(sums(&ledger), [1, 10, 5, 50]);
    }

    #[test]
    fn port_listened_on_before_the_run_attributes_nothing() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[listener(1, 11, 80)], &[11]);
        ledger.closed(&Connection { port: 80, ..one(4, 0, 5, 50) });
        assert_eq!(sums(&ledger), [0, 0, 5, 50]);
    }

    #[test]
    fn port_shared_with_another_process_attributes_nothing() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[listener(1, 11, 80), listener(2, 12, 80)], &[11]);
        ledger.closed(&Connection { port: 80, ..one(4, 0, 5, 50) });
        assert_eq!(sums(&ledger), [0, 0, 5, 50]);
    }

    #[test]
    fn connection_not_accepted_yet_is_checked_again() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[], &[]);
        list(&mut ledger, &[one(1, 0, 0, 40)], &[]);
        assert!(!ledger.has_unknown(), "no process can have it open");
        list(&mut ledger, &[one(1, 11, 0, 60)], &[11]);
        assert_eq!(sums(&ledger), [0, 60, 0, 0]);
    }

    #[test]
    fn time_wait_is_no_new_connection() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[], &[]);
        list(&mut ledger, &[one(1, 11, 100, 0)], &[11]);
        ledger.closed(&one(1, 0, 120, 0));
        let remains = Connection { moved: None, ..one(1, 0, 0, 0) };
        list(&mut ledger, &[remains], &[]);
        assert_eq!(sums(&ledger), [120, 0, 0, 0]);
        assert!(!ledger.awaits_close());
    }
}
