//! What each tool used, against runs whose truth is written down beside them.

use super::list::MOST_TOOLS;
use super::*;
use crate::sample::Tick;
use crate::summary::Summary;
use crate::summary::tests::{CHILD, MIB, ROOT, Story, memory, usage};

fn nth(number: u32) -> ProcessId {
    ProcessId { pid: 1000 + number, started: ROOT.started + u64::from(number) }
}

/// CPU time of a process: in user mode and in the kernel.
fn cpu(tick: &mut Tick, id: ProcessId, user: f64, system: f64) {
    let row = ProcessCpu { user: Some(user), system: Some(system), ..ProcessCpu::default() };
    tick.put(Entity::Process(id), &row);
}

/// Resident, proportional and private memory of a process.
fn sizes(tick: &mut Tick, id: ProcessId, rss: u64, pss: u64, uss: u64) {
    let (rss, pss, uss) = (Some(rss * MIB), Some(pss * MIB), Some(uss * MIB));
    let row = ProcessMemory { rss, peak: rss, pss, uss, swap: None };
    tick.put(Entity::Process(id), &row);
}

fn tool<'a>(summary: &'a Summary, name: &str) -> &'a Tool {
    let found = summary.tools.iter().find(|tool| tool.name == name);
    found.unwrap_or_else(|| panic!("no {name} in {:?}", summary.tools))
}

fn is_about(value: Option<f64>, truth: f64) {
    assert!(value.is_some_and(|value| (value - truth).abs() < 1e-9), "{value:?} is not {truth}");
}

#[test]
fn a_tool_has_what_its_instances_have_together() {
    let mut story = Story::new();
    story.came(0.0, ROOT, "sh /opt/ktools/run.sh");
    story.at(0.0, |tick| sizes(tick, ROOT, 2, 1, 1));
    story.came(1.0, nth(100), "gulmc -a1").came(1.0, nth(101), "gulmc -a1");
    story.at(1.0, |tick| {
        sizes(tick, nth(100), 100, 60, 40);
        sizes(tick, nth(101), 90, 70, 50);
    });
    story.at(2.0, |tick| {
        cpu(tick, nth(100), 0.75, 0.25);
        cpu(tick, nth(101), 0.5, 0.5);
    });
    // Nobody runs: no rows, and everybody is there all the same.
    story.at(3.0, |_| {});
    story.went(4.0, nth(100)).at(4.0, |tick| sizes(tick, nth(101), 95, 95, 95));
    story.went(5.0, nth(101)).at(5.0, |_| {});
    let summary = story.end(6.0, |_| {});
    let gulmc = tool(&summary, "gulmc");
    assert_eq!((gulmc.instances, gulmc.instances_peak, gulmc.samples), (2, Some(2), 3 + 4));
    assert_eq!(gulmc.instance_uss_peak_bytes, Some(95 * MIB));
    assert_eq!(gulmc.memory_uss_peak_bytes, Some(95 * MIB), "more than 40 and 50");
    assert_eq!(gulmc.memory_pss_peak_bytes, Some(130 * MIB));
    assert_eq!(gulmc.memory_rss_peak_bytes, Some(190 * MIB));
    is_about(gulmc.cpu_user_seconds, 1.25);
    is_about(gulmc.cpu_system_seconds, 0.75);
    is_about(gulmc.cpu_time_seconds, 2.0);
    // Started one second after the command, gone at five.
    is_about(gulmc.duration_seconds, 4.0);
    is_about(gulmc.cpu_cores_mean, 0.5);
    is_about(gulmc.cpu_cores_peak, 2.0);
    let script = tool(&summary, "run.sh");
    assert_eq!((script.instances, script.samples, script.cpu_time_seconds), (1, 6, None));
    is_about(script.duration_seconds, 6.0);
}

