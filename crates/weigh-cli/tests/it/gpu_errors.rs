//! Drivers that fail, hang or lose a card: the run continues with a fault.

use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use weigh::catalog::metrics::{GpuActivity, GpuMemory, GpuProcessUsage};
use weigh::model::Entity;

use crate::cards::{self, GIB, card, machine, measured_on};
use crate::weighed::{can_mount, output, plain, weigh_path};

const FAST: [&str; 2] = ["-i", "50ms"];

// A command that waits for text in the events writes its pattern so that its own command line,
// which is in the events, too, does not match.

/// A card that has all values.
fn full(index: usize) -> Value {
    let mut full = card(index);
    full["samples"] = json!({"0": [], "1": [], "2": [], "3": [], "4": []});
    full["accounting"] = json!({});
    full
}

/// The same, with two MIG instances.
fn divided(index: usize) -> Value {
    let mut whole = full(index);
    let part = |number: u64| {
        let mut part = full(index);
        part["uuid"] = json!(format!("MIG-{index}-{number}"));
        part["memory"]["used"] = json!((number + 1) * GIB);
        part
    };
    whole["migs"] = json!([part(0), part(1)]);
    whole
}

/// As many such cards as there are calls for one, or for a MIG instance of one (`:0`). Each fails
/// one of them, and one more card is whole. Also returns the calls.
fn failing(code: u32, card: fn(usize) -> Value, part: &str) -> (Value, Vec<String>) {
    let calls =
        measured_on(&machine(vec![card(0)]), &FAST, "readings 2").calls(&format!("0{part}"));
    let calls: Vec<String> = calls.into_keys().collect();
    assert!(calls.len() > 20, "{calls:?}");
    let mut script = machine((0..=calls.len()).map(card).collect());
    let fails =
        calls.iter().enumerate().map(|(card, call)| (format!("{call}@{card}{part}"), json!(code)));
    script["fails"] = Value::Object(fails.collect());
    (script, calls)
}

/// The memory in use on a GPU, where it was ever reported, and whether the GPU has any rows.
fn used(run: &cards::GpuRun, gpu: &str) -> (Option<u64>, bool) {
    let rows = run.of::<GpuMemory>(gpu);
    // So many cards answer so slowly that there are rows without an answer in between.
    (rows.iter().find_map(|row| row.used), !rows.is_empty())
}

#[test]
fn failing_call_makes_only_its_value_missing() {
    // Not supported, and an unknown error.
    for code in [3, 999] {
        let (script, calls) = failing(code, full, "");
        let run = measured_on(&script, &FAST, &format!("readings {}", 4 * calls.len()));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        for (card, call) in calls.iter().enumerate() {
            let name = format!("nvidia{card}");
            if call == "nvmlDeviceGetHandleByIndex_v2" {
                assert_eq!(used(&run, &name), (None, false));
                assert!(run.faults().contains(&name), "{}", run.faults());
                continue;
            }
            let expected = (call != "nvmlDeviceGetMemoryInfo_v2").then_some(4 * GIB);
            assert_eq!(used(&run, &name), (expected, true), "{call}");
        }
    }
}

#[test]
fn failing_call_for_a_mig_instance_makes_only_its_value_missing() {
    for code in [3, 999, 15] {
        let (script, calls) = failing(code, divided, ":0");
        let run = measured_on(&script, &FAST, &format!("readings {}", 4 * calls.len()));
        assert_eq!(run.code, Some(0), "{}", run.stderr);
        for (card, call) in calls.iter().enumerate() {
            let expected = (call != "nvmlDeviceGetMemoryInfo_v2").then_some(GIB);
            let part = used(&run, &format!("nvidia{card}:0"));
            if code != 15 {
                assert_eq!(part, (expected, true), "{call}");
            }
            let others = ["", ":1"].map(|part| used(&run, &format!("nvidia{card}{part}")));
            assert_eq!(others, [(Some(4 * GIB), true), (Some(2 * GIB), true)], "{call}");
        }
    }
}

