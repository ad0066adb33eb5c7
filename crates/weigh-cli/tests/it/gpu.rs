//! GPUs, against a stand-in whose answers are known.

use serde_json::json;
use weigh::catalog::metrics::{
    GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle, GpuUnits,
};

use crate::cards::{GIB, OnCards, card, machine, weighed_on, weighed_where};

const FAST: [&str; 2] = ["-i", "50ms"];

/// What a driver says in the first second is of the time before, too.
const WHOLE_SECOND: &str = "sleep 1.2; readings $(($(grep -c ProcessUtilization \"$ASKED\") + 4))";

#[test]
fn what_cards_answer_is_recorded_in_base_units() {
    let mut second = card(1);
    second["memory"]["used"] = json!(9 * GIB);
    let run = weighed_on(&machine(vec![card(0), second]), &FAST, "readings 8");
    assert_eq!((run.code, run.faults().as_str()), (Some(0), "[]"), "{}", run.stderr);
    let used = |gpu| run.of::<GpuMemory>(gpu).last().unwrap().used;
    assert_eq!((used("nvidia0"), used("nvidia1")), (Some(4 * GIB), Some(9 * GIB)));
    let memory = run.of::<GpuMemory>("nvidia0")[0];
    assert_eq!((memory.total, memory.free), (Some(80 * GIB), Some(75 * GIB)));
    assert_eq!((memory.bar1_total, memory.bar1_used), (Some(128 * GIB), Some(1 << 20)));
    let activity = *run.of::<GpuActivity>("nvidia0").last().unwrap();
    assert_eq!((activity.utilization, activity.memory_utilization), (Some(0.9), Some(0.4)));
    assert_eq!((activity.encoder, activity.decoder), (Some(0.07), Some(0.03)));
    assert_eq!((activity.processes, activity.busy), (Some(0), None), "no samples, no sum");
    assert!(activity.age.is_some_and(|age| age >= 0.0));
    let power = *run.of::<GpuPower>("nvidia0").last().unwrap();
    assert_eq!((power.draw, power.limit, power.energy), (Some(350.0), Some(700.0), Some(1000.0)));
    assert_eq!((power.temperature, power.fan), (Some(61.0), Some(0.3)));
    assert_eq!((power.clock_sm, power.clock_memory), (Some(1.98e9), Some(2.619e9)));
    let throttle = *run.of::<GpuThrottle>("nvidia0").last().unwrap();
    assert_eq!(
        (throttle.reasons, throttle.power, throttle.thermal),
        (Some(4), Some(2.0), Some(0.0))
    );
    let ecc = *run.of::<GpuEcc>("nvidia0").last().unwrap();
    assert_eq!((ecc.corrected, ecc.uncorrected), (Some(3), Some(0)));
    assert_eq!((ecc.corrected_lifetime, ecc.uncorrected_lifetime), (Some(9), Some(1)));
    let link = *run.of::<GpuLink>("nvidia0").last().unwrap();
    let links = run.of::<GpuLink>("nvidia0");
    let carried = links.iter().find_map(|link| link.pcie_sent.zip(link.pcie_received));
    assert_eq!(carried, Some((1_000_000, 2_000_000)));
    assert_eq!((link.nvlink_sent, link.nvlink_received), (Some(4 << 20), Some(8 << 20)));
    assert_eq!(
        (link.pcie_generation, link.pcie_width, link.pcie_replays),
        (Some(5), Some(16), Some(2))
    );
    let units = *run.of::<GpuUnits>("nvidia0").last().unwrap();
    assert_eq!((units.sm, units.occupancy, units.fp64), (Some(0.8), Some(0.555), Some(0.0)));
    let events = std::fs::read_to_string(run.directory.path().join("run/events.jsonl")).unwrap();
    assert!(events.contains("GPU-00000000-0000-0000-0000-000000000001"), "{events}");
}

#[test]
fn errors_in_its_memory_during_the_run_are_found() {
    let mut failing = card(0);
    failing["ecc"]["1"]["0"] = json!(4_000_003);
    let line = "readings 2; sed s/4000003/4000005/ \"$WEIGH_STAND_IN\" > next; \
                mv next \"$WEIGH_STAND_IN\"; \
                readings $(($(grep -c ProcessUtilization \"$ASKED\") + 6))";
    let run = weighed_on(&machine(vec![failing, card(1)]), &FAST, line);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let errors = |gpu: usize| &run.summary["gpus"][gpu]["memory_errors_uncorrected"];
    assert_eq!((errors(0), errors(1)), (&json!(2), &json!(0)));
    let findings = run.summary["findings"].as_array().unwrap();
    let found: Vec<_> = findings.iter().filter(|one| one["code"] == "gpu.memory_errors").collect();
    assert_eq!(found[0]["evidence"], json!({"gpus": ["nvidia0"], "uncorrected": 2.0}));
    assert!(run.stderr.contains("2 errors in the memory of nvidia0"), "{}", run.stderr);
}

