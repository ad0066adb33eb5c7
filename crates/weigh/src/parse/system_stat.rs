//! CPU time of the machine since boot: `/proc/stat`.
//!
//! One line per CPU and one for all together, then counters (proc_stat(5)), readable by every user.
//! Expensive on large machines: the kernel sums every interrupt of every CPU for the `intr` line,
//! which is not even read here.
//!
//! What surprises: time in guests is already inside `user` and `nice`, so summing the columns
//! counts it twice. CPUs that are offline have no line, so numbers have gaps. `idle` and `iowait`
//! can go backwards by a tick. Inside a container it is still the whole machine, unless lxcfs is
//! mounted over the file.

use super::MalformedFile;
use super::fields::FieldCursor;

/// CPU time of one CPU, or of all together, since boot, in clock ticks.
///
/// Columns were added over time: `None` is one that this kernel does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuTicks {
    /// Programs, guests (virtual machines) included.
    pub user: u64,
    /// Programs of lowered priority, guests of lowered priority included.
    pub nice: u64,
    /// The kernel on behalf of programs.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle while a program waited for storage; since 2.5.41, and not reliable.
    pub iowait: Option<u64>,
    /// Interrupts; since 2.6.0.
    pub irq: Option<u64>,
    /// Soft interrupts; since 2.6.0.
    pub softirq: Option<u64>,
    /// Steal: runnable, but the hypervisor ran something else; since 2.6.11.
    pub steal: Option<u64>,
    /// Guests; already counted in `user`; since 2.6.24.
    pub guest: Option<u64>,
    /// Guests of lowered priority; already counted in `nice`; since 2.6.33.
    pub guest_nice: Option<u64>,
}

/// Counters of the whole machine since boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemStat {
    /// All CPUs together.
    pub total: CpuTicks,
    /// Processes and threads started since boot (`processes`).
    pub forks: Option<u64>,
    /// Context switches of all CPUs (`ctxt`).
    pub context_switches: Option<u64>,
    /// Boot time in seconds since 1970 (`btime`); changes when the clock is set.
    pub boot_time: Option<u64>,
}

/// Reads the bytes of `/proc/stat`: all CPUs together, and the counters.
pub fn parse(bytes: &[u8]) -> Result<SystemStat, MalformedFile> {
    let mut lines = FieldCursor::new(bytes);
    let first = lines.line()?.ok_or(MalformedFile("cpu"))?;
    let total = ticks(FieldCursor::new(first.strip_prefix(b"cpu ").ok_or(MalformedFile("cpu"))?))?;
    let mut stat = SystemStat { total, forks: None, context_switches: None, boot_time: None };
    while let Some(line) = lines.line()? {
        if let Some(value) = line.strip_prefix(b"ctxt ") {
            stat.context_switches = Some(FieldCursor::new(value).number("ctxt")?);
        } else if let Some(value) = line.strip_prefix(b"btime ") {
            stat.boot_time = Some(FieldCursor::new(value).number("btime")?);
        } else if let Some(value) = line.strip_prefix(b"processes ") {
            stat.forks = Some(FieldCursor::new(value).number("processes")?);
            // The last of the three; only the long softirq line follows.
            break;
        }
    }
    Ok(stat)
}

/// The CPUs that are online, by number, from the bytes of `/proc/stat`.
///
/// Ends at the first line that is not a whole line of one CPU; [`parse`] of the same bytes detects
/// a truncated file.
pub fn cpus(bytes: &[u8]) -> impl Iterator<Item = (u32, CpuTicks)> {
    let mut lines = FieldCursor::new(bytes);
    let _all_together = lines.line();
    std::iter::from_fn(move || {
        let line = lines.line().ok()??;
        let mut columns = FieldCursor::new(line.strip_prefix(b"cpu")?);
        let number = columns.number32("cpu number").ok()?;
        Some((number, ticks(columns).ok()?))
    })
}

