//! What the run sent and received over TCP, from the kernel's account of each connection.
//!
//! Source: sock_diag (`host::sock_diag`), for everybody; whose a connection is, from the links
//! in `/proc/PID/fd`, which only its user and root may read. Bytes are those that programs
//! wrote and read, headers excluded; a connection whose both ends are in the run counts at both,
//! as sent at one and received at the other. UDP is not counted: the kernel keeps no account
//! of it.
//!
//! What it costs: a list goes through the kernel's whole table (0.2 ms), so it is only asked
//! for when segments of TCP have passed since the last one (`/proc/net/snmp`, which is read
//! anyway), once a second all the same, and within the budget. Descriptors are only listed when there is a connection that
//! may be the run's and whose owner is not known.
//!
//! What surprised us: the kernel tells everybody of each connection that ends, with all it
//! carried, but not whose it was. So ends complete what was seen before, and of connections
//! too short to be seen the sum is known, but not how much of it is the run's.

mod ledger;

use std::collections::HashSet;
use std::ffi::CString;
use std::time::Duration;

use ledger::Ledger;

use super::budget::Budget;
use super::min_interval::MinInterval;
use super::processes::ProcessCollector;
use super::{Fault, Probe, Provider};
use crate::catalog::metrics::NodeTcp;
use crate::catalog::{Scope, SourceId};
use crate::host::sock_diag::{ClosedConnections, Drain, Error, SockDiag};
use crate::host::{Host, ProcPath, own};
use crate::model::settings::Settings;
use crate::model::{Entity, Tick};

pub(super) const PROVIDER: Provider =
    Provider { id: SourceId::Sockets, probe, collector: None, descriptors: 3 };

fn probe(_host: &Host) -> Probe {
    match SockDiag::open().and_then(|mut diag| diag.connections(|_| {})) {
        Ok(()) => Probe::Ready,
        Err(error @ Error::NotAllowed) => Probe::Denied {
            why: error.to_string(),
            hint: "run weigh outside the container or sandbox that forbids it".to_owned(),
        },
        Err(error) => Probe::Absent { why: error.to_string() },
    }
}

/// How long the word of the last ends may take: the kernel sends it a moment later.
const CLOSE_EVENT_DELAY: Duration = Duration::from_millis(50);

/// How often it is looked who listens, and in which network namespaces processes are.
const ROUND_INTERVAL: Duration = Duration::from_secs(1);

/// What may be there when connections are first looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SocketBaseline {
    /// Nothing of a command that is about to begin.
    Command,
    /// Connections of processes that run already.
    Running,
}

/// The connections of the run.
pub struct Sockets {
    diag: SockDiag,
    /// Until ends come faster than they can be heard.
    closed: Option<ClosedConnections>,
    ledger: Ledger,
    budget: Budget,
    /// TCP segments of the namespace when connections were last listed.
    segments: Option<NodeTcp>,
    /// The only user whose connections can be the run's: one who is not root cannot see which
    /// descriptors others have.
    user: Option<u32>,
    /// The network namespace that is seen, as its link in `/proc` has it.
    namespace: Option<Vec<u8>>,
    /// When it is looked for processes of the run that are in another one.
    round: MinInterval,
    /// What is not seen, the first of each kind, until somebody asks.
    missing: Vec<String>,
    reported: HashSet<&'static str>,
}

impl Sockets {
    /// Takes note of all connections there are: what they carried until now does not count.
    pub fn begin(
        host: &Host,
        settings: &Settings,
        baseline: SocketBaseline,
    ) -> Result<Sockets, Error> {
        let mut sockets = Sockets {
            diag: SockDiag::open()?,
            closed: ClosedConnections::open().ok(),
            ledger: match baseline {
                SocketBaseline::Command => Ledger::of_command(),
                SocketBaseline::Running => Ledger::default(),
            },
            budget: Budget::of(settings.budget),
            segments: None,
            user: own::unprivileged_user(),
            namespace: host.proc.link(c"self/ns/net"),
            round: MinInterval::of(ROUND_INTERVAL),
            missing: Vec::new(),
            reported: HashSet::new(),
        };
        sockets.list()?;
        Ok(sockets)
    }

