//! Making room in version 2: a group that processes are in cannot give its children
//! controllers (cgroup-v2.rst, "No Internal Process Constraint"). When weigh is alone in its
//! group, as under `systemd-run --scope`, it steps aside into a child of it, and steps back
//! when all is over.

use std::ffi::CString;

use super::{PROCESSES, controls, lists};
use crate::host::{Dir, Error};
use crate::parse::group_stat;

const ENABLED: &std::ffi::CStr = c"cgroup.subtree_control";

/// The place beside the command's group in which weigh waits.
#[derive(Debug)]
pub(super) struct LeafCgroup {
    above: Dir,
    name: CString,
    pub(super) dir: Dir,
}

impl LeafCgroup {
    /// Steps aside, if that is what it takes to have memory counted below this group.
    pub(super) fn move_to_leaf(above: &Dir) -> Result<Option<LeafCgroup>, Error> {
        let own = std::process::id();
        let mut buffer = Vec::new();
        let inside = above.read(PROCESSES, &mut buffer).unwrap_or_default();
        let is_alone = group_stat::processes(inside).eq([own]);
        if !is_alone
            || controls(above, b"memory")
            || !lists(above, c"cgroup.controllers", b"memory")
        {
            return Ok(None);
        }
        let name = CString::new(format!("weigh-{own}-aside")).unwrap_or_default();
        above.create_dir(&name)?;
        let dir = above.sub(&name.to_string_lossy()).inspect_err(|_| {
            let _ = above.remove_dir(&name);
        })?;
        let aside = LeafCgroup { above: above.clone(), name, dir };
        // What fails from here on is undone with `aside`.
        aside.dir.write(PROCESSES, &own.to_string())?;
        aside.above.write(ENABLED, "+memory")?;
        // Not everywhere; the peak of memory is worth it without.
        let _ = aside.above.write(ENABLED, "+io");
        Ok(Some(aside))
    }

    /// Brings everybody back who is here, and leaves the group as it was.
    fn back(&self) -> Result<(), Error> {
        for controller in ["-memory", "-io"] {
            // One that was not enabled need not be disabled.
            let _ = self.above.write(ENABLED, controller);
        }
        let mut buffer = Vec::new();
        let here = self.dir.read(PROCESSES, &mut buffer).unwrap_or_default();
        for pid in group_stat::processes(here) {
            // One that has ended in the meantime needs no place.
            let _ = self.above.write(PROCESSES, &pid.to_string());
        }
        self.above.remove_dir(&self.name)
    }
}

impl Drop for LeafCgroup {
    fn drop(&mut self) {
        // Whatever is left is empty, or in the way of nobody.
        let _ = self.back();
    }
}
