//! Child subreapers: orphaned descendants are reparented to this process (prctl(2),
//! `PR_SET_CHILD_SUBREAPER`).
//!
//! The attribute is that of the whole process, and another program may have set it for itself: a
//! session has it only for as long as it needs it, and the last one restores what was before.

use std::io;
use std::sync::{Mutex, PoisonError};

/// Becomes a child subreaper for good.
pub fn become_subreaper() -> io::Result<()> {
    set(true)
}

fn set(is_subreaper: bool) -> io::Result<()> {
    // SAFETY: prctl with this option takes one number.
    let result = unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, libc::c_ulong::from(is_subreaper), 0, 0, 0)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether this process is a child subreaper.
fn get() -> io::Result<bool> {
    let mut is_subreaper: libc::c_int = 0;
    // SAFETY: prctl with this option writes one int, and the place is ours.
    let result =
        unsafe { libc::prctl(libc::PR_GET_CHILD_SUBREAPER, &raw mut is_subreaper, 0, 0, 0) };
    if result == 0 { Ok(is_subreaper != 0) } else { Err(io::Error::last_os_error()) }
}

/// How many hold it, and what was before the first.
struct Holders {
    count: usize,
    was_subreaper: bool,
}

static HOLDERS: Mutex<Holders> = Mutex::new(Holders { count: 0, was_subreaper: false });

/// While one of these exists, this process is a child subreaper.
#[derive(Debug)]
pub struct ChildSubreaper(());

impl ChildSubreaper {
    /// Becomes one until it is dropped.
    pub fn hold() -> io::Result<ChildSubreaper> {
        let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        if holders.count == 0 {
            holders.was_subreaper = get()?;
            set(true)?;
        }
        holders.count += 1;
        Ok(ChildSubreaper(()))
    }
}

impl Drop for ChildSubreaper {
    fn drop(&mut self) {
        let mut holders = HOLDERS.lock().unwrap_or_else(PoisonError::into_inner);
        holders.count -= 1;
        if holders.count == 0 {
            // It was set before, so it can be set again.
            let _ = set(holders.was_subreaper);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_holder_restores_what_was_before() {
        // The attribute is that of the test process; no other test of this crate sets it.
        assert!(!get().unwrap());
        let (one, other) = (ChildSubreaper::hold().unwrap(), ChildSubreaper::hold().unwrap());
        drop(one);
        assert!(get().unwrap());
        drop(other);
        assert!(!get().unwrap());
        set(true).unwrap();
        drop(ChildSubreaper::hold().unwrap());
        assert!(get().unwrap(), "the program's own");
        set(false).unwrap();
    }
}
