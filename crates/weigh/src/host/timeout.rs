//! Asking somebody who may never answer, and not waiting for ever.

use std::sync::mpsc;
use std::time::Duration;

/// Asks once, on a thread of its own, and waits so long for the answer. The thread never ends,
/// because the kernel would add what it read to the account of our children.
pub fn with_timeout<T: Send + 'static>(
    timeout: Duration,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (answer, answered) = mpsc::channel();
    let thread = std::thread::Builder::new().name("weigh-ask".to_owned());
    let asked = thread.spawn(move || {
        // Nobody listens any more when it took too long.
        let _ = answer.send(ask());
        loop {
            std::thread::park();
        }
    });
    asked.ok().and_then(|_| answered.recv_timeout(timeout).ok())
}
