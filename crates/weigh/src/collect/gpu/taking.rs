//! The collector of all makers' GPUs: takes what each driver's thread has read last, and puts it
//! into ticks.
//!
//! Threads ask ([`super::thread`]), because drivers take their time. Which processes have other
//! files open than before is seen here, where the processes of the run are ([`super::files`]).

use std::collections::HashMap;
use std::time::Duration;

use super::choice::unknown;
use super::files::Files;
use super::pids::Pids;
use super::reading::{CardRead, Find, Reading, Who};
use super::thread::{Answers, answers};
use super::{drm, nvidia};
use crate::catalog::Scope;
use crate::catalog::metrics::GpuActivity;
use crate::collect::{Collector, Fault, Probe};
use crate::host::Host;
use crate::model::gpu::Visible;
use crate::model::settings::Settings;
use crate::model::{Change, Entity, Gpu, ProcessId, Table, Tick};

/// How long a driver may take to begin: without persistence mode NVIDIA's wakes all cards up.
const BEGINNING: Duration = Duration::from_secs(15);

/// All drivers that have GPUs here.
pub(super) struct Gpus {
    wanted: Option<Vec<String>>,
    visible: Option<Visible>,
    interval: Duration,
    /// Nothing before the first tick.
    drivers: Option<Vec<Driver>>,
    /// All GPUs that were told of, until it is known which are wanted and not there.
    there: Vec<Gpu>,
    files: Files,
    /// When the last tick was.
    before: Option<Duration>,
    answers: fn(Find) -> Answers,
}

impl Gpus {
    pub(super) fn new(settings: &Settings) -> Gpus {
        Gpus {
            wanted: settings.gpus.clone(),
            visible: settings.visible_gpus.clone(),
            interval: settings.interval,
            drivers: None,
            there: Vec::new(),
            files: Files::default(),
            before: None,
            answers,
        }
    }

    /// GPUs that are asked in the tick itself, so that a test knows what was there to read.
    #[cfg(test)]
    pub(super) fn at_once(settings: &Settings) -> Gpus {
        Gpus { answers: super::reading::at_once, ..Gpus::new(settings) }
    }

    fn begin(&self, host: &Host, now: Duration) -> Vec<Driver> {
        let finds = finds(host, self.wanted.as_deref(), self.visible.as_ref()).into_iter();
        finds.map(|(kind, find)| Driver::new(kind, (self.answers)(find), now)).collect()
    }

    /// Tells which GPUs are wanted and not there, when all have been told of.
    fn missed(&mut self) -> Option<String> {
        if self.drivers.iter().flatten().any(|driver| !driver.has_told) {
            return None;
        }
        self.wanted.take().and_then(|wanted| unknown(&wanted, &self.there))
    }
}

impl Collector for Gpus {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        // The tick's, whenever its turn comes: who reads the rows takes the age off the tick's time.
        let now = tick.moment();
        if self.drivers.is_none() {
            self.drivers = Some(self.begin(host, now));
        }
        // At the beginning of a run ticks are closer together than they will be.
        let since = self.before.replace(now).map(|before| now.saturating_sub(before));
        let due = since.map_or(self.interval, |since| since.min(self.interval));
        let by_files = self.drivers.iter().flatten().any(|driver| driver.kind.by_files);
        let moved = if by_files { self.files.moved(host, tick) } else { Vec::new() };
        let mut trouble = Vec::new();
        for driver in self.drivers.iter_mut().flatten() {
            let moved = if driver.kind.by_files { &*moved } else { &[] };
            self.there.extend(driver.take(now, due, moved, tick, &mut trouble));
            driver.put(host, now, self.interval, tick, &mut trouble);
        }
        trouble.extend(self.missed());
        let drivers = self.drivers.get_or_insert_default();
        drivers.retain(|driver| !driver.has_ended);
        match trouble {
            trouble if drivers.is_empty() => Err(Fault::Retire(trouble.join("; "))),
            trouble if trouble.is_empty() => Ok(()),
            trouble => Err(Fault::Skip(trouble.join("; "))),
        }
    }
}

