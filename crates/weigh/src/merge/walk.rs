//! Walks several recordings side by side, moment by moment, and writes them as one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::time::Duration;

use super::ending;
use super::gpus::MergedGpus;
use super::layout::{Layout, Place};
use super::process_registry::ProcessRegistry;
use super::rounds::Rounds;
use crate::catalog::{Metric, Scope};
use crate::model::{Entity, ProcessId, Tick};
use crate::record::events::Helper;
use crate::record::{AttachBaseline, Entry, Error, Event, Moment, Recording, Replay, Writer};

/// Rows that are buffered before they are written.
const BATCH: usize = 16 * 1024;

/// Whether rows of this scope are not passed on as they are: cgroups and perf events of several
/// runs are not one, and others are written at the end of a round.
fn is_apart(scope: Scope) -> bool {
    matches!(
        scope,
        Scope::Own | Scope::Run | Scope::Cgroup | Scope::PerfEvent | Scope::Gpu | Scope::GpuProcess
    )
}

/// A walk through several recordings.
pub(super) struct Walk<'a> {
    recordings: &'a [Recording],
    layout: &'a Layout,
    replays: Vec<Replay<'a>>,
    /// When the next moment of each is, the earliest on top.
    next: BinaryHeap<Reverse<(Duration, usize)>>,
    written: Written,
}

/// The output, and the state needed to continue.
struct Written {
    tick: Tick,
    writer: Writer,
    now: Duration,
    process_registry: ProcessRegistry,
    rounds: Rounds,
    /// Those that have ended: in this round, or before.
    ended: Vec<(usize, bool)>,
    /// The attach baselines, by namespace.
    baselines: HashMap<usize, AttachBaseline>,
    faults: HashSet<(String, String)>,
    gpus: MergedGpus,
    /// Which recordings mark their complete ticks.
    tells: Vec<bool>,
}

impl<'a> Walk<'a> {
    /// At the beginning.
    pub(super) fn new(
        recordings: &'a [Recording],
        layout: &'a Layout,
        groups: &[&'static [Metric]],
        tick: Tick,
        writer: Writer,
    ) -> Result<Walk<'a>, Error> {
        let replays: Vec<Replay<'a>> = recordings
            .iter()
            .map(|recording| Replay::as_recorded(recording, groups))
            .collect::<Result<_, Error>>()?;
        let attached = layout.places.iter().filter(|place| place.attached > 0);
        let own = |one: &Recording| {
            let own = format!("{}.", Scope::Own.name());
            one.manifest().catalogue.iter().any(|metric| metric.name.starts_with(&own))
        };
        let mut walk = Walk {
            recordings,
            layout,
            next: BinaryHeap::new(),
            written: Written {
                tick,
                writer,
                now: Duration::ZERO,
                process_registry: ProcessRegistry::default(),
                rounds: Rounds::of(recordings.len(), layout.clocks),
                ended: Vec::new(),
                baselines: attached
                    .map(|place| (place.namespace, AttachBaseline::new(place.attached)))
                    .collect(),
                faults: HashSet::new(),
                gpus: MergedGpus::new(recordings, groups),
                tells: recordings.iter().map(own).collect(),
            },
            replays,
        };
        (0..recordings.len()).for_each(|one| walk.expect(one));
        Ok(walk)
    }

    /// Notes when the next moment of a recording is.
    fn expect(&mut self, one: usize) {
        if let Some(at) = self.replays[one].time() {
            // Late control messages keep their place among the events of their recording.
            let at = (at + self.layout.places[one].offset).max(self.written.now);
            self.next.push(Reverse((at, one)));
        } else {
            self.written.ends(one, None);
        }
    }

    /// Processes the next moment of all, and returns its time.
    pub(super) fn step(&mut self) -> Result<Option<Duration>, Error> {
        let Some(Reverse((at, one))) = self.next.pop() else { return Ok(None) };
        self.written.now = at;
        self.written.writer.wait_for_queue();
        let place = &self.layout.places[one];
        match self.replays[one].next_moment()? {
            Some(Moment::Event(entry)) => self.written.event(entry, one, place),
            Some(Moment::Tick(tick)) => self.written.tick(tick, one, place),
            None => {}
        }
        self.expect(one);
        Ok(Some(at))
    }

    /// Writes the end, and returns what failed.
    pub(super) fn finish(mut self) -> Vec<String> {
        let end = ending::of_all(self.recordings, self.layout, &self.written.process_registry);
        if let Some(end) = end {
            self.written.writer.event(end);
        }
        self.written.writer.finish(self.written.now, || false)
    }
}

impl Written {
    fn put(&mut self, at: Duration, event: Event) {
        self.writer.event(Entry::new(at, event));
    }

    fn put_with_data(&mut self, at: Duration, event: Event, of: &Entry) {
        self.writer.event(Entry { data: of.data.clone(), ..Entry::new(at, event) });
    }

