//! The watch over one command, from exec to the last of its children.
//!
//! One thread and one loop: it waits for the next deadline, a signal or a word
//! from inside the run, whichever comes first.

mod close;
mod reap;
mod words;

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::schedule::Schedule;
use crate::collect::own::OwnTicks;
use crate::collect::processes::Processes;
use crate::collect::task_clock::RunClock;
use crate::collect::{Collector, Fault};
use crate::host::child::{self, Pause, Waiting};
use crate::host::perf::TaskClock;
use crate::host::signals::{self, Arrived, Signals};
use crate::host::wait::{self, End, Usage};
use crate::host::{Host, own};
use crate::parse::io::Io;
use crate::record::inbox::Inbox;
use crate::record::{self, Entry, Event, Manifest, Writer};
use crate::sample::{Entity, ProcessId, Tick};
use crate::settings::Settings;
use crate::summary::Accumulator;
pub(super) use reap::Inheritance;
use words::Steps;

/// What ended a sleep before its time.
struct Woken {
    by_signal: bool,
    by_word: bool,
}

pub(super) struct Monitor {
    host: Host,
    /// The clock's reading at the run's zero.
    begin: Duration,
    tick: Tick,
    processes: Option<Processes>,
    task_clock: Option<RunClock>,
    collectors: Vec<(&'static str, Box<dyn Collector>)>,
    writer: Option<Writer>,
    inbox: Option<Inbox>,
    signals: Signals,
    accumulator: Accumulator,
    schedule: Schedule,
    root: ProcessId,
    wait_all: bool,
    job_control: bool,
    executed: Duration,
    /// What the child used before it became the command.
    pause: Pause,
    reaped: Usage,
    ended: Option<(End, Duration)>,
    stop_waiting: bool,
    inheritance: Inheritance,
    steps: Steps,
    faulted: Vec<String>,
}

impl Monitor {
    #[expect(clippy::too_many_arguments, reason = "called once, with everything a run is made of")]
    pub(super) fn new(
        host: Host,
        begin: Duration,
        settings: &Settings,
        manifest: &Manifest,
        tick: Tick,
        processes: Option<Processes>,
        writer: Option<Writer>,
        signals: Signals,
        root: u32,
    ) -> Monitor {
        let sources = settings.sources();
        let collectors = sources
            .iter()
            .filter_map(|source| Some((source.name, source.collector?(settings))))
            .collect();
        Monitor {
            host,
            begin,
            tick,
            processes,
            task_clock: None,
            collectors,
            writer,
            inbox: None,
            signals,
            accumulator: Accumulator::new(manifest),
            schedule: Schedule::new(Duration::ZERO, settings.interval),
            root: ProcessId { pid: root, started: manifest.process_started },
            wait_all: settings.wait_all,
            job_control: signals::under_job_control(),
            executed: Duration::ZERO,
            pause: Pause::default(),
            reaped: Usage::default(),
            ended: None,
            stop_waiting: false,
            inheritance: Inheritance { children: HashSet::new(), io: Io::default() },
            steps: Steps::default(),
            faulted: Vec::new(),
        }
    }

    pub(super) fn take_inheritance(&mut self, inheritance: Inheritance) {
        self.inheritance = inheritance;
    }

    pub(super) fn take_task_clock(&mut self, clock: Option<std::io::Result<TaskClock>>) {
        match clock {
            Some(Ok(clock)) => self.task_clock = Some(RunClock(clock)),
            Some(Err(error)) => self.fault("task-clock", format!("perf_event_open: {error}")),
            None => {}
        }
    }

    pub(super) fn take_inbox(&mut self, inbox: Option<Result<Inbox, record::Error>>) {
        match inbox {
            Some(Ok(inbox)) => self.inbox = Some(inbox),
            Some(Err(error)) => self.fault("inbox", error.to_string()),
            None => {}
        }
    }

    /// Lets the child become the command.
    pub(super) fn start(&mut self, waiting: Waiting) -> Result<(), child::Error> {
        self.executed = self.now();
        self.pause = match waiting.exec() {
            Ok(pause) => pause,
            Err(error) => {
                // The child has nothing more to do; its end is ours to collect.
                while wait::reap(self.root.pid).is_none() && wait::has_children() {
                    std::thread::yield_now();
                }
                return Err(error);
            }
        };
        self.schedule = Schedule::new(self.executed, self.schedule.interval());
        Ok(())
    }

    /// The time since the run began.
    fn now(&self) -> Duration {
        self.host.clock.now().saturating_sub(self.begin)
    }

