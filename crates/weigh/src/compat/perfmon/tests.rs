//! The file of runs with known values.

use serde_json::{Value, json};

use super::*;
use crate::catalog::metrics::{
    DomainEnergy, GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle, NetworkTraffic,
    NodeCpu, PortTraffic, ProcessCpu, ProcessIo, ProcessMemory, ProcessState,
};
use crate::export::tests::small_machine;
use crate::model::{Entity, Gpu, Name, Tick};
use crate::record::Event;
use crate::testing::{CHILD, FakeRun, MAIN, MIB};

fn add_gpu(run: &mut FakeRun, name: &str) {
    let gpu = Gpu { name: name.to_owned(), ..Gpu::default() };
    run.event(0.0, Event::Gpu(Box::new(gpu)));
}

/// A sample of a card that reports everything, with this utilization in percent.
fn card(tick: &mut Tick, name: &str, busy: u64) {
    let entity = Entity::Named(Name::new(name.as_bytes()));
    let activity = GpuActivity {
        utilization: Some(busy as f64 / 100.0),
        memory_utilization: Some(0.29),
        encoder: Some(0.07),
        decoder: Some(0.03),
        // One of them is a graphics process; perfmon counts compute processes.
        processes: Some(3),
        processes_computing: Some(2),
        ..GpuActivity::default()
    };
    tick.put(entity, &activity);
    // The driver reserves a gigabyte: neither free nor used by a process; perfmon counts it.
    let (used, free) = (Some(3_294_967_296), Some(75_705_032_704));
    let (total, bar1_used) = (Some(80_000_000_000), Some(1_048_576));
    tick.put(entity, &GpuMemory { used, free, total, bar1_used, ..GpuMemory::default() });
    let power = GpuPower {
        draw: Some(350.123),
        temperature: Some(61.0),
        fan: Some(0.3),
        clock_graphics: Some(1.98e9),
        clock_sm: Some(1.965e9),
        clock_memory: Some(2.619e9),
        ..GpuPower::default()
    };
    tick.put(entity, &power);
    let below_application_clocks = Some(2_000_000_123.0 / 1e9);
    tick.put(entity, &GpuThrottle { below_application_clocks, ..GpuThrottle::default() });
    let (corrected_lifetime, uncorrected_lifetime) = (Some(9), Some(1));
    // Since the driver was loaded: not what perfmon has.
    let (corrected, uncorrected) = (Some(7), Some(8));
    let ecc = GpuEcc {
        corrected,
        uncorrected,
        corrected_lifetime,
        uncorrected_lifetime,
        ..GpuEcc::default()
    };
    tick.put(entity, &ecc);
    let (pcie_received, pcie_sent) = (Some(2_000_000), Some(1_000_000));
    tick.put(entity, &GpuLink { pcie_received, pcie_sent, ..GpuLink::default() });
}

/// A recording of one host, with samples of its cards at these times.
fn node(
    host: &str,
    interval: f64,
    cards: &[&str],
    samples: &[f64],
) -> (tempfile::TempDir, Recording) {
    let mut run = small_machine();
    run.manifest.host.name = host.to_owned();
    run.manifest.interval_seconds = interval;
    cards.iter().for_each(|name| add_gpu(&mut run, name));
    for (sample, seconds) in samples.iter().enumerate() {
        run.sample(*seconds, |tick| {
            for name in cards {
                card(tick, name, sample as u64);
            }
        });
    }
    run.recorded(samples.last().copied().unwrap_or(1.0), 1.0)
}

