//! Which of several counts of one thing is believed: one decision table for CPU time, one for
//! memory. Both are pure: whoever wants a figure states the evidence, and the table decides.

mod cpu;
mod memory;

pub(super) use cpu::CpuEvidence;
pub(super) use memory::{
    CgroupMemory, MemoryBounds, MemoryEvidence, MemoryMeans, MemoryOwner, pss_or_largest_rss,
};
