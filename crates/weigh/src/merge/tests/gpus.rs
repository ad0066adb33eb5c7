//! GPUs of several recordings: those of each machine apart, and one in several recordings once.

use super::*;
use crate::catalog::all_groups;
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuPower, GpuProcessUsage, ProcessMemory};
use crate::model::{End, Gpu, Name};

/// One sample of a GPU: its utilisation, and its counters.
#[derive(Clone, Copy)]
struct MergedGpu {
    name: &'static str,
    utilization: f64,
    /// As each weigh counts it, from when it attached.
    observed: f64,
    joules: f64,
    used: u64,
}

const CARD: MergedGpu =
    MergedGpu { name: "nvidia0", utilization: 0.5, observed: 0.0, joules: 0.0, used: GIB };

fn gpu(name: &str, uuid: Option<&str>, usable: Option<bool>) -> Event {
    let (name, uuid) = (name.to_owned(), uuid.map(str::to_owned));
    Event::Gpu(Box::new(Gpu { name, uuid, usable, ..Gpu::default() }))
}

/// A sample of GPUs, and of the memory that processes have of them.
fn gpus(gpu_names: &[MergedGpu], users: &[(&str, ProcessId, u64)]) -> impl FnOnce(&mut Tick) {
    move |tick| {
        for card in gpu_names {
            let entity = Entity::Named(Name::new(card.name.as_bytes()));
            let activity = GpuActivity {
                utilization: Some(card.utilization),
                busy: Some(card.utilization * card.observed),
                observed: Some(card.observed),
                processes: Some(users.len() as u64),
                processes_unknown: Some(0),
                age: Some(0.0),
                ..GpuActivity::default()
            };
            tick.put(entity, &activity);
            tick.put(entity, &GpuMemory { used: Some(card.used), ..GpuMemory::default() });
            let energy = Some(card.joules);
            tick.put(entity, &GpuPower { energy, ..GpuPower::default() });
        }
        for (gpu, id, bytes) in users {
            let rss = ProcessMemory { rss: Some(1), ..Default::default() };
            tick.put(Entity::Process(*id), &rss);
            let entity = Entity::OnGpu(Name::new(gpu.as_bytes()), *id);
            tick.put(
                entity,
                &GpuProcessUsage { memory: Some(*bytes), ..GpuProcessUsage::default() },
            );
        }
    }
}

/// Ten seconds on a GPU at 50 % utilisation and 100 W; the process has 1 GiB.
fn trains(directory: &Path, name: &str, setting: Setting, uuid: Option<&str>) -> Recording {
    let mut run = run_at(name, setting);
    run.starts(0.0, setting.main, "train").event(0.0, gpu("nvidia0", uuid, Some(true)));
    for second in 0..=10 {
        let second = f64::from(second);
        let card = MergedGpu { observed: second, joules: 5000.0 + 100.0 * second, ..CARD };
        run.sample(second, gpus(&[card], &[("nvidia0", setting.main, GIB)]));
    }
    ended(directory, run, 10.0, 1.0, End::Code(0))
}

const THERE: Setting = Setting { host: "node-b.cluster", boot: Some("boot-b"), ..HERE };

fn names(summary: &Summary) -> Vec<(&str, Option<&str>)> {
    summary.gpus.iter().map(|gpu| (gpu.is.name.as_str(), gpu.is.node.as_deref())).collect()
}