/// The text of the file of the GPUs, and what is missing in it.
fn exported(recordings: &[Recording]) -> (String, Vec<String>) {
    let directory = tempfile::tempdir().unwrap();
    let done = export(recordings, &[], directory.path(), false).unwrap();
    let path = directory.path().join("metrics/nv_gpu_metrics.json");
    assert!(done.files.contains(&path), "{:?}", done.files);
    let left = std::fs::read_dir(path.parent().unwrap()).unwrap().count();
    assert_eq!(left, done.files.len() - 1, "nothing else is left there but the log beside it");
    let is_of_gpus = |line: &String| {
        !line.contains("nodes did not report") && !line.contains("no sample was a row")
    };
    (std::fs::read_to_string(path).unwrap(), done.missing.into_iter().filter(is_of_gpus).collect())
}

fn read(recordings: &[Recording]) -> (Value, Vec<String>) {
    let (text, missing) = exported(recordings);
    (serde_json::from_str(&text).unwrap(), missing)
}

#[test]
fn file_of_one_card_is_the_same_as_perfmons_to_the_byte() {
    let (_run, recording) = node("node-a", 30.0, &["nvidia0"], &[0.2, 30.1]);
    let (text, missing) = exported(&[recording]);
    let pairs = [
        ("clock_info/graphics", "1980", "1980"),
        ("clock_info/memory", "2619", "2619"),
        ("clock_info/sm", "1965", "1965"),
        ("decoder_util", "3", "3"),
        ("ecc_errors/dp", "1", "1"),
        ("ecc_errors/sp", "9", "9"),
        ("encoder_util", "7", "7"),
        ("fan_speed", "30", "30"),
        ("memory_used/bar1_memory", "1048576", "1048576"),
        ("memory_used/gpu_memory", "4294967296", "4294967296"),
        ("num_procs", "2", "2"),
        ("pci_thgpt/recv", "2000", "2000"),
        ("pci_thgpt/send", "1000", "1000"),
        ("power_usage", "350123", "350123"),
        ("temperature", "61", "61"),
        ("time_stamps", "1700000000", "1700000030"),
        ("utilization_rates/gpu", "0", "1"),
        ("utilization_rates/memory", "29", "29"),
        ("violation", "2000000123", "2000000123"),
    ];
    // As json.dumps(…, indent=4, sort_keys=True) would: written down a second time, in lines.
    let mut lines = vec!["{".to_owned(), "    \"gpu-0.node-a\": {".to_owned()];
    let mut outer = "";
    for (key, first, second) in pairs {
        let (group, name) = key.split_once('/').unwrap_or(("", key));
        if !outer.is_empty() && group != outer {
            lines.push("        },".to_owned());
        }
        if !group.is_empty() && group != outer {
            lines.push(format!("        \"{group}\": {{"));
        } else if !group.is_empty() {
            let last: &mut String = lines.last_mut().unwrap();
            last.push(',');
        }
        let indent = if group.is_empty() { 8 } else { 12 };
        let line = |text: String, deeper: usize| format!("{:1$}{text}", "", indent + deeper);
        lines.push(line(format!("\"{name}\": ["), 0));
        lines.push(line(format!("{first},"), 4));
        lines.push(line(second.to_owned(), 4));
        let comma = if group.is_empty() && name != "violation" { "," } else { "" };
        lines.push(line(format!("]{comma}"), 0));
        outer = group;
    }
    let rest = "    },\n    \"host_names\": [\n        \"gpu-0.node-a\"\n    ],\n    \
                \"sampling_frequency\": 30\n}";
    lines.push(rest.to_owned());
    assert_eq!(text, lines.join("\n"));
    assert_eq!(missing, [""; 0]);
}

