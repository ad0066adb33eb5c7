//! Free space on the file system of the working directory, when it runs out.

use serde_json::json;

use super::super::counter_delta::LowestFreeSpace;
use super::super::{Finding, Severity};
use super::finding;
use crate::quantity::{self, Units};

/// Below both of these, free space is low: a twentieth of a large disk is plenty, and a small disk
/// never has more than a little.
const SHORT_SHARE: f64 = 0.05;
const SHORT_BYTES: f64 = 5.0 * (1u64 << 30) as f64;
const SHORT_FILES: f64 = 10_000.0;

/// Less than both of these counts as none: file systems allocate space in blocks.
const NOTHING_BYTES: f64 = (1u64 << 20) as f64;
const NOTHING_SHARE: f64 = 0.001;

/// A disk that fills up later than this leaves time to act.
const SOON_SECONDS: f64 = 86_400.0;

/// A file system that was full, or nearly.
pub(super) fn nearly_full(space: Option<LowestFreeSpace>) -> Option<Finding> {
    let space = space.filter(|space| is_short(space, SHORT_BYTES))?;
    let bytes = |value: f64| quantity::bytes(value, Units::Binary);
    let (code, severity, left) = if space.least < NOTHING_BYTES.min(space.total * NOTHING_SHARE) {
        ("filesystem.full", Severity::Problem, "no free space".to_owned())
    } else {
        ("filesystem.nearly_full", Severity::Warning, format!("only {} free", bytes(space.least)))
    };
    let sentence = format!(
        "The file system of the working directory ({}) had {left} at {}.{}",
        bytes(space.total),
        quantity::seconds(space.at),
        shrinking(&space, &bytes)
    );
    finding(
        code,
        severity,
        sentence,
        json!({
            "available_bytes": space.least,
            "total_bytes": space.total,
            "at_seconds": space.at,
            "loss_bytes_per_second": space.loss_per_second(),
            "full_after_seconds": space.seconds_left(),
        }),
        "Free space or write elsewhere; the largest here: du -xh . | sort -h | tail",
    )
}

/// A file system that has free space, and no free inodes.
pub(super) fn few_files_left(files: Option<LowestFreeSpace>) -> Option<Finding> {
    let files = files.filter(|files| is_short(files, SHORT_FILES))?;
    let severity = if files.least < 1.0 { Severity::Problem } else { Severity::Warning };
    let sentence = format!(
        "On the file system of the working directory only {} of {} files could still be made at \
         {}.{}",
        quantity::count(files.least),
        quantity::count(files.total),
        quantity::seconds(files.at),
        shrinking(&files, &quantity::count)
    );
    finding(
        "filesystem.few_files_left",
        severity,
        sentence,
        json!({
            "available_files": files.least,
            "total_files": files.total,
            "at_seconds": files.at,
            "loss_files_per_second": files.loss_per_second(),
            "full_after_seconds": files.seconds_left(),
        }),
        "Remove files or write fewer and larger ones; where most are: du -x --inodes . | sort -n | tail",
    )
}

fn is_short(supply: &LowestFreeSpace, least: f64) -> bool {
    supply.least < least && supply.least < supply.total * SHORT_SHARE
}

/// How fast it shrank, and when it would have run out.
fn shrinking(supply: &LowestFreeSpace, shown: &dyn Fn(f64) -> String) -> String {
    let Some(rate) = supply.loss_per_second() else { return String::new() };
    let soon = supply.seconds_left().filter(|left| supply.least > 0.0 && *left < SOON_SECONDS);
    let soon = soon.map_or_else(String::new, |left| {
        format!(": at that rate nothing would have been left {} later", quantity::seconds(left))
    });
    format!(" Until then {} a second were used up{soon}.", shown(rate))
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::found;
    use super::*;
    use crate::catalog::metrics::FileSystem;
    use crate::model::Entity;
    use crate::testing::{FakeRun, GIB};

    /// The finding on a disk of 100 GiB and a million files, sampled every ten seconds.
    fn finding_of(code: &str, samples: &[(u64, u64)]) -> Option<Finding> {
        let mut run = FakeRun::new();
        let mut end = 0.0;
        for (available, files_available) in samples {
            let row = FileSystem {
                total: Some(100 * GIB),
                available: Some(*available),
                files: Some(1_000_000),
                files_available: Some(*files_available),
                ..FileSystem::default()
            };
            run.sample(end, |tick| tick.put(Entity::Single, &row));
            end += 10.0;
        }
        found(&run.ends(end, |_| {}).summary(), code)
    }

    #[test]
    fn disk_that_fills_up_is_reported_with_its_rate_and_when_it_would_have_been_full() {
        let samples = [(6 * GIB, 500_000), (5 * GIB, 500_000), (2 * GIB, 500_000)];
        let finding = finding_of("filesystem.nearly_full", &samples).unwrap();
        assert_eq!(
            finding.sentence,
            "The file system of the working directory (100 GiB) had only 2.00 GiB free at 20.00 s. \
             Until then 205 MiB a second were used up: at that rate nothing would have been left \
             10.00 s later."
        );
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.evidence["available_bytes"], (2 * GIB) as f64);
        assert_eq!(finding.evidence["full_after_seconds"], 10.0);
        assert!(finding.advice.contains("du -xh"));
    }

    #[test]
    fn freed_space_has_a_lowest_point_and_no_end() {
        let samples = [(6 * GIB, 500_000), (GIB, 500_000), (6 * GIB, 500_000)];
        let finding = finding_of("filesystem.nearly_full", &samples).unwrap();
        assert_eq!(finding.evidence["at_seconds"], 10.0);
        assert!(finding.evidence["full_after_seconds"].is_null());
        assert!(finding.sentence.ends_with("were used up."), "{}", finding.sentence);
    }

    #[test]
    fn full_disk_is_a_problem_also_when_it_was_full_before() {
        let finding = finding_of("filesystem.full", &[(0, 500_000), (0, 500_000)]).unwrap();
        assert_eq!(finding.severity, Severity::Problem);
        assert_eq!(
            finding.sentence,
            "The file system of the working directory (100 GiB) had no free space at 0 s."
        );
        assert_eq!(
            finding_of("filesystem.nearly_full", &[(0, 500_000)]),
            None,
            "it is told of once"
        );
    }

    #[test]
    fn enough_bytes_are_enough_however_small_their_share_and_unknown_gives_no_finding() {
        assert_eq!(finding_of("filesystem.nearly_full", &[(6 * GIB, 500_000)]), None);
        let summary = FakeRun::new().ends(1.0, |_| {}).summary();
        assert!(summary.findings.is_empty(), "{:?}", summary.findings);
    }

    #[test]
    fn inodes_run_out_while_there_is_free_space() {
        let samples = [(50 * GIB, 9_000), (50 * GIB, 4_000)];
        let finding = finding_of("filesystem.few_files_left", &samples).unwrap();
        assert_eq!(
            finding.sentence,
            "On the file system of the working directory only 4,000 of 1,000,000 files could still \
             be made at 10.00 s. Until then 500 a second were used up: at that rate nothing would \
             have been left 8.00 s later."
        );
        assert_eq!(finding_of("filesystem.full", &samples), None);
    }
}
