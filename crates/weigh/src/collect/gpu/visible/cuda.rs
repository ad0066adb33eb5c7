//! How CUDA reads `CUDA_VISIBLE_DEVICES`.
//!
//! What surprised us: CUDA counts the fastest GPU first unless `CUDA_DEVICE_ORDER` is
//! `PCI_BUS_ID`, so on a machine with several models an index may be another GPU than NVML's of
//! the same index. An entry that matches no GPU ends the list: those after it are ignored. So does
//! an index after a UUID, or the other way round; the same entry twice hides all GPUs. With MIG a
//! process sees one instance, and no whole GPU beside it (MIG User Guide, "CUDA Device
//! Enumeration"); another process of the run may be given the others, so they are not known.

use std::ops::ControlFlow;

use super::by_uuid;
use crate::catalog::metrics::gpu::{is_whole, whole_of};
use crate::model::Gpu;
use crate::model::gpu::is_number;

/// Sets whether GPUs could be used.
pub(super) fn mark(list: Option<&str>, is_by_bus: bool, all: &mut [Gpu]) {
    let mut models = all.iter().filter(|gpu| is_whole(&gpu.name)).map(|gpu| &gpu.model);
    let first = models.next();
    let is_order_known = is_by_bus || models.all(|model| Some(model) == first);
    let wholes = || (0..all.len()).filter(|index| is_whole(&all[*index].name));
    let with_mig = wholes().filter(|index| has_instances(&all[*index].name, all)).count();
    let listed = match list {
        // Of several with MIG it is the first in CUDA's order.
        None => (is_order_known || with_mig <= 1).then(|| wholes().collect()),
        Some(list) => selected(list, is_order_known, all),
    };
    let usable: Vec<Option<bool>> = match listed {
        None => vec![None; all.len()],
        Some(listed) => all.iter().map(|gpu| could_use(gpu, &listed, all)).collect(),
    };
    all.iter_mut().zip(usable).for_each(|(gpu, usable)| gpu.usable = usable);
}

/// The positions of the GPUs that a list selects, in its order; nothing when that is not known.
fn selected(list: &str, is_order_known: bool, all: &[Gpu]) -> Option<Vec<usize>> {
    let mut entries: Vec<&str> = Vec::new();
    let mut positions: Vec<usize> = Vec::new();
    for entry in list.split(',').map(str::trim) {
        if entries.contains(&entry) {
            return Some(Vec::new());
        }
        let is_other_kind =
            entries.first().is_some_and(|first| is_number(first) != is_number(entry));
        match position(entry, is_order_known, all)? {
            ControlFlow::Continue(position) if !is_other_kind => {
                // Two entries for one GPU: that is not documented.
                if positions.contains(&position) {
                    return None;
                }
                entries.push(entry);
                positions.push(position);
            }
            _ => break,
        }
    }
    Some(positions)
}

/// The position of the GPU that an entry selects: by the index of a whole one, or a unique prefix
/// of a UUID. An entry without a match ends the list. Nothing when it is not known.
fn position(entry: &str, is_order_known: bool, all: &[Gpu]) -> Option<ControlFlow<(), usize>> {
    let position = if is_number(entry) {
        if !is_order_known {
            return None;
        }
        let mut whole = (0..all.len()).filter(|index| is_whole(&all[*index].name));
        entry.parse().ok().and_then(|index| whole.nth(index))
    } else {
        let position = by_uuid(entry, all.iter().map(|gpu| gpu.uuid.as_deref()));
        // Before R470 an instance was named by its GPU and two numbers; later drivers accept that.
        if position.is_none()
            && entry.get(..8).is_some_and(|start| start.eq_ignore_ascii_case("MIG-GPU-"))
        {
            return None;
        }
        position
    };
    Some(position.map_or(ControlFlow::Break(()), ControlFlow::Continue))
}

fn has_instances(name: &str, all: &[Gpu]) -> bool {
    is_whole(name) && all.iter().any(|one| one.name != name && whole_of(&one.name) == name)
}

