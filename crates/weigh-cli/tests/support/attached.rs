//! Running loads, and weigh attached to them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use weigh::catalog::all_groups;
use weigh::record::{Moment, Recording};

use crate::weighed::{Figure, end_of, output, plain, signal, wait_until, weigh, with_timeout};

/// A running shell that prints `ready` and waits for a line where its script has `wait_for_input`.
pub(crate) struct Load {
    pub child: Child,
    lines: BufReader<ChildStdout>,
}

impl Load {
    /// Runs a script up to its first `wait_for_input`.
    pub(crate) fn begin(directory: &Path, script: &str) -> Load {
        let script = format!("wait_for_input() {{ echo ready; read word; }}\n{script}");
        let mut shell = plain("sh", directory);
        Load::of(shell.args(["-c", &script]))
    }

    fn of(command: &mut Command) -> Load {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let pid = child.id();
        with_timeout(pid, || lines.read_line(&mut String::new()).unwrap());
        Load { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the line that it waits for.
    pub(crate) fn resume(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Waits until it prints a line.
    pub(crate) fn wait_for_line(&mut self) -> String {
        let mut line = String::new();
        with_timeout(self.child.id(), || self.lines.read_line(&mut line).unwrap());
        line
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A weigh that attaches to or watches processes and records into `run`.
pub(crate) struct Monitoring {
    pub directory: TempDir,
    child: Child,
}

/// The result of such a weigh.
pub(crate) struct Monitored {
    pub directory: TempDir,
    pub code: Option<i32>,
    pub summary: Value,
}

/// Whether a recording has a sample.
fn has_sample(recording: &Path) -> bool {
    let mut has_sample = false;
    let opened = Recording::open(recording);
    opened.is_ok_and(|recording| {
        let replayed = recording.replay(&all_groups(), |frame| {
            has_sample |= matches!(frame.moment, Moment::Tick(_));
        });
        replayed.is_ok() && has_sample
    })
}

impl Monitoring {
    /// Starts weigh, and waits for the first complete sample: short processes may be missed before
    /// it.
    pub(crate) fn begin(directory: TempDir, arguments: &[&str]) -> Monitoring {
        let child = weigh(directory.path(), arguments)
            .args(["-q", "-o", "run", "--summary", "summary-for-test.json"])
            .spawn()
            .unwrap();
        let monitoring = Monitoring { directory, child };
        let recording = monitoring.directory.path().join("run");
        wait_until("all processes have been sampled", || has_sample(&recording));
        monitoring
    }

    pub(crate) fn events(&self) -> String {
        fs::read_to_string(self.directory.path().join("run/events.jsonl")).unwrap_or_default()
    }

    /// Waits until this many events of a kind are recorded.
    pub(crate) fn wait_for_event(&self, kind: &str, count: usize) {
        let events = self.directory.path().join("run/events.jsonl");
        wait_until("the events are recorded", || {
            events.exists() && self.events().matches(kind).count() >= count
        });
    }

    /// Stops it as Ctrl-C does.
    pub(crate) fn stop(self) -> Monitored {
        signal(self.child.id(), libc::SIGINT);
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(self) -> Monitored {
        let code = end_of(self.child).status.code();
        let summary = fs::read(self.directory.path().join("summary-for-test.json")).unwrap();
        let summary = serde_json::from_slice(&summary).unwrap();
        Monitored { directory: self.directory, code, summary }
    }
}

impl Monitored {
    pub(crate) fn figure(&self, name: &str) -> Figure {
        Figure::of(&self.summary["figures"][name], name)
    }

    /// The recorded events.
    pub(crate) fn events(&self) -> String {
        fs::read_to_string(self.directory.path().join("run/events.jsonl")).unwrap()
    }

    /// A tool of the summary.
    pub(crate) fn tool(&self, name: &str) -> Option<&Value> {
        self.summary["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name)
    }

    /// Fails unless the recording gives the same summary again.
    pub(crate) fn is_recorded(&self) {
        let arguments = ["show", "run", "--format", "json"];
        let shown = output(&mut weigh(self.directory.path(), &arguments));
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
        let again: Value = serde_json::from_slice(&shown.stdout).unwrap();
        for part in ["run", "figures", "tools", "processes"] {
            assert_eq!(again[part], self.summary[part], "{part}");
        }
    }
}
