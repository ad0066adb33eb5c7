//! Limits, CPUs and memory nodes of a run, to repeat it (`--limits`).
//!
//! Sources: `/proc/<pid>/limits` and `/proc/<pid>/status` of the attached process, or of weigh,
//! whose limits and CPUs the command inherits; `/sys/devices/system/node`; a few settings under
//! `/proc/sys`; the variable `LOADEDMODULES`.
//!
//! The environment is never recorded: of all variables only this one is read, a list of names
//! maintained by `module load` (`gcc/12.2.0:openmpi/4.1`). Names of another form are counted and
//! not stored. Kernel modules are left out: a user cannot load them, and those that matter are the
//! drivers in [`Hardware`](super::Hardware).

use std::ffi::OsString;

use super::memory::NODES_ONLINE;
use super::processor::cpu_numbers;
use super::reader::HardwareReader;
use crate::host::Dir;
use crate::model::hardware::{LimitRange, Surroundings};
use crate::parse::{MalformedFile, attribute, limits};

impl Surroundings {
    /// Reads the limits of this process, of a given one, or of none if there are several.
    pub fn of(
        root: &Dir,
        limits_of: LimitsOf,
        variable: fn(&str) -> Option<OsString>,
    ) -> Surroundings {
        let reader = &mut HardwareReader::at(root);
        let mut found = Surroundings::default();
        match limits_of {
            LimitsOf::Own => found.allowed(reader, "self"),
            LimitsOf::Process(pid) => found.allowed(reader, &pid.to_string()),
            LimitsOf::Several => {
                for key in ["limits", "cpus_allowed", "memory_nodes_allowed"] {
                    let why = "several processes are followed, and each has its own";
                    reader.missing.insert(key.to_owned(), why.to_owned());
                }
            }
        }
        found.numa_distances = distances(reader);
        let mut setting = |key: &str, file: &str| {
            reader.required(key, &format!("proc/sys/{file}"), attribute::number)
        };
        found.numa_balancing = setting("numa_balancing", "kernel/numa_balancing");
        found.address_randomization = setting("address_randomization", "kernel/randomize_va_space");
        found.memory_overcommit = setting("memory_overcommit", "vm/overcommit_memory");
        found.swappiness = setting("swappiness", "vm/swappiness");
        // The environment of another process is not read.
        match variable("LOADEDMODULES").filter(|_| limits_of == LimitsOf::Own) {
            Some(list) => (found.modules, found.modules_left_out) = modules(&list),
            None => {
                let why = "no environment modules are known: $LOADEDMODULES is not set";
                reader.missing.insert("modules".to_owned(), why.to_owned());
            }
        }
        found.missing = std::mem::take(&mut reader.missing);
        found
    }

    fn allowed(&mut self, reader: &mut HardwareReader<'_>, process: &str) {
        let limits = reader.required("limits", &format!("proc/{process}/limits"), |bytes| {
            let each = limits::parse(bytes)?.into_iter().map(|limit| {
                let unit = limit.unit.map(str::to_owned);
                (limit.name.to_owned(), LimitRange { soft: limit.soft, hard: limit.hard, unit })
            });
            Ok(each.collect())
        });
        self.limits = limits.unwrap_or_default();
        let mut listed = |key: &str, line: &str| {
            reader.required(key, &format!("proc/{process}/status"), |bytes| {
                let list = attribute::line_value(bytes, line)
                    .ok_or(MalformedFile("a line that is missing"));
                Ok(list?.to_owned())
            })
        };
        self.cpus_allowed = listed("cpus_allowed", "Cpus_allowed_list:");
        self.memory_nodes_allowed = listed("memory_nodes_allowed", "Mems_allowed_list:");
    }
}

/// Which process's limits are recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitsOf {
    /// Those of weigh, which the command inherits.
    Own,
    /// Those of one process.
    Process(u32),
    /// None: several processes are attached.
    Several,
}

fn distances(reader: &mut HardwareReader<'_>) -> Vec<Vec<u64>> {
    let nodes = reader.read(NODES_ONLINE, cpu_numbers);
    let nodes = reader.or_missing("numa_distances", nodes).unwrap_or_default();
    let each = |node: &u32| {
        reader.read(&format!("sys/devices/system/node/node{node}/distance"), attribute::numbers)
    };
    let distances = nodes.iter().map(each).collect();
    reader.or_missing("numa_distances", distances).unwrap_or_default()
}

/// The names in a list of modules, and how many had another form.
fn modules(list: &OsString) -> (Option<Vec<String>>, u64) {
    /// Longer than any module name.
    const LONGEST: usize = 200;
    let list = list.to_string_lossy();
    let is_name = |name: &&str| {
        let plain = |c: char| c.is_ascii_alphanumeric() || "._+-/".contains(c);
        // A path could contain personal names.
        name.len() <= LONGEST && !name.starts_with('/') && name.chars().all(plain)
    };
    let all = list.split(':').filter(|name| !name.is_empty());
    let (names, others): (Vec<&str>, Vec<&str>) = all.partition(is_name);
    (Some(names.into_iter().map(str::to_owned).collect()), others.len() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fake::FakeHost;

    const LIMITS: &str = "Limit                     Soft Limit           Hard Limit           Units     \n\
         Max open files            1024                 unlimited            files     \n";

    fn loaded(name: &str) -> Option<OsString> {
        (name == "LOADEDMODULES").then(|| "gcc/12.2.0:openmpi/4.1:/home/ada/x:a=secret".into())
    }

    #[test]
    fn limits_affinity_and_distances_of_the_process_are_read() {
        let fake = FakeHost::new()
            .proc("77/limits", LIMITS)
            .proc("77/status", "Name:\tx\nCpus_allowed_list:\t0-3\nMems_allowed_list:\t0\n")
            .proc("sys/vm/swappiness", "60\n")
            .sys("devices/system/node/online", "0-1\n")
            .sys("devices/system/node/node0/distance", "10 21\n")
            .sys("devices/system/node/node1/distance", "21 10\n");
        let found = Surroundings::of(&fake.host().root, LimitsOf::Process(77), loaded);
        let files = LimitRange { soft: Some(1024), hard: None, unit: Some("files".to_owned()) };
        assert_eq!(found.limits["Max open files"], files);
        assert_eq!(found.cpus_allowed.as_deref(), Some("0-3"));
        assert_eq!(found.memory_nodes_allowed.as_deref(), Some("0"));
        assert_eq!(found.numa_distances, [[10, 21], [21, 10]]);
        assert_eq!((found.swappiness, found.numa_balancing), (Some(60), None));
        assert!(found.missing["numa_balancing"].contains("/proc/sys/kernel/numa_balancing"));
        assert_eq!(found.modules, None, "another process has an environment of its own");
    }

    #[test]
    fn only_module_names_of_the_environment_are_stored() {
        let found = Surroundings::of(&FakeHost::new().host().root, LimitsOf::Own, loaded);
        assert_eq!(found.modules.unwrap(), ["gcc/12.2.0", "openmpi/4.1"]);
        assert_eq!(found.modules_left_out, 2);
        assert!(found.missing.contains_key("limits") && found.limits.is_empty());
        let several = Surroundings::of(&FakeHost::new().host().root, LimitsOf::Several, |_| None);
        assert!(several.missing["limits"].contains("several") && several.modules.is_none());
    }
}
