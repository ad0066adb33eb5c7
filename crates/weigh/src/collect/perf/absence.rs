//! Why hardware events cannot be counted, by cause and in words, and what to type.

use crate::collect::{Probe, task_clock};
use crate::host::Host;

/// Why the kernel does not count instructions.
pub(super) fn of(host: &Host, error: &std::io::Error) -> Probe {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => task_clock::refused(host, error),
        _ => Probe::Absent { why: words(host, error) },
    }
}

/// The same in a sentence.
pub(super) fn words(host: &Host, error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => match task_clock::refused(host, error) {
            Probe::Denied { why, .. } | Probe::Absent { why } => why,
            Probe::Ready => error.to_string(),
        },
        Some(libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => {
            "the kernel knows no PMU of this processor".to_owned()
        }
        Some(libc::ENOSYS) => {
            "perf_event_open is not there: a seccomp filter refuses it, or the kernel is built \
             without perf events"
                .to_owned()
        }
        Some(libc::EBUSY) => "another program uses all counters".to_owned(),
        _ => format!("perf_event_open: {error}"),
    }
}

/// The cause of a missing PMU, for `weigh doctor`: reading about the processor may take a while.
pub(super) fn cause(host: &Host) -> String {
    let mut buffer = Vec::new();
    let cpuinfo = host.proc.read(c"cpuinfo", &mut buffer).unwrap_or_default();
    let is_guest = cpuinfo
        .split(|byte| *byte == b'\n')
        .find(|line| line.starts_with(b"flags"))
        .is_some_and(|flags| flags.split(|byte| *byte == b' ').any(|flag| flag == b"hypervisor"));
    match is_guest {
        true => "this virtual machine has no PMU; its host can give it one (KVM: -cpu \
                 host,pmu=on)"
            .to_owned(),
        false => "the kernel knows no PMU of this processor: the kernel is older than the \
                  processor, or a virtual machine has none"
            .to_owned(),
    }
}
