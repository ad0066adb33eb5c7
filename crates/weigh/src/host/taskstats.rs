//! The exit record of each process of the machine, sent by the kernel.
//!
//! Source: taskstats over generic netlink (CONFIG_TASKSTATS), for root (CAP_NET_ADMIN) in the
//! machine's initial namespaces. Since Linux 5.19 a record names the process of a thread and
//! whether it was the last one; earlier records are not read, nor those of version 15 (Linux 6.14),
//! whose fields had moved. `parse::taskstats` describes the records.
//!
//! What surprised us: a listener names the CPUs whose exits it wants, and a CPU that is not
//! possible is refused, so the kernel's own list is sent back to it. In another pid or network
//! namespace, listening fails as if the list were wrong (EINVAL), although a single record can be
//! requested.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::netlink::GENERIC;

use super::Dir;
pub use super::netlink::Drain;
use super::netlink::NetlinkSocket;
use crate::parse::MalformedFile;
pub use crate::parse::taskstats::ExitRecord;
use crate::parse::taskstats::{errno, family, parse};

/// Why there are no exit records.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The kernel has no taskstats.
    #[error("this kernel has no taskstats (it was built without CONFIG_TASKSTATS)")]
    Absent,
    /// Only root may listen.
    #[error("taskstats are for root (CAP_NET_ADMIN)")]
    NotAllowed,
    /// They exist in the initial namespaces only.
    #[error("weigh is in a pid or network namespace of its own, where no taskstats are given")]
    OtherNamespace,
    /// The records have another layout.
    #[error("the taskstats of this kernel cannot be read (those of Linux 5.19 can): {0}")]
    Unreadable(#[from] MalformedFile),
    /// The list of CPUs cannot be read.
    #[error(transparent)]
    Cpus(#[from] super::Error),
    /// Another error.
    #[error("taskstats: {0}")]
    Failed(#[from] std::io::Error),
}

impl From<Errno> for Error {
    fn from(errno: Errno) -> Error {
        match errno {
            Errno::NOENT | Errno::PROTONOSUPPORT | Errno::AFNOSUPPORT => Error::Absent,
            Errno::PERM | Errno::ACCESS => Error::NotAllowed,
            Errno::INVAL => Error::OtherNamespace,
            other => Error::Failed(other.into()),
        }
    }
}

/// A socket on which the kernel sends the record of each process that exits.
pub struct Taskstats {
    socket: NetlinkSocket,
    family: u16,
    cpus: Vec<u8>,
}

/// `GENL_ID_CTRL`, its command that resolves a family and the attribute for the name.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_NAME: u16 = 2;

/// `TASKSTATS_CMD_GET` and its attributes.
const GET: u8 = 1;
const OF_THREAD: u16 = 1;
const LISTEN: u16 = 3;
const IGNORE: u16 = 4;

/// `NLM_F_REQUEST`, and with `NLM_F_ACK`.
const REQUEST: u16 = 1;
const ANSWERED: u16 = 1 | 4;

impl Taskstats {
    /// Starts to listen. `sys` lists the CPUs.
    pub fn open(sys: &Dir) -> Result<Taskstats, Error> {
        let mut socket = NetlinkSocket::open(GENERIC, 0)?;
        request(&socket, CONTROLLER, REQUEST, GET_FAMILY, FAMILY_NAME, b"TASKSTATS\0")?;
        let family = socket.answer(|bytes| Some(answered(bytes).and_then(|()| Ok(family(bytes)?))));
        let family = family?.ok_or(Error::Absent)??;
        // Our own record so far, to check that records can be read at all.
        let own = std::process::id().to_ne_bytes();
        request(&socket, family, REQUEST, GET, OF_THREAD, &own)?;
        let own = socket
            .answer(|bytes| Some(answered(bytes).and_then(|()| Ok(parse(bytes, family)?))))?
            .ok_or(Error::Absent)?;
        own?;
        let mut buffer = Vec::new();
        let listed = sys.read(c"devices/system/cpu/possible", &mut buffer)?.trim_ascii();
        // The kernel overwrites the last byte with the end of the string.
        let cpus = [listed, b"\0"].concat();
        let mut taskstats = Taskstats { socket, family, cpus };
        taskstats.request(ANSWERED, LISTEN)?;
        match taskstats.socket.answer(errno)?.ok_or(Error::Absent)? {
            0 => Ok(taskstats),
            errno => Err(Errno::from_raw_os_error(errno).into()),
        }
    }

    /// Calls `each` with the exit records since the last call, without blocking.
    pub fn next(&mut self, mut each: impl FnMut(ExitRecord)) -> Result<Drain, Error> {
        Ok(self.socket.drain(|bytes| {
            // Messages that are cut or no record are ignored.
            if let Ok(Some(record)) = parse(bytes, self.family) {
                each(record);
            }
        })?)
    }

    /// Registers for exits on every CPU, or unregisters.
    fn request(&self, flags: u16, what: u16) -> rustix::io::Result<()> {
        request(&self.socket, self.family, flags, GET, what, &self.cpus)
    }
}

/// Sends a command with one attribute.
fn request(
    socket: &NetlinkSocket,
    family: u16,
    flags: u16,
    command: u8,
    field: u16,
    content: &[u8],
) -> rustix::io::Result<()> {
    let mut message = vec![command, 1, 0, 0];
    message.extend((4 + content.len() as u16).to_ne_bytes());
    message.extend(field.to_ne_bytes());
    message.extend(content);
    message.resize(message.len().next_multiple_of(4), 0);
    socket.send(family, flags, &message)
}

/// Fails if a message is an error.
fn answered(bytes: &[u8]) -> Result<(), Error> {
    match errno(bytes) {
        Some(errno) => Err(Errno::from_raw_os_error(errno).into()),
        None => Ok(()),
    }
}

impl AsFd for Taskstats {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl Drop for Taskstats {
    fn drop(&mut self) {
        // If this fails, the kernel notices at the next exit that there is no listener.
        let _ = self.request(REQUEST, IGNORE);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::path::Path;
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use super::*;
    use crate::host::skip::{impossible, skipped};
    use crate::host::wait::reap;
    use crate::host::{Host, HostClock};
    use crate::model::{End, Usage};

    /// A program that has exited, as measured in three ways.
    struct MeasuredExit {
        record: ExitRecord,
        /// As wait4 reports it.
        end: End,
        usage: Usage,
        /// Its output.
        output: String,
    }

    impl MeasuredExit {
        /// Asserts that the CPU time is at least what the program printed before it exited, and at
        /// most what wait4 reports.
        fn assert_cpu_time_is_plausible(&self) {
            let printed: f64 = self.output.trim().parse().unwrap();
            let MeasuredExit { record, usage, .. } = self;
            let cpu = record.cpu.as_secs_f64();
            assert!(cpu >= printed, "{record:?}, and it printed {printed} s");
            // Time spent exiting is counted by wait4 alone, and only in clock ticks.
            assert!(cpu <= usage.cpu_seconds() + 0.06, "{record:?} {usage:?}");
        }
    }

    /// Runs a program to its exit; `None` where there are no exit records.
    fn record_of(program: &str, arguments: &[&str]) -> Option<MeasuredExit> {
        let host = Host::at(Path::new("/")).unwrap();
        let mut taskstats = match Taskstats::open(&host.sys) {
            Ok(taskstats) => taskstats,
            Err(error) => {
                impossible(error);
                return None;
            }
        };
        let mut command = Command::new(program);
        let Ok(mut child) = command.args(arguments).stdout(Stdio::piped()).spawn() else {
            skipped(format!("there is no {program}"));
            return None;
        };
        let deadline = HostClock::Monotonic.now() + Duration::from_secs(30);
        let mut record = None;
        while record.is_none() {
            assert!(HostClock::Monotonic.now() < deadline, "the kernel sends no record");
            taskstats.socket.wait(Duration::from_secs(1)).unwrap();
            let of_child = |record: ExitRecord| record.pid == child.id();
            taskstats.next(|one| record = record.or(of_child(one).then_some(one))).unwrap();
        }
        loop {
            // The record arrives shortly before the exit.
            if let Some((end, usage)) = reap(child.id()) {
                let mut output = String::new();
                child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
                return record.map(|record| MeasuredExit { record, end, usage, output });
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn exit_record_has_peak_memory_and_io() {
        let copy = ["if=/dev/zero", "of=/dev/null", "bs=64M", "count=1", "status=none"];
        let Some(MeasuredExit { record, .. }) = record_of("dd", &copy) else { return };
        let most = 64 << 20;
        let peak = record.peak_rss_bytes.unwrap();
        assert!((most..most + (16 << 20)).contains(&peak), "{record:?}");
        let io = record.io.unwrap();
        assert!((most..most + (1 << 20)).contains(&io.read_bytes), "{record:?}");
        assert!((most..most + (1 << 20)).contains(&io.written_bytes), "{record:?}");
    }

    #[test]
    fn exit_record_agrees_with_wait4() {
        let burn = "import sys, time
while time.process_time() < 0.2: pass
print(time.process_time())
sys.exit(7)";
        let Some(exited) = record_of("python3", &["-c", burn]) else { return };
        exited.assert_cpu_time_is_plausible();
        assert_eq!(exited.record.status.map(End::from_status), Some(exited.end));
        assert_eq!(exited.end, End::Code(7));
    }

    #[test]
    fn exit_record_has_the_cpu_time_of_all_threads() {
        let burn = "import threading, time
def burn():
    while time.thread_time() < 0.1: pass
threads = [threading.Thread(target=burn) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(time.process_time())";
        let Some(exited) = record_of("python3", &["-c", burn]) else { return };
        exited.assert_cpu_time_is_plausible();
        assert!(exited.record.cpu > Duration::from_millis(400), "{:?}", exited.record);
        assert_eq!(exited.record.io, None);
    }

    #[test]
    fn error_messages_name_the_cause() {
        let text = |errno| Error::from(errno).to_string();
        assert!(text(Errno::NOENT).contains("CONFIG_TASKSTATS"));
        assert!(text(Errno::PERM).contains("root"));
        assert!(text(Errno::INVAL).contains("pid or network namespace"));
        assert!(text(Errno::NOMEM).starts_with("taskstats: "));
    }
}
