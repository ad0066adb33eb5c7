//! Who took part, against runs whose truth is written down beside them.

use super::*;
use crate::collect::process::ProcessEvents;
use crate::report::tests::{MAIN, MIB, Story, cpu, memory, usage};

const CHILD: ProcessId = ProcessId { pid: 11, started: 101 };

fn nth(number: u32) -> ProcessId {
    ProcessId { pid: 1000 + number, started: u64::from(number) }
}

#[test]
fn a_process_that_did_not_run_keeps_what_it_had() {
    let mut story = Story::new();
    story.came(0.0, MAIN, "./work hard").came(1.0, CHILD, "./work more");
    story.at(1.0, |tick| {
        memory(tick, MAIN, 100 * MIB, None);
        memory(tick, CHILD, 50 * MIB, Some(30 * MIB));
        cpu(tick, CHILD, 0.5);
    });
    // Only one of them ran, and a look at shares is not part of every row.
    story.at(2.0, |tick| memory(tick, MAIN, 120 * MIB, None));
    story.went(3.0, CHILD).at(3.0, |tick| memory(tick, MAIN, 130 * MIB, None));
    let participants = story.participants();
    let [child, main] = &participants.processes[..] else { panic!("two processes") };
    assert_eq!((child.came, child.went, child.largest_bytes), (1.0, Some(3.0), Some(50 * MIB)));
    assert_eq!((main.id, main.went, main.cpu_seconds), (MAIN, None, None));
    assert_eq!(main.command.as_deref(), Some("./work hard"));
}

#[test]
fn a_process_keeps_what_it_had_when_it_becomes_another_program() {
    let mut story = Story::new();
    story.came(0.0, MAIN, "bash ./build.sh");
    story.at(1.0, |tick| {
        cpu(tick, MAIN, 0.25);
        memory(tick, MAIN, 200 * MIB, None);
    });
    story.became(2.0, MAIN, "/usr/bin/python3 -u train.py");
    story.at(2.0, |tick| {
        cpu(tick, MAIN, 1.25);
        memory(tick, MAIN, 10 * MIB, None);
    });
    let participants = story.participants();
    let [process] = &participants.processes[..] else { panic!("one process") };
    assert_eq!((process.name.as_str(), process.largest_bytes), ("python3", Some(200 * MIB)));
    assert_eq!(process.cpu_seconds, Some(1.25));
}

#[test]
fn a_pid_used_again_is_another_process() {
    let again = ProcessId { pid: CHILD.pid, started: 999 };
    let mut story = Story::new();
    story.came(0.0, CHILD, "first").at(1.0, |tick| cpu(tick, CHILD, 5.0));
    story.went(2.0, CHILD).came(2.0, again, "second").at(2.0, |tick| cpu(tick, again, 1.0));
    let participants = story.participants();
    let times: Vec<_> =
        participants.processes.iter().map(|one| (one.id, one.cpu_seconds)).collect();
    assert_eq!(times, [(CHILD, Some(5.0)), (again, Some(1.0))]);
}

#[test]
fn an_end_is_known_of_those_whom_weigh_reaped() {
    let mut story = Story::new();
    story.came(0.0, MAIN, "work").came(0.0, CHILD, "work").came(0.0, nth(1), "daemon");
    story.at(1.0, |tick| {
        cpu(tick, MAIN, 1.0);
        memory(tick, MAIN, 10 * MIB, None);
    });
    story.went(1.5, CHILD).reaped(1.5, nth(1), usage(2.0, 7 * MIB));
    story.reaped(2.0, MAIN, usage(4.0, 30 * MIB)).end(1.9, |_| {});
    let (_, _, participants) = story.finish();
    let of = |id| participants.processes.iter().find(|one| one.id == id).unwrap();
    assert_eq!((of(MAIN).end, of(CHILD).end), (Some(End::Code(0)), None));
    assert_eq!(of(MAIN).cpu_seconds, Some(1.0), "its own, not that of its children");
    assert_eq!(of(MAIN).largest_bytes, Some(30 * MIB));
    assert_eq!(of(MAIN).went, Some(1.9), "not after the run");
    assert_eq!((of(nth(1)).cpu_seconds, of(nth(1)).largest_bytes), (Some(2.0), Some(7 * MIB)));
}

#[test]
fn a_size_that_may_be_of_a_child_or_from_before_exec_is_not_its_own() {
    let told = |faults: u64, before: u64| {
        let mut story = Story::new();
        story.came(0.0, MAIN, "sh -c make").at(1.0, |tick| {
            memory(tick, MAIN, MIB, None);
            let events = ProcessEvents { children_faults: Some(faults), ..Default::default() };
            tick.put(Entity::Process(MAIN), &events);
        });
        story.reaped(2.0, MAIN, usage(1.0, 500 * MIB));
        story.end(2.0, |end| end.rss_before_exec_bytes = before);
        story.participants().processes[0].largest_bytes
    };
    assert_eq!(told(0, 0), Some(500 * MIB));
    assert_eq!(told(40, 0), Some(MIB));
    assert_eq!(told(0, 500 * MIB), Some(MIB));
}

#[test]
fn of_very_many_processes_the_heaviest_are_listed() {
    const ALL: u32 = 5000;
    let mut story = Story::new();
    story.came(0.0, MAIN, "main");
    for number in 0..ALL {
        let (id, at) = (nth(number), f64::from(number));
        story.came(at, id, "worker").at(at, |tick| {
            // Some are heavy in one way, some in the other, far from each other.
            cpu(tick, id, if number % 100 == 0 { 60.0 } else { 0.01 });
            memory(tick, id, if number % 100 == 50 { 900 * MIB } else { MIB }, None);
        });
        story.went(at, id);
    }
    let participants = story.participants();
    assert_eq!(participants.processes.len(), listed::MOST_PROCESSES);
    assert_eq!(participants.processes_left_out, u64::from(ALL) + 1 - 500);
    let count = |heavy: fn(&Process) -> bool| {
        participants.processes.iter().filter(|one| heavy(one)).count()
    };
    assert_eq!(count(|one| one.cpu_seconds == Some(60.0)), 50);
    assert_eq!(count(|one| one.largest_bytes == Some(900 * MIB)), 50);
    assert_eq!(count(|one| one.id == MAIN), 1, "the command itself is always there");
}

#[test]
fn a_process_whose_introduction_is_lost_is_there_without_a_name() {
    let mut story = Story::new();
    story.at(1.0, |tick| cpu(tick, CHILD, 2.0));
    let participants = story.participants();
    assert_eq!(
        (participants.processes[0].name.as_str(), participants.processes[0].came),
        ("?", 1.0)
    );
}
