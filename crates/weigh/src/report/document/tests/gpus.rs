//! Reports with GPUs that the run used, and with one that only drives the desktop.

use super::*;
use crate::catalog::metrics::{GpuActivity, GpuMemory, GpuPower, GpuProcessUsage};
use crate::model::{Entity, Gpu, Name};
use crate::report::github;

const GIB: u64 = 1 << 30;

/// Eight seconds on so many GPUs of 80 GiB; the run uses memory on each.
fn on_gpus(count: usize, own: u64, busy: Option<f64>) -> Document {
    let mut run = ordinary();
    let name = |number: usize| format!("nvidia{number}");
    for number in 0..count {
        let (name, memory_bytes) = (name(number), Some(80 * GIB));
        let gpu = Gpu { name, memory_bytes, usable: Some(true), ..Gpu::default() };
        run.event(0.0, Event::Gpu(Box::new(gpu)));
    }
    for second in 1..=8 {
        run.sample(f64::from(second), |tick| {
            cpu(tick, MAIN, 2.0 * f64::from(second), 0.0);
            for number in 0..count {
                let gpu = Name::new(name(number).as_bytes());
                let activity = GpuActivity {
                    utilization: busy,
                    processes: Some(u64::from(own > 0)),
                    processes_unknown: Some(0),
                    age: Some(0.0),
                    ..GpuActivity::default()
                };
                let memory = GpuMemory { used: Some(40 * GIB), ..GpuMemory::default() };
                let energy = Some(100.0 * f64::from(second));
                tick.put(Entity::Named(gpu), &activity);
                tick.put(Entity::Named(gpu), &memory);
                tick.put(Entity::Named(gpu), &GpuPower { energy, ..GpuPower::default() });
                if own > 0 {
                    let share = GpuProcessUsage { memory: Some(own), ..GpuProcessUsage::default() };
                    tick.put(Entity::OnGpu(gpu, MAIN), &share);
                }
            }
        });
    }
    ended_well(&mut run);
    document(run)
}

#[test]
fn gpus_used_by_the_run_are_in_verdict_bars_and_figures() {
    let document = on_gpus(2, 3 * GIB, Some(0.5));
    let of_gpus = document.verdict.reasons.iter().find(|reason| reason.label == "GPUs").unwrap();
    assert_eq!(of_gpus.value, "1.00 of 2 busy on average; memory peak at least 6.00 GiB.");
    assert_eq!(
        (document.bars[3].share, document.bars[3].note.as_str()),
        (Some(6.0 / 160.0), "6.00 GiB of the run's at its peak, 80.0 GiB in all, of 160 GiB")
    );
    let first: Vec<&str> = document.important().map(|row| &*row[0].text).collect();
    let of_gpus = ["GPU memory, peak", "GPU utilization, mean", "GPU energy"];
    assert!(first.ends_with(&of_gpus), "{first:?}");
    let block = github(&document);
    for line in ["| **GPU memory, peak** | 6.00 GiB", "| **GPU busy** | 50 %", "| **GPU energy** |"]
    {
        assert!(block.contains(line), "{line}: {block}");
    }
}

#[test]
fn gpu_that_only_drives_the_desktop_is_not_reported() {
    let document = on_gpus(1, 0, None);
    assert!(document.verdict.reasons.iter().all(|reason| reason.label != "GPUs"));
    assert!(!github(&document).contains("**GPU"));
    assert!(document.important().all(|row| !row[0].text.contains("GPU")));
}