#[test]
fn a_card_without_fan_power_or_ecc_loses_those_alone() {
    let mut bare = card(0);
    for missing in ["fan", "power", "ecc", "nvlink", "gpm", "encoder"] {
        bare.as_object_mut().unwrap().remove(missing);
    }
    let run = weighed_on(&machine(vec![bare, card(1)]), &FAST, "readings 8");
    assert_eq!(run.faults(), "[]");
    let power = *run.of::<GpuPower>("nvidia0").last().unwrap();
    assert_eq!((power.fan, power.draw, power.temperature), (None, None, Some(61.0)));
    assert_eq!(run.of::<GpuEcc>("nvidia0").last(), Some(&GpuEcc::default()));
    let activity = *run.of::<GpuActivity>("nvidia0").last().unwrap();
    assert_eq!((activity.encoder, activity.decoder), (None, Some(0.03)));
    assert_eq!(run.of::<GpuPower>("nvidia1").last().unwrap().fan, Some(0.3));
}

#[test]
fn parts_of_a_divided_card_are_devices_of_their_own() {
    let mut divided = card(0);
    divided["migs"] = json!([
        {"name": "MIG 1g.10gb", "uuid": "MIG-1", "compute": [[5_000_000, GIB]], "graphics": [], "process_samples": [],
         "memory": {"total": 10 * GIB, "reserved": 0, "free": 9 * GIB, "used": GIB}},
        {"name": "MIG 2g.20gb", "uuid": "MIG-2", "compute": [], "graphics": [], "process_samples": [],
         "memory": {"total": 20 * GIB, "reserved": 0, "free": 20 * GIB, "used": 0}},
    ]);
    let run = weighed_on(&machine(vec![divided.clone()]), &FAST, "readings 8");
    assert_eq!(run.faults(), "[]");
    let first = |gpu| run.of::<GpuMemory>(gpu).last().unwrap().used;
    assert_eq!((first("nvidia0:0"), first("nvidia0:1")), (Some(GIB), Some(0)));
    assert_eq!(first("nvidia0"), Some(4 * GIB));
    let part = *run.of::<GpuActivity>("nvidia0:0").last().unwrap();
    assert_eq!((part.processes, part.utilization), (Some(1), None));
    assert_eq!(run.of::<GpuActivity>("nvidia0").last().unwrap().processes, None);

    let run = weighed_on(&machine(vec![divided, card(1)]), &["--gpus", "MIG-2,1"], "readings 4");
    assert_eq!(run.of::<GpuMemory>("nvidia0").len(), 0, "it does not count");
    assert!(!run.of::<GpuMemory>("nvidia0:1").is_empty());
    assert!(!run.of::<GpuMemory>("nvidia1").is_empty());
}

#[test]
fn samples_of_the_driver_add_up_to_the_curve_they_are_of() {
    let mut waving = card(0);
    waving.as_object_mut().unwrap().remove("energy");
    waving["waves"] = json!({
        "0": {"low": 100_000, "high": 300_000, "half_ms": 20, "period_ms": 10},
        "1": {"low": 20, "high": 80, "half_ms": 20, "period_ms": 10},
    });
    let run = weighed_on(&machine(vec![waving]), &["-i", "100ms"], "readings 30");
    let activity = run.of::<GpuActivity>("nvidia0");
    let (busy, observed) =
        activity.iter().rev().find_map(|row| row.busy.zip(row.observed)).unwrap();
    assert!(observed > 2.0, "{observed} s");
    assert!((busy / observed - 0.5).abs() < 0.005, "{busy} s in {observed} s");
    // The card's own counter of energy, and its power added up.
    let power = run.of::<GpuPower>("nvidia0");
    let counted: Vec<(f64, f64)> =
        power.iter().filter_map(|row| row.energy.zip(row.energy_sampled)).collect();
    let (first, last) = (counted[0], *counted.last().unwrap());
    let share = (last.1 - first.1) / (last.0 - first.0);
    assert!((share - 1.0).abs() < 0.01, "{first:?} to {last:?}");
}