#[test]
fn a_card_without_a_fan_has_nulls_for_it_and_the_others_keep_theirs() {
    let mut run = small_machine();
    ["nvidia0", "nvidia1", "nvidia2"].iter().for_each(|name| add_gpu(&mut run, name));
    for second in [0.0, 1.0, 2.0] {
        run.sample(second, |tick| {
            card(tick, "nvidia0", 5);
            card(tick, "nvidia1", 6);
            let bare = Entity::Named(Name::new(b"nvidia2"));
            tick.put(bare, &GpuPower { temperature: Some(40.0), ..GpuPower::default() });
        });
    }
    // The driver did not answer: the card is there, without values.
    run.sample(3.0, |tick| {
        let silent = Entity::Named(Name::new(b"nvidia0"));
        tick.put(silent, &GpuActivity::default());
    });
    let (_run, recording) = run.recorded(3.0, 1.0);
    let (file, missing) = read(&[recording]);
    let (whole, bare) = (&file["gpu-0.node-a"], &file["gpu-2.node-a"]);
    assert_eq!(bare["fan_speed"], json!([null, null, null]));
    assert_eq!(bare["temperature"], json!([40, 40, 40]));
    assert_eq!(whole["fan_speed"], json!([30, 30, 30, null]));
    assert_eq!(whole["time_stamps"].as_array().unwrap().len(), 4);
    assert_eq!(file["gpu-1.node-a"]["fan_speed"], json!([30, 30, 30]));
    assert_eq!(missing.len(), 17, "all lists of one card but two: {missing:?}");
    let message = "fan_speed is null: 1 of 3 GPUs did not report it".to_owned();
    assert!(missing.contains(&message), "{missing:?}");
    let dp = "ecc_errors.dp is null: 1 of 3 GPUs did not report it".to_owned();
    assert!(missing.contains(&dp), "{missing:?}");
}

#[test]
fn rows_are_an_interval_apart_and_never_two_of_a_second() {
    let stamps = |interval, samples: &[f64]| {
        let (_run, recording) = node("node-a", interval, &["nvidia0"], samples);
        let (file, _) = read(&[recording]);
        let card = &file["gpu-0.node-a"];
        let begin = 1_700_000_000;
        let stamps = card["time_stamps"].as_array().unwrap().iter();
        let stamps: Vec<i64> = stamps.map(|stamp| stamp.as_i64().unwrap() - begin).collect();
        (file["sampling_frequency"].clone(), stamps, card["utilization_rates"]["gpu"].clone())
    };
    // Ten samples a second: perfmon has whole seconds, so there is a row for each second.
    let often: Vec<f64> = (0..25).map(|sample| f64::from(sample) / 10.0).collect();
    assert_eq!(stamps(0.1, &often), (json!(1), vec![0, 1, 2], json!([0, 10, 20])));
    // More samples at the start of the run and of phases; one late, and the next at once.
    let odd = [0.0, 0.005, 0.64, 2.001, 3.5, 5.9, 6.0, 8.0];
    assert_eq!(stamps(2.0, &odd), (json!(2), vec![0, 2, 5, 8], json!([0, 3, 5, 7])));
    let (step, seconds, _) = stamps(1.5, &[0.0, 1.5, 3.0, 4.5]);
    assert_eq!((step, seconds), (json!(1.5), vec![0, 1, 3, 4]));
}

#[test]
fn second_with_a_row_gets_no_other_one() {
    let started = jiff::Timestamp::from_nanosecond(1_700_000_000_999_500_000).unwrap();
    let mut seconds = Seconds::new(started, RowSpacing::of(Duration::from_secs(1)));
    let mut second = |millis: f64| {
        let second = seconds.of(Duration::from_secs_f64(millis / 1e3));
        second.map(|second| second - 1_700_000_000)
    };
    // Samples are a little late, and some fall into the next second.
    assert_eq!(second(0.0), Some(0));
    assert_eq!(second(1000.1), Some(1));
    assert_eq!(second(2000.8), Some(3));
    assert_eq!(second(3000.1), None);
    assert_eq!(second(4000.1), Some(4));
}

