//! The thread that polls a backend, and hands the newest poll over to ticks.
//!
//! A driver may take 100 ms to answer, or hang. A tick never waits for it: it takes the last
//! finished poll, with those coalesced that no tick took, and says when the next is due. In weigh's
//! own process the thread never ends: on exit the kernel would add its I/O to that of our children.
//! In a session, of which there may be many, it ends with the collector.

use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[cfg(test)]
use super::backend::Backend;
use super::backend::OpenBackend;
use super::poll::Poll;
use crate::host::{HostClock, own};
use crate::model::{Gpu, ProcessId};

/// Time between polls, at least: the driver's own samples are as far apart, or farther.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Time between polls, at most, however rare ticks are: a run may end at any moment, and the
/// driver's buffer of samples reaches back some seconds only.
const MAX_INTERVAL: Duration = Duration::from_secs(1);

/// How long the end of a run waits for a poll under way. Without that, exit would run the
/// destructors of the library during a call.
const LAST_POLL: Duration = Duration::from_millis(100);

/// What is new since the last tick.
#[derive(Debug, Default)]
pub(super) struct WorkerUpdate {
    /// All devices, once.
    pub(super) devices: Option<Vec<Gpu>>,
    pub(super) poll: Option<Poll>,
    /// Why there will be no more polls.
    pub(super) ended: Option<String>,
}

/// The tick's side of the thread.
pub(super) struct Worker {
    mode: WorkerMode,
}

enum WorkerMode {
    /// The thread starts at the first tick.
    Waiting(OpenBackend),
    Running(Arc<Mailbox>),
    /// There is no thread.
    Failed,
    /// Polls in the tick itself; `true` until the devices were reported.
    #[cfg(test)]
    AtOnce(Result<Box<dyn Backend>, String>, bool),
}

impl Worker {
    pub(super) fn new(open: OpenBackend) -> Worker {
        Worker { mode: WorkerMode::Waiting(open) }
    }

    /// Without a thread: polls in the tick itself, so that a test knows what is read.
    #[cfg(test)]
    pub(super) fn at_once(open: OpenBackend) -> Worker {
        Worker { mode: WorkerMode::AtOnce(open(), true) }
    }

