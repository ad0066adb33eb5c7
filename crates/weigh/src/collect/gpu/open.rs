//! Who uses a GPU, and who merely has it open.
//!
//! What surprised us: ROCm opens every card there is, also those that `ROCR_VISIBLE_DEVICES`
//! hides from the program, because what reads that variable is built upon what opens them. Each
//! of its processes is a client of every card, with page tables on it.

use super::GpuShare;

/// Memory that a process may have on a card that it merely has open: page tables, and what a
/// runtime puts on every card.
const MERELY_OPEN: u64 = 16 << 20;

/// Whether what a process has of a GPU shows that it uses it: work, or more memory than whoever has
/// it open has.
pub fn is_use(share: &GpuShare) -> bool {
    let works = [
        share.utilization,
        share.memory_utilization,
        share.encoder,
        share.decoder,
        share.video,
        share.copy,
        share.occupancy,
    ];
    share.memory.max(share.memory_peak) > Some(MERELY_OPEN)
        || works.into_iter().flatten().any(|share| share > 0.0)
}

/// Whether it shows that it does not. Where memory is not told, nobody knows.
pub fn is_merely_open(share: &GpuShare) -> bool {
    share.memory.or(share.memory_peak).is_some() && !is_use(share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_or_memory_is_use_and_what_is_not_told_may_be() {
        let open = GpuShare { memory: Some(2 << 20), utilization: Some(0.0), ..Default::default() };
        assert!(is_merely_open(&open));
        assert!(!is_merely_open(&GpuShare { memory: Some(1 << 30), ..open }));
        assert!(!is_merely_open(&GpuShare { memory_peak: Some(1 << 30), ..open }));
        assert!(!is_merely_open(&GpuShare { utilization: Some(0.1), ..open }));
        assert!(!is_merely_open(&GpuShare { occupancy: Some(0.1), ..open }));
        let untold = GpuShare { memory: None, ..open };
        assert_eq!((is_merely_open(&untold), is_use(&untold)), (false, false));
    }
}
