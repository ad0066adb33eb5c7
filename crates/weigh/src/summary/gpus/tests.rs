//! Memory by process, utilization and energy, against known values.

mod known;

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuPower, GpuProcessUsage, ProcessMemory};
use crate::record::Event;
use crate::testing::{CHILD, FakeRun, GIB, MAIN};

fn named(name: &str) -> Entity {
    Entity::Named(Name::new(name.as_bytes()))
}

fn on(gpu: &str, id: ProcessId) -> Entity {
    Entity::OnGpu(Name::new(gpu.as_bytes()), id)
}

fn has(memory: u64) -> GpuProcessUsage {
    GpuProcessUsage { memory: Some(memory), utilization: Some(0.5), ..GpuProcessUsage::default() }
}

fn busy(utilization: f64, processes: u64, unknown: u64) -> GpuActivity {
    GpuActivity {
        utilization: Some(utilization),
        processes: Some(processes),
        processes_unknown: Some(unknown),
        ..GpuActivity::default()
    }
}

fn uses(used: u64) -> GpuMemory {
    GpuMemory { used: Some(used), ..GpuMemory::default() }
}

fn figure(summary: &super::super::Summary, name: &str) -> Option<f64> {
    summary.figures[name].value
}

#[test]
fn memory_is_split_by_process() {
    let foreign = ProcessId { pid: 99, started: 1 };
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "train").starts(0.0, CHILD, "worker");
    run.sample(1.0, |tick| {
        for id in [MAIN, CHILD] {
            tick.put(Entity::Process(id), &ProcessMemory { rss: Some(1), ..Default::default() });
        }
        tick.put(named("nvidia0"), &busy(0.5, 3, 0));
        tick.put(named("nvidia0"), &uses(9 * GIB));
        tick.put(named("nvidia1"), &busy(1.0, 1, 0));
        tick.put(named("nvidia1"), &uses(GIB));
        tick.put(on("nvidia0", MAIN), &has(2 * GIB));
        tick.put(on("nvidia0", CHILD), &has(3 * GIB));
        tick.put(on("nvidia0", foreign), &has(4 * GIB));
        tick.put(on("nvidia1", MAIN), &has(GIB));
    });
    let summary = run.summary();
    let of = |part: &super::super::Part| part.figures["gpu_memory_peak_bytes"].value;
    let parts = &summary.parts;
    let gib = |count: u64| Some((count * GIB) as f64);
    assert_eq!((of(&parts.main), of(&parts.descendants)), (gib(3), gib(3)));
    assert_eq!((of(&parts.combined), of(&parts.system)), (gib(6), gib(10)));
    assert_eq!(figure(&summary, "gpus_busy_peak"), Some(1.5));
    assert_eq!(figure(&summary, "gpu_utilization_peak_ratio"), Some(0.75));
    let listed: Vec<_> = summary.gpus[0].processes.iter().map(|user| user.pid).collect();
    assert_eq!(listed, [CHILD.pid, MAIN.pid], "most memory first, and no process of others");
}

#[test]
fn without_known_processes_memory_of_the_run_is_unknown() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "train");
    run.sample(1.0, |tick| {
        tick.put(named("nvidia0"), &busy(0.5, 1, 1));
        tick.put(named("nvidia0"), &uses(GIB));
    });
    let summary = run.summary();
    assert_eq!(figure(&summary, "gpu_memory_peak_bytes"), None);
    assert!(summary.figures["gpu_memory_peak_bytes"].reason.is_some());
}

#[test]
fn memory_that_the_driver_does_not_report_is_not_0() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "train").starts(0.0, CHILD, "worker");
    run.sample(1.0, |tick| {
        for id in [MAIN, CHILD] {
            tick.put(Entity::Process(id), &ProcessMemory { rss: Some(1), ..Default::default() });
        }
        tick.put(named("intel0"), &busy(0.5, 2, 0));
        tick.put(on("intel0", MAIN), &GpuProcessUsage::default());
        tick.put(on("intel0", CHILD), &has(GIB));
    });
    let summary = run.summary();
    let part = |part: &super::super::Part| part.figures["gpu_memory_peak_bytes"].clone();
    assert_eq!(part(&summary.parts.main).value, None, "it has some, how much is not known");
    assert_eq!(part(&summary.parts.descendants).value, Some(GIB as f64));
    let both = part(&summary.parts.combined);
    assert_eq!((both.value, both.upper), (Some(GIB as f64), None));
}

