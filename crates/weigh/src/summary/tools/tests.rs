//! What each tool used, in runs with known values.

use super::list::MOST_TOOLS;
use super::*;
use crate::catalog::metrics::ProcessCpu;
use crate::model::{Entity, Tick};
use crate::summary::Summary;
use crate::testing::{self, CHILD, FakeRun, MAIN, MIB, cpu, memory, threads, usage};

fn nth(number: u32) -> ProcessId {
    ProcessId { pid: 1000 + number, started: MAIN.started + u64::from(number) }
}

/// Resident, proportional and private memory of a process, in MiB.
fn sizes(tick: &mut Tick, id: ProcessId, rss: u64, pss: u64, uss: u64) {
    testing::sizes(tick, id, rss * MIB, Some((pss * MIB, uss * MIB)));
}

fn tool<'a>(summary: &'a Summary, name: &str) -> &'a Tool {
    let found = summary.tools.iter().find(|tool| tool.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", summary.tools))
}

fn is_about(value: Option<f64>, truth: f64) {
    assert!(value.is_some_and(|value| (value - truth).abs() < 1e-9), "{value:?} is not {truth}");
}

#[test]
fn tool_has_the_sum_of_its_instances() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "sh /opt/ktools/run.sh");
    run.sample(0.0, |tick| sizes(tick, MAIN, 2, 1, 1));
    run.starts(1.0, nth(100), "gulmc -a1").starts(1.0, nth(101), "gulmc -a1");
    run.sample(1.0, |tick| {
        sizes(tick, nth(100), 100, 60, 40);
        sizes(tick, nth(101), 90, 70, 50);
    });
    run.sample(2.0, |tick| {
        cpu(tick, nth(100), 0.75, 0.25);
        cpu(tick, nth(101), 0.5, 0.5);
    });
    // No process runs: there are no rows, and all processes are alive all the same.
    run.sample(3.0, |_| {});
    run.exits(4.0, nth(100)).sample(4.0, |tick| sizes(tick, nth(101), 95, 95, 95));
    run.exits(5.0, nth(101)).sample(5.0, |_| {});
    let summary = run.ends(6.0, |_| {}).summary();
    let gulmc = tool(&summary, "gulmc");
    assert_eq!((gulmc.instances, gulmc.instances_peak, gulmc.samples), (2, Some(2), 3 + 4));
    assert_eq!(gulmc.instance_uss_peak_bytes, Some(95 * MIB));
    assert_eq!(gulmc.memory_uss_peak_bytes, Some(95 * MIB), "more than 40 and 50");
    assert_eq!(gulmc.memory_pss_peak_bytes, Some(130 * MIB));
    assert_eq!(gulmc.memory_rss_peak_bytes, Some(190 * MIB));
    is_about(gulmc.cpu_user_seconds, 1.25);
    is_about(gulmc.cpu_system_seconds, 0.75);
    is_about(gulmc.cpu_time_seconds, 2.0);
    // Started one second after the command, exited at five.
    is_about(gulmc.duration_seconds, 4.0);
    is_about(gulmc.cpu_cores_mean, 0.5);
    is_about(gulmc.cpu_cores_peak, 2.0);
    let script = tool(&summary, "run.sh");
    assert_eq!((script.instances, script.samples, script.cpu_time_seconds), (1, 6, None));
    is_about(script.duration_seconds, 6.0);
}

#[test]
fn values_of_a_process_that_did_not_run_are_carried_forward() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "./work hard").starts(1.0, CHILD, "./work more");
    run.sample(1.0, |tick| {
        memory(tick, MAIN, 100 * MIB, 100 * MIB, None);
        memory(tick, CHILD, 50 * MIB, 50 * MIB, Some(30 * MIB));
    });
    // Only one of them ran, and not every row has a sample of shares.
    run.sample(2.0, |tick| memory(tick, MAIN, 120 * MIB, 120 * MIB, None));
    run.exits(3.0, CHILD).sample(3.0, |tick| memory(tick, MAIN, 130 * MIB, 130 * MIB, None));
    let summary = run.ends(3.0, |_| {}).summary();
    let [work] = &summary.tools[..] else { panic!("{:?}", summary.tools) };
    assert_eq!(work.memory_peak_bytes, Some(150 * MIB), "120 and the share of 30");
    assert_eq!(work.instance_memory_peak_bytes, Some(130 * MIB));
    assert_eq!(work.memory_pss_peak_bytes, Some(30 * MIB), "of those it is known of");
    assert_eq!(work.memory_rss_peak_bytes, Some(170 * MIB));
}

