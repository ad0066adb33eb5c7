//! The stand-in for NVIDIA's library, and scripts of what it answers.

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

/// A copy of the stand-in that lacks some functions, as an older driver does: where the loader
/// looks for a name there is another.
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

/// Writes a script at once whole: the stand-in may be reading it.
pub(crate) fn write(path: &Path, script: &Value) {
    let next = path.with_extension("next");
    std::fs::write(&next, serde_json::to_vec_pretty(script).unwrap()).unwrap();
    std::fs::rename(next, path).unwrap();
}

/// A weighed command on a machine with cards.
pub(crate) struct OnCards {
    pub directory: tempfile::TempDir,
    pub code: Option<i32>,
    pub stderr: String,
    pub summary: Value,
}

/// Weighs a line of shell, which finds what the stand-in answers from in `$WEIGH_STAND_IN` and
/// what it was asked in `$ASKED`. `readings N` waits until every card was looked at N times.
pub(crate) fn weighed_on(script: &Value, options: &[&str], line: &str) -> OnCards {
    weighed_where(script, options, &[], line)
}

/// The same, with variables set for weigh and for what it starts.
pub(crate) fn weighed_where(
    script: &Value,
    options: &[&str],
    variables: &[(&str, &str)],
    line: &str,
) -> OnCards {
    let directory = tempfile::tempdir().unwrap();
    let (path, asked) = (directory.path().join("script.json"), directory.path().join("asked"));
    std::fs::write(&asked, "").unwrap();
    let mut script = script.clone();
    script["log"] = json!(asked);
    write(&path, &script);
    let mut command = weigh(directory.path(), &["run", "--summary", "summary.json", "-o", "run"]);
    on_stand_in(&mut command, &path).env("ASKED", &asked).envs(variables.iter().copied());
    // The last question of every look at a card that is not divided.
    let readings = "readings() { until [ \"$(grep -c ProcessUtilization \"$ASKED\")\" -ge $1 ]; \
                    do sleep 0.02; done; }";
    let line = format!("{readings}; {line}");
    OnCards::read(directory, output(command.args(options).args(["--", "sh", "-c", &line])))
}

/// Makes a command take the stand-in for NVIDIA's library.
pub(crate) fn on_stand_in<'c>(command: &'c mut Command, script: &Path) -> &'c mut Command {
    command.env("WEIGH_NVML_LIBRARY", library()).env("WEIGH_STAND_IN", script)
}

/// Weighs a command in a pid namespace of its own, as a container has one, until it is told that
/// nobody knows who is on these cards. Nothing where that cannot be made.
pub(crate) fn weighed_in_a_container(script: &Value) -> Option<OnCards> {
    if !can_mount() {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("script.json");
    write(&path, script);
    let mut command = plain("unshare", directory.path());
    command.args(["-m", "-p", "-f", "--mount-proc"]).arg(weigh_path());
    command.args(["run", "-i", "50ms", "--summary", "summary.json", "-o", "run", "--"]);
    // The command line is in the events, too, and has other words.
    let line = "until grep -q 'pid=hos[t]' run/events.jsonl; do sleep 0.02; done";
    let output = output(on_stand_in(&mut command, &path).args(["sh", "-c", line]));
    Some(OnCards::read(directory, output))
}

impl OnCards {
    /// What a run in this directory left behind.
    fn read(directory: tempfile::TempDir, output: Output) -> OnCards {
        let stderr = String::from_utf8(output.stderr).unwrap();
        let summary = std::fs::read(directory.path().join("summary.json"))
            .unwrap_or_else(|why| panic!("no summary: {why}\n{stderr}"));
        let summary = serde_json::from_slice(&summary).unwrap();
        OnCards { directory, code: output.status.code(), stderr, summary }
    }

    /// The rows of a group, in their order, with whom they are about.
    pub(crate) fn rows<R: Row>(&self) -> Vec<(Entity, R)> {
        let recording = Recording::open(&self.directory.path().join("run")).unwrap();
        let mut rows = Vec::new();
        let replayed = recording.replay(&all_groups(), |moment| {
            let Moment::Tick(tick) = moment else { return };
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

    /// What went wrong.
    pub(crate) fn faults(&self) -> String {
        self.summary["monitor"]["faults"].to_string()
    }

    /// How often each question was asked of a card.
    pub(crate) fn asked(&self, card: &str) -> BTreeMap<String, usize> {
        let log = std::fs::read_to_string(self.directory.path().join("asked")).unwrap();
        let mut counts = BTreeMap::new();
        for (call, of) in log.lines().filter_map(|line| line.split_once('@')) {
            if of == card {
                *counts.entry(call.to_owned()).or_default() += 1;
            }
        }
        counts
    }
}