#[test]
fn a_process_that_did_not_run_keeps_what_it_had() {
    let mut story = Story::new();
    story.came(0.0, ROOT, "./work hard").came(1.0, CHILD, "./work more");
    story.at(1.0, |tick| {
        memory(tick, ROOT, 100 * MIB, 100 * MIB, None);
        memory(tick, CHILD, 50 * MIB, 50 * MIB, Some(30 * MIB));
    });
    // Only one of them ran, and a look at shares is not part of every row.
    story.at(2.0, |tick| memory(tick, ROOT, 120 * MIB, 120 * MIB, None));
    story.went(3.0, CHILD).at(3.0, |tick| memory(tick, ROOT, 130 * MIB, 130 * MIB, None));
    let summary = story.end(3.0, |_| {});
    let [work] = &summary.tools[..] else { panic!("{:?}", summary.tools) };
    assert_eq!(work.memory_peak_bytes, Some(150 * MIB), "120 and the share of 30");
    assert_eq!(work.instance_memory_peak_bytes, Some(130 * MIB));
    assert_eq!(work.memory_pss_peak_bytes, Some(30 * MIB), "of those it is known of");
    assert_eq!(work.memory_rss_peak_bytes, Some(170 * MIB));
}

#[test]
fn sizes_of_different_moments_are_not_added_up() {
    let mut story = Story::new();
    story.came(0.0, ROOT, "work").came(0.0, CHILD, "work");
    story.at(1.0, |tick| {
        sizes(tick, ROOT, 10, 10, 10);
        sizes(tick, CHILD, 100, 100, 100);
    });
    // The first grows where the second shrinks.
    story.at(2.0, |tick| {
        sizes(tick, ROOT, 100, 100, 100);
        sizes(tick, CHILD, 10, 10, 10);
    });
    // One goes and another comes at the same moment.
    story.came(3.0, nth(1), "work").went(3.0, CHILD);
    story.at(3.0, |tick| sizes(tick, nth(1), 9, 9, 9));
    let summary = story.end(3.0, |_| {});
    let work = tool(&summary, "work");
    assert_eq!((work.memory_uss_peak_bytes, work.instances), (Some(110 * MIB), 3));
    assert_eq!(work.instances_peak, Some(2));
}

#[test]
fn a_process_counts_for_the_program_it_is_at_the_moment() {
    let mut story = Story::new();
    story.came(0.0, ROOT, "bash ./build.sh");
    story.at(1.0, |tick| {
        cpu(tick, ROOT, 0.25, 0.0);
        sizes(tick, ROOT, 200, 200, 200);
    });
    story.became(2.0, ROOT, "/usr/bin/python3 -u train.py");
    story.at(2.0, |tick| {
        cpu(tick, ROOT, 1.0, 0.25);
        memory(tick, ROOT, 10 * MIB, 10 * MIB, None);
    });
    story.at(3.0, |_| {});
    let summary = story.end(4.0, |_| {});
    let (build, train) = (tool(&summary, "build.sh"), tool(&summary, "train.py"));
    is_about(build.cpu_time_seconds, 0.25);
    is_about(train.cpu_time_seconds, 1.0);
    assert_eq!(train.memory_rss_peak_bytes, Some(10 * MIB));
    assert_eq!(train.memory_uss_peak_bytes, None, "that was the shell's");
    assert_eq!((build.samples, train.samples), (1, 2));
    assert_eq!((build.duration_seconds, train.duration_seconds), (Some(2.0), Some(2.0)));
}

#[test]
fn a_pid_used_again_is_another_instance() {
    let again = ProcessId { pid: CHILD.pid, started: 400 };
    let mut story = Story::new();
    story.came(1.0, CHILD, "fmpy").at(1.0, |tick| cpu(tick, CHILD, 5.0, 0.0));
    story.went(3.0, CHILD).came(3.0, again, "fmpy").at(3.0, |tick| cpu(tick, again, 1.0, 0.0));
    let summary = story.end(4.0, |_| {});
    let fmpy = tool(&summary, "fmpy");
    assert_eq!((fmpy.instances, fmpy.instances_peak, fmpy.samples), (2, Some(1), 2));
    is_about(fmpy.cpu_time_seconds, 6.0);
}