#[test]
fn sizes_of_different_ticks_are_not_summed() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "work").starts(0.0, CHILD, "work");
    run.sample(1.0, |tick| {
        sizes(tick, MAIN, 10, 10, 10);
        sizes(tick, CHILD, 100, 100, 100);
    });
    // The first grows while the second shrinks.
    run.sample(2.0, |tick| {
        sizes(tick, MAIN, 100, 100, 100);
        sizes(tick, CHILD, 10, 10, 10);
    });
    // One exits and another starts at the same time.
    run.starts(3.0, nth(1), "work").exits(3.0, CHILD);
    run.sample(3.0, |tick| sizes(tick, nth(1), 9, 9, 9));
    let summary = run.ends(3.0, |_| {}).summary();
    let work = tool(&summary, "work");
    assert_eq!((work.memory_uss_peak_bytes, work.instances), (Some(110 * MIB), 3));
    assert_eq!(work.instances_peak, Some(2));
}

#[test]
fn process_counts_for_the_program_it_runs_at_the_time() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "bash ./build.sh");
    run.sample(1.0, |tick| {
        cpu(tick, MAIN, 0.25, 0.0);
        sizes(tick, MAIN, 200, 200, 200);
    });
    run.exec(2.0, MAIN, "/usr/bin/python3 -u train.py");
    run.sample(2.0, |tick| {
        cpu(tick, MAIN, 1.0, 0.25);
        memory(tick, MAIN, 10 * MIB, 10 * MIB, None);
    });
    run.sample(3.0, |_| {});
    let summary = run.ends(4.0, |_| {}).summary();
    let (build, train) = (tool(&summary, "build.sh"), tool(&summary, "train.py"));
    is_about(build.cpu_time_seconds, 0.25);
    is_about(train.cpu_time_seconds, 1.0);
    assert_eq!(train.memory_rss_peak_bytes, Some(10 * MIB));
    assert_eq!(train.memory_uss_peak_bytes, None, "that was the shell's");
    assert_eq!((build.samples, train.samples), (1, 2));
    assert_eq!((build.duration_seconds, train.duration_seconds), (Some(2.0), Some(2.0)));
}

#[test]
fn reused_pid_is_another_instance() {
    let again = ProcessId { pid: CHILD.pid, started: 400 };
    let mut run = FakeRun::new();
    run.starts(1.0, CHILD, "fmpy").sample(1.0, |tick| cpu(tick, CHILD, 5.0, 0.0));
    run.exits(3.0, CHILD).starts(3.0, again, "fmpy").sample(3.0, |tick| cpu(tick, again, 1.0, 0.0));
    let summary = run.ends(4.0, |_| {}).summary();
    let fmpy = tool(&summary, "fmpy");
    assert_eq!((fmpy.instances, fmpy.instances_peak, fmpy.samples), (2, Some(1), 2));
    is_about(fmpy.cpu_time_seconds, 6.0);
}

#[test]
fn process_busy_from_its_start_is_busy_at_its_first_sample() {
    // Started half a second before its first sample.
    let busy = nth(150);
    let mut run = FakeRun::new();
    run.sample(1.0, |_| {})
        .starts(2.0, busy, "gulmc")
        .sample(2.0, |tick| cpu(tick, busy, 0.5, 0.0));
    run.exits(3.0, busy).sample(3.0, |_| {});
    let summary = run.ends(3.0, |_| {}).summary();
    let gulmc = tool(&summary, "gulmc");
    is_about(gulmc.cpu_cores_peak, 1.0);
    is_about(gulmc.duration_seconds, 1.5);
}

#[test]
fn burst_after_sleep_is_not_spread_over_the_sleep() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "work").sample(0.0, |tick| cpu(tick, MAIN, 0.0, 0.0));
    (1..60).for_each(|second| {
        run.sample(f64::from(second), |_| {});
    });
    run.sample(60.0, |tick| cpu(tick, MAIN, 3.0, 0.0));
    let summary = run.ends(60.0, |_| {}).summary();
    is_about(tool(&summary, "work").cpu_cores_peak, 3.0);
}

