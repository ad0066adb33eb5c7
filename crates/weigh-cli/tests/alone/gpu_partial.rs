//! GPUs whose driver reports only a part: refused lists, samples that stop, polls between two
//! ticks, slow answers.

use serde_json::{Value, json};
use weigh::catalog::metrics::{GpuActivity, GpuMemory};

use crate::cards::{GIB, card, machine, measured_on};

const FAST: [&str; 2] = ["-i", "50ms"];

/// Puts the pid of the command into the script.
const JOIN: &str = "sed s/4000001/$$/ \"$WEIGH_STAND_IN\" > next; mv next \"$WEIGH_STAND_IN\"; \
                    readings $(($(grep -c ProcessUtilization \"$CALLS\") + 6))";

#[test]
fn number_of_processes_is_unknown_without_the_list_of_compute_processes() {
    let mut script = machine(vec![card(0)]);
    script["fails"] = json!({"nvmlDeviceGetComputeRunningProcesses_v3": 4});
    let run = measured_on(&script, &FAST, "readings 6");
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    assert_eq!(run.of::<GpuActivity>("nvidia0").last().unwrap().processes, None);
    let memory = &run.summary["figures"]["gpu_memory_peak_bytes"];
    assert_eq!(memory["value"], Value::Null);
    assert!(memory["reason"].is_string(), "{memory}");
}

#[test]
fn process_that_computes_only_through_mps_is_on_the_card() {
    let mut shared = card(0);
    shared["compute"] = json!([[5_000_000, GIB]]);
    shared["mps"] = json!([[4_000_001, 3 * GIB], [5_000_000, GIB]]);
    let run = measured_on(&machine(vec![shared]), &FAST, JOIN);
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    assert_eq!(run.of::<GpuActivity>("nvidia0").last().unwrap().processes, Some(2));
    assert_eq!(run.summary["figures"]["gpu_memory_peak_bytes"]["value"], json!(3 * GIB));
}

#[test]
fn card_with_unified_memory_has_no_memory_of_its_own() {
    let mut unified = card(0);
    unified["memory"] = json!({"total": 0, "reserved": 0, "free": 0, "used": 0});
    unified["compute"] = json!([[4_000_001, 8 * GIB]]);
    let run = measured_on(&machine(vec![unified]), &FAST, JOIN);
    let memory = *run.of::<GpuMemory>("nvidia0").last().unwrap();
    assert_eq!((memory.total, memory.used, memory.free), (None, None, None));
    assert_eq!(run.summary["gpus"][0]["memory_bytes"], Value::Null);
    assert_eq!(run.summary["figures"]["gpu_memory_peak_bytes"]["value"], json!(8 * GIB));
    let system = &run.summary["parts"]["system"]["figures"]["gpu_memory_peak_bytes"];
    assert_eq!(system["reason"], "no GPU reports its memory in use");
}

#[test]
fn accounting_of_an_earlier_process_with_the_same_pid_is_ignored() {
    let mut used = card(0);
    used["compute"] = json!([[4_000_001, GIB]]);
    let dead = json!({"max_memory": 70 * GIB, "time": 1000, "running": 0});
    used["accounting"] = json!({"4000001": dead});
    let run = measured_on(&machine(vec![used]), &FAST, JOIN);
    assert_eq!(run.summary["gpus"][0]["processes"][0]["memory_peak_bytes"], json!(GIB));
    assert_eq!(run.summary["figures"]["gpu_memory_peak_bytes"]["value"], json!(GIB));
}

#[test]
fn card_that_is_sampled_only_while_busy_is_idle_in_between() {
    let mut napping = card(0);
    napping.as_object_mut().unwrap().remove("utilization");
    let wave = json!({"low": 0, "high": 90, "half_ms": 2500, "period_ms": 100, "is_dry": 1});
    napping["waves"] = json!({"1": wave, "2": wave});
    let run = measured_on(&machine(vec![napping]), &["-i", "100ms"], "sleep 8.5");
    // From one busy moment to another: what was in between is known by then.
    let rows = run.of::<GpuActivity>("nvidia0");
    let works = |row: &GpuActivity| row.utilization == Some(0.9) && row.busy.is_some();
    let (first, last) =
        (rows.iter().position(works).unwrap(), rows.iter().rposition(works).unwrap());
    let between = &rows[first..=last];
    let seen = between.iter().filter_map(|row| row.utilization).sum::<f64>() / between.len() as f64;
    let grown =
        |of: fn(&GpuActivity) -> Option<f64>| of(&rows[last]).unwrap() - of(&rows[first]).unwrap();
    let added_up = grown(|row| row.busy) / grown(|row| row.observed);
    assert!(between.len() > 30 && seen < 0.7, "{seen} in {} polls", between.len());
    // From the last poll of an idle period to the first sample after it nothing is known. Without
    // idle periods it would be 0.9.
    assert!((added_up - seen).abs() < 0.1, "{added_up} is not {seen}");
}

#[test]
fn process_on_a_card_between_two_ticks_is_reported_with_the_next() {
    let mut used = card(0);
    used["compute"] = json!([]);
    // A child has much memory for a while, long after the first ticks and long before the next.
    let line = r#"
        cp "$WEIGH_STAND_IN" empty
        sleep 1.3
        sh -c 'sed -e "s/\"compute\": \[\]/\"compute\": [[$$, 42949672960]]/" \
                   -e "s/\"used\": 4294967296/\"used\": 47244640256/" empty > next
            mv next "$WEIGH_STAND_IN"
            polls=$(($(grep -c ProcessUtilization "$CALLS") + 2))
            until [ "$(grep -c ProcessUtilization "$CALLS")" -ge $polls ]; do sleep 0.02; done
            cp empty next; mv next "$WEIGH_STAND_IN"'
        readings $(($(grep -c ProcessUtilization "$CALLS") + 2))"#;
    let run = measured_on(&machine(vec![used]), &["-i", "30s"], line);
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    let system = &run.summary["parts"]["system"]["figures"]["gpu_memory_peak_bytes"]["value"];
    assert_eq!(*system, json!(44 * GIB));
    assert_eq!(run.summary["gpus"][0]["memory_peak_bytes"], json!(44 * GIB));
}

#[test]
fn driver_that_takes_three_seconds_for_a_poll_is_slow_and_not_hanging() {
    let mut script = machine(vec![card(0)]);
    script["blocks_ms"] = json!({"nvmlDeviceGetMemoryInfo_v2@0": 3200});
    // The memory of a card is read once more when it is found.
    let run = measured_on(&script, &["-i", "500ms"], "readings 3");
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    let busy = &run.summary["figures"]["gpu_utilization_mean_ratio"];
    assert_eq!(busy["value"].as_f64(), Some(0.9), "{busy}");
    assert!(busy["reason"].is_string(), "the beginning is not known: {busy}");
}
