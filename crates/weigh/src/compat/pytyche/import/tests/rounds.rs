//! Which row is of which GPU, in files with known values.

use super::*;

#[test]
fn rows_that_cannot_be_attributed_are_reported_and_count_for_all_gpus() {
    // The driver is slow, so a round looks like two.
    let slow =
        TWO.replace("24.973", "25.973").replace("26.974", "27.974").replace("28.973", "29.973");
    let imported = import_of(&slow, DMON_TWO, "");
    let together = imported.gpus_together.as_ref().unwrap();
    assert!(imported.notes[0].contains("the GPU of a row is not known"), "{imported:#?}");
    assert_eq!((together.memory_peak_bytes, together.energy_joules), (Some(9000 * MIB), None));
    assert!(is_near(together.utilization_mean_ratio, 0.5), "{together:?}");
    // dmon says which GPU is which.
    assert_eq!(imported.gpus[1].memory_peak_bytes, Some(9000 * MIB));
    assert_eq!(imported.gpus[1].power_mean_watts, None);
    let ours = imported.resources();
    assert_eq!((ours.peak_vram_mb, ours.power_watts_max), (Some(9000.0), Some(300.0)));
    // Without dmon, one row a second looks like one GPU, but its memory size changes.
    let alone = import_of(&slow, "", "");
    assert!(alone.gpus_together.is_some(), "{alone:#?}");
    assert!(alone.notes[0].contains("order of rows has changed"), "{:?}", alone.notes);
}

#[test]
fn rounds_of_different_sizes_are_not_guessed() {
    let lines: Vec<&str> = TWO.lines().collect();
    for places in [&[0, 1, 2, 4][..], &[0, 2, 4, 5], &[1, 2, 3, 4]] {
        let some: String = places.iter().map(|place| format!("{}\n", lines[*place])).collect();
        let imported = import_of(&some, "", "");
        assert!(imported.gpus_together.is_some(), "{places:?}: {imported:#?}");
        assert!(
            imported.notes[0].contains("rounds have different numbers of rows"),
            "{:?}",
            imported.notes
        );
    }
}

/// Rounds of some GPUs, `every` milliseconds apart. Of a GPU: its memory in use, and the time of
/// its row after the first of the round.
fn rounds(every: u64, gpus: &[(u64, u64)], numbers: std::ops::Range<u64>) -> String {
    let row = |number: u64, (used, after): (u64, u64)| {
        let at = number * every + after;
        let (hours, minutes) = (10 + at / 3_600_000, at / 60_000 % 60);
        let (seconds, rest) = (at / 1000 % 60, at % 1000);
        format!(
            "2026/11/15 {hours}:{minutes:02}:{seconds:02}.{rest:03}, 50, 20, {used}, 81920, \
             {}.00, 50, 1980, 2619\n",
            used / 10
        )
    };
    numbers.flat_map(|number| gpus.iter().map(move |gpu| row(number, *gpu))).collect()
}

fn shape(imported: &Imported) -> (usize, bool) {
    (imported.gpus.len(), imported.gpus_together.is_some())
}

#[test]
fn gpu_that_drops_out_does_not_hide_later_peaks() {
    let metrics =
        rounds(2000, &[(4000, 0), (1000, 3)], 0..60) + &rounds(2000, &[(7000, 0)], 60..100);
    let imported = import_of(&metrics, "", "");
    assert_eq!(shape(&imported), (2, true));
    let ours = imported.resources();
    assert_eq!((ours.peak_vram_mb, ours.power_watts_max), (Some(7000.0), Some(700.0)));
    assert!(imported.notes[0].contains("40 of 160"), "{:?}", imported.notes);
    assert_eq!(imported.gpus[1].memory_peak_bytes, Some(1000 * MIB));
}

