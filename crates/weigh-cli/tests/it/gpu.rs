//! GPUs, against a stand-in with known answers.

use serde_json::json;
use weigh::catalog::metrics::{
    GpuActivity, GpuEcc, GpuLink, GpuMemory, GpuPower, GpuThrottle, GpuUnits,
};

use crate::cards::{GIB, GpuRun, card, machine, measured_on, measured_with};

const FAST: [&str; 2] = ["-i", "50ms"];

/// What a driver reports in the first second also covers the time before.
const WHOLE_SECOND: &str = "sleep 1.2; readings $(($(grep -c ProcessUtilization \"$CALLS\") + 4))";

#[test]
fn values_of_cards_are_recorded_in_base_units() {
    let mut second = card(1);
    second["memory"]["used"] = json!(9 * GIB);
    let run = measured_on(&machine(vec![card(0), second]), &FAST, "readings 8");
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
fn memory_errors_during_the_run_are_a_finding() {
    let mut failing = card(0);
    failing["ecc"]["1"]["0"] = json!(4_000_003);
    let line = "readings 2; sed s/4000003/4000005/ \"$WEIGH_STAND_IN\" > next; \
                mv next \"$WEIGH_STAND_IN\"; \
                readings $(($(grep -c ProcessUtilization \"$CALLS\") + 6))";
    let run = measured_on(&machine(vec![failing, card(1)]), &FAST, line);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let errors = |gpu: usize| &run.summary["gpus"][gpu]["memory_errors_uncorrected"];
    assert_eq!((errors(0), errors(1)), (&json!(2), &json!(0)));
    let findings = run.summary["findings"].as_array().unwrap();
    let found: Vec<_> = findings.iter().filter(|one| one["code"] == "gpu.memory_errors").collect();
    assert_eq!(found[0]["evidence"], json!({"gpus": ["nvidia0"], "uncorrected": 2.0}));
    assert!(run.stderr.contains("2 errors in the memory of nvidia0"), "{}", run.stderr);
}

#[test]
fn card_without_fan_power_or_ecc_misses_only_those() {
    let mut bare = card(0);
    for missing in ["fan", "power", "ecc", "nvlink", "gpm", "encoder"] {
        bare.as_object_mut().unwrap().remove(missing);
    }
    let run = measured_on(&machine(vec![bare, card(1)]), &FAST, "readings 8");
    assert_eq!(run.faults(), "[]");
    let power = *run.of::<GpuPower>("nvidia0").last().unwrap();
    assert_eq!((power.fan, power.draw, power.temperature), (None, None, Some(61.0)));
    assert_eq!(run.of::<GpuEcc>("nvidia0").last(), Some(&GpuEcc::default()));
    let activity = *run.of::<GpuActivity>("nvidia0").last().unwrap();
    assert_eq!((activity.encoder, activity.decoder), (None, Some(0.03)));
    assert_eq!(run.of::<GpuPower>("nvidia1").last().unwrap().fan, Some(0.3));
}

#[test]
fn mig_instances_are_separate_devices() {
    let mut divided = card(0);
    divided["migs"] = json!([
        {"name": "MIG 1g.10gb", "uuid": "MIG-1", "compute": [[5_000_000, GIB]], "graphics": [], "process_samples": [],
         "memory": {"total": 10 * GIB, "reserved": 0, "free": 9 * GIB, "used": GIB}},
        {"name": "MIG 2g.20gb", "uuid": "MIG-2", "compute": [], "graphics": [], "process_samples": [],
         "memory": {"total": 20 * GIB, "reserved": 0, "free": 20 * GIB, "used": 0}},
    ]);
    let run = measured_on(&machine(vec![divided.clone()]), &FAST, "readings 8");
    assert_eq!(run.faults(), "[]");
    let first = |gpu| run.of::<GpuMemory>(gpu).last().unwrap().used;
    assert_eq!((first("nvidia0:0"), first("nvidia0:1")), (Some(GIB), Some(0)));
    assert_eq!(first("nvidia0"), Some(4 * GIB));
    let part = *run.of::<GpuActivity>("nvidia0:0").last().unwrap();
    assert_eq!((part.processes, part.utilization), (Some(1), None));
    assert_eq!(run.of::<GpuActivity>("nvidia0").last().unwrap().processes, None);

    let run = measured_on(&machine(vec![divided, card(1)]), &["--gpus", "MIG-2,1"], "readings 4");
    assert_eq!(run.of::<GpuMemory>("nvidia0").len(), 0, "it does not count");
    assert!(!run.of::<GpuMemory>("nvidia0:1").is_empty());
    assert!(!run.of::<GpuMemory>("nvidia1").is_empty());
}

#[test]
fn samples_of_the_driver_are_integrated_to_the_known_total() {
    let mut waving = card(0);
    waving.as_object_mut().unwrap().remove("energy");
    waving["waves"] = json!({
        "0": {"low": 100_000, "high": 300_000, "half_ms": 20, "period_ms": 10},
        "1": {"low": 20, "high": 80, "half_ms": 20, "period_ms": 10},
    });
    let run = measured_on(&machine(vec![waving]), &["-i", "100ms"], "readings 30");
    let activity = run.of::<GpuActivity>("nvidia0");
    let (busy, observed) =
        activity.iter().rev().find_map(|row| row.busy.zip(row.observed)).unwrap();
    assert!(observed > 2.0, "{observed} s");
    assert!((busy / observed - 0.5).abs() < 0.005, "{busy} s in {observed} s");
    // The card's own energy counter, and its integrated power.
    let power = run.of::<GpuPower>("nvidia0");
    let counted: Vec<(f64, f64)> =
        power.iter().filter_map(|row| row.energy.zip(row.energy_sampled)).collect();
    let (first, last) = (counted[0], *counted.last().unwrap());
    let share = (last.1 - first.1) / (last.0 - first.0);
    assert!((share - 1.0).abs() < 0.01, "{first:?} to {last:?}");
}

#[test]
fn energy_is_complete_when_the_sample_buffer_is_shorter_than_an_interval() {
    let mut steady = card(0);
    steady.as_object_mut().unwrap().remove("energy");
    // 120 samples that are 1 ms apart reach back for 0.12 s.
    let wave = json!({"low": 200_000, "high": 200_000, "half_ms": 20, "period_ms": 1});
    steady["waves"] = json!({"0": wave});
    let run = measured_on(&machine(vec![steady]), &["-i", "400ms"], "readings 8");
    // The card's own energy counter is the truth.
    let power = run.of::<GpuPower>("nvidia0");
    let counted: Vec<(f64, f64)> =
        power.iter().filter_map(|row| row.energy.zip(row.energy_sampled)).collect();
    let (first, last) = (counted[0], *counted.last().unwrap());
    let share = (last.1 - first.1) / (last.0 - first.0);
    assert!((share - 1.0).abs() < 0.02, "{first:?} to {last:?}");
}

#[test]
fn card_that_only_reports_power_has_integrated_energy() {
    let mut old = card(0);
    old.as_object_mut().unwrap().remove("energy");
    let run = measured_on(&machine(vec![old]), &FAST, "readings 10");
    let energy = &run.summary["figures"]["gpu_energy_joules"];
    assert_eq!(energy["method"], "estimated");
    // 350 W from the first poll to the last.
    let power = run.of::<GpuPower>("nvidia0");
    assert!(power.iter().all(|row| row.energy.is_none() && row.draw == Some(350.0)));
    let seconds = run.summary["gpus"][0]["observed_seconds"].as_f64().unwrap();
    let joules = energy["value"].as_f64().unwrap();
    assert!((joules / (350.0 * seconds) - 1.0).abs() < 0.1, "{joules} J in {seconds} s");
}

#[test]
fn each_value_costs_one_call_per_poll() {
    let mut used = card(0);
    used["samples"] = json!({"0": [], "1": [], "2": [], "3": [], "4": []});
    let run = measured_on(&machine(vec![used]), &FAST, "readings 10");
    let calls = run.calls("0");
    let polls = calls["nvmlDeviceGetProcessUtilization"];
    for (call, count) in calls {
        // Values selected by an argument: each is a call.
        let values = match call.as_str() {
            "nvmlDeviceGetViolationStatus" => 8,
            "nvmlDeviceGetSamples" => 5,
            "nvmlDeviceGetTotalEccErrors" => 4,
            "nvmlDeviceGetClockInfo" => 3,
            "nvmlDeviceGetPcieThroughput" => 2,
            _ => 1,
        };
        // One more when a card is found, and the poll that the end of the run cut off.
        assert!(count <= values * (polls + 1) + 1, "{call}: {count} in {polls} polls");
    }
}

#[test]
fn pcie_throughput_is_polled_after_all_other_values_of_all_cards() {
    let run = measured_on(&machine(vec![card(0), card(1)]), &FAST, "readings 20");
    let log = std::fs::read_to_string(run.directory.path().join("calls")).unwrap();
    let calls: Vec<&str> = log.lines().collect();
    let is_slow = |call: &str| call.starts_with("nvmlDeviceGetPcieThroughput");
    let first = calls.iter().position(|call| is_slow(call)).expect("it is polled");
    let before = calls[..first].iter().filter(|call| call.contains("ProcessUtilization")).count();
    assert_eq!(before, 2, "both cards were polled for everything else");
    let next: Vec<&&str> = calls[first..].iter().take_while(|call| is_slow(call)).collect();
    assert_eq!(next.len(), 4, "{next:?}");
    // Polls are a tenth of a second apart, and not each of them reads it.
    let calls = run.calls("0");
    let (slow, polls) =
        (calls["nvmlDeviceGetPcieThroughput"], calls["nvmlDeviceGetProcessUtilization"]);
    assert!(slow < 2 * polls, "{slow} in {polls} polls");
}

#[test]
fn doctor_reports_a_missing_library_driver_or_permission() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let message = |fails: serde_json::Value, library: Option<&str>| {
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
    assert_eq!(message(json!({}), None).0, "ready");
    let (state, why) = message(json!({"nvmlInit_v2": 9}), None);
    assert!(state == "absent" && why.contains("no NVIDIA driver is loaded"), "{why}");
    let (state, why) = message(json!({"nvmlInit_v2": 4}), None);
    assert!(state == "denied" && why.contains("permission"), "{why}");
    let (state, why) = message(json!({}), Some("/nonexistent/libnvidia-ml.so.1"));
    assert!(state == "absent" && why.contains("cannot be loaded"), "{why}");
}

#[test]
fn summary_and_compatible_formats_have_the_gpu_usage_of_the_command() {
    let mut used = card(0);
    used["compute"] = json!([[4_000_001, 3 * GIB], [4_000_009, GIB]]);
    let line = "sed s/4000001/$$/ \"$WEIGH_STAND_IN\" > next; mv next \"$WEIGH_STAND_IN\"; \
                sleep 1.2; readings $(($(grep -c ProcessUtilization \"$CALLS\") + 8))";
    let run = measured_on(&machine(vec![used, card(1)]), &FAST, line);
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
fn run_with_one_visible_gpu_is_measured_by_that_one() {
    let mut idle = card(0);
    idle["utilization"] = json!({"gpu": 0, "memory": 0});
    let all = machine(vec![idle, card(1)]);
    let run = |visible: &str| {
        let variables = [("CUDA_VISIBLE_DEVICES", visible)];
        measured_with(&all, &FAST, &variables, WHOLE_SECOND)
    };
    let second = run("GPU-00000000-0000-0000-0000-000000000001");
    let usable = |run: &GpuRun| [0, 1].map(|gpu| run.summary["gpus"][gpu]["usable"].clone());
    assert_eq!(usable(&second), [json!(false), json!(true)]);
    let peak =
        |run: &GpuRun| run.summary["figures"]["gpu_utilization_peak_ratio"]["value"].as_f64();
    assert_eq!(peak(&second), Some(0.9));
    let both = measured_on(&all, &FAST, WHOLE_SECOND);
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
