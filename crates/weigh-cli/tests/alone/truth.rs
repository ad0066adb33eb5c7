//! Figures against what a load really used.

use std::fs;

use serde_json::Value;

use crate::weighed::{
    Figure, MIB, PublicPrograms, Weighed, can_mount, output, plain, weigh, weighed,
    weighed_command, weighed_shell,
};

const BYTES: f64 = 64.0 * MIB;

#[test]
fn two_hundred_short_children_are_counted_exactly() {
    let run = weighed(&[], &["children", "200", "20ms", "--print-cpu"]).ended_with(0);
    // Four seconds, plus forks and exits, which take longer on a busy machine.
    let printed_number = run.printed_number();
    assert!(printed_number >= 4.0, "{printed_number} s");
    run.figure("cpu_time_seconds").is_within(0.01, printed_number).is("exact");
}

#[test]
fn auto_reaped_children_are_counted_exactly() {
    let load = ["children", "200", "20ms", "--ignore-sigchld"];
    let run = weighed(&[], &load).ended_with(0);
    let counted = run.figure("cpu_time_seconds").is("exact").known();
    // The kernel reports the CPU time of auto-reaped children to no parent. Each has burned 20 ms
    // by its own clock, and they run one at a time: together at most one core for the whole run.
    let elapsed = run.summary["run"]["duration_seconds"].as_f64().unwrap();
    assert!((4.0..=1.02 * elapsed).contains(&counted), "{counted} s of CPU in {elapsed} s");
}

/// Page faults and context switches that perf counts only as root, or not in the kernel: the figures
/// are those of `wait4`.
#[test]
fn fork_storm_has_its_cpu_time_faults_and_switches_within_one_percent_for_every_user() {
    let programs = PublicPrograms::new();
    let mut command = programs.command("weigh", programs.path());
    let load = ["./burner", "children", "1000", "1ms", "--print-cpu", "--print-events"];
    let output = output(command.args(["run", "--no-record", "--format", "json", "--"]).args(load));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let summary: Value = serde_json::from_str(&stderr).unwrap_or_else(|_| panic!("{stderr}"));
    let printed = String::from_utf8(output.stdout).unwrap();
    let printed: Vec<f64> =
        printed.split_whitespace().map(|number| number.parse().unwrap()).collect();
    let [cpu, minor, major, voluntary, involuntary] = printed[..] else { panic!("{printed:?}") };
    let figure = |name: &str| Figure::of(&summary["figures"][name], name);
    figure("cpu_time_seconds").is_within(0.01, cpu).is("exact");
    let sum = |one: &str, other: &str| figure(one).known() + figure(other).known();
    for (what, counted, truth) in [
        ("faults", sum("page_faults_minor", "page_faults_major"), minor + major),
        (
            "switches",
            sum("context_switches_voluntary", "context_switches_involuntary"),
            voluntary + involuntary,
        ),
    ] {
        let off = counted / truth - 1.0;
        assert!(off.abs() <= 0.01, "{what}: {counted} instead of {truth}");
    }
}

#[test]
fn daemon_is_waited_for_and_counted_with_wait_all() {
    let run = weighed(&["--wait-all"], &["daemon", "3s"]).ended_with(0);
    run.figure("cpu_time_seconds").is_within(0.03, 3.0).is("exact");
    assert_eq!(run.summary["processes"]["left"].as_array().unwrap().len(), 0);
}

