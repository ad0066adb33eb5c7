//! AMD and Intel GPUs: another `/sys`, made of files, beside the real `/proc`.

use std::path::Path;

use serde_json::json;

use crate::weighed::weighed_shell;

const AMD: &str = "class/drm/card0/device";

/// A root with the real processes and these files under `/sys`.
fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink("/proc", root.path().join("proc")).unwrap();
    std::fs::create_dir(root.path().join("sys")).unwrap();
    files.iter().for_each(|(path, content)| put(root.path(), path, content));
    root
}

fn put(root: &Path, path: &str, content: impl AsRef<[u8]>) {
    let path = root.join("sys").join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn amd() -> tempfile::TempDir {
    let uevent = "DRIVER=amdgpu\nPCI_ID=1002:740C\nPCI_SLOT_NAME=0000:41:00.0\n";
    let root = root(&[]);
    for (file, content) in [
        ("uevent", uevent),
        ("product_name", "AMD INSTINCT MI250\n"),
        ("unique_id", "a1b2c3d4e5f60718\n"),
        ("gpu_busy_percent", "40\n"),
        ("mem_info_vram_used", "1073741824\n"),
        ("mem_info_vram_total", "4294967296\n"),
        ("hwmon/hwmon2/power1_average", "250000000\n"),
    ] {
        put(root.path(), &format!("{AMD}/{file}"), content);
    }
    root
}

#[test]
fn amd_card_is_in_the_summary_with_its_integrated_power() {
    let root = amd();
    let options = ["--host-root", root.path().to_str().unwrap(), "--no-record", "-i", "100ms"];
    let run = weighed_shell(&options, "sleep 1.5").ended_with(0);
    let gpu = &run.summary["gpus"][0];
    assert_eq!((&gpu["name"], &gpu["model"]), (&json!("amd0"), &json!("AMD INSTINCT MI250")));
    assert_eq!(gpu["uuid"], "GPU-a1b2c3d4e5f60718");
    assert_eq!(gpu["memory_peak_bytes"], 1u64 << 30);
    run.figure("gpu_utilization_mean_ratio").is_within(1e-9, 0.4);
    assert_eq!(
        run.figure("gpu_memory_peak_bytes").value,
        Some(0.0),
        "no process of the run uses it"
    );
    // From the first sample to the last, somewhere in a run of a second and a half.
    let energy = run.figure("gpu_energy_joules");
    let joules = energy.is("estimated").known();
    assert!(
        joules > 0.0 && joules <= 250.0 * run.summary["run"]["duration_seconds"].as_f64().unwrap()
    );
}

/// `gpu_metrics` of an MI300X (content 1.7) with these counters.
fn metrics(joules: u64, cycles: u32, held_by_power: u32, busy_percents: u32) -> Vec<u8> {
    let mut table = vec![0xff; 2208];
    let mut put = |place: usize, content: &[u8]| {
        table[place..place + content.len()].copy_from_slice(content);
    };
    put(0, &2208u16.to_ne_bytes());
    put(2, &[1, 7]);
    put(24, &(joules << 16).to_ne_bytes());
    put(40, &cycles.to_ne_bytes());
    put(48, &held_by_power.to_ne_bytes());
    put(76, &busy_percents.to_ne_bytes());
    table
}

#[test]
fn amd_card_with_an_energy_counter_uses_it_instead_of_integrated_power() {
    let root = amd();
    let table = root.path().join("sys").join(AMD).join("gpu_metrics");
    let next = root.path().join("next");
    // So little power that its counter may stay the same for long.
    put(root.path(), &format!("{AMD}/hwmon/hwmon2/power1_average"), "500000\n");
    std::fs::write(&table, metrics(5000, 1000, 0, 0)).unwrap();
    std::fs::write(&next, metrics(5120, 2000, 250, 75_000)).unwrap();
    let options = ["--host-root", root.path().to_str().unwrap(), "--no-record", "-i", "50ms"];
    // A file of the kernel is never a partial table, and its descriptor stays valid.
    let change = format!("dd if={} of={} conv=notrunc bs=4096", next.display(), table.display());
    let line = format!("sleep 0.7; {change} 2>/dev/null; sleep 0.5");
    let run = weighed_shell(&options, &line).ended_with(0);
    assert_eq!(run.figure("gpu_energy_joules").is("sampled").value, Some(120.0));
    // Busy for three quarters of the time between the two samples around the change.
    run.figure("gpu_utilization_mean_ratio").is_within(1e-9, 0.75);
    assert!(!run.stderr.contains("gpu_metrics"), "{}", run.stderr);
}

#[test]
fn removed_card_is_a_fault_and_the_command_keeps_running() {
    let root = amd();
    let options = ["--host-root", root.path().to_str().unwrap(), "--no-record", "-i", "50ms"];
    let gone = root.path().join("sys/class/drm/card0");
    let line = format!("sleep 0.5; rm -r {}; sleep 0.5; exit 3", gone.display());
    let run = weighed_shell(&options, &line).ended_with(3);
    assert!(
        run.summary["monitor"]["faults"]
            .to_string()
            .contains("amd0: it was removed from the machine")
    );
}

#[test]
fn intel_gpu_has_energy_and_no_utilisation() {
    let energy = "class/drm/card1/device/hwmon/hwmon3/energy1_input";
    let root = root(&[
        (
            "class/drm/card1/device/uevent",
            "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:03:00.0\n",
        ),
        (energy, "5000000\n"),
    ]);
    let options = ["--host-root", root.path().to_str().unwrap(), "--no-record", "-i", "50ms"];
    let file = root.path().join("sys").join(energy);
    let line = format!("sleep 0.7; echo 9000000 > {}; sleep 0.5", file.display());
    let run = weighed_shell(&options, &line).ended_with(0);
    assert_eq!(run.figure("gpu_energy_joules").is("sampled").value, Some(4.0));
    let busy = run.figure("gpus_busy_mean");
    assert_eq!(busy.value, None);
    assert_eq!(run.summary["gpus"][0]["model"], "xe 8086:E20B");
    assert!(!run.stderr.contains("GPU"), "it is not worth a line: {}", run.stderr);
}
