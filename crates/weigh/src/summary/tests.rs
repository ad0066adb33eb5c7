//! Figures against runs whose truth is written down beside them.

use std::time::Duration;

use super::*;
use crate::collect::cpu::NodeCpu;
use crate::collect::energy::DomainEnergy;
use crate::collect::network::{MadeOf, Traffic};
use crate::collect::own::OwnTicks;
use crate::collect::process::{ProcessCpu, ProcessIo, ProcessMemory};
use crate::collect::task_clock::RunCpu;
use crate::host::wait::{End, Usage};
use crate::record::events::RunEnd;
use crate::record::{Entry, Event, Manifest};
use crate::sample::{Entity, Name, ProcessId, Tick};
use crate::settings::Settings;

pub(super) const MIB: u64 = 1 << 20;
pub(super) const ROOT: ProcessId = ProcessId { pid: 10, started: 100 };
pub(super) const CHILD: ProcessId = ProcessId { pid: 11, started: 101 };

/// A run that is told moment by moment.
pub(super) struct Story {
    pub(super) accumulator: Accumulator,
    tick: Tick,
}

impl Story {
    pub(super) fn new() -> Story {
        Story::with(Settings::default())
    }

    pub(super) fn with(settings: Settings) -> Story {
        let facts = Facts::example();
        let command = ["work".to_owned()];
        let mut manifest = Manifest::new(&settings, &command, facts, Duration::from_secs(1));
        manifest.pid = ROOT.pid;
        manifest.process_started = ROOT.started;
        let tick = Tick::new(&collect::groups(&settings.sources()));
        Story { accumulator: Accumulator::new(&manifest), tick }
    }

    /// A whole tick.
    pub(super) fn at(&mut self, seconds: f64, fill: impl FnOnce(&mut Tick)) -> &mut Story {
        self.tick.begin(Duration::from_secs_f64(seconds));
        fill(&mut self.tick);
        self.tick.put(Entity::Single, &OwnTicks { taken: Some(1), missed: Some(0) });
        self.accumulator.tick(&self.tick);
        self
    }

    pub(super) fn event(&mut self, seconds: f64, event: Event) -> &mut Story {
        self.accumulator.event(&Entry::new(Duration::from_secs_f64(seconds), event));
        self
    }

    /// A process of this command line was seen for the first time.
    pub(super) fn came(&mut self, seconds: f64, id: ProcessId, line: &str) -> &mut Story {
        let (name, command) = named(line);
        let (pid, started) = (id.pid, id.started);
        self.event(
            seconds,
            Event::ProcessStart { pid, started, parent: 1, name, command, tool: None },
        )
    }

    /// A process became another program.
    pub(super) fn became(&mut self, seconds: f64, id: ProcessId, line: &str) -> &mut Story {
        let (name, command) = named(line);
        self.event(
            seconds,
            Event::ProcessExec { pid: id.pid, started: id.started, name, command, tool: None },
        )
    }

    /// Its parent waited for it.
    pub(super) fn went(&mut self, seconds: f64, id: ProcessId) -> &mut Story {
        self.event(seconds, Event::ended(id, None, None))
    }

    pub(super) fn reaped(&mut self, seconds: f64, id: ProcessId, usage: Usage) -> &mut Story {
        let exit = Event::ended(id, Some(End::Code(0)), Some(usage));
        self.event(seconds, exit)
    }

    pub(super) fn end(mut self, seconds: f64, end: impl FnOnce(&mut RunEnd)) -> Summary {
        let mut run_end = RunEnd {
            end: End::Code(0),
            duration_seconds: seconds,
            reaped: self.accumulator.reaped,
            task_clock_seconds: None,
            io: None,
            left: Vec::new(),
            some_unseen: false,
            rss_before_exec_bytes: 0,
            cpu_before_exec_seconds: 0.0,
            monitor_cpu_seconds: 0.01,
        };
        end(&mut run_end);
        self.event(seconds, Event::RunEnd(run_end));
        self.accumulator.finish()
    }
}

