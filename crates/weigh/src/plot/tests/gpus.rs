//! Charts of GPUs, whose readings are older than their ticks.

use super::*;
use crate::catalog::Row;
use crate::catalog::metrics::{
    GpuActivity, GpuLink, GpuMemory, GpuPower, GpuProcessUsage, GpuThrottle,
};
use crate::model::Name;
use crate::testing::GIB;

/// Ticks and the age of their readings: the third has the second's reading again.
const SAMPLES: [(f64, f64); 6] =
    [(1.0, 0.1), (2.0, 0.7), (3.0, 1.7), (4.0, 0.0), (5.0, 0.9), (6.0, 0.2)];

/// A run on so many GPUs: each is fully utilised and draws 500 W of 700 W.
fn trained(gpus: usize, requested: &[&'static Metric]) -> RunCharts {
    let mut run = FakeRun::new();
    run.starts(0.0, id(70), "train.py");
    for (at, age) in SAMPLES {
        let read = at - age;
        run.sample_some(at, |tick| {
            for number in 0..gpus {
                let gpu = Name::new(format!("nvidia{number}").as_bytes());
                let activity = GpuActivity {
                    utilization: Some(1.0),
                    busy: Some(read),
                    observed: Some(read),
                    age: Some(age),
                    ..GpuActivity::default()
                };
                let (used, total) = (Some(40 * GIB), Some(80 * GIB));
                let memory = GpuMemory { used, total, ..GpuMemory::default() };
                let power = GpuPower {
                    draw: Some(500.0),
                    limit: Some(700.0),
                    energy: Some(500.0 * read),
                    ..GpuPower::default()
                };
                tick.put(Entity::Named(gpu), &activity);
                tick.put(Entity::Named(gpu), &memory);
                tick.put(Entity::Named(gpu), &power);
                let reasons = GpuThrottle { reasons: Some(4), ..GpuThrottle::default() };
                tick.put(Entity::Named(gpu), &reasons);
                let link = GpuLink { pcie_generation: Some(5), ..GpuLink::default() };
                tick.put(Entity::Named(gpu), &link);
                let share = GpuProcessUsage { memory: Some(GIB), ..GpuProcessUsage::default() };
                for pid in [7, 70] {
                    tick.put(Entity::OnGpu(gpu, id(pid)), &share);
                }
            }
        });
    }
    with_figures(&run, chart_builder(&run, requested)).0
}

#[test]
fn gpu_utilisation_stays_below_100_percent_and_power_is_steady() {
    let run_charts = trained(2, &[]);
    let busy = series(chart(&run_charts, "gpu.activity.busy"), "nvidia0");
    assert!(busy.iter().all(|share| (share - 1.0).abs() < 1e-6), "{busy:?}");
    let watts = series(chart(&run_charts, "gpu.power.energy"), "nvidia1");
    assert!(watts.iter().all(|watts| (watts - 500.0).abs() < 1e-3), "{watts:?}");
}

#[test]
fn auxiliary_metrics_are_drawn_only_on_request() {
    let names = |run_charts: &RunCharts| -> Vec<String> {
        run_charts.gpus.iter().map(|chart| chart.name.clone()).collect()
    };
    let run_charts = trained(2, &[]);
    let wanted = [
        "gpu.activity.busy",
        "gpu.memory.used",
        "gpu.power.draw",
        "gpu.power.energy",
        "gpu_process.share.memory",
    ];
    assert_eq!(names(&run_charts), wanted);
    let limits = |name: &str| -> Vec<(String, f64)> {
        let limits = &chart(&run_charts, name).limits;
        limits.iter().map(|limit| (limit.name.clone(), limit.value)).collect()
    };
    assert_eq!(limits("gpu.power.draw"), [("power limit".to_owned(), 700.0)]);
    assert_eq!(limits("gpu.memory.used"), [("total".to_owned(), 80.0 * GIB as f64)]);
    let groups = [GpuActivity::METRICS, GpuThrottle::METRICS, GpuLink::METRICS];
    for name in ["age", "observed", "utilization", "reasons", "pcie_generation"] {
        let mut all = groups.into_iter().flatten();
        let metric = all.find(|metric| metric.field == name).unwrap();
        assert!(names(&trained(2, &[metric])).contains(&metric.name()), "{name}");
    }
}

#[test]
fn processes_of_the_run_come_first_and_have_names() {
    let run_charts = trained(1, &[]);
    let memory = chart(&run_charts, "gpu_process.share.memory");
    let names: Vec<&str> = memory.series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["train.py 70 · nvidia0", "not the run's 7 · nvidia0"]);
}

#[test]
fn heat_map_has_a_note_and_a_scale_of_its_limit() {
    let run_charts = trained(12, &[]);
    let busy = chart(&run_charts, "gpu.activity.busy");
    assert_eq!(busy.form, ChartForm::Heatmap);
    assert!(busy.note.starts_with("Time in which it was busy"), "{}", busy.note);
    assert!(busy.note.ends_with("Each cell shows its highest value."), "{}", busy.note);
    assert_eq!(busy.brightest(), 1.0);
    assert_eq!(chart(&run_charts, "gpu.memory.used").brightest(), 80.0 * GIB as f64);
    assert_eq!(chart(&run_charts, "gpu.power.draw").brightest(), 700.0);
    let names: Vec<&str> = busy.series.iter().map(|series| &*series.name).collect();
    assert_eq!((names[1], names[2], names[11]), ("nvidia1", "nvidia2", "nvidia11"));
    let drawn = draw(chart(&run_charts, "gpu.memory.used"), ALONE);
    assert!(!drawn.contains("class=\"limit\""), "cells have no height");
}
