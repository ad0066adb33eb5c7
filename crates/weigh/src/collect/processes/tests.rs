//! Processes as they start, run and exit.

use std::time::Duration;

use super::*;
use crate::catalog::Scope;
use crate::catalog::metrics::process::SOURCE;
use crate::catalog::metrics::{AddressSpace, ProcessCpu, ProcessMemory};
use crate::collect::members::ProcessTree;
use crate::collect::rule::ProgramRule;
use crate::host::fake::FakeHost;

const ROOT: u32 = 200;

fn stat(pid: u32, parent: u32, started: u64, ticks: u64) -> String {
    format!(
        "{pid} (work) S {parent} 1 1 0 -1 0 7 0 0 0 {ticks} 0 0 0 20 0 1 0 {started} 0 100 0 0 \
         0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

/// A process that has run for so many clock ticks.
fn runs(fake: &FakeHost, pid: u32, parent: u32, started: u64, ticks: u64) {
    fake.set_proc(&format!("{pid}/stat"), &stat(pid, parent, started, ticks));
    fake.set_proc(&format!("{pid}/schedstat"), &format!("{} 0 1\n", ticks * 10_000_000 + 1));
    fake.set_proc(&format!("{pid}/comm"), "work\n");
    fake.set_proc(&format!("{pid}/cmdline"), "work\0hard\0");
}

fn begin(fake: &FakeHost, descriptors: usize) -> (ProcessCollector, Tick) {
    fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 10\n");
    let settings = Settings::default();
    let mut processes = ProcessCollector::before_run(&fake.host(), &settings);
    runs(fake, ROOT, std::process::id(), 50, 0);
    fake.set_proc("loadavg", "0.0 0.0 0.0 1/2 200\n");
    processes.begin(&fake.host(), ROOT, descriptors);
    (processes, Tick::new(SOURCE.groups))
}

/// The pids that have a row after one more tick.
fn rows(processes: &mut ProcessCollector, tick: &mut Tick, fake: &FakeHost) -> Vec<u32> {
    tick.begin(tick.at + Duration::from_secs(1));
    processes.sample(&Context::of(&fake.host()), tick).unwrap();
    let table = tick.table(Scope::Process).unwrap();
    let pid = |entity: &Entity| match entity {
        Entity::Process(id) => id.pid,
        _ => unreachable!("a table of processes"),
    };
    table.entities().iter().map(pid).collect()
}

#[test]
fn only_processes_that_ran_are_read() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT]);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0], "it slept");
    runs(&fake, ROOT, std::process::id(), 50, 3);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT]);
    let cpu = tick.table(Scope::Process).unwrap().get::<ProcessCpu>(0);
    assert_eq!(cpu.user, Some(0.03));
}

#[test]
fn run_time_needs_a_process_that_never_had_a_second_thread() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    let mut run_time = |ticks: u64, threads: u32| {
        runs(&fake, ROOT, std::process::id(), 50, ticks);
        let stat = stat(ROOT, std::process::id(), 50, ticks);
        let stat = stat.replace(" 20 0 1 0 50 ", &format!(" 20 0 {threads} 0 50 "));
        fake.set_proc("200/stat", &stat);
        assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT]);
        tick.table(Scope::Process).unwrap().get::<ProcessCpu>(0).run_time
    };
    assert_eq!(run_time(1, 1), Some(0.010_000_001));
    assert_eq!(run_time(2, 1), Some(0.020_000_001));
    assert_eq!(run_time(3, 2), None, "that of its main thread alone");
    assert_eq!(run_time(4, 1), None, "and the other thread's is in no schedstat any more");
}

#[test]
fn exited_process_is_not_an_error() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 0);
    rows(&mut processes, &mut tick, &fake);
    fake.remove_proc("200");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0]);
    assert!(matches!(tick.changes[..], [Change::Exited { .. }]));
    assert_eq!(processes.alive().count(), 0);
}

