//! Values that cover a part of the run only, or the time before it.

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuPower, GpuProcessUsage, ProcessMemory};

#[test]
fn lost_or_silent_gpu_counts_for_its_own_time_only() {
    let mut run = FakeRun::new();
    for second in 0..=10 {
        let lost = second > 2;
        run.sample(f64::from(second), |tick| {
            let power = |watts| GpuPower { draw: Some(watts), ..GpuPower::default() };
            tick.put(named("nvidia0"), &busy(0.5, 0, 0));
            if !lost {
                tick.put(named("nvidia1"), &busy(1.0, 0, 0));
            }
            // Its driver does not answer for five seconds, and then it is idle.
            let silent = (3..8).contains(&second);
            if silent {
                tick.put(named("amd0"), &GpuActivity::default());
            } else {
                tick.put(named("amd0"), &busy(if second < 3 { 0.8 } else { 0.0 }, 0, 0));
                tick.put(named("amd0"), &power(if second < 3 { 300.0 } else { 100.0 }));
            }
        });
    }
    let summary = run.summary();
    let of = |place: usize| &summary.gpus[place];
    assert_eq!(of(1).observed_seconds, Some(2.0));
    assert_eq!(of(1).utilization_mean_ratio, Some(1.0));
    // Known from 0 to 3 and from 8 to 10.
    assert_eq!(of(2).observed_seconds, Some(2.0 + 1.0 + 2.0));
    assert_eq!(of(2).power_mean_watts, Some((3.0 * 300.0 + 2.0 * 100.0) / 5.0));
    // Values of the first second are of the time before the run. A lost GPU is idle; one whose
    // driver does not answer is not known to be.
    let amd = 2.0 * 0.8 / 4.0;
    let figure = &summary.figures["gpus_busy_mean"];
    let mean = figure.value.unwrap();
    assert!((mean - (0.5 + 1.0 * 0.2 + amd)).abs() < 1e-9, "{mean}");
    let reason = figure.reason.as_deref().unwrap();
    assert!(reason.starts_with("GPU values cover 5.00 s of 10.00 s"), "{reason}");
}

#[test]
fn time_without_answers_does_not_change_the_mean() {
    let mut run = FakeRun::new();
    for second in 0..=14 {
        run.sample(f64::from(second), |tick| match second {
            4..10 => tick.put(named("nvidia0"), &GpuActivity::default()),
            _ => tick.put(named("nvidia0"), &busy(0.9, 0, 0)),
        });
    }
    let summary = run.summary();
    let near = |value: Option<f64>| (value.unwrap() - 0.9).abs() < 1e-9;
    assert!(near(figure(&summary, "gpu_utilization_mean_ratio")), "{:?}", summary.figures);
    assert!(near(summary.gpus[0].utilization_mean_ratio));
    let reason = summary.figures["gpu_utilization_mean_ratio"].reason.as_deref().unwrap();
    assert!(reason.contains("8.00 s of 14.00 s"), "{reason}");
}

#[test]
fn gpu_of_a_driver_that_starts_slowly_was_not_idle_before() {
    let mut run = FakeRun::new();
    for half in 0..=10 {
        run.sample(f64::from(half) / 2.0, |tick| {
            tick.put(named("amd0"), &busy(0.0, 0, 0));
            if half >= 4 {
                tick.put(named("nvidia0"), &busy(1.0, 0, 0));
            }
        });
    }
    let summary = run.summary();
    assert_eq!(figure(&summary, "gpus_busy_mean"), Some(1.0));
    assert_eq!(figure(&summary, "gpu_utilization_mean_ratio"), Some(0.5));
}

#[test]
fn utilization_before_the_run_is_not_counted() {
    let of = |until: u32, sampled: bool| {
        let mut run = FakeRun::new();
        for tenth in 0..=until {
            let at = f64::from(tenth) / 10.0;
            run.sample(at, |tick| {
                let polled = busy(if tenth < 10 { 1.0 } else { 0.0 }, 0, 0);
                let (time, observed) = (Some(7.0).filter(|_| sampled), Some(at));
                let all = GpuActivity { busy: time, observed, ..polled };
                tick.put(named("nvidia0"), &all);
            });
        }
        run.summary()
    };
    let names = ["gpu_utilization_mean_ratio", "gpu_utilization_peak_ratio", "gpus_busy_peak"];
    for name in names {
        let short = &of(3, false).figures[name];
        assert_eq!(short.value, None, "{name}");
        assert!(short.reason.as_deref().unwrap().contains("of the last second"), "{short:?}");
        assert_eq!(figure(&of(40, false), name), Some(0.0), "{name}");
        assert_eq!(figure(&of(3, true), name), Some(0.0), "{name} by the driver's samples");
    }
}

#[test]
fn driver_accounting_above_polls_is_a_lower_bound() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "train").starts(0.0, CHILD, "worker");
    run.sample(1.0, |tick| {
        for id in [MAIN, CHILD] {
            tick.put(Entity::Process(id), &ProcessMemory { rss: Some(1), ..Default::default() });
        }
        tick.put(named("nvidia0"), &busy(0.5, 2, 0));
        let account = GpuProcessUsage { memory_peak: Some(30 * GIB), ..has(GIB) };
        tick.put(on("nvidia0", CHILD), &account);
        tick.put(on("nvidia0", MAIN), &has(2 * GIB));
    });
    let summary = run.summary();
    let all = &summary.figures["gpu_memory_peak_bytes"];
    let most = Some((30 * GIB) as f64);
    assert_eq!((all.value, all.lower, all.upper), (most, most, None));
    let of = |part: &super::super::super::Part| part.figures["gpu_memory_peak_bytes"].value;
    assert_eq!(of(&summary.parts.main), Some((2 * GIB) as f64));
    assert_eq!(of(&summary.parts.descendants), most);
}

#[test]
fn energy_of_a_part_of_the_run_says_so() {
    let mut run = FakeRun::new();
    for second in 0..=10 {
        run.sample(f64::from(second), |tick| {
            tick.put(named("nvidia0"), &busy(0.5, 0, 0));
            let energy = (second < 3).then(|| 50.0 * f64::from(second));
            tick.put(named("nvidia0"), &GpuPower { energy, ..GpuPower::default() });
        });
    }
    let energy = &run.summary().figures["gpu_energy_joules"];
    assert_eq!(energy.value, Some(100.0));
    let reason = energy.reason.as_deref().unwrap();
    assert!(reason.starts_with("GPU values cover 2.00 s of 10.00 s"), "{reason}");
}

#[test]
fn exited_process_keeps_the_memory_of_its_last_row() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "train").starts(0.0, CHILD, "worker");
    run.sample(1.0, |tick| {
        for id in [MAIN, CHILD] {
            tick.put(Entity::Process(id), &ProcessMemory { rss: Some(1), ..Default::default() });
        }
        tick.put(named("nvidia0"), &busy(0.5, 0, 0));
    });
    run.exits(5.0, CHILD);
    run.sample(10.0, |tick| {
        tick.put(named("nvidia0"), &busy(0.5, 0, 0));
        tick.put(on("nvidia0", CHILD), &has(40 * GIB));
    });
    let summary = run.summary();
    assert_eq!(figure(&summary, "gpu_memory_peak_bytes"), Some((40 * GIB) as f64));
    assert_eq!(summary.gpus[0].processes[0].name, "worker");
}
