//! Packets of a cgroup, counted by BPF programs.
//!
//! Source: two programs of type `cgroup_skb` attached to a cgroup v2 (Linux 5.7), for root (CAP_BPF
//! and CAP_NET_ADMIN). Each adds the length of a packet to a map and lets every packet pass. They
//! are attached by links, which are descriptors: when weigh exits, in whatever way, the kernel
//! detaches them.
//!
//! What surprised us: packets start at the IP header here, so the link header (14 bytes on
//! Ethernet) is not included. A segment that the kernel leaves to the device to split (TSO) is one
//! packet with one header. A socket belongs to the cgroup in which it was created.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// What has passed in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketCounts {
    /// Bytes, IP headers included.
    pub bytes: u64,
    /// Packets.
    pub packets: u64,
    /// Those of the bytes that went through the loopback device.
    pub loopback_bytes: u64,
}

/// The direction of packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketDirection {
    /// Into the cgroup.
    Ingress = 0,
    /// Out of the cgroup.
    Egress = 1,
}

/// Packet counters of a cgroup; dropping this detaches them.
#[derive(Debug)]
pub struct PacketCounter {
    map: OwnedFd,
    /// They keep the programs attached.
    _links: [OwnedFd; 2],
}

/// Commands of bpf(2) and their constants (linux/bpf.h).
const MAP_CREATE: i32 = 0;
const MAP_LOOKUP: i32 = 1;
const PROG_LOAD: i32 = 5;
const LINK_CREATE: i32 = 28;
const ARRAY: u32 = 2;
const CGROUP_SKB: u32 = 8;

/// Bytes of the counts of one direction.
const COUNTS: usize = 24;

impl PacketCounter {
    /// Counts the packets of all sockets created in a cgroup from now on.
    pub fn of(group: BorrowedFd<'_>) -> std::io::Result<PacketCounter> {
        let map = map()?;
        let link = |direction: PacketDirection| -> std::io::Result<OwnedFd> {
            let program = load(&program(direction, &map), direction)?;
            let mut request = BpfRequest::default();
            request.words[..3].copy_from_slice(&[
                number(&program),
                number(&group),
                direction as u32,
            ]);
            // SAFETY: there are no addresses in it.
            unsafe { request.open(LINK_CREATE) }
        };
        let links = [link(PacketDirection::Ingress)?, link(PacketDirection::Egress)?];
        Ok(PacketCounter { map, _links: links })
    }

    /// Whether the kernel accepts such programs from us, without attaching them.
    pub fn try_out() -> std::io::Result<()> {
        let map = map()?;
        load(&program(PacketDirection::Ingress, &map), PacketDirection::Ingress).map(drop)
    }

    /// What has passed so far.
    pub fn read(&self, direction: PacketDirection) -> std::io::Result<PacketCounts> {
        let (key, mut counts) = (direction as u32, [0u64; COUNTS / 8]);
        let mut request = BpfRequest::default();
        request.words[0] = number(&self.map);
        request.put_address(2, (&raw const key).expose_provenance());
        request.put_address(4, (&raw mut counts).expose_provenance());
        // SAFETY: the key and the counts have the sizes that the map was made with, and outlive
        // the call.
        unsafe { request.call(MAP_LOOKUP) }?;
        let [bytes, packets, loopback_bytes] = counts;
        Ok(PacketCounts { bytes, packets, loopback_bytes })
    }
}

/// A map with the counts of both directions.
fn map() -> std::io::Result<OwnedFd> {
    let mut request = BpfRequest::default();
    let (key, directions) = (4, 2);
    request.words[..4].copy_from_slice(&[ARRAY, key, COUNTS as u32, directions]);
    // SAFETY: there are no addresses in it.
    unsafe { request.open(MAP_CREATE) }
}

/// One instruction: its code, two registers, an offset and a number.
type Instruction = (u8, u8, u8, i16, i32);

/// The program for a direction. It always returns 1: the packet may pass.
fn program(direction: PacketDirection, map: &OwnedFd) -> Vec<u8> {
    // Codes (linux/bpf.h, linux/bpf_common.h).
    const LOAD_WORD: u8 = 0x61;
    const STORE_WORD: u8 = 0x62;
    const LOAD_LONG_NUMBER: u8 = 0x18;
    const ADD_ATOMICALLY: u8 = 0xdb;
    const COPY: u8 = 0xbf;
    const SET: u8 = 0xb7;
    const ADD: u8 = 0x07;
    const CALL: u8 = 0x85;
    const SKIP_IF_EQUAL: u8 = 0x15;
    const SKIP_UNLESS_EQUAL: u8 = 0x55;
    const EXIT: u8 = 0x95;
    // Offsets in `struct __sk_buff`, the number of a helper, and the marker of a map.
    const LENGTH: i16 = 0;
    const DEVICE: i16 = 40;
    const MAP_LOOKUP_ELEM: i32 = 1;
    const MAP: u8 = 1;
    /// The index of the loopback device in every network namespace.
    const LOOPBACK: i32 = 1;
    let instructions: [Instruction; 16] = [
        // The length and the device, before the call clobbers the registers.
        (LOAD_WORD, 7, 1, LENGTH, 0),
        (LOAD_WORD, 8, 1, DEVICE, 0),
        // The counts of this direction.
        (STORE_WORD, 10, 0, -4, direction as i32),
        (COPY, 2, 10, 0, 0),
        (ADD, 2, 0, 0, -4),
        (LOAD_LONG_NUMBER, 1, MAP, 0, map.as_raw_fd()),
        (0, 0, 0, 0, 0),
        (CALL, 0, 0, 0, MAP_LOOKUP_ELEM),
        (SKIP_IF_EQUAL, 0, 0, 5, 0),
        (ADD_ATOMICALLY, 0, 7, 0, 0),
        (SET, 1, 0, 0, 1),
        (ADD_ATOMICALLY, 0, 1, 8, 0),
        (SKIP_UNLESS_EQUAL, 8, 0, 1, LOOPBACK),
        (ADD_ATOMICALLY, 0, 7, 16, 0),
        (SET, 0, 0, 0, 1),
        (EXIT, 0, 0, 0, 0),
    ];
    let mut bytes = Vec::with_capacity(instructions.len() * 8);
    for (code, to, from, offset, number) in instructions {
        bytes.extend([code, to | from << 4]);
        bytes.extend(offset.to_ne_bytes());
        bytes.extend(number.to_ne_bytes());
    }
    bytes
}

