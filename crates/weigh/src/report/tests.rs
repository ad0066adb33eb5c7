//! Runs that are told moment by moment, for the tests of everything a report is made of.

use std::time::Duration;

use super::census::{Census, Participants};
use crate::collect;
use crate::collect::own::OwnTicks;
use crate::collect::process::{ProcessCpu, ProcessMemory};
use crate::host::facts::Facts;
use crate::host::wait::{End, Usage};
use crate::record::events::RunEnd;
use crate::record::{Entry, Event, Manifest};
use crate::sample::{Entity, ProcessId, Tick};
use crate::settings::Settings;
use crate::summary::{Accumulator, Summary};

pub(super) const MIB: u64 = 1 << 20;
pub(super) const MAIN: ProcessId = ProcessId { pid: 10, started: 100 };

/// A run that is told moment by moment.
pub(super) struct Story {
    pub(super) manifest: Manifest,
    accumulator: Accumulator,
    census: Census,
    tick: Tick,
    last: f64,
}

impl Story {
    /// Of a run of `./work hard` on a machine of 4 cores and 8 GiB.
    pub(super) fn new() -> Story {
        Story::told(|_| {})
    }

    /// The same, with something else about it.
    pub(super) fn told(change: impl FnOnce(&mut Manifest)) -> Story {
        let settings = Settings::default();
        let facts = Facts::example();
        let command = ["./work".to_owned(), "hard".to_owned()];
        let wall = Duration::from_secs(1_700_000_000);
        let mut manifest = Manifest::new(&settings, &command, facts, wall);
        manifest.id = "20231114T221320-00000001".to_owned();
        manifest.pid = MAIN.pid;
        manifest.process_started = MAIN.started;
        manifest.user = Some("ada".to_owned());
        change(&mut manifest);
        Story {
            accumulator: Accumulator::new(&manifest),
            census: Census::new(&manifest),
            tick: Tick::new(&collect::groups(&settings.sources())),
            manifest,
            last: 0.0,
        }
    }

    /// A whole tick.
    pub(super) fn at(&mut self, seconds: f64, fill: impl FnOnce(&mut Tick)) -> &mut Story {
        self.last = seconds;
        self.tick.begin(Duration::from_secs_f64(seconds));
        fill(&mut self.tick);
        self.tick.put(Entity::Single, &OwnTicks { taken: Some(1), missed: Some(0) });
        self.accumulator.tick(&self.tick);
        self.census.tick(&self.tick);
        self
    }

    pub(super) fn event(&mut self, seconds: f64, event: Event) -> &mut Story {
        self.last = self.last.max(seconds);
        let entry = Entry::new(Duration::from_secs_f64(seconds), event);
        self.accumulator.event(&entry);
        self.census.event(&entry);
        self
    }

    pub(super) fn came(&mut self, seconds: f64, id: ProcessId, line: &str) -> &mut Story {
        let (name, command) = named(line);
        let (pid, started) = (id.pid, id.started);
        self.event(
            seconds,
            Event::ProcessStart { pid, started, parent: 1, name, command, tool: None },
        )
    }

    pub(super) fn became(&mut self, seconds: f64, id: ProcessId, line: &str) -> &mut Story {
        let (name, command) = named(line);
        self.event(
            seconds,
            Event::ProcessExec { pid: id.pid, started: id.started, name, command, tool: None },
        )
    }

    /// Its parent waited for it.
    pub(super) fn went(&mut self, seconds: f64, id: ProcessId) -> &mut Story {
        self.event(seconds, Event::ended(id, None, None))
    }

    /// weigh waited for it.
    pub(super) fn reaped(&mut self, seconds: f64, id: ProcessId, usage: Usage) -> &mut Story {
        let exit = Event::ended(id, Some(End::Code(0)), Some(usage));
        self.event(seconds, exit)
    }

    pub(super) fn end(&mut self, seconds: f64, change: impl FnOnce(&mut RunEnd)) -> &mut Story {
        let mut end = RunEnd {
            end: End::Code(0),
            duration_seconds: seconds,
            reaped: Usage::default(),
            task_clock_seconds: None,
            io: None,
            left: Vec::new(),
            some_unseen: false,
            rss_before_exec_bytes: 0,
            cpu_before_exec_seconds: 0.0,
            monitor_cpu_seconds: 0.01,
        };
        change(&mut end);
        self.event(seconds, Event::RunEnd(end))
    }

    pub(super) fn finish(self) -> (Manifest, Summary, Participants) {
        let summary = self.accumulator.finish();
        let participants = self.census.finish(summary.run.duration_seconds);
        (self.manifest, summary, participants)
    }

    pub(super) fn participants(self) -> Participants {
        let last = self.last;
        self.census.finish(last)
    }
}

/// The kernel's name and the arguments of a command line.
fn named(line: &str) -> (String, Option<Vec<String>>) {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    (words[0].rsplit('/').next().unwrap_or_default().to_owned(), Some(words))
}

pub(super) fn cpu(tick: &mut Tick, id: ProcessId, own: f64) {
    let row = ProcessCpu {
        user: Some(own),
        system: Some(0.0),
        children_user: Some(0.0),
        children_system: Some(0.0),
    };
    tick.put(Entity::Process(id), &row);
}

pub(super) fn memory(tick: &mut Tick, id: ProcessId, rss: u64, pss: Option<u64>) {
    let row = ProcessMemory { rss: Some(rss), peak: Some(rss), pss, uss: pss, swap: Some(0) };
    tick.put(Entity::Process(id), &row);
}

pub(super) fn usage(cpu: f64, largest: u64) -> Usage {
    Usage { user_seconds: cpu, largest_rss_bytes: largest, ..Usage::default() }
}
