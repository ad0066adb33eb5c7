//! The stand-in for NVIDIA's library, and the scripts it answers from.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};
use weigh::catalog::Row;
use weigh::catalog::all_groups;
use weigh::model::Entity;
use weigh::record::{Moment, Recording};

use crate::weighed::{can_mount, output, plain, weigh, weigh_path};

pub(crate) const GIB: u64 = 1 << 30;

/// The stand-in: built by `cargo test` as an example, beside this binary.
pub(crate) fn library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let library = tests.parent().unwrap().parent().unwrap().join("examples/libnvml.so");
    assert!(
        library.exists(),
        "{} is missing: cargo build -p weigh-cli --examples",
        library.display()
    );
    library
}

/// A copy of the stand-in that lacks some functions, as an older driver does: their symbols have
/// other names.
pub(crate) fn library_without(directory: &Path, functions: &[&str]) -> PathBuf {
    let mut bytes = std::fs::read(library()).unwrap();
    for function in functions {
        let name = format!("\0{function}\0").into_bytes();
        let places: Vec<usize> =
            (0..=bytes.len() - name.len()).filter(|&at| bytes[at..].starts_with(&name)).collect();
        assert!(!places.is_empty(), "{function} is there");
        places.into_iter().for_each(|at| bytes[at + 1] = b'-');
    }
    let copy = directory.join("libolder.so");
    std::fs::write(&copy, bytes).unwrap();
    copy
}

/// A card that answers everything.
pub(crate) fn card(index: usize) -> Value {
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
        "process_samples": [],
    })
}

/// A machine with these cards.
pub(crate) fn machine(cards: Vec<Value>) -> Value {
    json!({"driver": "575.57.08", "cuda": 12090, "devices": cards})
}

/// Replaces a script atomically: the stand-in may be reading it.
pub(crate) fn write(path: &Path, script: &Value) {
    let next = path.with_extension("next");
    std::fs::write(&next, serde_json::to_vec_pretty(script).unwrap()).unwrap();
    std::fs::rename(next, path).unwrap();
}

/// A measured command on a machine with cards.
pub(crate) struct GpuRun {
    pub directory: tempfile::TempDir,
    pub code: Option<i32>,
    pub stderr: String,
    pub summary: Value,
}

/// Measures a line of shell. `$WEIGH_STAND_IN` is the script of the stand-in, `$CALLS` the log of
/// its calls. `readings N` waits until every card was polled N times.
pub(crate) fn measured_on(script: &Value, options: &[&str], line: &str) -> GpuRun {
    measured_with(script, options, &[], line)
}

/// The same, with variables set for weigh and the command.
pub(crate) fn measured_with(
    script: &Value,
    options: &[&str],
    variables: &[(&str, &str)],
    line: &str,
) -> GpuRun {
    let directory = tempfile::tempdir().unwrap();
    let (path, calls) = (directory.path().join("script.json"), directory.path().join("calls"));
    std::fs::write(&calls, "").unwrap();
    let mut script = script.clone();
    script["log"] = json!(calls);
    write(&path, &script);
    let mut command = weigh(directory.path(), &["run", "--summary", "summary.json", "-o", "run"]);
    on_stand_in(&mut command, &path).env("CALLS", &calls).envs(variables.iter().copied());
    // The last call of every poll of a card without MIG.
    let readings = "readings() { until [ \"$(grep -c ProcessUtilization \"$CALLS\")\" -ge $1 ]; \
                    do sleep 0.02; done; }";
    let line = format!("{readings}; {line}");
    GpuRun::read(directory, output(command.args(options).args(["--", "sh", "-c", &line])))
}

/// Makes a command load the stand-in instead of NVIDIA's library.
pub(crate) fn on_stand_in<'c>(command: &'c mut Command, script: &Path) -> &'c mut Command {
    command.env("WEIGH_NVML_LIBRARY", library()).env("WEIGH_STAND_IN", script)
}

/// Measures a command in a pid namespace of its own, as a container has one, until the processes
/// on the cards are reported as unknown. `None` where there are no pid namespaces.
pub(crate) fn measured_in_a_container(script: &Value) -> Option<GpuRun> {
    if !can_mount() {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script.json");
    write(&path, script);
    let mut command = plain("unshare", directory.path());
    command.args(["-m", "-p", "-f", "--mount-proc"]).arg(weigh_path());
    command.args(["run", "-i", "50ms", "--summary", "summary.json", "-o", "run", "--"]);
    // The command line is in the events, too, and must not match.
    let line = "until grep -q 'pid=hos[t]' run/events.jsonl; do sleep 0.02; done";
    let output = output(on_stand_in(&mut command, &path).args(["sh", "-c", line]));
    Some(GpuRun::read(directory, output))
}

impl GpuRun {
    /// The result of a run in this directory.
    fn read(directory: tempfile::TempDir, output: Output) -> GpuRun {
        let stderr = String::from_utf8(output.stderr).unwrap();
        let summary = std::fs::read(directory.path().join("summary.json"))
            .unwrap_or_else(|why| panic!("no summary: {why}\n{stderr}"));
        let summary = serde_json::from_slice(&summary).unwrap();
        GpuRun { directory, code: output.status.code(), stderr, summary }
    }

    /// The rows of a group, in their order, with their entities.
    pub(crate) fn rows<R: Row>(&self) -> Vec<(Entity, R)> {
        let recording = Recording::open(&self.directory.path().join("run")).unwrap();
        let mut rows = Vec::new();
        let replayed = recording.replay(&all_groups(), |frame| {
            let Moment::Tick(tick) = frame.moment else { return };
            let Some(table) = tick.table(R::SCOPE) else { return };
            rows.extend((0..table.len()).map(|row| (table.entities()[row], table.get(row))));
        });
        replayed.unwrap();
        rows
    }

    /// The rows of one GPU.
    pub(crate) fn of<R: Row>(&self, gpu: &str) -> Vec<R> {
        let named = |entity: &Entity| matches!(entity, Entity::Named(name) if name.as_str() == gpu);
        let rows = self.rows().into_iter().filter(|(entity, _)| named(entity));
        rows.map(|(_, row)| row).collect()
    }

    /// The faults of the run.
    pub(crate) fn faults(&self) -> String {
        self.summary["monitor"]["faults"].to_string()
    }

    /// How often each function was called for a card.
    pub(crate) fn calls(&self, card: &str) -> BTreeMap<String, usize> {
        let log = std::fs::read_to_string(self.directory.path().join("calls")).unwrap();
        let mut counts = BTreeMap::new();
        for (call, of) in log.lines().filter_map(|line| line.split_once('@')) {
            if of == card {
                *counts.entry(call.to_owned()).or_default() += 1;
            }
        }
        counts
    }
}
