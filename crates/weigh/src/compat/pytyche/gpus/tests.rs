//! Tables and summary of GPUs with known values.

use super::super::tests::{exported, machine};
use super::*;
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuPower};
use crate::compat::python::dumps_line;
use crate::compat::pytyche::{self, ResourceSummary, import, resources};
use crate::export::tests::small_machine;
use crate::model;
use crate::record::Recording;
use crate::testing::FakeRun;

/// A GPU of the recording.
fn gpu(name: &str, model: &str) -> Event {
    Event::Gpu(Box::new(model::Gpu {
        name: name.to_owned(),
        uuid: Some(format!("GPU-{name}")),
        model: Some(model.to_owned()),
        ..model::Gpu::default()
    }))
}

/// A sample of a GPU that reports everything.
fn busy(tick: &mut Tick, name: &str, share: f64, used: u64, watts: Option<f64>) {
    let entity = Entity::Named(Name::new(name.as_bytes()));
    let activity = GpuActivity {
        utilization: Some(share),
        memory_utilization: Some(share / 2.0),
        encoder: Some(0.0),
        decoder: None,
        ..GpuActivity::default()
    };
    tick.put(entity, &activity);
    let (used, total) = (Some(used), Some(80 << 30));
    tick.put(entity, &GpuMemory { used, total, bar1_used: Some(3 << 20), ..GpuMemory::default() });
    let power = GpuPower {
        draw: watts,
        temperature: Some(61.0),
        clock_sm: Some(1.98e9),
        clock_memory: Some(2.619e9),
        ..GpuPower::default()
    };
    tick.put(entity, &power);
}

/// A file of an export.
fn file(recording: &Recording, name: &str) -> Vec<String> {
    let directory = tempfile::tempdir().unwrap();
    pytyche::export(recording, directory.path(), false).unwrap();
    let text = std::fs::read_to_string(directory.path().join(name)).unwrap();
    text.lines().map(str::to_owned).collect()
}

/// Two GPUs, of which one reports no power and is lost for a while.
fn two_gpus() -> FakeRun {
    let mut run = small_machine();
    run.event(0.0, gpu("nvidia1", "H100, SXM")).event(0.0, gpu("nvidia0", "H100"));
    run.event(0.0, gpu("nvidia0:1", "MIG 1g.10gb"));
    run.sample(0.0, |tick| machine(tick, "0 0 0 0"));
    // The first answer arrives a moment later, while weigh samples often.
    for at in [0.2, 0.4] {
        run.sample(at, |tick| {
            busy(tick, "nvidia1", 0.0, 5 << 20, None);
            busy(tick, "nvidia0", 0.9, (4 << 30) + 4095, Some(350.126));
            busy(tick, "nvidia0:1", 1.0, 1, None);
        });
    }
    run.sample(1.0, |tick| {
        machine(tick, "25 0 0 75");
        busy(tick, "nvidia0", 0.3, 1 << 30, Some(100.0));
    });
    run
}

#[test]
fn gpus_are_written_as_nvidia_smi_prints_them() {
    let (_run, recording) = two_gpus().recorded(1.0, 1.0);
    assert_eq!(
        file(&recording, "hw_metrics.csv"),
        [
            "2023/11/14 22:13:20.200, 90, 45, 4096, 81920, 350.13, 61, 1980, 2619",
            "2023/11/14 22:13:20.200, 0, 0, 5, 81920, [N/A], 61, 1980, 2619",
            "2023/11/14 22:13:21.000, 30, 15, 1024, 81920, 100.00, 61, 1980, 2619",
            "2023/11/14 22:13:21.000, [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A], [N/A]",
        ]
    );
    assert_eq!(
        file(&recording, "hw_dmon.csv"),
        [
            "# gpu     sm    mem    enc    dec     fb   bar1 ",
            "# Idx      %      %      %      %     MB     MB ",
            "    0     90     45      0      -   4096      3 ",
            "    1      0      0      0      -      5      3 ",
            "    0     30     15      0      -   1024      3 ",
            "    1      -      -      -      -      -      - ",
        ]
    );
    let apart = file(&recording, "hw_metrics_gpus.csv");
    assert!(apart[0].starts_with("timestamp, index, uuid, name, utilization.gpu [%], "));
    assert_eq!(
        apart[2],
        "2023/11/14 22:13:20.200, 1, GPU-nvidia1, H100  SXM, 0, 0, 5, 81920, [N/A], 61, 1980, 2619"
    );
    assert!(apart.iter().all(|line| line.split(", ").count() == 12), "{apart:#?}");
}

