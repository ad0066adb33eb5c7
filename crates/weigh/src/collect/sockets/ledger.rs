//! Whose connections are whose, and what went through those of the run.
//!
//! Reads nothing: it is handed lists of connections, the inodes of the sockets that the run's
//! processes hold, and the word of connections that ended. A connection is known by its cookie,
//! which stays when its program has closed it; what a list has of it is exact at that moment.
//!
//! Nothing tells whose a connection was that came and went between two lists, unless it came to
//! a port on which the run has begun to listen since. What such connections carried is kept
//! apart. Who listened before may share the port with processes that are not the run's: workers
//! of a server that was there already, or a command that was handed it.

use std::collections::{HashMap, HashSet};

use crate::catalog::metrics::RunTcp;
use crate::host::sock_diag::{Connection, TcpBytes};

/// The connections of a network namespace.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// Whether what was there before the first list is somebody else's: a command holds it
    /// only when it was handed over, and whoever did that may use it as well.
    starts_empty: bool,
    known: HashMap<u64, TrackedConnection>,
    /// Ports on which the run listens, and nobody else does.
    ports: HashSet<u16>,
    /// Counts the lists.
    lists: u64,
    ours: TcpSum,
    /// Those whose owner nobody saw.
    unowned: TcpSum,
}

#[derive(Debug)]
struct TrackedConnection {
    owner: Owner,
    inode: Option<u32>,
    port: u16,
    is_listening: bool,
    /// Whether it was there before the run.
    is_preexisting: bool,
    /// What went through before it counts, and until the last look.
    before: TcpBytes,
    moved: TcpBytes,
    /// Whether its program has closed it, and it is still sending.
    is_sending: bool,
    /// The last list that it was in.
    listed: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    /// A process of the run.
    Run,
    /// Somebody else.
    Another,
    /// Not known, after so many looks at who holds what.
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

    /// Counts a connection, if anything went through it.
    fn carried(&mut self, now: TcpBytes, before: TcpBytes) {
        if now != before {
            self.connections += 1;
            self.add(now, before);
        }
    }
}

/// Looks at who holds what after which a connection is somebody else's: a process may come
/// between the look at all processes and the list.
const OWNER_CHECKS: u8 = 2;

/// Lists for which the word of an end is waited for, when a connection is not listed any more.
const CLOSE_EVENT_LISTS: u64 = 3;

impl Ledger {
    /// Of a command that has made no connection yet.
    pub(super) fn of_command() -> Ledger {
        Ledger { starts_empty: true, ..Ledger::default() }
    }

    /// Begins a new list.
    pub(super) fn begin_list(&mut self) {
        self.lists += 1;
    }

    /// Takes in a connection of the list; `may_be_ours` when its user says nothing against it.
    ///
    /// What a connection of the first list has carried was before the run.
    pub(super) fn update(&mut self, connection: &Connection, may_be_ours: bool) {
        let Connection { cookie, port, is_listening, inode, moved, .. } = *connection;
        let is_sending = inode.is_none() && connection.unconfirmed > 0;
        let Some(known) = self.known.get_mut(&cookie) else {
            // Without a count there is nothing to begin from.
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

    /// Forgets those that are not listed any more; with `has_close_events` not before their end
    /// should have been told.
    pub(super) fn end_list(&mut self, has_close_events: bool) {
        let lists_to_wait = if has_close_events { CLOSE_EVENT_LISTS } else { 0 };
        let oldest = self.lists.saturating_sub(lists_to_wait);
        self.known.retain(|_, known| known.listed >= oldest);
    }

    /// Whether somebody must look who holds what.
    pub(super) fn has_unknown(&self) -> bool {
        self.known.values().any(|known| {
            matches!(known.owner, Owner::Unknown(_))
                && known.inode.is_some()
                && known.listed == self.lists
        })
    }

    /// Takes in the inodes of the sockets that the run's processes hold.
    pub(super) fn claim(&mut self, held: &HashSet<u32>) {
        for known in self.known.values_mut() {
            let is_handed_over = known.is_preexisting && self.starts_empty;
            let is_open = known.owner != Owner::Run && !is_handed_over;
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
            let alone =
                |known: &TrackedConnection| known.owner == Owner::Run && !known.is_preexisting;
            let listening = self.known.values().filter(|known| known.is_listening);
            listening.filter(move |known| alone(known) == is_ours).map(|known| known.port)
        };
        let others: HashSet<u16> = ports(false).collect();
        self.ports = ports(true).filter(|port| !others.contains(port)).collect();
    }

    /// Takes in the word that a connection has ended.
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

    /// Whether the end of one of the run's connections is near, or has not been told yet.
    pub(super) fn awaits_close(&self) -> bool {
        let is_over = |known: &TrackedConnection| known.listed < self.lists || known.is_sending;
        self.known.values().any(|known| known.owner == Owner::Run && is_over(known))
    }

    /// What is known so far.
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

    /// Sent and received by the run, and by nobody knows whom.
    fn sums(ledger: &Ledger) -> [u64; 4] {
        let row = ledger.row();
        [row.sent, row.received, row.unowned_sent, row.unowned_received].map(Option::unwrap)
    }

    #[test]
    fn a_connection_that_was_there_before_counts_from_the_first_list() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[one(1, 11, 500, 50)], &[11]);
        assert_eq!(sums(&ledger), [0; 4]);
        list(&mut ledger, &[one(1, 11, 700, 51), one(2, 12, 30, 3)], &[11, 12]);
        assert_eq!(sums(&ledger), [230, 4, 0, 0]);
    }

