//! Room on the file system of the working directory, when it runs out.

use serde_json::json;

use super::super::rise::Supply;
use super::super::{Finding, Severity};
use super::finding;
use crate::quantity::{self, Units};

/// Below both of these, room is short: a twentieth of a large disk is plenty, and a little
/// room is all that a small one ever has.
const SHORT_SHARE: f64 = 0.05;
const SHORT_BYTES: f64 = 5.0 * (1u64 << 30) as f64;
const SHORT_FILES: f64 = 10_000.0;

/// Less than both of these cannot be told from nothing: file systems give out room in pieces.
const NOTHING_BYTES: f64 = (1u64 << 20) as f64;
const NOTHING_SHARE: f64 = 0.001;

/// Whoever fills a disk later than this has time to look after it.
const SOON_SECONDS: f64 = 86_400.0;

/// A file system that was full, or nearly.
pub(super) fn nearly_full(room: Option<Supply>) -> Option<Finding> {
    let room = room.filter(|room| is_short(room, SHORT_BYTES))?;
    let bytes = |value: f64| quantity::bytes(value, Units::Binary);
    let (code, severity, left) = if room.least < NOTHING_BYTES.min(room.total * NOTHING_SHARE) {
        ("filesystem.full", Severity::Problem, "no room".to_owned())
    } else {
        ("filesystem.nearly_full", Severity::Warning, format!("only {}", bytes(room.least)))
    };
    let sentence = format!(
        "The file system of the working directory had {left} of {} left at {}.{}",
        bytes(room.total),
        quantity::seconds(room.at),
        shrinking(&room, &bytes)
    );
    finding(
        code,
        severity,
        sentence,
        json!({
            "available_bytes": room.least,
            "total_bytes": room.total,
            "at_seconds": room.at,
            "loss_bytes_per_second": room.loss_per_second(),
            "full_after_seconds": room.seconds_left(),
        }),
        "Free space or write elsewhere; the largest here: du -xh . | sort -h | tail",
    )
}

/// A file system that has room, and none for more files.
pub(super) fn few_files_left(files: Option<Supply>) -> Option<Finding> {
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

fn is_short(supply: &Supply, least: f64) -> bool {
    supply.least < least && supply.least < supply.total * SHORT_SHARE
}

/// How fast it became less, and when nothing would have been left.
fn shrinking(supply: &Supply, shown: &dyn Fn(f64) -> String) -> String {
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

    /// What is said of a disk of 100 GiB and a million files, looked at every ten seconds.
    fn said(code: &str, looks: &[(u64, u64)]) -> Option<Finding> {
        let mut run = FakeRun::new();
        let mut end = 0.0;
        for (available, files_available) in looks {
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
    fn a_disk_that_fills_up_is_told_of_with_its_rate_and_when_it_would_have_been_full() {
        let looks = [(6 * GIB, 500_000), (5 * GIB, 500_000), (2 * GIB, 500_000)];
        let finding = said("filesystem.nearly_full", &looks).unwrap();
        assert_eq!(
            finding.sentence,
            "The file system of the working directory had only 2.00 GiB of 100 GiB left at 20.00 s. \
             Until then 205 MiB a second were used up: at that rate nothing would have been left \
             10.00 s later."
        );
        assert_eq!(finding.severity, Severity::Warning);
        assert_eq!(finding.evidence["available_bytes"], (2 * GIB) as f64);
        assert_eq!(finding.evidence["full_after_seconds"], 10.0);
        assert!(finding.advice.contains("du -xh"));
    }

    #[test]
    fn room_that_was_given_back_has_a_lowest_point_and_no_end() {
        let looks = [(6 * GIB, 500_000), (GIB, 500_000), (6 * GIB, 500_000)];
        let finding = said("filesystem.nearly_full", &looks).unwrap();
        assert_eq!(finding.evidence["at_seconds"], 10.0);
        assert!(finding.evidence["full_after_seconds"].is_null());
        assert!(finding.sentence.ends_with("were used up."), "{}", finding.sentence);
    }

    #[test]
    fn a_disk_without_room_is_a_problem_also_when_it_was_full_before() {
        let finding = said("filesystem.full", &[(0, 500_000), (0, 500_000)]).unwrap();
        assert_eq!(finding.severity, Severity::Problem);
        assert_eq!(
            finding.sentence,
            "The file system of the working directory had no room of 100 GiB left at 0 s."
        );
        assert_eq!(said("filesystem.nearly_full", &[(0, 500_000)]), None, "it is told of once");
    }

    #[test]
    fn plenty_is_plenty_however_small_its_share_and_nothing_is_said_of_what_is_not_known() {
        assert_eq!(said("filesystem.nearly_full", &[(6 * GIB, 500_000)]), None);
        let summary = FakeRun::new().ends(1.0, |_| {}).summary();
        assert!(summary.findings.is_empty(), "{:?}", summary.findings);
    }

    #[test]
    fn files_run_out_while_there_is_room() {
        let looks = [(50 * GIB, 9_000), (50 * GIB, 4_000)];
        let finding = said("filesystem.few_files_left", &looks).unwrap();
        assert_eq!(
            finding.sentence,
            "On the file system of the working directory only 4,000 of 1,000,000 files could still \
             be made at 10.00 s. Until then 500 a second were used up: at that rate nothing would \
             have been left 8.00 s later."
        );
        assert_eq!(said("filesystem.full", &looks), None);
    }
}
