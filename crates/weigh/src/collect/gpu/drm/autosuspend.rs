//! Pauses the polls of a GPU that is awake and idle, so that it can suspend.
//!
//! Source: `power/control` and `power/autosuspend_delay_ms` of its device (kernel documentation,
//! "Runtime Power Management Framework"), which all users may read and which do not wake it up.
//!
//! What surprised us: a GPU suspends when nothing was read from it for that long (a second with xe,
//! 5 s with amdgpu, 10 s with i915), and each value that is read counts. Polls once a second would
//! keep it awake for ever, and its power would be attributed to the run.

use std::ffi::{CStr, CString};
use std::time::Duration;

use super::sensor::SensorContext;
use crate::parse::attribute;

/// How long suspending takes, with a margin.
const MARGIN: Duration = Duration::from_secs(1);

/// When the polls of a GPU are paused.
#[derive(Debug)]
pub(super) struct Autosuspend {
    control: CString,
    delay: CString,
    paused_until: Option<Duration>,
}

impl Autosuspend {
    /// Of the device in this directory.
    pub(super) fn new(device: &str) -> Autosuspend {
        let path = |file: &str| CString::new(format!("{device}/power/{file}")).unwrap_or_default();
        let (control, delay) = (path("control"), path("autosuspend_delay_ms"));
        Autosuspend { control, delay, paused_until: None }
    }

    /// Whether polls are paused at this time.
    pub(super) fn is_paused(&self, at: Duration) -> bool {
        self.paused_until.is_some_and(|until| at < until)
    }

    /// It is suspended, or a process uses it.
    pub(super) fn resume(&mut self) {
        self.paused_until = None;
    }

    /// It is idle: pauses for as long as it needs to suspend, if autosuspend is on.
    pub(super) fn pause(&mut self, at: Duration, context: &mut SensorContext) {
        let mut read =
            |path: &CStr| context.sys.read(path, context.buffer).ok().map(<[u8]>::to_vec);
        let is_on = read(&self.control).is_some_and(|control| control == b"auto\n");
        // A negative delay forbids it, and without a delay it does not depend on time.
        let delay = read(&self.delay).filter(|_| is_on);
        let delay = delay.and_then(|delay| attribute::number(&delay).ok());
        let until = |milliseconds| at + Duration::from_millis(milliseconds) + MARGIN;
        self.paused_until = delay.map(until);
    }
}
