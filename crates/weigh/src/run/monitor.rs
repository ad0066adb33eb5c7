//! The watch over one command, from exec to the last of its children.
//!
//! One thread and one loop: it waits for the next deadline, a signal or a word
//! from inside the run, whichever comes first.

use std::collections::HashSet;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::Outcome;
use super::schedule::Schedule;
use crate::collect::own::OwnTicks;
use crate::collect::processes::Processes;
use crate::collect::task_clock::RunClock;
use crate::collect::{Collector, Fault};
use crate::host::child::{self, Pause, Waiting};
use crate::host::perf::TaskClock;
use crate::host::signals::{self, Arrived, Before, Signals};
use crate::host::wait::{self, End, Usage};
use crate::host::{Host, ProcPath, own};
use crate::parse::{self, io::Io};
use crate::record::events::RunEnd;
use crate::record::inbox::{Inbox, Word};
use crate::record::{self, Entry, Event, Manifest, Writer, files};
use crate::sample::{Entity, ProcessId, Tick};
use crate::settings::Settings;
use crate::summary::Accumulator;

/// What this process had before the run: children and I/O that are not the run's.
pub(super) struct Inheritance {
    children: HashSet<u32>,
    io: Io,
}

impl Inheritance {
    /// Looks at what is there now.
    pub(super) fn now(host: &Host) -> Inheritance {
        // What cannot be read now cannot be read at the end either, and is reported then.
        Inheritance { children: own::children(host), io: own::reaped_io(host).unwrap_or_default() }
    }
}

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
    signals_before: Option<Before>,
    /// The step of a script that is under way, and how many there were.
    step: Option<String>,
    steps: u32,
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
            signals_before: None,
            step: None,
            steps: 0,
            faulted: Vec::new(),
        }
    }

    pub(super) fn take_inheritance(&mut self, inheritance: Inheritance, before: Before) {
        self.inheritance = inheritance;
        self.signals_before = Some(before);
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
                words.into_iter().for_each(|word| self.word(word));
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

    /// Collects every child that has ended.
    fn reap(&mut self) {
        while let Some(pid) = wait::next_dead() {
            if self.inheritance.children.remove(&pid) {
                self.reap_somebody_elses(pid);
                continue;
            }
            let at = self.now();
            let id = self.last_look(pid, at);
            let Some((end, mut usage)) = wait::reap(pid) else { continue };
            if pid == self.root.pid {
                take_off(&mut usage, self.pause.cpu.as_secs_f64());
                self.ended = Some((end, at));
            }
            self.reaped.add(&usage);
            // After the last look at it: readers take the events of a moment before its tick.
            let at = at.max(self.tick.at) + Duration::from_micros(1);
            let exit =
                Event::ProcessExit { pid, started: id.started, end: Some(end), usage: Some(usage) };
            self.event(at, exit);
        }
        self.stop_with_the_command();
    }

    /// A child of what this process was before: what it used is not the run's.
    fn reap_somebody_elses(&mut self, pid: u32) {
        let mut buffer = Vec::new();
        let path = ProcPath::new(pid, "io");
        let io = self.host.proc.read(path.as_c_str(), &mut buffer).ok();
        match io.and_then(|bytes| parse::io::parse(bytes).ok()) {
            Some(io) => self.inheritance.io = self.inheritance.io.and(&io),
            None => self.fault("io", format!("that of process {pid}, not of this run, is in it")),
        }
        // Its end is of no interest here.
        let _ = wait::reap(pid);
    }

    /// Reads what a dead child leaves behind, before it is reaped.
    fn last_look(&mut self, pid: u32, at: Duration) -> ProcessId {
        if pid == self.root.pid {
            // Everybody, for the last time with the command among them.
            self.take_tick();
            if let Some(processes) = &mut self.processes {
                processes.forget(pid);
            }
            return self.root;
        }
        let Some(processes) = &mut self.processes else { return ProcessId { pid, started: 0 } };
        self.tick.begin(at);
        let id = processes.last_look(&self.host, pid, &mut self.tick);
        self.hand_on_tick();
        id
    }

    /// Stops when Ctrl-Z has stopped the command: the shell waits for us, not for it.
    fn stop_with_the_command(&mut self) {
        if self.ended.is_some() {
            return;
        }
        let by_terminal = [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU];
        if let Some(signal) = wait::newly_stopped(self.root.pid)
            && self.job_control
            && by_terminal.contains(&signal)
        {
            signals::stop_self();
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

    /// Takes in a phase or a mark; a phase's end is a good moment to look.
    fn word(&mut self, word: Word) {
        let at = Duration::from_nanos(word.nanoseconds).saturating_sub(self.begin).min(self.now());
        let phase = matches!(word.event, Event::PhaseStart { .. } | Event::PhaseEnd { .. });
        match word.event {
            // Steps of a script have no id of their own: each ends the one before.
            Event::PhaseStart { id, name, parent } if id.is_empty() => {
                self.end_step(at);
                let id = format!("step-{}", self.steps);
                self.step = Some(id.clone());
                self.steps += 1;
                self.event(at, Event::PhaseStart { id, name, parent });
            }
            Event::PhaseEnd { id, .. } if id.is_empty() => self.end_step(at),
            event => self.event(at, event),
        }
        if phase {
            if let Some(processes) = &mut self.processes {
                processes.want_footprint();
            }
            self.take_tick();
        }
    }

    fn end_step(&mut self, at: Duration) {
        if let Some(id) = self.step.take() {
            self.event(at, Event::PhaseEnd { id, usage: None, end: None });
        }
    }

    /// Closes the account and the recording.
    pub(super) fn finish(mut self, mut warnings: Vec<String>) -> Outcome {
        // Whatever takes long from here on, Ctrl-C ends it.
        while self.signals.arrived().is_some() {}
        if let Some(before) = &self.signals_before {
            before.restore_mask();
        }
        // Words that were sent before the end and not heard yet.
        let words = self.inbox.take().map_or_else(Vec::new, |mut inbox| inbox.take());
        words.into_iter().for_each(|word| self.word(word));
        let (end, at) = self.ended.unwrap_or((End::Code(1), self.now()));
        self.end_step(at);
        let run_end = self.close_account(end, at);
        let now = self.now();
        self.event(now, Event::RunEnd(run_end));
        if let Some(mut writer) = self.writer.take() {
            let directory = writer.directory().to_owned();
            writer.flush(now);
            let faults = writer.finish(now);
            let whole = faults.is_empty();
            if !whole {
                let why = faults.join("; ");
                warnings.push(format!("the recording is not whole: {why}"));
                let source = "recording".to_owned();
                self.accumulator.event(&Entry::new(now, Event::Fault { source, why }));
            }
            let summary = self.accumulator.finish();
            let written = serde_json::to_vec_pretty(&summary)
                .map_err(|error| error.to_string())
                .and_then(|json| {
                    files::write_whole(&directory.join("summary.json"), &json)
                        .map_err(|error| error.to_string())
                });
            // One warning is enough: the second would have the same cause.
            if let Err(why) = written
                && whole
            {
                warnings.push(format!("no summary.json: {why}"));
            }
            let recording = directory.join("run.json").exists().then_some(directory);
            return Outcome { end, summary, recording, warnings };
        }
        Outcome { end, summary: self.accumulator.finish(), recording: None, warnings }
    }

    fn close_account(&mut self, end: End, at: Duration) -> RunEnd {
        let clock = self.task_clock.as_mut().map(|clock| clock.0.read());
        let task_clock_seconds = match clock {
            Some(Ok(time)) => Some(time.as_secs_f64()),
            Some(Err(error)) => {
                self.fault("task-clock", error.to_string());
                None
            }
            None => None,
        };
        let io = own::reaped_io(&self.host)
            .map(|io| io.less(&Pause::IO).less(&self.inheritance.io))
            .map_err(|error| self.fault("io", error.to_string()));
        RunEnd {
            end,
            duration_seconds: at.saturating_sub(self.executed).as_secs_f64(),
            reaped: self.reaped,
            task_clock_seconds,
            io: io.ok(),
            left: self.processes.iter().flat_map(|all| all.alive()).map(|id| id.pid).collect(),
            some_unseen: self.processes.as_ref().is_none_or(Processes::some_went_unseen),
            rss_before_exec_bytes: self.pause.largest_rss,
            monitor_cpu_seconds: Usage::own().cpu_seconds(),
        }
    }
}

/// Takes the time before exec off a usage: it was weigh's, in the kernel for the most part.
fn take_off(usage: &mut Usage, seconds: f64) {
    let from_system = seconds.min(usage.system_seconds);
    usage.system_seconds -= from_system;
    usage.user_seconds = (usage.user_seconds - (seconds - from_system)).max(0.0);
}
