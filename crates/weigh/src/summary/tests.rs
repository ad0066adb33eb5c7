//! Figures of runs with known values.

use super::*;
use crate::catalog::metrics::{
    DiskIo, DomainEnergy, MadeOf, NetworkTraffic, NodeCpu, NodeMemory, PortTraffic, ProcessIo,
    ProcessMemory, RunCpu,
};
use crate::catalog::{FigureId, FigureScope};
use crate::model::batch_job::{BatchJob, Scheduler};
use crate::model::{End, Entity, Name, ProcessId, Tick};
use crate::record::Event;
use crate::testing::{CHILD, FakeRun, MAIN, MIB, cpu, cpu_with_children, memory, usage};

fn figure(summary: &Summary, name: &str) -> Figure {
    summary.figures[name].clone()
}

#[test]
fn shared_memory_is_counted_once_and_the_true_value_is_inside_the_bounds() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| {
        memory(tick, MAIN, 400 * MIB, 400 * MIB, Some(200 * MIB));
        memory(tick, CHILD, 400 * MIB, 400 * MIB, Some(200 * MIB));
    });
    let peak = figure(&run.ends(2.0, |_| {}).summary(), "memory_peak_bytes");
    assert_eq!(peak.value, Some((400 * MIB) as f64));
    assert_eq!(peak.upper, Some((800 * MIB) as f64));
    assert_eq!(peak.method, Some(Method::Sampled));
}

/// A process of 2 MiB with so many huge pages, of which the machine has 300 MiB.
fn with_huge_pages(tick: &mut Tick, id: ProcessId, huge: u64, pool: Option<u64>) {
    memory(tick, id, (2 + huge) * MIB, 2 * MIB, Some((1 + huge) * MIB));
    let row = ProcessMemory { hugetlb: Some(huge * MIB), ..ProcessMemory::default() };
    tick.put(Entity::Process(id), &row);
    tick.put(Entity::Single, &NodeMemory { hugetlb: pool, ..NodeMemory::default() });
}

#[test]
fn huge_pages_are_in_the_peak_and_bounded_by_those_of_the_machine() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| with_huge_pages(tick, MAIN, 0, Some(300 * MIB)));
    run.sample(1.0, |tick| with_huge_pages(tick, MAIN, 200, Some(300 * MIB)));
    let summary = run.ends(2.0, |_| {}).summary();
    let peak = figure(&summary, "memory_peak_bytes");
    assert_eq!((peak.value, peak.upper), (Some((202 * MIB) as f64), Some((302 * MIB) as f64)));
    assert_eq!(peak.method, Some(Method::Sampled), "the kernel keeps no mark of them");
    let huge = figure(&summary, "memory_hugetlb_peak_bytes");
    assert_eq!(huge.value, Some((200 * MIB) as f64));
}

#[test]
fn unknown_number_of_huge_pages_leaves_no_upper_bound() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| with_huge_pages(tick, MAIN, 200, None));
    let peak = figure(&run.ends(2.0, |_| {}).summary(), "memory_peak_bytes");
    assert_eq!((peak.value, peak.upper), (Some((202 * MIB) as f64), None));
    assert!(peak.reason.unwrap().contains("huge pages"));
}

#[test]
fn run_without_huge_pages_has_no_huge_page_figure() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| with_huge_pages(tick, MAIN, 0, Some(0)));
    let summary = run.ends(2.0, |_| {}).summary();
    assert!(summary.figures.get(FigureId::MemoryHugetlbPeak).is_none());
    assert_eq!(figure(&summary, "memory_peak_bytes").method, Some(Method::Exact));
}

#[test]
fn mean_of_one_process_has_the_basis_of_its_peak() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| memory(tick, MAIN, 2 * MIB, 2 * MIB, Some(MIB / 2)));
    let summary = run.ends(1.0, |_| {}).summary();
    let (peak, mean) =
        (figure(&summary, "memory_peak_bytes"), figure(&summary, "memory_mean_bytes"));
    assert_eq!((peak.value, mean.value), (Some((2 * MIB) as f64), Some((2 * MIB) as f64)));
    assert!(mean.source.contains("resident"), "{mean:?}");
    assert_eq!(figure(&summary, "memory_pss_peak_bytes").value, Some((MIB / 2) as f64));
}

