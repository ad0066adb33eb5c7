//! Files as nvidia-smi and pytyche write them, with known values.

mod rounds;

use super::*;
use crate::compat::python::dumps_line;

/// Two GPUs every two seconds; the second reports no power.
const TWO: &str = "\
2026/11/15 18:17:24.970, 90, 40, 4000, 81920, 300.00, 60, 1980, 2619
2026/11/15 18:17:24.973, 10, 5, 1000, 24576, [N/A], 40, 1410, 1215
2026/11/15 18:17:26.971, 70, 20, 5000, 81920, 200.00, 62, 1980, 2619
2026/11/15 18:17:26.974, 30, 15, 9000, 24576, [N/A], 41, 1410, 1215
2026/11/15 18:17:28.970, 80, 30, 4500, 81920, 100.00, 61, 1980, 2619
2026/11/15 18:17:28.973, 20, 10, 1000, 24576, [N/A], 40, 1410, 1215
";

/// The same by `dmon -s mu`, where BAR1 memory is the third column.
const DMON_TWO: &str = "\
# gpu     fb   bar1   ccpm     sm    mem    enc    dec    jpg    ofa 
# Idx     MB     MB     MB      %      %      %      %      %      % 
    0   4000    257      0     90     40      0      0      0      0 
    1   1000    257      0     10      5      0      0      0      0 
# gpu     fb   bar1   ccpm     sm    mem    enc    dec    jpg    ofa 
# Idx     MB     MB     MB      %      %      %      %      %      % 
    0   5000    257      0     70     20      0      0      0      0 
    1   9000    257      0     30     15      0      0      -      - 
";

const CPU_ROWS: &str = "\
timestamp,usr_pct,idle_pct
2026-11-15T17:17:26.970+00:00,30.0,60.0
2026-11-15T17:17:28.970+00:00,10.0,90.0
";

const MIB: u64 = 1 << 20;

fn import_of(metrics: &str, dmon: &str, cpu: &str) -> Imported {
    let bytes = |text: &str| Some(text.as_bytes().to_vec()).filter(|bytes| !bytes.is_empty());
    summarize(bytes(metrics).map(|bytes| (METRICS, bytes)), bytes(dmon), bytes(cpu))
}

#[test]
fn files_of_any_name_are_read_and_one_that_does_not_exist_has_no_rows() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    std::fs::write(path("gpus of monday"), TWO).unwrap();
    std::fs::write(path("cpus"), CPU_ROWS).unwrap();
    let read = read_files(Some(&path("gpus of monday")), Some(&path("cpus")), Some(&path("none")));
    assert_eq!(read.unwrap().resources(), import_of(TWO, "", CPU_ROWS).resources());
    let nothing = read_files(None, None, None).unwrap();
    assert_eq!(nothing.resources(), ResourceSummary::default());
}

fn is_near(value: Option<f64>, truth: f64) -> bool {
    value.is_some_and(|value| (value - truth).abs() < 1e-3 * truth.max(1.0))
}

#[test]
fn rows_of_two_gpus_are_separated_and_only_missing_power_is_missing() {
    let imported = import_of(TWO, DMON_TWO, CPU_ROWS);
    assert_eq!((imported.gpus.len(), &imported.gpus_together), (2, &None), "{imported:#?}");
    let [first, second] = &imported.gpus[..] else { panic!("{imported:#?}") };
    assert_eq!((first.index, second.index), (Some(0), Some(1)));
    assert!(
        is_near(first.utilization_mean_ratio, 0.8) && is_near(second.utilization_mean_ratio, 0.2)
    );
    assert_eq!(
        (first.utilization_peak_ratio, second.utilization_peak_ratio),
        (Some(0.9), Some(0.3))
    );
    assert!(is_near(first.memory_utilization_mean_ratio, 0.3), "not BAR1: {first:?}");
    assert_eq!(
        (first.memory_peak_bytes, second.memory_peak_bytes),
        (Some(5000 * MIB), Some(9000 * MIB))
    );
    assert_eq!((first.memory_bytes, second.memory_bytes), (Some(81920 * MIB), Some(24576 * MIB)));
    // A slope from 300 W to 100 W in four seconds.
    assert!(is_near(first.energy_joules, 800.0) && is_near(first.energy_covers_seconds, 4.0));
    assert!(is_near(first.power_mean_watts, 200.0));
    assert_eq!((second.power_mean_watts, second.energy_joules), (None, None));
    assert_eq!((first.temperature_peak_celsius, second.rows), (Some(62.0), 3));
    assert!(
        is_near(imported.cpu.user_mean_ratio, 0.2) && is_near(imported.cpu.idle_mean_ratio, 0.75)
    );
    assert_eq!(imported.notes, [""; 0]);
    let times = imported.files[0].times.as_ref().unwrap();
    assert_eq!((times.first.as_str(), times.gaps), ("2026/11/15 18:17:24.970", 0));
    assert!(is_near(times.interval_seconds, 2.0), "{times:?}");
    assert_eq!(
        dumps_line(&imported.resources().to_dict()),
        r#"{"peak_vram_mb": 9000.0, "gpu_util_mean_pct": 50.0, "gpu_util_max_pct": 90.0, "power_watts_mean": 200.0, "power_watts_max": 300.0, "cpu_usr_mean_pct": 20.0, "cpu_idle_mean_pct": 75.0, "mem_util_mean_pct": 20.0, "mem_util_max_pct": 40.0}"#
    );
}