/// Whether a GPU could be used when these are listed.
fn could_use(gpu: &Gpu, listed: &[usize], all: &[Gpu]) -> Option<bool> {
    let names = || listed.iter().map(|index| all[*index].name.as_str());
    // The visible instance, or the GPU that has it; which of them CUDA takes is not known.
    let instance = names().find(|name| !is_whole(name));
    let instance = instance.or_else(|| names().find(|name| has_instances(name, all)));
    let is_within = |whole: &str| gpu.name == whole || whole_of(&gpu.name) == whole;
    match instance {
        None => Some(names().any(|name| name == gpu.name)),
        Some(name) if gpu.name == name || gpu.name == whole_of(name) => Some(true),
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

    /// Of `nvidia0`, its two MIG instances, and `nvidia1`.
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
    fn entry_is_an_index_or_a_uuid_prefix_and_an_empty_list_hides_all() {
        assert_eq!(usable("1", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable(" GPU-AACC-4 ", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("GPU-aac", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("", ALIKE), [NO; 4]);
        assert_eq!(usable("-1", ALIKE), [NO; 4]);
        assert_eq!(usable("NoDevFiles", ALIKE), [NO; 4]);
    }

    #[test]
    fn entry_without_a_unique_match_ends_the_list() {
        assert_eq!(usable("1,7,0", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("1,GPU-aa,0", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("1,,0", ALIKE), [NO, NO, NO, YES]);
    }

    #[test]
    fn instance_makes_its_gpu_usable_and_of_a_gpu_with_mig_it_is_unknown() {
        assert_eq!(usable("MIG-bbcc-3", ALIKE), [YES, NO, YES, NO]);
        assert_eq!(usable("0", ALIKE), [YES, None, None, NO]);
    }

    #[test]
    fn repeated_entry_hides_all_and_another_kind_of_entry_ends_the_list() {
        assert_eq!(usable("1,1", ALIKE), [NO; 4]);
        assert_eq!(usable("1, 1", ALIKE), [NO; 4]);
        assert_eq!(usable("1,7,1", ALIKE), [NO, NO, NO, YES], "the list ended before");
        assert_eq!(usable("1,GPU-aaaa-1", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("GPU-aacc,0", ALIKE), [NO, NO, NO, YES]);
        assert_eq!(usable("GPU-aacc,GPU-aacc-4", ALIKE), [None; 4], "not documented");
    }

    #[test]
    fn beside_mig_cuda_sees_one_instance_and_no_whole_gpu() {
        assert_eq!(usable("0,1", ALIKE), [YES, None, None, None]);
        assert_eq!(usable("1,0", ALIKE), [YES, None, None, None]);
        assert_eq!(usable("MIG-bbbb,MIG-bbcc", ALIKE), [YES, YES, None, NO]);
        assert_eq!(usable("GPU-aacc,MIG-bbcc", ALIKE), [YES, NO, YES, None]);
        assert_eq!(of(machine(ALIKE), None, false), [YES, None, None, None]);
        let several = of(machine(["T400", "H100"]), None, false);
        assert_eq!(several, [YES, None, None, None], "one has MIG");
        let without_mig = machine(ALIKE).into_iter().filter(|gpu| is_whole(&gpu.name)).collect();
        assert_eq!(of(without_mig, None, false), [YES; 2]);
    }

    #[test]
    fn old_name_of_an_instance_is_unknown() {
        assert_eq!(usable("MIG-GPU-aaaa-1/1/0", ALIKE), [None; 4]);
        let mut all = machine(ALIKE);
        all[1].uuid = Some("MIG-GPU-aaaa-1/1/0".to_owned());
        assert_eq!(of(all, Some("MIG-GPU-aaaa-1/1/0"), false), [YES, YES, NO, NO]);
    }

    #[test]
    fn with_several_models_an_index_is_known_only_in_bus_order() {
        let models = ["T400", "H100"];
        assert_eq!(usable("0", models), [None; 4]);
        assert_eq!(of(machine(models), Some("1"), true), [NO, NO, NO, YES]);
        assert_eq!(usable("GPU-aacc", models), [NO, NO, NO, YES], "without an index");
    }
}
