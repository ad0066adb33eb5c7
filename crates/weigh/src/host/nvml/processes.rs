//! The processes on a GPU: a list whose entries have another length in nearly every generation of
//! the driver.
//!
//! Before R450 there is only the first form of the function; R450 made the entries longer and
//! called the function `_v2`; R510 has `_v3`, which is like it. What surprised us: the first
//! drivers of R535 (CUDA 12.2) write entries that are longer still, under the name `_v3` as
//! before, and later ones do not any more. Nothing in the result shows it. But these drivers have
//! the functions for protected memory, which was added to the entries, and not yet the function
//! that NVIDIA made for it afterwards. nvitop distinguishes them in the same way.

use nvml_wrapper_sys::bindings::NvmlLib;

use super::lists::{ListBuffers, fill};
use super::{Code, NvmlDevice, call};

/// A process on a GPU, by the driver's pid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NvmlProcess {
    /// Its pid, in the initial pid namespace of the machine.
    pub pid: u32,
    /// GPU memory of it, in bytes, where the driver knows it.
    pub memory: Option<u64>,
}

/// The longest entry that any driver writes, in words of 64 bits. The length that a driver is given
/// is the number of these, whichever it writes.
pub(super) type ProcessEntry = [u64; 4];

/// Processes that most machines have on one GPU at most.
const PROCESSES: usize = 64;

/// Lists processes by the newest version of a function that the library has, and returns how many
/// there are and how many words each has. All entries begin with the pid and the memory.
macro_rules! list {
    ($device:expr, $buffers:expr, $third:ident, $second:ident, $first:ident) => {{
        let (library, handle) = ($device.library, $device.handle);
        let has = (library.$third.is_ok(), library.$second.is_ok());
        let count = fill(&mut $buffers.processes, PROCESSES, [0; 4], |count, entries| match has {
            (true, _) => call!(library, $third(handle, count, entries.cast())),
            (false, true) => call!(library, $second(handle, count, entries.cast())),
            (false, false) => call!(library, $first(handle, count, entries.cast())),
        })?;
        let words = match has {
            (true, _) if has_longer_entries(library) => 4,
            (false, false) => 2,
            _ => 3,
        };
        (count, words)
    }};
}

fn has_longer_entries(library: &NvmlLib) -> bool {
    library.nvmlDeviceGetConfComputeMemSizeInfo.is_ok()
        && library.nvmlDeviceGetRunningProcessDetailList.is_err()
}

impl NvmlDevice {
    /// Compute processes.
    pub fn compute_processes(
        self,
        buffers: &mut ListBuffers,
    ) -> Result<impl Iterator<Item = NvmlProcess>, Code> {
        let (count, words) = list!(
            self,
            buffers,
            nvmlDeviceGetComputeRunningProcesses_v3,
            nvmlDeviceGetComputeRunningProcesses_v2,
            nvmlDeviceGetComputeRunningProcesses
        );
        Ok(processes(&buffers.processes, count, words))
    }

    /// Compute processes that use MPS, which the other list need not have.
    pub fn mps_processes(
        self,
        buffers: &mut ListBuffers,
    ) -> Result<impl Iterator<Item = NvmlProcess>, Code> {
        let (count, words) = list!(
            self,
            buffers,
            nvmlDeviceGetMPSComputeRunningProcesses_v3,
            nvmlDeviceGetMPSComputeRunningProcesses_v2,
            nvmlDeviceGetMPSComputeRunningProcesses
        );
        Ok(processes(&buffers.processes, count, words))
    }

    /// Graphics processes.
    pub fn graphics_processes(
        self,
        buffers: &mut ListBuffers,
    ) -> Result<impl Iterator<Item = NvmlProcess>, Code> {
        let (count, words) = list!(
            self,
            buffers,
            nvmlDeviceGetGraphicsRunningProcesses_v3,
            nvmlDeviceGetGraphicsRunningProcesses_v2,
            nvmlDeviceGetGraphicsRunningProcesses
        );
        Ok(processes(&buffers.processes, count, words))
    }
}

/// The first entries of a buffer, of so many words each.
fn processes(
    buffer: &[ProcessEntry],
    count: usize,
    words: usize,
) -> impl Iterator<Item = NvmlProcess> {
    buffer.as_flattened().chunks_exact(words).take(count).map(|entry| {
        // A pid is the first half of its word; no driver writes the other.
        let [a, b, c, d, ..] = entry[0].to_ne_bytes();
        NvmlProcess { pid: u32::from_ne_bytes([a, b, c, d]), memory: known(entry[1]) }
    })
}

/// All bits set is NVML's value for "not available".
pub(super) fn known(number: u64) -> Option<u64> {
    (number != u64::MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_split_by_their_length() {
        // The other half of a pid's word is left from before.
        let pid = |pid: u32| {
            let ([a, b, c, d], [e, f, g, h]) = (pid.to_ne_bytes(), [0xee; 4]);
            u64::from_ne_bytes([a, b, c, d, e, f, g, h])
        };
        let expected =
            [NvmlProcess { pid: 7, memory: Some(100) }, NvmlProcess { pid: 8, memory: None }];
        let long = [[pid(7), 100, 1, 1], [pid(8), u64::MAX, 1, 1], [pid(9), 9, 9, 9]];
        assert!(processes(&long, 2, 4).eq(expected));
        let middle = [[pid(7), 100, 1, pid(8)], [u64::MAX, 1, pid(9), 9]];
        assert!(processes(&middle, 2, 3).eq(expected));
        let short = [[pid(7), 100, pid(8), u64::MAX], [pid(9), 9, 9, 9]];
        assert!(processes(&short, 2, 2).eq(expected));
    }

    #[test]
    fn buffer_has_space_for_as_many_of_the_longest_entries() {
        let mut buffers = ListBuffers::default();
        let mut lengths = Vec::new();
        let filled = fill(&mut buffers.processes, 2, [0; 4], |count, _| {
            lengths.push(*count);
            let is_enough = *count >= 5;
            *count = 5;
            if is_enough { Ok(()) } else { Err(Code::INSUFFICIENT_SIZE) }
        });
        assert_eq!((filled, lengths, buffers.processes.len()), (Ok(5), vec![2, 10], 10));
        let filled = fill(&mut buffers.processes, 2, [0; 4], |count, _| {
            *count = 99;
            Ok(())
        });
        assert_eq!(filled, Ok(10), "more entries than there was space for");
    }

    #[test]
    fn unwritten_entries_are_blank_and_not_those_of_another_gpu() {
        let mut buffers = ListBuffers::default();
        buffers.processes = vec![[7; 4]; 4];
        let filled = fill(&mut buffers.processes, 4, [0; 4], |count, _| {
            *count = 3;
            Ok(())
        });
        assert_eq!((filled, &buffers.processes[..]), (Ok(3), &[[0; 4]; 4][..]));
    }
}