#[test]
fn counters_of_the_driver_are_used_and_instances_are_in_the_whole() {
    let mut run = FakeRun::new();
    for (at, joules, time) in [(1.0, 1000.0, 10.0), (2.0, 1200.0, 10.75)] {
        run.sample(at, |tick| {
            let sampled = GpuActivity { busy: Some(time), observed: Some(at), ..busy(0.1, 0, 0) };
            tick.put(named("nvidia0"), &sampled);
            tick.put(named("nvidia0"), &GpuPower { energy: Some(joules), ..GpuPower::default() });
            tick.put(named("nvidia0:0"), &uses(GIB));
        });
    }
    let summary = run.summary();
    assert_eq!(figure(&summary, "gpu_energy_joules"), Some(200.0));
    assert_eq!(figure(&summary, "gpu_utilization_mean_ratio"), Some(0.75), "not the last 0.1");
    assert_eq!(summary.parts.system.figures["gpu_memory_peak_bytes"].value, None);
    assert_eq!(summary.gpus[1].memory_peak_bytes, Some(GIB as f64));
}

#[test]
fn dropped_or_stuck_energy_counter_is_replaced_by_integrated_power() {
    let of = |counted: [Option<f64>; 3]| {
        let mut run = FakeRun::new();
        for (at, energy) in [1.0, 2.0, 3.0].into_iter().zip(counted) {
            run.sample(at, |tick| {
                let energy_sampled = Some(90.0 * (at - 1.0));
                let power = GpuPower { energy, energy_sampled, ..GpuPower::default() };
                tick.put(named("amd0"), &power);
            });
        }
        figure(&run.summary(), "gpu_energy_joules")
    };
    assert_eq!(of([Some(1000.0), Some(1100.0), Some(1200.0)]), Some(200.0));
    assert_eq!(of([Some(1000.0), None, Some(1200.0)]), Some(200.0), "the counter covers the gap");
    assert_eq!(of([Some(1000.0), Some(1100.0), None]), Some(180.0));
    assert_eq!(of([Some(1000.0); 3]), Some(180.0));
}

#[test]
fn dropped_energy_counter_without_power_gives_no_energy() {
    let of = |counted: &[Option<f64>], clock: Option<f64>| {
        let mut run = FakeRun::new();
        for (second, energy) in counted.iter().enumerate() {
            run.sample(second as f64, |tick| {
                let power =
                    GpuPower { energy: *energy, clock_graphics: clock, ..Default::default() };
                tick.put(named("intel0"), &busy(0.5, 0, 0));
                tick.put(named("intel0"), &power);
            });
        }
        figure(&run.summary(), "gpu_energy_joules")
    };
    let clock = Some(2e9);
    assert_eq!(of(&[Some(50.0), Some(80.0), Some(90.0)], clock), Some(40.0));
    assert_eq!(of(&[Some(50.0), Some(80.0), None], clock), None);
    assert_eq!(of(&[Some(50.0), None, None], None), None, "it never advanced");
    assert_eq!(of(&[Some(50.0), Some(80.0), None], None), Some(30.0), "it was suspended");
}

#[test]
fn mi250_energy_stays_exact_without_second_die() {
    let mut run = FakeRun::new();
    for (at, joules) in [(1.0, 1000.0), (2.0, 1400.0)] {
        run.sample(at, |tick| {
            let energy_sampled = Some(300.0 * at);
            let power = GpuPower { energy: Some(joules), energy_sampled, ..GpuPower::default() };
            tick.put(named("amd0"), &power);
            tick.put(named("amd1"), &busy(0.9, 0, 0));
            let second = GpuPower { temperature: Some(48.0), ..GpuPower::default() };
            tick.put(named("amd1"), &second);
        });
    }
    let energy = &run.summary().figures["gpu_energy_joules"];
    assert_eq!(energy.value, Some(400.0));
    assert_eq!(energy.method, Some(super::super::Method::Sampled));
}