#[test]
fn daemon_that_outlives_the_command_uses_no_more_cores_than_the_machine_has() {
    let run = weighed_shell(&["--wait-all", "-o", "run"], "$BURNER daemon 500ms").ended_with(0);
    let cores = run.summary["host"]["cores_allowed"].as_f64().unwrap();
    let seconds = |name: &str| run.summary["run"][name].as_f64().unwrap();
    let (command, measured) = (seconds("duration_seconds"), seconds("measured_seconds"));
    assert!(command < measured, "{command} s of {measured} s");
    let (cpu, mean) = (run.figure("cpu_time_seconds").known(), run.figure("cpu_cores_mean"));
    assert!((mean.known() - cpu / measured).abs() < 1e-9, "{mean:?}");
    for figure in [&mean, &run.figure("cpu_cores_peak")] {
        // The tolerance is the granularity of clocks.
        assert!(figure.known() <= cores + 0.1, "{figure:?} of {cores}");
    }
    let shown =
        output(&mut weigh(run.directory.path(), &["show", "run", "--format", "json"])).stdout;
    let shown: Value = serde_json::from_slice(&shown).unwrap();
    assert_eq!(shown["run"], run.summary["run"], "read again");
    assert_eq!(shown["figures"]["cpu_cores_mean"], run.summary["figures"]["cpu_cores_mean"]);
}

#[test]
fn threads_are_counted_exactly() {
    let run = weighed(&[], &["threads", "4", "500ms"]).ended_with(0);
    run.figure("cpu_time_seconds").is_within(0.03, 2.0).is("exact");
    assert_eq!(run.summary["processes"]["total"], 1);
}

/// Measures a load where no other process forks; `None` where that is not possible.
fn weighed_alone(load: &str) -> Option<Weighed> {
    if !can_mount() {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    // A pid namespace has its own pids, and its own last pid in /proc/loadavg.
    let script = format!(
        "mount -t proc proc /proc
        \"$WEIGH\" run -q --summary summary.json -i 10ms -o run -- \"$BURNER\" {load}
        exit $?"
    );
    let mut command = plain("unshare", directory.path());
    let output = output(command.args(["-m", "-p", "-f", "sh", "-c", &script]));
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    let summary = fs::read(directory.path().join("summary.json")).unwrap();
    let summary = serde_json::from_slice(&summary).unwrap();
    let (code, stdout) = (output.status.code(), output.stdout);
    Some(Weighed { summary, directory, code, stdout, stderr }.ended_with(0))
}

fn peak_is_a_gibibyte(run: Weighed) {
    let run = run.ended_with(0);
    run.figure("memory_peak_bytes").is_within(0.02, 1024.0 * MIB);
}

#[test]
fn memory_held_between_two_ticks_is_in_the_peak() {
    let load = ["touch", "1GiB", "50ms", "--after", "100ms", "--linger", "1200ms"];
    peak_is_a_gibibyte(weighed(&["-i", "1s"], &load));
}

#[test]
fn memory_held_until_the_end_is_in_the_peak() {
    peak_is_a_gibibyte(weighed(&["-i", "1s"], &["touch", "1GiB", "50ms", "--after", "100ms"]));
}

#[test]
fn memory_of_a_command_too_short_to_sample_is_never_that_of_weigh() {
    for _ in 0..20 {
        let run = weighed_command(&["--no-record"], &["true".into()]).ended_with(0);
        let peak = run.figure("memory_peak_bytes");
        assert!(peak.value.is_none_or(|bytes| 0.0 < bytes && bytes < 3.0 * MIB), "{peak:?}");
        assert!(peak.value.is_some() || peak.reason.is_some(), "{peak:?}");
        assert!(peak.value.is_some() || peak.upper.is_some(), "{peak:?}");
        for name in ["memory_mean_bytes", "memory_rss_peak_bytes", "memory_pss_peak_bytes"] {
            let figure = run.figure(name);
            assert!(figure.value != Some(0.0) && figure.reason.is_some(), "{figure:?}");
        }
    }
}

#[test]
fn memory_held_by_a_short_child_is_in_the_peak() {
    let script = "$BURNER touch 1GiB 50ms --after 100ms; $BURNER sleep 100ms";
    peak_is_a_gibibyte(weighed_shell(&["--no-record", "-i", "1s"], script));
}

/// Samples with PSS and USS of every change: within the default budget, growth of less than a
/// twentieth need not be read (`collect::footprint`).
const EVERY_CHANGE: [&str; 4] = ["-i", "50ms", "--budget", "100%"];

/// Five vfork children, one after the other, in 400 MiB of their parent: all its memory, once.
fn vfork_children_are_not_summed(run: Weighed) -> Weighed {
    let run = run.ended_with(0);
    for name in ["memory_peak_bytes", "memory_rss_peak_bytes", "memory_pss_peak_bytes"] {
        let figure = run.figure(name);
        // The program, and a child after exec, have 3 MiB each.
        figure.is_within(0.03, 400.0 * MIB);
        assert!(figure.lower.is_none_or(|lower| lower <= 412.0 * MIB), "{figure:?}");
        assert!(figure.upper.is_none_or(|upper| upper >= 400.0 * MIB), "{figure:?}");
    }
    let tools = run.summary["tools"].as_array().unwrap();
    for key in ["memory_peak_bytes", "memory_rss_peak_bytes", "memory_uss_peak_bytes"] {
        let largest = tools.iter().filter_map(|tool| tool[key].as_f64()).fold(0.0, f64::max);
        assert!(largest <= 412.0 * MIB, "{key}: {tools:?}");
    }
    run
}

#[test]
fn vfork_children_do_not_double_the_memory() {
    let run = weighed(&EVERY_CHANGE, &["vfork", "400MiB", "5", "300ms"]);
    let run = vfork_children_are_not_summed(run);
    assert_eq!(run.summary["processes"]["total"], 6, "they are processes all the same");
}

#[test]
fn vfork_children_after_exec_have_the_memory_of_their_program() {
    let run = weighed(&EVERY_CHANGE, &["vfork", "400MiB", "3", "300ms", "--exec"]);
    vfork_children_are_not_summed(run);
}

#[test]
fn vfork_children_do_not_double_the_memory_of_a_phase() {
    let script = "$WEIGH phase load -- $BURNER vfork 400MiB 3 300ms";
    let run = weighed_shell(&[&EVERY_CHANGE[..], &["-o", "run"]].concat(), script).ended_with(0);
    let phase = &run.summary["phases"][0]["figures"];
    Figure::of(&phase["memory_peak_bytes"], "memory_peak_bytes").is_within(0.05, 400.0 * MIB);
    let mean = Figure::of(&phase["memory_mean_bytes"], "memory_mean_bytes");
    assert!(mean.known() <= 420.0 * MIB, "{mean:?}");
}

#[test]
fn vfork_children_are_found_without_privileges() {
    let everybody = PublicPrograms::new();
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777))
        .unwrap();
    let mut command = everybody.command("weigh", directory.path());
    let burner = everybody.path().join("burner");
    command.args(["run", "-q", "--no-record", "-i", "50ms", "--summary", "summary.json", "--"]);
    let output = output(command.arg(burner).args(["vfork", "400MiB", "2", "300ms"]));
    assert!(output.status.success(), "{output:?}");
    let summary = fs::read(directory.path().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let figure = Figure::of(&summary["figures"]["memory_peak_bytes"], "memory_peak_bytes");
    figure.is_within(0.03, 400.0 * MIB);
}

