//! What the program `weigh` needs of its own process: state that it inherited, its allocator, its
//! terminal and its variables.
//!
//! A program with a [`Session`](crate::Session) needs nothing of this. It is for one that, like
//! `weigh run`, takes over its process for the command that it measures.

use std::ffi::OsStr;
use std::path::Path;
use std::time::Duration;

use crate::host::{Host, HostClock, child, clock, facts};

pub use crate::host::child::Inherited;
pub use crate::host::environment::{running_recording, variable};
pub use crate::host::limits::with_enough_stack;
pub use crate::host::out_of_memory::Allocator;
pub use crate::host::own::{host_name, unprivileged_user, user};
pub use crate::host::terminal::Terminal;

/// Checks that a command can be found and executed, as exec would search it.
pub fn check_command(program: &OsStr) -> Result<(), child::Error> {
    child::find(program).map(drop)
}

/// The boot id of the machine; `None` where it cannot be read.
pub fn boot_id() -> Option<String> {
    let host = Host::at(Path::new("/")).ok()?;
    facts::boot(&host)
}

/// The time on a clock that is never set.
pub fn monotonic() -> Duration {
    HostClock::Monotonic.now()
}

/// The time since 1970 by the wall clock.
pub fn now() -> Duration {
    clock::wall()
}
