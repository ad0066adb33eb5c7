//! One card between two looks, and one look at it: each value is one call, and fails alone.

use std::time::Duration;

use super::super::added_up::AddedUp;
use super::super::reading::{CardRead, UserRead};
use super::sampled::Sum;
use super::users::{OfCard, Users};
use crate::catalog::metrics::{
    GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle, GpuUnits,
};
use crate::host::nvml::{Clock, Code, Device, Ecc, Gpm, GpmActivity, Room, Sampled, Violation};
use crate::model::Name;

/// Which questions a card does not answer, and whether it is there.
#[derive(Debug, Default)]
pub(super) struct Asking {
    /// Questions of this look, counted, and those that are never answered, a bit for each: a look
    /// always asks in the same order.
    next: u32,
    refused: u128,
    pub(super) lost: Option<Code>,
}

impl Asking {
    /// Asks one question, unless there is no use in it.
    fn ask<T>(&mut self, answer: impl FnOnce() -> Result<T, Code>) -> Option<T> {
        let question = 1u128 << self.next;
        self.next += 1;
        if self.refused & question != 0 || self.lost.is_some() {
            return None;
        }
        match answer() {
            Ok(answer) => Some(answer),
            Err(code) if code.is_loss() => {
                self.lost = Some(code);
                None
            }
            Err(code) => {
                if code.is_for_good() {
                    self.refused |= question;
                }
                None
            }
        }
    }
}

/// The sums of what the driver samples, in the order of [`SAMPLED`].
type Sums = [Sum; 5];

/// What is added up, and more than what cannot be: a percent, and a megawatt in milliwatts.
const SAMPLED: [(Sampled, u64); 5] = [
    (Sampled::Gpu, 100),
    (Sampled::Memory, 100),
    (Sampled::Encoder, 100),
    (Sampled::Decoder, 100),
    (Sampled::Power, 1_000_000_000),
];

/// One card.
pub(super) struct Card {
    pub(super) name: Name,
    pub(super) asking: Asking,
    device: Device,
    /// Whether its parts are asked for their processes.
    is_divided: bool,
    gpm: Option<Gpm>,
    keeps_accounts: bool,
    sums: Sums,
    /// What its link carried when that was asked last, received and sent.
    pub(super) carried: [Option<u64>; 2],
    /// For a card whose power the driver does not sample.
    added_up: AddedUp,
    users: Users,
}

impl Card {
    pub(super) fn new(name: Name, device: Device, is_divided: bool) -> Card {
        Card {
            name,
            asking: Asking::default(),
            device,
            is_divided,
            gpm: Gpm::of(device).ok(),
            keeps_accounts: device.keeps_accounts().unwrap_or(false),
            sums: Sums::default(),
            carried: [None; 2],
            added_up: AddedUp::default(),
            users: Users::default(),
        }
    }

    /// Asks everything once but what takes its time. What is missing is not known.
    pub(super) fn look(
        &mut self,
        at: Duration,
        room: &mut Room,
        users: &mut Vec<UserRead>,
    ) -> CardRead {
        self.asking.next = 0;
        // Before what changes with our own asking: calls keep a card awake.
        self.sum(at, room);
        let mut read = CardRead {
            name: self.name,
            memory: memory(&mut self.asking, self.device),
            power: power(&mut self.asking, self.device),
            throttle: throttle(&mut self.asking, self.device),
            ecc: ecc(&mut self.asking, self.device),
            link: link(&mut self.asking, self.device),
            units: self.units(),
            activity: activity(&mut self.asking, self.device),
        };
        self.stand_still(at, &mut read);
        let added_up = self.added_up.see(at, read.power.draw);
        read.power.energy_sampled = read.power.energy_sampled.or(added_up);
        let utilization = read.activity.utilization;
        let of_card = OfCard { newest: self.sums[0].newest_at(at), utilization };
        let counted = if self.is_divided { None } else { self.users(at, of_card, room, users) };
        let (processes, processes_computing) = counted.unzip();
        let activity = GpuActivity { processes, processes_computing, ..read.activity };
        CardRead { activity, ..read }
    }

