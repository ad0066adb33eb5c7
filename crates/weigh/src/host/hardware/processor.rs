//! The processors: model, count and frequency limits.
//!
//! Sources: `/proc/cpuinfo`, `/sys/devices/system/cpu` (Documentation/ABI/testing/
//! sysfs-devices-system-cpu), readable by every user. Virtual machines have no `cpufreq`, ARM has no
//! microcode.
//!
//! A machine may have hundreds of CPUs, so files are read once for each core or socket, not for
//! each CPU: the list of a core names its threads, the list of a socket its cores.

use super::microarchitecture;
use super::reader::{CPU, HardwareReader, kilohertz, text};
use crate::model::hardware::Processor;
use crate::parse::{MalformedFile, attribute, cpuinfo, cpulist};

impl Processor {
    pub(super) fn of(reader: &mut HardwareReader<'_>) -> Processor {
        let mut found = Processor::default();
        found.name(reader);
        found.count(reader);
        found.speeds(reader);
        found.smt_active =
            reader.required("cpu.smt_active", "sys/devices/system/cpu/smt/active", flag);
        found.smt_control = reader.optional("sys/devices/system/cpu/smt/control", text);
        found
    }

    /// Vendor, model and microarchitecture.
    fn name(&mut self, reader: &mut HardwareReader<'_>) {
        const FILE: &str = "proc/cpuinfo";
        let read = reader.read(FILE, |bytes| {
            let cpu = cpuinfo::parse(bytes)?;
            let owned = |text: Option<&str>| text.map(str::to_owned);
            let part = cpu.parts.first().copied();
            let maker =
                part.and_then(|(implementer, _)| microarchitecture::implementer(implementer));
            let core = part.and_then(|(maker, part)| microarchitecture::core_name(maker, part));
            self.vendor = owned(cpu.vendor.or(maker));
            self.model_name = owned(cpu.name.or(core));
            self.family = cpu.family;
            self.model = cpu.model.or(part.map(|(_, part)| part));
            let revision = cpu.revision.map(|(major, minor)| format!("r{major}p{minor}"));
            self.stepping = owned(cpu.stepping).or(revision);
            self.microcode = owned(cpu.microcode);
            self.bogomips = cpu.bogomips;
            Ok(microarchitecture::of(&cpu))
        });
        let reason = match &read {
            Ok(_) => format!("/{FILE} does not say"),
            Err(why) => why.clone(),
        };
        let design = read.and_then(|design| design);
        self.microarchitecture =
            reader.or_missing("cpu.microarchitecture", design).map(str::to_owned);
        for (key, is_missing) in [
            ("cpu.vendor", self.vendor.is_none()),
            ("cpu.model_name", self.model_name.is_none()),
            ("cpu.family", self.family.is_none()),
            ("cpu.model", self.model.is_none()),
            ("cpu.stepping", self.stepping.is_none()),
            ("cpu.microcode", self.microcode.is_none()),
            ("cpu.bogomips", self.bogomips.is_none()),
        ] {
            if is_missing {
                reader.missing.insert(key.to_owned(), reason.clone());
            }
        }
    }

    /// Number of CPUs, cores and sockets.
    fn count(&mut self, reader: &mut HardwareReader<'_>) {
        const ONLINE: &str = "sys/devices/system/cpu/online";
        self.online = reader.required("cpu.online", ONLINE, text);
        let cpus = reader.read(ONLINE, cpu_numbers);
        let Some(cpus) = reader.or_missing("cpu.cpus", cpus) else { return };
        self.cpus = u32::try_from(cpus.len()).ok();
        let sockets = cpu_sets(reader, &cpus, "topology/core_siblings_list");
        let cores = cpu_sets(reader, &cpus, "topology/thread_siblings_list");
        let (sockets, cores) =
            (reader.or_missing("cpu.sockets", sockets), reader.or_missing("cpu.cores", cores));
        let count = |sets: &Vec<Vec<u32>>| u32::try_from(sets.len()).ok();
        self.sockets = sockets.as_ref().and_then(count);
        self.cores = cores.as_ref().and_then(count);
        let (Some(sockets), Some(cores)) = (sockets, cores) else { return };
        let in_socket = |socket: &Vec<u32>| {
            cores.iter().filter(|core| core.iter().any(|cpu| socket.contains(cpu))).count()
        };
        let per_socket = same(sockets.iter().map(in_socket)).ok_or("sockets differ");
        let per_core = same(cores.iter().map(Vec::len)).ok_or("cores differ");
        self.cores_per_socket =
            reader.or_missing("cpu.cores_per_socket", per_socket.map_err(str::to_owned));
        self.threads_per_core =
            reader.or_missing("cpu.threads_per_core", per_core.map_err(str::to_owned));
    }