#[test]
fn malformed_model_name_breaks_no_row_and_is_read_back() {
    let mut run = small_machine();
    run.event(0.0, gpu("nvidia0", "H100\n2026/11/15, \x1b[31m\r, 7"));
    for at in [0.0, 1.0, 2.0] {
        run.sample(at, |tick| busy(tick, "nvidia0", 0.5, 4 << 30, Some(100.0)));
    }
    let (_run, recording) = run.recorded(2.0, 1.0);
    let directory = tempfile::tempdir().unwrap();
    pytyche::export(&recording, directory.path(), false).unwrap();
    let imported = import::read(directory.path()).unwrap();
    let file = &imported.files[0];
    assert_eq!((file.name.as_str(), file.unreadable_lines), ("hw_metrics_gpus.csv", 0), "{file:?}");
    let [gpu] = &imported.gpus[..] else { panic!("{imported:#?}") };
    assert_eq!(gpu.model.as_deref(), Some(r"H100\n2026/11/15  \u{1b}[31m\r  7"));
    assert_eq!(gpu.memory_peak_bytes, Some(4 << 30));
}

#[test]
fn gpus_of_two_vendors_are_numbered_consecutively() {
    let entry = |name: &str| Entry::new(Duration::ZERO, gpu(name, "x"));
    let indices = |names: &[&str]| -> String {
        let entries: Vec<_> = names.iter().map(|name| entry(name)).collect();
        format!("{:?}", whole_gpus(&entries))
    };
    let both = indices(&["nvidia0", "amd0", "amd0"]);
    assert_eq!((both.matches("index: 0").count(), both.matches("index: 1").count()), (1, 1));
    assert!(indices(&["nvidia3"]).contains("index: 3"), "a chosen one keeps its number");
    assert_eq!(indices(&["nvidia0:1"]), "[]");
}

#[test]
fn gpu_that_was_never_sampled_has_no_file_and_this_is_reported() {
    let mut run = small_machine();
    run.event(0.0, gpu("nvidia0", "H100")).sample(0.0, |_| {});
    let (_run, recording) = run.recorded(1.0, 1.0);
    let (_, _, missing) = exported(&recording);
    let message = "hw_metrics.csv is not written: no sample of a GPU is recorded";
    assert!(missing.contains(&message.to_owned()), "{missing:?}");
}

#[test]
fn summary_has_the_keys_of_pytyche_and_null_for_unknown_values() {
    let (_run, recording) = two_gpus().recorded(1.0, 1.0);
    let used = resources(&recording).unwrap();
    // Utilization in the first second is also of the time before the run: only 0.3 of nvidia0 counts.
    assert_eq!(
        dumps_line(&used.to_dict()),
        r#"{"peak_vram_mb": 4096.0, "gpu_util_mean_pct": 30.0, "gpu_util_max_pct": 30.0, "power_watts_mean": 350.1, "power_watts_max": 350.1, "cpu_usr_mean_pct": 25.0, "cpu_idle_mean_pct": 75.0, "mem_util_mean_pct": 15.0, "mem_util_max_pct": 15.0}"#
    );
    let mut run = small_machine();
    run.sample(0.0, |_| {});
    let (_run, recording) = run.recorded(1.0, 1.0);
    assert_eq!(
        dumps_line(&resources(&recording).unwrap().to_dict()),
        r#"{"peak_vram_mb": null, "gpu_util_mean_pct": null, "gpu_util_max_pct": null, "power_watts_mean": null, "power_watts_max": null, "cpu_usr_mean_pct": null, "cpu_idle_mean_pct": null}"#
    );
}

#[test]
fn memory_utilization_of_zero_is_left_out_as_in_pytyche() {
    let idle = ResourceSummary { mem_util_mean_pct: Some(0.0), ..ResourceSummary::default() };
    assert_eq!(idle.to_dict().get("mem_util_max_pct"), None);
}