#[test]
fn gpus_hidden_from_the_run_are_not_in_its_utilization() {
    let of = |usable: [Option<bool>; 2]| {
        let mut run = FakeRun::new();
        for (name, usable) in ["nvidia0", "nvidia1"].into_iter().zip(usable) {
            run.event(
                0.0,
                Event::Gpu(Box::new(model::Gpu {
                    name: name.to_owned(),
                    usable,
                    ..model::Gpu::default()
                })),
            );
        }
        for at in [1.0, 2.0] {
            run.sample(at, |tick| {
                tick.put(named("nvidia0"), &busy(0.9, 0, 0));
                tick.put(named("nvidia1"), &busy(0.1, 0, 0));
                tick.put(named("nvidia1"), &uses(GIB));
                let power = GpuPower { energy: Some(100.0 * at), ..GpuPower::default() };
                tick.put(named("nvidia0"), &power);
            });
        }
        run.summary()
    };
    let summary = of([Some(true), Some(false)]);
    assert_eq!(figure(&summary, "gpu_utilization_peak_ratio"), Some(0.9));
    assert_eq!(figure(&summary, "gpus_busy_peak"), Some(0.9));
    assert_eq!(figure(&summary, "gpu_energy_joules"), Some(100.0), "the other has no counter");
    let of_all = summary.parts.system.figures["gpu_memory_peak_bytes"].value;
    assert_eq!(of_all, Some(GIB as f64), "memory of the machine is that of all");
    assert_eq!(figure(&of([None, None]), "gpu_utilization_peak_ratio"), Some(0.5));
    let none = of([Some(false), Some(false)]);
    let busy = &none.figures["gpu_utilization_mean_ratio"];
    assert_eq!(busy.value, None);
    assert!(busy.reason.as_deref().unwrap().contains("CUDA_VISIBLE_DEVICES"), "{busy:?}");
}

#[test]
fn gpu_without_values_does_not_hide_those_of_another() {
    let mut run = FakeRun::new();
    for (at, joules) in [(1.0, 1000.0), (2.0, 1200.0)] {
        run.sample(at, |tick| {
            tick.put(named("nvidia0"), &busy(0.5, 0, 0));
            tick.put(named("nvidia0"), &GpuPower { energy: Some(joules), ..GpuPower::default() });
            tick.put(named("intel0"), &GpuActivity::default());
        });
    }
    let summary = run.summary();
    assert_eq!(figure(&summary, "gpu_energy_joules"), Some(200.0));
    assert_eq!(figure(&summary, "gpus_busy_peak"), Some(0.5));
    assert_eq!(figure(&summary, "gpu_utilization_peak_ratio"), Some(0.5));
    for name in ["gpu_energy_joules", "gpu_utilization_mean_ratio"] {
        let reason = summary.figures[name].reason.as_deref().unwrap();
        assert!(reason.contains("not included"), "{name}: {reason}");
    }
}

#[test]
fn one_poll_gives_no_energy_and_a_used_gpu_is_usable() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "train");
    let hidden =
        model::Gpu { name: "nvidia0".to_owned(), usable: Some(false), ..model::Gpu::default() };
    run.event(0.0, Event::Gpu(Box::new(hidden)));
    run.sample(1.0, |tick| {
        tick.put(Entity::Process(MAIN), &ProcessMemory { rss: Some(1), ..Default::default() });
        tick.put(named("nvidia0"), &busy(0.5, 1, 0));
        tick.put(named("nvidia0"), &GpuPower { energy: Some(7.0), ..GpuPower::default() });
        tick.put(on("nvidia0", MAIN), &has(GIB));
    });
    let summary = run.summary();
    assert_eq!(figure(&summary, "gpu_energy_joules"), None);
    assert_eq!(figure(&summary, "gpus_busy_mean"), Some(0.5), "whatever CUDA_VISIBLE_DEVICES says");
}

#[test]
fn process_that_only_has_a_gpu_open_does_not_make_it_usable() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "train");
    for (name, usable) in [("amd0", true), ("amd1", false)] {
        let usable = Some(usable);
        let gpu = model::Gpu { name: name.to_owned(), usable, ..model::Gpu::default() };
        run.event(0.0, Event::Gpu(Box::new(gpu)));
    }
    for at in [1.0, 2.0] {
        run.sample(at, |tick| {
            tick.put(Entity::Process(MAIN), &ProcessMemory { rss: Some(1), ..Default::default() });
            tick.put(named("amd0"), &busy(0.5, 1, 0));
            tick.put(named("amd1"), &busy(1.0, 0, 0));
            tick.put(on("amd0", MAIN), &has(GIB));
            let open = GpuProcessUsage { memory: Some(2 << 20), ..GpuProcessUsage::default() };
            tick.put(on("amd1", MAIN), &open);
        });
    }
    let summary = run.summary();
    assert_eq!(figure(&summary, "gpus_busy_mean"), Some(0.5), "of the first alone");
    let usable: Vec<_> = summary.gpus.iter().map(|gpu| gpu.is.usable).collect();
    assert_eq!(usable, [Some(true), Some(false)]);
    let users: Vec<_> = summary.gpus.iter().map(|gpu| gpu.processes.len()).collect();
    assert_eq!(users, [1, 0]);
    let memory = figure(&summary, "gpu_memory_peak_bytes");
    assert_eq!(memory, Some((GIB + (2 << 20)) as f64), "it has that all the same");
}

