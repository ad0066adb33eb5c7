//! GPUs of AMD's and Intel's, by the files of their drivers in the kernel.
//!
//! Source: `/sys/class/drm/cardN/` of amdgpu, i915 and xe, for everybody; what processes have, by
//! `/proc/PID/fdinfo` of the run's own ([`clients`]) and by the files of AMD's driver for
//! computing ([`kfd`]). No library is needed.
//!
//! What surprised us: a file may take as long as the card's firmware does, and that may hang. So
//! it is a thread that reads them (`gpu::thread`).

mod amd;
mod card;
mod clients;
mod cycles;
mod energy;
mod intel;
mod kfd;
mod rest;
mod sensor;
#[cfg(test)]
mod tests;
mod using;

use std::ffi::CString;
use std::time::Duration;

use card::{Card, Driver, Place};
use clients::Clients;
use kfd::Kfd;
use sensor::Look;
use using::User;

use super::choice::is_wanted;
use super::reading::{Ask, Find, Reading, UserRead, Who};
use crate::catalog::metrics::GpuActivity;
use crate::collect::Probe;
use crate::host::{Descriptors, Dir, Host};
use crate::model::gpu::Visible;
use crate::model::{Gpu, Name, ProcessId};

/// Descriptors that are kept open of cards: all files of eight of them.
const OF_CARDS: usize = 160;

/// Descriptors that are kept open of cards and of the processes that use them.
pub(super) const KEPT: usize = OF_CARDS + clients::KEPT;

/// Whether there is such a card.
pub(super) fn probe(host: &Host) -> Probe {
    if !Place::all(&host.sys).is_empty() {
        return Probe::Ready;
    }
    let is_loaded = |driver: &Driver| {
        CString::new(format!("module/{}", driver.name())).is_ok_and(|module| host.sys.has(&module))
    };
    let loaded = Driver::ALL.into_iter().find(is_loaded);
    Probe::Absent {
        why: match loaded {
            None => format!(
                "no driver of AMD's or Intel's is loaded: there is no amdgpu, i915 or xe in {}",
                host.sys.path(c"module").display()
            ),
            Some(driver) => format!(
                "{} is loaded and has no GPU in {}",
                driver.name(),
                host.sys.path(c"class/drm").display()
            ),
        },
    }
}

/// How the cards are found, those that are wanted among them.
pub(super) fn find(host: &Host, wanted: Option<Vec<String>>, visible: Option<Visible>) -> Find {
    let (proc, sys) = (host.proc.clone(), host.sys.clone());
    Box::new(move || Ok(Box::new(Cards::find(proc, sys, wanted.as_deref(), visible.as_ref()))))
}

/// How many cards of a maker's there are.
pub(super) fn count(host: &Host, maker: &str) -> usize {
    Place::all(&host.sys).iter().filter(|place| place.driver.maker() == maker).count()
}

/// The cards that count.
struct Cards {
    proc: Dir,
    sys: Dir,
    cards: Vec<Card>,
    clients: Clients,
    kfd: Kfd,
    there: Vec<Gpu>,
    /// What they are, until that is told.
    met: Vec<Gpu>,
    /// What went wrong, until that is told.
    trouble: Vec<String>,
    buffer: Vec<u8>,
}

impl Cards {
    fn find(proc: Dir, sys: Dir, wanted: Option<&[String]>, visible: Option<&Visible>) -> Cards {
        let allowance = Descriptors::at_most(OF_CARDS);
        let (mut buffer, mut trouble) = (Vec::new(), Vec::new());
        let mut look = Look { sys: &sys, buffer: &mut buffer, trouble: &mut trouble };
        let mut found: Vec<(Card, Gpu)> = Vec::new();
        for place in Place::all(&sys) {
            let maker = place.driver.maker();
            let number =
                found.iter().filter(|(card, _)| card.place.driver.maker() == maker).count();
            let name = Name::new(format!("{maker}{number}").as_bytes());
            let mut card = Card::new(&sys, name, place, &allowance);
            let gpu = card.what(&mut look);
            found.push((card, gpu));
        }
        let mut there: Vec<Gpu> = found.iter().map(|(_, gpu)| gpu.clone()).collect();
        let kfd = Kfd::find(&sys, &proc, &mut buffer);
        if let Some(visible) = visible {
            let cards = found.iter().map(|(card, _)| card.place.address.as_slice());
            visible.mark_by_rocm(&mut there, &kfd.nodes(&cards.collect::<Vec<_>>()));
            found.iter_mut().zip(&there).for_each(|((_, gpu), marked)| gpu.usable = marked.usable);
        }
        found.retain(|(_, gpu)| wanted.is_none_or(|wanted| is_wanted(wanted, gpu, &there)));
        let (cards, met) = found.into_iter().unzip();
        let clients = Clients::new(proc.clone(), sys.clone());
        Cards { proc, sys, cards, clients, kfd, there, met, trouble, buffer }
    }
}

impl Ask for Cards {
    fn there(&self) -> Vec<Gpu> {
        self.there.clone()
    }

    fn read(&mut self, at: Duration, moved: &[ProcessId]) -> Reading {
        let mut reading = Reading {
            met: std::mem::take(&mut self.met),
            trouble: std::mem::take(&mut self.trouble),
            ..Reading::default()
        };
        let (sys, buffer, trouble) = (&self.sys, &mut self.buffer, &mut reading.trouble);
        self.cards.retain(|card| {
            let is_there = card.is_there(sys);
            if !is_there {
                trouble.push(format!("{}: it is not in the machine any more", card.name));
            }
            is_there
        });
        for card in &mut self.cards {
            card.see_whether_to_ask(at, &mut Look { sys, buffer, trouble });
        }
        let using = self.clients.look(at, moved, &self.cards, buffer);
        let computing = self.kfd.look(sys, &self.proc, &self.clients, buffer);
        for card in &mut self.cards {
            let mut users = using.of(&card.place.address);
            if card.place.driver == Driver::Amdgpu {
                computing.add_to(&card.place.address, &mut users);
            }
            let unknown = computing.unknown(&card.place.address);
            let used_by = users.iter().filter(|user| user.uses).count() as u64;
            let mut read = card.look(at, used_by > 0, &mut Look { sys, buffer, trouble });
            // Of a process into whose files we may not look, nobody knows which cards it uses.
            let processes = (!self.clients.some_are_hidden()).then_some(used_by + unknown);
            read.activity = GpuActivity {
                processes,
                processes_unknown: processes.map(|_| unknown),
                ..read.activity
            };
            reading.cards.push(read);
            let row = |user: User| UserRead {
                gpu: card.name,
                who: Who::Known(user.id),
                share: user.share,
            };
            reading.users.extend(users.into_iter().map(row));
        }
        reading
    }
}