#[test]
fn who_is_busy_from_the_start_is_busy_at_the_first_look() {
    // Started half a second before the look that found it.
    let busy = nth(150);
    let mut story = Story::new();
    story.at(1.0, |_| {}).came(2.0, busy, "gulmc").at(2.0, |tick| cpu(tick, busy, 0.5, 0.0));
    story.went(3.0, busy).at(3.0, |_| {});
    let summary = story.end(3.0, |_| {});
    let gulmc = tool(&summary, "gulmc");
    is_about(gulmc.cpu_cores_peak, 1.0);
    is_about(gulmc.duration_seconds, 1.5);
}

#[test]
fn a_burst_after_a_rest_is_not_spread_over_the_rest() {
    let mut story = Story::new();
    story.came(0.0, ROOT, "work").at(0.0, |tick| cpu(tick, ROOT, 0.0, 0.0));
    (1..60).for_each(|second| {
        story.at(f64::from(second), |_| {});
    });
    story.at(60.0, |tick| cpu(tick, ROOT, 3.0, 0.0));
    let summary = story.end(60.0, |_| {});
    is_about(tool(&summary, "work").cpu_cores_peak, 3.0);
}

#[test]
fn one_that_was_never_looked_at_is_counted_and_its_account_taken() {
    let mut story = Story::new();
    story.came(1.0, CHILD, "daemon").reaped(1.5, CHILD, usage(2.0, 7 * MIB));
    story.at(2.0, |_| {});
    let summary = story.end(2.0, |_| {});
    let daemon = tool(&summary, "daemon");
    assert_eq!((daemon.instances, daemon.instances_peak, daemon.samples), (1, Some(1), 0));
    assert_eq!(daemon.instance_memory_peak_bytes, Some(7 * MIB));
    assert_eq!((daemon.memory_rss_peak_bytes, daemon.memory_uss_peak_bytes), (None, None));
    is_about(daemon.cpu_time_seconds, 2.0);
}

#[test]
fn the_size_of_the_command_s_own_process_is_that_of_its_account() {
    let mut story = Story::new();
    story.came(0.0, ROOT, "work").at(1.0, |tick| sizes(tick, ROOT, 10, 10, 10));
    story.reaped(2.0, ROOT, usage(1.0, 30 * MIB));
    let summary = story.end(2.0, |_| {});
    assert_eq!(tool(&summary, "work").instance_memory_peak_bytes, Some(30 * MIB));
}

#[test]
fn of_very_many_tools_the_small_ones_are_counted_together() {
    const ALL: u32 = 3000;
    let mut story = Story::new();
    story.came(0.0, ROOT, "main").at(0.0, |tick| cpu(tick, ROOT, 1.0, 0.0));
    for number in 0..ALL {
        let (id, at) = (nth(100 * number), f64::from(number));
        story.came(at, id, &format!("tool-{number}"));
        let seconds = if number % 1000 == 7 { 9.0 } else { 0.5 };
        story.at(at, |tick| cpu(tick, id, seconds, 0.0)).went(at, id);
    }
    story.at(f64::from(ALL), |tick| cpu(tick, ROOT, 100.0, 0.0));
    let summary = story.end(f64::from(ALL), |_| {});
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
fn a_process_whose_introduction_is_lost_has_a_tool_without_a_name() {
    let mut story = Story::new();
    story.at(1.0, |tick| cpu(tick, CHILD, 2.0, 0.0));
    let summary = story.end(1.0, |_| {});
    assert_eq!(tool(&summary, "?").instances, 1);
}

#[test]
fn a_tool_of_an_older_or_newer_summary_is_read() {
    let tool: Tool = serde_json::from_str(r#"{"name": "x", "later": [1]}"#).unwrap();
    assert_eq!(tool, Tool { name: "x".to_owned(), ..Tool::default() });
    assert_eq!(serde_json::from_str::<Vec<Tool>>("[]").unwrap(), []);
}
