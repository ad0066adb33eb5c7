//! A call that may hang, with a timeout.

use std::sync::mpsc;
use std::time::Duration;

/// Runs `call` once on a thread of its own and waits at most `timeout` for its result. The thread
/// never exits, because the kernel would add what it read to the I/O of our children.
pub fn with_timeout<T: Send + 'static>(
    timeout: Duration,
    call: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (sender, receiver) = mpsc::channel();
    let thread = std::thread::Builder::new().name("weigh-ask".to_owned());
    let spawned = thread.spawn(move || {
        // After the timeout the receiver is gone.
        let _ = sender.send(call());
        loop {
            std::thread::park();
        }
    });
    spawned.ok().and_then(|_| receiver.recv_timeout(timeout).ok())
}
