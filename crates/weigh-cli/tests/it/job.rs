//! `weigh job` without a batch system: only its variables, and stand-ins for its commands. With a
//! real SLURM it is in `tests/alone`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;

use serde_json::Value;

use crate::weighed::{burner, end_of, output, plain, wait_until, weigh};

/// The id of this test's job: tests run at the same time, and each finds only its own processes.
fn job_id() -> String {
    let test = thread::current();
    let name = test.name().and_then(|path| path.rsplit("::").next()).unwrap();
    format!("7.{name}")
}

/// Variables that would make this a job of another batch system.
const OTHERS: [&str; 4] = ["SLURM_JOB_ID", "OAR_JOB_ID", "FLUX_JOB_ID", "FLUX_URI"];

/// A command inside of a PBS job.
fn in_job(mut command: Command) -> Command {
    OTHERS.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.env("PBS_JOBID", job_id()).env("PBS_JOBNAME", "solve").env_remove("PBS_NODEFILE");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn shown(directory: &Path) -> Value {
    let shown = output(&mut weigh(directory, &["job", "show", "job", "--format", "json"]));
    assert!(shown.status.success(), "{}", text(&shown.stderr));
    serde_json::from_slice(&shown.stdout).unwrap()
}

/// A sleeping burner, which is in the job or not.
struct Sleeper(Child);

impl Sleeper {
    fn start(directory: &Path, is_in_job: bool) -> Sleeper {
        let mut command = plain(burner(), directory);
        command.args(["sleep", "1000s"]);
        let mut command = if is_in_job { in_job(command) } else { command };
        Sleeper(command.spawn().unwrap())
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn recorder(directory: &Path) -> Child {
    let command = weigh(directory, &["job", "follow", "-i", "100ms", "-o", "job"]);
    in_job(command).stderr(Stdio::piped()).spawn().unwrap()
}

/// The recording of the only node.
fn node(directory: &Path) -> Option<std::path::PathBuf> {
    let listed = fs::read_dir(directory.join("job")).into_iter().flatten().flatten();
    listed.map(|entry| entry.path()).find(|path| path.join("run.json").exists())
}

fn events(directory: &Path) -> String {
    let read = |path: std::path::PathBuf| fs::read_to_string(path.join("events.jsonl")).ok();
    node(directory).and_then(read).unwrap_or_default()
}

fn failed(output: &Output, code: i32) -> String {
    assert_eq!(output.status.code(), Some(code), "{}", text(&output.stderr));
    text(&output.stderr)
}

#[test]
fn outside_of_a_batch_job_the_missing_variables_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = weigh(directory.path(), &["job", "follow"]);
    OTHERS.iter().chain(&["PBS_JOBID"]).for_each(|name| {
        command.env_remove(name);
    });
    let told = failed(&output(&mut command), 2);
    assert!(told.contains("not part of a batch job") && told.contains("SLURM_JOB_ID"), "{told}");
    let told = failed(&output(&mut weigh(directory.path(), &["job", "show", "."])), 1);
    assert!(told.contains("job.json"), "{told}");
}

#[test]
fn recorder_measures_the_processes_of_the_job_alone_until_it_is_stopped() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let (inside, outside) = (Sleeper::start(here, true), Sleeper::start(here, false));
    let recorder = recorder(here);
    let pid = |sleeper: &Sleeper| format!("\"pid\":{},", sleeper.0.id());
    wait_until("the process of the job is recorded", || events(here).contains(&pid(&inside)));
    assert_eq!(shown(here)["nodes"][0]["state"], "recording");
    let stopped = output(&mut in_job(weigh(here, &["job", "stop", "job"])));
    assert!(stopped.status.success(), "{}", text(&stopped.stderr));
    assert!(
        text(&stopped.stderr).contains(&format!("PBS job {}", job_id())),
        "{}",
        text(&stopped.stderr)
    );
    let recorder = end_of(recorder);
    assert!(recorder.status.success(), "{}", text(&recorder.stderr));
    assert!(!events(here).contains(&pid(&outside)), "another process of the same user");
    let job = shown(here);
    assert_eq!((&job["job"]["id"], &job["job"]["name"]), (&job_id().into(), &"solve".into()));
    assert_eq!(
        (&job["nodes"][0]["state"], &job["nodes"][0]["stopped"]),
        (&"ended".into(), &"asked".into())
    );
    let told = failed(&output(&mut weigh(here, &["show", "job"])), 1);
    assert!(told.contains("weigh job show job"), "{told}");
    let file: Value =
        serde_json::from_slice(&fs::read(here.join("job/job.json")).unwrap()).unwrap();
    assert!(file["not_asked"].as_str().is_some_and(|why| why.contains("qstat")), "{file}");
}

#[test]
fn finished_in_the_ipc_file_ends_the_recorder() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let _inside = Sleeper::start(here, true);
    let recorder = recorder(here);
    wait_until("it records", || node(here).is_some());
    fs::write(here.join(format!(".ipc-{}", job_id())), "FINISHED\n").unwrap();
    assert!(end_of(recorder).status.success());
    assert_eq!(shown(here)["nodes"][0]["stopped"], "asked");
}

