//! A progress bar on a terminal, for work that takes its time.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A wait that is shorter than this needs no explanation.
const PATIENCE: Duration = Duration::from_secs(1);

/// How far a piece of work is; it is gone when the work is done.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Counts rows.
    pub(crate) fn of_rows() -> Bar {
        Bar::new("{wide_bar} {percent:>3} %  {human_pos} of {human_len} rows  {eta} left")
    }

    /// Says what is being done.
    pub(crate) fn of_steps() -> Bar {
        Bar::new("{wide_bar} {percent:>3} %  {msg}")
    }

    fn new(style: &str) -> Bar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Bar(bar.with_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        ))
    }

    /// So much of it is done.
    pub(crate) fn show(&self, done: u64, of: u64) {
        if self.0.is_hidden() && self.0.elapsed() > PATIENCE {
            // It stays hidden where stderr is not a terminal.
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.0.set_length(of);
        self.0.set_position(done);
    }

    /// This is being done now.
    pub(crate) fn say(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
