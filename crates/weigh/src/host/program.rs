//! Other programs that are asked something: with a time limit, and a limit on what they print.
//!
//! Commands of batch systems wait for their servers, for minutes when these are down. weigh asks
//! them only before it measures: it would reap them in a run.

use std::io::Read;
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::clock::HostClock;

/// The most that is read of an answer: a job of 100,000 nodes is described in less.
const MOST_BYTES: usize = 16 << 20;

/// Why a program did not answer.
#[derive(Debug, thiserror::Error)]
pub enum NoAnswer {
    /// It is not installed, or cannot be executed.
    #[error("{program}: {source}")]
    NotStarted {
        /// Which one.
        program: String,
        /// What the kernel said.
        source: std::io::Error,
    },
    /// It did not end in time.
    #[error("{program} did not answer within {} s", limit.as_secs())]
    Timeout {
        /// Which one.
        program: String,
        /// How long it was waited for.
        limit: Duration,
    },
    /// It failed.
    #[error("{program}: {message}")]
    Failed {
        /// Which one.
        program: String,
        /// The first line that it printed, or its exit status.
        message: String,
    },
}

/// What a program prints on stdout, with these variables set.
pub fn output(
    program: &str,
    arguments: &[&str],
    variables: &[(&str, &str)],
    limit: Duration,
) -> Result<Vec<u8>, NoAnswer> {
    let named = || program.to_owned();
    let mut command = Command::new(program);
    command.args(arguments).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child =
        command.spawn().map_err(|source| NoAnswer::NotStarted { program: named(), source })?;
    let deadline = HostClock::Monotonic.now() + limit;
    let answer = read_both(&mut child, deadline);
    let Some([printed, complaint]) = answer else {
        // What it has started itself may go on; nothing of ours waits for it.
        let _ = child.kill();
        let _ = child.wait();
        return Err(NoAnswer::Timeout { program: named(), limit });
    };
    match child.wait() {
        Ok(status) if status.success() => Ok(printed),
        ended => {
            let complaint = String::from_utf8_lossy(&complaint);
            let line = complaint.lines().find(|line| !line.trim().is_empty());
            let status = || ended.map_or_else(|why| why.to_string(), |status| status.to_string());
            let message = line.map_or_else(status, |line| line.trim().to_owned());
            Err(NoAnswer::Failed { program: named(), message })
        }
    }
}

/// All that a program prints until it closes both streams; `None` when that takes too long.
fn read_both(child: &mut Child, deadline: Duration) -> Option<[Vec<u8>; 2]> {
    let (mut out, mut err) = (child.stdout.take()?, child.stderr.take()?);
    let (mut texts, mut is_open) = ([Vec::new(), Vec::new()], [true, true]);
    let mut buffer = [0; 8192];
    while is_open.contains(&true) {
        let left = deadline.checked_sub(HostClock::Monotonic.now()).filter(|t| !t.is_zero())?;
        let fds = [out.as_fd(), err.as_fd()];
        let open: Vec<usize> = (0..2).filter(|which| is_open[*which]).collect();
        let mut sources: Vec<_> =
            open.iter().map(|which| PollFd::from_borrowed_fd(fds[*which], PollFlags::IN)).collect();
        let left =
            Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        // An interrupted poll is repeated.
        let _ = poll(&mut sources, Some(&left));
        let ready: Vec<usize> = sources
            .iter()
            .zip(&open)
            .filter(|(source, _)| !source.revents().is_empty())
            .map(|(_, which)| *which)
            .collect();
        drop(sources);
        for which in ready {
            let read = if which == 0 { out.read(&mut buffer) } else { err.read(&mut buffer) };
            match read {
                Ok(0) | Err(_) => is_open[which] = false,
                Ok(count) => {
                    let room = MOST_BYTES.saturating_sub(texts[which].len());
                    texts[which].extend_from_slice(&buffer[..count.min(room)]);
                }
            }
        }
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn shell(script: &str, limit: Duration) -> Result<Vec<u8>, NoAnswer> {
        output("sh", &["-c", script], &[("WORD", "hello")], limit)
    }

    #[test]
    fn answer_is_what_is_printed_on_stdout() {
        assert_eq!(shell("echo \"$WORD\"; echo no >&2", LONG).unwrap(), b"hello\n");
        let much = "head -c 300000 /dev/zero >&2; head -c 300000 /dev/zero";
        assert_eq!(shell(much, LONG).unwrap().len(), 300_000, "neither stream blocks the other");
    }

    #[test]
    fn failure_is_told_by_its_first_line() {
        let error = shell("echo; echo 'no such job' >&2; exit 3", LONG).unwrap_err();
        assert_eq!(error.to_string(), "sh: no such job");
        let error = shell("exit 3", LONG).unwrap_err();
        assert_eq!(error.to_string(), "sh: exit status: 3");
        let error = output("no-such-program-of-weigh", &[], &[], LONG).unwrap_err();
        assert!(matches!(error, NoAnswer::NotStarted { .. }), "{error}");
    }

    #[test]
    fn program_that_hangs_is_killed_at_its_limit() {
        let error = shell("exec sleep 1000", Duration::from_millis(50)).unwrap_err();
        assert!(matches!(error, NoAnswer::Timeout { .. }), "{error}");
    }
}