#[test]
fn dmon_alone_gives_its_own_columns() {
    let imported = import_of("", DMON_TWO, "");
    let second = &imported.gpus[1];
    assert_eq!((second.index, second.rows), (Some(1), 2));
    assert_eq!(
        (second.utilization_mean_ratio, second.memory_peak_bytes),
        (Some(0.2), Some(9000 * MIB))
    );
    assert_eq!((second.memory_utilization_peak_ratio, second.power_mean_watts), (Some(0.15), None));
    assert_eq!(imported.cpu, ImportedCpu::default());
}

#[test]
fn files_cut_at_any_byte_are_read_up_to_the_cut() {
    let rows = |imported: &Imported| imported.files.iter().map(|file| file.rows).sum::<u64>();
    for text in [TWO, DMON_TWO, CPU_ROWS] {
        for end in 1..text.len() {
            let cut = &text[..end];
            let imported = match text {
                TWO => import_of(cut, "", ""),
                DMON_TWO => import_of("", cut, ""),
                _ => import_of("", "", cut),
            };
            let file = &imported.files[0];
            assert_eq!(file.is_torn, !cut.ends_with('\n'), "cut at {end}");
            assert_eq!(file.unreadable_lines, 0, "cut at {end}: {file:?}");
            let whole = cut.lines().filter(|line| !line.starts_with(['#', 't'])).count() as u64;
            assert!(rows(&imported) <= whole, "cut at {end}");
            let known = imported.gpus.iter().filter_map(|gpu| gpu.memory_peak_bytes);
            assert!(known.max().is_none_or(|most| most <= 9000 * MIB), "cut at {end}");
        }
    }
}

#[test]
fn incomplete_round_is_left_out_and_the_others_stay() {
    let cut: Vec<&str> = TWO.lines().take(5).collect();
    let imported = import_of(&(cut.join("\n") + "\n"), DMON_TWO, "");
    assert_eq!((imported.gpus.len(), imported.gpus[0].rows, imported.gpus[1].rows), (2, 2, 2));
    assert_eq!(imported.gpus[0].memory_peak_bytes, Some(5000 * MIB));
    assert_eq!(imported.notes.len(), 1, "{:?}", imported.notes);
    assert!(
        imported.notes[0].contains("rows whose GPU is not known: 1 of 5"),
        "{:?}",
        imported.notes
    );
}

#[test]
fn index_column_decides_the_gpu() {
    let table = "\
timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], power.draw [W]
2026/11/15 18:17:24.100, 3, GPU-3, Tesla T4, 50, 100, 70.00
2026/11/15 18:17:24.100, 5, GPU-5, Tesla T4, 10, 200, [N/A]
2026/11/15 18:17:24.200, 3, GPU-3, Tesla T4, 70, 100, 70.00
";
    let imported = summarize(Some((APART, table.as_bytes().to_vec())), None, None);
    let [third, fifth] = &imported.gpus[..] else { panic!("{imported:#?}") };
    assert_eq!((third.index, third.uuid.as_deref(), third.rows), (Some(3), Some("GPU-3"), 2));
    assert_eq!((fifth.index, fifth.model.as_deref()), (Some(5), Some("Tesla T4")));
    assert!(is_near(third.energy_joules, 7.0) && is_near(third.utilization_mean_ratio, 0.6));
    assert!(is_near(imported.files[0].times.as_ref().unwrap().interval_seconds, 0.1));
}

