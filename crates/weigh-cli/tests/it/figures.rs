//! The summary as JSON: all keys present, every figure with a method or a reason.

use std::fs;

use serde_json::Value;

use crate::recorded::every_figure_is_explained;
use crate::weighed::{PublicPrograms, output, weigh, weighed, weighed_shell};

/// The keys of the summary that PRODUCT.md shows.
const KEYS: [(&str, &[&str]); 15] = [
    ("weigh", &["version", "format"]),
    (
        "run",
        &[
            "id",
            "name",
            "command",
            "started",
            "ended",
            "duration_seconds",
            "measured_seconds",
            "exit_code",
            "signal",
            "labels",
            "complete",
        ],
    ),
    ("host", &["name", "cores", "cores_allowed", "memory_bytes", "gpus"]),
    ("job", &[]),
    ("figures", &FIGURES),
    ("parts", &["main", "descendants", "combined", "system"]),
    ("tools", &[]),
    ("processes", &["total", "peak"]),
    ("gpus", &[]),
    ("nodes", &[]),
    ("phases", &[]),
    (
        "monitor",
        &["cpu_seconds", "memory_peak_bytes", "ticks", "ticks_missed", "cost_ratio", "faults"],
    ),
    ("bottleneck", &["kind", "method", "sentence", "evidence"]),
    ("memory_peak_process", &[]),
    ("findings", &[]),
];

/// The figures that need no device.
const FIGURES: [&str; 19] = [
    "cpu_time_seconds",
    "cpu_user_seconds",
    "cpu_system_seconds",
    "cpu_cores_mean",
    "cpu_cores_peak",
    "memory_peak_bytes",
    "memory_pss_peak_bytes",
    "memory_rss_peak_bytes",
    "memory_uss_peak_bytes",
    "memory_mean_bytes",
    "swap_peak_bytes",
    "threads_peak",
    "files_open_peak",
    "io_read_bytes",
    "io_written_bytes",
    "io_read_calls",
    "io_write_calls",
    "page_faults_major",
    "context_switches_involuntary",
];

#[test]
fn json_on_stderr_is_valid_and_has_every_key() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["run", "--no-record", "--format", "json", "--label", "a=b", "--name", "n"];
    let output = output(weigh(directory.path(), &arguments).args(["--", "sh", "-c", "exit 7"]));
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(7), &b""[..]));
    let summary: Value = serde_json::from_slice(&output.stderr).unwrap();
    for (key, inner) in KEYS {
        let value = summary.get(key).unwrap_or_else(|| panic!("no {key} in {summary:#}"));
        for name in inner {
            assert!(value.get(name).is_some(), "no {key}.{name} in {summary:#}");
        }
    }
    assert_eq!(summary["run"]["labels"]["a"], "b");
    assert_eq!(summary["run"]["name"], "n");
    assert_eq!(summary["run"]["exit_code"], 7);
    assert_eq!(summary["run"]["command"], serde_json::json!(["sh", "-c", "exit 7"]));
    assert_eq!(summary["run"]["complete"], true);
}

#[test]
fn only_facts_of_a_batch_job_are_recorded_of_its_variables() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = weigh(directory.path(), &["run", "-q", "-o", "run", "--", "true"]);
    command.env("SLURM_JOB_ID", "4711").env("SLURM_JOB_COMMENT", "a-secret");
    let output = output(&mut command);
    assert!(output.status.success(), "{output:?}");
    for name in ["run.json", "summary.json"] {
        let text = fs::read_to_string(directory.path().join("run").join(name)).unwrap();
        assert!(!text.contains("a-secret"), "{name}: {text}");
        let job = &serde_json::from_str::<Value>(&text).unwrap()["job"];
        assert_eq!((&job["scheduler"], &job["id"]), (&"slurm".into(), &"4711".into()), "{name}");
    }
}

