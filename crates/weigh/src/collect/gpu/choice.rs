//! Words that choose GPUs (`--gpus`): what they mean, and which of them mean nothing.
//!
//! Source: before a run, the names in `/proc/driver/nvidia/gpus`, one for each card, and
//! `/sys/class/drm`, which every user may list. That is a few microseconds. What only a driver
//! knows is not asked, because it may take its time; so UUIDs are compared during the run.

use super::drm;
use crate::catalog::metrics::gpu::whole_of;
use crate::host::{Host, nvml};
use crate::model::Gpu;
use crate::model::gpu::GpuSelector;

/// The first word that means a card that this machine does not have, and which it has. Nothing
/// where only the driver can tell.
pub fn not_there<'w>(host: &Host, wanted: &'w [String]) -> Option<(&'w str, Vec<String>)> {
    let counts = counts(host)?;
    let is_bare = counts.iter().all(|(_, count)| *count == 0);
    let is_beyond = |word: &&String| match GpuSelector::parse(word) {
        Some(GpuSelector::Index(maker, number)) => counts
            .iter()
            .filter(|(name, _)| maker.is_none_or(|maker| maker == *name))
            .all(|(_, count)| number as usize >= *count),
        Some(GpuSelector::Uuid) | None => is_bare,
    };
    let word = wanted.iter().find(is_beyond)?;
    let named = |(maker, count)| (0..count).map(move |number| format!("{maker}{number}"));
    Some((word, counts.into_iter().flat_map(named).collect()))
}

/// How many cards of each maker a glance at the machine finds; nothing when there may be more.
fn counts(host: &Host) -> Option<[(&'static str, usize); 3]> {
    // Another library has cards of its own.
    if nvml::is_named() {
        return None;
    }
    // Where Windows lends its driver, and in some containers, there is no list.
    let listed = host.proc.names(c"driver/nvidia/gpus").map_or(0, |names| names.len());
    if listed == 0 && super::nvidia::is_loaded(host) {
        return None;
    }
    let of = |maker| drm::count(host, maker);
    Some([("nvidia", listed), ("amd", of("amd")), ("intel", of("intel"))])
}

/// Whether a word means this GPU: its name, its number, its UUID or the beginning of it.
fn means(word: &str, gpu: &Gpu) -> bool {
    let word = word.trim();
    let number = gpu.name.trim_start_matches(|letter: char| letter.is_ascii_alphabetic());
    // As CUDA_VISIBLE_DEVICES and ROCR_VISIBLE_DEVICES have it: enough of the UUID to tell it.
    let is_beginning = |uuid: &str| {
        word.len() > "GPU-".len()
            && uuid.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    };
    word == gpu.name || word == number || gpu.uuid.as_deref().is_some_and(is_beginning)
}

/// Whether a GPU is among those that are wanted, itself or as a part of one that is.
pub(super) fn is_wanted(wanted: &[String], gpu: &Gpu, all: &[Gpu]) -> bool {
    let whole = whole_of(&gpu.name);
    let mut meant = all.iter().filter(|one| one.name == gpu.name || one.name == whole);
    meant.any(|one| wanted.iter().any(|word| means(word, one)))
}

/// The words that mean no GPU, in a sentence.
pub(super) fn unknown(wanted: &[String], all: &[Gpu]) -> Option<String> {
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
    use crate::host::fake::FakeHost;

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

    #[test]
    fn a_word_is_a_number_a_name_or_a_uuid() {
        for word in [
            "0",
            "12",
            "nvidia1",
            "amd0",
            "intel3",
            "0:1",
            "nvidia0:1",
            " 1 ",
            "GPU-8f",
            "gpu-8f",
            "MIG-1",
        ] {
            assert!(GpuSelector::parse(word).is_some(), "{word}");
        }
        for word in ["", "all", "nvidia", "-1", "1:", ":1", "1:x", "99999999999", "0 1", "00"] {
            assert!(GpuSelector::parse(word).is_none(), "{word}");
        }
    }

    #[test]
    fn a_number_beyond_the_cards_is_known_before_the_driver_is_asked() {
        let fake = FakeHost::new()
            .proc("driver/nvidia/gpus/0000:18:00.0/information", "")
            .proc("driver/nvidia/gpus/0000:3b:00.0/information", "");
        let told = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            not_there(&fake.host(), &words).map(|(word, there)| (word.to_owned(), there.len()))
        };
        assert_eq!(told(&["1", "2"]), Some(("2".to_owned(), 2)));
        assert_eq!(told(&["nvidia7:0"]), Some(("nvidia7:0".to_owned(), 2)));
        assert_eq!(told(&["0", "nvidia1:3", "GPU-none"]), None, "the driver knows more");
        fake.set_proc("driver/nvidia/version", "NVRM version: 575\n");
        assert_eq!(told(&["2"]), Some(("2".to_owned(), 2)));
        let fake = fake.sys(
            "class/drm/card0/device/uevent",
            "DRIVER=xe\nPCI_SLOT_NAME=0000:03:00.0\nPCI_ID=8086:E20B\n",
        );
        let told = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            not_there(&fake.host(), &words).map(|(word, there)| (word.to_owned(), there.len()))
        };
        assert_eq!(told(&["1", "intel0"]), None);
        assert_eq!(told(&["intel1"]), Some(("intel1".to_owned(), 3)), "of all makers");
        let bare = FakeHost::new();
        let uuid = ["GPU-8f6a".to_owned()];
        let told = not_there(&bare.host(), &uuid);
        assert_eq!(told, Some(("GPU-8f6a", Vec::new())), "there is no driver at all");
        bare.set_proc("driver/nvidia/version", "NVRM version: 575\n");
        assert_eq!(not_there(&bare.host(), &["7".to_owned()]), None, "it is not known");
    }
}
