//! NVIDIA's GPUs, by the library of their driver.
//!
//! Source: NVML (`host::nvml`), which every user may ask. A thread of its own does
//! ([`thread`]); a tick takes what that has read last, and says how old it is.
//!
//! What surprised us: the driver knows processes by the pids of the machine. In a container they
//! are somebody else's numbers, and may be the numbers of somebody who is there, so they are not
//! even compared with ours.

mod card;
mod cards;
mod chosen;
mod sampled;
mod thread;
mod users;
mod visible;

use std::collections::HashMap;
use std::sync::mpsc;
use std::time::Duration;

use super::{GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle, GpuUnits};
use crate::collect::{Collector, Fault, Probe};
use crate::host::nvml::{self, Nvml};
use crate::host::{Host, own};
use crate::parse::stat;
use crate::sample::{Change, Entity, ProcessId, Tick};
use crate::settings::Settings;
use card::CardRead;
use thread::{Exchange, Reading};

pub use chosen::{is_word, not_there};
pub use visible::Visible;

/// How long the driver may take to begin: without persistence mode it wakes all cards up.
const BEGINNING: Duration = Duration::from_secs(15);

/// How long `weigh doctor` waits for the driver.
const PATIENCE: Duration = Duration::from_secs(20);

/// The pid namespace that the machine begins with (`PROC_PID_INIT_INO` of the kernel).
const FIRST_NAMESPACE: &[u8] = b"pid:[4026531836]";

const SILENT: &str = "the NVIDIA driver does not answer; what it said last is too old to count";

/// Whether a driver is there, without asking it.
pub(super) fn probe(host: &Host) -> Probe {
    // Windows lends its driver to its Linux, which then has another device for it.
    let is_there =
        host.proc.has(c"driver/nvidia/version") || host.sys.has(c"class/misc/dxg/uevent");
    if nvml::is_named() || is_there {
        return Probe::Ready;
    }
    let version = host.proc.path(c"driver/nvidia/version");
    Probe::Absent { why: format!("no NVIDIA driver is loaded: there is no {}", version.display()) }
}

/// Whether the driver answers.
pub(super) fn examine(host: &Host) -> Probe {
    if let Probe::Absent { why } = probe(host) {
        return Probe::Absent { why };
    }
    let (answer, answered) = mpsc::channel();
    let asked = std::thread::Builder::new().name("weigh-gpu".to_owned()).spawn(move || {
        // Nobody listens any more when it took too long.
        let _ = answer.send(Nvml::load().and_then(|nvml| Ok(nvml.count()?)));
    });
    match asked.map(|_| answered.recv_timeout(PATIENCE)) {
        Ok(Ok(Ok(0))) => Probe::Absent { why: "the NVIDIA driver has no GPU".to_owned() },
        Ok(Ok(Ok(_))) => Probe::Ready,
        Ok(Ok(Err(error @ nvml::Error::NotAllowed(_)))) => Probe::Denied {
            why: error.to_string(),
            hint: "ls -l /dev/nvidiactl says which group may; sudo usermod -aG GROUP $USER"
                .to_owned(),
        },
        Ok(Ok(Err(error))) => Probe::Absent { why: error.to_string() },
        Ok(Err(_)) => Probe::Absent { why: "the NVIDIA driver does not answer".to_owned() },
        Err(error) => Probe::Absent { why: format!("no thread to ask the driver: {error}") },
    }
}

/// What the thread has read, put into ticks.
pub(super) struct Nvidia {
    wanted: Option<Vec<String>>,
    visible: Option<Visible>,
    interval: Duration,
    exchange: Option<Exchange>,
    /// When the driver was first asked for.
    began: Duration,
    /// When the last tick was.
    before: Option<Duration>,
    last: Option<Reading>,
    /// Whom the driver's pids were at the last tick.
    seen: HashMap<u32, ProcessId>,
    buffer: Vec<u8>,
}

