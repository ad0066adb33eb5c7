//! Processes as they come, run and go.

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
    processes.sample(&fake.host(), tick).unwrap();
    let table = tick.table(Scope::Process).unwrap();
    let pid = |entity: &Entity| match entity {
        Entity::Process(id) => id.pid,
        _ => unreachable!("a table of processes"),
    };
    table.entities().iter().map(pid).collect()
}

#[test]
fn only_who_ran_is_read() {
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
fn run_time_is_known_only_of_a_process_that_never_had_a_second_thread() {
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
fn a_vanished_process_is_not_an_error() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 0);
    rows(&mut processes, &mut tick, &fake);
    fake.remove_proc("200");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0]);
    assert!(matches!(tick.changes[..], [Change::Went { .. }]));
    assert_eq!(processes.alive().count(), 0);
}

#[test]
fn a_pid_used_again_is_not_the_same_process() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 0);
    rows(&mut processes, &mut tick, &fake);
    runs(&fake, ROOT, 1, 99, 8);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0]);
    assert!(matches!(tick.changes[..], [Change::Went { id }] if id.started == 50));
}

#[test]
fn a_newcomer_is_introduced_with_its_name_and_arguments() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    runs(&fake, 201, ROOT, 60, 1);
    fake.set_proc("loadavg", "0.0 0.0 0.0 1/3 201\n");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT, 201]);
    let [_, Change::Came { id, parent, program }] = &tick.changes[..] else { panic!() };
    assert_eq!((id.pid, id.started, *parent), (201, 60, ROOT));
    assert_eq!(program.name, b"work");
    assert_eq!(program.arguments, Some(vec![b"work".to_vec(), b"hard".to_vec()]));
}

#[test]
fn arguments_that_are_not_there_during_exec_are_asked_for_again() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    fake.set_proc("200/cmdline", "");
    rows(&mut processes, &mut tick, &fake);
    let [Change::Came { program, .. }] = &tick.changes[..] else { panic!() };
    assert_eq!(program.arguments, None);
    runs(&fake, ROOT, std::process::id(), 50, 1);
    tick.changes.clear();
    rows(&mut processes, &mut tick, &fake);
    let [Change::Became { program, .. }] = &tick.changes[..] else { panic!() };
    assert_eq!(program.arguments, Some(vec![b"work".to_vec(), b"hard".to_vec()]));
    // Once told, nothing more is asked.
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
fn a_vfork_child_has_no_memory_of_its_own_until_exec() {
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
fn huge_pages_are_in_the_resident_memory_and_told_apart() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    let status = |huge: u32| format!("VmHWM:\t400 kB\nHugetlbPages:\t{huge} kB\n");
    fake.set_proc("200/status", &status(2048));
    rows(&mut processes, &mut tick, &fake);
    let held = memory(&tick, ROOT);
    assert_eq!((held.rss, held.hugetlb), (Some(100 * 4096 + (2 << 20)), Some(2 << 20)));
    // They are given back: no page fault tells.
    fake.set_proc("200/status", &status(0));
    runs(&fake, ROOT, std::process::id(), 50, 1);
    rows(&mut processes, &mut tick, &fake);
    assert_eq!(memory(&tick, ROOT).rss, Some(100 * 4096));
}

#[test]
fn an_address_space_that_outlives_its_owner_is_counted_for_one_of_the_others() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = with_vfork_child(&fake);
    runs(&fake, 202, 201, 61, 1);
    fake.set_proc("loadavg", "0.0 0.0 0.0 1/3 202\n");
    for (child, owner) in [(201, ROOT), (202, 201), (202, ROOT)] {
        fake.set_shared(child, owner, true);
    }
    assert_eq!(rows(&mut processes, &mut tick, &fake), [ROOT, 201, 202]);
    assert_eq!((memory(&tick, 201).rss, memory(&tick, 202).rss), (None, None));
    // The owner calls exec. Both others sleep on.
    fake.set_shared(201, ROOT, false);
    fake.set_shared(202, ROOT, false);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [201]);
    assert_eq!(memory(&tick, 201).rss, Some(100 * 4096));
}

