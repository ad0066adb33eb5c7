//! `weigh run`: start a command, monitor it to its end, account for all it used.
//!
//! [`run`] takes over the process it is called in: it becomes a child subreaper, handles the
//! signals, and releases the streams that are the command's.

mod attach;
mod control;
mod job;
mod job_clock;
mod live;
mod monitor;
mod occupants;
pub mod phase;
mod requests;
mod sampling_loop;
mod schedule;
mod session;
mod stop_files;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::catalog::{Source, SourceId, groups};
use crate::collect::cgroup::CgroupCollector;
use crate::collect::packets::Packets;
use crate::collect::perf::{self, PreparedCounters};
use crate::collect::processes::ProcessCollector;
pub use crate::collect::rule::ProgramRule;
use crate::collect::sockets::{SocketBaseline, Sockets};
use crate::collect::task_clock::RunClock;
use crate::collect::{self, Collectors, Selection, gpu};
use crate::host::cgroup::Cgroup;
pub use crate::host::cgroup::NoCgroup;
pub use crate::host::child::Error as CommandError;
use crate::host::child::{self, ForkedChild, Inherited, Original, Replacement};
use crate::host::environment::{INBOX_VARIABLE, RUN_VARIABLE};
use crate::host::hardware::Live;
use crate::host::hardware::surroundings::LimitsOf;
use crate::host::run_cgroup::{self, CgroupMode, RunCgroup};
use crate::host::signals::Signals;
use crate::host::{self, Host, clock, limits, out_of_memory, own, subreaper};
use crate::job as batch;
use crate::model::batch_job::BatchJob;
use crate::model::gpu::Visible;
use crate::model::hardware::Surroundings;
use crate::model::settings::{self, Destination, OwnCgroup, Settings};
use crate::model::{Facts, Tick};
use crate::record::files::{self, Claim};
use crate::record::inbox::{self, Inbox};
use crate::record::manifest::Manifest;
use crate::record::{self, RunEnd, Writer, secrets};
use crate::summary::Summary;
pub use attach::{AttachOptions, AttachTarget, attach};
pub use job::JobEnding;
pub use live::{LiveEvent, LiveMemory, LiveObserver, LiveValues};
use monitor::{Monitor, PreRunBaseline};
use sampling_loop::SamplingLoop;
pub use session::{OpenPhase, PhaseId, Session};
pub use stop_files::StopFiles;

