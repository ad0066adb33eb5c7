//! Findings on GPUs, and GPUs without any.

use super::super::super::tests::found;
use super::*;
use crate::catalog::metrics::gpu::is_whole;
use crate::catalog::metrics::{
    GpuActivity, GpuEcc, GpuMemory, GpuPower, GpuProcessUsage, GpuThrottle, ProcessMemory,
};
use crate::model::batch_job::{BatchJob, Scheduler};
use crate::model::{self, Entity, Name};
use crate::record::Event;
use crate::testing::{FakeRun, GIB, MAIN, usage};

/// A GPU for the whole run. Counters grow evenly.
#[derive(Clone, Copy)]
struct FakeGpu {
    name: &'static str,
    model: &'static str,
    usable: Option<bool>,
    busy: Option<f64>,
    used: u64,
    /// What the driver reserves.
    reserved: u64,
    /// Memory of the run's process; `None` when it is not on the GPU.
    own: Option<u64>,
    /// Processes of others, and those that are not known.
    others: u64,
    unknown: u64,
    /// Seconds of throttling in each second, by temperature and by the power limit.
    thermal: f64,
    power: f64,
    errors: u64,
}

/// One that the run keeps busy.
const BUSY: FakeGpu = FakeGpu {
    name: "nvidia0",
    model: "H100",
    usable: Some(true),
    busy: Some(0.9),
    used: 8 * GIB,
    reserved: 0,
    own: Some(4 * GIB),
    others: 0,
    unknown: 0,
    thermal: 0.0,
    power: 0.0,
    errors: 0,
};

/// One that no process uses.
const IDLE: FakeGpu = FakeGpu { name: "nvidia1", busy: Some(0.0), used: 0, own: None, ..BUSY };

impl FakeGpu {
    fn total(&self) -> u64 {
        if is_whole(self.name) { 80 * GIB } else { 10 * GIB }
    }

    fn put(&self, tick: &mut model::Tick, at: f64) {
        let name = Name::new(self.name.as_bytes());
        let entity = Entity::Named(name);
        let processes = u64::from(self.own.is_some()) + self.others + self.unknown;
        tick.put(
            entity,
            &GpuActivity {
                utilization: self.busy,
                processes: Some(processes),
                processes_unknown: Some(self.unknown),
                ..GpuActivity::default()
            },
        );
        let memory = GpuMemory {
            used: Some(self.used),
            free: Some(self.total() - self.reserved - self.used),
            ..GpuMemory::default()
        };
        tick.put(entity, &memory);
        tick.put(entity, &GpuPower { temperature: Some(92.0), ..GpuPower::default() });
        let (power, thermal) = (Some(7.0 + self.power * at), Some(9.0 + self.thermal * at));
        tick.put(entity, &GpuThrottle { power, thermal, ..GpuThrottle::default() });
        let errors = 3 + if at > 0.0 { self.errors } else { 0 };
        tick.put(entity, &GpuEcc { uncorrected: Some(errors), ..GpuEcc::default() });
        if let Some(bytes) = self.own {
            let share = GpuProcessUsage { memory: Some(bytes), ..GpuProcessUsage::default() };
            tick.put(Entity::OnGpu(name, MAIN), &share);
        }
    }
}

/// A run of so many seconds that used so many cores.
fn ran(seconds: f64, cores: f64, gpus: &[FakeGpu]) -> Summary {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "train");
    for gpu in gpus {
        run.event(
            0.0,
            Event::Gpu(Box::new(model::Gpu {
                name: gpu.name.to_owned(),
                model: Some(gpu.model.to_owned()),
                memory_bytes: Some(gpu.total()),
                power_limit_watts: Some(350.0),
                usable: gpu.usable,
                ..model::Gpu::default()
            })),
        );
    }
    for second in 0..=seconds as u32 {
        let at = f64::from(second);
        run.sample(at, |tick| {
            let row = ProcessMemory { rss: Some(1), ..Default::default() };
            tick.put(Entity::Process(MAIN), &row);
            gpus.iter().for_each(|gpu| gpu.put(tick, at));
        });
    }
    run.reaped(seconds, MAIN, usage(cores * seconds, 0));
    run.ends(seconds, |end| end.task_clock_seconds = Some(cores * seconds)).summary()
}

