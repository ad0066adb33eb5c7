//! `weigh attach` and `weigh watch`: monitor what already runs, until it exits or a stop request.
//!
//! Nothing is started or reaped, so no monitored process can notice. Exits of named processes are
//! reported by pidfds.

use std::os::fd::AsFd;
use std::path::PathBuf;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::control::Control;
use super::job::{JobEnding, JobProcesses, JobWatch};
use super::live::{LiveEvent, LiveObserver};
use super::occupants::Occupants;
use super::requests::{Request, RequestQueue, Requests};
use super::sampling_loop::SamplingLoop;
use super::session::command::SessionCommand;
use super::{
    Error, Outcome, RESERVED_DESCRIPTORS, batch_job, check_gpus, counters, prepare, recorded_job,
    select, surroundings,
};
use crate::catalog::{SourceId, groups};
use crate::collect::cgroup::CgroupCollector;
use crate::collect::members::{CgroupMembers, ProcessTree, RunMembers};
use crate::collect::perf::RunCounters;
use crate::collect::processes::ProcessCollector;
use crate::collect::rule::ProgramRule;
use crate::collect::sockets::{SocketBaseline, Sockets};
use crate::collect::task_clock::RunClock;
use crate::collect::{Collectors, Selection, process};
use crate::host::cgroup::Cgroup;
use crate::host::connector::{Connector, Drain, ProcEvent};
use crate::host::hardware::surroundings::LimitsOf;
use crate::host::limits::{self, ResourceLimits};
use crate::host::pidfd::PidFd;
use crate::host::signals::{self, Signals};
use crate::host::taskstats::{ExitRecord, Taskstats};
use crate::host::{Host, clock, own};
use crate::job::JobHere;
use crate::model::gpu::Visible;
use crate::model::settings::Settings;
use crate::model::{Facts, FaultSource, Program, Tick};
use crate::record::inbox::Inbox;
use crate::record::{Event, Manifest, RunEnd, StopReason, Target, Writer, secrets};

/// What to monitor, and how long.
#[derive(Debug, Clone)]
pub struct AttachOptions {
    /// What.
    pub what: AttachTarget,
    /// At most so long; without it until the target exits.
    pub time: Option<Duration>,
}

/// What can be monitored.
#[derive(Debug, Clone)]
pub enum AttachTarget {
    /// Processes, and their descendants.
    Processes(Vec<u32>),
    /// All processes in a cgroup and the cgroups below it.
    Cgroup(PathBuf),
    /// The processes of a batch job on this node, and what ends the recording.
    Job(Box<JobHere>, JobEnding),
    /// Every process that runs one of some programs, everywhere or below one process.
    Programs {
        /// Which programs.
        rule: ProgramRule,
        /// The process among whose descendants they are searched.
        under: Option<u32>,
    },
}

impl AttachTarget {
    /// Processes whose exit ends the monitoring.
    fn named(&self) -> &[u32] {
        match self {
            AttachTarget::Processes(pids) => pids,
            AttachTarget::Cgroup(_) | AttachTarget::Job(..) => &[],
            AttachTarget::Programs { under, .. } => under.as_slice(),
        }
    }

    fn target(&self, group: Option<&Cgroup>, job: Option<&JobProcesses>) -> Target {
        match self {
            AttachTarget::Processes(pids) => Target::Processes { pids: pids.clone() },
            AttachTarget::Cgroup(path) => {
                let found = group.map(|group| group.path.clone());
                Target::Cgroup { path: found.unwrap_or_else(|| path.display().to_string()) }
            }
            AttachTarget::Job(here, _) => Target::Job {
                id: here.job.id.clone().unwrap_or_default(),
                found_by: job.map(|how| how.words(here)).unwrap_or_default(),
            },
            AttachTarget::Programs { rule, under } => {
                Target::Programs { names: rule.words(), under: *under }
            }
        }
    }
}

/// Attaches to what already runs, and weighs it.
///
/// `begun` is called when everything is set up, just before the first sample; `observer` gets the
/// values while it runs.
pub fn attach(
    options: &AttachOptions,
    settings: &Settings,
    begun: impl FnOnce(&Manifest),
    observer: Option<LiveObserver>,
) -> Result<Outcome, Error> {
    let mut warnings = Vec::new();
    let (mut monitor, manifest) = begin(options, settings, ProcessOwner::Program, &mut warnings)?;
    monitor.sampling.observe(observer);
    begun(&manifest);
    let why = monitor.monitor();
    Ok(monitor.finish(why, warnings))
}