    /// Watches until the command has ended, and with `--wait-all` everything it started.
    pub(super) fn watch(&mut self) {
        loop {
            let mut now = self.now();
            if now >= self.schedule.due() {
                self.take_tick();
                now = self.now();
            }
            let until = self.schedule.due();
            if let Some(writer) = &mut self.writer
                // Now, when the next tick would be too late: waking up once more costs more.
                && writer.due().is_some_and(|due| due < until)
            {
                writer.flush(now);
            }
            let woken = self.sleep(until.saturating_sub(now));
            if woken.by_word {
                let words = self.inbox.as_mut().map_or_else(Vec::new, Inbox::take);
                self.hear(words);
            }
            if woken.by_signal {
                while let Some(signal) = self.signals.arrived() {
                    self.signal(signal);
                }
                self.reap();
                if self.is_over() {
                    return;
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() && (!self.wait_all || self.stop_waiting || !self.has_children())
    }

    /// Whether anything of the run is left, apart from what was there before it.
    fn has_children(&self) -> bool {
        wait::has_children()
            && (self.inheritance.children.is_empty()
                || !own::children(&self.host).is_subset(&self.inheritance.children))
    }

    /// Sleeps until a signal or a word arrives, at most so long.
    fn sleep(&self, time: Duration) -> Woken {
        let signals = self.signals.as_fd();
        let inbox = self.inbox.as_ref().map_or(signals, |inbox| inbox.as_fd());
        let mut sources = [signals, inbox].map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
        let time =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        match poll(&mut sources, Some(&time)) {
            Ok(0) => Woken { by_signal: false, by_word: false },
            Ok(_) => Woken {
                by_signal: !sources[0].revents().is_empty(),
                by_word: self.inbox.is_some() && !sources[1].revents().is_empty(),
            },
            // Better one look too many.
            Err(_) => Woken { by_signal: true, by_word: true },
        }
    }

    /// Asks everybody, and hands on what they said.
    fn take_tick(&mut self) {
        let at = self.now();
        self.tick.begin(at);
        let mut faults = Vec::new();
        // First, because it is the one whose rate shows how far it is from `at`.
        if let Some(clock) = &mut self.task_clock
            && let Err(fault) = clock.sample(&self.host, &mut self.tick)
        {
            self.task_clock = None;
            faults.push(("task-clock", fault));
        }
        self.ask_processes();
        let (host, tick) = (&self.host, &mut self.tick);
        self.collectors.retain_mut(|(name, collector)| {
            let Err(fault) = collector.sample(host, tick) else { return true };
            let stays = matches!(fault, Fault::Skip(_));
            faults.push((*name, fault));
            stays
        });
        let ticks =
            OwnTicks { taken: Some(self.schedule.taken + 1), missed: Some(self.schedule.missed) };
        self.tick.put(Entity::Single, &ticks);
        self.hand_on_tick();
        for (source, fault) in faults {
            self.fault(source, fault.to_string());
        }
        let now = self.now();
        if now >= self.schedule.due() {
            self.schedule.took(now);
        }
    }

    fn ask_processes(&mut self) {
        let Some(processes) = &mut self.processes else { return };
        let asked = processes.sample(&self.host, &mut self.tick);
        let mut refusals = processes.refusals();
        if let Err(fault) = asked {
            refusals.push(fault.to_string());
            if matches!(fault, Fault::Retire(_)) {
                self.processes = None;
            }
        }
        refusals.into_iter().for_each(|why| self.fault("process", why));
    }

    /// Who came and went first, so that nobody is counted who is not there any more.
    fn hand_on_tick(&mut self) {
        for change in std::mem::take(&mut self.tick.changes) {
            self.event(self.tick.at, Event::from(&change));
        }
        self.accumulator.tick(&self.tick);
        if let Some(writer) = &mut self.writer {
            writer.tick(&self.tick);
        }
    }

    fn event(&mut self, at: Duration, event: Event) {
        let entry = Entry::new(at, event);
        self.accumulator.event(&entry);
        if let Some(writer) = &mut self.writer {
            writer.event(&entry);
        }
    }

    /// Records what could not be measured; the same thing once.
    pub(super) fn fault(&mut self, source: &str, why: String) {
        let fault = format!("{source}: {why}");
        if !self.faulted.contains(&fault) {
            self.faulted.push(fault);
            self.event(self.now(), Event::Fault { source: source.to_owned(), why });
        }
    }

    /// Passes a signal on to the command, unless it has it already.
    fn signal(&mut self, signal: Arrived) {
        if signal.number == libc::SIGCHLD {
            return;
        }
        if self.ended.is_some() {
            // Only descendants are left, and whoever asks us to end means us.
            let ends = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
            self.stop_waiting |= ends.contains(&signal.number);
            return;
        }
        // The kernel sends to the whole group (a terminal) or means us alone (an alarm), and a
        // command that signals its parent does not mean itself.
        if let Some(sender) = signal.sender
            && sender != self.root.pid
        {
            signals::send(self.root.pid, signal.number);
        }
    }
}