#[test]
fn nodes_are_separated_by_host_and_one_without_a_gpu_is_reported() {
    let (_a, a) = node("node-a", 1.0, &["nvidia0", "nvidia10", "nvidia2"], &[0.0, 1.0, 2.0]);
    let (_b, b) = node("node-b", 2.0, &["nvidia0", "amd0", "nvidia0:1"], &[0.0, 2.0]);
    let (_c, c) = node("node-c", 1.0, &[], &[]);
    let (text, missing) = exported(&[b, c, a]);
    let file: Value = serde_json::from_str(&text).unwrap();
    let names = ["gpu-0.node-a", "gpu-0.node-b", "gpu-10.node-a", "gpu-2.node-a"];
    assert_eq!(file["host_names"], json!(names));
    assert_eq!(file["sampling_frequency"], json!(2), "that of all of them");
    assert_eq!(file["gpu-0.node-a"]["utilization_rates"]["gpu"], json!([0, 2]));
    assert_eq!(file["gpu-0.node-b"]["utilization_rates"]["gpu"], json!([0, 1]));
    let places: Vec<usize> =
        names.map(|name| text.find(&format!("    \"{name}\": {{")).unwrap()).to_vec();
    assert!(places.is_sorted(), "{places:?}");
    let message = [
        "node-b: metrics/nv_gpu_metrics.json has no amd0: it is not an NVIDIA GPU",
        "node-b: metrics/nv_gpu_metrics.json has no nvidia0:1: it is a MIG instance, and \
        perfmon has only whole GPUs",
    ];
    assert_eq!(missing[..2], message);
    assert!(missing[2].starts_with("node-c: ") && missing.len() == 3, "{missing:?}");
}

#[test]
fn run_without_nvidia_gpus_has_no_file_of_them_and_one_of_two_nodes_of_a_name_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let (_run, recording) = node("node-a", 1.0, &["amd0"], &[0.0, 1.0]);
    let done = export(&[recording], &[], directory.path(), false).unwrap();
    assert!(!directory.path().join(NV_GPU).exists());
    assert!(done.missing[0].contains("has no amd0: it is not an NVIDIA GPU"), "{done:?}");
    let twice = [0, 1].map(|_| node("node-a", 1.0, &["nvidia0"], &[0.0]));
    let [(_one, one), (_other, other)] = twice;
    let refused = export(&[one, other], &[], &directory.path().join("other"), false).unwrap_err();
    assert_eq!(refused.to_string(), "two of the recordings are of node-a");
    assert!(!directory.path().join("other").exists());
}

#[test]
fn merged_machines_are_separated_by_the_nodes_of_their_gpus() {
    let mut run = small_machine();
    let gpus = [
        ("node-a/nvidia0", "node-a"),
        ("2/nvidia0", "a-name-that-is-longer-than-names-may-be"),
        ("3/nvidia0", "node-a"),
        ("node-a/amd0", "node-a"),
    ];
    for (name, node) in gpus {
        let gpu = Gpu { node: Some(node.to_owned()), name: name.to_owned(), ..Gpu::default() };
        run.event(0.0, Event::Gpu(Box::new(gpu)));
    }
    run.sample(0.0, |tick| {
        gpus.iter().zip(1..).for_each(|((name, _), busy)| card(tick, name, busy));
    });
    let (_run, recording) = run.recorded(1.0, 1.0);
    let (written, missing) = read(&[recording]);
    let far = "gpu-0.a-name-that-is-longer-than-names-may-be";
    assert_eq!(written["host_names"], json!([far, "gpu-0.node-a"]));
    assert_eq!(written[far]["utilization_rates"]["gpu"], json!([2]));
    assert!(missing[0].ends_with("has no 3/nvidia0: another GPU of that host has its number"));
    assert!(missing[1].ends_with("has no node-a/amd0: it is not an NVIDIA GPU"));
}

#[test]
fn existing_files_stay_and_nothing_is_written_into_a_recording() {
    let (run, recording) = node("node-a", 1.0, &["nvidia0"], &[0.0]);
    let recordings = [recording];
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("metrics/nv_gpu_metrics.json");
    std::fs::create_dir(directory.path().join("metrics")).unwrap();
    std::fs::write(&path, "mine").unwrap();
    let refused = export(&recordings, &[], directory.path(), false);
    assert!(matches!(&refused, Err(Error::Exists { path: there }) if *there == path));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    export(&recordings, &[], directory.path(), true).unwrap();
    assert_ne!(std::fs::read_to_string(&path).unwrap(), "mine");
    let into = export(&recordings, &[], &run.path().join("run"), true);
    assert!(matches!(into, Err(Error::IntoRecording { .. })), "{into:?}");
}

