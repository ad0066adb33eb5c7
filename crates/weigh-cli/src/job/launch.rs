//! `weigh job run`, `start` and `stop`: recorders on all nodes of the job.

use std::cell::RefCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh::job::launch::{LaunchLifetime, LaunchedRecorders};
use weigh::job::rung::{LaunchRung, RecorderCommand, name_of};
use weigh::job::{JobHere, hosts};
use weigh::program::{Inherited, boot_id, check_command, monotonic, now};
use weigh::record::job_directory::{self, JobState, LaunchTimes};
use weigh::run::Error;

use super::{claim, directory, here, show};
use crate::args::{Hosts, JobRunArgs, JobStartArgs, JobStopArgs, Measuring};
use crate::failure::{Failure, USAGE};
use crate::{config, print};

/// How long they may take to finish their recordings: those of a dead node never do.
const END_WITHIN: Duration = Duration::from_secs(15);

/// How often it is looked whether they have.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs a command, and records the job on all nodes meanwhile.
pub(crate) fn run(args: JobRunArgs, inherited: Inherited) -> Result<u8, Failure> {
    let units = config::units(args.measuring.sizes.units)?;
    let job = JobOnNodes::of(&args.hosts, hosts::new)?;
    let command = job.command(args.command)?;
    let (directory, mut recorders) =
        job.launch(&args.measuring, LaunchLifetime::WithThisProcess)?;
    // Without a recording it is the command with its signals and exit code, and nothing else.
    let ran = weigh::run::phase::run(None, "", &command, inherited);
    end(&directory, recorders.as_mut());
    let code = ran.map_err(Failure::from)?.end.exit_code() as u8;
    if recorders.is_some() && !args.measuring.quiet {
        print::err(&show::shown(&directory, units)?);
    }
    Ok(code)
}

