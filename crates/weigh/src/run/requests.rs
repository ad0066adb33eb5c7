//! What asks a monitor to do something: signals to the program `weigh`, or calls of a session.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel};

use rustix::event::{EventfdFlags, eventfd};

use super::live::LiveValues;
use super::sampling_loop::ENDS;
use crate::host::signals::Signals;
use crate::record::inbox::ControlMessage;
use crate::summary::Summary;

/// A call of a session.
pub(super) enum Request {
    /// Record a phase or a mark.
    Control(Box<ControlMessage>),
    /// Sample, and answer with the summary so far and the values now.
    Snapshot(SyncSender<(Summary, LiveValues)>),
    /// Stop monitoring.
    Stop,
    /// The terminal has another size.
    Resize,
    /// Ctrl-Z: stop weigh alone, until it is continued.
    Suspend,
}

/// The session's side of the queue.
pub(super) struct RequestSender {
    requests: Sender<Request>,
    wakeup: Arc<OwnedFd>,
}

/// The monitor's side of the queue.
pub(super) struct RequestQueue {
    requests: Receiver<Request>,
    wakeup: Arc<OwnedFd>,
}

/// A queue whose receiver waits in `poll` together with other descriptors.
pub(super) fn request_queue() -> std::io::Result<(RequestSender, RequestQueue)> {
    let wakeup = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    let (sender, receiver) = channel();
    let theirs = RequestSender { requests: sender, wakeup: Arc::clone(&wakeup) };
    Ok((theirs, RequestQueue { requests: receiver, wakeup }))
}

impl RequestSender {
    /// Sends a request; `false` when the monitor has finished.
    pub(super) fn send(&self, request: Request) -> bool {
        let is_sent = self.requests.send(request).is_ok();
        // A counter that is full already wakes the monitor.
        let _ = rustix::io::write(&*self.wakeup, &1u64.to_ne_bytes());
        is_sent
    }
}

impl RequestQueue {
    /// The requests that have arrived. A session that is gone requests the end.
    fn take(&self) -> Vec<Request> {
        // First: a request that arrives after it wakes the monitor again.
        let _ = rustix::io::read(&*self.wakeup, &mut [0u8; 8]);
        let mut arrived = Vec::new();
        loop {
            match self.requests.try_recv() {
                Ok(request) => arrived.push(request),
                Err(TryRecvError::Empty) => return arrived,
                Err(TryRecvError::Disconnected) => {
                    arrived.push(Request::Stop);
                    return arrived;
                }
            }
        }
    }
}

/// Where the requests of a monitor come from.
pub(super) enum Requests {
    /// The program `weigh`: signals request the end.
    Signals(Signals),
    /// A session.
    Queue(RequestQueue),
}

impl Requests {
    /// The requests that have arrived.
    pub(super) fn take(&mut self) -> Vec<Request> {
        match self {
            Requests::Queue(queue) => queue.take(),
            Requests::Signals(signals) => {
                let mut arrived = Vec::new();
                while let Some(signal) = signals.arrived() {
                    match signal.number {
                        libc::SIGWINCH => arrived.push(Request::Resize),
                        libc::SIGTSTP => arrived.push(Request::Suspend),
                        number if ENDS.contains(&number) => arrived.push(Request::Stop),
                        _ => {}
                    }
                }
                arrived
            }
        }
    }

    /// Whether the user wants the end now, while the recording is being finished.
    pub(super) fn is_impatient(&mut self) -> bool {
        match self {
            Requests::Signals(signals) => is_impatient(signals),
            // The caller has asked for the end already, and waits for it.
            Requests::Queue(_) => false,
        }
    }
}

/// Whether a signal that requests the end has arrived.
pub(super) fn is_impatient(signals: &mut Signals) -> bool {
    signals.arrived().is_some_and(|signal| ENDS.contains(&signal.number))
}

impl AsFd for Requests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Requests::Signals(signals) => signals.as_fd(),
            Requests::Queue(queue) => queue.wakeup.as_fd(),
        }
    }
}