fn ticks(mut columns: FieldCursor<'_>) -> Result<CpuTicks, MalformedFile> {
    Ok(CpuTicks {
        user: columns.number("user")?,
        nice: columns.number("nice")?,
        system: columns.number("system")?,
        idle: columns.number("idle")?,
        iowait: columns.number_if_any("iowait")?,
        irq: columns.number_if_any("irq")?,
        softirq: columns.number_if_any("softirq")?,
        steal: columns.number_if_any("steal")?,
        guest: columns.number_if_any("guest")?,
        guest_nice: columns.number_if_any("guest_nice")?,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::tests::{cut_at_every_byte, lost_or_same, mangled, of_this_kernel};
    use super::*;

    const TWO_CPUS: &[u8] = b"cpu  32013 7 3850 171999 1341 2 31 266 500 3\n\
        cpu0 15839 4 1815 86762 169 1 7 139 300 1\ncpu2 16173 3 2034 85237 1171 1 24 127 200 2\n\
        intr 199142 0 0 0 9 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nctxt 242181\nbtime 1794776949\n\
        processes 5788\nprocs_running 3\nprocs_blocked 0\nsoftirq 97433 0 20142 4 1853\n";

    #[test]
    fn counters_after_the_interrupts_are_found() {
        let stat = parse(TWO_CPUS).unwrap();
        assert_eq!(stat.forks, Some(5788));
        assert_eq!(stat.context_switches, Some(242_181));
        assert_eq!(stat.boot_time, Some(1_794_776_949));
        assert_eq!((stat.total.user, stat.total.guest_nice), (32013, Some(3)));
    }

    #[test]
    fn an_offline_cpu_leaves_a_gap() {
        let numbers: Vec<_> = cpus(TWO_CPUS).map(|(cpu, ticks)| (cpu, ticks.user)).collect();
        assert_eq!(numbers, [(0, 15839), (2, 16173)]);
    }

    #[test]
    fn old_kernels_have_fewer_columns() {
        let stat = parse(b"cpu  1 2 3 4\n").unwrap();
        assert_eq!((stat.total.iowait, stat.total.steal, stat.total.guest), (None, None, None));
        assert_eq!(stat.forks, None);
        assert_eq!(parse(b"cpu  1 2 3\n"), Err(MalformedFile("idle")));
    }

    #[test]
    fn truncated_file_loses_counters_but_changes_none() {
        cut_at_every_byte(TWO_CPUS, parse, |part, whole| {
            part.total == whole.total
                && lost_or_same(&part.forks, &whole.forks)
                && lost_or_same(&part.context_switches, &whole.context_switches)
                && lost_or_same(&part.boot_time, &whole.boot_time)
        });
        let listed = |bytes| Ok(cpus(bytes).collect::<Vec<_>>());
        cut_at_every_byte(TWO_CPUS, listed, |part, whole| whole.starts_with(part));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in mangled(TWO_CPUS)) {
            let _ = parse(&bytes);
            cpus(&bytes).for_each(drop);
        }
    }

    #[test]
    fn procfs_crate_agrees() {
        use procfs::{FromReadSI, KernelStats, current_system_info};
        let bytes = of_this_kernel("/proc/stat");
        let ours = parse(&bytes).unwrap();
        let theirs = KernelStats::from_read(&bytes[..], current_system_info()).unwrap();
        assert_eq!(ours.forks, Some(theirs.processes));
        assert_eq!(ours.context_switches, Some(theirs.ctxt));
        assert_eq!(ours.boot_time, Some(theirs.btime));
        let ours: Vec<_> =
            std::iter::once(ours.total).chain(cpus(&bytes).map(|(_, ticks)| ticks)).collect();
        let theirs: Vec<_> = std::iter::once(&theirs.total)
            .chain(&theirs.cpu_time)
            .map(|cpu| CpuTicks {
                user: cpu.user,
                nice: cpu.nice,
                system: cpu.system,
                idle: cpu.idle,
                iowait: cpu.iowait,
                irq: cpu.irq,
                softirq: cpu.softirq,
                steal: cpu.steal,
                guest: cpu.guest,
                guest_nice: cpu.guest_nice,
            })
            .collect();
        assert_eq!(ours, theirs);
    }
}
