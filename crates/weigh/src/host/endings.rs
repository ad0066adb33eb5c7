//! When a process is over, from the exits of its threads.
//!
//! Source: the messages of the process connector, and the kernel when it is asked. The exit
//! of the first thread is not the end: others may go on, and when another thread calls
//! exec, the first one ends and the process lives. A pidfd is ready when no thread is left,
//! so it is asked once everything that is queued was read. How the process ended is what
//! its last exit says.

use std::collections::HashMap;
use std::time::Duration;

use super::connector::Happened;
use super::pidfd::Held;
use crate::model::End;
use crate::parse::connector::{Event, Message, Task};

/// Processes whose first thread has ended, and which may not be over.
#[derive(Debug, Default)]
pub(super) struct Endings {
    exits: HashMap<u32, Exit>,
}

/// The last exit of a thread that was heard of.
#[derive(Debug, Clone, Copy)]
struct Exit {
    at: Duration,
    status: i32,
}

impl Endings {
    /// Takes a message in, and hands over what can be told already.
    pub(super) fn take(&mut self, message: Message, each: &mut impl FnMut(Duration, Happened)) {
        let Message { at, event } = message;
        match event {
            Event::Fork { parent, child } if child.is_first() => {
                let child = child.process;
                if let Some(exit) = self.exits.remove(&child) {
                    tell(child, exit, each);
                }
                each(at, Happened::Forked { parent, child });
            }
            Event::Exec(Task { process: pid, .. }) => {
                // If the first thread has ended, another one called exec and is the first now.
                self.exits.remove(&pid);
                each(at, Happened::Executed { pid });
            }
            Event::Rename(task) if task.is_first() => {
                each(at, Happened::Renamed { pid: task.process });
            }
            Event::Exit { task, status } => {
                if task.is_first() || self.exits.contains_key(&task.process) {
                    self.exits.insert(task.process, Exit { at, status });
                }
            }
            Event::Answer { .. } | Event::Fork { .. } | Event::Rename(_) | Event::Other => {}
        }
    }

    /// Hands over the ends of those that are over.
    pub(super) fn settle(
        &mut self,
        is_over: impl Fn(u32) -> bool,
        each: &mut impl FnMut(Duration, Happened),
    ) {
        self.exits.retain(|&pid, &mut exit| {
            let over = is_over(pid);
            if over {
                tell(pid, exit, each);
            }
            !over
        });
    }
}

fn tell(pid: u32, exit: Exit, each: &mut impl FnMut(Duration, Happened)) {
    each(exit.at, Happened::Ended { pid, end: End::from_status(exit.status) });
}

/// Whether no thread of a process is left.
///
/// A pid that is used again looks alive; the fork that used it is among the events and
/// tells of the end before it. Without pidfds (Linux before 5.3) the first thread decides.
pub(super) fn is_over(pid: u32) -> bool {
    match Held::of(pid) {
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
    fn told(events: &[Event], over: Option<u32>) -> Vec<Happened> {
        let mut told = Vec::new();
        let mut endings = Endings::default();
        let mut each = |_: Duration, happened| told.push(happened);
        for &event in events {
            endings.take(Message { at: Duration::ZERO, event }, &mut each);
        }
        endings.settle(|pid| Some(pid) == over, &mut each);
        told
    }

    #[test]
    fn exec_by_another_thread_is_not_the_end() {
        let events = [Event::Exit { task: FIRST, status: 9 }, Event::Exec(FIRST)];
        assert_eq!(told(&events, Some(20)), [Happened::Executed { pid: 20 }]);
    }

    #[test]
    fn the_last_exit_says_how_a_process_ended() {
        let first = Event::Exit { task: FIRST, status: 0 };
        let second = Event::Exit { task: SECOND, status: 11 };
        let end = |end| vec![Happened::Ended { pid: 20, end }];
        assert_eq!(told(&[first, second], Some(20)), end(End::Signal(11)));
        assert_eq!(told(&[second, first], Some(20)), end(End::Code(0)));
        assert_eq!(told(&[first], None), []);
        assert_eq!(told(&[second], Some(20)), []);
    }

    #[test]
    fn a_pid_that_is_used_again_ends_before_it_begins() {
        let fork = Event::Fork { parent: 1, child: FIRST };
        let end = Happened::Ended { pid: 20, end: End::Code(1) };
        assert_eq!(
            told(&[Event::Exit { task: FIRST, status: 0x100 }, fork], None),
            [end, Happened::Forked { parent: 1, child: 20 }]
        );
    }

    #[test]
    fn only_the_first_thread_names_a_process() {
        assert_eq!(told(&[Event::Rename(SECOND), Event::Other], None), []);
        assert_eq!(told(&[Event::Rename(FIRST)], None), [Happened::Renamed { pid: 20 }]);
    }
}
