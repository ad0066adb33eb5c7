//! Usage of a cgroup, from the files in its directory.
//!
//! cgroup v2 (Documentation/admin-guide/cgroup-v2.rst): `cpu.stat`, `memory.stat`, `memory.events`,
//! `io.stat`. cgroup v1: `cpu.stat`, `cpuacct.stat`, `memory.stat`, `memory.oom_control`,
//! `blkio.throttle.io_service_bytes` and `io_serviced`. Readable by every user who may read the
//! directory.
//!
//! What surprises: `io.stat` may name a device without counters, and some kernels put the next
//! device on the same line. cgroup v1 has one key for a cgroup alone (`rss`) and one that includes
//! its descendants (`total_rss`); only the latter is the usage of the cgroup.

use super::MalformedFile;
use super::fields::FieldCursor;

/// CPU time of a cgroup, from `cpu.stat`; times in microseconds (cgroup v2), and `throttled_time`
/// of cgroup v1 in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// All CPU time, in microseconds.
    pub usage: Option<u64>,
    /// In user mode, in microseconds.
    pub user: Option<u64>,
    /// In the kernel, in microseconds.
    pub system: Option<u64>,
    /// Quota periods in which the cgroup was runnable.
    pub periods: Option<u64>,
    /// Those in which it was throttled.
    pub throttled_periods: Option<u64>,
    /// How long it was throttled, in nanoseconds.
    pub throttled_nanoseconds: Option<u64>,
}

/// Parses `cpu.stat` of either version.
pub fn cpu_stat(bytes: &[u8]) -> Result<CpuStat, MalformedFile> {
    let mut stat = CpuStat::default();
    each_keyed(bytes, |key, value| match key {
        b"usage_usec" => stat.usage = Some(value),
        b"user_usec" => stat.user = Some(value),
        b"system_usec" => stat.system = Some(value),
        b"nr_periods" => stat.periods = Some(value),
        b"nr_throttled" => stat.throttled_periods = Some(value),
        b"throttled_usec" => stat.throttled_nanoseconds = value.checked_mul(1000),
        b"throttled_time" => stat.throttled_nanoseconds = Some(value),
        _ => {}
    })?;
    Ok(stat)
}

/// User and system time in clock ticks, from `cpuacct.stat` of cgroup v1.
pub fn cpuacct_stat(bytes: &[u8]) -> Result<(u64, u64), MalformedFile> {
    let (mut user, mut system) = (None, None);
    each_keyed(bytes, |key, value| match key {
        b"user" => user = Some(value),
        b"system" => system = Some(value),
        _ => {}
    })?;
    Ok((user.ok_or(MalformedFile("user"))?, system.ok_or(MalformedFile("system"))?))
}

/// Memory of a cgroup by kind, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStat {
    /// Anonymous memory: heap, stacks.
    pub anonymous: Option<u64>,
    /// Page cache, tmpfs included.
    pub file: Option<u64>,
    /// Kernel memory; before Linux 5.18 only its parts are listed.
    pub kernel: Option<u64>,
    /// Swap; cgroup v2 has a file of its own for it.
    pub swap: Option<u64>,
}

/// Parses `memory.stat` of cgroup v2.
pub fn memory_stat(bytes: &[u8]) -> Result<MemoryStat, MalformedFile> {
    let mut stat = MemoryStat::default();
    each_keyed(bytes, |key, value| match key {
        b"anon" => stat.anonymous = Some(value),
        b"file" => stat.file = Some(value),
        b"kernel" => stat.kernel = Some(value),
        _ => {}
    })?;
    Ok(stat)
}

/// Parses `memory.stat` of cgroup v1: the values that include descendants.
pub fn memory_stat_v1(bytes: &[u8]) -> Result<MemoryStat, MalformedFile> {
    let mut stat = MemoryStat::default();
    each_keyed(bytes, |key, value| match key {
        b"total_rss" => stat.anonymous = Some(value),
        b"total_cache" => stat.file = Some(value),
        b"total_swap" => stat.swap = Some(value),
        _ => {}
    })?;
    Ok(stat)
}

/// Out-of-memory kills, from `memory.events` or `memory.oom_control`; `None` before Linux 4.13.
pub fn oom_kills(bytes: &[u8]) -> Result<Option<u64>, MalformedFile> {
    let mut kills = None;
    each_keyed(bytes, |key, value| {
        if key == b"oom_kill" {
            kills = Some(value);
        }
    })?;
    Ok(kills)
}