#[test]
fn no_row_of_the_text_calls_a_lower_bound_an_upper_one() {
    let run = weighed_shell(&["--no-record", "-i", "10ms"], "$BURNER cpu 300ms");
    let row = |label: &str| {
        let mut rows = run.stderr.lines().filter(|line| line.trim_start().starts_with(label));
        rows.next().unwrap_or_else(|| panic!("no {label}: {}", run.stderr)).to_owned()
    };
    let cores = row("cores");
    assert!(!cores.contains("at most"), "{cores}");
    assert!(!cores.contains(" exact ") || cores.contains("(sampled)"), "{cores}");
    assert!(run.stderr.contains("user ~") && run.stderr.contains("(estimated)"), "{}", run.stderr);
}

#[test]
fn every_figure_has_a_value_and_a_method_or_a_reason() {
    let run = weighed(&["-i", "20ms"], &["children", "5", "20ms"]).ended_with(0);
    every_figure_is_explained(&run.summary);
}

#[test]
fn skipped_collector_is_named_in_the_reasons() {
    for collectors in [["--collect", "cpu"], ["--skip", "process,task-clock,memory"]] {
        let run = weighed(&collectors, &["children", "5", "200ms"]).ended_with(0);
        every_figure_is_explained(&run.summary);
        run.figure("cpu_time_seconds").is_within(0.05, 1.0);
        let pss = run.figure("memory_pss_peak_bytes");
        assert!(pss.value.is_none() && pss.reason.is_some_and(|why| why.contains("left out")));
    }
}

#[test]
fn main_descendants_and_combined_are_separate() {
    let script = "\"$BURNER\" cpu 400ms; exec \"$BURNER\" cpu 200ms";
    let run = weighed_shell(&["--no-record"], script).ended_with(0);
    let cpu = |part: &str| {
        let figure = &run.summary["parts"][part]["figures"]["cpu_time_seconds"];
        figure["value"].as_f64().unwrap_or_else(|| panic!("{part}: {figure}"))
    };
    // The main process is known to two clock ticks of 10 ms, and steal time at the end of a load
    // is charged to the load.
    for (part, truth) in [("main", 0.2), ("descendants", 0.4), ("combined", 0.6)] {
        assert!((cpu(part) - truth).abs() <= 0.06, "{part}: {}", cpu(part));
    }
    assert!(cpu("system") > 0.0);
}

#[test]
fn no_time_in_a_run_is_after_its_end() {
    let run = weighed_shell(&["--no-record", "-i", "10ms"], "$BURNER cpu 50ms; exit 0");
    let duration = run.summary["run"]["duration_seconds"].as_f64().unwrap();
    for (name, figure) in run.summary["figures"].as_object().unwrap() {
        for when in ["at_seconds", "after_seconds", "before_seconds"] {
            let at = figure[when].as_f64().unwrap_or(0.0);
            assert!(at <= duration, "{name}: {when} {at} of {duration} s");
        }
    }
}

#[test]
fn unprivileged_user_gets_exact_cpu_time() {
    let programs = PublicPrograms::new();
    let mut command = programs.command("weigh", programs.path());
    let arguments = ["run", "--no-record", "--format", "json", "--", "./burner"];
    let output = output(command.args(arguments).args(["children", "10", "200ms"]));
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    let summary: Value = serde_json::from_str(&stderr).unwrap_or_else(|_| panic!("{stderr}"));
    let figure = crate::weighed::Figure::of(&summary["figures"]["cpu_time_seconds"], "CPU time");
    figure.is_within(0.03, 2.0).is("exact");
}

#[test]
fn monitor_reports_its_own_usage() {
    let run = weighed(&["-i", "20ms"], &["sleep", "300ms"]).ended_with(0);
    let monitor = &run.summary["monitor"];
    assert!(monitor["cpu_seconds"].as_f64() > Some(0.0), "{monitor}");
    assert!(monitor["memory_peak_bytes"].as_u64() > Some(1 << 20), "{monitor}");
    assert!(monitor["cost_ratio"].as_f64() > Some(0.0), "{monitor}");
    assert!(monitor["ticks"].as_u64() > Some(5), "{monitor}");
    assert_eq!(monitor["faults"], serde_json::json!([]));
}
