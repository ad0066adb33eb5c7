//! perfmon's files: that of GPUs against a stand-in with known answers, and weigh under its name.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cards::{GIB, card, machine, measured_on};
use crate::python::{script, succeeds};
use crate::weighed::{burner, end_of, output, plain, wait_until, weigh, weigh_path};

/// `weigh export RUN --as perfmon -o job`, with more arguments: its exit code and stderr.
fn export(directory: &Path, run: &str, more: &[&str]) -> (i32, String) {
    let arguments = [&["export", run, "--as", "perfmon", "-o", "job"], more].concat();
    let done = output(&mut weigh(directory, &arguments));
    (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn perfmon_file_has_the_values_of_the_cards_and_only_a_missing_fan_is_null() {
    let mut bare = card(1);
    bare.as_object_mut().unwrap().remove("fan");
    // perfmon queries policy 10, and none of the others.
    bare["violations"]["10"] = json!(7_000_000_001u64);
    bare["clocks"] = json!({"0": 1410, "1": 1395, "2": 1215});
    bare["compute"] = json!([[5_000_000, GIB], [5_000_001, GIB]]);
    // One process computes and draws, one only draws.
    bare["graphics"] = json!([[5_000_000, GIB], [5_000_002, GIB]]);
    let line = "readings 12; sed s/350000/123456/ \"$WEIGH_STAND_IN\" > next; \
                mv next \"$WEIGH_STAND_IN\"; readings 120";
    let run = measured_on(&machine(vec![card(0), bare]), &["-i", "50ms"], line);
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    let directory = run.directory.path();
    let (code, message) = export(directory, "run", &[]);
    let warning = "weigh: warning: fan_speed is null: 1 of 2 GPUs did not report it\n";
    assert_eq!((code, message.as_str()), (0, warning));

    let path = directory.join("job/metrics/nv_gpu_metrics.json");
    let text = fs::read_to_string(&path).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    let host = &run.summary["host"]["name"];
    let names = [0, 1].map(|card| format!("gpu-{card}.{}", host.as_str().unwrap()));
    assert_eq!((&file["host_names"], &file["sampling_frequency"]), (&json!(names), &json!(1)));
    assert_eq!(file.as_object().unwrap().len(), 4);
    let (whole, bare) = (&file[&names[0]], &file[&names[1]]);
    let stamps = |card: &Value| -> Vec<i64> {
        card["time_stamps"].as_array().unwrap().iter().map(|one| one.as_i64().unwrap()).collect()
    };
    let seconds = stamps(whole);
    assert!(seconds.len() >= 2 && seconds.is_sorted_by(|one, next| one < next), "{seconds:?}");
    assert_eq!(stamps(bare), seconds);
    let all = |value: Value| Value::Array(vec![value; seconds.len()]);
    for (place, first, second) in [
        ("/clock_info/graphics", json!(1980), json!(1410)),
        ("/clock_info/sm", json!(1980), json!(1395)),
        ("/clock_info/memory", json!(2619), json!(1215)),
        ("/ecc_errors/dp", json!(1), json!(1)),
        ("/ecc_errors/sp", json!(9), json!(9)),
        // With memory reserved by the driver, as in the call that perfmon makes.
        ("/memory_used/gpu_memory", json!(5 * GIB), json!(5 * GIB)),
        ("/memory_used/bar1_memory", json!(1 << 20), json!(1 << 20)),
        ("/utilization_rates/gpu", json!(90), json!(90)),
        ("/utilization_rates/memory", json!(40), json!(40)),
        ("/encoder_util", json!(7), json!(7)),
        ("/decoder_util", json!(3), json!(3)),
        ("/violation", json!(2_000_000_000u64), json!(7_000_000_001u64)),
        ("/temperature", json!(61), json!(61)),
        ("/fan_speed", json!(30), Value::Null),
        ("/num_procs", json!(0), json!(2)),
        ("/pci_thgpt/send", json!(1000), json!(1000)),
        ("/pci_thgpt/recv", json!(2000), json!(2000)),
    ] {
        assert_eq!(whole.pointer(place), Some(&all(first)), "{place} of the first");
        assert_eq!(bare.pointer(place), Some(&all(second)), "{place} of the second");
    }
    for card in [whole, bare] {
        let power = card["power_usage"].as_array().unwrap();
        assert_eq!((&power[0], power.last()), (&json!(350_000), Some(&json!(123_456))));
    }

    if let Some(mut python) = script("perfmon.py", directory) {
        let read: Value = serde_json::from_str(&succeeds(python.arg(&path))).unwrap();
        assert_eq!(read["same"], true, "byte for byte");
        let lengths = &read["lengths"];
        assert_eq!([&lengths[&names[0]], &lengths[&names[1]]], [&json!([seconds.len()]); 2]);
    }

    // A directory with a recording for each node means all of them; existing files stay.
    let (code, message) = export(directory, ".", &[]);
    assert!(code == 1 && message.contains("meta_data.json already exists"), "{message}");
    assert_eq!(export(directory, ".", &["--force"]), (0, warning.to_owned()));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let copy =
        output(std::process::Command::new("cp").args(["-r", "run", "copy"]).current_dir(directory));
    assert!(copy.status.success());
    let (code, message) = export(directory, ".", &["--force"]);
    assert!(code == 1 && message.contains("two of the recordings are of"), "{message}");
    fs::write(directory.join("copy/run.json"), "{").unwrap();
    let (code, message) = export(directory, ".", &["--force"]);
    assert!(
        code == 0 && message.contains("left out: ./copy/run.json"),
        "one is damaged: {message}"
    );
}

/// The lists of a node by perfmon's documentation, which are all of numbers; `vms` and `shared` are
/// not measured, and the others are there where the machine has them.
const LISTS: [&str; 23] = [
    "cpu_percent",
    "cpu_percent_sys",
    "cpu_time",
    "io_counters/read_bytes",
    "io_counters/read_count",
    "io_counters/write_bytes",
    "io_counters/write_count",
    "memory_full_info/swap",
    "memory_full_info/uss",
    "memory_info/rss",
    "memory_percent",
    "net_io_counters/bytes_recv",
    "net_io_counters/bytes_sent",
    "net_io_counters/packets_recv",
    "net_io_counters/packets_sent",
    "num_fds",
    "num_threads",
    "time_stamps",
    "ib_io_counters/port_rcv_data",
    "ib_io_counters/port_rcv_packets",
    "ib_io_counters/port_xmit_data",
    "ib_io_counters/port_xmit_packets",
    "rapl_powercap/package-0",
];

/// Fails unless this is `cpu_metrics.json` by perfmon's documentation; returns its hosts.
pub(crate) fn is_by_schema(file: &Value) -> Vec<String> {
    let whole = file.as_object().unwrap();
    let hosts = file["host_names"].as_array().unwrap();
    let hosts: Vec<String> = hosts.iter().map(|host| host.as_str().unwrap().to_owned()).collect();
    assert!(file["sampling_frequency"].is_number());
    assert_eq!(whole.len(), hosts.len() + 2, "{:?}", whole.keys());
    for host in &hosts {
        let node = &file[host];
        assert_eq!((&node["child_proc_md"], &node["parent_proc_md"]), (&json!([]), &json!({})));
        let rows = node["time_stamps"].as_array().unwrap().len();
        for (place, name) in LISTS.iter().enumerate() {
            let Some(list) = node.pointer(&format!("/{name}")) else {
                assert!(place >= 18, "{name} is missing: {node}");
                continue;
            };
            let list = list.as_array().unwrap();
            assert!(list.len() == rows && list.iter().all(Value::is_number), "{name}: {list:?}");
        }
    }
    hosts
}

#[test]
fn cpu_metrics_have_perfmons_schema_and_the_values_of_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let arguments = ["run", "-q", "-i", "1s", "-o", "run", "--skip", "gpu", "--"];
    let mut run = weigh(here, &arguments);
    run.arg(burner()).args(["touch", "64MiB", "2500ms"]);
    assert!(output(&mut run).status.success());
    let (code, message) = export(here, "run", &["-f", "csv,parquet,feather,orc,pickle,hdf5"]);
    assert_eq!(code, 0, "{message}");
    let read = |name: &str| -> Value {
        serde_json::from_slice(&fs::read(here.join("job").join(name)).unwrap()).unwrap()
    };
    let file = read("metrics/cpu_metrics.json");
    let hosts = is_by_schema(&file);
    let summary = output(&mut weigh(here, &["show", "run", "--format", "json"]));
    let summary: Value = serde_json::from_slice(&summary.stdout).unwrap();
    assert_eq!(json!(hosts), json!([summary["host"]["name"]]));
    let node = &file[&hosts[0]];
    let last = |name: &str| node.pointer(name).unwrap().as_array().unwrap().last().unwrap().clone();
    let mib = 1024.0 * 1024.0;
    let rss = last("/memory_info/rss").as_f64().unwrap() / mib;
    assert!((64.0..80.0).contains(&rss), "{node}");
    assert_eq!(last("/num_threads"), json!(1));
    assert!(!here.join("job/metrics/nv_gpu_metrics.json").exists());
    assert_eq!(read("metrics/meta_data.json")["host_names"], json!(hosts));
    let tables = ["csv", "parquet", "feather", "orc", "pkl", "h5"];
    tables.iter().for_each(|end| assert!(here.join(format!("job/cpu_metrics.{end}")).exists()));
    let log = fs::read_to_string(here.join("job/ska_sdp_monitoring_metrics.log")).unwrap();
    assert!(log.contains("the recording has ended"), "{log}");
}

#[test]
fn options_of_other_tools_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (code, message) = export(directory.path(), "run", &["--ram-unit", "bytes"]);
    assert_eq!((code, message.lines().count()), (2, 3), "{message}");
    assert!(message.contains("perfmon has its own"), "{message}");
    let arguments = ["export", "run", "--as", "oasis", "-f", "csv"];
    let refused = output(&mut weigh(directory.path(), &arguments));
    assert_eq!(refused.status.code(), Some(2));
}