/// Starts recorders, and returns when they record.
pub(crate) fn start(args: JobStartArgs) -> Result<u8, Failure> {
    if args.hosts.hosts.is_some() && weigh::job::here().is_none() {
        let cause = "there is no batch system, and WEIGH_JOB_ID is not set";
        let hint = "name the job for all commands of the script: export WEIGH_JOB_ID=solve-1";
        return Err(Failure::new("cannot tell which processes to record", cause, hint).code(USAGE));
    }
    let job = JobOnNodes::of(&args.hosts, hosts::new)?;
    let (directory, recorders) = job.launch(&args.measuring, LaunchLifetime::Detached)?;
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

/// A job, and where its recorders are started.
struct JobOnNodes {
    here: JobHere,
    /// Hosts that the user names, with their users.
    hosts: Option<Vec<String>>,
    /// Whether its command does not have the job's variable yet.
    is_new: bool,
}

impl JobOnNodes {
    /// The job that this process is part of, or a new one on these hosts.
    fn of(hosts: &Hosts, new: fn() -> JobHere) -> Result<JobOnNodes, Failure> {
        let hosts = hosts.hosts.as_ref().map(|list| list.0.clone());
        let (here, is_new) = match weigh::job::here() {
            None if hosts.is_some() => (new(), true),
            _ => (here()?, false),
        };
        Ok(JobOnNodes { here, hosts, is_new })
    }

    /// The command, with the variable by which its processes are found.
    fn command(&self, command: Vec<OsString>) -> Result<Vec<OsString>, Failure> {
        if !self.is_new {
            return Ok(command);
        }
        // `env` would report it in its own words.
        let program = command.first().map(OsString::as_os_str).unwrap_or_default();
        check_command(program).map_err(Error::from)?;
        let marker = &self.here.marker;
        let variable = format!("{}={}", marker.name, marker.value);
        Ok([OsString::from("env"), variable.into()].into_iter().chain(command).collect())
    }

    /// Starts a recorder on each node, by the first rung that works; `None` when none does.
    fn launch(
        self,
        measuring: &Measuring,
        lifetime: LaunchLifetime,
    ) -> Result<(PathBuf, Option<LaunchedRecorders>), Failure> {
        let JobOnNodes { mut here, hosts, .. } = self;
        if let Some(hosts) = &hosts {
            here.set_hosts(hosts);
        }
        let directory = directory(&here, measuring.output.as_deref());
        let directory = std::path::absolute(&directory).unwrap_or(directory);
        let mut here = claim(here, &directory)?;
        if let Some(hosts) = &hosts {
            here.set_hosts(hosts);
        }
        if job_directory::state(&directory) == Some(JobState::Stop) {
            let what = format!("{} has a recording that has ended", directory.display());
            print::warning(&format!("the job is not recorded: {what}; name another: -o DIR"));
            return Ok((directory, None));
        }
        let nodes = hosts
            .as_ref()
            .cloned()
            .unwrap_or_else(|| here.nodes.iter().map(|node| node.name.clone()).collect());
        if nodes.is_empty() {
            let message = "the nodes of the job are not known, and so no recorder is started; name \
                           them: --hosts n1,n2";
            print::warning(message);
            return Ok((directory, None));
        }
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("weigh"));
        let rungs = if hosts.is_some() { &[LaunchRung::Ssh] } else { LaunchRung::of(&here) };
        // One that records already began before.
        let absent = missing(&directory, &nodes);
        let times = RefCell::new(LaunchTimes::new(boot_id(), now()));
        for rung in rungs {
            let ends_with = match lifetime {
                LaunchLifetime::WithThisProcess if rung.passes_stdin() => "stdin",
                _ => "state",
            };
            let recorder = RecorderCommand::new(
                &here,
                program.as_os_str(),
                directory.as_os_str(),
                ends_with,
                options(measuring),
            );
            let mut started = LaunchedRecorders::of(*rung, &nodes, &recorder, lifetime);
            let see = |node: &str| {
                if absent.iter().any(|one| one == node) {
                    times.borrow_mut().see(&directory, node, now());
                }
            };
            match begin(&directory, &mut started, see) {
                Err(error) => {
                    print::warning(&format!("no recorders by {}: {error}", rung.name()));
                    continue;
                }
                Ok(()) if missing(&directory, &nodes).len() < nodes.len() => {
                    // Without it the clocks of the nodes are taken as they are.
                    let _ = times.borrow().write(&directory);
                    tell(&here, &directory, &nodes, *rung, measuring.quiet);
                    return Ok((directory, Some(started)));
                }
                Ok(()) => {
                    print::warning(&format!("no recorder has begun by {}", rung.name()));
                    started.kill();
                }
            }
        }
        print::warning("the job is not recorded: no launcher has started a recorder");
        Ok((directory, None))
    }
}

/// Starts all recorders, and waits until no more can be expected to begin; `see` is told each that
/// has.
fn begin(
    directory: &Path,
    started: &mut LaunchedRecorders,
    see: impl Fn(&str),
) -> std::io::Result<()> {
    let has_begun = |node: &str| {
        let has_begun = has_begun(directory, node);
        if has_begun {
            see(node);
        }
        has_begun
    };
    while started.advance(has_begun)? {
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

fn has_begun(directory: &Path, node: &str) -> bool {
    job_directory::of_node(directory, node).join("run.json").exists()
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
        ("--perf", &measuring.perf),
    ];
    for (name, list) in lists {
        if let Some(list) = list {
            option(name, list.join(","));
        }
    }
    for event in &measuring.events {
        option("--event", event.clone());
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
    let names = nodes.iter().map(|node| name_of(node));
    names.filter(|node| !has_begun(directory, node)).map(str::to_owned).collect()
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
pub(crate) fn wait_for_ends(directory: &Path) {
    let end = monotonic() + END_WITHIN;
    let recordings = weigh::record::files::recordings(directory).unwrap_or_default();
    let is_open = || recordings.iter().any(|path| !path.join("summary.json").exists());
    while is_open() && monotonic() < end {
        std::thread::sleep(PAUSE);
    }
}