/// I/O of a cgroup, summed over devices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoStat {
    /// Bytes read.
    pub read: u64,
    /// Bytes written.
    pub written: u64,
    /// Read operations.
    pub reads: u64,
    /// Write operations.
    pub writes: u64,
}

/// Parses `io.stat`, summed over the devices.
pub fn io_stat(bytes: &[u8]) -> Result<IoStat, MalformedFile> {
    let mut stat = IoStat::default();
    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        // The newline ends the last item, and an item without `=` is a device.
        for word in line.split(|byte| matches!(byte, b' ' | b'\n')) {
            let Some(sign) = word.iter().position(|&byte| byte == b'=') else { continue };
            let count = match &word[..sign] {
                b"rbytes" => &mut stat.read,
                b"wbytes" => &mut stat.written,
                b"rios" => &mut stat.reads,
                b"wios" => &mut stat.writes,
                _ => continue,
            };
            add(count, all_digits(&word[sign + 1..], "count of io.stat")?)?;
        }
    }
    Ok(stat)
}

/// What was read and what was written, from `blkio.throttle.io_service_bytes` or `io_serviced` of
/// cgroup v1, summed over the devices.
pub fn blkio(bytes: &[u8]) -> Result<(u64, u64), MalformedFile> {
    let (mut read, mut written) = (0, 0);
    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        let mut words = line.split(|byte| matches!(byte, b' ' | b'\n'));
        let (_device, operation, count) = (words.next(), words.next(), words.next());
        let total = match operation {
            Some(b"Read") => &mut read,
            Some(b"Write") => &mut written,
            _ => continue,
        };
        add(total, all_digits(count.unwrap_or_default(), "count of blkio")?)?;
    }
    Ok((read, written))
}

/// The only number of a file like `memory.current`.
pub fn number(bytes: &[u8]) -> Result<u64, MalformedFile> {
    super::fields::only_number(bytes, "number")
}

/// The pids in `cgroup.procs`. Ends at an incomplete line.
pub fn processes(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let mut lines = FieldCursor::new(bytes);
    std::iter::from_fn(move || {
        let pid = number(lines.line().ok()??).ok()?;
        u32::try_from(pid).ok()
    })
    // A process outside our pid namespace has pid 0.
    .filter(|pid| *pid != 0)
}

fn each_keyed(bytes: &[u8], mut each: impl FnMut(&[u8], u64)) -> Result<(), MalformedFile> {
    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        let space = line.iter().position(|&byte| byte == b' ').ok_or(MalformedFile("key"))?;
        each(&line[..space], number(&line[space..])?);
    }
    Ok(())
}

fn all_digits(word: &[u8], field: &'static str) -> Result<u64, MalformedFile> {
    let mut rest = FieldCursor::new(word);
    let count = rest.digits(field)?;
    if rest.byte(field).is_ok() { Err(MalformedFile(field)) } else { Ok(count) }
}

