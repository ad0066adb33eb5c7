//! TCP traffic of the run, from the kernel's counters of each connection.
//!
//! Source: sock_diag (`host::sock_diag`), for every user; the owner of a connection is found by the
//! links in `/proc/PID/fd`, which only its user and root may read. Bytes are payload, headers
//! excluded; a connection with both ends in the run counts at both, as sent at one and received at
//! the other. UDP is not counted: the kernel has no counters for it.
//!
//! What it costs: a list walks the kernel's whole table (0.2 ms), so it is only requested when TCP
//! segments have passed since the last one (`/proc/net/snmp`, which is read anyway), once a second
//! in any case, and within the budget. Descriptors are only listed when a connection may be the
//! run's and its owner is unknown.
//!
//! What surprised us: the kernel reports each closed connection to every user, with its bytes, but
//! without its owner. So close events complete connections that were listed before, and of
//! connections too short to be listed the sum is known, but not the run's part of it.

mod ledger;

use std::collections::HashSet;
use std::ffi::CString;
use std::time::Duration;

use ledger::Ledger;

use super::budget::Budget;
use super::min_interval::MinInterval;
use super::processes::ProcessCollector;
use super::{Collector, Context, Fault, MissingParts, Probe, Provider, network};
use crate::catalog::metrics::NodeTcp;
use crate::catalog::{Scope, SourceId};
use crate::host::clock::thread_cpu;
use crate::host::sock_diag::{ClosedConnections, Drain, Error, SockDiag};
use crate::host::{Host, ProcPath, own};
use crate::model::settings::Settings;
use crate::model::{Entity, Tick};

pub(super) const PROVIDER: Provider =
    Provider { id: SourceId::Sockets, probe, collector: None, descriptors: 3 };

fn probe(_host: &Host) -> Probe {
    match SockDiag::open().and_then(|mut diag| diag.check()) {
        Ok(()) => Probe::Ready,
        Err(error @ Error::NotAllowed) => Probe::Denied {
            why: error.to_string(),
            hint: "run weigh outside the container or sandbox that forbids it".to_owned(),
        },
        Err(error) => Probe::Absent { why: error.to_string() },
    }
}

/// How long the last close events may take to arrive.
const CLOSE_EVENT_DELAY: Duration = Duration::from_millis(50);

/// How often listening sockets and the network namespaces of processes are checked.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// Which connections may exist at the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketBaseline {
    /// None of a command that is about to start.
    Command,
    /// Connections of processes that run already.
    Running,
}

/// The connections of the run.
pub struct Sockets {
    diag: SockDiag,
    /// Close events, until there are too many to read.
    closed: Option<ClosedConnections>,
    ledger: Ledger,
    budget: Budget,
    /// TCP segments of the namespace when connections were last listed.
    segments: Option<NodeTcp>,
    /// The only user whose connections can be attributed: without root, descriptors of other users
    /// cannot be listed.
    user: Option<u32>,
    /// Our network namespace, as its link in `/proc`.
    namespace: Option<Vec<u8>>,
    /// When processes are next checked for other network namespaces.
    round: MinInterval,
    missing: MissingParts,
}

impl Sockets {
    /// Lists all connections: what they carried until now is the baseline.
    pub fn begin(
        host: &Host,
        settings: &Settings,
        baseline: SocketBaseline,
    ) -> Result<Sockets, Error> {
        let mut sockets = Sockets {
            // Before the list: what moves meanwhile is not missed later.
            segments: network::tcp(host),
            diag: SockDiag::open()?,
            closed: ClosedConnections::open().ok(),
            ledger: match baseline {
                SocketBaseline::Command => Ledger::of_command(),
                SocketBaseline::Running => Ledger::default(),
            },
            budget: Budget::with_core_share(settings.budget),
            user: own::unprivileged_user(),
            namespace: host.proc.link(c"self/ns/net"),
            round: MinInterval::of(ROUND_INTERVAL),
            missing: MissingParts::default(),
        };
        sockets.list()?;
        Ok(sockets)
    }

