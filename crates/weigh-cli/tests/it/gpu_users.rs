//! Processes on GPUs, against a stand-in with known answers.

use serde_json::json;
use weigh::catalog::metrics::{GpuActivity, GpuProcessUsage};
use weigh::model::Entity;

use crate::cards::{GIB, GpuRun, card, library_without, machine, measured_on, measured_with};

const FAST: [&str; 2] = ["-i", "50ms"];

/// The rows of processes, as (GPU, pid, row).
fn shares(run: &GpuRun) -> Vec<(String, u32, GpuProcessUsage)> {
    let rows = run.rows::<GpuProcessUsage>().into_iter().map(|(entity, row)| match entity {
        Entity::OnGpu(gpu, id) => (gpu.to_string(), id.pid, row),
        other => panic!("{other:?}"),
    });
    rows.collect()
}

#[test]
fn process_has_its_memory_and_its_utilisation() {
    let mut used = card(0);
    used["compute"] = json!([[4_000_001, 3 * GIB]]);
    used["process_samples"] = json!([[4_000_001, 4_000_002, 60, 20, 0, 5], [0, 9, 90, 0, 0, 0]]);
    used["accounting"] = json!({"4000001": {"max_memory": 5 * GIB, "time": 1000}});
    // The command writes its pid into the script and then changes its utilisation: after the first
    // answer, because that covers the time before.
    let line = "readings 1; sed -e s/4000001/$$/ -e s/4000002/5000000/ \"$WEIGH_STAND_IN\" > next; \
                mv next \"$WEIGH_STAND_IN\"; \
                readings $(($(grep -c ProcessUtilization \"$CALLS\") + 6))";
    let run = measured_on(&machine(vec![used]), &FAST, line);
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    let shares = shares(&run);
    let (gpu, pid, _) = &shares[0];
    assert_eq!((gpu.as_str(), *pid), ("nvidia0", main_pid(&run)));
    assert!(shares.iter().all(|(_, _, share)| share.memory == Some(3 * GIB)), "{shares:?}");
    assert!(shares.iter().any(|(_, _, share)| share.memory_peak == Some(5 * GIB)), "{shares:?}");
    let did = shares.iter().find(|(_, _, share)| share.utilization.is_some());
    let did = did.expect("there is a sample").2;
    assert_eq!(
        (did.utilization, did.memory_utilization, did.decoder),
        (Some(0.6), Some(0.2), Some(0.05))
    );
    assert_ne!(shares.last().unwrap().2.utilization, Some(0.6), "a sample is not used twice");
}

#[test]
fn process_without_samples_on_a_sampled_card_is_idle_and_not_unknown() {
    let mut used = card(0);
    used["compute"] = json!([[4_000_001, 3 * GIB]]);
    // The driver has samples of the card and of another process, but never of this process.
    used["process_samples"] = json!([[5_000_000, 9_000_000_000_000_000u64, 90, 20, 0, 0]]);
    used["waves"] = json!({"1": {"low": 0, "high": 90, "half_ms": 20, "period_ms": 10}});
    let mut silent = used.clone();
    silent["uuid"] = json!("GPU-silent");
    let mut script = machine(vec![used, silent]);
    script["fails"] = json!({"nvmlDeviceGetProcessUtilization@1": 3});
    let line = "sed s/4000001/$$/ \"$WEIGH_STAND_IN\" > next; mv next \"$WEIGH_STAND_IN\"; \
                readings $(($(grep -c ProcessUtilization \"$CALLS\") + 6))";
    let run = measured_on(&script, &FAST, line);
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    let last = |gpu: &str| {
        let mut shares = shares(&run).into_iter().filter(|(name, _, _)| name == gpu);
        shares.next_back().unwrap().2
    };
    let idle = last("nvidia0");
    assert_eq!((idle.utilization, idle.decoder), (Some(0.0), Some(0.0)));
    assert_eq!(last("nvidia1").utilization, None, "it does not report it");
    let mean = |gpu: usize| &run.summary["gpus"][gpu]["processes"][0]["utilization_mean_ratio"];
    assert_eq!((mean(0), mean(1)), (&json!(0.0), &serde_json::Value::Null));
}

