//! `run.json` of several merged recordings.

use std::collections::BTreeMap;
use std::time::Duration;

use super::facts;
use super::layout::{Layout, Place};
use crate::catalog::{Metric, Scope};
use crate::model::ProcessId;
use crate::model::batch_job::BatchJob;
use crate::record::manifest::{CounterOrigin, Described, Origin, new_id};
use crate::record::{Manifest, Member, Recording, Target, secrets};

/// Its name when its members have different names.
const NAME: &str = "merged";

/// The merged manifest.
pub(super) fn of(
    recordings: &[Recording],
    layout: &Layout,
    name: Option<&str>,
    wall: Duration,
) -> Manifest {
    let manifests: Vec<&Manifest> = recordings.iter().map(Recording::manifest).collect();
    let name = name.map(secrets::remark).or_else(|| same(&manifests, |one| Some(one.name.clone())));
    Manifest {
        weigh: Origin::default(),
        id: new_id(layout.started, wall),
        name: name.unwrap_or_else(|| NAME.to_owned()),
        command: None,
        user: same(&manifests, |one| one.user.clone()),
        target: Some(Target::Merged { members: members(recordings, layout), exact: layout.exact }),
        attach_clock_ticks: None,
        counters: CounterOrigin::SinceAttach,
        pid: 0,
        process_started: layout.zero,
        started: layout.started,
        labels: labels(&manifests),
        interval_seconds: manifests.iter().map(|one| one.interval_seconds).fold(0.0, f64::max),
        budget_ratio: manifests.iter().map(|one| one.budget_ratio).fold(0.0, f64::max),
        expected_cores: manifests.iter().map(|one| one.expected_cores).sum(),
        collectors: different(manifests.iter().flat_map(|one| &one.collectors)),
        absent: absent(&manifests),
        events: None,
        host: facts::of(&manifests),
        hardware: same(&manifests, |one| one.hardware.clone()),
        surroundings: same(&manifests, |one| one.surroundings.clone()),
        job: job(&manifests),
        clock: None,
        catalogue: different(manifests.iter().flat_map(|one| &one.catalogue))
            .into_iter()
            .filter(|metric: &Described| layout.has_metric(&metric.name))
            .collect(),
        sealed: true,
    }
}

/// The batch job of all of them.
fn job(manifests: &[&Manifest]) -> Option<BatchJob> {
    let jobs: Option<Vec<&BatchJob>> = manifests.iter().map(|one| one.job.as_ref()).collect();
    BatchJob::common(&jobs?)
}

/// What none of them had.
fn absent(manifests: &[&Manifest]) -> BTreeMap<String, String> {
    let all = manifests.iter().flat_map(|one| &one.absent);
    let had = |name: &String| manifests.iter().any(|one| one.collectors.contains(name));
    all.filter(|(name, _)| !had(name)).map(|(name, why)| (name.clone(), why.clone())).collect()
}

/// The groups that are recorded in the merge.
pub(super) fn merged_groups(
    groups: &[&'static [Metric]],
    manifest: &Manifest,
) -> Vec<&'static [Metric]> {
    let is_kept = |group: &&&'static [Metric]| {
        let names = group.iter().map(Metric::name);
        names.into_iter().any(|name| manifest.catalogue.iter().any(|metric| metric.name == name))
    };
    groups.iter().filter(is_kept).copied().collect()
}

/// The runs that a recording is.
pub(super) fn ids(manifest: &Manifest) -> Vec<&str> {
    match &manifest.target {
        Some(Target::Merged { members, .. }) => {
            members.iter().map(|member| member.id.as_str()).collect()
        }
        _ => vec![&manifest.id],
    }
}

impl Layout {
    /// Whether a metric of this name is recorded in the merge: values of one machine say nothing of
    /// several.
    fn has_metric(&self, name: &str) -> bool {
        let is_of = |scope: Scope| name.split('.').next() == Some(scope.name());
        match Scope::ALL.into_iter().find(|scope| is_of(*scope)) {
            // GPUs have names of their own on each machine.
            Some(Scope::Process | Scope::Own | Scope::Gpu | Scope::GpuProcess) => true,
            // Several recordings may have the same connections.
            Some(Scope::Run) => self.clocks && name.starts_with("run.cpu."),
            // A cgroup does not cover all of them, and events are those of one run.
            Some(Scope::Cgroup | Scope::PerfEvent) => false,
            _ => self.one_machine,
        }
    }
}

fn members(recordings: &[Recording], layout: &Layout) -> Vec<Member> {
    let manifests: Vec<&Manifest> = recordings.iter().map(Recording::manifest).collect();
    let is_alone = |one: &Manifest| matches!(one.target, Some(Target::Programs { .. }));
    let mut members = Vec::new();
    for (recording, place) in recordings.iter().zip(&layout.places) {
        let manifest = recording.manifest();
        if let Some(Target::Merged { members: inner, .. }) = &manifest.target {
            members.extend(inner.iter().map(|member| moved(member.clone(), place)));
            continue;
        }
        let here = manifests.iter().zip(&layout.places);
        let mut here = here.filter(|(_, other)| other.namespace == place.namespace);
        let member = Member {
            id: manifest.id.clone(),
            name: manifest.name.clone(),
            host: manifest.host.name.clone(),
            pid: manifest.pid,
            process_started: manifest.process_started,
            // With others that count children, all do: a process has one account.
            each_alone: here.all(|(other, _)| is_alone(other)),
            clock_ahead_seconds: recording.clock_ahead_seconds(),
        };
        members.push(moved(member, place));
    }
    members
}

/// Its main process under the numbering and on the clock of all.
fn moved(member: Member, place: &Place) -> Member {
    if member.pid == 0 {
        return Member { process_started: 0, ..member };
    }
    let ProcessId { pid, started } = member.main().moved(place.namespace, place.ahead);
    Member { pid, process_started: started, ..member }
}

/// What all have in common, if they do.
fn same<T: PartialEq>(manifests: &[&Manifest], of: impl Fn(&Manifest) -> Option<T>) -> Option<T> {
    let first = of(manifests.first()?)?;
    manifests.iter().all(|one| of(one).as_ref() == Some(&first)).then_some(first)
}

/// The labels that all of them have.
fn labels(manifests: &[&Manifest]) -> BTreeMap<String, String> {
    let Some((first, others)) = manifests.split_first() else { return BTreeMap::new() };
    let is_everywhere = |(name, value): &(&String, &String)| {
        others.iter().all(|one| one.labels.get(*name) == Some(value))
    };
    let common = first.labels.iter().filter(is_everywhere);
    common.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Each of them once, in order.
fn different<'a, T: PartialEq + Clone + 'a>(all: impl Iterator<Item = &'a T>) -> Vec<T> {
    let mut different: Vec<T> = Vec::new();
    for one in all {
        if !different.contains(one) {
            different.push(one.clone());
        }
    }
    different
}