/// What is the same for all GPUs of a driver.
pub(super) struct Kind {
    called: &'static str,
    /// Whether the files that a process has open tell that it uses a GPU.
    by_files: bool,
}

const NVIDIA: Kind = Kind { called: "NVIDIA driver", by_files: false };
const DRM: Kind = Kind { called: "driver of AMD's and Intel's GPUs", by_files: true };

/// The drivers that are there, and how their GPUs are found.
pub(super) fn finds(
    host: &Host,
    wanted: Option<&[String]>,
    visible: Option<&Visible>,
) -> Vec<(Kind, Find)> {
    let mut finds = Vec::new();
    let wanted = || wanted.map(<[String]>::to_vec);
    let visible = || visible.cloned();
    if matches!(nvidia::probe(host), Probe::Ready) {
        finds.push((NVIDIA, nvidia::find(host, wanted(), visible())));
    }
    if matches!(drm::probe(host), Probe::Ready) {
        finds.push((DRM, drm::find(host, wanted(), visible())));
    }
    finds
}

/// One driver, and what it said last.
struct Driver {
    kind: Kind,
    answers: Answers,
    /// When it was first asked.
    began: Duration,
    last: Option<Reading>,
    /// Whether it has said which GPUs there are, or that it will not.
    has_told: bool,
    has_ended: bool,
    /// Whose numbers its pids are, when it has told of one.
    pids: Option<Pids>,
    /// Whom the driver's pids were at the last tick.
    seen: HashMap<u32, ProcessId>,
    /// When it was asked for what it said last that counted, and whether that became too old.
    answered: Duration,
    is_silent: bool,
    buffer: Vec<u8>,
}

impl Driver {
    fn new(kind: Kind, answers: Answers, began: Duration) -> Driver {
        Driver {
            kind,
            answers,
            began,
            last: None,
            has_told: false,
            has_ended: false,
            pids: None,
            seen: HashMap::new(),
            answered: began,
            is_silent: false,
            buffer: Vec::new(),
        }
    }

    /// Takes what is new, and says which GPUs there are when that is new.
    fn take(
        &mut self,
        now: Duration,
        interval: Duration,
        moved: &[ProcessId],
        tick: &mut Tick,
        trouble: &mut Vec<String>,
    ) -> Vec<Gpu> {
        let took = self.last.as_ref().map_or(Duration::ZERO, |last| last.took);
        let news = (self.answers)(now, now + interval - lead(took, interval), moved);
        if let Some(why) = news.ended {
            (self.has_ended, self.has_told) = (true, true);
            trouble.push(why);
        }
        self.has_told |= news.there.is_some();
        if let Some(mut reading) = news.reading {
            let met = std::mem::take(&mut reading.met);
            tick.changes.extend(met.into_iter().map(|gpu| Change::Gpu(Box::new(gpu))));
            trouble.append(&mut reading.trouble);
            self.last = Some(reading);
        }
        news.there.unwrap_or_default()
    }