#[test]
fn reused_pid_is_another_process() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 0);
    rows(&mut processes, &mut tick, &fake);
    runs(&fake, ROOT, 1, 99, 8);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0]);
    assert!(matches!(tick.changes[..], [Change::Exited { id, .. }] if id.started == 50));
}

#[test]
fn new_process_is_reported_with_name_and_arguments() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    runs(&fake, 201, ROOT, 60, 1);
    fake.set_proc("loadavg", "0.0 0.0 0.0 1/3 201\n");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT, 201]);
    let [_, Change::Started { id, parent, program }] = &tick.changes[..] else { panic!() };
    assert_eq!((id.pid, id.started, *parent), (201, 60, ROOT));
    assert_eq!(program.name, b"work");
    assert_eq!(program.arguments, Some(vec![b"work".to_vec(), b"hard".to_vec()]));
}

#[test]
fn empty_command_line_during_exec_is_read_again() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    fake.set_proc("200/cmdline", "");
    rows(&mut processes, &mut tick, &fake);
    let [Change::Started { program, .. }] = &tick.changes[..] else { panic!() };
    assert_eq!(program.arguments, None);
    runs(&fake, ROOT, std::process::id(), 50, 1);
    tick.changes.clear();
    rows(&mut processes, &mut tick, &fake);
    let [Change::Exec { program, .. }] = &tick.changes[..] else { panic!() };
    assert_eq!(program.arguments, Some(vec![b"work".to_vec(), b"hard".to_vec()]));
    // Once it has arguments, nothing more is read.
    for ticks in 2..4 {
        runs(&fake, ROOT, std::process::id(), 50, ticks);
        tick.changes.clear();
        rows(&mut processes, &mut tick, &fake);
        assert!(tick.changes.is_empty());
    }
}

#[test]
fn memory_that_cannot_be_read_is_missing_and_not_zero() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    rows(&mut processes, &mut tick, &fake);
    let memory = tick.table(Scope::Process).unwrap().get::<ProcessMemory>(0);
    assert_eq!((memory.rss, memory.pss), (Some(100 * 4096), None));
}

/// What the row of a process says of its memory.
fn memory(tick: &Tick, pid: u32) -> ProcessMemory {
    let table = tick.table(Scope::Process).unwrap();
    let is_it = |entity: &Entity| matches!(entity, Entity::Process(id) if id.pid == pid);
    table.get(table.entities().iter().position(is_it).unwrap())
}

/// The command's process with a child that uses its address space.
fn with_vfork_child(fake: &FakeHost) -> (ProcessCollector, Tick) {
    let (processes, tick) = begin(fake, 100);
    runs(fake, 201, ROOT, 60, 1);
    fake.set_proc("loadavg", "0.0 0.0 0.0 1/3 201\n");
    (processes, tick)
}

#[test]
fn vfork_child_does_not_double_the_memory() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = with_vfork_child(&fake);
    fake.set_shared(201, ROOT, true);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT, 201]);
    let (parent, child) = (memory(&tick, ROOT), memory(&tick, 201));
    assert_eq!((parent.rss, child.rss), (Some(100 * 4096), None));
    assert_eq!(parent.address_space, Some(AddressSpace::Own));
    assert_eq!(child.address_space, Some(AddressSpace::Shared));
    fake.set_shared(201, ROOT, false);
    runs(&fake, 201, ROOT, 60, 2);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [201]);
    assert_eq!(memory(&tick, 201).rss, Some(100 * 4096));
}

#[test]
fn huge_pages_are_part_of_resident_memory_and_separate() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    let status = |huge: u32| format!("VmHWM:\t400 kB\nHugetlbPages:\t{huge} kB\n");
    fake.set_proc("200/status", &status(2048));
    rows(&mut processes, &mut tick, &fake);
    let used = memory(&tick, ROOT);
    assert_eq!((used.rss, used.hugetlb), (Some(100 * 4096 + (2 << 20)), Some(2 << 20)));
    // They are freed: no page fault shows it.
    fake.set_proc("200/status", &status(0));
    runs(&fake, ROOT, std::process::id(), 50, 1);
    rows(&mut processes, &mut tick, &fake);
    assert_eq!(memory(&tick, ROOT).rss, Some(100 * 4096));
}