/// Bytes of free huge pages.
fn free_huge_pages() -> Option<f64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok()?;
    let number = |key: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    Some(number("HugePages_Free:")? * number("Hugepagesize:")? * 1024.0)
}

/// The machine's pool of huge pages, enlarged for a test and restored afterwards.
struct HugePages(String);

impl HugePages {
    const POOL: &str = "/proc/sys/vm/nr_hugepages";

    fn reserved() -> Option<HugePages> {
        let before = HugePages(fs::read_to_string(HugePages::POOL).ok()?);
        let enough = || free_huge_pages().is_some_and(|free| free >= 16.0 * MIB);
        if !enough() {
            fs::write(HugePages::POOL, "32").ok()?;
        }
        Some(before).filter(|_| enough())
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        let _ = fs::write(HugePages::POOL, &self.0);
    }
}

#[test]
fn huge_pages_are_in_the_memory() {
    let Some(_pages) = HugePages::reserved() else {
        return crate::weighed::impossible("no 16 MiB of huge pages can be reserved");
    };
    let run = weighed(&EVERY_CHANGE, &["huge-pages", "16MiB", "500ms"]).ended_with(0);
    for name in ["memory_peak_bytes", "memory_rss_peak_bytes", "memory_uss_peak_bytes"] {
        let figure = run.figure(name);
        assert!((16.0 * MIB..22.0 * MIB).contains(&figure.known()), "{figure:?}");
        assert!(figure.upper.is_none_or(|upper| upper >= 16.0 * MIB), "{figure:?}");
    }
    run.figure("memory_hugetlb_peak_bytes").is_within(0.0, 16.0 * MIB);
}