#[test]
fn mean_of_a_tree_counts_shared_pages_once_as_its_peak_does() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| {
        memory(tick, MAIN, 400 * MIB, 400 * MIB, Some(300 * MIB));
        memory(tick, CHILD, 400 * MIB, 400 * MIB, Some(200 * MIB));
    });
    run.sample(1.0, |tick| {
        memory(tick, MAIN, 400 * MIB, 400 * MIB, Some(150 * MIB));
        memory(tick, CHILD, 400 * MIB, 400 * MIB, Some(150 * MIB));
    });
    let summary = run.ends(2.0, |_| {}).summary();
    assert_eq!(figure(&summary, "memory_peak_bytes").value, Some((500 * MIB) as f64));
    assert_eq!(figure(&summary, "memory_mean_bytes").value, Some((450 * MIB) as f64));
}

#[test]
fn without_pss_peak_and_mean_are_sums_of_resident_memory_and_note_it() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| {
        memory(tick, MAIN, 30 * MIB, 30 * MIB, None);
        memory(tick, CHILD, 10 * MIB, 10 * MIB, None);
    });
    let summary = run.ends(2.0, |_| {}).summary();
    for name in ["memory_peak_bytes", "memory_mean_bytes"] {
        let figure = figure(&summary, name);
        assert_eq!(figure.value, Some((40 * MIB) as f64), "{figure:?}");
        assert_eq!(figure.method, Some(Method::Estimated));
        assert!(figure.source.contains("rss, summed"), "{figure:?}");
    }
}

#[test]
fn memory_of_a_zombie_is_not_added_to_that_of_processes_that_grow_after_its_exit() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| {
        memory(tick, MAIN, MIB, MIB, Some(MIB));
        memory(tick, CHILD, 600 * MIB, 600 * MIB, Some(600 * MIB));
    });
    // It has exited, and its parent does not reap it.
    run.sample(2.0, |tick| memory(tick, CHILD, 0, 600 * MIB, None));
    run.sample(3.0, |tick| memory(tick, MAIN, 500 * MIB, 500 * MIB, Some(500 * MIB)));
    let summary = run.ends(4.0, |_| {}).summary();
    for name in ["memory_peak_bytes", "memory_pss_peak_bytes"] {
        let peak = figure(&summary, name);
        assert_eq!((peak.value, peak.lower), (Some((601 * MIB) as f64), Some((601 * MIB) as f64)));
    }
}

#[test]
fn command_sampled_only_as_a_zombie_has_no_memory_of_zero() {
    let mut run = FakeRun::new();
    let row = ProcessMemory { rss: Some(0), ..ProcessMemory::default() };
    run.sample(0.001, |tick| tick.put(Entity::Process(MAIN), &row));
    run.reaped(0.001, MAIN, usage(0.001, 2 * MIB));
    let summary = run.ends(0.001, |end| end.rss_before_exec_bytes = 2 * MIB).summary();
    for name in ["memory_peak_bytes", "memory_mean_bytes", "memory_rss_peak_bytes"] {
        let figure = figure(&summary, name);
        assert_eq!(figure.value, None, "{figure:?}");
        assert!(figure.reason.as_deref().unwrap().contains("short"), "{figure:?}");
    }
    assert_eq!(figure(&summary, "memory_peak_bytes").upper, Some((2 * MIB) as f64));
}

#[test]
fn spike_between_two_ticks_is_found_by_the_high_water_mark() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| memory(tick, MAIN, 2 * MIB, 2 * MIB, Some(MIB)));
    run.sample(1.0, |tick| memory(tick, MAIN, 3 * MIB, 900 * MIB, None));
    let peak = figure(&run.ends(2.0, |_| {}).summary(), "memory_peak_bytes");
    assert_eq!(peak.value, Some((900 * MIB) as f64));
    assert_eq!(peak.method, Some(Method::Exact));
    // The time is not known: the mark is of the time between the two readings.
    assert_eq!(peak.at_seconds, None);
    assert_eq!((peak.after_seconds, peak.before_seconds), (None, Some(1.0)), "0 s is no sample");
}

#[test]
fn high_water_mark_that_a_sample_reached_has_the_time_of_that_sample() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| memory(tick, MAIN, 80 * MIB, 80 * MIB, Some(MIB)));
    run.sample(2.0, |tick| memory(tick, MAIN, 200 * MIB, 201 * MIB, Some(MIB)));
    run.sample(3.0, |tick| memory(tick, MAIN, 3 * MIB, 201 * MIB, Some(MIB)));
    let peak = figure(&run.ends(4.0, |_| {}).summary(), "memory_peak_bytes");
    assert_eq!((peak.at_seconds, peak.before_seconds), (Some(2.0), None));
}