#[test]
fn process_that_was_never_sampled_counts_with_its_wait4_usage() {
    let mut run = FakeRun::new();
    run.starts(1.0, CHILD, "daemon").reaped(1.5, CHILD, usage(2.0, 7 * MIB));
    run.sample(2.0, |_| {});
    let summary = run.ends(2.0, |_| {}).summary();
    let daemon = tool(&summary, "daemon");
    assert_eq!((daemon.instances, daemon.instances_peak, daemon.samples), (1, Some(1), 0));
    assert_eq!(daemon.instance_memory_peak_bytes, Some(7 * MIB));
    assert_eq!(daemon.memory_peak_bytes, Some(7 * MIB), "all of them had no less");
    assert_eq!(daemon.memory_rss_peak_bytes, Some(7 * MIB));
    assert_eq!((daemon.memory_pss_peak_bytes, daemon.memory_uss_peak_bytes), (None, None));
    is_about(daemon.cpu_time_seconds, 2.0);
}

#[test]
fn tool_between_two_samples_has_the_memory_that_wait4_reports() {
    let mut run = FakeRun::new();
    run.starts(1.1, CHILD, "fmpy");
    // It has exited by its first sample: its memory is zero.
    run.sample(1.5, |tick| {
        cpu(tick, CHILD, 0.25, 0.0);
        sizes(tick, CHILD, 0, 0, 0);
    });
    let ProcessId { pid, started } = CHILD;
    let memory_peak_bytes = Some(50 * MIB);
    let (end, usage, cpu_seconds) = (None, None, Some(0.3));
    run.event(1.5, Event::ProcessExit { pid, started, end, usage, cpu_seconds, memory_peak_bytes });
    let summary = run.ends(2.0, |_| {}).summary();
    let fmpy = tool(&summary, "fmpy");
    let peaks = [
        fmpy.instance_memory_peak_bytes,
        fmpy.memory_peak_bytes,
        fmpy.memory_rss_peak_bytes,
        fmpy.memory_pss_peak_bytes,
        fmpy.memory_uss_peak_bytes,
        fmpy.instance_uss_peak_bytes,
    ];
    let fifty = Some(50 * MIB);
    assert_eq!(peaks, [fifty, fifty, fifty, None, None, None]);
}

#[test]
fn tool_uses_at_most_as_many_cores_as_threads_in_a_short_last_window() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "work");
    // The kernel's clock has counted one step more than there was time.
    for (seconds, used) in [(1.0, 1.0), (1.25, 1.26)] {
        run.sample(seconds, |tick| {
            cpu(tick, MAIN, used, 0.0);
            threads(tick, MAIN, 1);
        });
    }
    run.exits(1.25, MAIN);
    let summary = run.ends(1.25, |_| {}).summary();
    let work = tool(&summary, "work");
    assert_eq!((work.cpu_cores_peak, work.cpu_cores_mean), (Some(1.0), Some(1.0)));
}

#[test]
fn workers_sampled_at_different_times_do_not_exceed_their_cores() {
    let mut run = FakeRun::merged();
    run.starts(0.0, MAIN, "gulmc").starts(0.0, CHILD, "gulmc");
    // Both use one core all the time. The first is sampled early in one round and late in the next:
    // what it used in between is that of nearly two rounds.
    for (first, round) in [(0.1, 0.5), (0.95, 1.0), (1.05, 1.5), (1.95, 2.0), (2.1, 2.5)] {
        run.sample_some(first, |tick| cpu(tick, MAIN, first, 0.0));
        run.sample(round, |tick| cpu(tick, CHILD, round - 0.01, 0.0));
    }
    run.exits(2.1, MAIN).exits(2.5, CHILD);
    let summary = run.ends(2.5, |_| {}).summary();
    is_about(tool(&summary, "gulmc").cpu_cores_peak, 2.0);
}

#[test]
fn no_tool_uses_more_cores_than_there_are() {
    let mut run = FakeRun::merged();
    run.starts(0.0, MAIN, "gulmc").starts(0.0, CHILD, "gulmc");
    run.sample_some(0.9, |tick| cpu(tick, MAIN, 3.6, 0.0));
    run.sample(1.0, |tick| cpu(tick, CHILD, 3.6, 0.0));
    run.exits(1.0, MAIN).exits(1.0, CHILD);
    let summary = run.ends(1.0, |_| {}).summary();
    let gulmc = tool(&summary, "gulmc");
    assert_eq!((gulmc.cpu_cores_peak, gulmc.cpu_cores_mean), (Some(4.0), Some(4.0)));
}