    /// No process of the run begins to listen after this time, and [`Sockets::finish`] follows: the
    /// next sample need not look for it.
    pub fn expect_end(&mut self, at: Duration) {
        self.round.skip(at);
    }

    /// Puts the final values into the tick.
    pub fn finish(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let Context { host, processes: Some(processes) } = *context else { return Ok(()) };
        // Without a segment no connection was made, and none has carried anything.
        if self.has_moved(network::tcp(host)) || self.ledger.has_unknown() {
            self.list_and_attribute(host, processes)?;
        }
        let until = host.clock.now() + CLOSE_EVENT_DELAY;
        loop {
            self.drain_closed();
            let left = until.saturating_sub(host.clock.now());
            match &self.closed {
                Some(closed) if self.ledger.awaits_close() && !left.is_zero() => {
                    closed.wait(left).map_err(|error| Fault::Retire(error.to_string()))?;
                }
                _ => break,
            }
        }
        tick.put(Entity::Single, &self.ledger.row());
        Ok(())
    }

    /// Whether TCP segments have passed since connections were last listed, or may have.
    fn has_moved(&self, segments: Option<NodeTcp>) -> bool {
        segments.is_none() || segments != self.segments
    }

    fn miss(&mut self, part: &'static str, why: impl FnOnce() -> String) {
        self.missing.add(part, SourceId::Sockets, why);
    }

    /// Handles close events.
    fn drain_closed(&mut self) {
        let Some(closed) = &mut self.closed else { return };
        let ledger = &mut self.ledger;
        match closed.next(|connection| ledger.closed(connection)) {
            Ok(Drain::Complete) => {}
            Ok(Drain::Overrun) => {
                self.miss("lost", || "close events of connections were dropped".to_owned());
            }
            // Reading more of them would cost too much.
            Ok(Drain::More) => {
                self.closed = None;
                self.miss("part", || {
                    "too many connections are closed here to read every close event".to_owned()
                });
            }
            Err(error) => {
                self.closed = None;
                self.miss("endings", || format!("short connections are missing: {error}"));
            }
        }
    }

    /// Lists connections, and finds the owners of unknown ones.
    fn list_and_attribute(
        &mut self,
        host: &Host,
        processes: &ProcessCollector,
    ) -> Result<(), Fault> {
        self.list().map_err(|error| match error {
            Error::Endless => Fault::Skip(error.to_string()),
            _ => Fault::Retire(error.to_string()),
        })?;
        if self.ledger.has_unknown() {
            let mut held = HashSet::new();
            processes.alive().for_each(|id| self.add_open_sockets(host, id.pid, &mut held));
            self.ledger.claim(&held);
        }
        Ok(())
    }

    fn list(&mut self) -> Result<(), Error> {
        let (ledger, user) = (&mut self.ledger, self.user);
        ledger.begin_list();
        self.diag.connections(|connection| {
            ledger.update(connection, user.is_none_or(|user| user == connection.user));
        })?;
        ledger.end_list(self.closed.is_some());
        Ok(())
    }

    /// Notes a process that is in another network namespace.
    fn check_namespace(&mut self, host: &Host, pid: u32) {
        let namespace = host.proc.link(ProcPath::new(pid, "ns/net").as_c_str());
        if namespace.is_some() && namespace != self.namespace {
            let missing = "another network namespace, whose connections are missing";
            self.miss("namespace", || format!("process {pid} is in {missing}"));
        }
    }