/// Loads a program into the kernel.
fn load(program: &[u8], direction: PacketDirection) -> std::io::Result<OwnedFd> {
    // The name shown by bpftool, and the number of instructions.
    let (name, count) = (*b"weigh_packets\0\0\0", (program.len() / 8) as u32);
    let license = c"MIT";
    let mut request = BpfRequest::default();
    request.words[..2].copy_from_slice(&[CGROUP_SKB, count]);
    request.put_address(2, program.as_ptr().expose_provenance());
    request.put_address(4, license.as_ptr().expose_provenance());
    for (word, part) in request.words[12..16].iter_mut().zip(name.chunks_exact(4)) {
        *word = part.try_into().map(u32::from_ne_bytes).unwrap_or_default();
    }
    request.words[17] = direction as u32;
    // SAFETY: the instructions are as many as is said, the license ends with a zero, and both
    // outlive the call.
    unsafe { request.open(PROG_LOAD) }
}

fn number(fd: &impl AsFd) -> u32 {
    fd.as_fd().as_raw_fd() as u32
}

/// `union bpf_attr`, as far as it is needed here; the rest is zero.
#[derive(Debug, Default)]
#[repr(C, align(8))]
struct BpfRequest {
    words: [u32; 18],
}

impl BpfRequest {
    /// Writes an address over two words.
    fn put_address(&mut self, place: usize, address: usize) {
        let bytes = (address as u64).to_ne_bytes();
        let (first, second) = bytes.split_at(4);
        for (word, half) in self.words[place..].iter_mut().zip([first, second]) {
            *word = half.try_into().map(u32::from_ne_bytes).unwrap_or_default();
        }
    }

    /// Calls bpf(2).
    ///
    /// # Safety
    ///
    /// The addresses in it must be valid for what the command reads and writes.
    unsafe fn call(&self, command: i32) -> std::io::Result<i64> {
        // SAFETY: the request is a structure of the given size, and lives until the call returns;
        // the caller guarantees what it points to.
        let answer = unsafe {
            libc::syscall(libc::SYS_bpf, command, &raw const *self, size_of::<BpfRequest>())
        };
        if answer < 0 { Err(std::io::Error::last_os_error()) } else { Ok(answer) }
    }

    /// Calls bpf(2) for a descriptor.
    ///
    /// # Safety
    ///
    /// As for [`BpfRequest::call`].
    unsafe fn open(&self, command: i32) -> std::io::Result<OwnedFd> {
        // SAFETY: the caller guarantees it.
        let fd = unsafe { self.call(command) }?;
        // SAFETY: the kernel just returned this descriptor, and nothing else owns it.
        Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::skip::impossible;

    #[test]
    fn every_path_through_the_programs_lets_the_packet_pass() {
        // Any descriptor will do: nothing is loaded.
        let fd = rustix::stdio::stdin().try_clone_to_owned();
        let Ok(fd) = fd else { return impossible("there is no stdin") };
        for direction in [PacketDirection::Ingress, PacketDirection::Egress] {
            let program = program(direction, &fd);
            let instructions: Vec<&[u8]> = program.chunks_exact(8).collect();
            let exits = instructions.iter().filter(|one| one[0] == 0x95).count();
            let [.., verdict, exit] = instructions[..] else { panic!("{instructions:?}") };
            assert_eq!((exits, exit[0]), (1, 0x95), "one exit, the last instruction");
            let one = [&[0xb7, 0, 0, 0][..], &1i32.to_ne_bytes()].concat();
            assert_eq!(verdict, one, "r0 = 1");
            // Jumps lead to the verdict, not past it.
            for (place, jump) in instructions.iter().enumerate() {
                if [0x15, 0x55].contains(&jump[0]) {
                    let offset = i16::from_ne_bytes([jump[2], jump[3]]);
                    assert_eq!(place as i16 + 1 + offset, instructions.len() as i16 - 2);
                }
            }
        }
    }

    #[test]
    fn descriptor_that_is_not_a_cgroup_is_refused() {
        let refused = PacketCounter::of(rustix::stdio::stdin());
        assert!(refused.is_err(), "{refused:?}");
    }
}
