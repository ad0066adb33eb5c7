//! Cards of AMD's and Intel's that are not as they should be. How they should be is in
//! `fixtures/hosts`.

mod apu;
mod clients;
mod counted;
mod intel;
mod rest;
mod unknown;

use std::time::Duration;

use super::super::{at_once, taking};
use super::*;
use crate::catalog::metrics::{
    GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuShare, GpuThrottle, ProcessState,
};
use crate::catalog::{Row, Scope};
use crate::collect::{Collector, Fault};
use crate::host::fake::{FakeHost, as_unprivileged};
use crate::model::settings::Settings;
use crate::model::{Change, Entity, Program, Tick};

fn with_card(fake: FakeHost, card: u32, bus: &str) -> FakeHost {
    let device = format!("class/drm/card{card}/device");
    let uevent = format!("DRIVER=amdgpu\nPCI_ID=1002:740C\nPCI_SLOT_NAME=0000:{bus}:00.0\n");
    fake.sys(&format!("{device}/uevent"), &uevent)
        .sys(&format!("{device}/gpu_busy_percent"), "40\n")
        .sys(&format!("{device}/mem_info_vram_used"), "1000\n")
        .sys(&format!("{device}/mem_info_vram_total"), "4000\n")
        .sys(&format!("{device}/power/runtime_status"), "active\n")
        .sys(&format!("{device}/hwmon/hwmon2/power1_average"), "100000000\n")
}

/// Two cards, of which the one with the higher number is the first on the bus.
fn machine() -> FakeHost {
    with_card(with_card(FakeHost::new(), 1, "c6"), 2, "41")
}

/// A run whose GPUs are looked at once a second.
struct Run<'a> {
    fake: &'a FakeHost,
    host: Host,
    collector: Box<dyn Collector>,
    tick: Tick,
    outcome: Result<(), Fault>,
}