    #[test]
    fn connections_of_others_are_not_ours_unless_they_are_handed_over() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[], &[]);
        for sent in [10, 20, 30] {
            list(&mut ledger, &[one(1, 11, sent, 0)], &[]);
        }
        assert!(!ledger.has_unknown(), "it is somebody else's");
        ledger.closed(&one(1, 0, 40, 0));
        assert_eq!(sums(&ledger), [0; 4]);
        for _ in 0..2 {
            list(&mut ledger, &[one(2, 12, 5, 0)], &[]);
        }
        list(&mut ledger, &[one(2, 12, 6, 0), one(3, 13, 0, 0)], &[12, 13]);
        assert_eq!(sums(&ledger), [6, 0, 0, 0]);
    }

    #[test]
    fn a_connection_that_its_program_has_closed_counts_to_its_end() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[], &[]);
        list(&mut ledger, &[one(1, 11, 100, 0)], &[11]);
        list(&mut ledger, &[Connection { unconfirmed: 9, ..one(1, 0, 150, 0) }], &[]);
        assert!(ledger.awaits_close(), "it is still sending");
        list(&mut ledger, &[one(1, 0, 151, 0)], &[]);
        assert!(!ledger.awaits_close());
        list(&mut ledger, &[], &[]);
        assert!(ledger.awaits_close(), "its end has not been told");
        ledger.closed(&one(1, 0, 180, 1));
        assert_eq!(sums(&ledger), [180, 1, 0, 0]);
        assert!(!ledger.awaits_close());
    }

    #[test]
    fn one_that_came_and_went_between_two_lists_is_nobodys_or_of_whoever_listens_there() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[], &[]);
        list(&mut ledger, &[listener(1, 11, 80), listener(2, 12, 90)], &[11]);
        ledger.closed(&one(3, 0, 7, 70));
        assert_eq!(sums(&ledger), [0, 0, 7, 70]);
        ledger.closed(&Connection { port: 80, ..one(4, 0, 5, 50) });
        ledger.closed(&Connection { port: 90, ..one(5, 0, 1, 1) });
        assert_eq!(sums(&ledger), [5, 50, 8, 71]);
        assert_eq!(ledger.row().unowned_connections, Some(2));
        assert_eq!(ledger.row().connections, Some(1), "who listens is no connection");
    }

    #[test]
    fn what_a_command_was_handed_is_not_its_own() {
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
    fn who_listened_before_may_share_the_port_with_others() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[listener(1, 11, 80)], &[11]);
        ledger.closed(&Connection { port: 80, ..one(4, 0, 5, 50) });
        assert_eq!(sums(&ledger), [0, 0, 5, 50]);
    }

    #[test]
    fn a_port_on_which_somebody_else_listens_too_tells_nothing() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[listener(1, 11, 80), listener(2, 12, 80)], &[11]);
        ledger.closed(&Connection { port: 80, ..one(4, 0, 5, 50) });
        assert_eq!(sums(&ledger), [0, 0, 5, 50]);
    }

    #[test]
    fn one_that_nobody_has_accepted_yet_is_asked_for_again() {
        let mut ledger = Ledger::default();
        list(&mut ledger, &[], &[]);
        list(&mut ledger, &[one(1, 0, 0, 40)], &[]);
        assert!(!ledger.has_unknown(), "nobody can hold it");
        list(&mut ledger, &[one(1, 11, 0, 60)], &[11]);
        assert_eq!(sums(&ledger), [0, 60, 0, 0]);
    }

    #[test]
    fn what_waits_for_stray_packets_alone_is_no_new_connection() {
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