fn add(total: &mut u64, count: u64) -> Result<(), MalformedFile> {
    *total = total.checked_add(count).ok_or(MalformedFile("sum over devices"))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{cut_at_every_byte, mangled};
    use super::*;

    const CPU: &[u8] = b"usage_usec 2500000\nuser_usec 2000000\nsystem_usec 500000\n\
        nice_usec 0\nnr_periods 40\nnr_throttled 7\nthrottled_usec 350000\nnr_bursts 0\n\
        burst_usec 0\n";
    const MEMORY: &[u8] = b"anon 104857600\nfile 20971520\nkernel 4194304\nkernel_stack 65536\n\
        shmem 0\nfile_mapped 4096\n";
    const MEMORY_V1: &[u8] =
        b"cache 4096\nrss 8192\nhierarchical_memory_limit 9223372036854771712\n\
        total_cache 20971520\ntotal_rss 104857600\ntotal_swap 4096\n";
    const IO: &[u8] = b"8:16 rbytes=1459200 wbytes=314773504 rios=192 wios=353 dbytes=0 dios=0\n\
        8:0 rbytes=90430464 wbytes=299008000 rios=8950 wios=1252 dbytes=50331648 dios=3021\n";
    const BLKIO: &[u8] = b"8:0 Read 90430464\n8:0 Write 299008000\n8:0 Sync 389438464\n\
        8:0 Async 0\n8:0 Discard 0\n8:0 Total 389438464\n8:16 Read 6\nTotal 389438470\n";

    #[test]
    fn cpu_time_has_the_same_units_in_cgroup_v1_and_v2() {
        let stat = cpu_stat(CPU).unwrap();
        assert_eq!((stat.usage, stat.user), (Some(2_500_000), Some(2_000_000)));
        assert_eq!((stat.periods, stat.throttled_periods), (Some(40), Some(7)));
        assert_eq!(stat.throttled_nanoseconds, Some(350_000_000));
        let first = cpu_stat(b"nr_periods 40\nnr_throttled 7\nthrottled_time 350000000\n").unwrap();
        assert_eq!(first.throttled_nanoseconds, Some(350_000_000));
        assert_eq!(first.usage, None, "a group of version 1 has it elsewhere");
        assert_eq!(cpuacct_stat(b"user 200\nsystem 50\n"), Ok((200, 50)));
    }

    #[test]
    fn memory_includes_descendant_cgroups() {
        let second = memory_stat(MEMORY).unwrap();
        let first = memory_stat_v1(MEMORY_V1).unwrap();
        assert_eq!((second.anonymous, second.file), (Some(100 << 20), Some(20 << 20)));
        assert_eq!((first.anonymous, first.file), (Some(100 << 20), Some(20 << 20)));
        assert_eq!((second.kernel, first.kernel), (Some(4 << 20), None));
        assert_eq!((second.swap, first.swap), (None, Some(4096)));
    }

    #[test]
    fn io_is_summed_over_devices() {
        let sum = IoStat { read: 91_889_664, written: 613_781_504, reads: 9142, writes: 1605 };
        assert_eq!(io_stat(IO), Ok(sum));
        assert_eq!(io_stat(b""), Ok(IoStat::default()));
        let odd = b"253:1 253:0 rbytes=5 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n8:0 \n";
        assert_eq!(io_stat(odd).unwrap().read, 5);
        assert_eq!(blkio(BLKIO), Ok((90_430_470, 299_008_000)));
        assert_eq!(blkio(b"Total 0\n"), Ok((0, 0)));
    }

    #[test]
    fn oom_kills_are_read_in_cgroup_v1_and_v2() {
        let events = b"low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(oom_kills(events), Ok(Some(2)));
        assert_eq!(oom_kills(b"oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), Ok(Some(1)));
        assert_eq!(oom_kills(b"oom_kill_disable 0\nunder_oom 0\n"), Ok(None));
    }

    #[test]
    fn foreign_and_truncated_pids_are_left_out() {
        assert_eq!(processes(b"4711\n0\n12\n").collect::<Vec<_>>(), [4711, 12]);
        assert_eq!(processes(b"4711\n12").collect::<Vec<_>>(), [4711]);
    }

    #[test]
    fn truncated_file_never_changes_a_number() {
        let less = |part: Option<u64>, whole: Option<u64>| part.is_none() || part == whole;
        cut_at_every_byte(CPU, cpu_stat, |part, whole| {
            less(part.usage, whole.usage)
                && less(part.throttled_nanoseconds, whole.throttled_nanoseconds)
        });
        for parse in [memory_stat, memory_stat_v1] {
            cut_at_every_byte(MEMORY, parse, |part, whole| {
                less(part.anonymous, whole.anonymous) && less(part.file, whole.file)
            });
        }
        cut_at_every_byte(IO, io_stat, |part, whole| part.read <= whole.read);
        cut_at_every_byte(BLKIO, blkio, |part, whole| part.0 <= whole.0);
        cut_at_every_byte(b"1073741824\n", number, |_, _| false);
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(cpu_stat(b"usage_usec many\n").is_err());
        assert!(cpu_stat(b"usage_usec\n").is_err());
        assert!(io_stat(b"8:0 rbytes=12x wbytes=0\n").is_err());
        assert!(io_stat(b"8:0 rbytes=18446744073709551615\n8:1 rbytes=1\n").is_err());
        assert!(blkio(b"8:0 Read\n").is_err());
        assert!(number(b"max\n").is_err());
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in mangled(IO), stat in mangled(CPU)) {
            let _ = (io_stat(&bytes), blkio(&bytes), cpu_stat(&stat), memory_stat(&stat));
            let _ = (memory_stat_v1(&stat), cpuacct_stat(&stat), oom_kills(&stat), number(&stat));
            processes(&bytes).for_each(drop);
        }
    }
}