    /// Adds the inodes of the sockets that a process has open.
    fn add_open_sockets(&mut self, host: &Host, pid: u32, held: &mut HashSet<u32>) {
        let listed = host.proc.each_name(ProcPath::new(pid, "fd").as_c_str(), |name| {
            let path = format!("{pid}/fd/{}", name.to_string_lossy());
            let link = CString::new(path).ok().and_then(|path| host.proc.link(&path));
            held.extend(link.as_deref().and_then(socket));
        });
        // A process that exited has no sockets.
        if let Err(error) = listed
            && error.is_denied()
        {
            self.miss("fd", || format!("connections of process {pid} are missing: {error}"));
        }
    }
}

impl Collector for Sockets {
    /// Puts the traffic of the run's processes into the tick. The TCP segments in the tick, if any,
    /// show whether there was any traffic.
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let Context { host, processes: Some(processes) } = *context else { return Ok(()) };
        let segments = segments(tick);
        let has_moved = self.has_moved(segments);
        let within_budget = self.budget.allows(tick.at);
        // CPU time, not elapsed time: on a busy machine weigh waits for a CPU, which costs nothing.
        let began = thread_cpu();
        let is_round = within_budget && self.round.is_due(tick.at);
        if is_round {
            processes.alive().for_each(|id| self.check_namespace(host, id.pid));
        }
        // Once a round also without traffic: a process may have begun to listen.
        if within_budget && (has_moved || is_round || self.ledger.has_unknown()) {
            self.list_and_attribute(host, processes)?;
            self.segments = segments;
            self.budget.spend(tick.at, thread_cpu().saturating_sub(began));
        }
        // After listing: listening ports are then known, which attribute short connections.
        self.drain_closed();
        tick.put(Entity::Single, &self.ledger.row());
        Ok(())
    }

    fn missing(&mut self) -> Option<&mut MissingParts> {
        Some(&mut self.missing)
    }
}

/// TCP segments of the namespace, as far as they are in the tick.
fn segments(tick: &Tick) -> Option<NodeTcp> {
    let table = tick.table(Scope::Node).filter(|table| !table.is_empty())?;
    let tcp = table.get::<NodeTcp>(0);
    tcp.received.and(tcp.sent).map(|_| tcp)
}

/// The inode in a link to a socket, `socket:[4711]`.
fn socket(link: &[u8]) -> Option<u32> {
    let inode = link.strip_prefix(b"socket:[")?.strip_suffix(b"]")?;
    std::str::from_utf8(inode).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Row;
    use crate::catalog::metrics::RunTcp;
    use crate::host::fake::FakeHost;
    use crate::host::skip::impossible;

    fn snmp(received: u64) -> String {
        format!("Tcp: InSegs OutSegs RetransSegs\nTcp: {received} 5 0\n")
    }

    #[test]
    fn connections_are_listed_once_where_a_command_exits_at_once_and_no_segment_has_passed() {
        let fake = FakeHost::new().proc("self/net/snmp", &snmp(7));
        let (host, settings) = (fake.host(), Settings::default());
        let mut sockets = match Sockets::begin(&host, &settings, SocketBaseline::Command) {
            Ok(sockets) => sockets,
            Err(error) => return impossible(error),
        };
        let processes = ProcessCollector::before_run(&host, &settings);
        let context = Context { host: &host, processes: Some(&processes) };
        let mut tick = Tick::new(&[RunTcp::METRICS, NodeTcp::METRICS]);
        let mut finish = |sockets: &mut Sockets, at| {
            sockets.expect_end(at);
            tick.begin(at);
            tick.put(Entity::Single, &network::tcp(&host).unwrap());
            sockets.sample(&context, &mut tick).unwrap();
            tick.begin(at);
            sockets.finish(&context, &mut tick).unwrap();
            let rows = tick.table(Scope::Run).unwrap();
            (sockets.ledger.lists(), rows.get::<RunTcp>(0).sent)
        };
        assert_eq!(finish(&mut sockets, Duration::from_millis(1)), (1, Some(0)));
        fake.set_proc("self/net/snmp", &snmp(8));
        assert!(finish(&mut sockets, Duration::from_millis(2)).0 > 1);
    }
}