    /// Puts what the run's processes have moved into the tick. Segments of TCP, if they are in
    /// the tick, tell whether anything can have moved at all.
    pub fn sample(
        &mut self,
        host: &Host,
        processes: &ProcessCollector,
        tick: &mut Tick,
    ) -> Result<(), Fault> {
        let segments = segments(tick);
        let has_moved = segments.is_none() || segments != self.segments;
        let within_budget = self.budget.allows(tick.at);
        let began = host.clock.now();
        let is_round = within_budget && self.round.is_due(tick.at);
        if is_round {
            processes.alive().for_each(|id| self.check_namespace(host, id.pid));
        }
        // In a round also when nothing has moved: somebody may have begun to listen.
        if within_budget && (has_moved || is_round || self.ledger.has_unknown()) {
            self.list_and_attribute(host, processes)?;
            self.segments = segments;
            self.budget.spend(tick.at, host.clock.now().saturating_sub(began));
        }
        // After the look: whoever listens is then known, and whose short connections were.
        self.drain_closed();
        tick.put(Entity::Single, &self.ledger.row());
        Ok(())
    }

    /// Puts the last word of it into the tick.
    pub fn finish(
        &mut self,
        host: &Host,
        processes: &ProcessCollector,
        tick: &mut Tick,
    ) -> Result<(), Fault> {
        self.list_and_attribute(host, processes)?;
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

    /// What was not seen since the last question, a sentence each.
    pub fn missing(&mut self) -> Vec<String> {
        std::mem::take(&mut self.missing)
    }

    fn miss(&mut self, what: &'static str, why: impl FnOnce() -> String) {
        if self.reported.insert(what) {
            self.missing.push(why());
        }
    }

    /// Takes in the connections that have ended.
    fn drain_closed(&mut self) {
        let Some(closed) = &mut self.closed else { return };
        let ledger = &mut self.ledger;
        match closed.next(|connection| ledger.closed(connection)) {
            Ok(Drain::Complete) => {}
            Ok(Drain::Overrun) => {
                self.miss("lost", || "connections ended faster than was heard of them".to_owned());
            }
            // Hearing more of them would cost more than it tells.
            Ok(Drain::More) => {
                self.closed = None;
                self.miss("part", || "too many connections end here to hear of all".to_owned());
            }
            Err(error) => {
                self.closed = None;
                self.miss("endings", || format!("short connections are missing: {error}"));
            }
        }
    }

    /// Lists connections, and looks whose those are that nobody knows.
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

    /// Notes a process that is in a network namespace that is not seen.
    fn check_namespace(&mut self, host: &Host, pid: u32) {
        let namespace = host.proc.link(ProcPath::new(pid, "ns/net").as_c_str());
        if namespace.is_some() && namespace != self.namespace {
            let missing = "another network namespace, whose connections are missing";
            self.miss("namespace", || format!("process {pid} is in {missing}"));
        }
    }

    /// Adds the inodes of the sockets that a process holds.
    fn add_open_sockets(&mut self, host: &Host, pid: u32, held: &mut HashSet<u32>) {
        let listed = host.proc.each_name(ProcPath::new(pid, "fd").as_c_str(), |name| {
            let path = format!("{pid}/fd/{}", name.to_string_lossy());
            let link = CString::new(path).ok().and_then(|path| host.proc.link(&path));
            held.extend(link.as_deref().and_then(socket));
        });
        // One that is gone holds nothing.
        if let Err(error) = listed
            && error.is_denied()
        {
            self.miss("fd", || format!("connections of process {pid} are missing: {error}"));
        }
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