#[test]
fn maxrss_of_wait4_is_of_the_time_after_the_last_reading() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| memory(tick, MAIN, 80 * MIB, 80 * MIB, Some(MIB)));
    run.reaped(2.5, MAIN, usage(1.0, 300 * MIB));
    let peak = figure(&run.ends(2.5, |_| {}).summary(), "memory_peak_bytes");
    assert_eq!(peak.value, Some((300 * MIB) as f64));
    assert_eq!((peak.at_seconds, peak.after_seconds), (None, Some(1.0)));
    assert_eq!(peak.before_seconds, Some(2.5));
}

#[test]
fn growth_after_the_last_sample_is_in_the_upper_bound() {
    let mut run = FakeRun::new();
    let other = ProcessId { pid: 12, started: 102 };
    run.sample(0.0, |tick| {
        memory(tick, MAIN, MIB, MIB, Some(MIB));
        memory(tick, CHILD, MIB, MIB, Some(MIB));
        memory(tick, other, MIB, MIB, Some(MIB));
    });
    for id in [CHILD, other] {
        run.event(1.0, Event::ended(id, None, None));
    }
    // The command's own `wait4` has the largest of its reaped children.
    run.reaped(1.0, MAIN, usage(0.1, 200 * MIB));
    let peak = figure(&run.ends(1.0, |_| {}).summary(), "memory_peak_bytes");
    assert_eq!(peak.value, Some((200 * MIB) as f64));
    assert!(peak.upper.unwrap() >= (401 * MIB) as f64, "both may have been that large: {peak:?}");
}

#[test]
fn weigh_mark_reaped_by_a_descendant_is_not_in_the_memory_of_the_run() {
    let peak = |is_marked: bool, largest: u64| {
        let mut run = FakeRun::new();
        run.sample(0.0, |tick| {
            memory(tick, MAIN, MIB, MIB, Some(MIB));
            memory(tick, CHILD, MIB, MIB, Some(MIB));
        });
        if is_marked {
            run.event(0.5, Event::Mark { text: "here".to_owned() });
        }
        run.reaped(1.0, CHILD, usage(0.1, largest));
        let summary = run.ends(2.0, |end| end.rss_before_exec_bytes = 12 * MIB).summary();
        figure(&summary, "memory_peak_bytes").value
    };
    assert_eq!(peak(true, 11 * MIB), Some((2 * MIB) as f64));
    assert_eq!(peak(true, 20 * MIB), Some((20 * MIB) as f64), "no mark is that large");
    assert_eq!(peak(false, 11 * MIB), Some((11 * MIB) as f64), "there was no mark");
}

#[test]
fn size_before_exec_is_not_the_size_of_the_command() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| memory(tick, MAIN, MIB, MIB, Some(MIB)));
    run.reaped(1.0, MAIN, usage(0.1, 5 * MIB));
    let summary = run.ends(1.0, |end| end.rss_before_exec_bytes = 5 * MIB).summary();
    let peak = figure(&summary, "memory_peak_bytes");
    assert_eq!((peak.value, peak.lower), (Some(MIB as f64), Some(MIB as f64)));
    assert_eq!(peak.upper, Some((5 * MIB) as f64));
    assert_eq!(peak.method, Some(Method::Sampled));
}

/// A command of 10 ms whose daemon uses one core for two seconds more.
fn daemon_after_the_command() -> FakeRun {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "work").starts(0.01, CHILD, "daemon");
    run.reaped(0.011, MAIN, usage(0.005, MIB));
    run.sample(1.0, |tick| {
        cpu_with_children(tick, CHILD, 0.99, 0.0);
        memory(tick, CHILD, MIB, MIB, Some(MIB));
    });
    run.reaped(2.011, CHILD, usage(2.0, MIB));
    run
}

#[test]
fn rates_are_over_the_measured_time_and_not_over_that_of_the_command() {
    for recorded in [Some(2.01), None] {
        let summary = daemon_after_the_command()
            .ends(2.02, |end| {
                (end.duration_seconds, end.measured_seconds) = (0.01, recorded);
            })
            .summary();
        assert_eq!(summary.run.duration_seconds, 0.01);
        assert!((summary.run.measured() - 2.01).abs() < 1e-9, "{:?}", summary.run);
        let ended = summary.run.ended.unwrap().duration_since(summary.run.started);
        assert_eq!(ended.as_millis(), 10, "the command's end");
        let mean = figure(&summary, "cpu_cores_mean").value.unwrap();
        assert!((mean - 2.005 / 2.01).abs() < 1e-9, "{mean} cores");
        let peak = figure(&summary, "cpu_cores_peak").value.unwrap();
        assert!((mean..1.1).contains(&peak), "{peak} cores");
        let ratio = summary.monitor.cost_ratio.unwrap();
        assert!((ratio - 0.01 / 2.01).abs() < 1e-9, "{ratio} of a core for weigh");
    }
}