/// Whose process this is.
pub(super) enum ProcessOwner {
    /// The program `weigh`: its signals and limits are weigh's to change.
    Program,
    /// Another program, with a session: nothing of it is changed.
    Session(RequestQueue),
}

/// How many files of processes a session keeps open, at most: descriptors are the other program's.
pub(super) const SESSION_DESCRIPTORS: usize = 256;

/// The same, where few are allowed.
pub(super) fn session_descriptors() -> usize {
    SESSION_DESCRIPTORS.min(limits::open_files() / 8)
}

/// Prepares everything up to the first sample.
pub(super) fn begin(
    options: &AttachOptions,
    settings: &Settings,
    owner: ProcessOwner,
    warnings: &mut Vec<String>,
) -> Result<(AttachMonitor, Manifest), Error> {
    settings.check()?;
    let host = Host::at(&settings.host_root)?;
    check_gpus(settings, &host)?;
    if !own::proc_is_our_pid_namespace(&host.proc) {
        return Err(Error::OtherNamespace);
    }
    let group = match &options.what {
        AttachTarget::Cgroup(path) => Some(Cgroup::at(&host, path)?),
        _ => None,
    };
    let job_processes = match &options.what {
        AttachTarget::Job(here, _) => Some(JobProcesses::of(&host, here)),
        _ => None,
    };
    let visible_gpus = match &options.what {
        // What a program sets after its start is in no file.
        AttachTarget::Processes(pids) if pids[..] == [std::process::id()] => {
            Some(Visible::from_here())
        }
        AttachTarget::Processes(pids) if pids.len() == 1 => Visible::of_process(&host, pids[0]),
        _ => None,
    };
    let settings = &Settings { cgroup: group.is_some(), visible_gpus, ..settings.clone() };
    let target_pidfds =
        options.what.named().iter().map(|pid| open_pidfd(*pid)).collect::<Result<Vec<_>, _>>()?;
    let mut manifest = describe(options, group.as_ref(), job_processes.as_ref(), settings, &host);
    let Selection { sources, absent } = select(&host, settings, &mut manifest);
    let events = counters(&host, settings, &sources, &mut manifest)?;
    let mut tick = Tick::new(&groups(sources.iter().copied()));
    let claim = prepare(settings, &manifest, warnings)?;
    manifest.user = claim.as_ref().and_then(|_| own::user());
    let is_session = matches!(owner, ProcessOwner::Session(_));
    let (requests, descriptors) = match owner {
        ProcessOwner::Program => {
            let signals =
                Signals::take().map_err(|source| Error::System { what: "signals", source })?;
            ResourceLimits::now().raise();
            let descriptors = limits::open_files().saturating_sub(RESERVED_DESCRIPTORS);
            (Requests::Signals(signals), descriptors)
        }
        ProcessOwner::Session(queue) => (Requests::Queue(queue), session_descriptors()),
    };
    let own = std::process::id();
    let members: RunMembers = match (&group, &options.what) {
        (None, AttachTarget::Job(here, _)) => match job_processes {
            Some(JobProcesses::Cgroup(dir, _)) => CgroupMembers::all_but(dir, own).into(),
            _ => ProcessTree::marked(&host, JobProcesses::marker(&host, here)).into(),
        },
        (Some(group), _) => CgroupMembers::all_but(group.members.clone(), own).into(),
        (None, AttachTarget::Programs { under: None, .. }) => {
            ProcessTree::all_but(&host, own).into()
        }
        (None, what) => ProcessTree::rooted_at(&host, what.named()).into(),
    };
    let rule = match &options.what {
        AttachTarget::Programs { rule, .. } => Some(rule.clone()),
        _ => None,
    };
    // Before the first sample, so that no process is missed in between.
    let (connector, refusal) = match &options.what {
        AttachTarget::Programs { .. } => match Connector::open() {
            Ok(connector) => (Some(connector), None),
            Err(error) => (None, Some(error)),
        },
        _ => (None, None),
    };
    // Without permission there are still the clocks, and no sizes of processes shorter than a tick.
    let taskstats = connector.as_ref().and_then(|_| Taskstats::open(&host.sys).ok());
    let collects = |id| sources.iter().any(|source| source.id == id);
    let is_job = matches!(options.what, AttachTarget::Job(..));
    let mut processes = collects(SourceId::Process).then(|| match is_job {
        true => ProcessCollector::of_job(&host, settings, members, descriptors),
        false => ProcessCollector::of(&host, settings, members, rule, descriptors),
    });
    if let (Some(processes), true) = (&mut processes, is_job && collects(SourceId::TaskClock)) {
        processes.attach_clocks(manifest.zero());
    }
    if let (Some(processes), Some(_)) = (&mut processes, &connector) {
        processes.enable_events(manifest.zero());
    }
    let begin = host.clock.now();
    tick.begin(Duration::ZERO);
    let writer = claim.and_then(|claim| {
        Writer::within(claim, &manifest, &tick, &[])
            .map_err(|error| warnings.push(format!("not recorded: {error}")))
            .ok()
    });
    let mut collectors = Collectors::new(settings, sources.iter().copied());
    collectors.processes = processes;
    let group_of_target = group.clone().filter(|_| collects(SourceId::Cgroup));
    collectors.cgroup = group_of_target.map(CgroupCollector::of);
    let mut sampling =
        SamplingLoop::new(host, begin, settings, &manifest, tick, collectors, writer);
    // Connections are those of the machine that weigh runs on.
    if collects(SourceId::Sockets) && super::is_here(settings) {
        let sockets = Sockets::begin(&sampling.host, settings, SocketBaseline::Running);
        sampling.collectors.sockets = sampling.or_fault(SourceId::Sockets, sockets);
    }
    events.faults.into_iter().for_each(|why| sampling.fault(SourceId::Perf, why));
    for missed in absent.into_iter().filter(|absence| absence.is_missed) {
        sampling.fault(missed.source.id, missed.why);
    }
    if let Some(error) = refusal {
        sampling
            .fault(FaultSource::Connector, format!("new processes are found by scanning: {error}"));
    }
    for pidfd in target_pidfds.iter().filter(|pidfd| !pidfd.has_ended()) {
        if process::started(&sampling.host, pidfd.pid, &mut Vec::new()).is_none() {
            let why = format!("process {} is hidden: /proc is mounted with hidepid", pidfd.pid);
            sampling.fault(SourceId::Process, why);
        }
    }
    let mut control = Control::default();
    if let Some(writer) = sampling.writer.as_ref().filter(|_| is_session) {
        let inbox = Inbox::create(writer.directory());
        control.take_inbox(&mut sampling, inbox);
    }
    sampling.describe_machine(manifest.clone(), settings);
    let mut monitor = AttachMonitor {
        sampling,
        requests,
        control,
        command: None,
        is_alone: matches!(&options.what, AttachTarget::Processes(pids) if pids.len() == 1),
        target_pidfds,
        occupants: group.map(|group| Occupants::of(group.members)),
        job: match &options.what {
            AttachTarget::Job(here, ending) => Some(JobWatch::begin(here, ending)),
            _ => None,
        },
        connector,
        happened: Vec::new(),
        taskstats,
        exit_records: Vec::new(),
        clocked_since: None,
        until: options.time,
        wait_all: settings.wait_all,
        end: None,
    };
    if collects(SourceId::TaskClock) && matches!(options.what, AttachTarget::Processes(_)) {
        monitor.start_clocks();
    }
    if let Some(counters) = events.counters {
        monitor.start_counters(counters, &options.what);
    }
    Ok((monitor, manifest))
}