impl Nvidia {
    pub(super) fn new(settings: &Settings) -> Nvidia {
        Nvidia {
            wanted: settings.gpus.clone(),
            visible: settings.visible_gpus.clone(),
            interval: settings.interval,
            exchange: None,
            began: Duration::ZERO,
            before: None,
            last: None,
            seen: HashMap::new(),
            buffer: Vec::new(),
        }
    }

    /// Takes what is new, and says what went wrong with it.
    fn take(&mut self, now: Duration, tick: &mut Tick) -> Result<Vec<String>, Fault> {
        let exchange = match &self.exchange {
            Some(exchange) => exchange,
            None => {
                self.began = now;
                let (wanted, visible) = (self.wanted.take(), self.visible.take());
                let begun = Exchange::begin(wanted, visible).map_err(|error| {
                    Fault::Retire(format!("no thread to ask the driver: {error}"))
                })?;
                self.exchange.insert(begun)
            }
        };
        let took = self.last.as_ref().map_or(Duration::ZERO, |last| last.took);
        // At the beginning of a run ticks are closer together than they will be.
        let since = self.before.replace(now).map(|before| now.saturating_sub(before));
        let interval = since.map_or(self.interval, |since| since.min(self.interval));
        let news = exchange.take(now + interval - lead(took, interval));
        if let Some(why) = news.ended {
            return Err(Fault::Retire(why));
        }
        let Some(mut reading) = news.reading else { return Ok(Vec::new()) };
        let met = std::mem::take(&mut reading.met);
        tick.changes.extend(met.into_iter().map(|gpu| Change::Gpu(Box::new(gpu))));
        let trouble = std::mem::take(&mut reading.trouble);
        self.last = Some(reading);
        Ok(trouble)
    }
}

/// How long before a tick the driver is asked, so that it has just answered when the tick comes.
fn lead(took: Duration, interval: Duration) -> Duration {
    (took * 2 + Duration::from_millis(2)).min(interval / 2)
}

/// How old an answer may be.
fn patience(interval: Duration) -> Duration {
    (interval * 3).max(Duration::from_secs(2))
}

impl Collector for Nvidia {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let now = host.clock.now();
        let mut trouble = self.take(now, tick)?;
        let Some(last) = &self.last else {
            let is_late = now.saturating_sub(self.began) > BEGINNING.max(patience(self.interval));
            return if is_late { Err(Fault::Skip(SILENT.to_owned())) } else { Ok(()) };
        };
        let age = now.saturating_sub(last.at);
        if age > patience(self.interval) {
            // It is there, and nothing is known of it.
            for card in &last.cards {
                tick.put(Entity::Named(card.name), &GpuActivity::default());
            }
            return Err(Fault::Skip(SILENT.to_owned()));
        }
        let pids = Pids::of(host);
        let before = std::mem::take(&mut self.seen);
        for card in &last.cards {
            let users = last.users.iter().filter(|user| user.gpu == card.name);
            let mut unknown = 0;
            for user in users {
                match pids.process(host, user.pid, &mut self.buffer) {
                    Some(id) => {
                        self.seen.insert(id.pid, id);
                        tick.put(Entity::OnGpu(card.name, id), &user.share);
                    }
                    None => match before.get(&user.pid) {
                        // It has ended since the driver told of it.
                        Some(id) => drop(self.seen.insert(user.pid, *id)),
                        None => unknown += 1,
                    },
                }
            }
            put(tick, card, age, unknown);
        }
        if let Pids::Foreign(why) = pids
            && !last.users.is_empty()
        {
            trouble.push(why.to_owned());
        }
        if trouble.is_empty() { Ok(()) } else { Err(Fault::Skip(trouble.join("; "))) }
    }
}