#[test]
fn process_without_values_is_listed_and_does_not_make_a_gpu_usable() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "viewer");
    run.sample(1.0, |tick| {
        tick.put(Entity::Process(MAIN), &ProcessMemory { rss: Some(1), ..Default::default() });
        tick.put(named("intel0"), &busy(0.0, 1, 0));
        tick.put(on("intel0", MAIN), &GpuProcessUsage::default());
    });
    let summary = run.summary();
    assert_eq!(summary.gpus[0].is.usable, None, "its GPU is suspended and was not read");
    assert_eq!(summary.gpus[0].processes.len(), 1);
}

#[test]
fn mig_instance_alone_has_memory_and_a_reason_for_the_rest() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| tick.put(named("nvidia0:1"), &uses(GIB)));
    let summary = run.summary();
    let system = &summary.parts.system.figures["gpu_memory_peak_bytes"];
    assert_eq!(system.value, Some(GIB as f64));
    let busy = &summary.figures["gpus_busy_mean"];
    assert!(busy.reason.as_deref().unwrap().starts_with("MIG instances"), "{busy:?}");
}

#[test]
fn without_gpus_no_figure_is_0() {
    let mut run = FakeRun::new();
    run.sample(1.0, |_| {});
    let summary = run.summary();
    assert_eq!(summary.gpus, []);
    for name in ["gpu_memory_peak_bytes", "gpu_energy_joules", "gpus_busy_mean"] {
        assert_eq!(figure(&summary, name), None, "{name}");
    }
}

#[test]
fn memory_utilization_is_by_all_samples_or_else_by_polls() {
    let mut run = FakeRun::new();
    for (at, time) in [(1.0, 3.0), (3.0, 4.0)] {
        run.sample(at, |tick| {
            let polled = GpuActivity { memory_utilization: Some(at / 10.0), ..busy(0.9, 0, 0) };
            tick.put(named("nvidia0"), &polled);
            let (memory_busy, observed) = (Some(time), Some(at));
            let sampled = GpuActivity { busy: Some(at), memory_busy, observed, ..polled };
            tick.put(named("nvidia1"), &sampled);
        });
    }
    let summary = run.summary();
    let of = |gpu: usize| {
        let gpu = &summary.gpus[gpu];
        (gpu.memory_utilization_mean_ratio, gpu.memory_utilization_peak_ratio)
    };
    let why = "the mean of all samples is above any poll";
    assert_eq!((of(0), of(1)), ((Some(0.1), Some(0.3)), (Some(0.5), Some(0.5))), "{why}");
}

#[test]
fn process_utilization_is_weighted_by_time() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "train").starts(0.0, CHILD, "worker");
    // Time, and the utilization of each; a process that is not on the GPU has no row.
    let ticks = [
        (1.0, Some(None), None),
        (1.5, Some(Some(1.0)), None),
        (2.5, Some(Some(0.0)), Some(Some(0.25))),
        (4.5, Some(None), None),
        (5.5, Some(Some(0.5)), Some(Some(0.75))),
    ];
    for (at, main, other) in ticks {
        run.sample(at, |tick| {
            tick.put(named("nvidia0"), &busy(0.5, 2, 0));
            for (id, share) in [(MAIN, main), (CHILD, other)] {
                let Some(utilization) = share else { continue };
                let share =
                    GpuProcessUsage { memory: Some(1), utilization, ..GpuProcessUsage::default() };
                tick.put(on("nvidia0", id), &share);
            }
        });
    }
    let summary = run.summary();
    let users = &summary.gpus[0].processes;
    let mean = |id: ProcessId| {
        users.iter().find(|user| user.pid == id.pid).unwrap().utilization_mean_ratio
    };
    // All of 0.5 s, nothing of 1 s, half of 3 s; and of the other a second each.
    assert_eq!((mean(MAIN), mean(CHILD)), (Some(2.0 / 4.5), Some(0.5)));
}
