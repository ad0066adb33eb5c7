//! The summary of a recording, and checks for every summary.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::weighed::{output, weigh};

/// The JSON of `weigh show` for a recording.
pub(crate) fn shown(recording: &Path) -> Value {
    let arguments = ["show".as_ref(), recording.as_os_str(), "--format".as_ref(), "json".as_ref()];
    let output = output(&mut weigh(Path::new("/"), &arguments));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{}: {stderr}", recording.display());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The lines of a recording's events, each of which must be JSON.
pub(crate) fn events(recording: &Path) -> Vec<Value> {
    let text = fs::read_to_string(recording.join("events.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}")))
        .collect()
}

/// A value with its method between its bounds, or null with a reason.
pub(crate) fn every_figure_is_explained(summary: &Value) {
    let parts = summary["parts"].as_object().unwrap();
    let all = std::iter::once(("run", summary)).chain(parts.iter().map(|(k, v)| (k.as_str(), v)));
    for (part, holder) in all {
        for (name, figure) in holder["figures"].as_object().unwrap() {
            let shown = format!("{part}: {name}: {figure}");
            let reason = figure["reason"].as_str().is_some_and(|reason| !reason.is_empty());
            assert!(!figure["source"].as_str().unwrap().is_empty(), "no source: {shown}");
            let Some(value) = figure["value"].as_f64() else {
                assert!(figure["value"].is_null() && reason, "null without a reason: {shown}");
                continue;
            };
            let method = figure["method"].as_str().unwrap_or_else(|| panic!("no method: {shown}"));
            assert!(["exact", "sampled", "estimated"].contains(&method), "{shown}");
            let (lower, upper) = (figure["lower"].as_f64(), figure["upper"].as_f64());
            assert!(lower.is_none_or(|lower| lower <= value), "{shown}");
            assert!(upper.is_none_or(|upper| upper >= value), "{shown}");
            assert!((lower.is_some() && upper.is_some()) || reason, "why no bound? {shown}");
        }
    }
}
