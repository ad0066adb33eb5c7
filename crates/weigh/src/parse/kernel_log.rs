//! Out-of-memory kills in the kernel log: a record of `/dev/kmsg`
//! (Documentation/ABI/testing/dev-kmsg), since Linux 5.0.
//!
//! `6,2701,51284361916,-;oom-kill:constraint=…,task_memcg=/job,task=solver,pid=30293,uid=0`
//!
//! What surprises: a task's name may hold commas and equals signs; its pid is that of the
//! outermost namespace.

/// A process killed by the OOM killer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OomVictim<'a> {
    /// Its pid.
    pub pid: u32,
    /// Its name in the kernel.
    pub name: &'a [u8],
    /// Its cgroup.
    pub group: &'a [u8],
}

/// Reads a record of the log; `None` for other messages.
pub fn oom_victim(record: &[u8]) -> Option<OomVictim<'_>> {
    let (_, message) = split(record, b";")?;
    let facts = message.strip_prefix(b"oom-kill:")?;
    let (_, facts) = split(facts, b"task_memcg=")?;
    let (group, facts) = split(facts, b",task=")?;
    let at = facts.windows(5).rposition(|window| window == b",pid=")?;
    let pid = facts[at + 5..].split(|byte| !byte.is_ascii_digit()).next()?;
    let pid = std::str::from_utf8(pid).ok()?.parse().ok()?;
    Some(OomVictim { pid, name: &facts[..at], group })
}

fn split<'a>(bytes: &'a [u8], by: &[u8]) -> Option<(&'a [u8], &'a [u8])> {
    let at = bytes.windows(by.len()).position(|window| window == by)?;
    Some((&bytes[..at], &bytes[at + by.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &[u8] = b"6,2701,51284361916,-;oom-kill:constraint=CONSTRAINT_MEMCG,\
nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/job,task_memcg=/job/weigh-7,task=a,pid=1,b,\
pid=30293,uid=0\n";

    #[test]
    fn victim_is_found_whatever_its_name() {
        let expected = OomVictim { pid: 30293, name: b"a,pid=1,b", group: b"/job/weigh-7" };
        assert_eq!(oom_victim(RECORD), Some(expected));
        assert_eq!(oom_victim(b"6,2701,51284361916,-;eth0: link up\n"), None);
    }

    #[test]
    fn truncated_record_is_none_or_still_names_the_victim() {
        for length in 0..RECORD.len() {
            let _ = oom_victim(&RECORD[..length]);
        }
        assert_eq!(oom_victim(&RECORD[..80]), None);
    }
}
