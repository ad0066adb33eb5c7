//! Whom the kernel killed for want of memory, as it writes it into its log: a record of
//! `/dev/kmsg` (Documentation/ABI/testing/dev-kmsg), since Linux 5.0.
//!
//! `6,2701,51284361916,-;oom-kill:constraint=…,task_memcg=/job,task=solver,pid=30293,uid=0`
//!
//! What surprises: a task's name may hold commas and equals signs; its pid is that of the
//! outermost namespace.

/// Somebody who was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OomVictim<'a> {
    /// Its pid.
    pub pid: u32,
    /// What the kernel calls it.
    pub name: &'a [u8],
    /// The control group it was in.
    pub group: &'a [u8],
}

/// Reads a record of the log; most tell of something else.
pub fn killed(record: &[u8]) -> Option<OomVictim<'_>> {
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
    fn whoever_was_killed_is_named_whatever_it_is_called() {
        let expected = OomVictim { pid: 30293, name: b"a,pid=1,b", group: b"/job/weigh-7" };
        assert_eq!(killed(RECORD), Some(expected));
        assert_eq!(killed(b"6,2701,51284361916,-;eth0: link up\n"), None);
    }

    #[test]
    fn a_record_that_is_cut_is_none_or_names_somebody() {
        for length in 0..RECORD.len() {
            let _ = killed(&RECORD[..length]);
        }
        assert_eq!(killed(&RECORD[..80]), None);
    }
}
