//! The `/proc` of the whole machine, in a container that has it mounted beside its own.
//!
//! Source: `/proc/self/mounts`, readable by every user. To monitor a machine from a container, its
//! `/proc` is usually mounted at `/host/proc`; it is found at any path. Pid 2 is `kthreadd` in the
//! machine's own pid namespace, and in no other.

use super::{Dir, own};
use crate::parse::mounts;

/// The machine's `/proc`, if it is mounted and is not the one of our pid namespace.
pub fn find(proc: &Dir) -> Option<Dir> {
    let mut buffer = Vec::new();
    let listed = proc.read(c"self/mounts", &mut buffer).ok()?;
    let places = mounts::of_type(listed, b"proc").ok()?;
    let mut opened = places.iter().filter_map(|place| Dir::open(place).ok());
    let is_machine_s = |dir: &Dir| {
        let mut buffer = Vec::new();
        dir.read(c"2/comm", &mut buffer).is_ok_and(|name| name == b"kthreadd\n")
    };
    opened.find(is_machine_s).filter(|found| !own::proc_is_our_pid_namespace(found))
}
