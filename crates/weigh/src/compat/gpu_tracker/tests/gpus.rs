//! GPUs: a known zero is zero, and what is not known is missing.

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuProcessUsage};
use crate::model::{Gpu, Name};

const GB: u64 = 1_000 * MB;

/// A run on a machine whose GPUs are sampled.
fn gpu_run() -> FakeRun {
    let mut run = small_machine();
    run.manifest.absent.clear();
    run.manifest.interval_seconds = 0.5;
    run.starts(0.0, MAIN, "work");
    run
}

fn gpu_event(name: &str, memory_bytes: Option<u64>) -> Event {
    Event::Gpu(Box::new(Gpu { name: name.to_owned(), memory_bytes, ..Gpu::default() }))
}

/// A sample of a GPU: utilization, memory in use, and the number of unknown processes.
fn gpu_sample(tick: &mut Tick, gpu: &str, busy: Option<f64>, used: Option<u64>, unknown: u64) {
    let entity = Entity::Named(Name::new(gpu.as_bytes()));
    let (processes, processes_unknown) = (Some(1), Some(unknown));
    let activity =
        GpuActivity { utilization: busy, processes, processes_unknown, ..GpuActivity::default() };
    tick.put(entity, &activity);
    tick.put(entity, &GpuMemory { used, ..GpuMemory::default() });
}

/// The JSON of a run, and the cells of GPUs in its tracking file: constants, then each row.
fn exported_gpus(run: FakeRun) -> (serde_json::Value, Vec<String>) {
    let (directory, recording) = run.recorded(2.0, 0.5);
    let out = directory.path().join("out");
    export(
        &recording,
        &GpuTrackerOptions::default(),
        &[GpuTrackerFormat::Json, GpuTrackerFormat::Csv],
        &out,
        false,
    )
    .unwrap();
    let json = std::fs::read_to_string(out.join("gpu-tracker.json")).unwrap();
    let csv = std::fs::read_to_string(out.join("tracking.csv")).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let constants = [lines[1][4], lines[1][7], lines[1][8]].join(",");
    let rows = lines[3..].iter().map(|cells| cells[4..10].join(","));
    (serde_json::from_str(&json).unwrap(), [constants].into_iter().chain(rows).collect())
}

fn gpu_text(json: &serde_json::Value) -> String {
    format!("{} {}", json["max_gpu_ram"], json["gpu_utilization"])
}

#[test]
fn machine_without_gpus_has_the_zeros_of_gpu_tracker() {
    let mut run = small_machine();
    run.sample(1.0, |tick| process(tick, MAIN, 0.0, MB, None));
    let (json, cells) = exported_gpus(run);
    assert_eq!(cells, ["0.0,0,0", "0.0,0.0,0.0,0.0,0.0,0.0"]);
    assert!(!gpu_text(&json).contains("null"), "{json:#}");
    assert_eq!(
        (&json["max_gpu_ram"]["main"], &json["gpu_utilization"]["system_gpu_count"]),
        (&0.0.into(), &0.into())
    );
}

#[test]
fn driver_that_never_answers_leaves_all_values_unknown() {
    let mut run = gpu_run();
    run.sample(1.0, |tick| process(tick, MAIN, 0.0, MB, None));
    let (json, cells) = exported_gpus(run);
    assert_eq!(cells, [",,", ",,,,,"]);
    assert_eq!(gpu_text(&json).matches("null").count(), 5 + 6, "{json:#}");
    let (_directory, recording) = gpu_run().recorded(1.0, 0.5);
    assert_eq!(gpu_count(&recording), None);
}

#[test]
fn values_hidden_by_a_container_or_a_card_are_missing_and_the_rest_is_there() {
    let mut run = gpu_run();
    run.event(0.0, gpu_event("nvidia0", Some(80 * GB)));
    run.event(0.1, gpu_event("nvidia0", Some(80 * GB)));
    run.sample(0.0, |tick| process(tick, MAIN, 0.0, MB, None));
    // Before the driver answers nothing is known.
    run.sample(0.5, |tick| process(tick, MAIN, 0.0, MB, None));
    run.sample(1.0, |tick| {
        process(tick, MAIN, 0.1, MB, None);
        gpu_sample(tick, "nvidia0", None, Some(4 * GB), 1);
    });
    let (json, cells) = exported_gpus(run);
    assert_eq!(cells, ["80.0,1,1", ",,,,,", ",,,4.0,,"]);
    let ram = &json["max_gpu_ram"];
    assert_eq!((&ram["system"], &ram["system_capacity"]), (&4.0.into(), &80.0.into()));
    assert!(ram["main"].is_null() && ram["combined"].is_null(), "{ram:#}");
    let busy = &json["gpu_utilization"]["gpu_percentages"];
    assert!(busy.as_object().unwrap().values().all(|percent| percent.is_null()), "{busy:#}");
}

#[test]
fn card_without_utilization_does_not_count_as_idle() {
    let mut run = gpu_run();
    for name in ["nvidia0", "nvidia1", "intel0"] {
        run.event(0.0, gpu_event(name, Some(80 * GB)));
    }
    run.sample(0.0, |tick| process(tick, MAIN, 0.0, MB, None));
    for (seconds, second) in [(0.5, Some(0.5)), (1.0, None), (1.5, None)] {
        run.sample(seconds, |tick| {
            process(tick, MAIN, seconds / 10.0, MB, None);
            gpu_sample(tick, "nvidia0", Some(0.5), Some(4 * GB), 0);
            gpu_sample(tick, "nvidia1", second, Some(GB), 0);
            gpu_sample(tick, "intel0", None, None, 0);
        });
    }
    let (_, cells) = exported_gpus(run);
    let busy: Vec<&str> = cells[1..].iter().map(|row| row.rsplit("5.0,").next().unwrap()).collect();
    assert_eq!(busy, ["100.0,50.0", ",", ","], "gpu-tracker does not know Intel GPUs");
    let mut run = gpu_run();
    run.event(0.0, gpu_event("nvidia0", None)).event(0.0, gpu_event("nvidia1", None));
    run.sample(1.0, |tick| {
        gpu_sample(tick, "nvidia0", Some(0.5), None, 0);
        gpu_sample(tick, "nvidia1", None, None, 0);
    });
    let busy = &exported_gpus(run).0["gpu_utilization"]["gpu_percentages"];
    assert!(busy.as_object().unwrap().values().all(|percent| percent.is_null()), "{busy:#}");
}

