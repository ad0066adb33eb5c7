//! The last account of each process of the machine, given by the kernel when it ends.
//!
//! Source: taskstats over generic netlink (CONFIG_TASKSTATS), for root (CAP_NET_ADMIN) in
//! the machine's first namespaces. Since Linux 5.19 a record says which process a thread is
//! of and whether it was the last; earlier ones are not read, nor those of version 15 (Linux
//! 6.14), where fields had moved for a while. What the records hold is told in `parse::taskstats`.
//!
//! What surprised us: a listener names the CPUs on whose exits it wants to hear, and a CPU
//! that is not possible is refused, so the kernel's own list is given back to it. In a pid
//! or network namespace of one's own, listening is refused as if the list were wrong
//! (EINVAL), although a single record may be asked for.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;
use rustix::net::netlink::GENERIC;

use super::Dir;
pub use super::netlink::Drain;
use super::netlink::NetlinkSocket;
use crate::parse::MalformedFile;
pub use crate::parse::taskstats::{ExitIo, ExitRecord};
use crate::parse::taskstats::{errno, family, parse};

/// Why the kernel gives no accounts.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There are none.
    #[error("this kernel has no taskstats (it was built without CONFIG_TASKSTATS)")]
    Absent,
    /// They are for root.
    #[error("taskstats are for root (CAP_NET_ADMIN)")]
    NotAllowed,
    /// They are for the machine's first namespaces.
    #[error("weigh is in a pid or network namespace of its own, where no taskstats are given")]
    OtherNamespace,
    /// They are not as they should be.
    #[error("the taskstats of this kernel cannot be read (those of Linux 5.19 can): {0}")]
    Unreadable(#[from] MalformedFile),
    /// The list of CPUs cannot be read.
    #[error(transparent)]
    Cpus(#[from] super::Error),
    /// Something else is wrong.
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

/// A line to the kernel on which it gives the account of each process that ends.
pub struct Taskstats {
    socket: NetlinkSocket,
    family: u16,
    cpus: Vec<u8>,
}

/// `GENL_ID_CTRL`, its command to look up a family and the field for the name.
const CONTROLLER: u16 = 16;
const GET_FAMILY: u8 = 3;
const FAMILY_NAME: u16 = 2;

/// `TASKSTATS_CMD_GET` and what can be in it.
const GET: u8 = 1;
const OF_THREAD: u16 = 1;
const LISTEN: u16 = 3;
const IGNORE: u16 = 4;

/// `NLM_F_REQUEST`, and with `NLM_F_ACK`.
const REQUEST: u16 = 1;
const ANSWERED: u16 = 1 | 4;

impl Taskstats {
    /// Begins to listen. `sys` names the CPUs.
    pub fn open(sys: &Dir) -> Result<Taskstats, Error> {
        let mut socket = NetlinkSocket::open(GENERIC, 0)?;
        say(&socket, CONTROLLER, REQUEST, GET_FAMILY, FAMILY_NAME, b"TASKSTATS\0")?;
        let family = socket.answer(|bytes| Some(answered(bytes).and_then(|()| Ok(family(bytes)?))));
        let family = family?.ok_or(Error::Absent)??;
        // Our own record, so far: whether it can be read at all.
        let own = std::process::id().to_ne_bytes();
        say(&socket, family, REQUEST, GET, OF_THREAD, &own)?;
        let own = socket
            .answer(|bytes| Some(answered(bytes).and_then(|()| Ok(parse(bytes, family)?))))?
            .ok_or(Error::Absent)?;
        own?;
        let mut buffer = Vec::new();
        let listed = sys.read(c"devices/system/cpu/possible", &mut buffer)?.trim_ascii();
        // The kernel takes the last byte for the end of the text, whatever it is.
        let cpus = [listed, b"\0"].concat();
        let mut taskstats = Taskstats { socket, family, cpus };
        taskstats.say(ANSWERED, LISTEN)?;
        match taskstats.socket.answer(errno)?.ok_or(Error::Absent)? {
            0 => Ok(taskstats),
            errno => Err(Errno::from_raw_os_error(errno).into()),
        }
    }

    /// Hands over the accounts of those who ended since the last call, without waiting.
    pub fn next(&mut self, mut each: impl FnMut(ExitRecord)) -> Result<Drain, Error> {
        Ok(self.socket.drain(|bytes| {
            // A message that is not whole or not a record is none.
            if let Ok(Some(departure)) = parse(bytes, self.family) {
                each(departure);
            }
        })?)
    }

    /// Says that exits on every CPU are wanted, or not any more.
    fn say(&self, flags: u16, what: u16) -> rustix::io::Result<()> {
        say(&self.socket, self.family, flags, GET, what, &self.cpus)
    }
}

/// Sends a command with one field.
fn say(
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

/// Whether a message is an answer and not a refusal.
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
        // A kernel that does not take it finds out at the next exit that nobody listens.
        let _ = self.say(REQUEST, IGNORE);
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
    use crate::host::{Clock, Host};
    use crate::model::{End, Usage};

    /// What is known of a program that has ended.
    struct MeasuredExit {
        account: ExitRecord,
        /// What wait says of it.
        end: End,
        usage: Usage,
        /// What it printed.
        said: String,
    }

    impl MeasuredExit {
        /// Fails unless the CPU time is not below what the program itself says it had used
        /// when it was about to end, nor above what wait says.
        fn has_the_cpu_time_it_used(&self) {
            let said: f64 = self.said.trim().parse().unwrap();
            let MeasuredExit { account, usage, .. } = self;
            let cpu = account.cpu.as_secs_f64();
            assert!(cpu >= said, "{account:?}, and it says that it used {said} s");
            // Clearing away is in the account of wait alone, which is not finer than the clock
            // ticks by which the kernel splits it.
            assert!(cpu <= usage.cpu_seconds() + 0.06, "{account:?} {usage:?}");
        }
    }

    /// Runs a program to its end; `None` where accounts are not given.
    fn account_of(program: &str, arguments: &[&str]) -> Option<MeasuredExit> {
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
        let patience = Clock::Monotonic.now() + Duration::from_secs(30);
        let mut account = None;
        while account.is_none() {
            assert!(Clock::Monotonic.now() < patience, "the kernel gives no account");
            taskstats.socket.wait(Duration::from_secs(1)).unwrap();
            let of_child = |departure: ExitRecord| departure.pid == child.id();
            taskstats.next(|gone| account = account.or(of_child(gone).then_some(gone))).unwrap();
        }
        loop {
            // The account comes a moment before the end.
            if let Some((end, usage)) = reap(child.id()) {
                let mut said = String::new();
                child.stdout.take().unwrap().read_to_string(&mut said).unwrap();
                return account.map(|account| MeasuredExit { account, end, usage, said });
            }
            std::thread::yield_now();
        }
    }

    #[test]
    fn memory_and_io_of_a_process_are_in_its_account() {
        let copy = ["if=/dev/zero", "of=/dev/null", "bs=64M", "count=1", "status=none"];
        let Some(MeasuredExit { account, .. }) = account_of("dd", &copy) else { return };
        let most = 64 << 20;
        let peak = account.peak_rss_bytes.unwrap();
        assert!((most..most + (16 << 20)).contains(&peak), "{account:?}");
        let io = account.io.unwrap();
        assert!((most..most + (1 << 20)).contains(&io.read_bytes), "{account:?}");
        assert!((most..most + (1 << 20)).contains(&io.written_bytes), "{account:?}");
    }

    #[test]
    fn an_account_has_the_cpu_time_and_the_end_that_wait_tells() {
        let burn = "import sys, time
while time.process_time() < 0.2: pass
print(time.process_time())
sys.exit(7)";
        let Some(ended) = account_of("python3", &["-c", burn]) else { return };
        ended.has_the_cpu_time_it_used();
        assert_eq!(ended.account.status.map(End::from_status), Some(ended.end));
        assert_eq!(ended.end, End::Code(7));
    }

    #[test]
    fn an_account_has_the_cpu_time_of_all_threads() {
        let burn = "import threading, time
def burn():
    while time.thread_time() < 0.1: pass
threads = [threading.Thread(target=burn) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(time.process_time())";
        let Some(ended) = account_of("python3", &["-c", burn]) else { return };
        ended.has_the_cpu_time_it_used();
        assert!(ended.account.cpu > Duration::from_millis(400), "{:?}", ended.account);
        assert_eq!(ended.account.io, None);
    }

    #[test]
    fn an_error_says_why_in_words() {
        let words = |errno| Error::from(errno).to_string();
        assert!(words(Errno::NOENT).contains("CONFIG_TASKSTATS"));
        assert!(words(Errno::PERM).contains("root"));
        assert!(words(Errno::INVAL).contains("pid or network namespace"));
        assert!(words(Errno::NOMEM).starts_with("taskstats: "));
    }
}