/// The kernel's name and the arguments of a command line.
fn named(line: &str) -> (String, Option<Vec<String>>) {
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    (words[0].rsplit('/').next().unwrap_or_default().to_owned(), Some(words))
}

pub(super) fn memory(tick: &mut Tick, id: ProcessId, rss: u64, peak: u64, pss: Option<u64>) {
    let row = ProcessMemory { rss: Some(rss), peak: Some(peak), pss, uss: pss, swap: Some(0) };
    tick.put(Entity::Process(id), &row);
}

fn cpu(tick: &mut Tick, id: ProcessId, own: f64, children: f64) {
    let row = ProcessCpu {
        user: Some(own),
        system: Some(0.0),
        children_user: Some(children),
        children_system: Some(0.0),
    };
    tick.put(Entity::Process(id), &row);
}

pub(super) fn usage(cpu: f64, largest: u64) -> Usage {
    Usage { user_seconds: cpu, largest_rss_bytes: largest, ..Usage::default() }
}

fn figure(summary: &Summary, name: &str) -> Figure {
    summary.figures[name].clone()
}

#[test]
fn shared_memory_is_counted_once_and_the_truth_is_inside_the_bounds() {
    let mut story = Story::new();
    story.at(1.0, |tick| {
        memory(tick, ROOT, 400 * MIB, 400 * MIB, Some(200 * MIB));
        memory(tick, CHILD, 400 * MIB, 400 * MIB, Some(200 * MIB));
    });
    let peak = figure(&story.end(2.0, |_| {}), "memory_peak_bytes");
    assert_eq!(peak.value, Some((400 * MIB) as f64));
    assert_eq!(peak.upper, Some((800 * MIB) as f64));
    assert_eq!(peak.method, Some(Method::Sampled));
}

#[test]
fn a_spike_between_two_ticks_is_found_by_the_high_water_mark() {
    let mut story = Story::new();
    story.at(0.0, |tick| memory(tick, ROOT, 2 * MIB, 2 * MIB, Some(MIB)));
    story.at(1.0, |tick| memory(tick, ROOT, 3 * MIB, 900 * MIB, None));
    let peak = figure(&story.end(2.0, |_| {}), "memory_peak_bytes");
    assert_eq!(peak.value, Some((900 * MIB) as f64));
    assert_eq!(peak.method, Some(Method::Exact));
}

#[test]
fn those_who_grew_after_they_were_last_seen_are_in_the_upper_bound() {
    let mut story = Story::new();
    let other = ProcessId { pid: 12, started: 102 };
    story.at(0.0, |tick| {
        memory(tick, ROOT, MIB, MIB, Some(MIB));
        memory(tick, CHILD, MIB, MIB, Some(MIB));
        memory(tick, other, MIB, MIB, Some(MIB));
    });
    for id in [CHILD, other] {
        story.event(1.0, Event::ended(id, None, None));
    }
    // The command's own account names the largest of those it waited for.
    story.reaped(1.0, ROOT, usage(0.1, 200 * MIB));
    let peak = figure(&story.end(1.0, |_| {}), "memory_peak_bytes");
    assert_eq!(peak.value, Some((200 * MIB) as f64));
    assert!(peak.upper.unwrap() >= (401 * MIB) as f64, "both may have been that large: {peak:?}");
}

#[test]
fn what_the_process_was_before_exec_is_not_the_command_s() {
    let mut story = Story::new();
    story.at(0.0, |tick| memory(tick, ROOT, MIB, MIB, Some(MIB)));
    story.reaped(1.0, ROOT, usage(0.1, 5 * MIB));
    let summary = story.end(1.0, |end| end.rss_before_exec_bytes = 5 * MIB);
    let peak = figure(&summary, "memory_peak_bytes");
    assert_eq!((peak.value, peak.lower), (Some(MIB as f64), Some(MIB as f64)));
    assert_eq!(peak.upper, Some((5 * MIB) as f64));
    assert_eq!(peak.method, Some(Method::Sampled));
}

