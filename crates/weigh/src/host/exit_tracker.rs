//! When a process has exited, from the exits of its threads.
//!
//! Source: messages of the process connector, and pidfds. The exit of the first thread is not the
//! exit of the process: other threads may go on, and when another thread calls exec, the first one
//! exits and the process lives. A pidfd becomes ready when no thread is left, so it is polled once
//! everything that is queued was read. The exit status is that of the last thread.

use std::collections::HashMap;
use std::time::Duration;

use super::connector::ProcEvent;
use super::pidfd::PidFd;
use crate::model::End;
use crate::parse::connector::{ConnectorEvent, ConnectorMessage, Task};

/// Processes whose first thread has exited, and which may still run.
#[derive(Debug, Default)]
pub(super) struct ExitTracker {
    exits: HashMap<u32, LastExit>,
}

/// The last exit event of a thread of the process.
#[derive(Debug, Clone, Copy)]
struct LastExit {
    at: Duration,
    status: i32,
}

impl ExitTracker {
    /// Handles a message, and reports the events that are certain already.
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
                // If the first thread has exited, another one called exec and is the first now.
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

    /// Reports the exits of processes that have exited.
    pub(super) fn report_exited(
        &mut self,
        has_exited: impl Fn(u32) -> bool,
        each: &mut impl FnMut(Duration, ProcEvent),
    ) {
        self.exits.retain(|&pid, &mut exit| {
            let exited = has_exited(pid);
            if exited {
                report(pid, exit, each);
            }
            !exited
        });
    }
}

fn report(pid: u32, exit: LastExit, each: &mut impl FnMut(Duration, ProcEvent)) {
    each(exit.at, ProcEvent::Ended { pid, end: End::from_status(exit.status) });
}

/// Whether no thread of a process is left.
///
/// A reused pid looks alive; the fork event of the new process reports the exit of the old one
/// before it. Without pidfds (Linux before 5.3) the first thread decides.
pub(super) fn has_exited(pid: u32) -> bool {
    match PidFd::open(pid) {
        Ok(pidfd) => pidfd.has_ended(),
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

    /// The events reported for a series of messages, when the process with this pid has exited at
    /// the end.
    fn reported(events: &[ConnectorEvent], exited: Option<u32>) -> Vec<ProcEvent> {
        let mut reported = Vec::new();
        let mut tracker = ExitTracker::default();
        let mut each = |_: Duration, event| reported.push(event);
        for &event in events {
            tracker.take(ConnectorMessage { at: Duration::ZERO, event }, &mut each);
        }
        tracker.report_exited(|pid| Some(pid) == exited, &mut each);
        reported
    }

    #[test]
    fn exec_by_another_thread_is_not_an_exit() {
        let events = [ConnectorEvent::Exit { task: FIRST, status: 9 }, ConnectorEvent::Exec(FIRST)];
        assert_eq!(reported(&events, Some(20)), [ProcEvent::Executed { pid: 20 }]);
    }

    #[test]
    fn exit_status_is_that_of_the_last_thread() {
        let first = ConnectorEvent::Exit { task: FIRST, status: 0 };
        let second = ConnectorEvent::Exit { task: SECOND, status: 11 };
        let end = |end| vec![ProcEvent::Ended { pid: 20, end }];
        assert_eq!(reported(&[first, second], Some(20)), end(End::Signal(11)));
        assert_eq!(reported(&[second, first], Some(20)), end(End::Code(0)));
        assert_eq!(reported(&[first], None), []);
        assert_eq!(reported(&[second], Some(20)), []);
    }

    #[test]
    fn pid_reuse_reports_the_exit_before_the_fork() {
        let fork = ConnectorEvent::Fork { parent: 1, child: FIRST };
        let end = ProcEvent::Ended { pid: 20, end: End::Code(1) };
        assert_eq!(
            reported(&[ConnectorEvent::Exit { task: FIRST, status: 0x100 }, fork], None),
            [end, ProcEvent::Forked { parent: 1, child: 20 }]
        );
    }

    #[test]
    fn only_the_first_thread_renames_a_process() {
        assert_eq!(reported(&[ConnectorEvent::Rename(SECOND), ConnectorEvent::Other], None), []);
        assert_eq!(
            reported(&[ConnectorEvent::Rename(FIRST)], None),
            [ProcEvent::Renamed { pid: 20 }]
        );
    }
}