#[test]
fn gpus_of_two_machines_are_two_and_add_up() {
    let directory = tempfile::tempdir().unwrap();
    // Equal UUIDs do not make two machines one.
    let recordings = [
        trains(directory.path(), "a", HERE, Some("GPU-1")),
        trains(directory.path(), "b", Setting { late: 0.3, ..THERE }, Some("GPU-1")),
    ];
    let (summary, recording) = merged(directory.path(), &recordings);
    assert_eq!(
        names(&summary),
        [("node-a/nvidia0", Some("node-a")), ("node-b/nvidia0", Some("node-b.cluster"))]
    );
    assert_eq!(value(&summary, "gpu_energy_joules"), 2000.0);
    assert_eq!(value(&summary, "gpu_memory_peak_bytes"), 2.0 * GIB as f64);
    assert_eq!(value(&summary, "gpus_busy_peak"), 1.0);
    let system = summary.parts.system.figures["gpu_memory_peak_bytes"].value;
    assert_eq!(system, Some(2.0 * GIB as f64));
    // The second started a little later, and runs as long as the first.
    let mean = value(&summary, "gpus_busy_mean");
    assert!((mean - 1.0).abs() < 0.05, "{mean}");
    assert!((value(&summary, "gpu_utilization_mean_ratio") - 0.5).abs() < 0.025);
    for gpu in &summary.gpus {
        assert_eq!(gpu.utilization_mean_ratio, Some(0.5));
        assert_eq!((gpu.energy_joules, gpu.processes.len()), (Some(1000.0), 1));
    }
    let pids = summary.gpus.iter().map(|gpu| gpu.processes[0].pid).map(numbering::shown);
    assert_eq!(pids.collect::<Vec<_>>(), ["10", "2:10"], "equal pids stay apart");
    // For readers a GPU without a row is gone: in each round all have one.
    let mut rounds = Vec::new();
    let replayed = recording.replay(&all_groups(), |frame| {
        let Moment::Tick(tick) = frame.moment else { return };
        let rows = |scope| tick.table(scope).map_or(0, |table| table.len());
        if tick.is_complete() {
            rounds.push((rows(Scope::Gpu), rows(Scope::GpuProcess)));
        }
    });
    replayed.unwrap();
    let together = &rounds[1..rounds.len() - 1];
    assert!(together.iter().all(|round| *round == (2, 2)), "{rounds:?}");
    assert_eq!(rounds.last(), Some(&(1, 1)), "the first has ended");
}

#[test]
fn machines_of_one_name_and_those_with_long_names_are_numbered() {
    let directory = tempfile::tempdir().unwrap();
    let long = "a-machine-whose-name-is-rather-long";
    let recordings = [
        trains(directory.path(), "a", HERE, None),
        trains(directory.path(), "b", Setting { host: "node-a", ..THERE }, None),
        trains(directory.path(), "c", Setting { host: long, boot: Some("boot-c"), ..HERE }, None),
    ];
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(
        names(&summary),
        [
            ("node-a/nvidia0", Some("node-a")),
            ("2/nvidia0", Some("node-a")),
            ("3/nvidia0", Some(long))
        ]
    );
    assert_eq!(value(&summary, "gpu_energy_joules"), 3000.0);
}

#[test]
fn a_gpu_in_two_recordings_is_one() {
    let directory = tempfile::tempdir().unwrap();
    let other = ProcessId { pid: 11, started: 5400 };
    // The first ends before the second, which attached later and counts from then on; the GPU's own
    // counter is the same for both.
    let watches = |name: &str, late: f64, main: ProcessId| {
        let mut run = run_at(name, Setting { late, main, ..HERE });
        let usable = Some(name == "b");
        run.starts(0.0, main, "train").event(0.0, gpu("nvidia0", Some("GPU-1"), usable));
        for second in 0..=8 {
            let second = f64::from(second);
            let joules = 5000.0 + 100.0 * (second + late);
            let card = MergedGpu { observed: second, joules, used: 3 * GIB, ..CARD };
            run.sample(second, gpus(&[card], &[("nvidia0", main, GIB)]));
        }
        ended(directory.path(), run, 8.0, 1.0, End::Code(0))
    };
    let recordings = [watches("a", 0.0, HERE.main), watches("b", 4.0, other)];
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(names(&summary), [("nvidia0", None)]);
    assert_eq!(summary.gpus[0].is.usable, Some(true), "the second could use it");
    assert_eq!(value(&summary, "gpu_energy_joules"), 1200.0);
    assert_eq!(value(&summary, "gpus_busy_mean"), 0.5);
    assert_eq!(value(&summary, "gpu_memory_peak_bytes"), 2.0 * GIB as f64, "both are on it");
    let system = summary.parts.system.figures["gpu_memory_peak_bytes"].value;
    assert_eq!(system, Some(3.0 * GIB as f64));
}

#[test]
fn containers_with_different_gpus_of_one_name_have_two() {
    let directory = tempfile::tempdir().unwrap();
    let contained = Setting { host: "c2", namespace: Some("pid:[2]"), ..HERE };
    let recordings = [
        trains(directory.path(), "a", HERE, Some("GPU-1")),
        trains(directory.path(), "b", contained, Some("GPU-2")),
    ];
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(names(&summary), [("nvidia0", None), ("c2/nvidia0", Some("c2"))]);
    assert_eq!(value(&summary, "gpu_energy_joules"), 2000.0);
}

