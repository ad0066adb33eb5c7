//! What CUDA makes of `CUDA_VISIBLE_DEVICES`.
//!
//! What surprised us: CUDA counts the fastest card first unless `CUDA_DEVICE_ORDER` says
//! `PCI_BUS_ID`, so on a machine with several models a number may mean another card than NVML's of
//! the same number. A word that means nothing ends the list: those after it are not seen. So does a
//! number after a UUID, or the other way round; the same word twice is no card at all. Of divided
//! cards a process sees one part, and no whole card beside it (MIG User Guide, "CUDA Device
//! Enumeration"); another process of the run may be given the others, so they are not known.

use std::ops::ControlFlow;

use super::named;
use crate::catalog::metrics::gpu::{is_whole, whole_of};
use crate::model::Gpu;
use crate::model::gpu::is_number;

/// Notes whether GPUs could be used.
pub(super) fn mark(list: Option<&str>, is_by_bus: bool, all: &mut [Gpu]) {
    let mut models = all.iter().filter(|gpu| is_whole(&gpu.name)).map(|gpu| &gpu.model);
    let first = models.next();
    let numbers_tell = is_by_bus || models.all(|model| Some(model) == first);
    let wholes = || (0..all.len()).filter(|place| is_whole(&all[*place].name));
    let divided = wholes().filter(|place| is_divided(&all[*place].name, all)).count();
    let listed = match list {
        // Of several that are divided it is the first by CUDA's count.
        None => (numbers_tell || divided <= 1).then(|| wholes().collect()),
        Some(list) => chosen(list, numbers_tell, all),
    };
    let usable: Vec<Option<bool>> = match listed {
        None => vec![None; all.len()],
        Some(listed) => all.iter().map(|gpu| could_use(gpu, &listed, all)).collect(),
    };
    all.iter_mut().zip(usable).for_each(|(gpu, usable)| gpu.usable = usable);
}

/// The places of the GPUs that a list means, in its order; nothing when that is not known.
fn chosen(list: &str, numbers_tell: bool, all: &[Gpu]) -> Option<Vec<usize>> {
    let mut words: Vec<&str> = Vec::new();
    let mut places: Vec<usize> = Vec::new();
    for word in list.split(',').map(str::trim) {
        if words.contains(&word) {
            return Some(Vec::new());
        }
        let is_other_kind = words.first().is_some_and(|first| is_number(first) != is_number(word));
        match meant(word, numbers_tell, all)? {
            ControlFlow::Continue(place) if !is_other_kind => {
                // Two words for one GPU: nobody says what that is.
                if places.contains(&place) {
                    return None;
                }
                words.push(word);
                places.push(place);
            }
            _ => break,
        }
    }
    Some(places)
}

/// The place of the GPU that a word means: the number of a whole one, or enough of a UUID to tell
/// it from all others. One that means none ends the list. Nothing when it is not known.
fn meant(word: &str, numbers_tell: bool, all: &[Gpu]) -> Option<ControlFlow<(), usize>> {
    let place = if is_number(word) {
        if !numbers_tell {
            return None;
        }
        let mut whole = (0..all.len()).filter(|place| is_whole(&all[*place].name));
        word.parse().ok().and_then(|number| whole.nth(number))
    } else {
        let place = named(word, all.iter().map(|gpu| gpu.uuid.as_deref()));
        // Before R470 a part was named by its card and two numbers, which later drivers take, too.
        if place.is_none()
            && word.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("MIG-GPU-"))
        {
            return None;
        }
        place
    };
    Some(place.map_or(ControlFlow::Break(()), ControlFlow::Continue))
}

fn is_divided(name: &str, all: &[Gpu]) -> bool {
    is_whole(name) && all.iter().any(|one| one.name != name && whole_of(&one.name) == name)
}