fn codes(summary: &Summary) -> Vec<&str> {
    let codes = summary.findings.iter().map(|finding| finding.code.as_str());
    codes.filter(|code| code.starts_with("gpu.")).collect()
}

#[test]
fn unused_gpu_is_reported_beside_used_ones() {
    let last = FakeGpu { name: "nvidia2", ..IDLE };
    let finding = found(&ran(60.0, 3.0, &[BUSY, IDLE]), "gpu.idle").unwrap();
    assert_eq!(finding.sentence, "1 of 2 GPUs that it could use was not used at all: nvidia1.");
    assert_eq!(finding.advice, "Ask for fewer GPUs, or spread the work over all of them.");
    let two = found(&ran(60.0, 3.0, &[BUSY, IDLE, last]), "gpu.idle").unwrap();
    assert_eq!(
        two.sentence,
        "2 of 3 GPUs that it could use were not used at all: nvidia1, nvidia2."
    );
    assert_eq!(two.evidence["idle"], json!(["nvidia1", "nvidia2"]));
}

#[test]
fn gpu_that_another_process_may_have_used_is_not_called_idle() {
    for (why, other) in [
        ("the run could not use it", FakeGpu { usable: Some(false), ..IDLE }),
        ("whether it could is not known", FakeGpu { usable: None, ..IDLE }),
        ("another process is on it", FakeGpu { others: 1, ..IDLE }),
        ("its utilization is not known", FakeGpu { busy: None, ..IDLE }),
        ("it was not quite idle", FakeGpu { busy: Some(0.02), ..IDLE }),
        ("it is of another model", FakeGpu { name: "amd0", model: "Raphael", ..IDLE }),
    ] {
        assert!(codes(&ran(60.0, 3.0, &[BUSY, other])).is_empty(), "{why}");
    }
    assert!(codes(&ran(4.0, 3.0, &[BUSY, IDLE])).is_empty(), "the run is too short");
    // Another user's training, and a run that does not use GPUs.
    let foreign = FakeGpu { own: None, others: 1, ..BUSY };
    assert!(codes(&ran(60.0, 3.0, &[foreign, IDLE])).is_empty());
}

#[test]
fn in_a_container_a_busy_gpu_is_of_the_run() {
    let hidden = FakeGpu { own: None, unknown: 1, ..BUSY };
    assert_eq!(codes(&ran(60.0, 3.0, &[hidden, IDLE])), ["gpu.idle"]);
}

#[test]
fn waiting_gpus_are_reported_with_what_was_busy_meanwhile() {
    let waiting = FakeGpu { busy: Some(0.125), ..BUSY };
    let cores = found(&ran(60.0, 3.9, &[waiting]), "gpu.waited").unwrap();
    assert_eq!(
        cores.sentence,
        "The GPU it had memory on (nvidia0) was busy for 13 % of the time only, while it kept 3.90 \
         of 4 cores busy."
    );
    assert!(cores.advice.starts_with("All its cores were busy"), "{}", cores.advice);
    assert!(!cores.advice.contains("SBATCH"), "{}", cores.advice);
    let one = found(&ran(60.0, 1.0, &[waiting]), "gpu.waited").unwrap();
    assert!(one.advice.contains("num_workers"), "{}", one.advice);
    assert_eq!(one.evidence["utilization_mean_ratio"], 0.125);
    for (why, seconds, gpu) in [
        ("it was busy enough", 60.0, FakeGpu { busy: Some(0.25), ..BUSY }),
        ("memory of others does not count", 60.0, FakeGpu { own: None, others: 1, ..waiting }),
        ("a program has to load data first", 20.0, waiting),
        ("its utilization is not known", 60.0, FakeGpu { busy: None, ..BUSY }),
    ] {
        assert!(codes(&ran(seconds, 1.0, &[gpu])).is_empty(), "{why}");
    }
}

#[test]
fn storage_that_gpus_waited_for_is_named() {
    let mut summary = FakeRun::new().ends(60.0, |_| {}).summary();
    let (why, advice) = work::reason(&summary, Some(0.5), Some(0.4));
    assert_eq!(why, ", while everything that had work waited for storage for 40 % of it");
    assert_eq!(advice, "Read from faster storage, or larger blocks ahead.");
    summary.job = Some(BatchJob::of(Scheduler::Slurm));
    let (_, advice) = work::reason(&summary, Some(0.5), Some(0.4));
    assert!(advice.contains("SLURM_TMPDIR"), "{advice}");
}

