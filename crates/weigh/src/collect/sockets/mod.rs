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
use super::pace::Pace;
use super::processes::Processes;
use super::{Fault, Probe, Provider};
use crate::catalog::metrics::NodeTcp;
use crate::catalog::{Scope, SourceId};
use crate::host::sock_diag::{Endings, Error, Heard, SockDiag};
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
const LAST_WORD: Duration = Duration::from_millis(50);

/// How often it is looked who listens, and in which network namespaces processes are.
const ROUND: Duration = Duration::from_secs(1);

/// What may be there when connections are first looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Beginning {
    /// Nothing of a command that is about to begin.
    Command,
    /// Connections of processes that run already.
    Others,
}

/// The connections of the run.
pub struct Sockets {
    diag: SockDiag,
    /// Until ends come faster than they can be heard.
    endings: Option<Endings>,
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
    round: Pace,
    /// What is not seen, the first of each kind, until somebody asks.
    blind: Vec<String>,
    missed: HashSet<&'static str>,
}

impl Sockets {
    /// Takes note of all connections there are: what they carried until now does not count.
    pub fn begin(host: &Host, settings: &Settings, beginning: Beginning) -> Result<Sockets, Error> {
        let mut sockets = Sockets {
            diag: SockDiag::open()?,
            endings: Endings::open().ok(),
            ledger: match beginning {
                Beginning::Command => Ledger::of_command(),
                Beginning::Others => Ledger::default(),
            },
            budget: Budget::of(settings.budget),
            segments: None,
            user: own::unprivileged_user(),
            namespace: host.proc.link(c"self/ns/net"),
            round: Pace::resting(ROUND),
            blind: Vec::new(),
            missed: HashSet::new(),
        };
        sockets.list()?;
        Ok(sockets)
    }

    /// Puts what the run's processes have moved into the tick. Segments of TCP, if they are in
    /// the tick, tell whether anything can have moved at all.
    pub fn sample(
        &mut self,
        host: &Host,
        processes: &Processes,
        tick: &mut Tick,
    ) -> Result<(), Fault> {
        let segments = segments(tick);
        let has_moved = segments.is_none() || segments != self.segments;
        let may_look = self.budget.allows(tick.at);
        let began = host.clock.now();
        let is_round = may_look && self.round.is_due(tick.at);
        if is_round {
            processes.alive().for_each(|id| self.find(host, id.pid));
        }
        // In a round also when nothing has moved: somebody may have begun to listen.
        if may_look && (has_moved || is_round || self.ledger.has_unknown()) {
            self.look(host, processes)?;
            self.segments = segments;
            self.budget.spend(tick.at, host.clock.now().saturating_sub(began));
        }
        // After the look: whoever listens is then known, and whose short connections were.
        self.hear();
        tick.put(Entity::Single, &self.ledger.row());
        Ok(())
    }

    /// Puts the last word of it into the tick.
    pub fn finish(
        &mut self,
        host: &Host,
        processes: &Processes,
        tick: &mut Tick,
    ) -> Result<(), Fault> {
        self.look(host, processes)?;
        let until = host.clock.now() + LAST_WORD;
        loop {
            self.hear();
            let left = until.saturating_sub(host.clock.now());
            match &self.endings {
                Some(endings) if self.ledger.awaits_ends() && !left.is_zero() => {
                    endings.wait(left).map_err(|error| Fault::Retire(error.to_string()))?;
                }
                _ => break,
            }
        }
        tick.put(Entity::Single, &self.ledger.row());
        Ok(())
    }

    /// What was not seen since the last question, a sentence each.
    pub fn blind(&mut self) -> Vec<String> {
        std::mem::take(&mut self.blind)
    }

    fn miss(&mut self, what: &'static str, why: impl FnOnce() -> String) {
        if self.missed.insert(what) {
            self.blind.push(why());
        }
    }

    /// Takes in the connections that have ended.
    fn hear(&mut self) {
        let Some(endings) = &mut self.endings else { return };
        let ledger = &mut self.ledger;
        match endings.next(|connection| ledger.ended(connection)) {
            Ok(Heard::All) => {}
            Ok(Heard::Lost) => {
                self.miss("lost", || "connections ended faster than was heard of them".to_owned());
            }
            // Hearing more of them would cost more than it tells.
            Ok(Heard::Part) => {
                self.endings = None;
                self.miss("part", || "too many connections end here to hear of all".to_owned());
            }
            Err(error) => {
                self.endings = None;
                self.miss("endings", || format!("short connections are missing: {error}"));
            }
        }
    }

    /// Lists connections, and looks whose those are that nobody knows.
    fn look(&mut self, host: &Host, processes: &Processes) -> Result<(), Fault> {
        self.list().map_err(|error| match error {
            Error::Endless => Fault::Skip(error.to_string()),
            _ => Fault::Retire(error.to_string()),
        })?;
        if self.ledger.has_unknown() {
            let mut held = HashSet::new();
            processes.alive().for_each(|id| self.add_held(host, id.pid, &mut held));
            self.ledger.claim(&held);
        }
        Ok(())
    }

    fn list(&mut self) -> Result<(), Error> {
        let (ledger, user) = (&mut self.ledger, self.user);
        ledger.begin_list();
        self.diag.connections(|connection| {
            ledger.see(connection, user.is_none_or(|user| user == connection.user));
        })?;
        ledger.end_list(self.endings.is_some());
        Ok(())
    }

    /// Notes a process that is in a network namespace that is not seen.
    fn find(&mut self, host: &Host, pid: u32) {
        let namespace = host.proc.link(ProcPath::new(pid, "ns/net").as_c_str());
        if namespace.is_some() && namespace != self.namespace {
            let missing = "another network namespace, whose connections are missing";
            self.miss("namespace", || format!("process {pid} is in {missing}"));
        }
    }

    /// Adds the inodes of the sockets that a process holds.
    fn add_held(&mut self, host: &Host, pid: u32, held: &mut HashSet<u32>) {
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