#[test]
fn energy_is_whole_also_when_the_driver_keeps_samples_for_less_than_an_interval() {
    let mut steady = card(0);
    steady.as_object_mut().unwrap().remove("energy");
    // 120 samples that are 1 ms apart reach back for 0.12 s.
    let wave = json!({"low": 200_000, "high": 200_000, "half_ms": 20, "period_ms": 1});
    steady["waves"] = json!({"0": wave});
    let run = weighed_on(&machine(vec![steady]), &["-i", "400ms"], "readings 8");
    // The card's own counter of energy is the truth.
    let power = run.of::<GpuPower>("nvidia0");
    let counted: Vec<(f64, f64)> =
        power.iter().filter_map(|row| row.energy.zip(row.energy_sampled)).collect();
    let (first, last) = (counted[0], *counted.last().unwrap());
    let share = (last.1 - first.1) / (last.0 - first.0);
    assert!((share - 1.0).abs() < 0.02, "{first:?} to {last:?}");
}

#[test]
fn a_card_that_only_tells_its_power_has_an_energy_all_the_same() {
    let mut old = card(0);
    old.as_object_mut().unwrap().remove("energy");
    let run = weighed_on(&machine(vec![old]), &FAST, "readings 10");
    let energy = &run.summary["figures"]["gpu_energy_joules"];
    assert_eq!(energy["method"], "estimated");
    // 350 W from the first look to the last.
    let power = run.of::<GpuPower>("nvidia0");
    assert!(power.iter().all(|row| row.energy.is_none() && row.draw == Some(350.0)));
    let seconds = run.summary["gpus"][0]["observed_seconds"].as_f64().unwrap();
    let joules = energy["value"].as_f64().unwrap();
    assert!((joules / (350.0 * seconds) - 1.0).abs() < 0.1, "{joules} J in {seconds} s");
}

#[test]
fn a_value_costs_one_call_a_look() {
    let mut used = card(0);
    used["samples"] = json!({"0": [], "1": [], "2": [], "3": [], "4": []});
    let run = weighed_on(&machine(vec![used]), &FAST, "readings 10");
    let asked = run.asked("0");
    let looks = asked["nvmlDeviceGetProcessUtilization"];
    for (call, count) in asked {
        // Values that are told apart by an argument: each is a call.
        let values = match call.as_str() {
            "nvmlDeviceGetViolationStatus" => 8,
            "nvmlDeviceGetSamples" => 5,
            "nvmlDeviceGetTotalEccErrors" => 4,
            "nvmlDeviceGetClockInfo" => 3,
            "nvmlDeviceGetPcieThroughput" => 2,
            _ => 1,
        };
        // One more where a card is met, and the look that the end of the run cut off.
        assert!(count <= values * (looks + 1) + 1, "{call}: {count} in {looks} looks");
    }
}

#[test]
fn what_links_carry_is_asked_when_all_cards_have_said_everything_else() {
    let run = weighed_on(&machine(vec![card(0), card(1)]), &FAST, "readings 20");
    let log = std::fs::read_to_string(run.directory.path().join("asked")).unwrap();
    let asked: Vec<&str> = log.lines().collect();
    let is_slow = |call: &str| call.starts_with("nvmlDeviceGetPcieThroughput");
    let first = asked.iter().position(|call| is_slow(call)).expect("it is asked");
    let before = asked[..first].iter().filter(|call| call.contains("ProcessUtilization")).count();
    assert_eq!(before, 2, "both cards were asked everything else");
    let next: Vec<&&str> = asked[first..].iter().take_while(|call| is_slow(call)).collect();
    assert_eq!(next.len(), 4, "{next:?}");
    // Looks are a tenth of a second apart, and not each of them asks.
    let asked = run.asked("0");
    let (slow, looks) =
        (asked["nvmlDeviceGetPcieThroughput"], asked["nvmlDeviceGetProcessUtilization"]);
    assert!(slow < 2 * looks, "{slow} in {looks} looks");
}

#[test]
fn doctor_says_whether_there_is_a_library_a_driver_and_a_right() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let said = |fails: serde_json::Value, library: Option<&str>| {
        let mut all = machine(vec![card(0)]);
        all["fails"] = fails;
        crate::cards::write(&script, &all);
        let mut doctor = crate::weighed::weigh(directory.path(), &["doctor", "--format", "json"]);
        crate::cards::on_stand_in(&mut doctor, &script);
        library.map(|path| doctor.env("WEIGH_NVML_LIBRARY", path));
        let output = crate::weighed::output(&mut doctor);
        let examined: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let mut collectors = examined["collectors"].as_array().unwrap().clone().into_iter();
        let gpu = collectors.find(|one| one["name"] == "gpu").unwrap();
        (gpu["state"].as_str().unwrap().to_owned(), gpu["why"].to_string())
    };
    assert_eq!(said(json!({}), None).0, "ready");
    let (state, why) = said(json!({"nvmlInit_v2": 9}), None);
    assert!(state == "absent" && why.contains("no NVIDIA driver is loaded"), "{why}");
    let (state, why) = said(json!({"nvmlInit_v2": 4}), None);
    assert!(state == "denied" && why.contains("permission"), "{why}");
    let (state, why) = said(json!({}), Some("/nonexistent/libnvidia-ml.so.1"));
    assert!(state == "absent" && why.contains("cannot be loaded"), "{why}");
}

