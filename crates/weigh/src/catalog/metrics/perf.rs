//! Hardware and software events that perf counts for the run.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// One event, counted in all processes of the run.
    pub struct EventCount in PerfEvent / "event", "Hardware counters" {
        /// Events counted, those of exited processes included. Where the event was not counted all
        /// the time (`running` is less than `enabled`), the true number is higher.
        count: Counter u64 One, "Events counted", from "perf_event_open, inherited";
        /// CPU time of the run in which the event was counted: less than `enabled` when there were
        /// fewer counters than events.
        running: Counter f64 Seconds ObservedTimeOf(count), "CPU time counted", from "PERF_FORMAT_TOTAL_TIME_RUNNING";
        /// CPU time of the run in which the event should have been counted.
        enabled: Counter f64 Seconds ObservedTimeOf(running), "CPU time of the counters", from "PERF_FORMAT_TOTAL_TIME_ENABLED";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Perf,
    name: "perf",
    about: "hardware counters of the run: instructions, cycles, branches, cache misses",
    groups: &[EventCount::METRICS],
    on_request: false,
    everywhere: false,
};