#[test]
fn remaining_processes_are_measured_until_the_final_counters() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "work").starts(0.0, CHILD, "daemon");
    run.reaped(0.011, MAIN, usage(0.005, MIB));
    let summary = run
        .ends(0.021, |end| {
            (end.duration_seconds, end.still_running) = (0.01, vec![CHILD.pid]);
            end.task_clock_seconds = Some(0.02);
        })
        .summary();
    assert!((summary.run.measured() - 0.02).abs() < 1e-9, "{:?}", summary.run);
    let mean = figure(&summary, "cpu_cores_mean");
    assert!((mean.value.unwrap() - 1.0).abs() < 1e-9, "{mean:?}");
}

#[test]
fn command_without_remaining_processes_is_measured_until_its_exit() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "work").reaped(1.001, MAIN, usage(0.5, MIB));
    let summary = run.ends(1.02, |end| end.duration_seconds = 1.0).summary();
    assert_eq!(summary.run.measured(), 1.0, "the final counters are read a moment later");
}

#[test]
fn little_auto_reaped_time_leaves_counts_without_upper_bound() {
    let mut run = FakeRun::new();
    run.reaped(10.0, MAIN, usage(10.0, MIB));
    let summary = run
        .ends(10.0, |end| {
            end.task_clock_seconds = Some(10.05);
            end.io = Some(crate::model::Io::default());
        })
        .summary();
    let written = figure(&summary, "io_written_bytes");
    assert_eq!((written.method, written.upper), (Some(Method::Sampled), None));
    assert_eq!(figure(&summary, "cpu_time_seconds").upper, Some(10.05));
}

#[test]
fn spike_after_the_last_tick_is_found_when_the_process_is_reaped() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| memory(tick, MAIN, 2 * MIB, 2 * MIB, Some(MIB)));
    run.reaped(0.5, MAIN, usage(0.1, 700 * MIB));
    let peak = figure(&run.ends(0.5, |_| {}).summary(), "memory_peak_bytes");
    assert_eq!((peak.value, peak.upper), (Some((700 * MIB) as f64), Some((700 * MIB) as f64)));
}

#[test]
fn processes_too_short_to_sample_leave_no_upper_bound() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| memory(tick, MAIN, 2 * MIB, 2 * MIB, Some(MIB)));
    let peak =
        figure(&run.ends(1.0, |end| end.may_miss_processes = true).summary(), "memory_peak_bytes");
    assert_eq!(peak.upper, None);
    assert!(peak.reason.is_some());
}