#[test]
fn the_summary_and_the_predecessors_files_have_what_the_command_had() {
    let mut used = card(0);
    used["compute"] = json!([[4_000_001, 3 * GIB], [4_000_009, GIB]]);
    let line = "sed s/4000001/$$/ \"$WEIGH_STAND_IN\" > next; mv next \"$WEIGH_STAND_IN\"; \
                sleep 1.2; readings $(($(grep -c ProcessUtilization \"$ASKED\") + 8))";
    let run = weighed_on(&machine(vec![used, card(1)]), &FAST, line);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let peak = |part: &str| {
        run.summary["parts"][part]["figures"]["gpu_memory_peak_bytes"]["value"].clone()
    };
    assert_eq!((peak("main"), peak("descendants")), (json!(3 * GIB), json!(0)));
    assert_eq!((peak("combined"), peak("system")), (json!(3 * GIB), json!(8 * GIB)));
    assert_eq!(run.summary["gpus"][0]["processes"][0]["memory_peak_bytes"], json!(3 * GIB));
    assert_eq!(
        run.summary["host"]["gpus"],
        json!(["NVIDIA H100 80GB HBM3", "NVIDIA H100 80GB HBM3"])
    );
    assert!(run.stderr.contains("GPU memory"), "{}", run.stderr);
    let mut export = crate::weighed::weigh(
        run.directory.path(),
        &["export", "run", "--as", "gpu-tracker", "--gpu-ram-unit", "bytes", "-o", "exported"],
    );
    let exported = crate::weighed::output(&mut export);
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let json = std::fs::read(run.directory.path().join("exported/gpu-tracker.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let ram = &json["max_gpu_ram"];
    assert_eq!(ram["main"].as_f64(), Some((3 * GIB) as f64));
    assert_eq!(ram["system_capacity"].as_f64(), Some((160 * GIB) as f64));
    let busy = &json["gpu_utilization"];
    assert_eq!(
        (busy["system_gpu_count"].as_u64(), busy["n_expected_gpus"].as_u64()),
        (Some(2), Some(2))
    );
    assert_eq!(busy["gpu_percentages"]["max_hardware_percent"].as_f64(), Some(90.0));
}

#[test]
fn a_run_that_may_use_one_gpu_is_measured_by_that_one() {
    let mut idle = card(0);
    idle["utilization"] = json!({"gpu": 0, "memory": 0});
    let all = machine(vec![idle, card(1)]);
    let run = |visible: &str| {
        let variables = [("CUDA_VISIBLE_DEVICES", visible)];
        weighed_where(&all, &FAST, &variables, WHOLE_SECOND)
    };
    let second = run("GPU-00000000-0000-0000-0000-000000000001");
    let usable = |run: &OnCards| [0, 1].map(|gpu| run.summary["gpus"][gpu]["usable"].clone());
    assert_eq!(usable(&second), [json!(false), json!(true)]);
    let peak =
        |run: &OnCards| run.summary["figures"]["gpu_utilization_peak_ratio"]["value"].as_f64();
    assert_eq!(peak(&second), Some(0.9));
    let both = weighed_on(&all, &FAST, WHOLE_SECOND);
    assert_eq!((usable(&both), peak(&both)), ([json!(true), json!(true)], Some(0.45)));
    let none = run("");
    assert_eq!((usable(&none), peak(&none)), ([json!(false), json!(false)], None));

    let mut export = crate::weighed::weigh(
        second.directory.path(),
        &["export", "run", "--as", "gpu-tracker", "-o", "exported"],
    );
    let exported = crate::weighed::output(&mut export);
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let json = std::fs::read(second.directory.path().join("exported/gpu-tracker.json")).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let busy = &json["gpu_utilization"];
    assert_eq!((&busy["system_gpu_count"], &busy["n_expected_gpus"]), (&json!(2), &json!(1)));
    assert_eq!(busy["gpu_percentages"]["max_hardware_percent"].as_f64(), Some(90.0));
}
