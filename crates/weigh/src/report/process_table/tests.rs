//! The process table, against runs with known results.

use super::*;
use crate::catalog::metrics::ProcessEvents;
use crate::model::{End, Entity};
use crate::report::tests::{participants, read, work_hard};
use crate::testing::{CHILD, MAIN, MIB, cpu, memory, usage};

fn nth(number: u32) -> ProcessId {
    ProcessId { pid: 1000 + number, started: u64::from(number) }
}

#[test]
fn values_of_a_process_that_did_not_run_are_carried_forward() {
    let mut run = work_hard();
    run.starts(0.0, MAIN, "./work hard").starts(1.0, CHILD, "./work more");
    run.sample(1.0, |tick| {
        memory(tick, MAIN, 100 * MIB, 100 * MIB, None);
        memory(tick, CHILD, 50 * MIB, 50 * MIB, Some(30 * MIB));
        cpu(tick, CHILD, 0.5, 0.0);
    });
    // Only one of them ran, and PSS is not part of every row.
    run.sample(2.0, |tick| memory(tick, MAIN, 120 * MIB, 120 * MIB, None));
    run.exits(3.0, CHILD).sample(3.0, |tick| memory(tick, MAIN, 130 * MIB, 130 * MIB, None));
    let participants = participants(&run);
    let [child, main] = &participants.processes[..] else { panic!("two processes") };
    assert_eq!(
        (child.first_sampled, child.exited_at, child.largest_bytes),
        (1.0, Some(3.0), Some(50 * MIB))
    );
    assert_eq!((main.id, main.exited_at, main.cpu_seconds), (MAIN, None, None));
    assert_eq!(main.command.as_deref(), Some("./work hard"));
}

#[test]
fn a_process_keeps_its_values_across_exec() {
    let mut run = work_hard();
    run.starts(0.0, MAIN, "bash ./build.sh");
    run.sample(1.0, |tick| {
        cpu(tick, MAIN, 0.25, 0.0);
        memory(tick, MAIN, 200 * MIB, 200 * MIB, None);
    });
    run.exec(2.0, MAIN, "/usr/bin/python3 -u train.py");
    run.sample(2.0, |tick| {
        cpu(tick, MAIN, 1.25, 0.0);
        memory(tick, MAIN, 10 * MIB, 10 * MIB, None);
    });
    let participants = participants(&run);
    let [process] = &participants.processes[..] else { panic!("one process") };
    assert_eq!((process.name.as_str(), process.largest_bytes), ("python3", Some(200 * MIB)));
    assert_eq!(process.cpu_seconds, Some(1.25));
    assert_eq!((process.program.as_str(), process.parent), ("train.py", Some(1)));
}

#[test]
fn a_pid_used_again_is_another_process() {
    let again = ProcessId { pid: CHILD.pid, started: 999 };
    let mut run = work_hard();
    run.starts(0.0, CHILD, "first").sample(1.0, |tick| cpu(tick, CHILD, 5.0, 0.0));
    run.exits(2.0, CHILD)
        .starts(2.0, again, "second")
        .sample(2.0, |tick| cpu(tick, again, 1.0, 0.0));
    let participants = participants(&run);
    let times: Vec<_> =
        participants.processes.iter().map(|one| (one.id, one.cpu_seconds)).collect();
    assert_eq!(times, [(CHILD, Some(5.0)), (again, Some(1.0))]);
}

#[test]
fn exit_status_is_known_of_processes_that_weigh_reaped() {
    let mut run = work_hard();
    run.starts(0.0, MAIN, "work").starts(0.0, CHILD, "work").starts(0.0, nth(1), "daemon");
    run.sample(1.0, |tick| {
        cpu(tick, MAIN, 1.0, 0.0);
        memory(tick, MAIN, 10 * MIB, 10 * MIB, None);
    });
    run.exits(1.5, CHILD).reaped(1.5, nth(1), usage(2.0, 7 * MIB));
    run.reaped(2.0, MAIN, usage(4.0, 30 * MIB)).ends(1.9, |_| {});
    let (_, _, participants) = read(run);
    let of = |id| participants.processes.iter().find(|one| one.id == id).unwrap();
    assert_eq!((of(MAIN).end, of(CHILD).end), (Some(End::Code(0)), None));
    assert_eq!(of(MAIN).cpu_seconds, Some(1.0), "its own, not that of its children");
    assert_eq!(of(MAIN).largest_bytes, Some(30 * MIB));
    assert_eq!(of(MAIN).exited_at, Some(1.9), "not after the run");
    assert_eq!((of(nth(1)).cpu_seconds, of(nth(1)).largest_bytes), (Some(2.0), Some(7 * MIB)));
}

#[test]
fn a_size_that_may_be_of_a_child_or_from_before_exec_is_not_its_own() {
    let exit_size = |faults: u64, before: u64| {
        let mut run = work_hard();
        run.starts(0.0, MAIN, "sh -c make").sample(1.0, |tick| {
            memory(tick, MAIN, MIB, MIB, None);
            let events = ProcessEvents { children_faults: Some(faults), ..Default::default() };
            tick.put(Entity::Process(MAIN), &events);
        });
        run.reaped(2.0, MAIN, usage(1.0, 500 * MIB));
        run.ends(2.0, |end| end.rss_before_exec_bytes = before);
        participants(&run).processes[0].largest_bytes
    };
    assert_eq!(exit_size(0, 0), Some(500 * MIB));
    assert_eq!(exit_size(40, 0), Some(MIB));
    assert_eq!(exit_size(0, 500 * MIB), Some(MIB));
}

#[test]
fn of_very_many_processes_the_heaviest_are_listed() {
    const ALL: u32 = 5000;
    let mut run = work_hard();
    run.starts(0.0, MAIN, "main");
    for number in 0..ALL {
        let (id, at) = (nth(number), f64::from(number));
        run.starts(at, id, "worker").sample(at, |tick| {
            // Some are heavy in one way, some in the other, far from each other.
            cpu(tick, id, if number % 100 == 0 { 60.0 } else { 0.01 }, 0.0);
            let size = if number % 100 == 50 { 900 * MIB } else { MIB };
            memory(tick, id, size, size, None);
        });
        run.exits(at, id);
    }
    let participants = participants(&run);
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
fn a_process_without_a_start_event_is_listed_without_a_name() {
    let mut run = work_hard();
    run.sample(1.0, |tick| cpu(tick, CHILD, 2.0, 0.0));
    let participants = participants(&run);
    assert_eq!(
        (participants.processes[0].name.as_str(), participants.processes[0].first_sampled),
        ("?", 1.0)
    );
}