#[test]
fn card_that_does_not_list_its_mig_instances_is_measured_as_a_whole() {
    let calls = ["MigMode", "MaxMigDeviceCount", "MigDeviceHandleByIndex"];
    for call in calls.map(|call| format!("nvmlDeviceGet{call}")) {
        for code in [3, 15, 999] {
            let mut script = machine(vec![divided(0), divided(1)]);
            script["fails"] = json!({(format!("{call}@0")): code});
            let run = measured_on(&script, &FAST, "readings 8");
            assert_eq!(run.code, Some(0), "{}", run.stderr);
            assert_eq!(used(&run, "nvidia0:0"), (None, false), "{call}");
            assert_eq!(used(&run, "nvidia0"), (Some(4 * GIB), true), "{call}");
            assert_eq!(used(&run, "nvidia1:0"), (Some(GIB), true), "{call}");
        }
    }
}

#[test]
fn lost_card_is_a_fault_in_every_call_and_the_others_stay() {
    let (script, calls) = failing(15, full, "");
    let run = measured_on(&script, &FAST, &format!("readings {}", calls.len()));
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let whole = format!("nvidia{}", calls.len());
    assert_eq!(used(&run, &whole), (Some(4 * GIB), true));
    assert!(run.faults().contains("the GPU is lost"), "{}", run.faults());
    assert!(!run.faults().contains(&whole), "{}", run.faults());
}

#[test]
fn card_that_falls_off_the_bus_is_an_event_and_the_run_continues() {
    let lost = json!({"nvmlDeviceGetMemoryInfo_v2@1": 15});
    let mut script = machine(vec![card(0), card(1)]);
    script["fails"] = json!({"nothing": 1});
    let line = format!(
        "readings 4; sed 's/\"nothing\": 1/{}/' \"$WEIGH_STAND_IN\" > next; \
         mv next \"$WEIGH_STAND_IN\"; until grep -q 'GPU is los[t]' run/events.jsonl; do sleep 0.02; done; \
         readings $(($(grep -c ProcessUtilization \"$CALLS\") + 3))",
        lost.to_string().trim_matches(['{', '}'])
    );
    let run = measured_on(&script, &FAST, &line);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.faults().contains("nvidia1: the GPU is lost"), "{}", run.faults());
    let (stays, lost) =
        (run.of::<GpuMemory>("nvidia0").len(), run.of::<GpuMemory>("nvidia1").len());
    assert!(lost > 0 && stays > lost, "{stays} and {lost} rows");
}

#[test]
fn hanging_driver_is_an_event_and_the_run_ends() {
    let mut script = machine(vec![card(0)]);
    script["hangs"] = json!({"nothing": 1});
    let line = "readings 3; sed 's/\"nothing\"/\"nvmlDeviceGetPowerUsage\"/' \"$WEIGH_STAND_IN\" > next; \
                mv next \"$WEIGH_STAND_IN\"; \
                until grep -q 'does not answe[r]' run/events.jsonl; do sleep 0.02; done";
    let run = measured_on(&script, &FAST, line);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(
        run.summary["monitor"]["faults"].as_array().unwrap().len(),
        1,
        "it is reported once"
    );
    let rows = run.of::<GpuActivity>("nvidia0");
    assert_eq!(rows.last(), Some(&GpuActivity::default()), "nothing is known any more");
    assert!(rows.iter().any(|row| row.utilization == Some(0.9)));
    // The run ends with the command, and weigh soon after: it does not wait for the driver.
    let directory = run.directory.path().join("run");
    std::fs::write(directory.join("over"), "").unwrap();
    let written = |name: &str| std::fs::metadata(directory.join(name)).unwrap().modified().unwrap();
    let closing = written("over").duration_since(written("events.jsonl")).unwrap();
    assert!(closing < Duration::from_secs(10), "{closing:?}");
}

#[test]
fn slow_driver_delays_no_tick() {
    let mut script = machine(vec![card(0)]);
    script["blocks_ms"] = json!({"nvmlDeviceGetPowerUsage": 400});
    let run = measured_on(&script, &["-i", "20ms"], "readings 3");
    // While one reading takes 400 ms, ticks continue with the age of the last one.
    let ages: Vec<f64> =
        run.of::<GpuActivity>("nvidia0").iter().filter_map(|row| row.age).collect();
    let growing = ages.windows(2).filter(|pair| pair[1] > pair[0]).count();
    assert!(growing > 5, "{ages:?}");
}

#[test]
fn processes_in_a_container_are_counted_and_unattributed() {
    let mut used = card(0);
    // In its own namespace the command has a small pid, too.
    used["compute"] = (1..20u32).map(|pid| json!([pid, GIB])).collect();
    let Some(run) = cards::measured_in_a_container(&machine(vec![used])) else { return };
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.faults().contains("pids of the machine"), "{}", run.faults());
    let activity = *run.of::<GpuActivity>("nvidia0").last().unwrap();
    assert_eq!((activity.processes, activity.processes_unknown), (Some(19), Some(19)));
    assert!(run.rows::<GpuProcessUsage>().is_empty());
}