/// Why a run did not begin.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The settings are invalid.
    #[error(transparent)]
    Settings(#[from] settings::Error),
    /// The command cannot be run.
    #[error(transparent)]
    Command(#[from] child::Error),
    /// The machine cannot be read.
    #[error(transparent)]
    Host(#[from] host::Error),
    /// The recording cannot be where it should be.
    #[error(transparent)]
    Recording(#[from] record::Error),
    /// There is no such process.
    #[error("there is no process {pid}")]
    NoProcess {
        /// Which one.
        pid: u32,
    },
    /// Cannot attach to the process.
    #[error("process {pid}: {source}")]
    Process {
        /// Which one.
        pid: u32,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// The command cannot have a cgroup of its own.
    #[error(transparent)]
    OwnGroup(#[from] run_cgroup::CgroupRefusal),
    /// It is not a cgroup.
    #[error(transparent)]
    Group(#[from] NoCgroup),
    /// The machine's `/proc` does not show the target.
    #[error("{OTHER_NAMESPACE}")]
    OtherNamespace,
    /// The session belongs to the process that this one is a fork of.
    #[error("this process is a fork: the session is its parent's")]
    ForkedSession,
    /// The kernel refused something essential.
    #[error("{what}: {source}")]
    System {
        /// What was refused.
        what: &'static str,
        /// What the kernel said.
        source: std::io::Error,
    },
}

impl Error {
    /// Whether a limit on this process is the cause: without weigh the command would run.
    pub fn is_limit(&self) -> bool {
        let errno = match self {
            Error::Command(child::Error::Fork(source)) | Error::System { source, .. } => {
                source.raw_os_error()
            }
            Error::Host(error) => error.errno(),
            Error::Recording(error) => error.errno(),
            _ => None,
        };
        matches!(errno, Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EAGAIN))
    }
}

/// Execs the command without measuring it: for when [`Error::is_limit`]. Returns only when that
/// fails.
pub fn without_measuring(command: &[OsString], inherited: Inherited) -> Error {
    let program = command.first().map_or_else(String::new, |p| p.to_string_lossy().into());
    match Replacement::of(command, Original::now(inherited)) {
        Ok(command) => child::Error::of_exec(program, command.execute()).into(),
        Err(error) => error.into(),
    }
}

/// The result of a run, of a command or of monitoring.
#[derive(Debug)]
pub struct Outcome {
    /// How and when it ended.
    pub end: RunEnd,
    /// What was used.
    pub summary: Summary,
    /// Where it is recorded.
    pub recording: Option<PathBuf>,
    /// What failed with the recording, if anything did.
    pub warnings: Vec<String>,
}

/// What the calling process passes into a run.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// What it inherited from its parent.
    pub inherited: Inherited,
    /// Whether it wants to write to stderr after the run.
    pub keeps_stderr: bool,
}

/// Refuses GPUs that do not exist, as far as a quick check shows.
fn check_gpus(settings: &Settings, host: &Host) -> Result<(), settings::Error> {
    let wanted = settings.gpus.as_deref().filter(|wanted| !wanted.is_empty());
    match wanted.and_then(|wanted| gpu::not_available(host, wanted)) {
        Some((word, there)) => Err(settings::Error::NoGpu { word: word.to_owned(), there }),
        None => Ok(()),
    }
}

/// Runs a command and weighs it.
///
/// `observer` gets its values while it runs.
///
/// Must be called while the process has one thread. Nothing has been started
/// when it fails.
pub fn run(
    command: &[OsString],
    settings: &Settings,
    caller: Caller,
    observer: Option<LiveObserver>,
) -> Result<Outcome, Error> {
    settings.check()?;
    own::begin_account(caller.inherited.used);
    let Some(program) = command.first() else {
        return Err(child::Error::NotFound { program: String::new() }.into());
    };
    let path = child::find(program)?;
    let original = Original::now(caller.inherited);
    out_of_memory::replace_by(Replacement::of(command, original)?);
    original.limits.raise();
    let outcome = measure(&path, command, settings, caller, &original, observer);
    if outcome.is_err() {
        out_of_memory::forget();
        original.signals.restore();
        original.limits.restore();
    }
    outcome
}

fn measure(
    path: &Path,
    command: &[OsString],
    settings: &Settings,
    caller: Caller,
    original: &Original,
    observer: Option<LiveObserver>,
) -> Result<Outcome, Error> {
    let host = Host::at(&settings.host_root)?;
    check_gpus(settings, &host)?;
    let (mut own_group, mut refusal) = own_group(settings, &host)?;
    let settings = &Settings {
        cgroup: own_group.is_some(),
        visible_gpus: Some(Visible::from_here()),
        ..settings.clone()
    };
    let shown = secrets::command(&command.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    let mut manifest = Manifest::new(settings, &shown, Facts::of(&host), clock::wall());
    manifest.job = batch_job();
    if settings.surroundings {
        // What the command is allowed, not what weigh is.
        original.limits.restore();
        manifest.surroundings = surroundings(settings, &host, LimitsOf::Own);
        original.limits.raise();
    }
    let Selection { sources, absent } = select(&host, settings, &mut manifest);
    let PreparedCounters { counters, faults: not_counted, .. } =
        counters(&host, settings, &sources, &mut manifest)?;
    let mut tick = Tick::new(&groups(sources.iter().copied()));
    let mut warnings = Vec::new();
    let claim = prepare(settings, &manifest, &mut warnings)?;
    let directory = claim.as_ref().map(|claim| claim.directory.clone());
    let made = claim.as_ref().map_or(0, |claim| claim.made);
    let collects = |id| sources.iter().any(|source| source.id == id);

    // Another machine's cgroups say nothing of what runs here.
    let around = Cgroup::own_memory(&host).filter(|_| is_here(settings));
    let sees_itself = own::proc_is_our_pid_namespace(&host.proc);
    let mut processes = (collects(SourceId::Process) && sees_itself)
        .then(|| ProcessCollector::before_run(&host, settings));
    let pre_run_baseline = PreRunBaseline::now(&host);
    let discard = |directory: Option<PathBuf>| {
        directory.iter().for_each(|directory| files::discard(directory, made));
    };
    // Sandboxes refuse it (gVisor, qemu-user); the command runs all the same.
    let is_subreaper = subreaper::become_subreaper();
    let (signals, waiting) = match launch(path, command, directory.as_deref(), original) {
        Ok(launched) => launched,
        Err(error) => {
            discard(directory);
            return Err(error);
        }
    };

    // From here on a child is waiting: any failure is a warning, not the end.
    let root = waiting.pid;
    out_of_memory::wait_for(&waiting, &signals);
    if let Err(error) = own_group.as_ref().map_or(Ok(()), |group| group.add_process(root)) {
        refusal = Some(error.to_string());
        own_group = None;
    }
    let task_clock = collects(SourceId::TaskClock).then(|| RunClock::on_exec(root));
    let counters = counters.map(|counters| counters.starting_at_exec(&host, root));
    if let Err(error) = own::release_stdio(caller.keeps_stderr) {
        warnings.push(format!("cannot close the command's streams: {error}"));
    }
    let main = processes.as_mut().map(|processes| {
        processes.begin(&host, root, limits::open_files().saturating_sub(RESERVED_DESCRIPTORS))
    });
    manifest.user = directory.as_ref().and_then(|_| own::user());
    manifest.pid = root;
    manifest.process_started = main.map_or(0, |main| main.started);
    let begin = host.clock.now();
    manifest.started =
        jiff::Timestamp::from_nanosecond(clock::wall().as_nanos() as i128).unwrap_or_default();
    tick.begin(std::time::Duration::ZERO);
    let writer = claim.and_then(|claim| {
        Writer::within(claim, &manifest, &tick, &[])
            .map_err(|error| warnings.push(format!("not recorded: {error}")))
            .ok()
    });
    let inbox = writer.as_ref().map(|writer| Inbox::create(writer.directory()));
    let group = own_group.as_ref().filter(|_| collects(SourceId::Cgroup));
    let mut collectors = Collectors::new(settings, sources.iter().copied());
    collectors.processes = processes;
    collectors.cgroup = group.map(|own| CgroupCollector::of_own(own.group.clone()));
    let mut sampling =
        SamplingLoop::new(host, begin, settings, &manifest, tick, collectors, writer);
    sampling.observe(observer);
    if let Some(own) = own_group.as_ref().filter(|_| collects(SourceId::Packets)) {
        sampling.collectors.packets = sampling.or_fault(SourceId::Packets, Packets::of(own));
    }
    if collects(SourceId::Sockets) && is_here(settings) {
        let sockets = Sockets::begin(&sampling.host, settings, SocketBaseline::Command);
        sampling.collectors.sockets = sampling.or_fault(SourceId::Sockets, sockets);
    }
    if let Some(clock) = task_clock {
        sampling.collectors.task_clock = sampling.or_fault(SourceId::TaskClock, clock);
    }
    if let Some(counters) = counters {
        sampling.collectors.counters = sampling.or_fault(SourceId::Perf, counters);
    }
    not_counted.into_iter().for_each(|why| sampling.fault(SourceId::Perf, why));
    let mut monitor = Monitor::new(sampling, settings, &manifest, signals);
    monitor.take_pre_run_baseline(pre_run_baseline);
    if let Some(why) = refusal {
        monitor.fault(SourceId::Cgroup, format!("the command has no cgroup of its own: {why}"));
    }
    if let Err(error) = is_subreaper {
        monitor.lose_orphans(&error);
    }
    monitor.take_group(own_group, around);
    for missed in absent.into_iter().filter(|absence| absence.is_missed) {
        monitor.fault(missed.source.id, missed.why);
    }
    if collects(SourceId::Process) && !sees_itself {
        monitor.fault(SourceId::Process, OTHER_NAMESPACE.to_owned());
    }
    monitor.take_inbox(inbox);

    match monitor.start(waiting) {
        Ok(()) => {}
        Err(error) => {
            drop(monitor);
            discard(directory);
            return Err(error.into());
        }
    }
    monitor.describe_machine(manifest, settings);
    monitor.sample_until_the_end();
    Ok(monitor.finish(warnings))
}

/// Takes over the signals, and forks a child that waits for exec.
fn launch(
    path: &Path,
    command: &[OsString],
    directory: Option<&Path>,
    original: &Original,
) -> Result<(Signals, ForkedChild), Error> {
    let signals = Signals::take().map_err(|source| Error::System { what: "signals", source })?;
    let variables = variables(directory);
    let variables: Vec<_> =
        variables.iter().map(|(name, path)| (*name, path.as_os_str())).collect();
    Ok((signals, child::fork(path, command, &variables, original)?))
}

/// The variables by which a command finds its recording and its pipe.
fn variables(directory: Option<&Path>) -> Vec<(&'static str, PathBuf)> {
    let Some(absolute) = directory.and_then(|path| std::path::absolute(path).ok()) else {
        return Vec::new();
    };
    let inbox = inbox::path(&absolute);
    vec![(RUN_VARIABLE, absolute), (INBOX_VARIABLE, inbox)]
}

/// The batch job that this process is part of, as it is recorded.
fn batch_job() -> Option<BatchJob> {
    batch::here().map(|here| recorded_job(here.job))
}

/// A batch job without the secrets that its name may have.
pub fn recorded_job(job: BatchJob) -> BatchJob {
    BatchJob { name: job.name.as_deref().map(secrets::remark), ..job }
}

/// The limits of the run, if requested.
fn surroundings(settings: &Settings, host: &Host, whose: LimitsOf) -> Option<Surroundings> {
    settings.surroundings.then(|| Surroundings::of(&host.root, whose, live(settings).variable))
}

/// Whether the machine that is read is the one on which the command runs.
fn is_here(settings: &Settings) -> bool {
    settings.host_root == Path::new("/")
}

/// What can be read of the machine beside its files: nothing, when it is another one.
fn live(settings: &Settings) -> Live {
    match is_here(settings) {
        true => Live::here(),
        false => Live::elsewhere(),
    }
}

/// A cgroup for the command, or why it has none, when one is requested.
fn own_group(
    settings: &Settings,
    host: &Host,
) -> Result<(Option<RunCgroup>, Option<String>), run_cgroup::CgroupRefusal> {
    let mode = match settings.own_cgroup {
        OwnCgroup::Never => return Ok((None, None)),
        OwnCgroup::Auto => CgroupMode::Auto,
        OwnCgroup::Always => CgroupMode::Always,
    };
    // Cgroups can only be created on the machine on which the command runs.
    let made = match is_here(settings) {
        true if mode == CgroupMode::Auto && batch::here().is_some() => {
            let why =
                "in a batch job, whose scheduler looks for its processes in the job's own group";
            Err(run_cgroup::CgroupRefusal::Careful(why.to_owned()))
        }
        true => RunCgroup::create(host, mode),
        false => Err(run_cgroup::CgroupRefusal::NoPlace),
    };
    match made {
        Ok(group) => Ok((Some(group), None)),
        Err(why) if mode == CgroupMode::Always => Err(why),
        Err(why) => Ok((None, Some(why.to_string()))),
    }
}

/// Descriptors reserved for the machine, the recording, libraries and a margin.
const RESERVED_DESCRIPTORS: usize = collect::DESCRIPTORS + 64;

/// The sources that this machine has; the manifest lists those it has not, and why.
fn select(host: &Host, settings: &Settings, manifest: &mut Manifest) -> Selection {
    let selection = collect::select(host, settings);
    for absence in &selection.absent {
        manifest.leave_out(absence.source.name, absence.source.groups, &absence.why);
    }
    selection
}

/// The counters of events that the settings ask for, before anything is counted; the manifest lists
/// them. An error is a name that means no event.
fn counters(
    host: &Host,
    settings: &Settings,
    sources: &[&'static Source],
    manifest: &mut Manifest,
) -> Result<PreparedCounters, settings::Error> {
    if !sources.iter().any(|source| source.id == SourceId::Perf) {
        return Ok(PreparedCounters::default());
    }
    let mut prepared = perf::prepare(host, settings)?;
    manifest.events = Some(std::mem::take(&mut prepared.declared));
    Ok(prepared)
}

const OTHER_NAMESPACE: &str =
    "/proc is that of another pid namespace; mount this one's: mount -t proc proc /proc";

/// Claims the directory of the recording.
///
/// A requested one must be available, or the run does not begin; for the default one, and for a
/// full disk, there is a warning.
fn prepare(
    settings: &Settings,
    manifest: &Manifest,
    warnings: &mut Vec<String>,
) -> Result<Option<Claim>, Error> {
    let (claimed, asked_for) = match &settings.destination {
        Destination::Nowhere => return Ok(None),
        Destination::Directory(path) => (Claim::of(path), true),
        Destination::Here => {
            let name = files::directory_name(manifest.started, &manifest.name);
            (Claim::new_in(Path::new(files::DEFAULT_DIRECTORY), &name), false)
        }
    };
    match claimed {
        Ok(claim) => Ok(Some(claim)),
        Err(error) if asked_for && !error.is_full() => Err(error.into()),
        Err(error) => {
            warnings.push(format!("not recorded: {error}"));
            Ok(None)
        }
    }
}
