//! Which cards there are, which of them count, and one look at all of them.

use super::card::Card;
use super::thread::Reading;
use super::visible::Visible;
use crate::host::nvml::{Device, Error, Nvml, Room};
use crate::sample::{Gpu, Name};

/// The cards that count.
pub(super) struct Cards {
    cards: Vec<Card>,
    /// What they are, until that is told.
    met: Vec<Gpu>,
    /// What went wrong, until that is told.
    trouble: Vec<String>,
    room: Room,
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
        trouble.extend(wanted.and_then(|wanted| unknown(wanted, &all)));
        found.retain(|found| wanted.is_none_or(|wanted| is_wanted(wanted, &found.gpu, &all)));
        let met = found.iter().map(|found| found.gpu.clone()).collect();
        let cards = found.into_iter().map(|found| {
            Card::new(Name::new(found.gpu.name.as_bytes()), found.device, found.is_divided)
        });
        Ok(Cards { cards: cards.collect(), met, trouble, room: Room::default() })
    }

    /// Asks all of them everything once.
    pub(super) fn read(&mut self) -> Reading {
        let mut reading = Reading {
            met: std::mem::take(&mut self.met),
            trouble: std::mem::take(&mut self.trouble),
            ..Reading::default()
        };
        self.cards.retain_mut(|card| {
            let users = reading.users.len();
            let read = card.look(&mut self.room, &mut reading.users);
            match card.asking.lost {
                None => reading.cards.push(read),
                Some(code) => {
                    // What it said before it was lost is not whole.
                    reading.users.truncate(users);
                    reading.trouble.push(format!("{}: {code}", card.name));
                }
            }
            card.asking.lost.is_none()
        });
        reading
    }
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
    }
}

/// Whether a word means this GPU: its name, its number, its UUID or the beginning of it.
fn means(word: &str, gpu: &Gpu) -> bool {
    let number = gpu.name.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    // As CUDA_VISIBLE_DEVICES has it: enough of the UUID to tell it.
    let is_beginning = |uuid: &str| {
        word.len() > "GPU-".len()
            && uuid.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    word == gpu.name || word == number || gpu.uuid.as_deref().is_some_and(is_beginning)
}

/// Whether a GPU is among those that are wanted, itself or as a part of one that is.
fn is_wanted(wanted: &[String], gpu: &Gpu, all: &[Gpu]) -> bool {
    let whole = gpu.name.split(':').next().unwrap_or_default();
    let mut meant = all.iter().filter(|one| one.name == gpu.name || one.name == whole);
    meant.any(|one| wanted.iter().any(|word| means(word, one)))
}

/// The words that mean no GPU, in a sentence.
fn unknown(wanted: &[String], all: &[Gpu]) -> Option<String> {
    let missed = wanted.iter().filter(|word| !all.iter().any(|gpu| means(word, gpu)));
    let missed: Vec<String> = missed.map(|word| format!("\"{word}\"")).collect();
    let shown = |gpu: &Gpu| match &gpu.uuid {
        Some(uuid) => format!("{} ({uuid})", gpu.name),
        None => gpu.name.clone(),
    };
    let there: Vec<String> = all.iter().map(shown).collect();
    let (missed, there) = ((!missed.is_empty()).then(|| missed.join(", "))?, there.join(", "));
    Some(format!("there is no GPU {missed}; there are {there}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Vec<Gpu> {
        [("nvidia0", "GPU-aaaa-1"), ("nvidia0:0", "MIG-bbbb-2"), ("nvidia1", "GPU-cccc-3")]
            .map(|(name, uuid)| Gpu {
                name: name.to_owned(),
                uuid: Some(uuid.to_owned()),
                ..Gpu::default()
            })
            .into()
    }

    fn chosen(words: &[&str]) -> Vec<String> {
        let (all, words) = (machine(), words.iter().map(|word| (*word).to_owned()));
        let words: Vec<String> = words.collect();
        let chosen = all.iter().filter(|gpu| is_wanted(&words, gpu, &all));
        chosen.map(|gpu| gpu.name.clone()).collect()
    }

    #[test]
    fn gpus_are_chosen_by_number_name_and_uuid_and_a_whole_brings_its_parts() {
        assert_eq!(chosen(&["1"]), ["nvidia1"]);
        assert_eq!(chosen(&["nvidia0"]), ["nvidia0", "nvidia0:0"]);
        assert_eq!(chosen(&["gpu-AAAA"]), ["nvidia0", "nvidia0:0"]);
        assert_eq!(chosen(&["MIG-bbbb-2", "1"]), ["nvidia0:0", "nvidia1"]);
        assert_eq!(chosen(&["GPU-"]), [""; 0], "that is the beginning of all of them");
    }

    #[test]
    fn a_gpu_that_is_not_there_is_told_with_those_that_are() {
        let words = ["7".to_owned(), "1".to_owned()];
        let why = unknown(&words, &machine()).unwrap();
        assert!(why.contains("no GPU \"7\";") && why.contains("nvidia1 (GPU-cccc-3)"), "{why}");
        assert_eq!(unknown(&words[1..], &machine()), None);
    }
}