#[test]
fn shared_address_space_is_counted_after_its_owner_left() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = with_vfork_child(&fake);
    runs(&fake, 202, 201, 61, 1);
    fake.set_proc("loadavg", "0.0 0.0 0.0 1/3 202\n");
    for (child, owner) in [(201, ROOT), (202, 201), (202, ROOT)] {
        fake.set_shared(child, owner, true);
    }
    assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT, 201, 202]);
    assert_eq!((memory(&tick, 201).rss, memory(&tick, 202).rss), (None, None));
    // The owner calls exec. Both others stay asleep.
    fake.set_shared(201, ROOT, false);
    fake.set_shared(202, ROOT, false);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [201]);
    assert_eq!(memory(&tick, 201).rss, Some(100 * 4096));
}

#[test]
fn equal_memory_is_one_address_space_without_kcmp() {
    let fake = FakeHost::new().without_kcmp();
    let (mut processes, mut tick) = with_vfork_child(&fake);
    let status = |resident: u32| {
        format!("Name:\twork\nVmPeak:\t900 kB\nVmHWM:\t{resident} kB\nVmSwap:\t0 kB\nThreads:\t1\n")
    };
    fake.set_proc("200/status", &status(400));
    fake.set_proc("201/status", &status(400));
    assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT, 201]);
    assert_eq!((memory(&tick, 201).rss, memory(&tick, 201).peak), (None, None));
    assert_eq!(memory(&tick, ROOT).peak, Some(400 * 1024));
    fake.set_proc("201/status", &status(300));
    runs(&fake, 201, ROOT, 60, 2);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [201]);
    assert_eq!(memory(&tick, 201).peak, Some(300 * 1024));
}

#[test]
fn unseen_reaped_child_is_noticed_without_a_new_pid() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    rows(&mut processes, &mut tick, &fake);
    assert!(!processes.may_have_missed_processes());
    // Page faults of reaped children; /proc/loadavg does not change.
    let with_children = stat(ROOT, std::process::id(), 50, 2).replace(" 7 0 0 0 ", " 7 90 0 0 ");
    fake.set_proc("200/stat", &with_children);
    fake.set_proc("200/schedstat", "20000001 0 1\n");
    rows(&mut processes, &mut tick, &fake);
    assert!(processes.may_have_missed_processes());
}

#[test]
fn reaped_known_child_is_not_missed() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 0);
    runs(&fake, 201, ROOT, 60, 1);
    fake.set_proc("loadavg", "0.0 0.0 0.0 1/3 201\n");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT, 201]);
    let with_children = stat(ROOT, std::process::id(), 50, 2).replace(" 7 0 0 0 ", " 7 90 0 0 ");
    fake.set_proc("200/stat", &with_children);
    fake.set_proc("200/schedstat", "20000001 0 1\n");
    fake.remove_proc("201");
    rows(&mut processes, &mut tick, &fake);
    assert!(!processes.may_have_missed_processes());
}

/// Monitors all processes that run `tool`.
fn watch(fake: &FakeHost) -> (ProcessCollector, Tick) {
    let rule = ProgramRule::new(vec!["tool".to_owned()], None, false).unwrap();
    let members = ProcessTree::all_but(&fake.host(), 1);
    let settings = Settings::default();
    let processes = ProcessCollector::of(&fake.host(), &settings, members, Some(rule), 0);
    (processes, Tick::new(SOURCE.groups))
}

