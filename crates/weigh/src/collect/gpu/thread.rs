//! A thread that asks a driver, and how a tick gets what it was told.
//!
//! A driver may take 100 ms for an answer, or for ever. A tick never waits for it: it takes the
//! last whole reading, with those that nobody took in it, and says when it wants the next. The thread never ends, because the
//! kernel would add what it read to the account of our children.

use std::collections::HashSet;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::reading::{Find, Reading};
use crate::host::HostClock;
use crate::model::{Gpu, ProcessId};

/// A driver is not asked oftener: its own samples are a tenth of a second apart or more.
const REST: Duration = Duration::from_millis(100);

/// A reading is no older, however rare ticks are: a run may end at any moment, and what the driver
/// keeps of its own samples reaches back some seconds only.
const FRESH: Duration = Duration::from_secs(1);

/// How long the end of a run waits for an answer that is under way. Without it, the library
/// would be taken apart while it works.
const LAST_ANSWER: Duration = Duration::from_millis(100);

/// What is new since the last tick.
#[derive(Debug, Default)]
pub(super) struct News {
    /// All cards there are, once.
    pub(super) there: Option<Vec<Gpu>>,
    pub(super) reading: Option<Reading>,
    /// Why there will be nothing more.
    pub(super) ended: Option<String>,
}

/// Gives what is new: at this moment, with a wish for the next reading, and whose files moved.
pub(super) type Answers = Box<dyn FnMut(Duration, Duration, &[ProcessId]) -> News>;

#[derive(Default)]
struct State {
    news: News,
    /// When the next reading should begin.
    due: Option<Duration>,
    /// Whose files are not those of the last look.
    moved: HashSet<ProcessId>,
    is_asking: bool,
    stops: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands something over, waits for the moment of the next reading, which is between these
    /// two, and says whose files moved until then.
    fn hand_over(
        &self,
        put: impl FnOnce(&mut News),
        earliest: Duration,
        latest: Duration,
    ) -> Vec<ProcessId> {
        let mut state = self.lock();
        put(&mut state.news);
        state.is_asking = false;
        self.changed.notify_all();
        loop {
            let now = HostClock::Monotonic.now();
            let due = state.due.map_or(latest, |due| due.min(latest)).max(earliest);
            if state.stops {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            } else if due <= now {
                state.due = None;
                state.is_asking = true;
                return state.moved.drain().collect();
            } else {
                let waited = self.changed.wait_timeout(state, due - now);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
    }
}

impl Shared {
    /// Says that there will be nothing more, and why. The thread stays.
    fn end(&self, why: &str) -> Infallible {
        loop {
            self.hand_over(|news| news.ended = Some(why.to_owned()), Duration::MAX, Duration::MAX);
        }
    }
}

/// The tick's side of the exchange.
struct Exchange {
    shared: Arc<Shared>,
}

impl Exchange {
    /// Starts the thread, which begins with a reading.
    fn begin(find: Find, moved: &[ProcessId]) -> std::io::Result<Exchange> {
        let shared = Arc::new(Shared::default());
        shared.lock().is_asking = true;
        let (moved, theirs) = (moved.to_vec(), Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("weigh-gpu".to_owned());
        thread.spawn(move || {
            let asked = catch_unwind(AssertUnwindSafe(|| ask(&theirs, find, moved)));
            // Nobody else would hear of it, and GPUs would seem to be silent.
            asked.unwrap_or_else(|_| theirs.end("what asks the driver has failed"))
        })?;
        Ok(Exchange { shared })
    }

    /// Takes what is new, and asks for the next reading at a moment, unless one is due before.
    fn take(&self, next: Duration, moved: &[ProcessId]) -> News {
        let mut state = self.shared.lock();
        state.moved.extend(moved);
        if state.due.is_none_or(|due| next < due) {
            state.due = Some(next);
            self.shared.changed.notify_all();
        }
        std::mem::take(&mut state.news)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.stops = true;
        // Either it stands still now, or it hangs.
        drop(self.shared.changed.wait_timeout_while(state, LAST_ANSWER, |state| state.is_asking));
    }
}

/// Answers of a thread that is started when they are first wanted.
pub(super) fn answers(find: Find) -> Answers {
    let (mut find, mut exchange) = (Some(find), None::<Exchange>);
    Box::new(move |_, next, moved| {
        if let Some(find) = find.take() {
            match Exchange::begin(find, moved) {
                Ok(begun) => exchange = Some(begun),
                Err(error) => {
                    let ended = Some(format!("no thread to ask the driver: {error}"));
                    return News { ended, ..News::default() };
                }
            }
        }
        exchange.as_ref().map(|exchange| exchange.take(next, moved)).unwrap_or_default()
    })
}

fn ask(shared: &Shared, find: Find, mut moved: Vec<ProcessId>) -> Infallible {
    let mut asked = match find() {
        Ok(asked) => asked,
        Err(why) => return shared.end(&why),
    };
    let mut there = Some(asked.there());
    let mut looked = None;
    loop {
        let at = HostClock::Monotonic.now();
        let mut reading = asked.read(at, &moved);
        reading.at = at;
        let before = looked.replace(at);
        reading.follows(before.map_or(Duration::ZERO, |before| at.saturating_sub(before)));
        reading.took = HostClock::Monotonic.now().saturating_sub(at);
        let put = |news: &mut News| {
            if let Some(before) = news.reading.take() {
                reading.take_in(before);
            }
            news.reading = Some(reading);
            news.there = there.take().or(news.there.take());
        };
        moved = shared.hand_over(put, at + REST, at + FRESH);
    }
}