    /// Takes what is new at a tick, and requests the next poll so long after it, unless an earlier
    /// one is due. `changed` are the processes whose open files changed.
    pub(super) fn take(
        &mut self,
        now: Duration,
        delay: Duration,
        changed: &[ProcessId],
    ) -> WorkerUpdate {
        match std::mem::replace(&mut self.mode, WorkerMode::Failed) {
            WorkerMode::Waiting(open) => match start(open, changed) {
                Ok(mailbox) => self.mode = WorkerMode::Running(mailbox),
                Err(error) => {
                    let ended = Some(format!("cannot start a thread to poll the driver: {error}"));
                    return WorkerUpdate { ended, ..WorkerUpdate::default() };
                }
            },
            other => self.mode = other,
        }
        match &mut self.mode {
            WorkerMode::Running(mailbox) => mailbox.take(now + delay, changed),
            WorkerMode::Waiting(_) | WorkerMode::Failed => WorkerUpdate::default(),
            #[cfg(test)]
            WorkerMode::AtOnce(Ok(backend), is_new) => WorkerUpdate {
                poll: Some(Poll { at: now, ..backend.poll(now, changed) }),
                devices: std::mem::take(is_new).then(|| backend.devices()),
                ended: None,
            },
            #[cfg(test)]
            WorkerMode::AtOnce(Err(why), _) => {
                WorkerUpdate { ended: Some(why.clone()), ..WorkerUpdate::default() }
            }
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        if let WorkerMode::Running(mailbox) = &self.mode {
            mailbox.stop();
        }
    }
}

/// Starts the thread, which begins with a poll.
fn start(open: OpenBackend, changed: &[ProcessId]) -> std::io::Result<Arc<Mailbox>> {
    let mailbox = Arc::new(Mailbox { ends_when_stopped: own::is_threads(), ..Mailbox::default() });
    mailbox.lock().is_polling = true;
    let (changed, of_thread) = (changed.to_vec(), Arc::clone(&mailbox));
    let thread = std::thread::Builder::new().name("weigh-gpu".to_owned());
    let thread = thread.spawn(move || {
        let polled =
            catch_unwind(AssertUnwindSafe(|| poll_until_stopped(&of_thread, open, changed)));
        // A panic would otherwise look like a driver that does not answer.
        polled.unwrap_or_else(|_| of_thread.end("the thread that polls the driver panicked"));
    })?;
    own::count_thread(&thread);
    Ok(mailbox)
}

fn poll_until_stopped(mailbox: &Mailbox, open: OpenBackend, mut changed: Vec<ProcessId>) {
    let mut backend = match open() {
        Ok(backend) => backend,
        Err(why) => return mailbox.end(&why),
    };
    let mut devices = Some(backend.devices());
    let mut polled_at = None;
    loop {
        let at = HostClock::Monotonic.now();
        let mut poll = backend.poll(at, &changed);
        poll.at = at;
        let before = polled_at.replace(at);
        poll.cover(before.map_or(Duration::ZERO, |before| at.saturating_sub(before)));
        poll.took = HostClock::Monotonic.now().saturating_sub(at);
        let put = |update: &mut WorkerUpdate| {
            if let Some(earlier) = update.poll.take() {
                poll.coalesce(earlier);
            }
            update.poll = Some(poll);
            update.devices = devices.take().or(update.devices.take());
        };
        match mailbox.hand_over(put, at + MIN_INTERVAL, at + MAX_INTERVAL) {
            Some(since_then) => changed = since_then,
            None => return,
        }
    }
}

/// Where the thread leaves updates, and ticks their requests.
#[derive(Default)]
struct Mailbox {
    state: Mutex<MailboxState>,
    condition: Condvar,
    /// Whether the thread exits when the collector is dropped.
    ends_when_stopped: bool,
}

#[derive(Default)]
struct MailboxState {
    update: WorkerUpdate,
    /// When the next poll should begin.
    due: Option<Duration>,
    /// Processes whose open files changed since the last poll.
    changed: HashSet<ProcessId>,
    is_polling: bool,
    is_stopped: bool,
}

impl Mailbox {
    fn lock(&self) -> MutexGuard<'_, MailboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread's side: hands an update over, waits until the next poll is due, which is between
    /// these two times, and returns the processes whose open files changed until then; `None` when
    /// the thread is to exit.
    fn hand_over(
        &self,
        put: impl FnOnce(&mut WorkerUpdate),
        earliest: Duration,
        latest: Duration,
    ) -> Option<Vec<ProcessId>> {
        let mut state = self.lock();
        put(&mut state.update);
        state.is_polling = false;
        self.condition.notify_all();
        loop {
            let now = HostClock::Monotonic.now();
            let due = state.due.map_or(latest, |due| due.min(latest)).max(earliest);
            if state.is_stopped && self.ends_when_stopped {
                return None;
            } else if state.is_stopped {
                state = self.condition.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else if due <= now {
                state.due = None;
                state.is_polling = true;
                return Some(state.changed.drain().collect());
            } else {
                let waited = self.condition.wait_timeout(state, due - now);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }

    /// The thread's side: reports why there will be no more polls. The thread stays until the
    /// collector is dropped, or for good.
    fn end(&self, why: &str) {
        let put = |update: &mut WorkerUpdate| update.ended = Some(why.to_owned());
        while self.hand_over(put, Duration::MAX, Duration::MAX).is_some() {}
    }

    /// The tick's side: takes the update and requests the next poll.
    fn take(&self, next: Duration, changed: &[ProcessId]) -> WorkerUpdate {
        let mut state = self.lock();
        state.changed.extend(changed);
        if state.due.is_none_or(|due| next < due) {
            state.due = Some(next);
            self.condition.notify_all();
        }
        std::mem::take(&mut state.update)
    }

    /// The tick's side: no more polls. Waits a moment for one that is under way; a driver that
    /// hangs is left alone.
    fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        self.condition.notify_all();
        drop(self.condition.wait_timeout_while(state, LAST_POLL, |state| state.is_polling));
    }
}
