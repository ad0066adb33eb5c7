//! How ROCm reads `ROCR_VISIBLE_DEVICES` and `HIP_VISIBLE_DEVICES`.
//!
//! What surprised us: ROCm does not count GPUs. It counts nodes of KFD, in the order of their
//! numbers, as far as they may be read: a cgroup hides those of other jobs (SLURM's
//! ConstrainDevices) while `/sys/class/drm` shows all GPUs, and an MI300X may be eight nodes. An
//! entry that matches no node ends a list, and in ROCR's so does a node for the second time
//! (`amd_filter_device.cpp`). HIP counts the nodes that ROCR has left, so its index 0 is the first
//! of ROCR's list.

use super::by_uuid;
use crate::model::Gpu;
use crate::model::gpu::is_number;

/// The nodes of KFD that have a GPU, in the order of their numbers.
#[derive(Debug, Default)]
pub(in super::super) struct RocmNodes {
    pub(in super::super) each: Vec<RocmNode>,
    /// Whether a cgroup hides others.
    pub(in super::super) some_hidden: bool,
}

/// A node of KFD.
#[derive(Debug, Clone)]
pub(in super::super) struct RocmNode {
    /// Its position among all GPUs, when it is one of them.
    pub(in super::super) gpu: Option<usize>,
    /// Its UUID, as ROCm has it.
    pub(in super::super) uuid: Option<String>,
}

/// Sets whether AMD's GPUs could be used.
pub(super) fn mark(rocr: Option<&str>, hip: Option<&str>, all: &mut [Gpu], nodes: &RocmNodes) {
    let has_node = |gpu: usize| nodes.each.iter().any(|node| node.gpu == Some(gpu));
    let is_clear = !nodes.each.is_empty() && nodes.each.iter().all(|node| node.gpu.is_some());
    let mut left: Vec<&RocmNode> = nodes.each.iter().collect();
    if let Some(list) = rocr {
        left = selected(list, &left, true);
    }
    if let Some(list) = hip {
        left = selected(list, &left, false);
    }
    let has_list = rocr.or(hip).is_some();
    for (index, gpu) in all.iter_mut().enumerate().filter(|(_, gpu)| gpu.name.starts_with("amd")) {
        gpu.usable = match has_list {
            true if is_clear => Some(left.iter().any(|node| node.gpu == Some(index))),
            true => None,
            false => Some(has_node(index) || !nodes.some_hidden),
        };
    }
}

/// The nodes that a list selects among those that are left, in its order.
fn selected<'n>(list: &str, left: &[&'n RocmNode], ends_at_repeat: bool) -> Vec<&'n RocmNode> {
    let mut positions: Vec<usize> = Vec::new();
    for entry in list.split(',').map(str::trim) {
        let position = match is_number(entry) {
            true => entry.parse().ok().filter(|index| *index < left.len()),
            false => by_uuid(entry, left.iter().map(|node| node.uuid.as_deref())),
        };
        match position {
            Some(position) if !positions.contains(&position) => positions.push(position),
            Some(_) if !ends_at_repeat => {}
            _ => break,
        }
    }
    positions.into_iter().map(|position| left[position]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);

    /// Whether three GPUs of AMD's and one of Intel's are usable, when nodes are of these GPUs.
    fn usable(
        gpus: &[Option<usize>],
        some_hidden: bool,
        [rocr, hip]: [Option<&str>; 2],
    ) -> Vec<Option<bool>> {
        let names = ["amd0", "amd1", "amd2", "intel0"];
        let gpu = |name: &str| Gpu { name: name.to_owned(), ..Gpu::default() };
        let mut all: Vec<Gpu> = names.map(gpu).into();
        let node = |(number, gpu): (usize, &Option<usize>)| RocmNode {
            gpu: *gpu,
            uuid: Some(format!("GPU-{number:016x}")),
        };
        let nodes = RocmNodes { each: gpus.iter().enumerate().map(node).collect(), some_hidden };
        mark(rocr, hip, &mut all, &nodes);
        all.iter().map(|gpu| gpu.usable).collect()
    }

    const EACH: [Option<usize>; 3] = [Some(0), Some(1), Some(2)];

    #[test]
    fn hip_counts_the_nodes_that_rocr_leaves() {
        let of = |rocr, hip| usable(&EACH, false, [rocr, hip]);
        assert_eq!(of(None, None), [YES, YES, YES, None]);
        assert_eq!(of(Some("2,GPU-0000000000000001"), None), [NO, YES, YES, None]);
        assert_eq!(of(Some("2,gpu-0000000000000001"), Some("1")), [NO, YES, NO, None]);
        assert_eq!(of(None, Some("0")), [YES, NO, NO, None]);
        assert_eq!(of(Some(""), Some("0")), [NO, NO, NO, None]);
        assert_eq!(of(Some("1,1,0"), None), [NO, YES, NO, None], "a repeated node ends the list");
        assert_eq!(of(None, Some("1,1,0")), [YES, YES, NO, None], "HIP skips it");
        assert_eq!(of(Some("7,0"), None), [NO, NO, NO, None]);
    }

    #[test]
    fn nodes_are_counted_and_not_gpus() {
        let parts = [Some(0), Some(0), Some(2), Some(2)];
        assert_eq!(usable(&parts, false, [Some("1"), None]), [YES, NO, NO, None]);
        assert_eq!(usable(&parts, false, [Some("2,3"), None]), [NO, NO, YES, None]);
        let backwards = [Some(2), Some(1), Some(0)];
        assert_eq!(usable(&backwards, false, [Some("0"), None]), [NO, NO, YES, None]);
    }

    #[test]
    fn gpu_with_a_hidden_node_is_not_usable() {
        assert_eq!(usable(&[Some(2)], true, [Some("0"), None]), [NO, NO, YES, None]);
        assert_eq!(usable(&[Some(2)], true, [None, None]), [NO, NO, YES, None]);
        assert_eq!(usable(&[Some(2)], false, [None, None]), [YES, YES, YES, None]);
    }

    #[test]
    fn without_nodes_that_match_gpus_an_index_is_unknown() {
        assert_eq!(usable(&[], false, [Some("0"), None]), [None; 4]);
        assert_eq!(usable(&[Some(0), None], false, [Some("0"), None]), [None; 4]);
        assert_eq!(usable(&[Some(0), None], false, [None, None]), [YES, YES, YES, None]);
    }
}