#[test]
fn utilisation_of_gpus_used_one_after_the_other_is_not_summed() {
    let directory = tempfile::tempdir().unwrap();
    let recordings = [
        trains(directory.path(), "a", HERE, None),
        trains(directory.path(), "b", Setting { late: 10.5, ..THERE }, None),
    ];
    let (summary, _) = merged(directory.path(), &recordings);
    assert_eq!(value(&summary, "gpus_busy_peak"), 0.5);
    assert_eq!(value(&summary, "gpu_memory_peak_bytes"), GIB as f64);
    assert!((value(&summary, "gpus_busy_mean") - 0.5).abs() < 0.05);
    assert_eq!(value(&summary, "gpu_energy_joules"), 2000.0);
}

#[test]
fn no_sample_is_lost_when_one_samples_more_often_than_the_other() {
    let directory = tempfile::tempdir().unwrap();
    let mut fast = run_at("a", HERE);
    fast.starts(0.0, HERE.main, "train").event(0.0, gpu("nvidia0", None, None));
    for step in 0..=50 {
        let used = if step == 17 { 7 * GIB } else { GIB };
        fast.sample(f64::from(step) / 10.0, gpus(&[MergedGpu { used, ..CARD }], &[]));
    }
    let slow = trains(directory.path(), "b", THERE, None);
    let fast = ended(directory.path(), fast, 5.0, 1.0, End::Code(0));
    let (summary, _) = merged(directory.path(), &[fast, slow]);
    let peaks = summary.gpus.iter().map(|gpu| gpu.memory_peak_bytes);
    assert_eq!(peaks.collect::<Vec<_>>(), [Some(7.0 * GIB as f64), Some(GIB as f64)]);
    let system = &summary.parts.system.figures["gpu_memory_peak_bytes"];
    assert_eq!((system.value, system.at_seconds), (Some(8.0 * GIB as f64), Some(1.7)));
}

#[test]
fn merging_in_steps_keeps_gpus_apart_as_merging_at_once_does() {
    let directory = tempfile::tempdir().unwrap();
    let last = Setting { host: "node-c", boot: Some("boot-c"), ..HERE };
    let all = [("a", HERE, "GPU-1"), ("b", THERE, "GPU-2"), ("c", last, "GPU-3")]
        .map(|(name, setting, uuid)| trains(directory.path(), name, setting, Some(uuid)));
    let (at_once, _) = merged(directory.path(), &all);
    let path = directory.path().join("two");
    merge(&all[..2], Some(&path), None, NOW, |_| {}).unwrap();
    let steps = [Recording::open(&path).unwrap(), Recording::open(all[2].directory()).unwrap()];
    let steps = merge(&steps, Some(&directory.path().join("three")), None, NOW, |_| {}).unwrap();
    assert_eq!(names(&steps.summary), names(&at_once));
    assert_eq!(names(&at_once)[2], ("node-c/nvidia0", Some("node-c")));
    for name in ["gpu_energy_joules", "gpu_memory_peak_bytes", "gpus_busy_mean"] {
        let (steps, at_once) = (value(&steps.summary, name), value(&at_once, name));
        // Samples of one time are kept a nanosecond apart, and more of them where steps add up.
        assert!((steps - at_once).abs() < 1e-6 * at_once, "{name}: {steps} {at_once}");
    }
}

#[test]
fn mig_instances_stay_with_their_gpu() {
    let directory = tempfile::tempdir().unwrap();
    let divided = |name: &str, setting: Setting, part: &str| {
        let mut run = run_at(name, setting);
        run.starts(0.0, setting.main, "train");
        run.event(0.0, gpu("nvidia0", Some("GPU-1"), None));
        run.event(0.0, gpu("nvidia0:0", Some(part), None));
        run.sample(0.0, gpus(&[CARD, MergedGpu { name: "nvidia0:0", ..CARD }], &[]));
        ended(directory.path(), run, 1.0, 1.0, End::Code(0))
    };
    // Two containers have a MIG instance each, and both call theirs the first.
    let contained = Setting { namespace: Some("pid:[2]"), ..HERE };
    let recordings = [
        divided("a", HERE, "MIG-1"),
        divided("b", contained, "MIG-2"),
        divided("c", THERE, "MIG-3"),
    ];
    let (summary, _) = merged(directory.path(), &recordings);
    let called: Vec<&str> = names(&summary).into_iter().map(|(name, _)| name).collect();
    let here = ["node-a/nvidia0", "node-a/nvidia0:0", "node-a/nvidia0:1"];
    assert_eq!(called, [&here[..], &["node-b/nvidia0", "node-b/nvidia0:0"]].concat());
}