#[test]
fn accounting_without_the_memory_peak_is_ignored() {
    let mut used = card(0);
    used["compute"] = json!([[4_000_001, 3 * GIB]]);
    used["accounting"] = json!({"4000001": {"max_memory": u64::MAX, "time": 1000}});
    let line = "sed s/4000001/$$/ \"$WEIGH_STAND_IN\" > next; mv next \"$WEIGH_STAND_IN\"; \
                readings $(($(grep -c ProcessUtilization \"$CALLS\") + 6))";
    let run = measured_on(&machine(vec![used]), &FAST, line);
    let shares = shares(&run);
    assert!(!shares.is_empty() && shares.iter().all(|(_, _, share)| share.memory_peak.is_none()));
    assert_eq!(run.summary["gpus"][0]["processes"][0]["memory_peak_bytes"], json!(3 * GIB));
}

fn main_pid(run: &GpuRun) -> u32 {
    let manifest = std::fs::read(run.directory.path().join("run/run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    manifest["pid"].as_u64().unwrap() as u32
}

#[test]
fn processes_are_read_in_every_version_of_the_list() {
    let both = ["nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses"];
    let named = |end: &str| both.map(|name| format!("{name}{end}"));
    let (third, second) = (named("_v3"), named("_v2"));
    let drivers = [
        ("before R450", [&third[..], &second].concat(), false),
        ("before R510", third.to_vec(), false),
        ("R535, the first", vec!["nvmlDeviceGetRunningProcessDetailList".to_owned()], true),
    ];
    for (driver, lacks, has_longer_entries) in drivers {
        let directory = tempfile::tempdir().unwrap();
        let lacks: Vec<&str> = lacks.iter().map(String::as_str).collect();
        let library = library_without(directory.path(), &lacks);
        let mut used = card(0);
        // So many that longer entries would not fit into the buffer for shorter ones.
        let others = (0..60u64).map(|number| json!([5_000_000 + number, GIB]));
        used["compute"] = others.chain([json!([4_000_001, 3 * GIB])]).collect();
        used["graphics"] = json!([[5_000_300], [4_000_001, 3 * GIB]]);
        if has_longer_entries {
            used["longer_entries"] = json!(1);
        }
        let line = "sed s/4000001/$$/ \"$WEIGH_STAND_IN\" > next; mv next \"$WEIGH_STAND_IN\"; \
                    readings $(($(grep -c ProcessUtilization \"$CALLS\") + 6))";
        let variables = [("WEIGH_NVML_LIBRARY", library.to_str().unwrap())];
        let run = measured_with(&machine(vec![used]), &FAST, &variables, line);
        assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{driver}: {}", run.stderr);
        let activity = *run.of::<GpuActivity>("nvidia0").last().unwrap();
        let counts = (activity.processes, activity.processes_unknown);
        assert_eq!(counts, (Some(62), Some(61)), "{driver}");
        let shares = shares(&run);
        let (_, pid, share) = shares.last().unwrap_or_else(|| panic!("{driver}: no process"));
        assert_eq!((*pid, share.memory), (main_pid(&run), Some(3 * GIB)), "{driver}");
    }
}

#[test]
fn two_hundred_processes_on_eight_cards_are_all_counted() {
    let cards = (0..8).map(|index| {
        let mut busy = card(index);
        // Pids that Linux cannot have: they are counted, and attributed to no process.
        let pids = (0..200u64).map(|number| json!([5_000_000 + number, GIB / 200]));
        busy["compute"] = pids.collect();
        busy["graphics"] = json!([[5_000_000, GIB / 200], [5_000_300]]);
        busy
    });
    let run = measured_on(&machine(cards.collect()), &FAST, "readings 24");
    assert_eq!(run.code, Some(0));
    for index in 0..8 {
        let activity = *run.of::<GpuActivity>(&format!("nvidia{index}")).last().unwrap();
        assert_eq!((activity.processes, activity.processes_unknown), (Some(201), Some(201)));
    }
    assert_eq!(shares(&run), []);
}
