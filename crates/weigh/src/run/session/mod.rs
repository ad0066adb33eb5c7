//! Measuring from inside a program: [`Session`].
//!
//! A thread of its own samples, so the program goes on. Nothing of the program is changed: no
//! signal, stream, limit, environment variable or working directory, and no child is reaped but the
//! command that a session has started, and its orphans where that is wanted ([`orphans`]).
//!
//! A fork copies the session, but not its thread. In the child it does nothing, except that phases
//! and marks reach the recording through its pipe, and dropping it is without effect.

pub(super) mod command;
mod orphans;

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::attach::{self, AttachMonitor, AttachOptions, AttachTarget, ProcessOwner};
use super::requests::{Request, RequestQueue, RequestSender, request_queue};
use super::{Error, LiveValues, Outcome};
use crate::host::clock::Offsets;
use crate::host::{HostClock, own, signals};
use crate::model::settings::Settings;
use crate::record::events::EventData;
use crate::record::inbox::{self, ControlMessage};
use crate::record::{Event, Manifest};
use crate::summary::Summary;

/// A measurement that runs beside the program.
///
/// ```no_run
/// use weigh::{Session, Settings};
///
/// let session = Session::current(&Settings::default())?;
/// let loading = session.phase("load");
/// let table: Vec<u64> = (0..10_000_000).collect();
/// drop(loading);
/// session.mark("loaded");
/// let outcome = session.stop()?;
/// println!("{:?}", outcome.summary.figures.get(weigh::FigureId::CpuTime));
/// # drop(table);
/// # Ok::<(), weigh::RunError>(())
/// ```
pub struct Session {
    /// The process that owns the thread.
    owner: u32,
    id: String,
    directory: Option<PathBuf>,
    pid: Option<u32>,
    shared: ManuallyDrop<Shared>,
}

/// What the session shares with its thread.
struct Shared {
    requests: RequestSender,
    end: Arc<EndOfTarget>,
    thread: Mutex<SamplerThread>,
}

enum SamplerThread {
    Running(JoinHandle<Option<Outcome>>),
    Finished(Box<Outcome>),
    /// It has panicked, or its result is taken.
    Failed,
}

impl SamplerThread {
    /// Waits for its result.
    fn join(&mut self) {
        *self = match std::mem::replace(self, SamplerThread::Failed) {
            SamplerThread::Running(thread) => match thread.join() {
                Ok(Some(outcome)) => SamplerThread::Finished(Box::new(outcome)),
                Ok(None) | Err(_) => SamplerThread::Failed,
            },
            finished => finished,
        };
    }
}

/// Whether the target has ended and everything is recorded.
#[derive(Default)]
struct EndOfTarget {
    is_over: Mutex<bool>,
    condition: Condvar,
}

impl EndOfTarget {
    fn set(&self) {
        *lock(&self.is_over) = true;
        self.condition.notify_all();
    }

    fn wait(&self, timeout: Option<Duration>) -> bool {
        let is_over = lock(&self.is_over);
        let goes_on = |is_over: &mut bool| !*is_over;
        *match timeout {
            None => {
                self.condition.wait_while(is_over, goes_on).unwrap_or_else(PoisonError::into_inner)
            }
            Some(timeout) => {
                self.condition
                    .wait_timeout_while(is_over, timeout, goes_on)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0
            }
        }
    }
}

/// A phase that has been started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseId(String);

impl PhaseId {
    /// As it is in the recording.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The phase with this id, of the same session.
    pub fn parse(id: &str) -> PhaseId {
        PhaseId(id.to_owned())
    }
}

/// A phase that ends when it is dropped.
pub struct OpenPhase<'a> {
    session: &'a Session,
    id: PhaseId,
}

impl OpenPhase<'_> {
    /// Its id, for phases inside it.
    pub fn id(&self) -> &PhaseId {
        &self.id
    }
}

impl Drop for OpenPhase<'_> {
    fn drop(&mut self) {
        self.session.end_phase(&self.id);
    }
}

/// What is known when sampling begins.
struct Begun {
    id: String,
    directory: Option<PathBuf>,
    pid: Option<u32>,
}

impl Begun {
    fn of(manifest: &Manifest, directory: Option<&Path>, pid: Option<u32>) -> Begun {
        let directory = directory.and_then(|path| std::path::absolute(path).ok());
        Begun { id: manifest.id.clone(), directory, pid }
    }
}