/// What the process at the other end of stdin says: a line requests the end, and a closed pipe
/// means that it has exited. `None` while it says nothing.
fn launcher_request() -> Option<StopReason> {
    let mut source = [PollFd::from_borrowed_fd(rustix::stdio::stdin(), PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    if !matches!(poll(&mut source, Some(&at_once)), Ok(count) if count > 0) {
        return None;
    }
    match rustix::io::read(rustix::stdio::stdin(), &mut [0; 64]) {
        Ok(0) => Some(StopReason::LauncherExited),
        Ok(_) => Some(StopReason::StopRequested),
        Err(rustix::io::Errno::INTR | rustix::io::Errno::AGAIN) => None,
        Err(_) => Some(StopReason::LauncherExited),
    }
}

fn open_pidfd(pid: u32) -> Result<PidFd, Error> {
    PidFd::open(pid).map_err(|source| match source.raw_os_error() {
        Some(libc::ESRCH) => Error::NoProcess { pid },
        _ => Error::Process { pid, source },
    })
}

/// What is known before the first sample.
fn describe(
    options: &AttachOptions,
    group: Option<&Cgroup>,
    job: Option<&JobProcesses>,
    settings: &Settings,
    host: &Host,
) -> Manifest {
    let mut buffer = Vec::new();
    let (pid, program) = match &options.what {
        AttachTarget::Processes(pids) => match pids[..] {
            [pid] => (pid, process::program(host, pid, true, &mut buffer)),
            _ => (0, Program::default()),
        },
        AttachTarget::Programs { .. } | AttachTarget::Cgroup(_) | AttachTarget::Job(..) => {
            (0, Program::default())
        }
    };
    let command = program.arguments.as_deref().map(secrets::command).unwrap_or_default();
    let mut manifest = Manifest::new(settings, &command, Facts::of(host), clock::wall());
    if command.is_empty() {
        manifest.command = None;
    }
    if settings.name.is_none() {
        manifest.name = match &options.what {
            AttachTarget::Programs { rule, .. } => rule.called(),
            AttachTarget::Cgroup(path) => path
                .file_name()
                .map_or_else(|| "cgroup".to_owned(), |name| name.to_string_lossy().into_owned()),
            AttachTarget::Job(here, _) => {
                let name = here.job.name.as_deref().map(secrets::remark);
                name.unwrap_or_else(|| here.directory_name())
            }
            AttachTarget::Processes(_) if pid != 0 => program.called(),
            AttachTarget::Processes(_) => "processes".to_owned(),
        };
    }
    manifest.job = match &options.what {
        AttachTarget::Job(here, _) => Some(recorded_job(here.job.clone())),
        _ => batch_job(),
    };
    manifest.pid = pid;
    manifest.process_started = process::started(host, pid, &mut buffer).unwrap_or(0);
    manifest.target = Some(options.what.target(group, job));
    manifest.attach_clock_ticks = Some(host.ticks(clock::since_boot()));
    let whose = if pid == 0 { LimitsOf::Several } else { LimitsOf::Process(pid) };
    manifest.surroundings = surroundings(settings, host, whose);
    manifest
}

pub(super) struct AttachMonitor {
    pub(super) sampling: SamplingLoop,
    pub(super) requests: Requests,
    pub(super) control: Control,
    /// The command that a session has started, and is its only named process.
    pub(super) command: Option<SessionCommand>,
    /// Named processes that have not exited.
    pub(super) target_pidfds: Vec<PidFd>,
    /// Those in the monitored cgroup.
    pub(super) occupants: Option<Occupants>,
    /// What ends the recording of a batch job.
    pub(super) job: Option<JobWatch>,
    /// Kernel events of process starts and exits, when programs are searched.
    pub(super) connector: Option<Connector>,
    pub(super) happened: Vec<(Duration, ProcEvent)>,
    /// The exit records of processes, which the kernel gives to root.
    pub(super) taskstats: Option<Taskstats>,
    pub(super) exit_records: Vec<ExitRecord>,
    /// When the task clocks of all monitored processes were started.
    pub(super) clocked_since: Option<Duration>,
    pub(super) until: Option<Duration>,
    pub(super) wait_all: bool,
    /// Whether exactly one process was named.
    pub(super) is_alone: bool,
    /// The only named one, when it has exited.
    pub(super) end: Option<PidFd>,
}

/// How many exit records are retained: the exit of a multithreaded process may be reported later.
const KEPT: usize = 1000;

/// How long to wait for the parent to reap an exited process: until then no other process can learn
/// how it exited.
const PATIENCE: Duration = Duration::from_millis(100);

impl AttachMonitor {
    /// Starts task clocks for all current processes and their descendants.
    fn start_clocks(&mut self) {
        let mut clock = RunClock::default();
        let count = |host: &Host, pid: u32| clock.count(host, pid).map(|()| clock.processes());
        if let Err(why) = self.count_all(count) {
            return self.sampling.fault(SourceId::TaskClock, why);
        }
        if self.sampling.collectors.processes.is_some() {
            self.clocked_since = Some(self.sampling.now());
            self.sampling.collectors.task_clock = Some(clock);
        }
    }

    /// Starts counting events of all current processes and their descendants.
    fn start_counters(&mut self, mut counters: RunCounters, what: &AttachTarget) {
        let count =
            |host: &Host, pid: u32| counters.count(host, pid).map(|()| counters.processes());
        if let Err(why) = self.count_all(count) {
            return self.sampling.fault(SourceId::Perf, why);
        }
        // Others have no parent that is counted.
        counters.follows = !matches!(what, AttachTarget::Processes(_));
        self.sampling.collectors.counters = Some(counters);
    }

    /// Counts every process until no other was started in between. `count` says how many are.
    fn count_all(
        &mut self,
        mut count: impl FnMut(&Host, u32) -> Result<usize, String>,
    ) -> Result<(), String> {
        let mut known = 0;
        loop {
            self.sampling.take_tick();
            let Some(processes) = &self.sampling.collectors.processes else { return Ok(()) };
            let alive: Vec<u32> = processes.alive().map(|id| id.pid).collect();
            let mut counted = known;
            for pid in alive {
                counted = count(&self.sampling.host, pid)?;
            }
            if counted == known {
                return Ok(());
            }
            known = counted;
        }
    }

    pub(super) fn monitor(&mut self) -> StopReason {
        let was_named = !self.target_pidfds.is_empty();
        self.sampling.first_tick();
        loop {
            let time = self.sampling.work();
            self.find_orphans();
            let left = self.until.map(|until| until.saturating_sub(self.sampling.now()));
            if left.is_some_and(|left| left.is_zero()) {
                self.sampling.take_tick();
                return StopReason::DurationOver;
            }
            self.sleep(left.map_or(time, |left| left.min(time)));
            self.control.receive(&mut self.sampling);
            if self.handle_requests() {
                self.sampling.take_tick();
                return StopReason::StopRequested;
            }
            self.handle_proc_events();
            self.reap_orphans();
            self.notice_ends();
            let has_processes = self.has_processes();
            if self.occupants.as_mut().is_some_and(|occupants| occupants.are_over(has_processes)) {
                self.sampling.take_tick();
                return StopReason::Ended;
            }
            if let Some(why) = self.job_verdict() {
                self.sampling.take_tick();
                return why;
            }
            if was_named
                && self.target_pidfds.is_empty()
                && !(self.wait_all && self.has_processes())
            {
                return StopReason::Ended;
            }
        }
    }

    /// Whether the recording of a batch job ends now, and why.
    fn job_verdict(&mut self) -> Option<StopReason> {
        let now = self.sampling.now();
        let job = self.job.as_mut()?;
        if job.stdin_is_launcher
            && let Some(why) = launcher_request()
        {
            return Some(why);
        }
        job.verdict(&self.sampling.host, self.sampling.collectors.processes.as_ref(), now)
    }

    fn has_processes(&self) -> bool {
        let processes = self.sampling.collectors.processes.as_ref();
        processes.is_some_and(|processes| processes.alive().next().is_some())
    }

    /// Sleeps until an event, at most so long.
    fn sleep(&self, time: Duration) {
        let pidfds = self.target_pidfds.iter().map(AsFd::as_fd);
        let stdin = self.job.as_ref().filter(|job| job.stdin_is_launcher);
        let stdin = stdin.map(|_| rustix::stdio::stdin());
        let mut sources: Vec<_> = [self.requests.as_fd()]
            .into_iter()
            .chain(self.control.fd())
            .chain(self.connector.as_ref().map(AsFd::as_fd))
            .chain(pidfds)
            .chain(self.orphan_fds())
            .chain(self.occupants.as_ref().and_then(Occupants::exit_fd))
            .chain(self.job.as_ref().and_then(|job| job.stop.as_ref()).map(AsFd::as_fd))
            .chain(stdin)
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        let time =
            Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        // If it cannot sleep, it samples once too often.
        let _ = poll(&mut sources, Some(&time));
    }

    /// Handles requests; returns whether the end is requested.
    fn handle_requests(&mut self) -> bool {
        let mut is_stop_requested = false;
        for request in self.requests.take() {
            match request {
                Request::Stop => is_stop_requested = true,
                Request::Resize => self.sampling.tell(LiveEvent::Resized),
                Request::Suspend => {
                    self.sampling.tell(LiveEvent::Suspended);
                    signals::stop_self();
                }
                Request::Control(message) => {
                    self.control.handle(&mut self.sampling, vec![*message]);
                }
                Request::Snapshot(answer) => {
                    self.sampling.take_tick();
                    let end = self.end_now(StopReason::StopRequested);
                    let values = self.sampling.values_now();
                    // A caller that does not wait any more needs no answer.
                    let _ = answer.send((self.sampling.summary_so_far(end), values));
                }
            }
        }
        is_stop_requested
    }

    /// Handles kernel events of starts, execs and exits.
    fn handle_proc_events(&mut self) {
        loop {
            let Some(connector) = &mut self.connector else { return };
            let happened = &mut self.happened;
            happened.clear();
            let heard = connector.next(|at, one| happened.push((at, one)));
            // Exits are reported last.
            happened.sort_by_key(|(at, _)| *at);
            let happened: Vec<ProcEvent> = happened.iter().map(|(_, one)| *one).collect();
            let Some(processes) = &mut self.sampling.collectors.processes else { return };
            match &heard {
                Ok(Drain::Complete | Drain::More) => {}
                Ok(Drain::Overrun) => processes.events_overrun(),
                Err(error) => {
                    let why = format!("new processes are found by scanning: {error}");
                    processes.disable_events();
                    self.connector = None;
                    self.sampling.fault(FaultSource::Connector, why);
                    return;
                }
            }
            // The exit record of a process precedes its exit event.
            if let Some(taskstats) = &mut self.taskstats {
                let exit_records = &mut self.exit_records;
                exit_records.drain(..exit_records.len().saturating_sub(KEPT));
                if taskstats.next(|record| exit_records.push(record)).is_err() {
                    self.taskstats = None;
                }
            }
            self.sampling.apply_kernel_events(&happened, &self.exit_records);
            if !matches!(heard, Ok(Drain::More)) {
                return;
            }
        }
    }

    /// Samples all processes for the last time with those that have just exited.
    fn notice_ends(&mut self) {
        if !self.target_pidfds.iter().any(PidFd::has_ended) {
            return;
        }
        // Exits before that are reported by now, with exit records that a sample does not have.
        self.handle_proc_events();
        self.sampling.take_tick();
        let (ended, running): (Vec<PidFd>, _) =
            std::mem::take(&mut self.target_pidfds).into_iter().partition(PidFd::has_ended);
        self.target_pidfds = running;
        for pidfd in &ended {
            if self.command.is_some() {
                self.reap_command();
                continue;
            }
            let processes = self.sampling.collectors.processes.as_mut();
            // Otherwise the sample has already found it gone.
            if let Some(id) = processes.and_then(|processes| processes.forget(pidfd.pid)) {
                self.sampling.event(self.sampling.now(), Event::ended(id, pidfd.end(), None));
            }
        }
        self.end = ended.into_iter().next().filter(|_| self.is_alone);
    }

    pub(super) fn finish(mut self, why: StopReason, warnings: Vec<String>) -> Outcome {
        // Processes that the last sample found gone are reported by now.
        self.handle_proc_events();
        self.control.finish(&mut self.sampling);
        self.release_orphans();
        let now = self.sampling.now();
        self.control.end_steps(&mut self.sampling, now);
        self.sampling.finish_sockets();
        self.sampling.finish_counters();
        let end = self.end_now(why);
        let requests = &mut self.requests;
        self.sampling.close(end, || requests.is_impatient(), warnings)
    }

    /// The end of the run, if it were now.
    fn end_now(&mut self, why: StopReason) -> RunEnd {
        let now = self.sampling.now();
        let processes = self.sampling.collectors.processes.as_ref();
        let still_running = processes.iter().flat_map(|all| all.alive()).map(|id| id.pid).collect();
        let may_miss_processes = processes.is_none_or(ProcessCollector::may_have_missed_processes);
        let task_clock_seconds = self.sampling.read_task_clock();
        let mut end = RunEnd {
            why: Some(why),
            exit: self.end.as_ref().and_then(|pidfd| pidfd.end_within(PATIENCE)),
            duration_seconds: now.as_secs_f64(),
            measured_seconds: None,
            task_clock_seconds,
            task_clock_began_seconds: self.clocked_since.map(|at| at.as_secs_f64()),
            still_running,
            may_miss_processes,
            monitor_cpu_seconds: own::usage().cpu_seconds(),
            final_counters: None,
        };
        if let Some(command) = &self.command {
            command.close(&mut end, now, &self.control);
        }
        end
    }
}