#[test]
fn auto_reaped_children_are_in_the_task_clock() {
    let mut run = FakeRun::new();
    run.reaped(4.0, MAIN, usage(0.1, MIB));
    let summary = run.ends(4.0, |end| end.task_clock_seconds = Some(4.0)).summary();
    let cpu = figure(&summary, "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.method), (Some(4.0), Some(Method::Exact)));
    let user = figure(&summary, "cpu_user_seconds");
    assert_eq!((user.value, user.lower, user.upper), (None, Some(0.1), Some(4.0)));
    assert!(user.reason.is_some());
    assert!(summary.processes.may_miss_processes);
}

#[test]
fn without_a_task_clock_the_reason_names_what_may_be_missing() {
    let mut run = FakeRun::new();
    let why = "perf_event_open: denied".to_owned();
    run.event(0.0, Event::Fault { source: "task-clock".to_owned(), why });
    run.reaped(2.0, MAIN, usage(1.5, MIB));
    let cpu = figure(&run.ends(2.0, |_| {}).summary(), "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.upper), (Some(1.5), None));
    assert!(cpu.reason.unwrap().contains("denied"));
}

#[test]
fn nothing_is_exact_where_another_process_reaps_orphans_and_no_clock_counts_them() {
    let mut run = FakeRun::new();
    for (source, why) in [("task-clock", "perf: denied"), ("child-subreaper", "prctl: denied")] {
        run.event(0.0, Event::Fault { source: source.to_owned(), why: why.to_owned() });
    }
    run.reaped(2.0, MAIN, usage(1.5, MIB));
    let summary = run
        .ends(2.0, |end| {
            end.io = Some(crate::model::Io::default());
            end.may_miss_processes = true;
        })
        .summary();
    for (id, figure) in summary.figures.iter() {
        assert_ne!(figure.method, Some(Method::Exact), "{id:?}: {figure:?}");
    }
    let cpu = figure(&summary, "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.lower, cpu.upper), (Some(1.5), Some(1.5), None));
    assert!(cpu.reason.unwrap().contains("prctl: denied"));
}

#[test]
fn without_a_task_clock_auto_reaped_children_count_as_sampled() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| {
        cpu_with_children(tick, MAIN, 0.0, 0.0);
        cpu_with_children(tick, CHILD, 0.0, 0.0);
    });
    run.sample(1.0, |tick| cpu_with_children(tick, CHILD, 0.9, 0.0));
    run.exits(1.1, CHILD);
    run.reaped(2.0, MAIN, usage(0.1, MIB));
    let summary = run.ends(2.0, |end| end.io = Some(crate::model::Io::default())).summary();
    let time = figure(&summary, "cpu_time_seconds");
    assert_eq!((time.value, time.method, time.upper), (Some(0.9), Some(Method::Sampled), None));
    assert_eq!(figure(&summary, "io_written_bytes").method, Some(Method::Sampled));
}

#[test]
fn cpu_time_of_a_reaped_child_is_not_counted_twice() {
    let mut run = FakeRun::new();
    run.sample(0.0, |tick| {
        cpu_with_children(tick, MAIN, 0.0, 0.0);
        cpu_with_children(tick, CHILD, 0.0, 0.0);
    });
    run.sample(1.0, |tick| cpu_with_children(tick, CHILD, 1.0, 0.0));
    run.sample(2.0, |tick| cpu_with_children(tick, MAIN, 0.0, 1.5));
    run.event(2.0, Event::ended(CHILD, None, None));
    run.sample(3.0, |tick| cpu_with_children(tick, MAIN, 0.2, 1.5));
    let summary = run.ends(3.0, |_| {}).summary();
    let peak = figure(&summary, "cpu_cores_peak").value.unwrap();
    assert!(peak <= 1.5 + 1e-9, "{peak}");
}

#[test]
fn reused_pid_gives_no_negative_and_no_absurd_rate() {
    let mut run = FakeRun::new();
    let again = ProcessId { pid: CHILD.pid, started: 500 };
    run.sample(0.0, |tick| cpu_with_children(tick, CHILD, 0.0, 0.0));
    run.sample(100.0, |tick| cpu_with_children(tick, CHILD, 90.0, 0.0));
    run.event(100.5, Event::ended(CHILD, None, None));
    run.sample(101.0, |tick| cpu_with_children(tick, again, 0.5, 0.0));
    run.sample(102.0, |tick| cpu_with_children(tick, again, 1.0, 0.0));
    let peak = figure(&run.ends(102.0, |_| {}).summary(), "cpu_cores_peak");
    assert!(peak.value.is_some_and(|cores| (0.5..=1.0).contains(&cores)), "{peak:?}");
}

#[test]
fn io_of_live_processes_is_added_to_that_of_reaped_ones() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| {
        let io = ProcessIo {
            read: Some(100),
            written: Some(1),
            read_calls: Some(1),
            write_calls: Some(1),
            storage_read: Some(0),
            storage_written: Some(0),
            ..ProcessIo::default()
        };
        tick.put(Entity::Process(CHILD), &io);
    });
    let reaped = crate::model::Io { read_bytes: 50, ..Default::default() };
    let summary = run
        .ends(1.0, |end| {
            end.io = Some(reaped);
            end.task_clock_seconds = Some(0.0);
        })
        .summary();
    let read = figure(&summary, "io_read_bytes");
    assert_eq!((read.value, read.method), (Some(150.0), Some(Method::Exact)));
}

