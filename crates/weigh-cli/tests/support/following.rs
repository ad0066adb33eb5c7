//! Loads that run already, for the tests of what follows them.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use weigh::catalog::all_groups;
use weigh::record::{Moment, Recording};

use crate::weighed::{Figure, end_of, output, patiently, plain, signal, wait_until, weigh};

/// A shell that runs, says `ready` and waits for a word where its script has `wait_for_word`.
pub(crate) struct Load {
    pub child: Child,
    lines: BufReader<ChildStdout>,
}

impl Load {
    /// Runs a script, as far as it goes without a word.
    pub(crate) fn begin(directory: &Path, script: &str) -> Load {
        let script = format!("wait_for_word() {{ echo ready; read word; }}\n{script}");
        let mut shell = plain("sh", directory);
        Load::of(shell.args(["-c", &script]))
    }

    fn of(command: &mut Command) -> Load {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let pid = child.id();
        patiently(pid, || lines.read_line(&mut String::new()).unwrap());
        Load { child, lines }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Lets it go on.
    pub(crate) fn go(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
    }

    /// Waits until it says something again.
    pub(crate) fn wait_for_line(&mut self) -> String {
        let mut line = String::new();
        patiently(self.child.id(), || self.lines.read_line(&mut line).unwrap());
        line
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A weigh that follows something and records it in `run`.
pub(crate) struct Following {
    pub directory: TempDir,
    child: Child,
}

/// What a weigh that followed something said of it.
pub(crate) struct Followed {
    pub directory: TempDir,
    pub code: Option<i32>,
    pub summary: Value,
}

/// Whether a recording has a look at anybody.
fn has_looked(recording: &Path) -> bool {
    let mut has_looked = false;
    let opened = Recording::open(recording);
    opened.is_ok_and(|recording| {
        let replayed = recording.replay(&all_groups(), |moment| {
            has_looked |= matches!(moment, Moment::Tick(_));
        });
        replayed.is_ok() && has_looked
    })
}

impl Following {
    /// Begins to follow, and waits until everybody has been looked at for the first time: until
    /// then, whoever comes and goes may not be met.
    pub(crate) fn begin(directory: TempDir, words: &[&str]) -> Following {
        let child = weigh(directory.path(), words)
            .args(["-q", "-o", "run", "--summary", "summary-for-test.json"])
            .spawn()
            .unwrap();
        let following = Following { directory, child };
        let recording = following.directory.path().join("run");
        wait_until("everybody has been looked at", || has_looked(&recording));
        following
    }

    pub(crate) fn events(&self) -> String {
        fs::read_to_string(self.directory.path().join("run/events.jsonl")).unwrap_or_default()
    }

    /// Waits until as many events of a kind are recorded.
    pub(crate) fn wait_for_event(&self, kind: &str, count: usize) {
        let events = self.directory.path().join("run/events.jsonl");
        wait_until("the events are recorded", || {
            events.exists() && self.events().matches(kind).count() >= count
        });
    }

    /// Asks it to stop, as Ctrl-C does.
    pub(crate) fn stop(self) -> Followed {
        signal(self.child.id(), libc::SIGINT);
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(self) -> Followed {
        let code = end_of(self.child).status.code();
        let summary = fs::read(self.directory.path().join("summary-for-test.json")).unwrap();
        let summary = serde_json::from_slice(&summary).unwrap();
        Followed { directory: self.directory, code, summary }
    }
}

impl Followed {
    pub(crate) fn figure(&self, name: &str) -> Figure {
        Figure::of(&self.summary["figures"][name], name)
    }

    /// What happened, as it is recorded.
    pub(crate) fn events(&self) -> String {
        fs::read_to_string(self.directory.path().join("run/events.jsonl")).unwrap()
    }

    /// What the summary says of a tool.
    pub(crate) fn tool(&self, name: &str) -> Option<&Value> {
        self.summary["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == name)
    }

    /// Fails unless the recording says again what was said at the end.
    pub(crate) fn is_recorded(&self) {
        let words = ["show", "run", "--format", "json"];
        let shown = output(&mut weigh(self.directory.path(), &words));
        assert!(shown.status.success(), "{}", String::from_utf8_lossy(&shown.stderr));
        let again: Value = serde_json::from_slice(&shown.stdout).unwrap();
        for part in ["run", "figures", "tools", "processes"] {
            assert_eq!(again[part], self.summary[part], "{part}");
        }
    }
}