#[test]
fn command_in_a_container_with_the_hosts_proc_is_found_by_all_its_pids() {
    if !can_mount() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("outside")).unwrap();
    let script = directory.path().join("script.json");
    let mut one = machine(vec![card(0)]);
    one["log"] = json!(directory.path().join("calls"));
    cards::write(&script, &one);
    // The driver reports the command by its pid on the host, and another process, outside of the
    // container, by the pid that the command has in the container.
    let line = r#"
        read outside rest < outside/self/stat
        used="[[$outside, 1073741824], [$$, 2147483648]]"
        sed "s/\"compute\": \[\]/\"compute\": $used/" "$WEIGH_STAND_IN" > next
        mv next "$WEIGH_STAND_IN"
        echo $$ > inside
        until [ "$(grep -c ProcessUtilization calls)" -gt 20 ]; do sleep 0.02; done"#;
    let weigh = weigh_path();
    let within = format!(
        "mount --rbind /proc outside && mount -t proc proc /proc && exec {} run -i 50ms \
         --summary summary.json -o run -- sh script.sh",
        weigh.display()
    );
    std::fs::write(directory.path().join("script.sh"), line).unwrap();
    let mut command: Command = plain("unshare", directory.path());
    command.args(["-m", "-p", "-f", "sh", "-c", &within]);
    let output = output(cards::on_stand_in(&mut command, &script));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = std::fs::read(directory.path().join("summary.json")).unwrap();
    let summary: Value = serde_json::from_slice(&summary).unwrap();
    let users = &summary["gpus"][0]["processes"];
    let inside = std::fs::read_to_string(directory.path().join("inside")).unwrap();
    assert_eq!(users[0]["pid"].to_string(), inside.trim(), "{users}");
    assert_eq!((&users[0]["memory_peak_bytes"], &users[1]), (&json!(GIB), &Value::Null));
    assert_eq!(summary["figures"]["gpu_memory_peak_bytes"]["value"], GIB);
}

#[test]
fn gpu_process_missed_between_polls_leaves_peak_without_upper_bound() {
    // It is repeated until no poll was between its start and its exit. Afterwards the driver still
    // has a sample of it, as NVIDIA's does.
    let line = r#"
        cp "$WEIGH_STAND_IN" empty
        polls() { grep -c ComputeRunningProcesses "$CALLS"; }
        until
            before=$(polls)
            sh -c 'echo $$ > last
                sed "s/\"compute\": \[\]/\"compute\": [[$$, 3221225472]]/" empty > next
                cp next there
                mv next "$WEIGH_STAND_IN"'
            sample="[[$(cat last), 9000000000000, 60, 20, 0, 5]]"
            sed "s/\"process_samples\": \[\]/\"process_samples\": $sample/" empty > next
            mv next "$WEIGH_STAND_IN"
            [ "$before" = "$(polls)" ]
        do :; done
        readings $(($(grep -c ProcessUtilization "$CALLS") + 2))"#;
    let run = measured_on(&machine(vec![card(0)]), &["-i", "1s"], line);
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    let last = std::fs::read_to_string(run.directory.path().join("last")).unwrap();
    let last: u32 = last.trim().parse().unwrap();
    for (file, expected) in
        [("there", format!("[[{last}, 3")), ("script.json", format!("[[{last}, 9"))]
    {
        let script = std::fs::read_to_string(run.directory.path().join(file)).unwrap();
        assert!(script.contains(&expected), "the driver reported it: {script}");
    }
    let of_last = |entity: &Entity| matches!(entity, Entity::OnGpu(_, id) if id.pid == last);
    assert!(!run.rows::<GpuProcessUsage>().iter().any(|(entity, _)| of_last(entity)));
    let activity = *run.of::<GpuActivity>("nvidia0").last().unwrap();
    assert_eq!((activity.processes, activity.processes_unknown), (Some(0), Some(0)));
    let memory = &run.summary["figures"]["gpu_memory_peak_bytes"];
    assert_eq!((&memory["method"], &memory["upper"]), (&json!("sampled"), &Value::Null));
    assert!(memory["reason"].is_string(), "{memory}");
}