/// A process that ends with the test.
struct Killed(std::process::Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn weigh_called_perfmon_takes_its_options_and_writes_its_files() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    std::os::unix::fs::symlink(weigh_path(), here.join("perfmon")).unwrap();
    let job = "8.perfmon-of-weigh";
    let variables = |command: &mut std::process::Command| {
        ["SLURM_JOB_ID", "OAR_JOB_ID", "FLUX_JOB_ID", "FLUX_URI", "PBS_NODEFILE"].iter().for_each(
            |name| {
                command.env_remove(name);
            },
        );
        command.env("PBS_JOBID", job).env("OUT", "results");
    };
    let mut load = plain(burner(), here);
    variables(load.args(["sleep", "1000s"]));
    let _load = Killed(load.spawn().unwrap());
    let options = ["-d", "$OUT", "-p", "one", "-i", "1", "-r", "-v", "-e", "csv", "--env", "hot"];
    let mut perfmon = plain(here.join("perfmon"), here);
    variables(perfmon.args(options).stderr(std::process::Stdio::piped()));
    let perfmon = perfmon.spawn().unwrap();
    let save = here.join("results/one");
    let nodes = save.join(format!("weigh-runs/job-{job}"));
    let sampled = || {
        let directory = nodes.display().to_string();
        let shown = output(&mut weigh(here, &["job", "show", &directory, "--format", "json"]));
        let shown: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        shown["nodes"][0]["duration_seconds"].as_f64().is_some_and(|seconds| seconds > 1.0)
    };
    wait_until("samples are recorded", sampled);
    fs::write(here.join(format!(".ipc-{job}")), "FINISHED\n").unwrap();
    let ended = end_of(perfmon);
    let told = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{told}");
    let file = fs::read(save.join("metrics/cpu_metrics.json")).unwrap();
    assert_eq!(is_by_schema(&serde_json::from_slice(&file).unwrap()).len(), 1);
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap().trim().to_owned();
    for name in [
        "cpu_metrics.csv".to_owned(),
        "metrics/meta_data.json".to_owned(),
        "plots/CPU_Load_per_node.png".to_owned(),
        "plots/Total_Output_Traffic_all_nodes.png".to_owned(),
        format!("configs/{host}_run_config.yml"),
    ] {
        assert!(save.join(&name).exists(), "{name}: {told}");
    }
    let run = fs::read_to_string(nodes.join(&host).join("run.json")).unwrap();
    let run: Value = serde_json::from_str(&run).unwrap();
    assert_eq!(run["labels"]["env"], "hot");
    let outside = output(plain(here.join("perfmon"), here).env_remove("SLURM_JOB_ID"));
    assert_eq!(outside.status.code(), Some(2), "{}", String::from_utf8_lossy(&outside.stderr));
}