fn put(tick: &mut Tick, card: &CardRead, age: Duration, unknown: u64) {
    let who = Entity::Named(card.name);
    let activity = GpuActivity {
        age: Some(age.as_secs_f64()),
        processes_unknown: card.activity.processes.map(|_| unknown),
        ..card.activity
    };
    tick.put::<GpuActivity>(who, &activity);
    tick.put::<GpuMemory>(who, &card.memory);
    tick.put::<GpuPower>(who, &card.power);
    tick.put::<GpuThrottle>(who, &card.throttle);
    tick.put::<GpuEcc>(who, &card.ecc);
    tick.put::<GpuLink>(who, &card.link);
    tick.put::<GpuUnits>(who, &card.units);
}

/// Whose numbers the driver's pids are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pids {
    /// Those of our `/proc`.
    Ours,
    /// Somebody else's, and why that is so.
    Foreign(&'static str),
}

impl Pids {
    fn of(host: &Host) -> Pids {
        let namespace = host.proc.link(c"self/ns/pid");
        let is_first = namespace.as_deref() == Some(FIRST_NAMESPACE);
        if is_first && own::sees_itself(host) {
            return Pids::Ours;
        }
        // Not through NSpid either: it has the numbers from this namespace inwards, and the
        // driver's are those outwards.
        Pids::Foreign(
            "the driver names processes by the pids of the machine, and this is a pid namespace \
             of its own (a container): whose GPU memory is whose is not known; start the \
             container with --pid=host",
        )
    }

    /// The process behind a pid of the driver's, if it is one that we see.
    fn process(self, host: &Host, pid: u32, buffer: &mut Vec<u8>) -> Option<ProcessId> {
        if self != Pids::Ours {
            return None;
        }
        let path = crate::host::ProcPath::new(pid, "stat");
        let bytes = host.proc.read(path.as_c_str(), buffer).ok()?;
        let started = stat::parse(bytes).ok()?.started;
        Some(ProcessId { pid, started })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    fn machine(namespace: &str) -> FakeHost {
        let stat = "7 (python) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0 0\n";
        FakeHost::new()
            .proc("7/stat", stat)
            .proc_link("self", &std::process::id().to_string())
            .proc_link(&format!("{}/ns/pid", std::process::id()), namespace)
    }

    #[test]
    fn pids_of_the_driver_are_those_of_the_first_namespace() {
        let fake = machine("pid:[4026531836]");
        let host = fake.host();
        let pids = Pids::of(&host);
        let found = pids.process(&host, 7, &mut Vec::new());
        assert_eq!(found, Some(ProcessId { pid: 7, started: 4711 }));
        assert_eq!(pids.process(&host, 8, &mut Vec::new()), None, "nobody has that pid");
    }

    #[test]
    fn in_a_container_nobody_is_taken_for_somebody_else() {
        let fake = machine("pid:[4026532000]");
        let host = fake.host();
        let pids = Pids::of(&host);
        assert!(matches!(pids, Pids::Foreign(why) if why.contains("--pid=host")));
        assert_eq!(pids.process(&host, 7, &mut Vec::new()), None, "a pid of that number is there");
    }

    #[test]
    fn without_a_driver_it_is_said_where_one_was_looked_for() {
        let fake = FakeHost::new();
        let Probe::Absent { why } = probe(&fake.host()) else { panic!("there is none") };
        assert!(why.contains("driver/nvidia/version"), "{why}");
        fake.set_proc("driver/nvidia/version", "NVRM version: 575\n");
        assert!(matches!(probe(&fake.host()), Probe::Ready));
    }

    #[test]
    fn the_driver_is_asked_shortly_before_a_tick_and_never_too_early() {
        let (ms, second) = (Duration::from_millis, Duration::from_secs(1));
        assert_eq!(lead(ms(4), second), ms(10));
        assert_eq!(lead(second, second), ms(500));
        assert_eq!(lead(ms(4), ms(1)), Duration::from_micros(500));
        assert_eq!((patience(ms(10)), patience(second)), (ms(2000), ms(3000)));
    }
}