    /// Asks what its link to the machine carries. The driver counts for 20 ms each, and whoever
    /// asks waits: it is the last question of all.
    pub(super) fn ask_throughput(&mut self) {
        let device = self.device;
        self.carried = [true, false].map(|is_received| {
            let thousands = self.asking.ask(|| device.pcie_throughput(is_received));
            thousands.map(|thousands| u64::from(thousands) * 1000)
        });
    }

    fn sum(&mut self, at: Duration, room: &mut Room) {
        for (sum, (what, most)) in self.sums.iter_mut().zip(SAMPLED) {
            let (device, after) = (self.device, sum.after(at));
            if let Some(samples) = self.asking.ask(|| device.samples(what, after, room)) {
                sum.see(at, samples, most);
            }
        }
    }

    /// Adds what it tells now where the driver takes no samples, and tells the sums.
    fn stand_still(&mut self, at: Duration, read: &mut CardRead) {
        let CardRead { activity, power, .. } = read;
        let shares =
            [activity.utilization, activity.memory_utilization, activity.encoder, activity.decoder];
        let [gpu, memory, encoder, decoder] = shares.map(|share| share.map(|share| share * 100.0));
        let draw = power.draw.map(|watts| watts * 1e3);
        for (sum, value) in self.sums.iter_mut().zip([gpu, memory, encoder, decoder, draw]) {
            sum.stand_still(at, value);
        }
        let busy = |which: usize| self.sums[which].total().map(|percents| percents / 100.0);
        (activity.busy, activity.observed) = (busy(0), self.sums[0].covered());
        (activity.memory_busy, activity.encoder_busy) = (busy(1), busy(2));
        activity.decoder_busy = busy(3);
        power.energy_sampled = self.sums[4].whole().map(|millijoules| millijoules / 1e3);
    }

    fn units(&mut self) -> GpuUnits {
        let gpm = &mut self.gpm;
        let looked = self.asking.ask(|| gpm.as_mut().map_or(Ok(None), Gpm::look)).flatten();
        let GpmActivity { sm, occupancy, tensor, memory_bandwidth, fp64, fp32, fp16 } =
            looked.unwrap_or_default();
        let share = |percent: Option<f64>| percent.map(|percent| percent / 100.0);
        GpuUnits {
            sm: share(sm),
            occupancy: share(occupancy),
            tensor: share(tensor),
            memory_bandwidth: share(memory_bandwidth),
            fp64: share(fp64),
            fp32: share(fp32),
            fp16: share(fp16),
        }
    }

    /// The processes on it: how many, and how many of them compute, when that is known. Who
    /// computes is most of it: without that list, nobody knows.
    fn users(
        &mut self,
        at: Duration,
        of_card: OfCard,
        room: &mut Room,
        into: &mut Vec<UserRead>,
    ) -> Option<(u64, u64)> {
        let (device, asking, users) = (self.device, &mut self.asking, &mut self.users);
        users.begin();
        let computing = asking.ask(|| device.computing(room)).map(|them| {
            users.meet(them);
            users.count()
        });
        asking
            .ask(|| device.computing_together(room))
            .into_iter()
            .for_each(|them| users.meet(them));
        asking.ask(|| device.drawing(room)).into_iter().for_each(|them| users.meet(them));
        let after = users.after(at);
        if let Some(samples) = asking.ask(|| device.per_process(after, room)) {
            users.did(at, of_card, samples);
        }
        if self.keeps_accounts {
            // A process that the driver has no account of is not worth a word.
            users.peaks(|pid| device.memory_peak(pid).ok().flatten());
        }
        into.extend(users.on(self.name));
        computing.map(|computing| (users.count(), computing))
    }
}

/// Kibibytes in bytes; more than there can be is no number.
fn in_bytes(kibibytes: u64) -> Option<u64> {
    kibibytes.checked_mul(1024)
}

fn ratio(percent: u32) -> Option<f64> {
    (percent <= 100).then(|| f64::from(percent) / 100.0)
}

fn activity(asking: &mut Asking, device: Device) -> GpuActivity {
    let (gpu, memory) = asking.ask(|| device.utilization()).unzip();
    GpuActivity {
        utilization: gpu.and_then(ratio),
        memory_utilization: memory.and_then(ratio),
        encoder: asking.ask(|| device.encoder()).and_then(ratio),
        decoder: asking.ask(|| device.decoder()).and_then(ratio),
        ..GpuActivity::default()
    }
}