#[test]
fn run_without_a_recorded_end_notes_it_and_invents_nothing() {
    let mut run = FakeRun::new();
    run.sample(1.5, |tick| {
        memory(tick, MAIN, MIB, MIB, Some(MIB));
        tick.put(Entity::Single, &RunCpu { time: Some(1.25), ..RunCpu::default() });
    });
    let summary = run.summary();
    assert!(!summary.run.complete);
    assert_eq!((summary.run.exit_code, summary.run.ended), (None, None));
    assert_eq!(summary.run.duration_seconds, 1.5);
    let cpu = figure(&summary, "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.upper), (Some(1.25), None));
    assert_eq!(figure(&summary, "page_faults_major").value, None);
    assert_eq!(summary.findings[0].code, "run.not_complete");
}

#[test]
fn values_never_read_are_null_with_a_reason_and_not_zero() {
    let mut run = FakeRun::new();
    let why = "PSS and USS: /proc/10/smaps_rollup: Permission denied".to_owned();
    run.event(0.0, Event::Fault { source: "process".to_owned(), why });
    let summary = run.ends(1.0, |_| {}).summary();
    for name in ["memory_pss_peak_bytes", "threads_peak", "swap_peak_bytes", "io_read_bytes"] {
        let figure = figure(&summary, name);
        assert_eq!(figure.value, None, "{name}");
        assert!(figure.reason.is_some(), "{name}");
    }
    let pss = figure(&summary, "memory_pss_peak_bytes");
    assert!(pss.reason.unwrap().contains("Permission denied"));
}

#[test]
fn main_and_descendants_add_up() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| {
        cpu_with_children(tick, MAIN, 0.5, 0.0);
        cpu_with_children(tick, CHILD, 1.0, 0.0);
    });
    run.reaped(2.0, MAIN, usage(2.0, MIB));
    let summary = run.ends(2.0, |end| end.task_clock_seconds = Some(2.0)).summary();
    let part = |part: &Part| part.figures["cpu_time_seconds"].value.unwrap();
    let parts = &summary.parts;
    assert_eq!(part(&parts.main) + part(&parts.descendants), part(&parts.combined));
}

#[test]
fn nested_and_concurrent_phases_of_one_name_are_separate() {
    let mut run = FakeRun::new();
    let start = |id: &str, parent: Option<&str>| Event::PhaseStart {
        id: id.to_owned(),
        name: "load".to_owned(),
        parent: parent.map(str::to_owned),
    };
    let end =
        |id: &str| Event::PhaseEnd { id: id.to_owned(), usage: None, end: None, account: None };
    run.event(0.0, start("a", None))
        .event(1.0, start("b", Some("a")))
        .event(2.0, start("c", None))
        .event(3.0, end("a"))
        .event(5.0, end("b"));
    let lengths: Vec<_> =
        run.ends(6.0, |_| {}).summary().phases.iter().map(|phase| phase.duration_seconds).collect();
    assert_eq!(lengths, [Some(3.0), Some(4.0), None]);
}

pub(super) fn found(summary: &Summary, code: &str) -> Option<Finding> {
    summary.findings.iter().find(|finding| finding.code == code).cloned()
}

#[test]
fn ctrl_c_and_a_closed_pipe_are_notes_and_not_problems() {
    let killed =
        |signal: i32| FakeRun::new().ends(1.0, |end| end.end = Some(End::Signal(signal))).summary();
    for (signal, code, words) in [
        (libc::SIGINT, "run.interrupted", "interrupted (SIGINT)"),
        (libc::SIGPIPE, "run.pipe_closed", "pipe closed (SIGPIPE)"),
    ] {
        let summary = killed(signal);
        let finding = found(&summary, code).unwrap();
        assert_eq!((finding.severity, finding.advice.as_str()), (Severity::Note, ""));
        assert!(found(&summary, "run.killed").is_none());
        assert_eq!(summary.run.outcome().words(), words);
    }
    let summary = killed(libc::SIGTERM);
    let finding = found(&summary, "run.killed").unwrap();
    assert_eq!((finding.severity, finding.advice.as_str()), (Severity::Problem, ""));
}

#[test]
fn cores_that_were_not_requested_give_no_advice_to_request_fewer() {
    let idle = |job: Option<Scheduler>, expected: Option<f64>| {
        let mut run = FakeRun::new();
        run.manifest.job = job.map(BatchJob::of);
        run.manifest.expected_cores = expected;
        run.reaped(10.0, MAIN, usage(10.0, MIB));
        found(&run.ends(10.0, |_| {}).summary(), "cpu.idle_cores").unwrap()
    };
    let plain = idle(None, None);
    assert_eq!((plain.severity, plain.advice.as_str()), (Severity::Note, ""));
    assert!(plain.sentence.contains("1.00 at the sampled peak"), "{}", plain.sentence);
    assert_eq!(idle(None, Some(4.0)).severity, Severity::Warning);
    let slurm = idle(Some(Scheduler::Slurm), None);
    assert_eq!(slurm.severity, Severity::Warning);
    assert_eq!(slurm.advice, "Ask for fewer cores: #SBATCH --cpus-per-task=1");
    let pbs = idle(Some(Scheduler::Pbs), None);
    assert_eq!(pbs.advice, "Ask for fewer cores.");
}