    /// An event of one of the recordings.
    fn event(&mut self, entry: &Entry, one: usize, place: &Place) {
        let at = entry.at() + place.offset;
        // Phases of different recordings must not have the same id.
        let unique = |id: &str| format!("{}:{id}", one + 1);
        match &entry.event {
            Event::PhaseStart { id, name, parent } => {
                let parent = parent.as_deref().map(unique);
                let start = Event::PhaseStart { id: unique(id), name: name.clone(), parent };
                self.put_with_data(at, start, entry);
            }
            Event::PhaseCommand { id, pid, started } => {
                let process = ProcessId { pid: *pid, started: *started };
                let ProcessId { pid, started } = process.moved(place.namespace, place.ahead);
                self.put(at, Event::PhaseCommand { id: unique(id), pid, started });
            }
            Event::PhaseEnd { id, usage, end, account } => {
                let (usage, end, account) = (*usage, *end, *account);
                self.put(at, Event::PhaseEnd { id: unique(id), usage, end, account });
            }
            Event::Helper(helper) => {
                let within = helper.within.as_deref().map(unique);
                self.put(at, Event::Helper(Helper { within, used: helper.used }));
            }
            Event::Mark { .. } => self.put_with_data(at, entry.event.clone(), entry),
            Event::OutOfMemory { .. } => self.put(at, entry.event.clone()),
            Event::Gpu(gpu) => {
                if let Some(gpu) = self.gpus.merge(one, gpu) {
                    self.put(at, Event::Gpu(Box::new(gpu)));
                }
            }
            Event::Fault { source, why } => {
                if self.faults.insert((source.clone(), why.clone())) {
                    self.put(at, entry.event.clone());
                }
            }
            Event::ProcessStart { .. } | Event::ProcessExec { .. } | Event::ProcessExit { .. } => {
                if let Some(event) = self.process_registry.merge(&entry.event, one, place) {
                    let entry = Entry::new(at, event);
                    if let Some(baseline) = self.baselines.get_mut(&place.namespace) {
                        baseline.event(&entry);
                    }
                    self.writer.event(entry);
                }
            }
            Event::RunEnd(end) => self.ends(one, end.task_clock_seconds),
        }
    }

    /// One of the recordings has ended.
    fn ends(&mut self, one: usize, clock: Option<f64>) {
        if self.rounds.ends(one, clock) {
            self.tick.begin(self.now);
            self.end_round();
            self.writer.tick(&self.tick);
        }
        self.write_gpus(one);
        self.gpus.leaves(one);
        if self.ended.iter().all(|(ended, _)| *ended != one) {
            self.ended.push((one, false));
        }
        // No samples until another one begins: what ran has ended.
        if self.rounds.is_interrupted() {
            for (one, _) in std::mem::take(&mut self.ended) {
                for event in self.process_registry.leaves(one) {
                    self.put(self.now, event);
                }
            }
        }
    }

    /// Writes the GPUs of all, when there is a sample of this recording that is not written.
    fn write_gpus(&mut self, one: usize) {
        if let Some(at) = self.gpus.due(one) {
            self.tick.begin(at);
            self.gpus.put(&mut self.tick);
            self.writer.tick(&self.tick);
        }
    }

    /// A tick of one of the recordings.
    fn tick(&mut self, tick: &Tick, one: usize, place: &Place) {
        self.write_gpus(one);
        self.gpus.sample(one, tick, place);
        let at = tick.at + place.offset;
        self.tick.begin(at);
        for table in tick.tables() {
            let (Some(ours), false) = (self.tick.table_mut(table.scope()), is_apart(table.scope()))
            else {
                continue;
            };
            for (row, entity) in table.entities().iter().enumerate() {
                let entity = match entity {
                    Entity::Process(id) => {
                        let id = id.moved(place.namespace, place.ahead);
                        if self.process_registry.has_exited(id) {
                            continue;
                        }
                        Entity::Process(id)
                    }
                    other => *other,
                };
                ours.append_row_as(table, row, at, entity);
            }
        }
        if let Some(baseline) = self.baselines.get_mut(&place.namespace) {
            baseline.attached_at(place.attached);
            baseline.tick(&mut self.tick);
        }
        if self.tells[one] {
            self.rounds.begins(one);
        }
        if let Some(table) = tick.table(Scope::Run).filter(|table| !table.is_empty()) {
            self.rounds.counted(one, &table.get(0));
        }
        if let Some(table) = tick.table(Scope::Own).filter(|_| tick.is_complete())
            && self.rounds.sampled(one, table.get(0), table.get(0))
        {
            self.end_round();
        }
        self.writer.tick(&self.tick);
        if self.writer.gathered() >= BATCH {
            self.writer.flush(at);
        }
    }

    /// A round is complete: processes that no recording has monitored since the last one are no
    /// longer counted.
    fn end_round(&mut self) {
        self.rounds.put(&mut self.tick);
        self.gpus.put(&mut self.tick);
        let at = self.tick.at;
        let (gone, stay) = std::mem::take(&mut self.ended).into_iter().partition(|one| one.1);
        self.ended = stay;
        self.ended.iter_mut().for_each(|one| one.1 = true);
        let gone: Vec<(usize, bool)> = gone;
        for (one, _) in gone {
            for event in self.process_registry.leaves(one) {
                self.put(at, event);
            }
        }
    }
}