#[test]
fn unreadable_lines_are_counted_and_shown_and_windows_line_ends_are_read() {
    let mixed = format!("{TWO}Unable to determine the device handle for GPU0: \u{1b}[31mlost\n");
    let mixed = format!("\u{feff}{}", mixed.replace('\n', "\r\n"));
    let imported = import_of(&mixed, "    0   4000    257\n", "");
    let [metrics, dmon] = &imported.files[..] else { panic!("{imported:#?}") };
    assert_eq!((metrics.rows, metrics.unreadable_lines, imported.gpus.len()), (6, 1, 2));
    let shown = metrics.first_unreadable.as_ref().unwrap();
    assert!(shown.line == 7 && shown.text.starts_with("Unable to determine"), "{shown:?}");
    assert!(!shown.text.contains('\u{1b}'), "escape sequences are not printed: {shown:?}");
    assert_eq!(dmon.first_unreadable.as_ref().unwrap().why, "no header before it");
    assert_eq!(imported.notes.len(), 2, "{:?}", imported.notes);
}

#[test]
fn empty_files_give_no_zeros_and_missing_files_are_an_error() {
    let directory = tempfile::tempdir().unwrap();
    let nothing = read(directory.path());
    assert!(matches!(&nothing, Err(Error::Nothing { .. })), "{nothing:?}");
    assert!(nothing.unwrap_err().to_string().contains("hw_metrics.csv, hw_dmon.csv"));
    // What pytyche leaves where there is no nvidia-smi.
    std::fs::write(directory.path().join(METRICS), "").unwrap();
    std::fs::write(directory.path().join(DMON), "").unwrap();
    let imported = read(directory.path()).unwrap();
    assert_eq!((imported.gpus.len(), imported.resources()), (0, ResourceSummary::default()));
    assert_eq!(imported.notes.len(), 3, "{:?}", imported.notes);
    assert_eq!(imported.notes[0], "cpu_metrics.csv does not exist");
    // What nvidia-smi prints where there is no driver.
    std::fs::write(directory.path().join(METRICS), "NVIDIA-SMI has failed\n").unwrap();
    let message = read(directory.path()).unwrap_err().to_string();
    assert!(
        message.contains("no row can be read") && message.contains("NVIDIA-SMI has"),
        "{message}"
    );
    let path = directory.path().join(METRICS);
    assert!(matches!(read(&path), Err(Error::NotADirectory { .. })));
}

#[test]
fn unreadable_row_keeps_its_place_in_the_round() {
    for bad in ["101", "4294967295", "-1", "Unknown Error", "ERR!"] {
        let metrics = TWO.replace(" 90, 40, 4000", &format!(" {bad}, 40, 4000"));
        let imported = import_of(&metrics, "", "");
        let [first, second] = &imported.gpus[..] else { panic!("{bad}: {imported:#?}") };
        assert_eq!(first.memory_peak_bytes, Some(5000 * MIB), "{bad}");
        assert_eq!(second.memory_peak_bytes, Some(9000 * MIB), "{bad}");
        assert!(is_near(first.utilization_mean_ratio, 0.75), "{bad}: {first:?}");
    }
}

#[test]
fn special_file_is_refused_by_name_and_not_read() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(CPU);
    let message = || match read(directory.path()) {
        Err(error @ Error::NotAFile { .. }) => error.to_string(),
        other => panic!("{other:?}"),
    };
    std::fs::create_dir(&path).unwrap();
    assert!(
        message().ends_with("cpu_metrics.csv is a directory, not a regular file"),
        "{}",
        message()
    );
    std::fs::remove_dir(&path).unwrap();
    std::os::unix::fs::symlink("/dev/null", &path).unwrap();
    assert!(message().contains("is a device, not"), "{}", message());
    std::fs::remove_file(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    assert!(message().contains("is a named pipe, not"), "{}", message());
    // A symbolic link to a regular file is read.
    std::fs::remove_file(&path).unwrap();
    let elsewhere = directory.path().join("elsewhere");
    std::fs::write(&elsewhere, CPU_ROWS).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &path).unwrap();
    assert_eq!(read(directory.path()).unwrap().files[0].rows, 2);
}