/// Whether a GPU could be used when these are listed.
fn could_use(gpu: &Gpu, listed: &[usize], all: &[Gpu]) -> Option<bool> {
    let names = || listed.iter().map(|place| all[*place].name.as_str());
    // The part that is seen, or the card of which one is; which, is CUDA's own affair.
    let part =
        names().find(|name| !is_whole(name)).or_else(|| names().find(|name| is_divided(name, all)));
    let is_within = |whole: &str| gpu.name == whole || whole_of(&gpu.name) == whole;
    match part {
        None => Some(names().any(|name| name == gpu.name)),
        Some(part) if gpu.name == part || gpu.name == whole_of(part) => Some(true),
        Some(_) if names().any(|name| is_within(name) || whole_of(name) == gpu.name) => None,
        Some(_) => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(models: [&str; 2]) -> Vec<Gpu> {
        let gpu = |name: &str, uuid: &str, model: &str| Gpu {
            name: name.to_owned(),
            uuid: Some(uuid.to_owned()),
            model: Some(model.to_owned()),
            ..Gpu::default()
        };
        vec![
            gpu("nvidia0", "GPU-aaaa-1", models[0]),
            gpu("nvidia0:0", "MIG-bbbb-2", "1g.10gb"),
            gpu("nvidia0:1", "MIG-bbcc-3", "1g.10gb"),
            gpu("nvidia1", "GPU-aacc-4", models[1]),
        ]
    }

    /// Of `nvidia0`, its two parts, and `nvidia1`.
    fn usable(list: &str, models: [&str; 2]) -> Vec<Option<bool>> {
        of(machine(models), Some(list), false)
    }

    fn of(mut all: Vec<Gpu>, list: Option<&str>, is_by_bus: bool) -> Vec<Option<bool>> {
        mark(list, is_by_bus, &mut all);
        all.iter().map(|gpu| gpu.usable).collect()
    }

    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);
    const ALIKE: [&str; 2] = ["H100", "H100"];

    #[test]
    fn numbers_uuids_and_their_beginnings_name_gpus_and_an_empty_list_none() {
        assert_eq!(usable("1", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable(" GPU-AACC-4 ", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("GPU-aac", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("", ALIKE), [NO; 4]);
        assert_eq!(usable("-1", ALIKE), [NO; 4]);
        assert_eq!(usable("NoDevFiles", ALIKE), [NO; 4]);
    }

    #[test]
    fn a_word_that_means_nothing_or_two_ends_the_list() {
        assert_eq!(usable("1,7,0", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("1,GPU-aa,0", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("1,,0", ALIKE), [NO, NO, NO, YES]);
    }

    #[test]
    fn a_part_makes_its_card_usable_and_of_a_divided_card_nobody_knows_which_part() {
        assert_eq!(usable("MIG-bbcc-3", ALIKE), [YES, NO, YES, NO]);
        assert_eq!(usable("0", ALIKE), [YES, None, None, NO]);
    }

    #[test]
    fn the_same_twice_is_nothing_at_all_and_another_kind_of_word_ends_the_list() {
        assert_eq!(usable("1,1", ALIKE), [NO; 4]);
        assert_eq!(usable("1, 1", ALIKE), [NO; 4]);
        assert_eq!(usable("1,7,1", ALIKE), [NO, NO, NO, YES], "the list has ended before");
        assert_eq!(usable("1,GPU-aaaa-1", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("GPU-aacc,0", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("GPU-aacc,GPU-aacc-4", ALIKE), [None; 4], "nobody knows");
    }

    #[test]
    fn beside_a_divided_card_cuda_sees_one_part_and_nothing_whole() {
        assert_eq!(usable("0,1", ALIKE), [YES, None, None, None]);
        assert_eq!(usable("1,0", ALIKE), [YES, None, None, None]);
        assert_eq!(usable("MIG-bbbb,MIG-bbcc", ALIKE), [YES, YES, None, NO]);
        assert_eq!(usable("GPU-aacc,MIG-bbcc", ALIKE), [YES, NO, YES, None]);
        assert_eq!(of(machine(ALIKE), None, false), [YES, None, None, None]);
        let several = of(machine(["T400", "H100"]), None, false);
        assert_eq!(several, [YES, None, None, None], "there is one that is divided");
        let undivided = machine(ALIKE).into_iter().filter(|gpu| is_whole(&gpu.name)).collect();
        assert_eq!(of(undivided, None, false), [YES; 2]);
    }

    #[test]
    fn the_earlier_name_of_a_part_means_something_that_is_not_known() {
        assert_eq!(usable("MIG-GPU-aaaa-1/1/0", ALIKE), [None; 4]);
        let mut all = machine(ALIKE);
        all[1].uuid = Some("MIG-GPU-aaaa-1/1/0".to_owned());
        assert_eq!(of(all, Some("MIG-GPU-aaaa-1/1/0"), false), [YES, YES, NO, NO]);
    }

    #[test]
    fn among_several_models_a_number_tells_only_when_cards_are_counted_by_their_bus() {
        let models = ["T400", "H100"];
        assert_eq!(usable("0", models), [None; 4]);
        assert_eq!(of(machine(models), Some("1"), true), [NO, NO, NO, YES]);
        assert_eq!(usable("GPU-aacc", models), [NO, NO, NO, YES], "no number is in it");
    }
}
