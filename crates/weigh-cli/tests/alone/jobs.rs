//! `weigh job` on a real SLURM of two nodes.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::slurm::{EndedJob, Slurm, Tracking};
use crate::weighed::{Figure, output, wait_until, weigh};

/// perfmon's way to start recorders, as its documentation has it, but for --overlap.
const FOLLOW: &str = "srun --overlap -n $SLURM_JOB_NUM_NODES --ntasks-per-node 1 \
                      $WEIGH job follow -i 500ms &";

/// A program that uses this CPU time on each node.
fn solver(seconds: &str) -> String {
    format!("srun -n $SLURM_JOB_NUM_NODES --ntasks-per-node 1 $BURNER cpu {seconds}")
}

/// `weigh job show --format json` of a job.
fn shown(slurm: &Slurm, job: &EndedJob) -> Value {
    let directory = format!("weigh-runs/job-{}", job.id);
    let mut command = weigh(&slurm.work(), &["job", "show", &directory, "--format", "json"]);
    let shown = output(&mut command);
    assert!(shown.status.success(), "{}\n{}", String::from_utf8_lossy(&shown.stderr), job.log);
    serde_json::from_slice(&shown.stdout).unwrap()
}

/// The CPU time of each node.
fn cpu_times(job: &Value) -> Vec<Figure> {
    let nodes = job["nodes"].as_array().unwrap().iter();
    nodes.map(|node| Figure::of(&node["figures"]["cpu_time_seconds"], "cpu_time_seconds")).collect()
}

/// Fails unless each node has used this CPU time. On the first one the script and srun are
/// processes of the job, too.
fn is_truth(job: &Value, seconds: f64) {
    let [first, second] = &cpu_times(job)[..] else { panic!("{job}") };
    second.is_within(0.02, seconds);
    let script = first.known() - seconds;
    assert!((-0.02 * seconds..0.5).contains(&script), "{first:?}");
}

/// The CPU time that a shell's `times` has printed: of the shell and of the children it reaped.
fn times_in(log: &str) -> f64 {
    let seconds = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let all: Vec<f64> = log.split_whitespace().filter_map(seconds).collect();
    assert_eq!(all.len(), 4, "{log}");
    all.iter().sum()
}

fn names(job: &Value) -> Vec<&str> {
    job["nodes"].as_array().unwrap().iter().map(|node| node["name"].as_str().unwrap()).collect()
}

fn records(slurm: &Slurm, id: &str) -> bool {
    let node = |name: &str| slurm.work().join(format!("weigh-runs/job-{id}/{name}/run.json"));
    node("n1").exists() && node("n2").exists()
}

#[test]
fn job_run_measures_the_cpu_time_of_each_node_within_two_percent() {
    for tracking in [Tracking::Parents, Tracking::Cgroups] {
        let Some(slurm) = Slurm::start(tracking) else { return };
        let command = format!("bash -c '{}; times'", solver("5s"));
        let script = format!("$WEIGH job run -i 500ms -- {command}; echo code $?");
        let job = slurm.run(&script);
        assert_eq!(job.state, "COMPLETED", "{}", job.log);
        assert!(job.log.contains("recording 2 of 2 nodes"), "{}", job.log);
        assert!(job.log.contains("2 expected, 2 recorded, 0 silent, 0 ended early"), "{}", job.log);
        assert!(job.log.contains("code 0"), "{}", job.log);
        let shown = shown(&slurm, &job);
        assert_eq!(names(&shown), ["n1", "n2"]);
        let [first, second] = &cpu_times(&shown)[..] else { panic!("{shown}") };
        // The shell and srun itself are processes of the job on the first node.
        first.is_within(0.02, 5.0 + times_in(&job.log));
        second.is_within(0.02, 5.0);
        assert_eq!(shown["job"]["time_limit_seconds"], 300);
        assert_eq!(shown["nodes"][1]["requested"]["cores"], 2);
    }
}

#[test]
fn exit_code_of_the_command_is_that_of_job_run() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    let job = slurm.run("$WEIGH job run -q -- sh -c 'exit 7'; echo code $?");
    assert!(job.log.contains("code 7"), "{}", job.log);
}

#[test]
fn perfmon_script_ends_when_the_script_only_waits_for_recorders() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    let job = slurm.run(&format!("{FOLLOW}\nsleep 1\n{}\nwait\necho over", solver("1s")));
    assert_eq!(job.state, "COMPLETED", "{}", job.log);
    assert!(job.log.contains("over"), "{}", job.log);
    let shown = shown(&slurm, &job);
    assert_eq!((names(&shown), &shown["coverage"]["recorded"]), (vec!["n1", "n2"], &2.into()));
    is_truth(&shown, 1.0);
    assert_eq!(shown["nodes"][0]["stopped"], "ended");
}

