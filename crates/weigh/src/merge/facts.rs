//! The machines of several recordings as one.

use std::collections::BTreeMap;

use crate::model::Facts;
use crate::record::Manifest;

/// At most so many names are listed.
const MOST_NAMES: usize = 3;

/// Cores and memory of all machines together, each machine once.
pub(super) fn of(manifests: &[&Manifest]) -> Facts {
    // Machines by boot, which is the same in all containers of one; else by their names.
    let mut machines: BTreeMap<&str, Vec<&Facts>> = BTreeMap::new();
    for facts in manifests.iter().map(|manifest| &manifest.host) {
        machines.entry(facts.boot.as_deref().unwrap_or(&facts.name)).or_default().push(facts);
    }
    let each = |of: fn(&Facts) -> Option<u64>| {
        let largest = |views: &Vec<&Facts>| views.iter().map(|facts| of(facts)).max().flatten();
        machines.values().map(largest).sum::<Option<u64>>()
    };
    let all = |of: fn(&Facts) -> &str| joined(manifests.iter().map(|one| of(&one.host)));
    Facts {
        name: all(|facts| &facts.name),
        cores: each(|facts| Some(facts.cores.into())).unwrap_or(0).try_into().unwrap_or(u32::MAX),
        cores_allowed: machines.values().map(|views| allowed(views)).sum(),
        memory_bytes: each(|facts| facts.memory_bytes),
        memory_limit_bytes: each(|facts| facts.memory_limit_bytes),
        kernel: all(|facts| &facts.kernel),
        architecture: all(|facts| &facts.architecture),
        gpus: machines.values().flat_map(|views| gpus(views).iter().cloned()).collect(),
        boot: same(manifests, |facts| facts.boot.clone()),
        pid_namespace: same(manifests, |facts| {
            facts.boot.as_ref().and(facts.pid_namespace.clone())
        })
        .filter(|_| same(manifests, |facts| facts.boot.clone()).is_some()),
    }
}

/// The GPUs of one machine: a container may see some of them, and a run that was cut off at once
/// none.
fn gpus<'a>(views: &[&'a Facts]) -> &'a [String] {
    let lists = views.iter().map(|facts| facts.gpus.as_slice());
    lists.max_by_key(|gpus| gpus.len()).unwrap_or_default()
}

/// Cores that the runs on one machine may use: each container has its own, but no more than there
/// are.
fn allowed(views: &[&Facts]) -> f64 {
    let mut containers: BTreeMap<Option<&str>, f64> = BTreeMap::new();
    for facts in views {
        let allowed = containers.entry(facts.pid_namespace.as_deref()).or_default();
        *allowed = allowed.max(facts.cores_allowed);
    }
    let there = views.iter().map(|facts| f64::from(facts.cores)).fold(0.0, f64::max);
    containers.values().sum::<f64>().min(there)
}

/// What all have in common, if they do.
fn same(manifests: &[&Manifest], of: impl Fn(&Facts) -> Option<String>) -> Option<String> {
    let first = of(&manifests.first()?.host)?;
    manifests.iter().all(|one| of(&one.host).as_ref() == Some(&first)).then_some(first)
}

/// Different names, up to a readable number; they also name the directory.
fn joined<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut different: Vec<&str> = Vec::new();
    for name in names {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    let more = different.len().saturating_sub(MOST_NAMES);
    different.truncate(MOST_NAMES);
    let listed = different.join(", ");
    if more == 0 { listed } else { format!("{listed} and {more} more") }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::settings::Settings;

    fn on(name: &str, boot: Option<&str>, namespace: &str, allowed: f64) -> Manifest {
        let facts = Facts {
            name: name.to_owned(),
            boot: boot.map(str::to_owned),
            pid_namespace: Some(namespace.to_owned()),
            cores_allowed: allowed,
            ..Facts::example()
        };
        Manifest::new(&Settings::default(), &[], facts, Duration::from_secs(1))
    }

    #[test]
    fn containers_of_one_machine_have_its_cores_once() {
        let (one, two) = (on("c1", Some("b"), "n1", 1.0), on("c2", Some("b"), "n2", 2.0));
        let facts = of(&[&one, &two]);
        assert_eq!((facts.cores, facts.cores_allowed), (4, 3.0));
        assert_eq!((facts.memory_bytes, facts.name.as_str()), (Some(8 << 30), "c1, c2"));
        assert_eq!((facts.boot.as_deref(), facts.pid_namespace), (Some("b"), None));
    }

    #[test]
    fn gpus_of_a_machine_are_listed_once_if_any_recording_has_them() {
        let with = |machine: &str, gpus: &[&str]| {
            let mut manifest = on("node", Some(machine), "n", 1.0);
            manifest.host.gpus = gpus.iter().map(|name| (*name).to_owned()).collect();
            manifest
        };
        let all = [with("a", &[]), with("a", &["H100", "H100"]), with("b", &["T4"])];
        assert_eq!(of(&all.iter().collect::<Vec<_>>()).gpus, ["H100", "H100", "T4"]);
    }

    #[test]
    fn machines_add_up_and_are_named() {
        let names = ["a", "b", "c", "d", "a"];
        let manifests = names.map(|name| on(name, None, "n", 4.0));
        let facts = of(&manifests.iter().collect::<Vec<_>>());
        assert_eq!((facts.cores, facts.cores_allowed), (16, 16.0));
        assert_eq!(facts.memory_bytes, Some(32 << 30));
        assert_eq!(facts.name, "a, b, c and 1 more");
        assert_eq!((facts.boot, facts.pid_namespace), (None, None));
    }
}
