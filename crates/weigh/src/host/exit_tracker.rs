//! When a process is over, from the exits of its threads.
//!
//! Source: the messages of the process connector, and the kernel when it is asked. The exit
//! of the first thread is not the end: others may go on, and when another thread calls
//! exec, the first one ends and the process lives. A pidfd is ready when no thread is left,
//! so it is asked once everything that is queued was read. How the process ended is what
//! its last exit says.

use std::collections::HashMap;
use std::time::Duration;

use super::connector::ProcEvent;
use super::pidfd::PidFd;
use crate::model::End;
use crate::parse::connector::{ConnectorEvent, ConnectorMessage, Task};

/// Processes whose first thread has ended, and which may not be over.
#[derive(Debug, Default)]
pub(super) struct ExitTracker {
    exits: HashMap<u32, LastExit>,
}

/// The last exit of a thread that was heard of.
#[derive(Debug, Clone, Copy)]
struct LastExit {
    at: Duration,
    status: i32,
}

impl ExitTracker {
    /// Takes a message in, and hands over what can be told already.
    pub(super) fn take(
        &mut self,
        message: ConnectorMessage,
        each: &mut impl FnMut(Duration, ProcEvent),
    ) {
        let ConnectorMessage { at, event } = message;
        match event {
            ConnectorEvent::Fork { parent, child } if child.is_first() => {
                let child = child.process;
                if let Some(exit) = self.exits.remove(&child) {
                    report(child, exit, each);
                }
                each(at, ProcEvent::Forked { parent, child });
            }
            ConnectorEvent::Exec(Task { process: pid, .. }) => {
                // If the first thread has ended, another one called exec and is the first now.
                self.exits.remove(&pid);
                each(at, ProcEvent::Executed { pid });
            }
            ConnectorEvent::Rename(task) if task.is_first() => {
                each(at, ProcEvent::Renamed { pid: task.process });
            }
            ConnectorEvent::Exit { task, status } => {
                if task.is_first() || self.exits.contains_key(&task.process) {
                    self.exits.insert(task.process, LastExit { at, status });
                }
            }
            ConnectorEvent::Answer { .. }
            | ConnectorEvent::Fork { .. }
            | ConnectorEvent::Rename(_)
            | ConnectorEvent::Other => {}
        }
    }

    /// Hands over the ends of those that are over.
    pub(super) fn report_exited(
        &mut self,
        has_exited: impl Fn(u32) -> bool,
        each: &mut impl FnMut(Duration, ProcEvent),
    ) {
        self.exits.retain(|&pid, &mut exit| {
            let over = has_exited(pid);
            if over {
                report(pid, exit, each);
            }
            !over
        });
    }
}

fn report(pid: u32, exit: LastExit, each: &mut impl FnMut(Duration, ProcEvent)) {
    each(exit.at, ProcEvent::Ended { pid, end: End::from_status(exit.status) });
}

/// Whether no thread of a process is left.
///
/// A pid that is used again looks alive; the fork that used it is among the events and
/// tells of the end before it. Without pidfds (Linux before 5.3) the first thread decides.
pub(super) fn has_exited(pid: u32) -> bool {
    match PidFd::open(pid) {
        Ok(held) => held.has_ended(),
        Err(error) => {
            !matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Task = Task { thread: 20, process: 20 };
    const SECOND: Task = Task { thread: 21, process: 20 };

    /// What is told of a series of events, when the process with this pid is over at the end.
    fn reported(events: &[ConnectorEvent], over: Option<u32>) -> Vec<ProcEvent> {
        let mut reported = Vec::new();
        let mut exit_tracker = ExitTracker::default();
        let mut each = |_: Duration, happened| reported.push(happened);
        for &event in events {
            exit_tracker.take(ConnectorMessage { at: Duration::ZERO, event }, &mut each);
        }
        exit_tracker.report_exited(|pid| Some(pid) == over, &mut each);
        reported
    }

    #[test]
    fn exec_by_another_thread_is_not_the_end() {
        let events = [ConnectorEvent::Exit { task: FIRST, status: 9 }, ConnectorEvent::Exec(FIRST)];
        assert_eq!(reported(&events, Some(20)), [ProcEvent::Executed { pid: 20 }]);
    }

    #[test]
    fn the_last_exit_says_how_a_process_ended() {
        let first = ConnectorEvent::Exit { task: FIRST, status: 0 };
        let second = ConnectorEvent::Exit { task: SECOND, status: 11 };
        let end = |end| vec![ProcEvent::Ended { pid: 20, end }];
        assert_eq!(reported(&[first, second], Some(20)), end(End::Signal(11)));
        assert_eq!(reported(&[second, first], Some(20)), end(End::Code(0)));
        assert_eq!(reported(&[first], None), []);
        assert_eq!(reported(&[second], Some(20)), []);
    }

    #[test]
    fn a_pid_that_is_used_again_ends_before_it_begins() {
        let fork = ConnectorEvent::Fork { parent: 1, child: FIRST };
        let end = ProcEvent::Ended { pid: 20, end: End::Code(1) };
        assert_eq!(
            reported(&[ConnectorEvent::Exit { task: FIRST, status: 0x100 }, fork], None),
            [end, ProcEvent::Forked { parent: 1, child: 20 }]
        );
    }

    #[test]
    fn only_the_first_thread_names_a_process() {
        assert_eq!(reported(&[ConnectorEvent::Rename(SECOND), ConnectorEvent::Other], None), []);
        assert_eq!(
            reported(&[ConnectorEvent::Rename(FIRST)], None),
            [ProcEvent::Renamed { pid: 20 }]
        );
    }
}