/// Ten processes that share 400 MiB: checks the value and the known bounds.
fn shared_memory_is_counted_once(run: Weighed) -> Figure {
    let run = run.ended_with(0);
    let peak = run.figure("memory_peak_bytes");
    peak.is_within(0.05, 400.0 * MIB);
    // Ten processes have some hundred KiB of their own each, and the program is 3 MiB.
    let truth = 400.0 * MIB..410.0 * MIB;
    assert!(peak.lower.is_some_and(|lower| lower <= truth.end), "{peak:?}");
    assert!(peak.upper.is_none_or(|upper| upper >= truth.start), "{peak:?}");
    let summed = run.figure("memory_rss_peak_bytes").known();
    assert!(summed > 3.0 * truth.start, "RSS counts shared memory in each process: {summed}");
    peak
}

#[test]
fn memory_that_forks_share_is_counted_once() {
    let peak = shared_memory_is_counted_once(weighed(&[], &["shared", "400MiB", "9", "1500ms"]));
    // Where other processes fork, too, weigh cannot know that none of them was of the run.
    assert!(peak.upper.is_some() || peak.reason.is_some(), "{peak:?}");
}

#[test]
fn memory_that_forks_share_is_bounded_where_no_other_process_forks() {
    let Some(run) = weighed_alone("shared 400MiB 9 1500ms") else { return };
    let peak = shared_memory_is_counted_once(run);
    assert!(peak.upper.is_some(), "{peak:?}");
}

#[test]
fn memory_of_successive_processes_is_not_summed() {
    let script = "for i in 1 2 3 4 5 6 7 8; do $BURNER touch 100MiB 90ms; done";
    let run = weighed_shell(&["--no-record", "-i", "100ms"], script).ended_with(0);
    let peak = run.figure("memory_peak_bytes");
    // The shell has about a MiB.
    peak.is_within(0.05, 101.0 * MIB);
    assert!(peak.lower.unwrap() <= 105.0 * MIB, "{peak:?}");
    assert!(run.figure("memory_pss_peak_bytes").known() <= 105.0 * MIB, "{}", run.summary);
    assert_eq!(run.summary["processes"]["peak"], 2, "the shell and one of them");
}

#[test]
fn command_of_three_milliseconds_has_figures_above_zero() {
    let run = weighed(&[], &["cpu", "3ms"]).ended_with(0);
    assert!(run.summary["run"]["duration_seconds"].as_f64().unwrap() > 0.0);
    for name in ["cpu_time_seconds", "cpu_cores_mean", "cpu_cores_peak"] {
        assert!(run.figure(name).known() > 0.0, "{:?}", run.figure(name));
    }
    assert_ne!(run.figure("memory_peak_bytes").value, Some(0.0));
    let cpu = run.figure("cpu_time_seconds");
    cpu.is("exact");
    // Only the sum is exact: user and system time are sampled at clock ticks, too few in 3 ms.
    for name in ["cpu_user_seconds", "cpu_system_seconds"] {
        let part = run.figure(name);
        assert_eq!((part.is("estimated").lower, part.upper), (Some(0.0), cpu.upper), "{part:?}");
    }
}

#[test]
fn bytes_written_by_short_children_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file").display().to_string();
    let run = weighed(&[], &["write", &file, "64MiB", "16"]).ended_with(0);
    run.figure("io_written_bytes").is_within(0.01, BYTES).is("exact");
    assert_eq!(fs::metadata(file).unwrap().len() as f64, BYTES, "the load itself");
}

