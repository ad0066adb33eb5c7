//! Who the driver's pids are, when it tells of them for the first time.
//!
//! A tick finds out, too. But ticks may be rare, and who has ended by then is not in `/proc` any
//! more. So newcomers are looked for where the driver is asked: one small file for each of them.

use std::collections::HashMap;

use super::super::pids::Pids;
use super::super::reading::{UserRead, Who};
use crate::host::Dir;
use crate::model::ProcessId;

/// Those who were on the cards at the last look.
pub(super) struct MetUsers {
    proc: Dir,
    /// Whose numbers the driver's are, when it has told of one.
    pids: Option<Pids>,
    /// While a pid is listed, it is the same process.
    met: HashMap<u32, ProcessId>,
    buffer: Vec<u8>,
}

impl MetUsers {
    pub(super) fn new(proc: Dir) -> MetUsers {
        MetUsers { proc, pids: None, met: HashMap::new(), buffer: Vec::new() }
    }

    /// Says who they are.
    pub(super) fn name(&mut self, users: &mut [UserRead]) {
        let before = std::mem::take(&mut self.met);
        for user in users {
            let Who::Numbered(pid, who) = &mut user.who else { continue };
            let known = self.met.get(pid).or_else(|| before.get(pid)).copied();
            *who = known.or_else(|| {
                let pids = self.pids.get_or_insert_with(|| Pids::of(&self.proc));
                pids.process(&self.proc, *pid, &mut self.buffer)
            });
            who.map(|id| self.met.insert(*pid, id));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::metrics::GpuShare;
    use crate::host::fake::FakeHost;
    use crate::model::Name;

    #[test]
    fn who_was_met_is_known_for_as_long_as_the_driver_tells_of_it() {
        let stat = |started: u64| {
            format!("7 (python) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 {started} 0 0 0\n")
        };
        let fake = FakeHost::new()
            .proc("7/stat", &stat(4711))
            .proc_link("self", &std::process::id().to_string())
            .proc_link(&format!("{}/ns/pid", std::process::id()), "pid:[4026531836]");
        let mut met = MetUsers::new(fake.host().proc.clone());
        let mut look = |pids: &[u32]| -> Vec<Option<u64>> {
            let user = |pid: &u32| UserRead {
                gpu: Name::new(b"nvidia0"),
                who: Who::Numbered(*pid, None),
                share: GpuShare::default(),
            };
            let mut users: Vec<_> = pids.iter().map(user).collect();
            met.name(&mut users);
            let started = |user: &UserRead| match user.who {
                Who::Numbered(_, id) => id.map(|id| id.started),
                Who::Known(_) => panic!("{user:?}"),
            };
            users.iter().map(started).collect()
        };
        assert_eq!(look(&[7, 8]), [Some(4711), None]);
        // Another has its pid, and the driver has not yet told that it is gone.
        fake.set_proc("7/stat", &stat(5000));
        assert_eq!(look(&[7]), [Some(4711)]);
        assert_eq!(look(&[]), []);
        assert_eq!(look(&[7]), [Some(5000)]);
    }
}
