//! Every parser of the kernel's netlink messages, on any bytes.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weigh::parse::{connector, sock_diag, taskstats};

fuzz_target!(|bytes: &[u8]| {
    let _ = connector::parse(bytes);
    let _ = taskstats::family(bytes);
    let _ = taskstats::errno(bytes);
    // The type of the message itself, or none would ever match the family.
    let kind = bytes.get(4..6).map_or(0, |kind| u16::from_ne_bytes([kind[0], kind[1]]));
    let _ = taskstats::parse(bytes, kind);
    sock_diag::messages(bytes).for_each(drop);
});