#[test]
fn bytes_read_by_short_children_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file").display().to_string();
    fs::write(&file, vec![1; BYTES as usize]).unwrap();
    let run = weighed(&[], &["read", &file, "64MiB", "16"]).ended_with(0);
    run.figure("io_read_bytes").is_within(0.01, BYTES).is("exact");
}

#[test]
fn command_without_io_has_none() {
    let run = weighed(&[], &["exit", "0"]).ended_with(0);
    for name in ["io_written_bytes", "io_write_calls"] {
        assert_eq!(run.figure(name).is("exact").known(), 0.0, "{:?}", run.figure(name));
    }
}

#[test]
fn children_forked_by_worker_threads_are_all_found() {
    let run = weighed(&["-i", "50ms"], &["thread-forks", "20", "1s"]).ended_with(0);
    assert_eq!(run.summary["processes"]["total"], 21);
    assert_eq!(run.summary["processes"]["peak"], 21);
}

#[test]
fn reused_pid_gives_no_absurd_rate() {
    let Some(run) = weighed_alone("reuse-pid 600ms") else { return };
    assert!(run.stdout.starts_with(b"reused "), "the load itself");
    run.figure("cpu_time_seconds").is_within(0.05, 1.2).is("exact");
    let cores = run.summary["host"]["cores_allowed"].as_f64().unwrap();
    let parts = &run.summary["parts"];
    for part in [&run.summary, &parts["main"], &parts["descendants"], &parts["combined"]] {
        for (name, figure) in part["figures"].as_object().unwrap() {
            let below = |key: &str, most: f64| figure[key].as_f64().is_none_or(|v| v <= most);
            let negative = |key: &str| figure[key].as_f64().is_some_and(|value| value < 0.0);
            assert!(!["value", "lower", "upper"].into_iter().any(negative), "{name}: {figure}");
            if name.starts_with("cpu_cores") {
                assert!(below("value", cores + 0.1), "{name}: {figure}");
            }
            if name.starts_with("cpu_time") {
                assert!(below("value", 1.26), "{name}: {figure}");
            }
        }
    }
}

#[test]
fn children_missed_under_one_pid_leave_no_upper_bound() {
    let Some(run) = weighed_alone("reuse-pid-often 40 15ms") else { return };
    assert_eq!(run.stdout, b"reused 40\n", "the load itself");
    let total = run.summary["processes"]["total"].as_u64().unwrap();
    assert!(total <= 41, "{total} processes");
    // Ticks are 10 ms apart: children are missed, except on a very slow machine.
    if total < 41 {
        assert_eq!(run.summary["processes"]["some_unseen"], true, "{total} of 41 were found");
        let peak = run.figure("memory_peak_bytes");
        assert!(peak.upper.is_none() && peak.reason.is_some(), "{peak:?}");
    }
}

#[test]
fn reused_pid_is_another_process() {
    let Some(run) = weighed_alone("reuse-pid 300ms") else { return };
    assert!(run.stdout.starts_with(b"reused "), "the load itself");
    assert_eq!(run.summary["processes"]["total"], 3);
    let events = crate::recorded::events(&run.directory.path().join("run"));
    let started = events.iter().filter(|event| event["event"] == "process_start");
    // The first is the load itself.
    let ids: Vec<_> = started.skip(1).map(|event| (&event["pid"], &event["started"])).collect();
    assert!(ids.len() == 2 && ids[0].0 == ids[1].0 && ids[0].1 != ids[1].1, "{ids:?}");
}

#[test]
fn neither_the_run_nor_the_machine_uses_more_cores_than_there_are() {
    let run = weighed(&["-i", "10ms"], &["threads", "2", "500ms"]).ended_with(0);
    let host = &run.summary["host"];
    for (part, cores) in [("combined", &host["cores_allowed"]), ("system", &host["cores"])] {
        let peak = &run.summary["parts"][part]["figures"]["cpu_cores_peak"];
        let peak = Figure::of(peak, part);
        assert!(peak.known() <= cores.as_f64().unwrap() + 0.1, "{peak:?} of {cores} cores");
    }
}
