//! Which GPUs are meant by the words of `--gpus`.

use crate::sample::Gpu;

/// Whether a word means this GPU: its name, its number, its UUID or the beginning of it.
fn means(word: &str, gpu: &Gpu) -> bool {
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
    let whole = gpu.name.split(':').next().unwrap_or_default();
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