impl Session {
    /// Measures this process, and its children from now on.
    ///
    /// The CPU time includes that of the session itself, which `summary.monitor` states.
    pub fn current(settings: &Settings) -> Result<Session, Error> {
        Session::attach(&[std::process::id()], settings)
    }

    /// Measures running processes and their descendants, until they exit or [`stop`](Self::stop).
    pub fn attach(pids: &[u32], settings: &Settings) -> Result<Session, Error> {
        Session::monitor(AttachTarget::Processes(pids.to_vec()), settings)
    }

    /// Measures all processes in a cgroup and the cgroups below it.
    pub fn cgroup(path: &Path, settings: &Settings) -> Result<Session, Error> {
        Session::monitor(AttachTarget::Cgroup(path.to_owned()), settings)
    }

    /// Measures any target.
    pub fn monitor(what: AttachTarget, settings: &Settings) -> Result<Session, Error> {
        let settings = settings.clone();
        Session::start(move |queue, warnings| {
            let (options, owner) =
                (AttachOptions { what, time: None }, ProcessOwner::Session(queue));
            let (monitor, manifest) = attach::begin(&options, &settings, owner, warnings)?;
            let begun = Begun::of(&manifest, monitor.sampling.directory(), None);
            Ok((monitor, begun))
        })
    }

    /// Starts a command, with the streams of this process, and measures it and all it starts.
    ///
    /// The session reaps the command, and no other child. A command that is still running at
    /// [`stop`](Self::stop) goes on, unmeasured.
    ///
    /// Orphaned descendants (daemons) are given to the reaper of this process. What they used is
    /// sampled, and after their exit nobody knows the rest. With
    /// [`Settings::subreaper`](crate::Settings) this process is a child subreaper (prctl(2)) until
    /// `stop`, which restores what was before. Then orphans are children of this process; the session
    /// finds and reaps them, also after `stop`, and all counts are exact. It recognises them by a
    /// soft limit `RLIMIT_RTTIME` of about 150,000 years, which the command and all its descendants
    /// have. A program that waits for any child (`waitpid(-1)`) gets orphans, too.
    pub fn spawn(command: &[OsString], settings: &Settings) -> Result<Session, Error> {
        let (settings, command) = (settings.clone(), command.to_vec());
        // Of this thread, whose signal mask the command gets.
        let original = command::original();
        Session::start(move |queue, warnings| {
            let (monitor, manifest) =
                command::begin(&command, &settings, &original, queue, warnings)?;
            let directory = monitor.sampling.directory();
            let begun = Begun::of(&manifest, directory, Some(manifest.pid));
            Ok((monitor, begun))
        })
    }

    /// Starts the thread, which prepares the monitor: its collectors stay in one thread.
    fn start<B>(begin: B) -> Result<Session, Error>
    where
        B: FnOnce(RequestQueue, &mut Vec<String>) -> Result<(AttachMonitor, Begun), Error>
            + Send
            + 'static,
    {
        let refused = |source| Error::System { what: "a thread to sample in", source };
        let (requests, queue) = request_queue().map_err(refused)?;
        let end = Arc::new(EndOfTarget::default());
        let of_thread = Arc::clone(&end);
        let (ready, begun) = sync_channel(1);
        let thread = std::thread::Builder::new().name("weigh-sampler".to_owned());
        let thread = thread
            .spawn(move || {
                // Signals of the process are for the program's own threads.
                signals::block_all();
                own::be_threads();
                let mut warnings = Vec::new();
                let (mut monitor, begun) = match begin(queue, &mut warnings) {
                    Ok(begun) => begun,
                    Err(error) => {
                        // The session waits for it.
                        let _ = ready.send(Err(error));
                        return None;
                    }
                };
                let _ = ready.send(Ok(begun));
                let why = monitor.monitor();
                let outcome = monitor.finish(why, warnings);
                of_thread.set();
                Some(outcome)
            })
            .map_err(refused)?;
        // Without an answer the thread has panicked.
        let Begun { id, directory, pid } = match begun.recv().unwrap_or(Err(panicked())) {
            Ok(begun) => begun,
            Err(error) => {
                // Nothing is left behind, not even for a moment.
                let _ = thread.join();
                return Err(error);
            }
        };
        let thread = Mutex::new(SamplerThread::Running(thread));
        let shared = ManuallyDrop::new(Shared { requests, end, thread });
        Ok(Session { owner: std::process::id(), id, directory, pid, shared })
    }

