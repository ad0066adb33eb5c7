//! Processes of several pid namespaces under one numbering.
//!
//! Linux gives out no pid of 2²² or above (`PID_MAX_LIMIT`), so each namespace has a range of its
//! own in a `u32`, and the first keeps its pids as they are. Only this module knows of it: a pid is
//! shown to people through [`shown`].

use super::ProcessId;

/// Pids that a namespace can have.
const RANGE: u32 = 1 << 22;

/// How many namespaces fit.
pub const MOST_NAMESPACES: usize = (u32::MAX / RANGE) as usize + 1;

/// The number of a pid of one of several namespaces, the first of which is 0.
pub fn numbered(pid: u32, namespace: usize) -> u32 {
    let before = u32::try_from(namespace).unwrap_or(u32::MAX).saturating_mul(RANGE);
    before.saturating_add(pid)
}

/// The namespace that a number is of, and the pid there.
pub fn original(number: u32) -> (usize, u32) {
    ((number / RANGE) as usize, number % RANGE)
}

/// A pid for people: `4711`, or `2:4711` in the second namespace.
pub fn shown(number: u32) -> String {
    match original(number) {
        (0, pid) => pid.to_string(),
        (namespace, pid) => format!("{}:{pid}", namespace + 1),
    }
}

impl ProcessId {
    /// The same process under one numbering for several namespaces, and with its start on
    /// another clock, which is so many clock ticks ahead.
    pub(crate) fn moved(self, namespace: usize, ahead: i64) -> ProcessId {
        let started = self.started.saturating_add_signed(ahead);
        ProcessId { pid: numbered(self.pid, namespace), started }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_of_different_namespaces_never_collide_and_can_be_recovered() {
        let largest = RANGE - 1;
        for namespace in [0, 1, MOST_NAMESPACES - 1] {
            for pid in [0, 1, 4711, largest] {
                assert_eq!(original(numbered(pid, namespace)), (namespace, pid));
            }
        }
        assert_eq!([shown(4711), shown(numbered(4711, 1))], ["4711", "2:4711"]);
    }
}
