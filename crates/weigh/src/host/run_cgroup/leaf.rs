//! A leaf cgroup for weigh itself. In cgroup v2 a cgroup with processes cannot enable controllers
//! for its children (cgroup-v2.rst, "No Internal Process Constraint"). When weigh is alone in its
//! cgroup, as under `systemd-run --scope`, it moves to a child of it, and back at the end.

use std::ffi::CString;

use super::{PROCESSES, controls, lists};
use crate::host::{Dir, Error};
use crate::parse::group_stat;

const ENABLED: &std::ffi::CStr = c"cgroup.subtree_control";

/// The cgroup of weigh, beside that of the command.
#[derive(Debug)]
pub(super) struct LeafCgroup {
    above: Dir,
    name: CString,
    pub(super) dir: Dir,
}

impl LeafCgroup {
    /// Moves weigh to a leaf, if that is needed to have memory counted below this cgroup.
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
        let leaf = LeafCgroup { above: above.clone(), name, dir };
        // What fails from here on is undone when `leaf` is dropped.
        leaf.dir.write(PROCESSES, &own.to_string())?;
        leaf.above.write(ENABLED, "+memory")?;
        // Not available everywhere, and optional.
        let _ = leaf.above.write(ENABLED, "+io");
        Ok(Some(leaf))
    }

    /// Moves all processes back, and restores the parent cgroup.
    fn move_back(&self) -> Result<(), Error> {
        for controller in ["-memory", "-io"] {
            // One that was not enabled need not be disabled.
            let _ = self.above.write(ENABLED, controller);
        }
        let mut buffer = Vec::new();
        let here = self.dir.read(PROCESSES, &mut buffer).unwrap_or_default();
        for pid in group_stat::processes(here) {
            // It may have exited in the meantime.
            let _ = self.above.write(PROCESSES, &pid.to_string());
        }
        self.above.remove_dir(&self.name)
    }
}

impl Drop for LeafCgroup {
    fn drop(&mut self) {
        // A leaf that cannot be removed is empty.
        let _ = self.move_back();
    }
}