impl<'a> Run<'a> {
    fn of(fake: &'a FakeHost) -> Run<'a> {
        Run::choosing(fake, None)
    }

    fn choosing(fake: &'a FakeHost, gpus: Option<Vec<String>>) -> Run<'a> {
        let groups = [
            GpuActivity::METRICS,
            GpuMemory::METRICS,
            GpuPower::METRICS,
            GpuThrottle::METRICS,
            GpuEcc::METRICS,
            GpuLink::METRICS,
            GpuShare::METRICS,
            ProcessState::METRICS,
        ];
        let collector = at_once(&Settings { gpus, ..Settings::default() });
        Run { fake, host: fake.host(), collector, tick: Tick::new(&groups), outcome: Ok(()) }
    }

    /// A tick at which these are new, a second before the next.
    fn look(&mut self, came: &[ProcessId]) -> &mut Run<'a> {
        self.tick(came);
        self.fake.advance(Duration::from_secs(1));
        self
    }

    fn tick(&mut self, came: &[ProcessId]) {
        self.tick.begin(self.host.clock.now());
        for &id in came {
            let came = Change::Started { id, parent: 1, program: Program::default() };
            self.tick.changes.push(came);
        }
        self.outcome = self.collector.sample(&self.host, &mut self.tick);
    }

    fn cards<R: Row>(&self) -> Vec<(String, R)> {
        let table = self.tick.table(Scope::Gpu).unwrap();
        let rows = table.entities().iter().enumerate().map(|(row, entity)| match entity {
            Entity::Named(name) => (name.to_string(), table.get(row)),
            other => panic!("{other:?}"),
        });
        rows.collect()
    }

    fn shares(&self) -> Vec<(String, u32, GpuShare)> {
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
fn cards_are_numbered_by_their_places_on_the_bus() {
    let fake = machine();
    let mut run = Run::of(&fake);
    run.look(&[]).outcome.as_ref().unwrap();
    let met = run.tick.changes.iter().filter_map(|change| match change {
        Change::Gpu(gpu) => Some((gpu.name.as_str(), gpu.memory_bytes)),
        _ => None,
    });
    assert_eq!(met.collect::<Vec<_>>(), [("amd0", Some(4000)), ("amd1", Some(4000))]);
}

#[test]
fn only_the_cards_that_are_wanted_count_and_one_that_is_not_there_is_told() {
    let fake = machine();
    let mut run = Run::choosing(&fake, Some(vec!["amd1".to_owned(), "GPU-77".to_owned()]));
    run.look(&[]);
    assert!(run.skipped().contains("no GPU \"GPU-77\"; there are amd0, amd1"), "{:?}", run.outcome);
    run.look(&[]).outcome.as_ref().unwrap();
    assert_eq!(run.cards::<GpuActivity>()[0].0, "amd1");
    assert_eq!(run.cards::<GpuActivity>().len(), 1);
}

#[test]
fn garbage_costs_its_value_alone_and_is_told() {
    let fake = machine();
    fake.set_sys("class/drm/card1/device/mem_info_vram_used", "<none>\n");
    fake.set_sys("class/drm/card2/device/gpu_busy_percent", "40000\n");
    let mut run = Run::of(&fake);
    run.look(&[]);
    assert!(run.skipped().contains("card1/device/mem_info_vram_used"), "{:?}", run.outcome);
    let used: Vec<_> = run.cards::<GpuMemory>().iter().map(|(_, row)| row.used).collect();
    assert_eq!(used, [Some(1000), None]);
    let busy: Vec<_> = run.cards::<GpuActivity>().iter().map(|(_, row)| row.utilization).collect();
    assert_eq!(busy, [None, Some(0.4)], "more than all is no share");
}

#[test]
fn a_file_that_may_not_be_read_costs_its_value_and_is_told_once() {
    let fake = machine();
    fake.deny_sys("class/drm/card2/device/hwmon/hwmon2/power1_average");
    let mut run = Run::of(&fake);
    as_unprivileged(|| run.tick(&[]));
    assert!(run.skipped().contains("power1_average"), "{:?}", run.outcome);
    let watts: Vec<_> = run.cards::<GpuPower>().iter().map(|(_, row)| row.draw).collect();
    assert_eq!(watts, [None, Some(100.0)]);
    as_unprivileged(|| run.tick(&[]));
    assert!(run.outcome.is_ok());
}

#[test]
fn a_card_that_is_taken_out_has_no_rows_and_the_others_go_on() {
    let fake = machine();
    let mut run = Run::of(&fake);
    run.look(&[]).outcome.as_ref().unwrap();
    fake.remove_sys("class/drm/card2");
    run.look(&[]);
    assert!(run.skipped().starts_with("amd0: "), "{:?}", run.outcome);
    run.look(&[]).outcome.as_ref().unwrap();
    let names: Vec<_> = run.cards::<GpuPower>().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["amd1"]);
}

#[test]
fn a_card_that_sleeps_is_not_asked_and_does_nothing() {
    let fake = machine();
    fake.set_sys("class/drm/card1/device/power/runtime_status", "suspended\n");
    fake.set_sys("class/drm/card1/device/gpu_busy_percent", "whoever reads this wakes it\n");
    let mut run = Run::of(&fake);
    run.look(&[]).outcome.as_ref().unwrap();
    let (_, activity) = run.cards::<GpuActivity>()[1];
    assert_eq!((activity.utilization, activity.processes), (Some(0.0), Some(0)));
    assert_eq!(run.cards::<GpuPower>()[1].1.draw, None);
    assert_eq!(run.cards::<GpuMemory>()[1].1.used, Some(1000), "the kernel knows that by itself");
}

#[test]
fn power_is_added_up_where_it_is_known_at_both_ends() {
    let fake = machine();
    let mut run = Run::of(&fake);
    let power = "class/drm/card2/device/hwmon/hwmon2/power1_average";
    let mut joules = Vec::new();
    for watts in ["100000000\n", "200000000\n", "garbage\n", "100000000\n", "100000000\n"] {
        fake.set_sys(power, watts);
        joules.push(run.look(&[]).cards::<GpuPower>()[0].1.energy_sampled);
    }
    assert_eq!(joules, [0.0, 150.0, 150.0, 150.0, 250.0].map(Some));
}

#[test]
fn a_driver_that_nobody_knows_and_an_output_are_no_cards() {
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
fn a_thread_reads_them_in_a_run() {
    let fake = machine();
    let mut run = Run::of(&fake);
    run.collector = Box::new(taking::Gpus::new(&Settings::default()));
    // The first tick starts the thread; what it has read is in one of the next.
    while run.cards::<GpuActivity>().is_empty() {
        run.tick(&[]);
        std::thread::yield_now();
    }
    assert_eq!(run.cards::<GpuActivity>().len(), 2);
}