#[test]
fn a_little_time_that_nobody_waited_for_opens_the_bound_of_the_counts() {
    let mut story = Story::new();
    story.reaped(10.0, ROOT, usage(10.0, MIB));
    let summary = story.end(10.0, |end| {
        end.task_clock_seconds = Some(10.05);
        end.io = Some(crate::parse::io::Io::default());
    });
    let written = figure(&summary, "io_written_bytes");
    assert_eq!((written.method, written.upper), (Some(Method::Sampled), None));
    assert_eq!(figure(&summary, "cpu_time_seconds").upper, Some(10.05));
}

#[test]
fn a_spike_after_the_last_tick_is_found_when_the_process_is_reaped() {
    let mut story = Story::new();
    story.at(0.0, |tick| memory(tick, ROOT, 2 * MIB, 2 * MIB, Some(MIB)));
    story.reaped(0.5, ROOT, usage(0.1, 700 * MIB));
    let peak = figure(&story.end(0.5, |_| {}), "memory_peak_bytes");
    assert_eq!((peak.value, peak.upper), (Some((700 * MIB) as f64), Some((700 * MIB) as f64)));
}

#[test]
fn processes_too_short_to_see_leave_the_upper_bound_open() {
    let mut story = Story::new();
    story.at(0.0, |tick| memory(tick, ROOT, 2 * MIB, 2 * MIB, Some(MIB)));
    let peak = figure(&story.end(1.0, |end| end.some_unseen = true), "memory_peak_bytes");
    assert_eq!(peak.upper, None);
    assert!(peak.reason.is_some());
}

