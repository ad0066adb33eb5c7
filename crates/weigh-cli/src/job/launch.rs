//! `weigh job run`, `start` and `stop`: recorders on all nodes of the job.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh::job::JobHere;
use weigh::job::launch::{LaunchLifetime, LaunchRung, LaunchedRecorders, recorder};
use weigh::program::{Inherited, monotonic};
use weigh::record::job_directory::{self, JobState};

use super::{claim, directory, here, show};
use crate::args::{JobRunArgs, JobStartArgs, JobStopArgs, Measuring};
use crate::failure::Failure;
use crate::{config, print};

/// How long the recorders of one rung may take to begin.
const BEGIN_WITHIN: Duration = Duration::from_secs(20);

/// How long they may take to finish their recordings: those of a dead node never do.
const END_WITHIN: Duration = Duration::from_secs(15);

/// How often it is looked whether they have.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs a command, and records the job on all nodes meanwhile.
pub(crate) fn run(args: JobRunArgs, inherited: Inherited) -> Result<u8, Failure> {
    let units = config::units(args.measuring.sizes.units)?;
    let (directory, mut recorders) = launch(&args.measuring, LaunchLifetime::WithThisProcess)?;
    // Without a recording it is the command with its signals and exit code, and nothing else.
    let ran = weigh::run::phase::run(None, "", &args.command, inherited);
    end(&directory, recorders.as_mut());
    let code = ran.map_err(Failure::from)?.end.exit_code() as u8;
    if recorders.is_some() && !args.measuring.quiet {
        print::err(&show::shown(&directory, units)?);
    }
    Ok(code)
}

/// Starts recorders, and returns when they record.
pub(crate) fn start(args: JobStartArgs) -> Result<u8, Failure> {
    let (directory, recorders) = launch(&args.measuring, LaunchLifetime::Detached)?;
    match recorders {
        Some(_) => Ok(0),
        None => {
            let cause = format!("no recorder has begun in {}", directory.display());
            let hint = "start them yourself: see weigh job follow --help";
            Err(Failure::new("the job is not recorded", cause, hint))
        }
    }
}

/// Stops the recorders, and shows what they have recorded.
pub(crate) fn stop(args: JobStopArgs) -> Result<u8, Failure> {
    let units = config::units(args.sizes.units)?;
    let directory = show::named_or_own(args.directory.as_deref())?;
    job_directory::set_state(&directory, JobState::Stop).map_err(|error| {
        let hint = "name the directory of the job: weigh job stop JOBDIR";
        Failure::new("cannot stop the recorders", error, hint)
    })?;
    wait_for_ends(&directory);
    print::err(&show::shown(&directory, units)?);
    Ok(0)
}

/// Starts a recorder on each node, by the first rung that works; `None` when none does.
fn launch(
    measuring: &Measuring,
    lifetime: LaunchLifetime,
) -> Result<(PathBuf, Option<LaunchedRecorders>), Failure> {
    let here = here()?;
    let directory = directory(&here, measuring.output.as_deref());
    let directory = std::path::absolute(&directory).unwrap_or(directory);
    let here = claim(here, &directory)?;
    let nodes: Vec<String> = here.nodes.iter().map(|node| node.name.clone()).collect();
    if nodes.is_empty() {
        let message = "the nodes of the job are not known, and so no recorder is started";
        print::warning(message);
        return Ok((directory, None));
    }
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("weigh"));
    for rung in LaunchRung::of(&here) {
        let ends_with = match lifetime {
            LaunchLifetime::WithThisProcess if rung.passes_stdin() => "stdin",
            _ => "state",
        };
        let mut words = recorder(program.as_os_str(), directory.as_os_str(), ends_with);
        words.extend(options(measuring));
        let missing = missing(&directory, &nodes);
        let mut started = match LaunchedRecorders::start(*rung, &missing, &words, lifetime) {
            Ok(started) => started,
            Err(error) => {
                print::warning(&format!("no recorders by {}: {error}", rung.name()));
                continue;
            }
        };
        if wait_for_begin(&directory, &nodes, &mut started) {
            tell(&here, &directory, &nodes, *rung, measuring.quiet);
            return Ok((directory, Some(started)));
        }
        print::warning(&format!("no recorder has begun by {}", rung.name()));
        started.kill();
    }
    print::warning("the job is not recorded: no launcher has started a recorder");
    Ok((directory, None))
}

