//! perfmon's log file: when each node was recorded, and what was missing.
//!
//! Lines are in its format, `time | level | host | module:function | line | message`; times are UTC.

use jiff::Timestamp;

use crate::record::{Event, Recording};
use crate::text::printable;

/// Its name, beside the other files.
pub(super) const FILE: &str = "ska_sdp_monitoring_metrics.log";

/// The log of these recordings.
pub(super) fn text(recordings: &[Recording]) -> String {
    let mut lines: Vec<(Timestamp, String)> = Vec::new();
    for recording in recordings {
        let manifest = recording.manifest();
        let mut add = |seconds: f64, level: &str, message: &str| {
            let since = jiff::SignedDuration::from_secs_f64(seconds);
            let at = manifest.started.checked_add(since).unwrap_or(manifest.started);
            let (time, host) = (at.strftime("%Y-%m-%d %H:%M:%S"), printable(&manifest.host.name));
            let message = printable(message);
            lines.push((at, format!("{time} | {level} | {host} | weigh:record | 0 | {message}\n")));
        };
        let target = manifest.target.as_ref().map(|target| target.words());
        add(0.0, "INFO", &format!("recording {}", target.unwrap_or_else(|| manifest.name.clone())));
        for entry in recording.entries() {
            match &entry.event {
                Event::Fault { source, why } => {
                    add(entry.seconds, "WARNING", &format!("{source}: {why}"));
                }
                event if event.is_last() => add(entry.seconds, "INFO", "the recording has ended"),
                _ => {}
            }
        }
    }
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(_, line)| line).collect()
}
