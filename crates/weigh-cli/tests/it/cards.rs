//! The stand-in for NVIDIA's library, and scripts of what it answers.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

pub const GIB: u64 = 1 << 30;

/// The stand-in: built by `cargo test` as an example, beside this binary.
pub fn library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let library = tests.parent().unwrap().parent().unwrap().join("examples/libnvml.so");
    assert!(
        library.exists(),
        "{} is missing: cargo build -p weigh-cli --examples",
        library.display()
    );
    library
}

/// A card that answers everything.
pub fn card(index: usize) -> Value {
    json!({
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": format!("GPU-00000000-0000-0000-0000-{index:012}"),
        "memory": {"total": 80 * GIB, "reserved": GIB, "free": 75 * GIB, "used": 4 * GIB},
        "bar1": {"total": 128 * GIB, "used": 1 << 20},
        "utilization": {"gpu": 90, "memory": 40},
        "encoder": 7,
        "decoder": 3,
        "power": 350_000,
        "power_limit": 700_000,
        "energy": 1_000_000,
        "temperature": 61,
        "fan": 30,
        "clocks": {"0": 1980, "1": 1980, "2": 2619},
        "throttle_reasons": 4,
        "violations": {
            "0": 2_000_000_000u64, "1": 0, "2": 0, "3": 0, "4": 0, "5": 0,
            "10": 2_000_000_000u64, "11": 0,
        },
        "ecc": {"0": {"0": 3, "1": 9}, "1": {"0": 0, "1": 1}},
        "pcie": {"throughput": {"0": 1000, "1": 2000}, "generation": 5, "width": 16, "replays": 2},
        "nvlink": {"138": 4096, "139": 8192},
        "gpm": {"2": 80.0, "3": 55.5, "5": 30.0, "10": 42.0, "11": 0.0, "12": 12.0, "13": 1.0},
        "compute": [],
        "graphics": [],
    })
}

/// A machine with these cards.
pub fn machine(cards: Vec<Value>) -> Value {
    json!({"driver": "575.57.08", "cuda": 12090, "devices": cards})
}

/// Writes a script at once whole: the stand-in may be reading it.
pub fn write(path: &Path, script: &Value) {
    let next = path.with_extension("next");
    std::fs::write(&next, serde_json::to_vec_pretty(script).unwrap()).unwrap();
    std::fs::rename(next, path).unwrap();
}
