//! Who is on a card: a list whose entries have another length in nearly every generation of the
//! driver.
//!
//! Before R450 there is only the first form of the function; R450 made the entries longer and
//! called the function `_v2`; R510 has `_v3`, which is like it. What surprised us: the first
//! drivers of R535 (CUDA 12.2) write entries that are longer still, under the name `_v3` as
//! before, and later ones do not any more. Nothing in the answer tells. What tells is that these
//! have the functions for protected memory, which is what was added to the entries, and not yet
//! the function that NVIDIA made for it afterwards. nvitop goes by that, too.

use nvml_wrapper_sys::bindings::NvmlLib;

use super::lists::{Room, fill};
use super::{Code, Device, call};

/// A process that uses a card, by the pid the driver has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// Its pid, in the first pid namespace of the machine.
    pub pid: u32,
    /// Memory of the card that it has, in bytes, where the driver knows it.
    pub memory: Option<u64>,
}

/// Room for the longest entry that any driver writes, in words of 64 bits. A driver is told of no
/// more room than there is for as many of these, whichever it writes.
pub(super) type Entry = [u64; 4];

/// Processes that most machines have on one card at most.
const USERS: usize = 64;

/// Asks for processes by the newest name of a function that the library has, and says how many
/// there are and how many words each takes. All entries begin with the pid and the memory.
macro_rules! list {
    ($device:expr, $room:expr, $third:ident, $second:ident, $first:ident) => {{
        let (library, handle) = ($device.library, $device.handle);
        let has = (library.$third.is_ok(), library.$second.is_ok());
        let count = fill(&mut $room.users, USERS, [0; 4], |count, users| match has {
            (true, _) => call!(library, $third(handle, count, users.cast())),
            (false, true) => call!(library, $second(handle, count, users.cast())),
            (false, false) => call!(library, $first(handle, count, users.cast())),
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

impl Device {
    /// Processes that compute on it.
    pub fn computing(self, room: &mut Room) -> Result<impl Iterator<Item = User>, Code> {
        let (count, words) = list!(
            self,
            room,
            nvmlDeviceGetComputeRunningProcesses_v3,
            nvmlDeviceGetComputeRunningProcesses_v2,
            nvmlDeviceGetComputeRunningProcesses
        );
        Ok(users(&room.users, count, words))
    }

    /// Processes that compute on it through NVIDIA's server for several (MPS), which the other list
    /// need not have.
    pub fn computing_together(self, room: &mut Room) -> Result<impl Iterator<Item = User>, Code> {
        let (count, words) = list!(
            self,
            room,
            nvmlDeviceGetMPSComputeRunningProcesses_v3,
            nvmlDeviceGetMPSComputeRunningProcesses_v2,
            nvmlDeviceGetMPSComputeRunningProcesses
        );
        Ok(users(&room.users, count, words))
    }

    /// Processes that draw on it.
    pub fn drawing(self, room: &mut Room) -> Result<impl Iterator<Item = User>, Code> {
        let (count, words) = list!(
            self,
            room,
            nvmlDeviceGetGraphicsRunningProcesses_v3,
            nvmlDeviceGetGraphicsRunningProcesses_v2,
            nvmlDeviceGetGraphicsRunningProcesses
        );
        Ok(users(&room.users, count, words))
    }
}

/// The first entries of a room, which are so many words apart.
fn users(room: &[Entry], count: usize, words: usize) -> impl Iterator<Item = User> {
    room.as_flattened().chunks_exact(words).take(count).map(|entry| {
        // A pid has the first half of its word; nobody writes the other.
        let [a, b, c, d, ..] = entry[0].to_ne_bytes();
        User { pid: u32::from_ne_bytes([a, b, c, d]), memory: known(entry[1]) }
    })
}

/// All bits set is NVML's word for "not known".
pub(super) fn known(number: u64) -> Option<u64> {
    (number != u64::MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_told_apart_by_their_length() {
        // What stands in the other half of a pid's word is left from before.
        let pid = |pid: u32| {
            let ([a, b, c, d], [e, f, g, h]) = (pid.to_ne_bytes(), [0xee; 4]);
            u64::from_ne_bytes([a, b, c, d, e, f, g, h])
        };
        let expected = [User { pid: 7, memory: Some(100) }, User { pid: 8, memory: None }];
        let long = [[pid(7), 100, 1, 1], [pid(8), u64::MAX, 1, 1], [pid(9), 9, 9, 9]];
        assert!(users(&long, 2, 4).eq(expected));
        let middle = [[pid(7), 100, 1, pid(8)], [u64::MAX, 1, pid(9), 9]];
        assert!(users(&middle, 2, 3).eq(expected));
        let short = [[pid(7), 100, pid(8), u64::MAX], [pid(9), 9, 9, 9]];
        assert!(users(&short, 2, 2).eq(expected));
    }

    #[test]
    fn a_driver_is_told_of_no_more_room_than_its_longest_entries_have() {
        let mut room = Room::default();
        let mut told = Vec::new();
        let filled = fill(&mut room.users, 2, [0; 4], |count, _| {
            told.push(*count);
            let is_enough = *count >= 5;
            *count = 5;
            if is_enough { Ok(()) } else { Err(Code::INSUFFICIENT_SIZE) }
        });
        assert_eq!((filled, told, room.users.len()), (Ok(5), vec![2, 10], 10));
        let filled = fill(&mut room.users, 2, [0; 4], |count, _| {
            *count = 99;
            Ok(())
        });
        assert_eq!(filled, Ok(10), "more than there was room for cannot be there");
    }

    #[test]
    fn what_a_driver_says_and_does_not_write_is_not_what_another_card_said() {
        let mut room = Room::default();
        room.users = vec![[7; 4]; 4];
        let filled = fill(&mut room.users, 4, [0; 4], |count, _| {
            *count = 3;
            Ok(())
        });
        assert_eq!((filled, &room.users[..]), (Ok(3), &[[0; 4]; 4][..]));
    }
}
