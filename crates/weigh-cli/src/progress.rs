//! A progress bar on a terminal, for work that takes long.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work shows no bar.
const DELAY: Duration = Duration::from_secs(1);

/// A progress bar; it disappears when it is dropped.
pub(crate) struct Bar(ProgressBar);

impl Bar {
    /// Counts rows.
    pub(crate) fn of_rows() -> Bar {
        Bar::new("{wide_bar} {percent:>3} %  {human_pos} of {human_len} rows  {eta} left")
    }

    /// Names the current step.
    pub(crate) fn of_steps() -> Bar {
        Bar::new("{wide_bar} {percent:>3} %  {msg}")
    }

    fn new(style: &str) -> Bar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        Bar(bar.with_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        ))
    }

    /// Shows how much is done.
    pub(crate) fn show(&self, done: u64, of: u64) {
        if self.0.is_hidden() && self.0.elapsed() > DELAY {
            // It stays hidden where stderr is not a terminal.
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.0.set_length(of);
        self.0.set_position(done);
    }

    /// Sets the current step.
    pub(crate) fn step(&self, what: &str) {
        self.0.set_message(what.to_owned());
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
