//! What it costs to start: a command that does nothing, bare and under weigh.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Result, bail};

use super::Bench;
use super::table::{Line, median, time};

/// GNU time, where it is installed.
const GNU_TIME: &str = "/usr/bin/time";

/// A way to start something short.
struct Way<'a> {
    what: &'static str,
    command: Vec<&'a str>,
    /// At most so many seconds more than `true` alone.
    goal: Option<f64>,
}

/// Each way in turn, many times, so that all of them meet the same machine; medians.
pub(super) fn measure(bench: &Bench) -> Result<Vec<Line>> {
    let repeats = if bench.quick { 10 } else { 200 };
    let weigh = bench.weigh.to_string_lossy().into_owned();
    let mut ways = vec![Way { what: "true", command: vec!["true"], goal: None }];
    if Path::new(GNU_TIME).exists() {
        let command = vec![GNU_TIME, "-o", "/dev/null", "true"];
        ways.push(Way { what: "GNU time true", command, goal: None });
    }
    let under = |options: &[&'static str]| {
        let mut command = vec![weigh.as_str(), "run", "-q"];
        command.extend(options);
        command.extend(["--", "true"]);
        command
    };
    ways.push(Way {
        what: "weigh run -q --no-record -- true",
        command: under(&["--no-record"]),
        goal: Some(3e-3),
    });
    ways.push(Way { what: "weigh run -q -- true", command: under(&[]), goal: Some(6e-3) });
    let mark = vec![weigh.as_str(), "mark", "x"];
    ways.push(Way { what: "weigh mark x", command: mark, goal: Some(1e-3) });
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
            .beside(format!("true: {}", time(bare)), format!("{:.1}", taken / bare));
        match way.goal {
            Some(goal) => line.goal(format!("≤ {} more", time(goal)), taken - bare <= goal),
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