fn memory(asking: &mut Asking, device: Device) -> GpuMemory {
    let memory = asking.ask(|| device.memory());
    let bar1 = asking.ask(|| device.bar1());
    GpuMemory {
        used: memory.map(|memory| memory.used),
        free: memory.map(|memory| memory.free),
        total: memory.map(|memory| memory.total),
        bar1_used: bar1.map(|(_, used)| used),
        bar1_total: bar1.map(|(total, _)| total),
    }
}

fn power(asking: &mut Asking, device: Device) -> GpuPower {
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1e3;
    let mut clock = |clock| {
        let megahertz = asking.ask(|| device.clock(clock));
        megahertz.map(|megahertz| f64::from(megahertz) * 1e6)
    };
    let clocks = [Clock::Graphics, Clock::Sm, Clock::Memory].map(&mut clock);
    GpuPower {
        draw: asking.ask(|| device.power()).map(watts),
        limit: asking.ask(|| device.power_limit()).map(watts),
        energy: asking.ask(|| device.energy()).map(|millijoules| millijoules as f64 / 1e3),
        energy_sampled: None,
        temperature: asking.ask(|| device.temperature()).map(f64::from),
        // A fan that is told to be faster than it can be is told so.
        fan: asking.ask(|| device.fan()).map(|percent| f64::from(percent) / 100.0),
        clock_graphics: clocks[0],
        clock_sm: clocks[1],
        clock_memory: clocks[2],
    }
}

fn throttle(asking: &mut Asking, device: Device) -> GpuThrottle {
    let reasons = asking.ask(|| device.throttle_reasons());
    let mut time = |why| {
        let nanoseconds = asking.ask(|| device.violation(why));
        nanoseconds.map(|nanoseconds| nanoseconds as f64 / 1e9)
    };
    GpuThrottle {
        reasons,
        power: time(Violation::Power),
        thermal: time(Violation::Thermal),
        sync_boost: time(Violation::SyncBoost),
        board_limit: time(Violation::BoardLimit),
        low_utilization: time(Violation::LowUtilization),
        reliability: time(Violation::Reliability),
        below_application_clocks: time(Violation::BelowApplicationClocks),
        below_base_clocks: time(Violation::BelowBaseClocks),
    }
}

fn ecc(asking: &mut Asking, device: Device) -> GpuEcc {
    let mut count =
        |uncorrected, lifetime| asking.ask(|| device.ecc(Ecc { uncorrected, lifetime }));
    GpuEcc {
        corrected: count(false, false),
        uncorrected: count(true, false),
        corrected_lifetime: count(false, true),
        uncorrected_lifetime: count(true, true),
    }
}

fn link(asking: &mut Asking, device: Device) -> GpuLink {
    let (sent, received) = asking.ask(|| device.nvlink()).unzip();
    GpuLink {
        pcie_generation: asking.ask(|| device.pcie_generation()).map(u64::from),
        pcie_width: asking.ask(|| device.pcie_width()).map(u64::from),
        pcie_replays: asking.ask(|| device.pcie_replays()).map(u64::from),
        nvlink_received: received.and_then(in_bytes),
        nvlink_sent: sent.and_then(in_bytes),
        ..GpuLink::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_card_does_not_have_is_asked_once_and_anything_else_again() {
        let (mut asking, mut calls) = (Asking::default(), Vec::new());
        for look in 0..3 {
            asking.next = 0;
            let mut ask = |name, answer: Result<u32, Code>| {
                asking.ask(|| {
                    calls.push(name);
                    answer
                })
            };
            assert_eq!(ask("fan", Err(Code::NOT_SUPPORTED)), None);
            assert_eq!(ask("power", Err(Code(999))), None);
            assert_eq!(ask("clock", Ok(look)), Some(look));
        }
        assert_eq!(calls, ["fan", "power", "clock", "power", "clock", "power", "clock"]);
    }

    #[test]
    fn a_card_that_is_lost_is_asked_nothing_more() {
        let mut asking = Asking::default();
        assert_eq!(asking.ask(|| Err::<u32, Code>(Code::GPU_IS_LOST)), None);
        assert_eq!(asking.ask(|| -> Result<u32, Code> { panic!("asked") }), None);
        assert_eq!(asking.lost, Some(Code::GPU_IS_LOST));
    }
}