fn exec(fake: &FakeHost, pid: u32, program: &str) {
    fake.set_proc(&format!("{pid}/comm"), &format!("{program}\n"));
    fake.set_proc(&format!("{pid}/cmdline"), &format!("{program}\0hard\0"));
}

#[test]
fn only_processes_that_run_the_tool_are_measured() {
    let fake = FakeHost::new();
    for pid in [300, 301, 302] {
        runs(&fake, pid, 1, 60, 1);
    }
    exec(&fake, 301, "/usr/bin/tool");
    let (mut processes, mut tick) = watch(&fake);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [301]);
}

#[test]
fn process_that_execs_the_tool_later_is_found() {
    let fake = FakeHost::new();
    runs(&fake, 300, 1, 60, 1);
    let (mut processes, mut tick) = watch(&fake);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0]);
    runs(&fake, 310, 1, 70, 1);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0], "just forked");
    exec(&fake, 310, "tool");
    assert_eq!(
        rows(&mut processes, &mut tick, &fake),
        [310],
        "a recent process is rechecked at once"
    );
    exec(&fake, 300, "tool");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [300], "an older one in rotation");
}

#[test]
fn processes_are_not_listed_while_events_are_received() {
    let fake = FakeHost::new();
    runs(&fake, 300, 1, 60, 1);
    let (mut processes, mut tick) = watch(&fake);
    processes.enable_events(65);
    rows(&mut processes, &mut tick, &fake);
    runs(&fake, 310, 1, 70, 1);
    exec(&fake, 310, "tool");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0], "nothing was listed");
    tick.begin(Duration::from_secs(9));
    processes.executed(&fake.host(), &mut tick, 310);
    assert!(matches!(&tick.changes[..], [Change::Started { id, .. }] if id.pid == 310));
    let exited = processes.exited(&fake.host(), &mut tick, 310).unwrap();
    assert_eq!((exited.id.pid, exited.is_ours), (310, true));
    assert_eq!(processes.alive().count(), 0);
}

#[test]
fn fork_is_reported_once_it_did_not_exec() {
    let fake = FakeHost::new();
    runs(&fake, 300, 1, 70, 1);
    exec(&fake, 300, "tool");
    let (mut processes, mut tick) = watch(&fake);
    processes.enable_events(65);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [300]);
    for pid in [310, 311] {
        runs(&fake, pid, 300, 80, 0);
        exec(&fake, pid, "tool");
        processes.forked(&fake.host(), tick.at, 300, pid);
    }
    exec(&fake, 310, "sort");
    processes.executed(&fake.host(), &mut tick, 310);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [311], "310 is another program");
}

#[test]
fn process_gone_before_it_was_read_may_have_matched() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = watch(&fake);
    processes.enable_events(65);
    rows(&mut processes, &mut tick, &fake);
    runs(&fake, 310, 1, 70, 1);
    processes.executed(&fake.host(), &mut tick, 310);
    assert!(!processes.may_have_missed_processes(), "it is another program");
    processes.executed(&fake.host(), &mut tick, 311);
    assert!(processes.may_have_missed_processes());
}

#[test]
fn exited_process_waits_one_tick_for_its_exit_event() {
    let fake = FakeHost::new();
    for pid in [300, 301] {
        runs(&fake, pid, 1, 70, 1);
        exec(&fake, pid, "tool");
    }
    let (mut processes, mut tick) = watch(&fake);
    processes.enable_events(65);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [300, 301]);
    ["300", "301"].into_iter().for_each(|pid| fake.remove_proc(pid));
    rows(&mut processes, &mut tick, &fake);
    assert!(tick.changes.is_empty(), "{:?}", tick.changes);
    let exited = processes.exited(&fake.host(), &mut tick, 300).unwrap();
    assert_eq!((exited.id.pid, exited.is_ours), (300, true));
    rows(&mut processes, &mut tick, &fake);
    assert!(matches!(&tick.changes[..], [Change::Exited { id, .. }] if id.pid == 301));
}