    /// Frequency limits, driver and governors.
    fn speeds(&mut self, reader: &mut HardwareReader<'_>) {
        const POLICIES: &str = "sys/devices/system/cpu/cpufreq";
        let policies: Vec<String> = reader
            .names(POLICIES)
            .into_iter()
            .filter(|name| name.starts_with("policy"))
            .map(|name| format!("{POLICIES}/{name}"))
            .collect();
        for policy in &policies {
            let lowest = reader.optional(&format!("{policy}/cpuinfo_min_freq"), kilohertz);
            let highest = reader.optional(&format!("{policy}/cpuinfo_max_freq"), kilohertz);
            let governor = reader.optional(&format!("{policy}/scaling_governor"), text);
            self.frequency_min_hertz = self.frequency_min_hertz.into_iter().chain(lowest).min();
            self.frequency_max_hertz = self.frequency_max_hertz.max(highest);
            self.governors.extend(governor.filter(|name| !self.governors.contains(name)));
        }
        if let Some(first) = policies.first() {
            self.frequency_driver = reader.optional(&format!("{first}/scaling_driver"), text);
            self.frequency_base_hertz =
                reader.optional(&format!("{first}/base_frequency"), kilohertz);
            self.energy_preference =
                reader.optional(&format!("{first}/energy_performance_preference"), text);
        }
        let turbo_is_off = reader.optional("sys/devices/system/cpu/intel_pstate/no_turbo", flag);
        let boost = reader.optional(&format!("{POLICIES}/boost"), flag);
        self.boost = boost.or(turbo_is_off.map(|is_off| !is_off));
        let why = match policies.is_empty() {
            true => format!("/{POLICIES} has no policy: no driver sets frequencies here"),
            false => format!("/{} does not say", policies[0]),
        };
        for (key, is_missing) in [
            ("cpu.frequency_min_hertz", self.frequency_min_hertz.is_none()),
            ("cpu.frequency_max_hertz", self.frequency_max_hertz.is_none()),
            ("cpu.frequency_base_hertz", self.frequency_base_hertz.is_none()),
            ("cpu.governors", self.governors.is_empty()),
            ("cpu.frequency_driver", self.frequency_driver.is_none()),
            ("cpu.energy_preference", self.energy_preference.is_none()),
            ("cpu.boost", self.boost.is_none()),
        ] {
            if is_missing {
                reader.missing.insert(key.to_owned(), why.clone());
            }
        }
    }
}

/// The numbers in a list of CPUs; one longer than any kernel supports is refused.
pub(super) fn cpu_numbers(bytes: &[u8]) -> Result<Vec<u32>, MalformedFile> {
    /// The largest `CONFIG_NR_CPUS` is 8192.
    const MOST: u32 = 1 << 16;
    match cpulist::count(bytes)? {
        0 => Err(MalformedFile("an empty cpu list")),
        count if count > MOST => Err(MalformedFile("cpu list")),
        _ => Ok(cpulist::iter(bytes)?.collect()),
    }
}

/// The sets that CPUs are in, each once: one read for each set, not for each CPU.
pub(super) fn cpu_sets(
    reader: &mut HardwareReader<'_>,
    cpus: &[u32],
    list: &str,
) -> Result<Vec<Vec<u32>>, String> {
    let mut seen = std::collections::HashSet::new();
    let mut sets = Vec::new();
    for cpu in cpus {
        if !seen.contains(cpu) {
            let set = reader.read(&format!("{CPU}{cpu}/{list}"), cpu_numbers)?;
            seen.insert(*cpu);
            seen.extend(set.iter().copied());
            sets.push(set);
        }
    }
    Ok(sets)
}

/// The common value, if all are the same.
fn same(mut counts: impl Iterator<Item = usize>) -> Option<u32> {
    let first = counts.next()?;
    counts.all(|count| count == first).then(|| u32::try_from(first).ok())?
}

fn flag(bytes: &[u8]) -> Result<bool, MalformedFile> {
    match attribute::number(bytes)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(MalformedFile("0 or 1")),
    }
}
