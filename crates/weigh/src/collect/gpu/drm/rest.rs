//! Leaves a card alone that is awake and idle, so that it can fall asleep.
//!
//! Source: `power/control` and `power/autosuspend_delay_ms` of its device (kernel documentation,
//! "Runtime Power Management Framework"), which everybody may read and which wake nobody.
//!
//! What surprised us: a card falls asleep when nobody has asked it for anything for that long (a
//! second with xe, 5 s with amdgpu, 10 s with i915), and each value that is read counts as asking.
//! Whoever looks once a second keeps it awake for ever, and its power is on the bill of the run.

use std::ffi::{CStr, CString};
use std::time::Duration;

use super::sensor::Look;
use crate::parse::attribute;

/// How long falling asleep takes, with room to spare.
const MARGIN: Duration = Duration::from_secs(1);

/// When a card is left alone.
#[derive(Debug)]
pub(super) struct Rest {
    control: CString,
    delay: CString,
    until: Option<Duration>,
}

impl Rest {
    /// Of the device in this directory.
    pub(super) fn new(device: &str) -> Rest {
        let path = |file: &str| CString::new(format!("{device}/power/{file}")).unwrap_or_default();
        Rest { control: path("control"), delay: path("autosuspend_delay_ms"), until: None }
    }

    /// Whether it is to be left alone at this moment.
    pub(super) fn is_on(&self, at: Duration) -> bool {
        self.until.is_some_and(|until| at < until)
    }

    /// It sleeps, or somebody uses it.
    pub(super) fn end(&mut self) {
        self.until = None;
    }

    /// Nobody uses it: from now on it is left alone for as long as it needs to fall asleep, if it
    /// may.
    pub(super) fn begin(&mut self, at: Duration, look: &mut Look) {
        let mut read = |path: &CStr| look.sys.read(path, look.buffer).ok().map(<[u8]>::to_vec);
        let may = read(&self.control).is_some_and(|control| control == b"auto\n");
        // One that is below zero forbids it, and where there is none it is not by time.
        let delay = read(&self.delay).filter(|_| may);
        let delay = delay.and_then(|delay| attribute::number(&delay).ok());
        self.until = delay.map(|milliseconds| at + Duration::from_millis(milliseconds) + MARGIN);
    }
}
