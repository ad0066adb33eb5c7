//! The GPU file of perfmon, against a stand-in with known answers.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cards::{GIB, card, machine, measured_on};
use crate::python::{script, succeeds};
use crate::weighed::{output, weigh};

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
    assert!(code == 1 && message.contains("nv_gpu_metrics.json already exists"), "{message}");
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

#[test]
fn export_without_an_nvidia_gpu_is_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let arguments = ["run", "-q", "-o", "run", "--skip", "gpu", "--", "true"];
    assert!(output(&mut weigh(directory.path(), &arguments)).status.success());
    let (code, message) = export(directory.path(), "run", &[]);
    assert_eq!((code, message.lines().count()), (1, 3), "{message}");
    assert!(message.contains("weigh writes only nv_gpu_metrics.json yet"), "{message}");
    assert!(message.contains("no NVIDIA GPU is in the recording"), "{message}");
    assert!(!directory.path().join("job").exists());
    let (code, message) = export(directory.path(), "run", &["--ram-unit", "bytes"]);
    assert_eq!((code, message.lines().count()), (2, 3), "{message}");
    assert!(message.contains("perfmon has its own"), "{message}");
}
