//! Made-up runs for the tests of reports.

use super::process_table::{ListedProcesses, ProcessTable};
use crate::record::{Manifest, Moment};
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
    let (process_table, _) = process_table(&run);
    let participants = process_table.finish(summary.run.measured());
    (run.manifest, summary, participants)
}

/// The processes of a run that lasted until its last tick or event.
pub(super) fn participants(run: &FakeRun) -> ListedProcesses {
    let (process_table, last) = process_table(run);
    process_table.finish(last)
}

/// The processes of a run, and the time of its last tick or event.
fn process_table(run: &FakeRun) -> (ProcessTable, f64) {
    let (mut process_table, mut last) = (ProcessTable::new(&run.manifest), 0.0_f64);
    run.replay(|moment| match moment {
        Moment::Tick(tick) => {
            last = last.max(tick.at.as_secs_f64());
            process_table.tick(tick);
        }
        Moment::Event(entry) => {
            last = last.max(entry.seconds);
            process_table.event(entry);
        }
    });
    (process_table, last)
}