#[test]
fn oom_killed_process_is_named_with_the_limit() {
    let killed = |limit: Option<u64>, is_told: bool| {
        let mut run = FakeRun::new();
        run.manifest.host.memory_limit_bytes = limit;
        run.starts(0.0, CHILD, "/usr/bin/solver --big");
        if is_told {
            run.event(1.0, Event::ended(CHILD, Some(End::Signal(libc::SIGKILL)), None));
        }
        run.event(1.0, Event::OutOfMemory { kills: 1, victims: Vec::new() });
        run.ends(1.0, |end| end.end = Some(End::Signal(libc::SIGKILL))).summary()
    };
    let finding = found(&killed(Some(64 * MIB), true), "memory.killed").unwrap();
    let sentence = "The kernel killed solver (11) by the OOM killer: the limit of its cgroup is \
                    64.0 MiB.";
    assert_eq!((finding.sentence.as_str(), finding.severity), (sentence, Severity::Problem));
    // A parent that reaps its child does not report how it exited.
    let unknown = killed(None, false);
    let sentence = found(&unknown, "memory.killed").unwrap().sentence;
    assert_eq!(sentence, "The kernel killed a process in its cgroup by the OOM killer.");
    assert!(found(&unknown, "run.killed").is_none(), "why says more than how");
}

#[test]
fn run_that_nearly_reached_its_memory_limit_gets_a_warning() {
    let near = |limit: u64| {
        let mut run = FakeRun::new();
        run.manifest.host.memory_limit_bytes = Some(limit);
        run.sample(1.0, |tick| memory(tick, MAIN, 98 * MIB, 98 * MIB, Some(98 * MIB)));
        found(&run.ends(2.0, |_| {}).summary(), "memory.near_limit")
    };
    assert!(near(100 * MIB).is_some());
    assert!(near(200 * MIB).is_none());
    assert!(near(1 << 40).is_none(), "the machine has less");
}

/// A tick of a machine with two sockets, a bond and its part.
fn machine(tick: &mut Tick, second: f64) {
    let device = |name: &str| Entity::Named(Name::new(name.as_bytes()));
    let busy = NodeCpu {
        user: Some(100.0 + 4.0 * second),
        nice: Some(0.0),
        system: Some(0.0),
        idle: Some(50.0),
        ..NodeCpu::default()
    };
    tick.put(Entity::Single, &busy);
    for (domain, watts) in
        [("package-0", 100.0), ("package-1", 80.0), ("package-0/dram", 20.0), ("psys", 900.0)]
    {
        let used = Some(1e5 + watts * second);
        tick.put(device(domain), &DomainEnergy { used, ..DomainEnergy::default() });
    }
    for (name, rate, made_of) in [
        ("lo", 5_000, MadeOf::Loopback),
        ("eth0", 1_000, MadeOf::Hardware),
        ("bond0", 1_000, MadeOf::Software),
    ] {
        let bytes = Some(1_000_000 + (second * f64::from(rate)) as u64);
        let row = NetworkTraffic {
            received: bytes,
            sent: Some(7),
            made_of: Some(made_of),
            ..NetworkTraffic::default()
        };
        tick.put(device(name), &row);
    }
    let advanced = |rate: u64| Some(1_000_000 + rate * second as u64);
    for disk in ["sda", "sdb", "dm-0"] {
        let row = DiskIo { read: advanced(100), written: advanced(10), ..DiskIo::default() };
        tick.put(device(disk), &row);
    }
    for port in ["mlx5_0/1", "mlx5_1/1"] {
        let row =
            PortTraffic { received: advanced(30), sent: advanced(3), ..PortTraffic::default() };
        tick.put(device(port), &row);
    }
}

#[test]
fn energy_and_traffic_of_the_machine_are_counted_once_and_the_run_has_its_part() {
    let mut run = FakeRun::new();
    for second in [0.0, 1.0, 2.0] {
        run.sample(second, |tick| machine(tick, second));
    }
    run.reaped(2.0, MAIN, usage(2.0, MIB));
    let summary = run.ends(2.0, |_| {}).summary();
    let figure = |name: &str| summary.parts.system.figures[name].clone();
    let energy = figure("energy_joules");
    assert_eq!((energy.value, energy.method), (Some(400.0), Some(Method::Exact)));
    // 2 of 8 seconds of CPU time.
    let part = figure("energy_run_joules");
    assert_eq!((part.value, part.method), (Some(100.0), Some(Method::Estimated)));
    assert_eq!((part.lower, part.upper), (Some(0.0), Some(400.0)));
    assert_eq!(figure("network_received_bytes").value, Some(2000.0));
    assert_eq!(
        figure("network_sent_bytes").value,
        Some(0.0),
        "nothing was sent, and that is known"
    );
    for (name, bytes) in [
        ("disk_read_bytes", 400.0),
        ("disk_written_bytes", 40.0),
        ("infiniband_received_bytes", 120.0),
        ("infiniband_sent_bytes", 12.0),
    ] {
        let figure = figure(name);
        assert_eq!((figure.value, figure.method), (Some(bytes), Some(Method::Exact)), "{name}");
    }
}