#[test]
fn children_nobody_waited_for_are_in_the_task_clock() {
    let mut story = Story::new();
    story.reaped(4.0, ROOT, usage(0.1, MIB));
    let summary = story.end(4.0, |end| end.task_clock_seconds = Some(4.0));
    let cpu = figure(&summary, "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.method), (Some(4.0), Some(Method::Exact)));
    let user = figure(&summary, "cpu_user_seconds");
    assert_eq!((user.value, user.lower, user.upper), (None, Some(0.1), Some(4.0)));
    assert!(user.reason.is_some());
    assert!(summary.processes.some_unseen);
}

#[test]
fn without_a_task_clock_the_account_says_what_may_be_missing() {
    let mut story = Story::new();
    let why = "perf_event_open: denied".to_owned();
    story.event(0.0, Event::Fault { source: "task-clock".to_owned(), why });
    story.reaped(2.0, ROOT, usage(1.5, MIB));
    let cpu = figure(&story.end(2.0, |_| {}), "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.upper), (Some(1.5), None));
    assert!(cpu.reason.unwrap().contains("denied"));
}

#[test]
fn without_a_task_clock_children_nobody_waited_for_count_as_they_were_seen() {
    let mut story = Story::new();
    story.at(0.0, |tick| {
        cpu(tick, ROOT, 0.0, 0.0);
        cpu(tick, CHILD, 0.0, 0.0);
    });
    story.at(1.0, |tick| cpu(tick, CHILD, 0.9, 0.0));
    story.went(1.1, CHILD);
    story.reaped(2.0, ROOT, usage(0.1, MIB));
    let summary = story.end(2.0, |end| end.io = Some(crate::parse::io::Io::default()));
    let time = figure(&summary, "cpu_time_seconds");
    assert_eq!((time.value, time.method, time.upper), (Some(0.9), Some(Method::Sampled), None));
    assert_eq!(figure(&summary, "io_written_bytes").method, Some(Method::Sampled));
}

#[test]
fn time_that_moves_from_a_child_to_its_parent_is_not_counted_twice() {
    let mut story = Story::new();
    story.at(0.0, |tick| {
        cpu(tick, ROOT, 0.0, 0.0);
        cpu(tick, CHILD, 0.0, 0.0);
    });
    story.at(1.0, |tick| cpu(tick, CHILD, 1.0, 0.0));
    story.at(2.0, |tick| cpu(tick, ROOT, 0.0, 1.5));
    story.event(2.0, Event::ended(CHILD, None, None));
    story.at(3.0, |tick| cpu(tick, ROOT, 0.2, 1.5));
    let summary = story.end(3.0, |_| {});
    let peak = figure(&summary, "cpu_cores_peak").value.unwrap();
    assert!(peak <= 1.5 + 1e-9, "{peak}");
}

#[test]
fn a_pid_used_again_gives_no_negative_and_no_absurd_rate() {
    let mut story = Story::new();
    let again = ProcessId { pid: CHILD.pid, started: 500 };
    story.at(0.0, |tick| cpu(tick, CHILD, 0.0, 0.0));
    story.at(100.0, |tick| cpu(tick, CHILD, 90.0, 0.0));
    story.event(100.5, Event::ended(CHILD, None, None));
    story.at(101.0, |tick| cpu(tick, again, 0.5, 0.0));
    story.at(102.0, |tick| cpu(tick, again, 1.0, 0.0));
    let peak = figure(&story.end(102.0, |_| {}), "cpu_cores_peak");
    assert!(peak.value.is_some_and(|cores| (0.5..=1.0).contains(&cores)), "{peak:?}");
}

#[test]
fn io_of_those_still_alive_is_added_to_that_of_the_reaped() {
    let mut story = Story::new();
    story.at(1.0, |tick| {
        let io = ProcessIo {
            read: Some(100),
            written: Some(1),
            read_calls: Some(1),
            write_calls: Some(1),
            storage_read: Some(0),
            storage_written: Some(0),
        };
        tick.put(Entity::Process(CHILD), &io);
    });
    let reaped = crate::parse::io::Io { read_bytes: 50, ..Default::default() };
    let summary = story.end(1.0, |end| {
        end.io = Some(reaped);
        end.task_clock_seconds = Some(0.0);
    });
    let read = figure(&summary, "io_read_bytes");
    assert_eq!((read.value, read.method), (Some(150.0), Some(Method::Exact)));
}

#[test]
fn a_run_whose_end_is_not_recorded_says_so_and_invents_nothing() {
    let mut story = Story::new();
    story.at(1.5, |tick| {
        memory(tick, ROOT, MIB, MIB, Some(MIB));
        tick.put(Entity::Single, &RunCpu { time: Some(1.25) });
    });
    let summary = story.accumulator.finish();
    assert!(!summary.run.complete);
    assert_eq!((summary.run.exit_code, summary.run.ended), (None, None));
    assert_eq!(summary.run.duration_seconds, 1.5);
    let cpu = figure(&summary, "cpu_time_seconds");
    assert_eq!((cpu.value, cpu.upper), (Some(1.25), None));
    assert_eq!(figure(&summary, "page_faults_major").value, None);
    assert_eq!(summary.findings[0].code, "run.not_complete");
}

#[test]
fn what_was_never_read_is_null_with_a_reason_and_not_zero() {
    let mut story = Story::new();
    let why = "PSS and USS: /proc/10/smaps_rollup: Permission denied".to_owned();
    story.event(0.0, Event::Fault { source: "process".to_owned(), why });
    let summary = story.end(1.0, |_| {});
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
    let mut story = Story::new();
    story.at(1.0, |tick| {
        cpu(tick, ROOT, 0.5, 0.0);
        cpu(tick, CHILD, 1.0, 0.0);
    });
    story.reaped(2.0, ROOT, usage(2.0, MIB));
    let summary = story.end(2.0, |end| end.task_clock_seconds = Some(2.0));
    let part = |part: &Part| part.figures["cpu_time_seconds"].value.unwrap();
    let parts = &summary.parts;
    assert_eq!(part(&parts.main) + part(&parts.descendants), part(&parts.combined));
}

#[test]
fn nested_and_concurrent_phases_of_one_name_are_told_apart() {
    let mut story = Story::new();
    let start = |id: &str, parent: Option<&str>| Event::PhaseStart {
        id: id.to_owned(),
        name: "load".to_owned(),
        parent: parent.map(str::to_owned),
    };
    let end =
        |id: &str| Event::PhaseEnd { id: id.to_owned(), usage: None, end: None, account: None };
    story
        .event(0.0, start("a", None))
        .event(1.0, start("b", Some("a")))
        .event(2.0, start("c", None))
        .event(3.0, end("a"))
        .event(5.0, end("b"));
    let lengths: Vec<_> =
        story.end(6.0, |_| {}).phases.iter().map(|phase| phase.duration_seconds).collect();
    assert_eq!(lengths, [Some(3.0), Some(4.0), None]);
}

pub(super) fn found(summary: &Summary, code: &str) -> Option<Finding> {
    summary.findings.iter().find(|finding| finding.code == code).cloned()
}

#[test]
fn whom_the_kernel_killed_for_want_of_memory_is_named_with_the_limit() {
    let killed = |limit: Option<u64>, is_told: bool| {
        let mut story = Story::new();
        story.accumulator.manifest.host.memory_limit_bytes = limit;
        story.came(0.0, CHILD, "/usr/bin/solver --big");
        if is_told {
            story.event(1.0, Event::ended(CHILD, Some(End::Signal(libc::SIGKILL)), None));
        }
        story.event(1.0, Event::OutOfMemory { kills: 1, victims: Vec::new() });
        story.end(1.0, |end| end.end = End::Signal(libc::SIGKILL))
    };
    let finding = found(&killed(Some(64 * MIB), true), "memory.killed").unwrap();
    let sentence = "The kernel killed solver (11) for want of memory: its control group may use \
                    64.0 MiB.";
    assert_eq!((finding.sentence.as_str(), finding.severity), (sentence, Severity::Problem));
    // A parent that waits for its child does not tell how it ended.
    let unknown = killed(None, false);
    let sentence = found(&unknown, "memory.killed").unwrap().sentence;
    assert_eq!(sentence, "The kernel killed a process in its control group for want of memory.");
    assert!(found(&unknown, "run.killed").is_none(), "why says more than how");
}

#[test]
fn a_run_that_nearly_reached_its_limit_is_warned_of_it() {
    let near = |limit: u64| {
        let mut story = Story::new();
        story.accumulator.manifest.host.memory_limit_bytes = Some(limit);
        story.at(1.0, |tick| memory(tick, ROOT, 98 * MIB, 98 * MIB, Some(98 * MIB)));
        found(&story.end(2.0, |_| {}), "memory.near_limit")
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
        tick.put(device(domain), &DomainEnergy { used });
    }
    for (name, rate, made_of) in [
        ("lo", 5_000, MadeOf::Loopback),
        ("eth0", 1_000, MadeOf::Hardware),
        ("bond0", 1_000, MadeOf::Software),
    ] {
        let bytes = Some(1_000_000 + (second * f64::from(rate)) as u64);
        let row = Traffic {
            received: bytes,
            sent: Some(7),
            made_of: Some(made_of),
            ..Traffic::default()
        };
        tick.put(device(name), &row);
    }
}

#[test]
fn energy_and_traffic_of_the_machine_are_counted_once_and_the_run_has_its_part() {
    let mut story = Story::new();
    for second in [0.0, 1.0, 2.0] {
        story.at(second, |tick| machine(tick, second));
    }
    story.reaped(2.0, ROOT, usage(2.0, MIB));
    let summary = story.end(2.0, |_| {});
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
}

#[test]
fn energy_that_may_not_be_read_is_null_with_the_reason_and_what_to_type() {
    let mut story = Story::new();
    let why = "energy_uj: Permission denied; sudo chmod a+r /sys/class/powercap/*/energy_uj";
    story.accumulator.manifest.leave_out("energy", &[], why);
    story.at(0.0, |_| {}).at(1.0, |_| {});
    let summary = story.end(1.0, |_| {});
    for name in ["energy_joules", "energy_run_joules"] {
        let figure = &summary.parts.system.figures[name];
        assert_eq!((figure.value, figure.reason.as_deref()), (None, Some(why)), "{name}");
    }
    assert!(summary.monitor.faults.is_empty(), "it is a fact and no fault");
}
