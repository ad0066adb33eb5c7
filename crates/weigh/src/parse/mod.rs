//! The kernel's text files and its messages, and lines of other programs, from bytes to structs.
//!
//! Nothing here opens a file: whoever has the bytes (`host`, a test, a captured
//! machine) hands them over, so every parser can be fed anything. The ones that
//! run for every process at every tick (`stat`, `status`, `io`, `smaps`,
//! `schedstat`, `loadavg`, `system_stat`) or for the machine (`net_dev`, `diskstats`,
//! `pressure`, `vmstat`, `attribute`, `drm_fdinfo`) do not allocate and do not check UTF-8, since
//! names need not be UTF-8.
//!
//! Messages of the kernel (`connector`, `sock_diag`, `taskstats`) and `gpu_metrics` are binary, in
//! the byte order of the machine.
//!
//! Lines of other programs (`nvidia_smi`, `dmon`, `cpu_metrics`) come without their newline:
//! whoever has the file knows whether its last line is whole.
//!
//! What surprises: a file read into too small a buffer ends in the middle of a
//! number, and half a number is a number. So each number must be followed by its
//! space or newline, and each line by its newline; bytes that end earlier are
//! [`Malformed`].

pub mod attribute;
pub mod cgroup;
pub mod connector;
pub mod cpu_metrics;
pub mod cpuinfo;
pub mod cpulist;
pub mod diskstats;
pub mod dmon;
pub mod drm_fdinfo;
mod fields;
pub mod gpu_metrics;
pub mod group_stat;
pub mod io;
pub mod kernel_log;
pub mod limits;
pub mod loadavg;
pub mod meminfo;
pub mod mounts;
mod native;
pub mod net_dev;
pub mod net_snmp;
pub mod nvidia_smi;
pub mod os_release;
pub mod pressure;
pub mod schedstat;
pub mod smaps;
pub mod sock_diag;
pub mod stat;
pub mod status;
pub mod system_stat;
pub mod taskstats;
pub mod vmstat;

/// A kernel file that does not read as the kernel writes it; holds the field at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not in the expected form: {0}")]
pub struct Malformed(pub &'static str);

#[cfg(test)]
mod tests {
    use std::fmt::Debug;

    use proptest::prelude::*;

    use super::Malformed;

    /// Parses `whole` cut at every byte; what still parses must agree with the whole.
    pub(super) fn cut_at_every_byte<T: Debug>(
        whole: &'static [u8],
        parse: impl Fn(&'static [u8]) -> Result<T, Malformed>,
        agrees: impl Fn(&T, &T) -> bool,
    ) {
        let complete = parse(whole).expect("the fixture itself parses");
        for end in 0..whole.len() {
            if let Ok(part) = parse(&whole[..end]) {
                assert!(agrees(&part, &complete), "cut at {end}: {part:?} against {complete:?}");
            }
        }
    }

    /// For fields that a cut may lose but must not change.
    pub(super) fn lost_or_same<T: PartialEq>(part: &Option<T>, whole: &Option<T>) -> bool {
        part.is_none() || part == whole
    }

    /// Noise, and `whole` with some bytes replaced: noise alone never gets past the first field.
    pub(super) fn mangled(whole: &'static [u8]) -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![any::<u8>(), prop::sample::select(b"0179 \n\t:-/(),kB".to_vec())];
        let edits = prop::collection::vec((any::<prop::sample::Index>(), byte), 1..12);
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..400),
            edits.prop_map(move |edits| {
                let mut bytes = whole.to_vec();
                for (place, byte) in edits {
                    let place = place.index(bytes.len());
                    bytes[place] = byte;
                }
                bytes
            }),
        ]
    }

    /// The bytes of a file of the running kernel, for comparison with the procfs crate.
    #[allow(clippy::disallowed_methods, reason = "the comparison needs this very kernel's files")]
    pub(super) fn of_this_kernel(path: &str) -> Vec<u8> {
        std::fs::read(path).expect("every kernel we test on has this file")
    }

    #[test]
    fn the_message_names_the_field() {
        let message = Malformed("utime").to_string();
        assert_eq!(message, "not in the expected form: utime");
    }
}