#[test]
fn bytes_without_disks_and_infiniband_are_null_with_the_reason() {
    let mut run = FakeRun::new();
    run.manifest.leave_out("infiniband", &[], "there is no InfiniBand port");
    run.sample(0.0, |_| {}).sample(1.0, |_| {});
    let figures = &run.ends(1.0, |_| {}).summary().parts.system.figures;
    let sent = &figures["infiniband_sent_bytes"];
    assert_eq!((sent.value, sent.reason.as_deref()), (None, Some("there is no InfiniBand port")));
    assert!(
        figures["disk_read_bytes"].value.is_none() && figures["disk_read_bytes"].reason.is_some()
    );
}

#[test]
fn energy_counter_that_does_not_advance_is_null_with_the_reason_and_not_0_joules() {
    let domain = |name: &str| Entity::Named(Name::new(name.as_bytes()));
    for name in ["package-0", "psys"] {
        let mut run = FakeRun::new();
        for second in [0.0, 1.0, 2.0] {
            let energy = DomainEnergy { used: Some(0.0), ..DomainEnergy::default() };
            run.sample(second, |tick| tick.put(domain(name), &energy));
        }
        let summary = run.ends(2.0, |_| {}).summary();
        for figure in ["energy_joules", "energy_run_joules"] {
            let figure = &summary.parts.system.figures[figure];
            assert_eq!(figure.value, None);
            let why = figure.reason.as_deref().unwrap_or_default();
            assert!(why.contains("do not move"), "{why}");
        }
    }
}

#[test]
fn energy_without_permission_is_null_with_the_reason_and_the_command() {
    let mut run = FakeRun::new();
    let why = "energy_uj: Permission denied; sudo chmod a+r /sys/class/powercap/*/energy_uj";
    run.manifest.leave_out("energy", &[], why);
    run.sample(0.0, |_| {}).sample(1.0, |_| {});
    let summary = run.ends(1.0, |_| {}).summary();
    for name in ["energy_joules", "energy_run_joules"] {
        let figure = &summary.parts.system.figures[name];
        assert_eq!((figure.value, figure.reason.as_deref()), (None, Some(why)), "{name}");
    }
    assert!(summary.monitor.faults.is_empty(), "it is a fact and no fault");
}

#[test]
fn every_figure_is_where_its_declaration_says() {
    let mut run = FakeRun::new();
    let summary = run.phase_starts(0.1, "a", "a").ends(3.0, |_| {}).summary();
    let parts = &summary.parts;
    let places = [
        (FigureScope::Run, &summary.figures),
        (FigureScope::Phase, &summary.phases[0].figures),
        (FigureScope::Main, &parts.main.figures),
        (FigureScope::Descendants, &parts.descendants.figures),
        (FigureScope::Combined, &parts.combined.figures),
        (FigureScope::System, &parts.system.figures),
    ];
    for (scope, figures) in places {
        for (id, _) in figures.iter() {
            assert!(id.is_in(scope), "{} is in {scope:?}", id.name());
        }
        // Those of cgroups and packets are only there where there is one.
        let always = [FigureId::CpuTime, FigureId::ThreadsPeak].into_iter();
        for id in always.filter(|id| id.is_in(scope)) {
            assert!(figures.get(id).is_some(), "{} is not in {scope:?}", id.name());
        }
    }
}

#[test]
fn peak_of_cores_from_clock_ticks_is_only_at_least_the_mean() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "work");
    for (at, user) in [(0.0, 0.0), (1.0, 0.0), (1.1, 0.01)] {
        run.sample(at, |tick| cpu(tick, MAIN, user, 0.0));
    }
    run.reaped(2.0, MAIN, usage(0.01, 0)).ends(2.0, |_| {});
    let peak = &run.summary().figures["cpu_cores_peak"];
    // One clock tick of 10 ms in a window of 0.1 s: it may have been 1 ms.
    assert!(peak.value.unwrap() > 0.09, "{peak:?}");
    assert_eq!((peak.lower, peak.upper), (Some(0.005), None), "{peak:?}");
}
