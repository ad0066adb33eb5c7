//! The stand-in implements NVML as NVIDIA's own clients use it; and the vendors' own libraries.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::cards::{self, GIB, card};
use crate::python;
use crate::weighed::{PublicPrograms, impossible, output, skipped, weigh};

#[test]
fn clients_of_nvidia_can_use_the_stand_in() {
    let directory = tempfile::tempdir().unwrap();
    let Some(mut client) = python::script("nvml_client.py", directory.path()) else { return };
    let mut full = card(0);
    full["compute"] = json!([[4182, 3 * GIB], [4183, GIB]]);
    full["mps"] = json!([[4184, GIB]]);
    full["samples"] = json!({"1": [[1_000_000, 50], [1_100_000, 75]]});
    full["process_samples"] = json!([[4182, 1_000_000, 60, 20, 0, 5]]);
    full["accounting"] = json!({"4182": {"max_memory": 5 * GIB, "time": 1000}});
    full["migs"] = json!([{"uuid": "MIG-1", "name": "MIG 1g.10gb"}]);
    let mut bare = full.clone();
    bare.as_object_mut().unwrap().remove("fan");
    let script = directory.path().join("script.json");
    cards::write(&script, &cards::machine(vec![full, bare]));
    std::os::unix::fs::symlink(cards::library(), directory.path().join("libnvidia-ml.so.1"))
        .unwrap();
    client.env("LD_LIBRARY_PATH", directory.path()).env("WEIGH_STAND_IN", &script);
    let found: Value = serde_json::from_str(&python::succeeds(&mut client)).unwrap();
    let expected = json!({
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-00000000-0000-0000-0000-000000000000",
        // The first version of this call counts memory reserved by the driver as used.
        "memory": [80 * GIB, 75 * GIB, 5 * GIB],
        "reserved": GIB,
        "bar1": [128 * GIB, 1 << 20],
        "utilization": [90, 40],
        "encoder": 7,
        "power": 350_000,
        "energy": 1_000_000,
        "temperature": 61,
        "fan": 30,
        "clocks": [1980, 1980, 2619],
        "throttled": 4,
        "violation": 2_000_000_000u64,
        "ecc": 9,
        "pcie": 1000,
        "width": 16,
        "link": 4096,
        "processes": [[4182, 3 * GIB], [4183, GIB]],
        "together": [[4184, GIB]],
        "samples": [[1_000_000, 50], [1_100_000, 75]],
        "process_samples": [[4182, 60, 5]],
        "peak": 5 * GIB,
        "running": 1,
        "parts": 7,
        "part": "MIG-1",
        "gpm": true,
    });
    assert_eq!(found[0], expected);
    assert_eq!(found[1]["fan"], json!({"code": 3}), "not supported");
}

/// A vendor's own library on a machine without its driver; `cargo xtask test` fetches it.
fn genuine(variable: &str, driver: &str) -> Option<std::ffi::OsString> {
    let library = std::env::var_os(variable);
    if library.is_none() {
        skipped("no library of the maker's own; run cargo xtask setup");
    } else if Path::new(driver).exists() {
        impossible("there is a driver here, and this is about a machine without one");
        return None;
    }
    library
}

/// The GPU collector in the output of doctor.
fn gpu_status(doctor: &[u8]) -> Value {
    let examined: Value = serde_json::from_slice(doctor).unwrap();
    let mut collectors = examined["collectors"].as_array().unwrap().iter();
    collectors.find(|one| one["name"] == "gpu").unwrap().clone()
}

#[test]
fn nvidias_own_library_reports_that_there_is_no_driver() {
    let driver = "/proc/driver/nvidia/version";
    let Some(library) = genuine("WEIGH_TEST_NVML", driver) else { return };
    // As nobody: for root the library creates a device in /dev, even without a driver.
    let programs = PublicPrograms::new();
    let copied = programs.path().join("libnvidia-ml.so.1");
    fs::copy(library, &copied).unwrap();
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let weigh = |arguments: &[&str]| {
        let mut weigh = programs.command("weigh", directory.path());
        output(weigh.args(arguments).env("WEIGH_NVML_LIBRARY", &copied))
    };
    let gpu = gpu_status(&weigh(&["doctor", "--format", "json"]).stdout);
    assert_eq!(gpu["state"], "absent");
    assert_eq!(gpu["why"], "no NVIDIA driver is loaded");

    let line = "until grep -q '\"fault\"' run/events.jsonl; do sleep 0.02; done";
    let run = weigh(&["run", "-o", "run", "-i", "10ms", "--", "sh", "-c", line]);
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let summary = fs::read(directory.path().join("run/summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    assert_eq!(summary["gpus"], json!([]));
    let faults = summary["monitor"]["faults"].to_string();
    assert!(faults.contains("no NVIDIA driver is loaded"), "{faults}");
}

#[test]
fn doctor_agrees_with_amds_own_library_that_there_is_no_driver() {
    let driver = "/sys/module/amdgpu";
    let Some(library) = genuine("WEIGH_TEST_ROCM_SMI", driver) else { return };
    let directory = tempfile::tempdir().unwrap();
    let Some(mut client) = python::script("rocm_smi.py", directory.path()) else { return };
    let answer = python::succeeds(client.arg(&library));
    assert_eq!(answer.trim(), "8", "RSMI_STATUS_INIT_ERROR");
    // weigh reads files of the kernel, so the library makes no difference.
    let places = [Some(Path::new(&library).parent().unwrap()), None];
    for place in places {
        let mut weigh = weigh(directory.path(), &["doctor", "--format", "json"]);
        weigh.envs(place.map(|place| ("LD_LIBRARY_PATH", place)));
        let gpu = gpu_status(&output(&mut weigh).stdout);
        let why = gpu["why"].as_str().unwrap();
        assert_eq!(gpu["state"], "absent");
        assert!(why.contains("no driver of AMD or Intel GPUs is loaded"), "{why}");
    }
}
