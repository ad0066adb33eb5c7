//! What it costs to start: a command that does nothing, bare and under weigh.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, bail};

use super::Bench;
use super::table::{Line, median, time};

/// GNU time, where it is installed.
const GNU_TIME: &str = "/usr/bin/time";

/// What a short command may take under weigh, in seconds, and with a recording.
const MEASURED: f64 = 3e-3;
const RECORDED: f64 = 6e-3;
/// What a mark may take more than `true`.
const MARK: f64 = 1e-3;

/// A way to start something short.
struct Way<'a> {
    what: &'static str,
    command: Vec<&'a str>,
    goal: Option<Goal>,
}

/// How long a way may take, in seconds.
#[derive(Clone, Copy)]
enum Goal {
    /// So long.
    AtMost(f64),
    /// So much longer than `true` alone.
    MoreThanTrue(f64),
}

/// Each way in turn, many times, so that all of them meet the same machine; medians.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let repeats = if bench.quick { 10 } else { 200 };
    let weigh = bench.weigh.to_string_lossy().into_owned();
    let mut ways = vec![Way { what: "true", command: vec!["true"], goal: None }];
    if Path::new(GNU_TIME).exists() {
        let command = vec![GNU_TIME, "-o", "/dev/null", "true"];
        ways.push(Way { what: "start, GNU time true", command, goal: None });
    }
    let under = |what, options: &[&'static str], goal| {
        let mut command = vec![weigh.as_str(), "run", "-q"];
        command.extend(options);
        command.extend(["--", "true"]);
        Way { what, command, goal: Some(Goal::AtMost(goal)) }
    };
    let version = vec![weigh.as_str(), "--version"];
    ways.push(Way { what: "start, weigh --version", command: version, goal: None });
    ways.push(under("start, weigh run -q --no-record -- true", &["--no-record"], MEASURED));
    ways.push(under("start, weigh run -q -- true", &[], RECORDED));
    let command = vec![weigh.as_str(), "mark", "x"];
    let goal = Some(Goal::MoreThanTrue(MARK));
    ways.push(Way { what: "start, weigh mark x", command, goal });
    // A mark needs a run that takes it: marks are made inside one.
    let inbox = Recorded::start(bench)?;
    let mut taken: Vec<Vec<f64>> = vec![Vec::new(); ways.len()];
    for _ in 0..repeats {
        for (way, taken) in ways.iter().zip(&mut taken) {
            taken.push(seconds(&way.command, bench.scratch.path(), &inbox)?);
        }
    }
    let medians: Vec<f64> = taken.into_iter().map(median).collect();
    let bare = medians[0];
    let line = |(way, taken): (&Way<'_>, &f64)| {
        let line = Line::new(way.what, time(*taken))
            .beside(format!("true: {}", time(bare)), format!("{:.1} ×", taken / bare));
        match way.goal {
            Some(Goal::AtMost(most)) => line.goal(format!("≤ {}", time(most)), *taken <= most),
            Some(Goal::MoreThanTrue(most)) => {
                line.goal(format!("≤ {} more", time(most)), taken - bare <= most)
            }
            None => line,
        }
    };
    Ok(ways.iter().zip(&medians).skip(1).map(line).collect())
}

/// How long a command takes, from its fork to its end.
fn seconds(command: &[&str], directory: &Path, inbox: &Recorded) -> Result<f64> {
    let mut started = Command::new(command[0]);
    started.args(&command[1..]).current_dir(directory).stdout(Stdio::null());
    started.env("WEIGH_RUN", &inbox.directory);
    let begin = Instant::now();
    let status = started.status()?;
    let seconds = begin.elapsed().as_secs_f64();
    if !status.success() {
        bail!("{} failed", command.join(" "));
    }
    Ok(seconds)
}

/// A run that goes on, for control messages.
struct Recorded {
    child: std::process::Child,
    directory: std::path::PathBuf,
}

impl Recorded {
    fn start(bench: &Bench) -> Result<Recorded> {
        let directory = bench.fresh("marks");
        let mut weigh = Command::new(&bench.weigh);
        weigh.args(["run", "-q", "-o"]).arg(&directory).args(["--", "sleep", "600"]);
        let recorded = Recorded { child: weigh.spawn()?, directory };
        while !recorded.directory.join("inbox").exists() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Ok(recorded)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        // SAFETY: kill takes numbers; the child has not been waited for.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        let _ = self.child.wait();
    }
}