#[test]
fn nearly_full_memory_is_reported_once_of_a_gpu_or_its_instance() {
    let full = FakeGpu { used: 77 * GIB, ..BUSY };
    let finding = found(&ran(2.0, 1.0, &[full]), "gpu.memory_nearly_full").unwrap();
    assert_eq!(
        finding.sentence,
        "The memory of nvidia0 was nearly full: 77.0 GiB of 80.0 GiB in use at 0 s."
    );
    let second = FakeGpu { name: "nvidia1", ..full };
    let both = found(&ran(2.0, 1.0, &[full, second]), "gpu.memory_nearly_full").unwrap();
    assert!(both.sentence.ends_with(" So was that of nvidia1."), "{}", both.sentence);
    let instance = FakeGpu { name: "nvidia0:1", used: 10 * GIB, ..BUSY };
    let whole = FakeGpu { own: None, ..full };
    let finding = found(&ran(2.0, 1.0, &[whole, instance]), "gpu.memory_nearly_full").unwrap();
    assert_eq!(finding.evidence["gpus"], json!(["nvidia0:1"]));
    assert!(codes(&ran(2.0, 1.0, &[FakeGpu { used: 70 * GIB, ..BUSY }])).is_empty());
    let reserving = FakeGpu { used: 70 * GIB, reserved: 8 * GIB, ..BUSY };
    assert_eq!(codes(&ran(2.0, 1.0, &[reserving])), ["gpu.memory_nearly_full"]);
    let foreign = FakeGpu { own: None, others: 1, ..full };
    assert!(codes(&ran(2.0, 1.0, &[foreign])).is_empty(), "the run is not on it");
}

#[test]
fn throttling_is_reported_with_its_share_of_the_time() {
    let hot = FakeGpu { thermal: 0.25, ..BUSY };
    let finding = found(&ran(60.0, 1.0, &[hot]), "gpu.throttled").unwrap();
    assert_eq!(
        finding.sentence,
        "nvidia0 was thermally throttled for 15.00 s, 25 % of the time, at up to 92 °C."
    );
    assert_eq!((finding.severity, &finding.evidence["by"]), (Severity::Warning, &"heat".into()));
    let limited =
        found(&ran(60.0, 1.0, &[FakeGpu { power: 0.75, ..BUSY }]), "gpu.throttled").unwrap();
    assert_eq!(
        limited.sentence,
        "nvidia0 was throttled by its power limit (350 W) for 45.00 s, 75 % of the time."
    );
    assert_eq!(limited.severity, Severity::Note);
    let amd = found(&ran(60.0, 1.0, &[FakeGpu { name: "amd0", ..hot }]), "gpu.throttled").unwrap();
    assert!(amd.advice.ends_with("rocm-smi --showtemp"), "{}", amd.advice);
    for (why, seconds, gpu) in [
        ("a little is normal", 60.0, FakeGpu { thermal: 0.05, power: 0.4, ..BUSY }),
        ("the run is too short", 4.0, hot),
        ("the run is not on it", 60.0, FakeGpu { own: None, others: 1, ..hot }),
    ] {
        assert!(codes(&ran(seconds, 1.0, &[gpu])).is_empty(), "{why}");
    }
}

#[test]
fn only_memory_errors_of_this_run_are_reported() {
    let finding =
        found(&ran(2.0, 1.0, &[FakeGpu { errors: 2, ..BUSY }]), "gpu.memory_errors").unwrap();
    assert_eq!(
        finding.sentence,
        "There were 2 errors in the memory of nvidia0 that could not be corrected."
    );
    assert!(finding.advice.contains("nvidia-smi"), "{}", finding.advice);
    let amd = FakeGpu { name: "amd0", errors: 1, ..BUSY };
    let one = found(&ran(2.0, 1.0, &[amd]), "gpu.memory_errors").unwrap();
    assert!(one.sentence.starts_with("There was 1 error in"), "{}", one.sentence);
    assert!(one.advice.ends_with("rocm-smi --showrasinfo"), "{}", one.advice);
    assert!(codes(&ran(2.0, 1.0, &[BUSY])).is_empty(), "those before were not in this run");
}
