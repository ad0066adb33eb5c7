//! What GPUs add to a tick: eight NVIDIA GPUs with 200 processes on them, compared to the same
//! load without GPUs.
//!
//! The driver is the stand-in of the tests. The cost of its answers is in the second line; a tick,
//! which only takes what a thread has read, is the first.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::Bench;
use super::table::{Line, median, time};
use super::weighed::{Shape, Weighed};
use crate::command::target;

const CARDS: usize = 8;
const LOAD: Shape = Shape { count: 200, running: 200 };
const INTERVAL: &str = "1s";

/// CPU of a tick with GPUs, beside one without.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let mut pairs = Vec::new();
    for _ in 0..bench.repeats() {
        pairs.push((one(bench, true)?, one(bench, false)?));
    }
    let what = format!("tick, {CARDS} GPUs with {} processes", LOAD.count);
    let asking = format!("{what}, and polling their driver (a stand-in)");
    let with: [f64; 2] = [0, 1].map(|part| median(pairs.iter().map(|pair| pair.0[part])));
    let without: [f64; 2] = [0, 1].map(|part| median(pairs.iter().map(|pair| pair.1[part])));
    let line = |what: String, part: usize| {
        let ratio = format!("{:.2} ×", with[part] / without[part]);
        Line::new(what, time(with[part])).beside(format!("no GPU {}", time(without[part])), ratio)
    };
    Ok(vec![line(what, 0), line(asking, 1)])
}

/// CPU seconds of a tick: of the thread that samples, and of all.
fn one(bench: &Bench, has_gpus: bool) -> Result<[f64; 2]> {
    let window = Duration::from_secs(if bench.quick { 4 } else { 12 });
    let script = bench.fresh("cards").with_extension("json");
    let mut command = Command::new(&bench.weigh);
    if has_gpus {
        write(&script, &[])?;
        let library: PathBuf = target().join("release/examples/libnvml.so");
        command.env("WEIGH_NVML_LIBRARY", library).env("WEIGH_STAND_IN", &script);
    }
    let weighed = Weighed::start_by(command, bench, LOAD, INTERVAL)?;
    if has_gpus {
        write(&script, &weighed.pids)?;
    }
    let from = weighed.now() + Duration::from_millis(1500);
    std::thread::sleep(Duration::from_millis(1500) + window);
    let until = weighed.now();
    let (sampling, all) = weighed.end()?.cpu_per_tick(from, until)?;
    Ok([sampling, all])
}

/// Writes the answers of the cards atomically.
fn write(path: &Path, pids: &[u32]) -> Result<()> {
    let cards: Vec<Value> = (0..CARDS)
        .map(|card| {
            let users = pids.iter().skip(card).step_by(CARDS).map(|pid| json!([pid, 1 << 30]));
            json!({
                "name": "H100",
                "uuid": format!("GPU-{card}"),
                "memory": {"total": 80u64 << 30, "reserved": 0, "free": 40u64 << 30, "used": 40u64 << 30},
                "bar1": {"total": 1u64 << 37, "used": 1 << 20},
                "utilization": {"gpu": 90, "memory": 40},
                "encoder": 0, "decoder": 0, "power": 350_000, "power_limit": 700_000,
                "energy": 1_000_000, "temperature": 61,
                "clocks": {"0": 1980, "1": 1980, "2": 2619},
                "throttle_reasons": 0,
                "violations": {"0": 0, "1": 0, "2": 0, "3": 0, "4": 0, "5": 0, "10": 0, "11": 0},
                "ecc": {"0": {"0": 0, "1": 0}, "1": {"0": 0, "1": 0}},
                "pcie": {"throughput": {"0": 1000, "1": 2000}, "generation": 5, "width": 16, "replays": 0},
                "samples": {"0": [], "1": [], "2": [], "3": [], "4": []},
                "compute": users.collect::<Vec<_>>(), "graphics": [], "process_samples": [],
            })
        })
        .collect();
    let script = json!({"driver": "575.57.08", "cuda": 12090, "devices": cards});
    let next = path.with_extension("next");
    std::fs::write(&next, serde_json::to_vec(&script)?)?;
    Ok(std::fs::rename(next, path)?)
}