#[test]
fn cpu_time_is_exact_of_reaped_processes_and_the_rest_is_unattributed() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "main").starts(0.0, CHILD, "worker");
    run.sample(1.0, |tick| {
        cpu(tick, MAIN, 0.5, 0.0);
        cpu(tick, CHILD, 0.5, 0.0);
    });
    // The worker goes on after its last sample; its parent reaps it.
    run.exits(1.9, CHILD).sample(2.0, |tick| {
        let row = ProcessCpu {
            user: Some(1.0),
            system: Some(0.0),
            children_user: Some(1.4),
            children_system: Some(0.0),
            run_time: Some(1.007),
            ..ProcessCpu::default()
        };
        tick.put(Entity::Process(MAIN), &row);
    });
    run.reaped(2.000_001, MAIN, usage(2.417, MIB));
    let summary = run.ends(2.0, |end| end.task_clock_seconds = Some(2.418)).summary();
    let (main, worker) = (tool(&summary, "main"), tool(&summary, "worker"));
    assert_eq!(main.cpu_time_method, Some(Method::Exact));
    is_about(main.cpu_time_seconds, 1.007);
    assert_eq!(worker.cpu_time_method, Some(Method::Sampled));
    is_about(worker.cpu_time_seconds, 0.5);
    let unattributed = &summary.figures["cpu_unattributed_seconds"];
    is_about(unattributed.value, 0.91);
    // What bounds the whole bounds the rest.
    is_about(unattributed.upper, 0.911);
}

#[test]
fn unattributed_cpu_time_has_no_upper_bound_where_processes_exceed_the_total() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "main").starts(0.0, CHILD, "worker");
    run.sample(1.0, |tick| {
        cpu(tick, MAIN, 0.5, 0.0);
        cpu(tick, CHILD, 0.5, 0.0);
    });
    run.exits(1.0, CHILD).reaped(2.0, MAIN, usage(0.9, MIB));
    let summary = run.ends(2.0, |end| end.task_clock_seconds = Some(0.9)).summary();
    let rest = &summary.figures["cpu_unattributed_seconds"];
    assert_eq!((rest.value, rest.lower, rest.upper), (Some(0.0), Some(0.0), None), "{rest:?}");
    assert!(rest.reason.is_some(), "{rest:?}");
}

#[test]
fn size_of_the_main_process_is_that_of_wait4() {
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "work").sample(1.0, |tick| sizes(tick, MAIN, 10, 10, 10));
    run.reaped(2.0, MAIN, usage(1.0, 30 * MIB));
    let summary = run.ends(2.0, |_| {}).summary();
    assert_eq!(tool(&summary, "work").instance_memory_peak_bytes, Some(30 * MIB));
}

#[test]
fn lightest_of_very_many_tools_are_counted_together() {
    const ALL: u32 = 3000;
    let mut run = FakeRun::new();
    run.starts(0.0, MAIN, "main").sample(0.0, |tick| cpu(tick, MAIN, 1.0, 0.0));
    for number in 0..ALL {
        let (id, at) = (nth(100 * number), f64::from(number));
        run.starts(at, id, &format!("tool-{number}"));
        let seconds = if number % 1000 == 7 { 9.0 } else { 0.5 };
        run.sample(at, |tick| cpu(tick, id, seconds, 0.0)).exits(at, id);
    }
    run.sample(f64::from(ALL), |tick| cpu(tick, MAIN, 100.0, 0.0));
    let summary = run.ends(f64::from(ALL), |_| {}).summary();
    assert_eq!(summary.tools.len(), MOST_TOOLS + 1);
    let others = summary.tools.last().unwrap();
    assert!(others.is_others() && others.name == OTHERS, "{others:?}");
    assert_eq!((others.programs, others.instances, others.samples), (2801, 2801, 2801));
    is_about(others.cpu_time_seconds, 2801.0 * 0.5);
    is_about(tool(&summary, "main").cpu_time_seconds, 100.0);
    for heavy in ["tool-7", "tool-1007", "tool-2007"] {
        is_about(tool(&summary, heavy).cpu_time_seconds, 9.0);
    }
    assert!(summary.tools.iter().filter(|tool| tool.is_others()).count() == 1);
}

#[test]
fn process_with_a_lost_start_event_has_a_tool_without_a_name() {
    let mut run = FakeRun::new();
    run.sample(1.0, |tick| cpu(tick, CHILD, 2.0, 0.0));
    let summary = run.ends(1.0, |_| {}).summary();
    assert_eq!(tool(&summary, "?").instances, 1);
}

#[test]
fn tool_of_an_older_or_newer_summary_is_read() {
    let tool: Tool = serde_json::from_str(r#"{"name": "x", "later": [1]}"#).unwrap();
    assert_eq!(tool, Tool { name: "x".to_owned(), ..Tool::default() });
    assert_eq!(serde_json::from_str::<Vec<Tool>>("[]").unwrap(), []);
}