    /// Puts what it said last into the tick, if that is not too old.
    fn put(
        &mut self,
        host: &Host,
        now: Duration,
        interval: Duration,
        tick: &mut Tick,
        trouble: &mut Vec<String>,
    ) {
        let called = self.kind.called;
        let Some(last) = &self.last else {
            let is_late = now.saturating_sub(self.began) > BEGINNING.max(patience(interval));
            let silent = || format!("the {called} does not answer");
            trouble.extend((is_late && !self.has_ended).then(silent));
            return;
        };
        let age = now.saturating_sub(last.at);
        // One that takes its time is not silent while it takes it once more.
        if age > patience(interval).max(last.took * 2 + interval) {
            // They are there, and nothing is known of them.
            for card in &last.cards {
                tick.put(Entity::Named(card.name), &GpuActivity::default());
            }
            self.is_silent = true;
            let asked = last.at.saturating_sub(self.began).as_secs_f64();
            trouble.push(format!(
                "the {called} does not answer; what it said last, {asked:.1} s after it was first \
                 asked, is too old to count"
            ));
            return;
        }
        if std::mem::take(&mut self.is_silent) {
            let silent = last.at.saturating_sub(self.answered).as_secs_f64();
            trouble.push(format!(
                "nothing for {silent:.1} s: the {called} did not answer; it does again"
            ));
        }
        self.answered = last.at;
        let are_numbered = last.users.iter().any(|user| matches!(user.who, Who::Numbered(..)));
        let pids = match are_numbered {
            true => self.pids.get_or_insert_with(|| Pids::of(&host.proc)),
            false => &mut Pids::Ours,
        };
        let before = std::mem::take(&mut self.seen);
        // Whom this tick has looked at already need not be looked for.
        let looked_at = match pids {
            Pids::Ours if are_numbered => by_pid(tick),
            _ => HashMap::new(),
        };
        for card in &last.cards {
            let mut unknown = 0;
            for (place, user) in last.users.iter().enumerate() {
                if user.gpu != card.name {
                    continue;
                }
                let is_gone = last.known.get(place).is_some_and(|known| !known.is_there);
                let (pid, then) = match user.who {
                    Who::Known(id) => {
                        tick.put(Entity::OnGpu(card.name, id), &user.share);
                        continue;
                    }
                    Who::Numbered(pid, then) => (pid, then),
                };
                // Of one that is gone, another may have the pid.
                let find = || pids.process(&host.proc, pid, &mut self.buffer);
                let found = looked_at.get(&pid).copied().or_else(find);
                match if is_gone { then } else { found.or(then) } {
                    Some(id) => {
                        self.seen.insert(pid, id);
                        tick.put(Entity::OnGpu(card.name, id), &user.share);
                    }
                    None => match before.get(&pid) {
                        // It has ended since the driver told of it.
                        Some(id) => drop(self.seen.insert(pid, *id)),
                        None => unknown += u64::from(!is_gone),
                    },
                }
            }
            put(tick, card, age, unknown);
        }
        if let Pids::Foreign(why) = pids {
            trouble.push((*why).to_owned());
        }
    }
}

/// The processes of the run that have a row in a tick.
fn by_pid(tick: &Tick) -> HashMap<u32, ProcessId> {
    let entities = tick.table(Scope::Process).map(Table::entities).unwrap_or_default();
    let ids = entities.iter().filter_map(|entity| match entity {
        Entity::Process(id) => Some((id.pid, *id)),
        _ => None,
    });
    ids.collect()
}

fn put(tick: &mut Tick, card: &CardRead, age: Duration, unknown: u64) {
    let activity = GpuActivity {
        age: Some(age.as_secs_f64()),
        processes_unknown: card
            .activity
            .processes
            .map(|_| unknown + card.activity.processes_unknown.unwrap_or(0)),
        ..card.activity
    };
    CardRead { activity, ..*card }.put(tick);
}

/// How long before a tick a driver is asked, so that it has just answered when the tick comes.
fn lead(took: Duration, interval: Duration) -> Duration {
    (took * 2 + Duration::from_millis(2)).min(interval / 2)
}

/// How old an answer may be.
fn patience(interval: Duration) -> Duration {
    (interval * 3).max(Duration::from_secs(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_driver_is_asked_shortly_before_a_tick_and_never_too_early() {
        let (ms, second) = (Duration::from_millis, Duration::from_secs(1));
        assert_eq!(lead(ms(4), second), ms(10));
        assert_eq!(lead(second, second), ms(500));
        assert_eq!(lead(ms(4), ms(1)), Duration::from_micros(500));
        assert_eq!((patience(ms(10)), patience(second)), (ms(2000), ms(3000)));
    }
}