#[test]
fn perfmon_script_with_an_ipc_file_ends_by_it() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    let finish = "sleep 1000 &\necho FINISHED > .ipc-$SLURM_JOB_ID\nwait %1\necho over";
    let job = slurm.run(&format!("{FOLLOW}\nsleep 1\n{}\n{finish}", solver("0.5s")));
    assert!(job.log.contains("over"), "{}", job.log);
    let shown = shown(&slurm, &job);
    assert_eq!(shown["nodes"][0]["stopped"], "asked", "something else still ran");
    assert_eq!(shown["nodes"][1]["stopped"], "asked");
}

#[test]
fn step_without_overlap_is_told_and_does_not_block_the_job() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    let follow = FOLLOW.replace("--overlap ", "");
    let job = slurm.run(&format!("{follow}\nsleep 2\n{}\necho main $?\nwait", solver("0.5s")));
    assert_eq!(job.state, "COMPLETED", "{}", job.log);
    assert!(job.log.contains("main 0"), "{}", job.log);
    assert!(job.log.contains("without --overlap"), "{}", job.log);
    let line = "srun --overlap -n $SLURM_JOB_NUM_NODES --ntasks-per-node 1 weigh job follow &";
    assert!(job.log.contains(line), "{}", job.log);
}

#[test]
fn cancelled_job_leaves_a_readable_recording_of_each_node() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    let id = slurm.submit(&format!("{FOLLOW}\nsrun sleep 1000"));
    wait_until("both nodes record", || records(&slurm, &id));
    assert!(output(slurm.command("scancel").arg(&id)).status.success());
    let job = slurm.end_of(&id);
    assert_eq!(job.state, "CANCELLED", "{}", job.log);
    let ended = |name: &str| slurm.work().join(format!("weigh-runs/job-{id}/{name}/summary.json"));
    wait_until("both recordings are complete", || ended("n1").exists() && ended("n2").exists());
    let shown = shown(&slurm, &job);
    assert_eq!(names(&shown), ["n1", "n2"]);
    for node in shown["nodes"].as_array().unwrap() {
        assert_eq!((&node["state"], &node["stopped"]), (&"ended".into(), &"asked".into()));
    }
}

#[test]
fn job_start_and_stop_record_several_steps() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    let steps = format!("{}\n{}", solver("0.5s"), solver("0.5s"));
    let job = slurm.run(&format!("$WEIGH job start -i 200ms\n{steps}\n$WEIGH job stop\necho over"));
    assert!(job.log.contains("over"), "{}", job.log);
    is_truth(&shown(&slurm, &job), 1.0);
}

#[test]
fn node_that_dies_is_named_and_the_recording_of_the_other_is_kept() {
    let Some(mut slurm) = Slurm::start(Tracking::Parents) else { return };
    let id = slurm.submit(&format!("{FOLLOW}\n$BURNER cpu 1000s"));
    wait_until("both nodes record", || records(&slurm, &id));
    let job = EndedJob { id: id.clone(), state: String::new(), log: String::new() };
    let used = || cpu_times(&shown(&slurm, &job))[0].value;
    wait_until("the load is measured", || used().is_some_and(|seconds| seconds > 0.0));
    slurm.kill_node("n2");
    let directory = format!("weigh-runs/job-{id}");
    let stopped = output(&mut weigh(&slurm.work(), &["job", "stop", &directory]));
    let told = String::from_utf8_lossy(&stopped.stderr);
    assert!(told.contains("2 expected, 2 recorded, 0 silent, 1 ended early (n2)"), "{told}");
    let shown = shown(&slurm, &job);
    assert_eq!(
        (&shown["nodes"][0]["state"], &shown["nodes"][1]["state"]),
        (&"ended".into(), &"lost".into())
    );
    assert!(cpu_times(&shown)[0].known() > 0.0);
}

#[test]
fn two_jobs_on_one_node_do_not_see_each_others_processes() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    let alone = |name: &str, work: &str| {
        let script = format!(
            "#!/bin/bash\n#SBATCH --ntasks=1 --nodelist=n1 --output=log-%j\n\
             $WEIGH job run -q -o {name} -- {work}\n"
        );
        fs::write(slurm.work().join("one.sh"), script).unwrap();
        let submitted = output(slurm.command("sbatch").args(["--parsable", "one.sh"]));
        String::from_utf8(submitted.stdout).unwrap().trim().to_owned()
    };
    let jobs = [alone("one", "$BURNER cpu 1s"), alone("other", "$BURNER sleep 2s")];
    jobs.iter().for_each(|id| assert_eq!(slurm.end_of(id).state, "COMPLETED", "{}", slurm.log(id)));
    let tools = |name: &str| events(&slurm.work().join(name).join("n1"));
    assert!(tools("one").contains("\"cpu\"") && !tools("one").contains("\"2s\""));
    assert!(tools("other").contains("\"2s\"") && !tools("other").contains("\"cpu\""));
}

fn events(recording: &Path) -> String {
    fs::read_to_string(recording.join("events.jsonl")).unwrap()
}