#[test]
fn chosen_uuids_restrict_utilization_and_neither_count_nor_capacity() {
    let mut run = gpu_run();
    for (name, uuid) in [("nvidia0", "GPU-a"), ("nvidia1", "GPU-b")] {
        let (name, uuid) = (name.to_owned(), Some(uuid.to_owned()));
        let gpu = Gpu { name, uuid, memory_bytes: Some(80 * GB), ..Gpu::default() };
        run.event(0.0, Event::Gpu(Box::new(gpu)));
    }
    for (seconds, second) in [(0.0, 0.25), (0.5, 0.75), (1.0, 0.25)] {
        run.sample(seconds, |tick| {
            process(tick, MAIN, 0.0, MB, None);
            gpu_sample(tick, "nvidia0", Some(1.0), Some(4 * GB), 0);
            gpu_sample(tick, "nvidia1", Some(second), Some(GB), 0);
        });
    }
    let (directory, recording) = run.recorded(1.1, 0.5);
    let uuids = Some(vec!["GPU-b".to_owned()]);
    let options = GpuTrackerOptions { gpu_uuids: uuids, ..GpuTrackerOptions::default() };
    let out = directory.path().join("out");
    export(&recording, &options, &[GpuTrackerFormat::Json, GpuTrackerFormat::Csv], &out, false)
        .unwrap();
    let json = std::fs::read_to_string(out.join("gpu-tracker.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let ram = &json["max_gpu_ram"];
    assert_eq!((&ram["system_capacity"], &ram["system"]), (&160.0.into(), &5.0.into()));
    let busy = &json["gpu_utilization"];
    assert_eq!((&busy["system_gpu_count"], &busy["n_expected_gpus"]), (&2.into(), &1.into()));
    let percentages = &busy["gpu_percentages"];
    assert_eq!(percentages["max_sum_percent"], 75.0, "{busy:#}");
    assert_eq!(percentages["max_hardware_percent"], 75.0, "{busy:#}");
    assert!(percentages["mean_sum_percent"].as_f64().is_some_and(|mean| mean < 76.0), "{busy:#}");
    let csv = std::fs::read_to_string(out.join("tracking.csv")).unwrap();
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!([lines[1][4], lines[1][7], lines[1][8]], ["160.0", "2", "1"]);
    let rows = lines[3..].iter().map(|cells| [cells[7], cells[8], cells[9]]);
    assert_eq!(rows.collect::<Vec<_>>(), [["5.0", "75.0", "75.0"], ["5.0", "25.0", "25.0"]]);
}

#[test]
fn process_that_uses_no_gpu_has_zero() {
    let mut run = gpu_run();
    run.event(0.0, gpu_event("nvidia0", Some(80 * GB))).event(0.0, gpu_event("nvidia1", None));
    run.sample(1.0, |tick| {
        process(tick, MAIN, 0.0, MB, None);
        gpu_sample(tick, "nvidia0", Some(0.5), Some(4 * GB), 0);
        gpu_sample(tick, "nvidia1", Some(0.0), Some(GB), 0);
        let entity = Entity::OnGpu(Name::new(b"nvidia0"), MAIN);
        tick.put(entity, &GpuProcessUsage { memory: Some(3 * GB), ..GpuProcessUsage::default() });
    });
    let (json, cells) = exported_gpus(run);
    // The total capacity is not known where one GPU does not report its memory.
    assert_eq!(cells, [",2,2", "3.0,0.0,3.0,5.0,50.0,25.0"]);
    let ram = &json["max_gpu_ram"];
    assert_eq!((&ram["main"], &ram["descendants"]), (&3.0.into(), &0.0.into()), "{json:#}");
    assert!(json["max_gpu_ram"]["system_capacity"].is_null(), "{json:#}");
}

#[test]
fn mig_instance_alone_does_not_make_a_machine_without_gpus() {
    let mut run = gpu_run();
    run.event(0.0, gpu_event("nvidia0:1", Some(20 * GB)));
    run.sample(1.0, |tick| {
        process(tick, MAIN, 0.0, MB, None);
        gpu_sample(tick, "nvidia0:1", Some(0.5), Some(4 * GB), 0);
    });
    assert_eq!(exported_gpus(run).1, [",,", "0.0,0.0,0.0,4.0,,"]);
}

#[test]
fn unreported_memory_of_a_process_is_not_zero() {
    let mut run = gpu_run();
    run.event(0.0, gpu_event("nvidia0", Some(80 * GB)));
    run.sample(1.0, |tick| {
        process(tick, MAIN, 0.0, MB, None);
        gpu_sample(tick, "nvidia0", Some(0.5), Some(4 * GB), 0);
        tick.put(Entity::OnGpu(Name::new(b"nvidia0"), MAIN), &GpuProcessUsage::default());
    });
    let (json, cells) = exported_gpus(run);
    assert_eq!(cells[1], ",0.0,,4.0,50.0,50.0");
    assert!(json["max_gpu_ram"]["main"].is_null(), "{json:#}");
}