#[test]
fn where_kcmp_is_refused_the_same_memory_to_the_kilobyte_is_one_address_space() {
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
fn a_child_that_was_reaped_and_never_seen_is_noticed_without_a_new_pid() {
    let fake = FakeHost::new();
    let (mut processes, mut tick) = begin(&fake, 100);
    rows(&mut processes, &mut tick, &fake);
    assert!(!processes.may_have_missed_processes());
    // Page faults of children that it has waited for; /proc/loadavg stands still.
    let with_children = stat(ROOT, std::process::id(), 50, 2).replace(" 7 0 0 0 ", " 7 90 0 0 ");
    fake.set_proc("200/stat", &with_children);
    fake.set_proc("200/schedstat", "20000001 0 1\n");
    rows(&mut processes, &mut tick, &fake);
    assert!(processes.may_have_missed_processes());
}

#[test]
fn a_known_child_that_is_reaped_is_not_unseen() {
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

/// Follows everybody who runs `tool`.
fn watch(fake: &FakeHost) -> (ProcessCollector, Tick) {
    let rule = ProgramRule::new(vec!["tool".to_owned()], None, false).unwrap();
    let members = ProcessTree::all_but(&fake.host(), 1);
    let settings = Settings::default();
    let processes = ProcessCollector::of(&fake.host(), &settings, members, Some(rule), 0);
    (processes, Tick::new(SOURCE.groups))
}

fn becomes(fake: &FakeHost, pid: u32, program: &str) {
    fake.set_proc(&format!("{pid}/comm"), &format!("{program}\n"));
    fake.set_proc(&format!("{pid}/cmdline"), &format!("{program}\0hard\0"));
}

#[test]
fn of_many_only_those_are_followed_who_run_the_tool() {
    let fake = FakeHost::new();
    for pid in [300, 301, 302] {
        runs(&fake, pid, 1, 60, 1);
    }
    becomes(&fake, 301, "/usr/bin/tool");
    let (mut processes, mut tick) = watch(&fake);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [301]);
}

#[test]
fn who_becomes_the_tool_later_is_found_by_asking_again() {
    let fake = FakeHost::new();
    runs(&fake, 300, 1, 60, 1);
    let (mut processes, mut tick) = watch(&fake);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0]);
    runs(&fake, 310, 1, 70, 1);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0], "just forked");
    becomes(&fake, 310, "tool");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [310], "a young one is asked at once");
    becomes(&fake, 300, "tool");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [300], "an old one in its turn");
}

#[test]
fn nobody_is_listed_while_the_kernel_tells() {
    let fake = FakeHost::new();
    runs(&fake, 300, 1, 60, 1);
    let (mut processes, mut tick) = watch(&fake);
    processes.enable_events(65);
    rows(&mut processes, &mut tick, &fake);
    runs(&fake, 310, 1, 70, 1);
    becomes(&fake, 310, "tool");
    assert_eq!(rows(&mut processes, &mut tick, &fake), [0; 0], "nobody looked");
    tick.begin(Duration::from_secs(9));
    processes.executed(&fake.host(), &mut tick, 310);
    assert!(matches!(&tick.changes[..], [Change::Came { id, .. }] if id.pid == 310));
    let gone = processes.exited(&fake.host(), &mut tick, 310).unwrap();
    assert_eq!((gone.id.pid, gone.is_ours), (310, true));
    assert_eq!(processes.alive().count(), 0);
}

#[test]
fn a_fork_is_told_of_when_it_stays_what_it_is() {
    let fake = FakeHost::new();
    runs(&fake, 300, 1, 70, 1);
    becomes(&fake, 300, "tool");
    let (mut processes, mut tick) = watch(&fake);
    processes.enable_events(65);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [300]);
    for pid in [310, 311] {
        runs(&fake, pid, 300, 80, 0);
        becomes(&fake, pid, "tool");
        processes.forked(&fake.host(), tick.at, 300, pid);
    }
    becomes(&fake, 310, "sort");
    processes.executed(&fake.host(), &mut tick, 310);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [311], "310 is another program");
}

#[test]
fn who_is_gone_before_anybody_could_look_may_have_been_meant() {
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
fn who_is_gone_before_its_end_is_told_waits_for_that_word_and_not_for_ever() {
    let fake = FakeHost::new();
    for pid in [300, 301] {
        runs(&fake, pid, 1, 70, 1);
        becomes(&fake, pid, "tool");
    }
    let (mut processes, mut tick) = watch(&fake);
    processes.enable_events(65);
    assert_eq!(rows(&mut processes, &mut tick, &fake), [300, 301]);
    ["300", "301"].into_iter().for_each(|pid| fake.remove_proc(pid));
    rows(&mut processes, &mut tick, &fake);
    assert!(tick.changes.is_empty(), "{:?}", tick.changes);
    let gone = processes.exited(&fake.host(), &mut tick, 300).unwrap();
    assert_eq!((gone.id.pid, gone.is_ours), (300, true));
    rows(&mut processes, &mut tick, &fake);
    assert!(matches!(&tick.changes[..], [Change::Went { id }] if id.pid == 301));
}