    /// The unique id of the run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The directory of the recording, if there is one.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The process of the command that [`spawn`](Self::spawn) has started.
    pub fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Whether this process made the session, and is not a fork of it.
    pub fn is_owner(&self) -> bool {
        std::process::id() == self.owner
    }

    /// Starts a phase, inside another one if that is given, with data that belongs to it.
    pub fn start_phase(
        &self,
        name: &str,
        parent: Option<&PhaseId>,
        data: Option<EventData>,
    ) -> PhaseId {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let id = format!("call-{}-{count}", std::process::id());
        let parent = parent.map(|phase| phase.0.clone());
        self.send(Event::PhaseStart { id: id.clone(), name: name.to_owned(), parent }, data);
        PhaseId(id)
    }

    /// Ends a phase.
    pub fn end_phase(&self, phase: &PhaseId) {
        let id = phase.0.clone();
        self.send(Event::PhaseEnd { id, usage: None, end: None, account: None }, None);
    }

    /// Starts a phase that ends when the result is dropped.
    pub fn phase(&self, name: &str) -> OpenPhase<'_> {
        OpenPhase { session: self, id: self.start_phase(name, None, None) }
    }

    /// Marks this moment.
    pub fn mark(&self, text: &str) {
        self.send(Event::Mark { text: text.to_owned() }, None);
    }

    /// Marks this moment, with data that belongs to it.
    pub fn mark_with(&self, text: &str, data: EventData) {
        self.send(Event::Mark { text: text.to_owned() }, Some(data));
    }

    /// Sends a control message: to the thread, or from a fork through the pipe of the recording.
    fn send(&self, event: Event, data: Option<EventData>) {
        let now = HostClock::Monotonic.now();
        let nanoseconds = Offsets::own().on_machine(now.as_nanos() as u64);
        let message = ControlMessage { nanoseconds, data, ..ControlMessage::new(now, event) };
        if self.is_owner() {
            // After the end there is nothing to record it in.
            self.shared.requests.send(Request::Control(Box::new(message)));
        } else if let Some(directory) = &self.directory {
            // A recording that has ended refuses it, and so it is for the owner.
            let _ = inbox::send_message(directory, &message);
        }
    }

    /// Samples now, and returns the figures so far; those of the whole run once it has ended. `None`
    /// in a fork of the process.
    pub fn snapshot(&self) -> Option<Summary> {
        Some(self.snapshot_with_values()?.0)
    }

    /// The same, with the values of this moment, unless it has ended.
    ///
    /// Cores are a mean since the last call that is at least a second ago.
    pub fn snapshot_with_values(&self) -> Option<(Summary, Option<LiveValues>)> {
        if !self.is_owner() {
            return None;
        }
        let (answer, answered) = sync_channel(1);
        if self.shared.requests.send(Request::Snapshot(answer))
            && let Ok((summary, values)) = answered.recv()
        {
            return Some((summary, Some(values)));
        }
        let mut thread = lock(&self.shared.thread);
        thread.join();
        match &*thread {
            SamplerThread::Finished(outcome) => Some((outcome.summary.clone(), None)),
            _ => None,
        }
    }

    /// Waits until the target has ended by itself and everything is recorded, at most so long;
    /// returns whether it has.
    pub fn wait(&self, timeout: Option<Duration>) -> bool {
        self.is_owner() && self.shared.end.wait(timeout)
    }

    /// Stops measuring, and returns the result.
    ///
    /// A fork of the process gets [`Error::ForkedSession`]: the session is the parent's.
    pub fn stop(self) -> Result<Outcome, Error> {
        if !self.is_owner() {
            return Err(Error::ForkedSession);
        }
        self.shared.requests.send(Request::Stop);
        let mut thread = lock(&self.shared.thread);
        thread.join();
        match std::mem::replace(&mut *thread, SamplerThread::Failed) {
            SamplerThread::Finished(outcome) => Ok(*outcome),
            _ => Err(panicked()),
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // A fork has no thread to stop, and locks may be held that nobody releases: it is leaked.
        if !self.is_owner() {
            return;
        }
        self.shared.requests.send(Request::Stop);
        lock(&self.shared.thread).join();
        // SAFETY: nothing uses it after this.
        unsafe { ManuallyDrop::drop(&mut self.shared) };
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.id).field("directory", &self.directory).finish()
    }
}

/// A panic of the thread has ended it; the program goes on.
fn panicked() -> Error {
    Error::System { what: "sampling", source: std::io::Error::other("its thread panicked") }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
