//! A mark on a command that all its descendants inherit, and that is readable when they are zombies.
//!
//! The mark is a soft limit on the CPU time of real-time processes (`RLIMIT_RTTIME`, getrlimit(2)):
//! instead of none it is about 150,000 years, which limits nobody, and its last digits are a random
//! number. Limits are inherited by fork and kept by exec, and `/proc/<pid>/limits` shows them until
//! the process is reaped. A variable in the environment does neither: programs clear their
//! environment, and that of a zombie is gone.

use std::hash::{BuildHasher, RandomState};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::{Host, ProcPath};
use crate::parse;

/// Beyond every limit that somebody sets for a purpose, and below "unlimited".
const BEYOND: u64 = 1 << 62;

/// What `/proc/<pid>/limits` calls this limit.
const NAME: &str = "Max realtime timeout";

/// The mark of one command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DescentMark(u64);

impl DescentMark {
    /// A new mark; `None` where this process has such a limit already, which must stay.
    pub fn new() -> Option<DescentMark> {
        let has_none = getrlimit(Resource::Rttime) == Rlimit { current: None, maximum: None };
        // Seeded at random for each call.
        let random = RandomState::new().hash_one(BEYOND);
        has_none.then_some(DescentMark(BEYOND | (random >> 2)))
    }

    /// Marks this process, between fork and exec. Allocates nothing.
    pub fn set(self) {
        // A soft limit below the hard one is always allowed.
        let _ = setrlimit(Resource::Rttime, Rlimit { current: Some(self.0), maximum: None });
    }

    /// Whether a process has it, dead or alive.
    pub fn is_on(self, host: &Host, pid: u32, buffer: &mut Vec<u8>) -> bool {
        let bytes = host.proc.read(ProcPath::new(pid, "limits").as_c_str(), buffer);
        let limits = bytes.ok().and_then(|bytes| parse::limits::parse(bytes).ok());
        let own = |limit: &parse::limits::ResourceLimit<'_>| {
            limit.name == NAME && limit.soft == Some(self.0)
        };
        limits.is_some_and(|limits| limits.iter().any(own))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use super::*;
    use crate::host::pidfd::PidFd;

    #[test]
    fn mark_is_on_descendants_with_an_empty_environment_and_on_zombies() {
        let host = Host::at("/".as_ref()).unwrap();
        let mark = DescentMark::new().expect("no limit on real-time CPU time");
        let mut command = Command::new("sh");
        // The inner shell has exited, and its parent does not reap it before it reads a line.
        command.args(["-c", "env -i sh -c 'exit 0' & echo $!; read line"]).env_clear();
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        // SAFETY: one system call, which allocates nothing.
        unsafe {
            command.pre_exec(move || {
                mark.set();
                Ok(())
            })
        };
        let mut shell = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = std::io::BufReader::new(shell.stdout.take().unwrap());
        std::io::BufRead::read_line(&mut output, &mut line).unwrap();
        let inner: u32 = line.trim().parse().unwrap();
        let pidfd = PidFd::open(inner).unwrap();
        while !pidfd.has_ended() {
            std::thread::yield_now();
        }
        let mut buffer = Vec::new();
        assert!(mark.is_on(&host, inner, &mut buffer), "a zombie");
        assert!(mark.is_on(&host, shell.id(), &mut buffer));
        assert!(!mark.is_on(&host, std::process::id(), &mut buffer));
        assert_ne!(DescentMark::new(), Some(mark));
        drop(shell.stdin.take());
        let pid = shell.id();
        shell.wait().unwrap();
        assert!(!mark.is_on(&host, pid, &mut buffer), "a process that is gone");
    }
}