#[test]
fn second_recorder_on_a_node_is_refused_by_name() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let first = recorder(here);
    wait_until("it records", || node(here).is_some());
    let second = end_of(recorder(here));
    assert!(failed(&second, 1).contains("is recorded already"));
    assert!(output(&mut weigh(here, &["job", "stop", "job"])).status.success());
    assert!(end_of(first).status.success());
}

#[test]
fn command_runs_although_no_node_can_be_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let command = weigh(directory.path(), &["job", "run", "-o", "job", "--", "sh", "-c", "exit 7"]);
    let told = failed(&output(&mut in_job(command)), 7);
    assert!(told.contains("the nodes of the job are not known"), "{told}");
}

/// A pbsdsh that runs the command here, as the real one does on the host that -h names.
fn stand_in(directory: &Path) {
    let path = directory.join("pbsdsh");
    fs::write(&path, "#!/bin/sh\n[ \"$1\" = -h ] && shift 2\n[ \"$1\" = -- ] && shift\nexec \"$@\" < /dev/null\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    fs::write(directory.join("nodes"), name.repeat(2)).unwrap();
}

#[test]
fn job_run_starts_recorders_by_pbsdsh_and_stops_them_by_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    stand_in(here);
    let mut path = here.as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let arguments = ["job", "run", "-i", "100ms", "-o", "job", "--"];
    let mut command = in_job(weigh(here, &arguments));
    command.arg(burner()).args(["touch", "64MiB", "1s"]);
    let ran = output(command.env("PATH", path).env("PBS_NODEFILE", here.join("nodes")));
    let told = text(&ran.stderr);
    assert!(ran.status.success(), "{told}");
    assert!(told.contains("recording 1 of 1 nodes, started by pbsdsh"), "{told}");
    assert!(told.contains("1 expected, 1 recorded, 0 silent, 0 ended early"), "{told}");
    let job = shown(here);
    assert_eq!(job["nodes"][0]["stopped"], "asked");
    let memory = job["nodes"][0]["figures"]["memory_peak_bytes"]["value"].as_f64().unwrap();
    assert!(memory >= 64.0 * 1024.0 * 1024.0, "{memory}");
}

#[test]
fn report_of_a_job_says_while_it_runs_that_it_does_and_is_named_by_the_job() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let inside = Sleeper::start(here, true);
    let recorder = recorder(here);
    let pid = format!("\"pid\":{},", inside.0.id());
    wait_until("the process of the job is recorded", || events(here).contains(&pid));
    let report = |formats: &str| {
        let made = output(&mut weigh(here, &["job", "report", "job", "-f", formats]));
        assert!(made.status.success(), "{}", text(&made.stderr));
        let name = |end: &str| here.join(format!("job/job-report-{}.{end}", job_id()));
        let text = fs::read_to_string(name("md")).unwrap();
        (text, name("html"), name("pdf"))
    };
    let (running, ..) = report("md");
    assert!(running.contains("still running"), "{running}");
    let live = output(&mut weigh(here, &["job", "show", "job"]));
    assert!(text(&live.stdout).contains("still running"), "{}", text(&live.stdout));
    assert!(output(&mut weigh(here, &["job", "stop", "job"])).status.success());
    assert!(end_of(recorder).status.success());
    let (over, html, pdf) = report("html,md,pdf");
    assert!(!over.contains("still running") && over.contains("1 recorded, 0 silent"), "{over}");
    assert!(fs::read_to_string(html).unwrap().contains(&format!("PBS job {}", job_id())));
    assert!(fs::read(pdf).unwrap().starts_with(b"%PDF"));
}

#[test]
fn mapped_file_is_in_the_memory_of_a_job_and_not_in_what_it_needs() {
    const SIZE: u64 = 96 << 20;
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    fs::write(here.join("large"), vec![7; SIZE as usize]).unwrap();
    let mut load = plain(burner(), here);
    load.args(["map-file", "large", "96MiB", "1000s"]);
    let inside = Sleeper(in_job(load).spawn().unwrap());
    let recorder = recorder(here);
    let rollup = format!("/proc/{}/smaps_rollup", inside.0.id());
    let is_mapped = |text: String| {
        let line = text.lines().find(|line| line.starts_with("Rss:")).map(str::to_owned);
        let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
        kilobytes.is_some_and(|kilobytes| kilobytes * 1024 >= SIZE)
    };
    wait_until("the file is mapped", || fs::read_to_string(&rollup).is_ok_and(is_mapped));
    let figure = |name: &str| shown(here)["nodes"][0]["figures"][name]["value"].as_f64();
    wait_until("its memory is recorded", || {
        node(here).is_some() && figure("memory_peak_bytes").is_some_and(|all| all >= SIZE as f64)
    });
    assert!(output(&mut weigh(here, &["job", "stop", "job"])).status.success());
    assert!(end_of(recorder).status.success());
    let needed = figure("memory_without_cache_peak_bytes").unwrap();
    assert!(needed > 0.0 && needed < SIZE as f64 / 4.0, "{needed}");
}
