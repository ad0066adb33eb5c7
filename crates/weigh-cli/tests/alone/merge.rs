//! Merged recordings of several real workers.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Child, Command};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::cards::{GIB, card, machine, measured_on};
use crate::python::{script, succeeds};
use crate::recorded::{events, shown};
use crate::weighed::{
    MIB, burner, can_mount, end_of, output, plain, recordings, weigh, weigh_path,
};

/// Memory of a worker, and of the burner beside it.
const SIZE: f64 = 64.0 * MIB;

/// A directory with the burner under the name of a tool in it.
fn place() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    symlink(burner(), directory.path().join("gulmc")).unwrap();
    directory
}

/// The options of a worker's weigh: private memory is read in every tick.
const OPTIONS: [&str; 8] = ["run", "-q", "-i", "100ms", "--budget", "50%", "--name", "worker"];

/// A worker that has 64 MiB for two seconds, recorded under this name.
fn worker(directory: &Path, name: &str) -> Child {
    let arguments = [&OPTIONS[..], &["-o", name, "--", "./gulmc", "touch", "64MiB", "2s"]].concat();
    weigh(directory, &arguments).spawn().unwrap()
}

fn all_end_well(workers: impl IntoIterator<Item = Child>) {
    workers.into_iter().for_each(|worker| assert!(end_of(worker).status.success()));
}

/// Four workers at once, and their merged recording.
fn four_workers() -> TempDir {
    let directory = place();
    let names = ["runs/1", "runs/2", "runs/3", "runs/4"];
    fs::create_dir(directory.path().join("runs")).unwrap();
    all_end_well(names.map(|name| worker(directory.path(), name)));
    merged(directory.path(), &["runs", "-o", "all"]);
    directory
}

/// Merges recordings; returns the printed JSON.
fn merged(directory: &Path, arguments: &[&str]) -> Value {
    let done = output(&mut weigh(directory, &[&["merge", "--format", "json"], arguments].concat()));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
    serde_json::from_slice(&done.stdout).unwrap()
}

fn is_within(what: &str, value: f64, (least, most): (f64, f64)) {
    assert!((least..=most).contains(&value), "{what}: {value} is not in {least}..{most}");
}

