//! What ROCm makes of `ROCR_VISIBLE_DEVICES` and `HIP_VISIBLE_DEVICES`.
//!
//! What surprised us: ROCm does not count cards. It counts nodes of the driver for computing, in
//! the order of their numbers, as far as they may be read: a control group hides those of other
//! jobs (SLURM's ConstrainDevices) while `/sys/class/drm` shows all cards, and an MI300X may be
//! eight nodes. A word that means nothing ends a list, and in ROCR's so does a node for the second
//! time (`amd_filter_device.cpp`). HIP counts what ROCR has left, so its number 0 is the first of
//! ROCR's list.

use super::named;
use crate::model::Gpu;
use crate::model::gpu::is_number;

/// The nodes of the driver for computing that have a GPU, in the order of their numbers.
#[derive(Debug, Default)]
pub(in super::super) struct Nodes {
    pub(in super::super) each: Vec<Node>,
    /// Whether there are others, which a control group hides.
    pub(in super::super) some_hidden: bool,
}

/// One of them.
#[derive(Debug, Clone)]
pub(in super::super) struct Node {
    /// The place of its card among all GPUs, when it is one of them.
    pub(in super::super) card: Option<usize>,
    /// What ROCm calls it.
    pub(in super::super) uuid: Option<String>,
}

/// Notes whether AMD's GPUs could be used.
pub(super) fn mark(rocr: Option<&str>, hip: Option<&str>, all: &mut [Gpu], nodes: &Nodes) {
    let has_node = |place: usize| nodes.each.iter().any(|node| node.card == Some(place));
    let is_clear = !nodes.each.is_empty() && nodes.each.iter().all(|node| node.card.is_some());
    let mut left: Vec<&Node> = nodes.each.iter().collect();
    if let Some(list) = rocr {
        left = chosen(list, &left, true);
    }
    if let Some(list) = hip {
        left = chosen(list, &left, false);
    }
    let is_chosen = rocr.or(hip).is_some();
    for (place, gpu) in all.iter_mut().enumerate().filter(|(_, gpu)| gpu.name.starts_with("amd")) {
        gpu.usable = match is_chosen {
            true if is_clear => Some(left.iter().any(|node| node.card == Some(place))),
            true => None,
            false => Some(has_node(place) || !nodes.some_hidden),
        };
    }
}

/// The nodes that a list means among those that are left, in its order.
fn chosen<'n>(list: &str, left: &[&'n Node], ends_at_the_same: bool) -> Vec<&'n Node> {
    let mut places: Vec<usize> = Vec::new();
    for word in list.split(',').map(str::trim) {
        let place = match is_number(word) {
            true => word.parse().ok().filter(|number| *number < left.len()),
            false => named(word, left.iter().map(|node| node.uuid.as_deref())),
        };
        match place {
            Some(place) if !places.contains(&place) => places.push(place),
            Some(_) if !ends_at_the_same => {}
            _ => break,
        }
    }
    places.into_iter().map(|place| left[place]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const YES: Option<bool> = Some(true);
    const NO: Option<bool> = Some(false);

    /// Of three cards of AMD's and one of Intel's, when nodes are on these cards.
    fn usable(
        cards: &[Option<usize>],
        some_hidden: bool,
        [rocr, hip]: [Option<&str>; 2],
    ) -> Vec<Option<bool>> {
        let names = ["amd0", "amd1", "amd2", "intel0"];
        let gpu = |name: &str| Gpu { name: name.to_owned(), ..Gpu::default() };
        let mut all: Vec<Gpu> = names.map(gpu).into();
        let node = |(number, card): (usize, &Option<usize>)| Node {
            card: *card,
            uuid: Some(format!("GPU-{number:016x}")),
        };
        let nodes = Nodes { each: cards.iter().enumerate().map(node).collect(), some_hidden };
        mark(rocr, hip, &mut all, &nodes);
        all.iter().map(|gpu| gpu.usable).collect()
    }

    const EACH: [Option<usize>; 3] = [Some(0), Some(1), Some(2)];

    #[test]
    fn rocr_chooses_and_hip_counts_what_is_left() {
        let of = |rocr, hip| usable(&EACH, false, [rocr, hip]);
        assert_eq!(of(None, None), [YES, YES, YES, None]);
        assert_eq!(of(Some("2,GPU-0000000000000001"), None), [NO, YES, YES, None]);
        assert_eq!(of(Some("2,gpu-0000000000000001"), Some("1")), [NO, YES, NO, None]);
        assert_eq!(of(None, Some("0")), [YES, NO, NO, None]);
        assert_eq!(of(Some(""), Some("0")), [NO, NO, NO, None]);
        assert_eq!(of(Some("1,1,0"), None), [NO, YES, NO, None], "the same ends the list");
        assert_eq!(of(None, Some("1,1,0")), [YES, YES, NO, None], "and HIP passes it over");
        assert_eq!(of(Some("7,0"), None), [NO, NO, NO, None]);
    }

    #[test]
    fn nodes_are_counted_and_not_cards() {
        let parts = [Some(0), Some(0), Some(2), Some(2)];
        assert_eq!(usable(&parts, false, [Some("1"), None]), [YES, NO, NO, None]);
        assert_eq!(usable(&parts, false, [Some("2,3"), None]), [NO, NO, YES, None]);
        let backwards = [Some(2), Some(1), Some(0)];
        assert_eq!(usable(&backwards, false, [Some("0"), None]), [NO, NO, YES, None]);
    }

    #[test]
    fn a_card_whose_node_is_hidden_is_another_job_s() {
        assert_eq!(usable(&[Some(2)], true, [Some("0"), None]), [NO, NO, YES, None]);
        assert_eq!(usable(&[Some(2)], true, [None, None]), [NO, NO, YES, None]);
        assert_eq!(usable(&[Some(2)], false, [None, None]), [YES, YES, YES, None]);
    }

    #[test]
    fn where_nodes_are_not_there_or_fit_no_card_numbers_mean_nothing() {
        assert_eq!(usable(&[], false, [Some("0"), None]), [None; 4]);
        assert_eq!(usable(&[Some(0), None], false, [Some("0"), None]), [None; 4]);
        assert_eq!(usable(&[Some(0), None], false, [None, None]), [YES, YES, YES, None]);
    }
}