/// Values of a process: seconds of CPU time, MiB of each kind of memory, and one of everything else.
fn process(tick: &mut Tick, id: crate::model::ProcessId, seconds: f64, mib: u64) {
    let entity = Entity::Process(id);
    let (user, system) = (Some(seconds), Some(seconds / 2.0));
    let children = Some(0.0);
    tick.put(
        entity,
        &ProcessCpu {
            user,
            system,
            children_user: children,
            children_system: children,
            ..ProcessCpu::default()
        },
    );
    let memory = ProcessMemory {
        rss: Some(4 * mib * MIB),
        pss: Some(3 * mib * MIB),
        uss: Some(2 * mib * MIB),
        swap: Some(mib * MIB),
        ..ProcessMemory::default()
    };
    tick.put(entity, &memory);
    let (threads, files_open) = (Some(2), Some(5));
    tick.put(entity, &ProcessState { threads, files_open, ..ProcessState::default() });
    let io = ProcessIo {
        read: Some(7),
        written: Some(7),
        read_calls: Some(1),
        write_calls: Some(2),
        storage_read: Some(4096),
        storage_written: Some(8192),
    };
    tick.put(entity, &io);
}

/// Counters of the machine after so many seconds.
fn counters(tick: &mut Tick, seconds: u64) {
    let cpu = |time: u64| Some(time as f64);
    let node = NodeCpu {
        user: cpu(seconds),
        nice: Some(0.0),
        system: Some(0.0),
        idle: cpu(3 * seconds),
        ..NodeCpu::default()
    };
    tick.put(Entity::Single, &node);
    let named = |name: &str| Entity::Named(Name::new(name.as_bytes()));
    for name in ["lo", "eth0"] {
        let traffic = NetworkTraffic {
            received: Some(1000 * seconds),
            sent: Some(100 * seconds),
            packets_received: Some(10 * seconds),
            packets_sent: Some(seconds),
            ..NetworkTraffic::default()
        };
        tick.put(named(name), &traffic);
    }
    let port = PortTraffic {
        received: Some(40),
        sent: Some(400),
        packets_received: Some(10),
        packets_sent: Some(11),
        ..PortTraffic::default()
    };
    ["mlx5_0/1", "mlx5_1/1"].iter().for_each(|name| tick.put(named(name), &port));
    for (name, used) in [("package-0", 2.5), ("package-0/dram", 0.25), ("psys", 9.0)] {
        tick.put(named(name), &DomainEnergy { used: Some(used) });
    }
}

/// Two processes and counters of the machine, over two intervals.
fn cpu_node(host: &str) -> (tempfile::TempDir, Recording) {
    let mut run = small_machine();
    run.manifest.host.name = host.to_owned();
    run.manifest.interval_seconds = 10.0;
    run.starts(0.0, MAIN, "work").starts_under(0.0, CHILD, MAIN.pid, "child");
    for step in 0..3 {
        run.sample(10.0 * step as f64, |tick| {
            process(tick, MAIN, 2.0 * step as f64, 10);
            process(tick, CHILD, 4.0 * step as f64, 1);
            counters(tick, 10 * step + 1);
        });
    }
    run.recorded(20.0, 1.0)
}

