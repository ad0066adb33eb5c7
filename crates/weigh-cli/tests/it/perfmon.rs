//! What perfmon would have written of GPUs, against a stand-in whose answers are known.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::cards::{GIB, card, machine, weighed_on};
use crate::python::{script, succeeds};
use crate::weighed::{output, weigh};

/// `weigh export RUN --as perfmon -o job`, with more words: its code and what it says.
fn export(directory: &Path, run: &str, more: &[&str]) -> (i32, String) {
    let words = [&["export", run, "--as", "perfmon", "-o", "job"], more].concat();
    let done = output(&mut weigh(directory, &words));
    (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
}

#[test]
fn perfmon_finds_what_the_cards_said_and_a_missing_fan_costs_nobody_else_a_value() {
    let mut bare = card(1);
    bare.as_object_mut().unwrap().remove("fan");
    // Policy 10 is what they ask for, and none of the others.
    bare["violations"]["10"] = json!(7_000_000_001u64);
    bare["clocks"] = json!({"0": 1410, "1": 1395, "2": 1215});
    bare["compute"] = json!([[5_000_000, GIB], [5_000_001, GIB]]);
    // One does both, and one only draws.
    bare["graphics"] = json!([[5_000_000, GIB], [5_000_002, GIB]]);
    let line = "readings 12; sed s/350000/123456/ \"$WEIGH_STAND_IN\" > next; \
                mv next \"$WEIGH_STAND_IN\"; readings 120";
    let run = weighed_on(&machine(vec![card(0), bare]), &["-i", "50ms"], line);
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    let directory = run.directory.path();
    let (code, said) = export(directory, "run", &[]);
    let warning = "weigh: warning: fan_speed is null: 1 of 2 GPUs did not report it\n";
    assert_eq!((code, said.as_str()), (0, warning));

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
        // With what the driver keeps for itself, as the call that perfmon makes has it.
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

    // A directory with a recording for each node is all of them; what is there stays.
    let (code, said) = export(directory, ".", &[]);
    assert!(code == 1 && said.contains("nv_gpu_metrics.json already exists"), "{said}");
    assert_eq!(export(directory, ".", &["--force"]), (0, warning.to_owned()));
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    let copy =
        output(std::process::Command::new("cp").args(["-r", "run", "copy"]).current_dir(directory));
    assert!(copy.status.success());
    let (code, said) = export(directory, ".", &["--force"]);
    assert!(code == 1 && said.contains("two of the recordings are of"), "{said}");
    fs::write(directory.join("copy/run.json"), "{").unwrap();
    let (code, said) = export(directory, ".", &["--force"]);
    assert!(code == 0 && said.contains("left out: ./copy/run.json"), "one is damaged: {said}");
}

#[test]
fn without_an_nvidia_gpu_it_is_said_that_there_is_nothing_yet() {
    let directory = tempfile::tempdir().unwrap();
    let words = ["run", "-q", "-o", "run", "--skip", "gpu", "--", "true"];
    assert!(output(&mut weigh(directory.path(), &words)).status.success());
    let (code, said) = export(directory.path(), "run", &[]);
    assert_eq!((code, said.lines().count()), (1, 3), "{said}");
    assert!(said.contains("weigh writes only nv_gpu_metrics.json yet"), "{said}");
    assert!(said.contains("no NVIDIA GPU is in the recording"), "{said}");
    assert!(!directory.path().join("job").exists());
    let (code, said) = export(directory.path(), "run", &["--ram-unit", "bytes"]);
    assert_eq!((code, said.lines().count()), (2, 3), "{said}");
    assert!(said.contains("perfmon has its own"), "{said}");
}
