//! What a control group has used, from the files in its directory.
//!
//! Version 2 (Documentation/admin-guide/cgroup-v2.rst): `cpu.stat`, `memory.stat`,
//! `memory.events`, `io.stat`. Version 1: `cpu.stat`, `cpuacct.stat`, `memory.stat`,
//! `memory.oom_control`, `blkio.throttle.io_service_bytes` and `io_serviced`. Readable by
//! everybody who may look into the directory.
//!
//! What surprises: `io.stat` may name a device without any counts behind it, and some kernels
//! put the next device on the same line. Version 1 has the same word for a group alone
//! (`rss`) and with the groups below it (`total_rss`); only the latter is what the group used.

use super::MalformedFile;
use super::fields::FieldCursor;

/// CPU time of a group, from `cpu.stat`; times in microseconds (version 2), and
/// `throttled_time` of version 1 in nanoseconds as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuStat {
    /// All CPU time, in microseconds.
    pub usage: Option<u64>,
    /// In user mode, in microseconds.
    pub user: Option<u64>,
    /// In the kernel, in microseconds.
    pub system: Option<u64>,
    /// Periods of the quota in which the group wanted to run.
    pub periods: Option<u64>,
    /// Those in which it was held back.
    pub throttled_periods: Option<u64>,
    /// How long it was held back, in nanoseconds.
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

/// User and system time in clock ticks, from `cpuacct.stat` of version 1.
pub fn cpuacct_stat(bytes: &[u8]) -> Result<(u64, u64), MalformedFile> {
    let (mut user, mut system) = (None, None);
    each_keyed(bytes, |key, value| match key {
        b"user" => user = Some(value),
        b"system" => system = Some(value),
        _ => {}
    })?;
    Ok((user.ok_or(MalformedFile("user"))?, system.ok_or(MalformedFile("system"))?))
}

/// What the memory of a group is, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStat {
    /// Of programs: heap, stacks.
    pub anonymous: Option<u64>,
    /// Contents of files, tmpfs included.
    pub file: Option<u64>,
    /// The kernel's own for the group; a kernel before 5.18 says it in parts only.
    pub kernel: Option<u64>,
    /// Swapped out; version 2 has a file of its own for it.
    pub swap: Option<u64>,
}

/// Parses `memory.stat` of version 2.
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

/// Parses `memory.stat` of version 1: the group with those below it.
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

/// Processes that the kernel killed for want of memory, from `memory.events` or
/// `memory.oom_control`; `None` before Linux 4.13.
pub fn oom_kills(bytes: &[u8]) -> Result<Option<u64>, MalformedFile> {
    let mut kills = None;
    each_keyed(bytes, |key, value| {
        if key == b"oom_kill" {
            kills = Some(value);
        }
    })?;
    Ok(kills)
}

/// I/O of a group with all its devices.
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
        // The newline ends the last word, and a word without `=` is a device.
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

/// What was read and what was written, from `blkio.throttle.io_service_bytes` or
/// `io_serviced` of version 1, summed over the devices.
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

/// Each process of `cgroup.procs`. Ends at what is no number, as half a line is.
pub fn processes(bytes: &[u8]) -> impl Iterator<Item = u32> {
    let mut lines = FieldCursor::new(bytes);
    std::iter::from_fn(move || {
        let pid = number(lines.line().ok()??).ok()?;
        u32::try_from(pid).ok()
    })
    // A process outside our pid namespace is called 0.
    .filter(|pid| *pid != 0)
}

fn each_keyed(bytes: &[u8], mut see: impl FnMut(&[u8], u64)) -> Result<(), MalformedFile> {
    let mut lines = FieldCursor::new(bytes);
    while let Some(line) = lines.line()? {
        let space = line.iter().position(|&byte| byte == b' ').ok_or(MalformedFile("key"))?;
        see(&line[..space], number(&line[space..])?);
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
    fn cpu_time_and_throttling_have_the_same_units_in_both_versions() {
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
    fn memory_is_that_of_the_group_and_of_those_below_it() {
        let second = memory_stat(MEMORY).unwrap();
        let first = memory_stat_v1(MEMORY_V1).unwrap();
        assert_eq!((second.anonymous, second.file), (Some(100 << 20), Some(20 << 20)));
        assert_eq!((first.anonymous, first.file), (Some(100 << 20), Some(20 << 20)));
        assert_eq!((second.kernel, first.kernel), (Some(4 << 20), None));
        assert_eq!((second.swap, first.swap), (None, Some(4096)));
    }

    #[test]
    fn io_is_summed_over_devices_and_a_device_without_counts_has_none() {
        let sum = IoStat { read: 91_889_664, written: 613_781_504, reads: 9142, writes: 1605 };
        assert_eq!(io_stat(IO), Ok(sum));
        assert_eq!(io_stat(b""), Ok(IoStat::default()));
        let odd = b"253:1 253:0 rbytes=5 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n8:0 \n";
        assert_eq!(io_stat(odd).unwrap().read, 5);
        assert_eq!(blkio(BLKIO), Ok((90_430_470, 299_008_000)));
        assert_eq!(blkio(b"Total 0\n"), Ok((0, 0)));
    }

    #[test]
    fn oom_kills_are_found_in_both_versions() {
        let events = b"low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n";
        assert_eq!(oom_kills(events), Ok(Some(2)));
        assert_eq!(oom_kills(b"oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), Ok(Some(1)));
        assert_eq!(oom_kills(b"oom_kill_disable 0\nunder_oom 0\n"), Ok(None));
    }

    #[test]
    fn processes_of_other_pid_namespaces_and_half_a_pid_are_left_out() {
        assert_eq!(processes(b"4711\n0\n12\n").collect::<Vec<_>>(), [4711, 12]);
        assert_eq!(processes(b"4711\n12").collect::<Vec<_>>(), [4711]);
    }

    #[test]
    fn a_cut_file_gives_less_and_never_another_number() {
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