#[test]
fn short_interval_makes_no_extra_gpus() {
    for (every, gpus) in [
        (100, &[(4000, 0)][..]),
        (60, &[(4000, 0)]),
        (200, &[(4000, 0), (1000, 0)]),
        (100, &[(4000, 0), (1000, 3), (7, 4)]),
        (2000, &[(4000, 0), (1000, 1), (7, 90), (8, 91)]),
        (1000, &[(1, 0), (2, 60), (3, 120), (4, 180), (5, 240), (6, 300), (7, 360), (8, 420)]),
    ] {
        let imported = import_of(&rounds(every, gpus, 0..50), "", "");
        assert_eq!(shape(&imported), (gpus.len(), false), "{every}: {:?}", imported.notes);
        let times = imported.files[0].times.as_ref().unwrap();
        assert!(is_near(Some(times.duration_seconds), 49.0 * every as f64 / 1e3), "{times:?}");
        assert_eq!(imported.gpus[0].memory_peak_bytes, Some(gpus[0].0 * MIB));
        // Neither does a gap.
        let with_a_gap = rounds(every, gpus, 0..25) + &rounds(every, gpus, 2025..2050);
        let imported = import_of(&with_a_gap, "", "");
        assert_eq!(shape(&imported), (gpus.len(), false), "{every}: {:?}", imported.notes);
        assert_eq!(imported.files[0].times.as_ref().unwrap().gaps, 1);
    }
}

#[test]
fn times_without_a_pattern_make_no_gpus() {
    let one_by_one = |steps: &[u64]| -> String {
        let mut at = 0;
        let row = |step: &u64| {
            at += step;
            rounds(0, &[(5, at)], 0..1)
        };
        steps.iter().map(row).collect()
    };
    for steps in [&[15; 60][..], &[0, 3, 100, 100, 3, 3, 100, 20, 40, 90], &[0, 3, 200, 200, 200]] {
        let imported = import_of(&one_by_one(steps), "", "");
        assert_eq!(shape(&imported), (0, true), "{steps:?}: {imported:#?}");
        let message = "or no steady interval, so the GPU of a row is not known";
        assert!(imported.notes.iter().any(|note| note.ends_with(message)), "{:?}", imported.notes);
    }
}

#[test]
fn gpus_have_the_numbers_of_dmon() {
    let dmon = "# gpu sm mem fb\n 2 50 20 4000\n 5 50 20 1000\n";
    let imported = import_of(&rounds(2000, &[(4000, 0), (1000, 3)], 0..9), dmon, "");
    let numbers: Vec<_> = imported.gpus.iter().map(|gpu| (gpu.index, gpu.rows)).collect();
    assert_eq!(numbers, [(Some(2), 9), (Some(5), 9)]);
}

#[test]
fn all_gpus_together_are_never_less_than_one_of_them() {
    let dmon = "# gpu sm mem fb\n 0 90 40 9000\n 1 10 40 18000\n".repeat(10);
    let dmon = dmon.replacen("# gpu sm mem fb\n", "", 9);
    let imported =
        import_of(&rounds(2000, &[(4000, 0)], 0..10), &format!("# gpu sm mem fb\n{dmon}"), "");
    assert_eq!(shape(&imported), (2, true));
    assert!(imported.notes[0].contains("has 2 GPUs and a round of hw_metrics.csv has 1 row, so"));
    let ours = imported.resources();
    assert_eq!((ours.peak_vram_mb, ours.gpu_util_max_pct), (Some(18000.0), Some(90.0)));
    assert!(is_near(ours.gpu_util_mean_pct, 50.0) && is_near(ours.mem_util_mean_pct, 40.0));
}

#[test]
fn clock_set_back_is_not_a_missing_row() {
    let two = [(4000, 0), (1000, 3)];
    let imported =
        import_of(&(rounds(2000, &two, 1800..1810) + &rounds(2000, &two, 10..20)), "", "");
    assert_eq!(shape(&imported), (2, false));
    let times = imported.files[0].times.as_ref().unwrap();
    assert_eq!((times.gaps, times.clock_set_back, times.duration_seconds), (0, 1, 36.0));
    let [message] = &imported.notes[..] else { panic!("{:?}", imported.notes) };
    assert!(
        message.contains("the clock was set back once") && !message.contains("missing"),
        "{message}"
    );
}
