//! Which cards there are, which of them count, and one look at all of them.

use std::time::Duration;

use super::super::choice::is_wanted;
use super::super::reading::{Ask, Reading};
use super::card::Card;
use super::met::MetUsers;
use crate::host::Dir;
use crate::host::nvml::{Device, Error, Nvml, Room};
use crate::model::gpu::Visible;
use crate::model::{Gpu, Name, ProcessId};

/// What links carry is asked once a second at most: eight cards take a third of a second for it.
/// Looks that are a second apart are so by a little more or less.
const THROUGHPUT_REST: Duration = Duration::from_millis(950);

/// The cards that count.
pub(super) struct Cards {
    cards: Vec<Card>,
    /// All there are.
    there: Vec<Gpu>,
    /// What they are, until that is told.
    met: Vec<Gpu>,
    /// What went wrong, until that is told.
    trouble: Vec<String>,
    room: Room,
    met_users: MetUsers,
    /// When they were last asked what their links carry.
    throughput_asked: Option<Duration>,
}

/// A card, or a part of one, that is there.
struct Found {
    device: Device,
    gpu: Gpu,
    is_divided: bool,
}

impl Cards {
    /// Looks for the cards; those that are wanted count, and their parts.
    pub(super) fn find(
        proc: Dir,
        wanted: Option<&[String]>,
        visible: Option<&Visible>,
    ) -> Result<Cards, Error> {
        let nvml = Nvml::load()?;
        let driver = nvml.driver().ok();
        let mut trouble = Vec::new();
        let mut found = Vec::new();
        for index in 0..nvml.count()? {
            let name = format!("nvidia{index}");
            match nvml.device(index) {
                Ok(device) => add(&mut found, &name, device, driver.as_deref()),
                Err(code) => trouble.push(format!("{name}: {code}")),
            }
        }
        let mut all: Vec<Gpu> = found.iter().map(|found| found.gpu.clone()).collect();
        if let Some(visible) = visible {
            visible.mark(&mut all);
            found.iter_mut().zip(&all).for_each(|(found, gpu)| found.gpu.usable = gpu.usable);
        }
        found.retain(|found| wanted.is_none_or(|wanted| is_wanted(wanted, &found.gpu, &all)));
        let met = found.iter().map(|found| found.gpu.clone()).collect();
        let cards = found.into_iter().map(|found| {
            Card::new(Name::new(found.gpu.name.as_bytes()), found.device, found.is_divided)
        });
        let cards = cards.collect();
        let (room, met_users) = (Room::default(), MetUsers::new(proc));
        Ok(Cards { cards, there: all, met, trouble, room, met_users, throughput_asked: None })
    }

    /// Asks what links carry, if it is time to; in between it stands as it was.
    fn throughput(&mut self, at: Duration, reading: &mut Reading) {
        let is_due = is_due(self.throughput_asked, at);
        if is_due {
            self.throughput_asked = Some(at);
        }
        for (card, read) in self.cards.iter_mut().zip(&mut reading.cards) {
            if is_due {
                card.ask_throughput();
            }
            [read.link.pcie_received, read.link.pcie_sent] = card.carried;
        }
    }
}

impl Ask for Cards {
    fn there(&self) -> Vec<Gpu> {
        self.there.clone()
    }

    /// The driver knows the processes by itself.
    fn read(&mut self, at: Duration, _: &[ProcessId]) -> Reading {
        let mut reading = Reading {
            met: std::mem::take(&mut self.met),
            trouble: std::mem::take(&mut self.trouble),
            ..Reading::default()
        };
        for card in &mut self.cards {
            reading.cards.push(card.look(at, &mut self.room, &mut reading.users));
        }
        self.met_users.name(&mut reading.users);
        self.throughput(at, &mut reading);
        self.cards.retain(|card| {
            let Some(code) = card.asking.lost else { return true };
            // What it said before it was lost is not whole.
            reading.cards.retain(|read| read.name != card.name);
            reading.users.retain(|user| user.gpu != card.name);
            reading.trouble.push(format!("{}: {code}", card.name));
            false
        });
        reading
    }
}

fn is_due(asked: Option<Duration>, at: Duration) -> bool {
    asked.is_none_or(|asked| at.saturating_sub(asked) >= THROUGHPUT_REST)
}

/// Adds a card and its parts.
fn add(found: &mut Vec<Found>, name: &str, device: Device, driver: Option<&str>) {
    let parts = device.parts().unwrap_or_default();
    found.push(Found { device, gpu: what(name, device, driver), is_divided: !parts.is_empty() });
    for (number, part) in parts.into_iter().enumerate() {
        let gpu = what(&format!("{name}:{number}"), part, driver);
        found.push(Found { device: part, gpu, is_divided: false });
    }
}

fn what(name: &str, device: Device, driver: Option<&str>) -> Gpu {
    Gpu {
        name: name.to_owned(),
        uuid: device.uuid().ok(),
        model: device.name().ok(),
        memory_bytes: device.memory().ok().map(|memory| memory.total),
        power_limit_watts: device.power_limit().ok().map(|milliwatts| f64::from(milliwatts) / 1e3),
        driver: driver.map(str::to_owned),
        usable: None,
        node: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_links_carry_is_asked_once_a_second_however_often_cards_are_looked_at() {
        let asked_in = |interval: u64| {
            let (mut asked, mut count) = (None, 0);
            for at in (0..60_000).step_by(interval as usize).map(Duration::from_millis) {
                if is_due(asked, at) {
                    (asked, count) = (Some(at), count + 1);
                }
            }
            count
        };
        assert_eq!([100, 500, 990, 1000, 10_000].map(asked_in), [60, 60, 61, 60, 6]);
    }
}