#[test]
fn four_workers_at_once_are_four_times_one() {
    let directory = four_workers();
    let all = shown(&directory.path().join("all"));
    let one = shown(&directory.path().join("runs/1"));
    let figure = |summary: &Value, name: &str| summary["figures"][name]["value"].as_f64().unwrap();
    // Shared pages of the program, a few MiB, are in the sum once.
    let peak = figure(&all, "memory_pss_peak_bytes");
    is_within("memory", peak, (4.0 * SIZE, 4.0 * SIZE + 16.0 * MIB));
    let bound = all["figures"]["memory_peak_bytes"]["upper"].as_f64().unwrap();
    is_within("bound", bound, (peak, 4.0 * SIZE + 40.0 * MIB));
    let tool = &all["tools"][0];
    assert_eq!((&tool["name"], &tool["instances"]), (&"gulmc".into(), &4.into()));
    assert_eq!(tool["instances_peak"], 4);
    is_within("tool", tool["memory_uss_peak_bytes"].as_f64().unwrap(), (4.0 * SIZE, 4.1 * SIZE));
    // The kernel's counters of each are summed, and stay exact.
    let sum: f64 = (1..=4)
        .map(|run| shown(&directory.path().join(format!("runs/{run}"))))
        .map(|run| figure(&run, "cpu_time_seconds"))
        .sum();
    is_within("CPU time", figure(&all, "cpu_time_seconds"), (sum - 1e-6, sum + 1e-6));
    assert_eq!(all["figures"]["cpu_time_seconds"]["method"], "exact");
    assert_eq!(one["figures"]["cpu_time_seconds"]["method"], "exact");
    assert_eq!(all["run"]["exit_code"], 0);
    assert_eq!(all["run"]["name"], "worker");
    assert_eq!(all["host"]["cores"], one["host"]["cores"]);
    let written = fs::read(directory.path().join("all/summary.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), all);
}

#[test]
fn every_verb_reads_a_merged_recording() {
    let directory = four_workers();
    for arguments in [
        &["show", "all"][..],
        &["show", "all", "--phases"],
        &["report", "all", "-f", "html,md,pdf", "-o", "report"],
        &["plot", "all", "-o", "plots"],
        &["export", "all", "-f", "csv,parquet", "-o", "tables"],
        &["export", "all", "--as", "gpu-tracker", "-o", "tracked"],
        &["export", "all", "--as", "oasis", "-o", "log"],
    ] {
        let done = output(&mut weigh(directory.path(), arguments));
        let message = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{arguments:?}: {message}");
    }
}

/// The rows of oasislmf's table, in fields.
fn rows(directory: &Path) -> Vec<Vec<String>> {
    let table = fs::read_to_string(directory.join("log/resource_monitor.csv")).unwrap();
    let fields = |line: &str| line.split(',').map(str::to_owned).collect();
    table.lines().skip(1).map(fields).collect()
}

#[test]
fn oasislmf_counts_four_instances_and_the_memory_of_all() {
    let directory = four_workers();
    let path = directory.path();
    let done = output(&mut weigh(path, &["export", "all", "--as", "oasis", "-o", "log"]));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    // A live process has a row at every poll: no sawtooth.
    let rows = rows(path);
    let mut moments: Vec<&str> = rows.iter().map(|row| row[0].as_str()).collect();
    moments.dedup();
    let at = |moment: &str| rows.iter().filter(|row| row[0] == moment).count();
    let counts: Vec<usize> = moments.iter().map(|moment| at(moment)).collect();
    let full = counts.iter().filter(|count| **count == 4).count();
    assert!(full * 2 >= counts.len(), "{counts:?}");
    let rises = counts.windows(2).filter(|pair| pair[1] > pair[0]).count();
    assert!(rises <= 3, "they start once and exit once: {counts:?}");
    let Some(mut python) = script("oasis.py", path) else { return };
    let message = succeeds(python.arg("log/resource_monitor.csv"));
    let theirs: Value = serde_json::from_str(&message).unwrap();
    let stats = &theirs["stats"]["gulmc"];
    assert_eq!(stats["n_instances"], 4);
    let all = shown(&path.join("all"));
    let ours = all["tools"][0]["memory_uss_peak_bytes"].as_f64().unwrap() / MIB;
    // Sizes are truncated to KiB for each process; ours also has samples of single processes.
    let least = 0.98 * ours - 4.0 / 1024.0;
    is_within("sum", stats["agg_peak_uss_mb"].as_f64().unwrap(), (least, ours));
    is_within("peak of all", theirs["peak_total_uss_mb"].as_f64().unwrap(), (least, ours));
    is_within("truth", ours, (4.0 * SIZE / MIB, 4.1 * SIZE / MIB));
}

#[test]
fn equal_pids_in_different_containers_are_different_processes() {
    if !can_mount() {
        return;
    }
    let directory = place();
    let contained = |name: &str| -> Child {
        let mut command: Command = plain("unshare", directory.path());
        command.args(["--pid", "--fork", "--mount-proc"]).arg(weigh_path()).args(OPTIONS);
        command.args(["-o", name, "--", "./gulmc", "touch", "64MiB", "2s"]).spawn().unwrap()
    };
    all_end_well(["a", "b"].map(contained));
    let all = merged(directory.path(), &["a", "b", "-o", "all"]);
    let pid = |run: &str| {
        let events = events(&directory.path().join(run));
        events.iter().find(|event| event["event"] == "process_start").unwrap()["pid"].clone()
    };
    assert_eq!(pid("a"), pid("b"), "both begin to count anew");
    assert_eq!(all["processes"]["total"], 2);
    assert_eq!(all["tools"][0]["instances"], 2);
    let peak = all["figures"]["memory_pss_peak_bytes"]["value"].as_f64().unwrap();
    is_within("memory", peak, (2.0 * SIZE, 2.0 * SIZE + 12.0 * MIB));
    assert_eq!(all["host"]["pid_namespace"], Value::Null);
    let arguments = ["export", "all", "-f", "json", "--table", "processes", "-o", "tables"];
    assert!(output(&mut weigh(directory.path(), &arguments)).status.success());
    let table = fs::read(directory.path().join("tables/processes.json")).unwrap();
    let table: Value = serde_json::from_slice(&table).unwrap();
    let column = |name: &str| {
        let mut values = [0, 1].map(|row| table[row][name].as_u64().unwrap());
        values.sort_unstable();
        values
    };
    assert_eq!(column("member"), [1, 2]);
    assert_eq!(column("member_pid").map(Value::from), [pid("a"), pid("b")]);
    assert_ne!(column("pid")[0], column("pid")[1], "a key for both tables");
}

/// Changes a recording into one of another machine.
fn elsewhere(recording: &Path, name: &str) {
    let path = recording.join("run.json");
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let before = manifest["host"]["name"].as_str().unwrap().to_owned();
    manifest["host"]["name"] = json!(name);
    manifest["host"]["boot"] = json!(format!("boot of {name}"));
    // The checksums are of the unchanged files.
    manifest["sealed"] = json!(false);
    fs::remove_file(recording.join("integrity.json")).unwrap();
    fs::rename(recording.join(before), recording.join(name)).unwrap();
    fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
}

#[test]
fn gpus_of_two_machines_are_separate_in_every_output() {
    // The command writes its pid into the script. What a driver reports in the first second also
    // covers the time before.
    let line = "sed s/4000001/$$/ \"$WEIGH_STAND_IN\" > next; mv next \"$WEIGH_STAND_IN\"; \
                sleep 1.2; readings $(($(grep -c ProcessUtilization \"$CALLS\") + 8))";
    let runs = ["gpu-a", "gpu-b"].map(|node| {
        let mut card = card(0);
        card["compute"] = json!([[4_000_001, 3 * GIB]]);
        let run = measured_on(&machine(vec![card]), &["-i", "50ms"], line);
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        elsewhere(&run.directory.path().join("run"), node);
        run
    });
    let [one, other] = runs.each_ref().map(|run| run.directory.path().join("run"));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let all = merged(path, &[one.to_str().unwrap(), other.to_str().unwrap(), "-o", "all"]);
    let gpus = all["gpus"].as_array().unwrap();
    let each = |name: &str| gpus.iter().map(|gpu| gpu[name].clone()).collect::<Vec<_>>();
    assert_eq!(each("name"), ["gpu-a/nvidia0", "gpu-b/nvidia0"]);
    assert_eq!(each("node"), ["gpu-a", "gpu-b"]);
    assert_eq!(each("memory_peak_bytes"), [4 * GIB, 4 * GIB]);
    assert_eq!(each("utilization_peak_ratio"), [0.9, 0.9]);
    let of_processes =
        each("processes").into_iter().map(|users| users[0]["memory_peak_bytes"].clone());
    assert_eq!(of_processes.collect::<Vec<_>>(), [3 * GIB, 3 * GIB]);
    // One ran after the other.
    let figure = |name: &str| all["figures"][name]["value"].as_f64();
    assert_eq!(figure("gpu_memory_peak_bytes"), Some((3 * GIB) as f64));
    assert_eq!(figure("gpus_busy_peak"), Some(0.9));
    for arguments in [
        &["export", "all", "-f", "csv", "-o", "tables"][..],
        &["export", "all", "--as", "gpu-tracker", "-o", "tracked"],
        &["report", "all", "-f", "html,md,pdf", "-o", "report"],
        &["plot", "all", "-o", "plots"],
    ] {
        let done = output(&mut weigh(path, arguments));
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    let table = fs::read_to_string(path.join("tables/gpu.csv")).unwrap();
    assert!(table.contains("gpu-a/nvidia0") && table.contains("gpu-b/nvidia0"), "{table}");
    let report = fs::read_to_string(path.join("report/report.md")).unwrap();
    assert!(report.contains("| gpu-b/nvidia0 | gpu-b |"), "{report}");
}

#[test]
fn run_inside_a_run_is_counted_once() {
    let directory = place();
    let inner = "$WEIGH run -q -i 100ms -o inner -- ./gulmc touch 64MiB 1s";
    let arguments = ["run", "-q", "-i", "100ms", "-o", "outer", "--", "sh", "-c", inner];
    assert!(output(&mut weigh(directory.path(), &arguments)).status.success());
    let outer = shown(&directory.path().join("outer"));
    let all = merged(directory.path(), &["outer", "inner", "-o", "all"]);
    let tool = |summary: &Value| {
        let tools = summary["tools"].as_array().unwrap();
        tools.iter().find(|tool| tool["name"] == "gulmc").unwrap().clone()
    };
    assert_eq!(tool(&all)["instances"], tool(&outer)["instances"]);
    let cpu = |summary: &Value| summary["figures"]["cpu_time_seconds"]["value"].as_f64().unwrap();
    is_within("CPU time", cpu(&all), (cpu(&outer) - 0.05, cpu(&outer) + 0.05));
    let memory = tool(&all)["memory_rss_peak_bytes"].as_f64().unwrap();
    is_within("memory", memory, (SIZE, SIZE + 8.0 * MIB));
}

#[test]
fn process_attached_to_by_two_weighs_is_counted_once() {
    let directory = place();
    let path = directory.path();
    let load = plain("./gulmc", path).args(["touch", "64MiB", "3s"]).spawn().unwrap();
    let pid = load.id().to_string();
    let watcher = |name: &str| {
        let arguments = ["attach", &pid, "-q", "-i", "100ms", "--budget", "50%", "-o", name];
        weigh(path, &arguments).spawn().unwrap()
    };
    let watchers = ["a", "b"].map(watcher);
    assert!(end_of(load).status.success());
    all_end_well(watchers);
    let all = merged(path, &["a", "b", "-o", "all"]);
    assert_eq!(all["processes"]["total"], 1);
    assert_eq!(
        (&all["tools"][0]["instances"], &all["tools"][0]["name"]),
        (&1.into(), &"gulmc".into())
    );
    let peak = all["figures"]["memory_rss_peak_bytes"]["value"].as_f64().unwrap();
    is_within("memory", peak, (SIZE, SIZE + 8.0 * MIB));
    assert_eq!(all["run"]["stopped"], "ended");
}

#[test]
fn recordings_that_cannot_be_merged_give_an_error_of_three_lines() {
    let directory = place();
    let path = directory.path();
    let arguments = ["run", "-q", "-o", "one", "--", "./gulmc", "sleep", "20ms"];
    assert!(output(&mut weigh(path, &arguments)).status.success());
    fs::create_dir(path.join("empty")).unwrap();
    fs::create_dir(path.join("full")).unwrap();
    fs::write(path.join("full/file"), "").unwrap();
    for (arguments, code, says) in [
        (&["one"][..], 2, "two or more"),
        (&["one", "one"], 2, "the same run"),
        (&["one", "empty"], 1, "neither a recording"),
        (&["one", "nowhere"], 1, "nowhere"),
    ] {
        let done = output(&mut weigh(path, &[&["merge", "-o", "all"], arguments].concat()));
        let message = String::from_utf8(done.stderr).unwrap();
        assert_eq!((done.status.code(), message.lines().count()), (Some(code), 3), "{message}");
        assert!(message.contains(says), "{message}");
        assert!(!path.join("all").exists());
    }
    let arguments = ["run", "-q", "-o", "two", "--", "./gulmc", "sleep", "20ms"];
    assert!(output(&mut weigh(path, &arguments)).status.success());
    let done = output(&mut weigh(path, &["merge", "one", "two", "-o", "full"]));
    let message = String::from_utf8(done.stderr).unwrap();
    assert_eq!((done.status.code(), message.lines().count()), (Some(2), 3), "{message}");
    assert!(message.contains("full is not empty"), "{message}");
    assert_eq!(fs::read_dir(path.join("full")).unwrap().count(), 1);
    // Without -o it is written where recordings are, and is found there.
    let done = output(&mut weigh(path, &["merge", "one", "two", "--name", "both"]));
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let made = recordings(path).remove(0);
    assert!(made.to_string_lossy().ends_with("-both"), "{made:?}");
}
