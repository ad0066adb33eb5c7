//! The thread that asks the driver, and how a tick gets what it was told.
//!
//! A driver may take 100 ms for an answer, or for ever. A tick never waits for it: it takes the
//! last whole reading, and says when it wants the next. The thread never ends, because the
//! kernel would add what it read to the account of our children.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::card::CardRead;
use super::cards::Cards;
use super::users::UserRead;
use super::visible::Visible;
use crate::host::Clock;
use crate::sample::Gpu;

/// The driver is not asked oftener: its own samples are a tenth of a second apart or more.
const REST: Duration = Duration::from_millis(100);

/// How long the end of a run waits for an answer that is under way. Without it, the library
/// would be taken apart while it works.
const LAST_ANSWER: Duration = Duration::from_millis(100);

/// Everything that the driver said at one moment.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// When it was asked, on the monotonic clock.
    pub(super) at: Duration,
    /// How long it took to answer.
    pub(super) took: Duration,
    pub(super) cards: Vec<CardRead>,
    pub(super) users: Vec<UserRead>,
    /// Cards that are told of for the first time.
    pub(super) met: Vec<Gpu>,
    /// What went wrong, for people.
    pub(super) trouble: Vec<String>,
}

/// What is new since the last tick.
#[derive(Debug, Default)]
pub(super) struct News {
    pub(super) reading: Option<Reading>,
    /// Why there will be nothing more.
    pub(super) ended: Option<String>,
}

#[derive(Default)]
struct State {
    news: News,
    /// When the next reading should begin.
    due: Option<Duration>,
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

    /// Hands something over, and waits for the moment of the next reading.
    fn hand_over(&self, put: impl FnOnce(&mut News), earliest: Duration) {
        let mut state = self.lock();
        put(&mut state.news);
        state.is_asking = false;
        self.changed.notify_all();
        loop {
            let now = Clock::Monotonic.now();
            let due = state.due.filter(|_| !state.stops).map(|due| due.max(earliest));
            state = match due {
                Some(due) if due <= now => {
                    state.due = None;
                    state.is_asking = true;
                    return;
                }
                Some(due) => {
                    let waited = self.changed.wait_timeout(state, due - now);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }
}

/// The tick's side of the exchange.
pub(super) struct Exchange {
    shared: Arc<Shared>,
}

impl Exchange {
    /// Starts the thread, which begins with a reading.
    pub(super) fn begin(
        wanted: Option<Vec<String>>,
        visible: Option<Visible>,
    ) -> std::io::Result<Exchange> {
        let shared = Arc::new(Shared::default());
        shared.lock().is_asking = true;
        let theirs = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("weigh-gpu".to_owned());
        thread.spawn(move || ask(&theirs, wanted.as_deref(), visible.as_ref()))?;
        Ok(Exchange { shared })
    }

    /// Takes what is new, and asks for the next reading at a moment, unless one is due.
    pub(super) fn take(&self, next: Duration) -> News {
        let mut state = self.shared.lock();
        if state.due.is_none() {
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

fn ask(shared: &Shared, wanted: Option<&[String]>, visible: Option<&Visible>) {
    let mut cards = match Cards::find(wanted, visible) {
        Ok(cards) => cards,
        Err(error) => {
            let why = error.to_string();
            loop {
                shared.hand_over(|news| news.ended = Some(why.clone()), Duration::MAX);
            }
        }
    };
    loop {
        let at = Clock::Monotonic.now();
        let mut reading = cards.read();
        reading.at = at;
        reading.took = Clock::Monotonic.now().saturating_sub(at);
        let put = |news: &mut News| {
            // One that nobody took is older, but whom it met has not been told of.
            if let Some(before) = news.reading.take() {
                reading.met.splice(0..0, before.met);
                reading.trouble.splice(0..0, before.trouble);
            }
            news.reading = Some(reading);
        };
        shared.hand_over(put, at + REST);
    }
}
