//! GPUs of AMD and Intel with missing, wrong or unusual files. Regular ones are in
//! `fixtures/hosts`.

mod apu;
mod autosuspend;
mod clients;
mod firmware;
mod intel;
mod unknown;

use std::time::Duration;

use super::super::{at_once, collector};
use super::*;
use crate::catalog::metrics::{
    GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuProcessUsage, GpuThrottle, ProcessState,
};
use crate::catalog::{Row, Scope};
use crate::collect::{Collector, Context, Fault};
use crate::host::fake::{FakeHost, as_unprivileged};
use crate::model::settings::Settings;
use crate::model::{Change, Entity, ProcessId, Program, Tick};

fn with_gpu(fake: FakeHost, card: u32, bus: &str) -> FakeHost {
    let device = format!("class/drm/card{card}/device");
    let uevent = format!("DRIVER=amdgpu\nPCI_ID=1002:740C\nPCI_SLOT_NAME=0000:{bus}:00.0\n");
    fake.sys(&format!("{device}/uevent"), &uevent)
        .sys(&format!("{device}/gpu_busy_percent"), "40\n")
        .sys(&format!("{device}/mem_info_vram_used"), "1000\n")
        .sys(&format!("{device}/mem_info_vram_total"), "4000\n")
        .sys(&format!("{device}/power/runtime_status"), "active\n")
        .sys(&format!("{device}/hwmon/hwmon2/power1_average"), "100000000\n")
}

/// Two GPUs, of which the one with the higher number is the first on the bus.
fn machine() -> FakeHost {
    with_gpu(with_gpu(FakeHost::new(), 1, "c6"), 2, "41")
}

/// A run whose GPUs are polled once a second.
struct PolledRun<'a> {
    fake: &'a FakeHost,
    host: Host,
    collector: Box<dyn Collector>,
    tick: Tick,
    outcome: Result<(), Fault>,
}

