//! Made-up runs for the tests of reports.

use super::process_table::{ListedProcesses, ProcessTable};
use crate::record::Manifest;
use crate::summary::Summary;
use crate::testing::FakeRun;

/// A run of `./work hard` by ada.
pub(super) fn work_hard() -> FakeRun {
    let mut run = FakeRun::new();
    run.manifest.id = "20231114T221320-00000001".to_owned();
    run.manifest.command = Some(vec!["./work".to_owned(), "hard".to_owned()]);
    run.manifest.user = Some("ada".to_owned());
    run
}

/// The inputs of a report.
pub(super) fn read(run: FakeRun) -> (Manifest, Summary, ListedProcesses) {
    let summary = run.summary();
    let participants = listed(&run, |_| summary.run.measured());
    (run.manifest, summary, participants)
}

/// The processes of a run that lasted until its last tick or event.
pub(super) fn participants(run: &FakeRun) -> ListedProcesses {
    listed(run, |last| last)
}

/// The processes of a run, whose duration follows from its last tick or event.
fn listed(run: &FakeRun, duration: impl FnOnce(f64) -> f64) -> ListedProcesses {
    let (mut process_table, mut last) = (ProcessTable::new(&run.manifest), 0.0_f64);
    let frames = run.replay(|frame| {
        last = last.max(frame.at());
        process_table.frame(frame);
    });
    process_table.finish(frames.live(), duration(last))
}