#[test]
fn cpu_metrics_are_sums_of_each_metric_by_itself_over_each_process_once() {
    let (_run, recording) = cpu_node("node-a");
    let directory = tempfile::tempdir().unwrap();
    let done = export(&[recording], &[], directory.path(), false).unwrap();
    let text = std::fs::read_to_string(directory.path().join(CPU_FILE)).unwrap();
    let file: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        (&file["host_names"], &file["sampling_frequency"]),
        (&json!(["node-a"]), &json!(10))
    );
    let node = &file["node-a"];
    let mib = |mib: u64| json!([mib * MIB, mib * MIB]);
    assert_eq!(node["time_stamps"], json!([1_700_000_010, 1_700_000_020]));
    assert_eq!(node["cpu_time"], json!([9.0, 18.0]), "user and system time of both");
    assert_eq!(node["cpu_percent"], json!([90.0, 90.0]));
    assert_eq!(node["cpu_percent_sys"], json!([25.0, 25.0]));
    // perfmon adds the first of these to the second, and both to a third.
    assert_eq!(node["memory_full_info"], json!({ "swap": mib(11), "uss": mib(22) }));
    assert_eq!(node["memory_info"], json!({ "rss": mib(44) }));
    let percent = (44 * MIB) as f64 / 8e9 * 100.0;
    assert_eq!(node["memory_percent"], json!([percent, percent]));
    assert_eq!(node["num_threads"], json!([4, 4]));
    assert_eq!(node["num_fds"], json!([10, 10]));
    assert_eq!(node["net_io_counters"]["bytes_recv"], json!([22_000, 42_000]));
    assert_eq!(node["net_io_counters"]["packets_sent"], json!([22, 42]));
    let both = |each: u64| json!([2 * each, 2 * each]);
    let ports = json!({
        "port_rcv_data": both(40),
        "port_rcv_packets": both(10),
        "port_xmit_data": both(400),
        "port_xmit_packets": both(11),
    });
    assert_eq!(node["ib_io_counters"], ports, "packets are not multiplied by four");
    let energy = json!({ "dram-0": [250_000, 250_000], "package-0": [2_500_000, 2_500_000] });
    assert_eq!(node["rapl_powercap"], energy);
    assert_eq!((&node["child_proc_md"], &node["parent_proc_md"]), (&json!([]), &json!({})));
    assert!(!done.missing.iter().any(|what| what.contains("cpu_")), "{done:?}");
}

#[test]
fn tables_have_a_row_for_each_host_and_time_under_perfmons_heads() {
    let (_b, b) = cpu_node("node-b");
    let (_a, a) = cpu_node("node-a");
    let recordings = [b, a];
    let directory = tempfile::tempdir().unwrap();
    let formats = [ExportFormat::Csv];
    export(&recordings, &formats, directory.path(), false).unwrap();
    let text = std::fs::read_to_string(directory.path().join("cpu_metrics.csv")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("Host,Timestamps,CPU percent [%],"), "{}", lines[0]);
    assert!(lines[0].contains(",IB recv data [bytes],"), "{}", lines[0]);
    assert!(lines[0].ends_with(",RAPL dram 0 [uJ],RAPL package 0 [uJ]"), "{}", lines[0]);
    let heads: Vec<String> = lines[1..]
        .iter()
        .map(|line| line.split(',').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    let expected =
        ["node-a", "node-b"].map(|host| [10, 20].map(|at| format!("{host} 17000000{at}")));
    assert_eq!(heads, expected.concat());
    let log = std::fs::read_to_string(directory.path().join(log::FILE)).unwrap();
    assert!(log.starts_with("2023-11-14 22:13:20 | INFO | node-"), "{log}");
}

#[test]
fn metadata_has_the_hardware_of_each_node_and_null_for_what_is_unknown() {
    let (_run, recording) = cpu_node("node-a");
    let document = meta_data::document(&[&recording]).unwrap();
    let document: Value = serde_json::from_slice(&document).unwrap();
    assert_eq!(document["host_names"], json!(["node-a"]));
    assert_eq!(
        (&document["node-a"]["CPU_num"], &document["node-a"]["CPU_Model"]),
        (&json!(4), &Value::Null)
    );
}