/// The options that recorders get.
fn options(measuring: &Measuring) -> Vec<OsString> {
    let mut words: Vec<OsString> = Vec::new();
    let mut option = |name: &str, value: String| words.extend([name.into(), value.into()]);
    if let Some(interval) = measuring.interval {
        option("-i", format!("{}ms", interval.as_millis()));
    }
    if let Some(name) = &measuring.name {
        option("--name", name.clone());
    }
    for (key, value) in &measuring.labels {
        option("--label", format!("{key}={value}"));
    }
    let lists = [
        ("--collect", &measuring.collect),
        ("--skip", &measuring.skip),
        ("--gpus", &measuring.gpus),
    ];
    for (name, list) in lists {
        if let Some(list) = list {
            option(name, list.join(","));
        }
    }
    if let Some(budget) = measuring.budget {
        option("--budget", format!("{}%", budget * 100.0));
    }
    let switches = [
        ("--per-cpu", measuring.per_cpu),
        ("--no-cmdline", measuring.no_cmdline),
        ("--limits", measuring.limits),
    ];
    words.extend(switches.into_iter().filter(|(_, is_on)| *is_on).map(|(name, _)| name.into()));
    words
}

/// Nodes that have no recording yet.
fn missing(directory: &Path, nodes: &[String]) -> Vec<String> {
    let is_missing =
        |node: &&String| !job_directory::of_node(directory, node).join("run.json").exists();
    nodes.iter().filter(is_missing).cloned().collect()
}

/// Waits until every node has a recording; returns whether one has, when no more can be expected.
fn wait_for_begin(directory: &Path, nodes: &[String], started: &mut LaunchedRecorders) -> bool {
    let end = monotonic() + BEGIN_WITHIN;
    loop {
        // Before the files: a recorder may have begun just before its launcher exited.
        let is_running = started.is_running();
        let missing = missing(directory, nodes).len();
        if missing == 0 || !is_running || monotonic() >= end {
            return missing < nodes.len();
        }
        std::thread::sleep(PAUSE);
    }
}

/// One line about what is recorded.
fn tell(here: &JobHere, directory: &Path, nodes: &[String], rung: LaunchRung, is_quiet: bool) {
    let missing = missing(directory, nodes);
    let recorded = nodes.len() - missing.len();
    if !missing.is_empty() {
        let shown = missing.iter().take(8).cloned().collect::<Vec<_>>().join(", ");
        let more = missing.len().saturating_sub(8);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        print::warning(&format!("no recorder has begun on {shown}{more}"));
    }
    if !is_quiet {
        let id = here.job.id.as_deref().unwrap_or_default();
        let (of, by, place) = (nodes.len(), rung.name(), directory.display());
        print::err(&format!(
            "weigh: job {id}: recording {recorded} of {of} nodes, started by {by}, in {place}\n"
        ));
    }
}

/// Ends the recorders of this process.
fn end(directory: &Path, recorders: Option<&mut LaunchedRecorders>) {
    let Some(recorders) = recorders else { return };
    if let Err(error) = job_directory::set_state(directory, JobState::Stop) {
        print::warning(&format!("the recorders may not stop: {error}"));
    }
    recorders.request_end();
    let end = monotonic() + END_WITHIN;
    while recorders.is_running() && monotonic() < end {
        std::thread::sleep(PAUSE);
    }
    if recorders.is_running() {
        print::warning("some recorders did not stop in time, and were ended");
    }
    recorders.kill();
}

/// Waits until every recording has its summary, for a while.
fn wait_for_ends(directory: &Path) {
    let end = monotonic() + END_WITHIN;
    let recordings = weigh::record::files::recordings(directory).unwrap_or_default();
    let is_open = || recordings.iter().any(|path| !path.join("summary.json").exists());
    while is_open() && monotonic() < end {
        std::thread::sleep(PAUSE);
    }
}