impl<'a> PolledRun<'a> {
    fn of(fake: &'a FakeHost) -> PolledRun<'a> {
        PolledRun::selecting(fake, None)
    }

    fn selecting(fake: &'a FakeHost, gpus: Option<Vec<String>>) -> PolledRun<'a> {
        let groups = [
            GpuActivity::METRICS,
            GpuMemory::METRICS,
            GpuPower::METRICS,
            GpuThrottle::METRICS,
            GpuEcc::METRICS,
            GpuLink::METRICS,
            GpuProcessUsage::METRICS,
            ProcessState::METRICS,
        ];
        let collector = at_once(&Settings { gpus, ..Settings::default() });
        PolledRun { fake, host: fake.host(), collector, tick: Tick::new(&groups), outcome: Ok(()) }
    }

    /// A tick at which these processes start, a second before the next.
    fn poll(&mut self, started: &[ProcessId]) -> &mut PolledRun<'a> {
        self.tick(started);
        self.fake.advance(Duration::from_secs(1));
        self
    }

    fn tick(&mut self, started: &[ProcessId]) {
        self.tick.begin(self.host.clock.now());
        for &id in started {
            let started = Change::Started { id, parent: 1, program: Program::default() };
            self.tick.changes.push(started);
        }
        self.outcome = self.collector.sample(&Context::of(&self.host), &mut self.tick);
    }

    fn devices<R: Row>(&self) -> Vec<(String, R)> {
        let table = self.tick.table(Scope::Gpu).unwrap();
        let rows = table.entities().iter().enumerate().map(|(row, entity)| match entity {
            Entity::Named(name) => (name.to_string(), table.get(row)),
            other => panic!("{other:?}"),
        });
        rows.collect()
    }

    fn shares(&self) -> Vec<(String, u32, GpuProcessUsage)> {
        let table = self.tick.table(Scope::GpuProcess).unwrap();
        let rows = table.entities().iter().enumerate().map(|(row, entity)| match entity {
            Entity::OnGpu(gpu, id) => (gpu.to_string(), id.pid, table.get(row)),
            other => panic!("{other:?}"),
        });
        rows.collect()
    }

    fn skipped(&self) -> &str {
        match &self.outcome {
            Err(Fault::Skip(why)) => why,
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn gpus_are_numbered_by_pci_address() {
    let fake = machine();
    let mut run = PolledRun::of(&fake);
    run.poll(&[]).outcome.as_ref().unwrap();
    let reported = run.tick.changes.iter().filter_map(|change| match change {
        Change::Gpu(gpu) => Some((gpu.name.as_str(), gpu.memory_bytes)),
        _ => None,
    });
    assert_eq!(reported.collect::<Vec<_>>(), [("amd0", Some(4000)), ("amd1", Some(4000))]);
}

#[test]
fn only_selected_gpus_are_polled_and_a_missing_one_is_reported() {
    let fake = machine();
    let mut run = PolledRun::selecting(&fake, Some(vec!["amd1".to_owned(), "GPU-77".to_owned()]));
    run.poll(&[]);
    assert!(run.skipped().contains("no GPU \"GPU-77\"; there are amd0, amd1"), "{:?}", run.outcome);
    run.poll(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.devices::<GpuActivity>()[0].0, "amd1");
    assert_eq!(run.devices::<GpuActivity>().len(), 1);
}

#[test]
fn garbage_costs_its_value_alone_and_is_reported() {
    let fake = machine();
    fake.set_sys("class/drm/card1/device/mem_info_vram_used", "<none>\n");
    fake.set_sys("class/drm/card2/device/gpu_busy_percent", "40000\n");
    let mut run = PolledRun::of(&fake);
    run.poll(&[]);
    assert!(run.skipped().contains("card1/device/mem_info_vram_used"), "{:?}", run.outcome);
    let used: Vec<_> = run.devices::<GpuMemory>().iter().map(|(_, row)| row.used).collect();
    assert_eq!(used, [Some(1000), None]);
    let busy: Vec<_> =
        run.devices::<GpuActivity>().iter().map(|(_, row)| row.utilization).collect();
    assert_eq!(busy, [None, Some(0.4)], "more than 100 % is invalid");
}

#[test]
fn unreadable_file_costs_its_value_and_is_reported_once() {
    let fake = machine();
    fake.deny_sys("class/drm/card2/device/hwmon/hwmon2/power1_average");
    let mut run = PolledRun::of(&fake);
    as_unprivileged(|| run.tick(&[]));
    assert!(run.skipped().contains("power1_average"), "{:?}", run.outcome);
    let watts: Vec<_> = run.devices::<GpuPower>().iter().map(|(_, row)| row.draw).collect();
    assert_eq!(watts, [None, Some(100.0)]);
    as_unprivileged(|| run.tick(&[]));
    assert!(run.outcome.is_ok());
}

#[test]
fn removed_gpu_has_no_rows_and_the_others_continue() {
    let fake = machine();
    let mut run = PolledRun::of(&fake);
    run.poll(&[]).outcome.as_ref().unwrap();
    fake.remove_sys("class/drm/card2");
    run.poll(&[]);
    assert!(run.skipped().starts_with("amd0: "), "{:?}", run.outcome);
    run.poll(&[]).outcome.as_ref().unwrap();
    let names: Vec<_> = run.devices::<GpuPower>().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["amd1"]);
}

#[test]
fn suspended_gpu_is_not_read_and_idle() {
    let fake = machine();
    fake.set_sys("class/drm/card1/device/power/runtime_status", "suspended\n");
    fake.set_sys("class/drm/card1/device/gpu_busy_percent", "reading this wakes it up\n");
    let mut run = PolledRun::of(&fake);
    run.poll(&[]).outcome.as_ref().unwrap();
    let (_, activity) = run.devices::<GpuActivity>()[1];
    assert_eq!((activity.utilization, activity.processes), (Some(0.0), Some(0)));
    assert_eq!(run.devices::<GpuPower>()[1].1.draw, None);
    assert_eq!(
        run.devices::<GpuMemory>()[1].1.used,
        Some(1000),
        "the kernel counts that in software"
    );
}

#[test]
fn power_is_integrated_where_it_is_known_at_both_ends() {
    let fake = machine();
    let mut run = PolledRun::of(&fake);
    let power = "class/drm/card2/device/hwmon/hwmon2/power1_average";
    let mut joules = Vec::new();
    for watts in ["100000000\n", "200000000\n", "garbage\n", "100000000\n", "100000000\n"] {
        fake.set_sys(power, watts);
        joules.push(run.poll(&[]).devices::<GpuPower>()[0].1.energy_sampled);
    }
    assert_eq!(joules, [0.0, 150.0, 150.0, 150.0, 250.0].map(Some));
}

#[test]
fn unknown_driver_and_connector_are_no_gpus() {
    let fake = FakeHost::new()
        .sys("class/drm/card0/device/uevent", "DRIVER=ast\nPCI_SLOT_NAME=0000:62:00.0\n")
        .sys("class/drm/card0-DP-1/status", "connected\n");
    let Probe::Absent { why } = probe(&fake.host()) else { panic!("there is none") };
    assert!(why.contains("no amdgpu, i915 or xe in"), "{why}");
    fake.set_sys("module/xe/refcnt", "0\n");
    let Probe::Absent { why } = probe(&fake.host()) else { panic!("there is none") };
    assert!(why.starts_with("xe is loaded and has no GPU"), "{why}");
    assert!(matches!(probe(&machine().host()), Probe::Ready));
}

#[test]
fn worker_polls_them_in_a_run() {
    let fake = machine();
    let mut run = PolledRun::of(&fake);
    run.collector = Box::new(collector::GpuCollector::new(&Settings::default()));
    // The first tick starts the thread; its first poll is in one of the next.
    while run.devices::<GpuActivity>().is_empty() {
        run.tick(&[]);
        std::thread::yield_now();
    }
    assert_eq!(run.devices::<GpuActivity>().len(), 2);
}
