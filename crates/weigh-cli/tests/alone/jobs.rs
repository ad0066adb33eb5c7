//! `weigh job` on a real SLURM of two nodes.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::slurm::{EndedJob, Slurm, Tracking};
use crate::weighed::{Figure, MIB, is_installed, output, plain, wait_until, weigh, weigh_path};

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
/// processes of the job, too: the script prints its `times` before and after.
fn is_truth(job: &Value, seconds: f64, log: &str) {
    let [first, second] = &cpu_times(job)[..] else { panic!("{job}") };
    second.is_within(0.02, seconds);
    first.is_within(0.02, seconds + times_in(log));
}

/// The CPU time that a shell's `times` has printed: of the shell and of the children it reaped;
/// between the first and the last time, if it has printed it twice.
fn times_in(log: &str) -> f64 {
    let seconds = |word: &str| {
        let (minutes, seconds) = word.strip_suffix('s')?.split_once('m')?;
        Some(minutes.parse::<f64>().ok()? * 60.0 + seconds.parse::<f64>().ok()?)
    };
    let all: Vec<f64> = log.split_whitespace().filter_map(seconds).collect();
    match all.split_at_checked(4) {
        Some((once, [])) => once.iter().sum(),
        Some((before, after)) if after.len() == 4 => {
            after.iter().sum::<f64>() - before.iter().sum::<f64>()
        }
        _ => panic!("{log}"),
    }
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
    let steps = format!("times\n{}\ntimes", solver("2.5s"));
    let job = slurm.run(&format!("{FOLLOW}\nsleep 1\n{steps}\nwait\necho over"));
    assert_eq!(job.state, "COMPLETED", "{}", job.log);
    assert!(job.log.contains("over"), "{}", job.log);
    let shown = shown(&slurm, &job);
    assert_eq!((names(&shown), &shown["coverage"]["recorded"]), (vec!["n1", "n2"], &2.into()));
    is_truth(&shown, 2.5, &job.log);
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

/// An MPI program that uses 4 s of CPU time and 256 MiB on each rank, and prints what it used: the
/// library waits by spinning, so that is more than it was told to.
const SOLVER: &str = "
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
static double used(void) {
  struct rusage u; getrusage(RUSAGE_SELF, &u);
  return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}
int main(int argc, char **argv) {
  char name[MPI_MAX_PROCESSOR_NAME]; int length;
  MPI_Init(&argc, &argv);
  MPI_Get_processor_name(name, &length);
  volatile char *memory = malloc(256 << 20);
  memset((void *)memory, 1, 256 << 20);
  while (used() < 4.0) for (int i = 0; i < 100000; i++) memory[i]++;
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  printf(\"%s used %.6f\\n\", name, used());
  return 0;
}
";

/// Compiles the MPI program into the directory of the jobs; `false` where that is not possible.
fn mpi_program(slurm: &Slurm, name: &str) -> bool {
    if !["mpicc", "mpirun"].iter().all(|program| is_installed(program)) {
        return false;
    }
    fs::write(slurm.work().join("solver.c"), SOLVER).unwrap();
    let made = output(plain("mpicc", &slurm.work()).args(["-O1", "-o", name, "solver.c"]));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    true
}

/// What a rank of the MPI program on a node has printed that it used.
fn printed_by_rank(log: &str, node: &str) -> f64 {
    let line = log.lines().find_map(|line| line.strip_prefix(&format!("{node} used ")));
    line.unwrap_or_else(|| panic!("{log}")).trim().parse().unwrap()
}

/// The summary of one node.
fn node_summary(slurm: &Slurm, job: &EndedJob, node: &str) -> Value {
    let directory = format!("weigh-runs/job-{}/{node}", job.id);
    let shown = output(&mut weigh(&slurm.work(), &["show", &directory, "--format", "json"]));
    assert!(shown.status.success(), "{}\n{}", String::from_utf8_lossy(&shown.stderr), job.log);
    serde_json::from_slice(&shown.stdout).unwrap()
}

/// The CPU time of the programs of this name on a node, and of all others.
fn cpu_of_tool(summary: &Value, name: &str) -> (f64, f64) {
    let tools = summary["tools"].as_array().unwrap().iter();
    let (these, others): (Vec<&Value>, Vec<&Value>) = tools.partition(|tool| tool["name"] == name);
    let sum = |tools: Vec<&Value>| {
        tools.iter().filter_map(|tool| tool["cpu_time_seconds"].as_f64()).sum::<f64>()
    };
    (sum(these), sum(others))
}

#[test]
fn mpi_program_of_known_cpu_and_memory_is_measured_on_each_node() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    if !mpi_program(&slurm, "solver") {
        return;
    }
    let job = slurm.run("$WEIGH job run -i 500ms -- mpirun -np 2 --map-by ppr:1:node ./solver");
    assert_eq!(job.state, "COMPLETED", "{}", job.log);
    let shown = shown(&slurm, &job);
    assert_eq!((names(&shown), &shown["coverage"]["recorded"]), (vec!["n1", "n2"], &2.into()));
    let times = cpu_times(&shown);
    for (place, node) in ["n1", "n2"].into_iter().enumerate() {
        let truth = printed_by_rank(&job.log, node);
        let (solver, launchers) = cpu_of_tool(&node_summary(&slurm, &job, node), "solver");
        assert!((solver - truth).abs() <= 0.02 * truth, "{node}: {solver} of {truth}\n{}", job.log);
        times[place].is_within(0.02, truth + launchers);
        let memory = &shown["nodes"][place]["figures"]["memory_peak_bytes"];
        let memory = Figure::of(memory, "memory_peak_bytes").known() / MIB;
        assert!((256.0..320.0).contains(&memory), "{node}: {memory}");
    }
}

#[test]
fn scripts_of_perfmons_documentation_work_under_its_name_with_mpirun() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    if !mpi_program(&slurm, "matmul") {
        return;
    }
    std::os::unix::fs::symlink(weigh_path(), slurm.work().join("perfmon")).unwrap();
    let begin = "export PATH=$PWD:$PATH\n\
                 srun --overlap -n $SLURM_JOB_NUM_NODES --ntasks-per-node 1 perfmon -i 1 -d out-$SLURM_JOB_ID &\n";
    let main = "mpirun -np ${SLURM_JOB_NUM_NODES} ./matmul 2000\n";
    let plain = format!("{begin}{main}wait\n");
    let ipc = format!(
        "{begin}export MON_PID=$!\nsleep 1000 &\n{main}\
         echo \"FINISHED\" > .ipc-$SLURM_JOB_ID\nwait $MON_PID\n"
    );
    for script in [plain, ipc] {
        let job = slurm.run(&script);
        assert_eq!(job.state, "COMPLETED", "{}", job.log);
        let save = slurm.work().join(format!("out-{}", job.id));
        let file = fs::read(save.join("metrics/cpu_metrics.json"));
        let file: Value = serde_json::from_slice(&file.expect(&job.log)).unwrap();
        assert_eq!(file["host_names"], serde_json::json!(["n1", "n2"]), "{}", job.log);
        let used = file["n2"]["cpu_time"].as_array().unwrap().last().unwrap().as_f64().unwrap();
        let truth = printed_by_rank(&job.log, "n2");
        assert!(used > 0.5 * truth && used < 1.1 * truth, "{used} of {truth}");
    }
}

#[test]
fn steps_that_differ_are_measured_on_the_nodes_they_run_on() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    let one =
        "srun -N1 -n1 -w n1 $BURNER cpu 1s & srun -N1 -n1 -w n2 $BURNER touch 64MiB 1s & wait";
    let steps = format!("{one}; srun -N1 -n1 -w n2 $BURNER cpu 2s");
    let job = slurm.run(&format!("$WEIGH job run -i 200ms -- bash -c '{steps}'"));
    assert_eq!(job.state, "COMPLETED", "{}", job.log);
    let of = |node: &str| cpu_of_tool(&node_summary(&slurm, &job, node), "burner").0;
    assert!((of("n1") - 1.0).abs() <= 0.02, "{}", of("n1"));
    assert!((2.0..2.2).contains(&of("n2")), "{}", of("n2"));
    let memory = &shown(&slurm, &job)["nodes"][1]["figures"]["memory_peak_bytes"];
    assert!(Figure::of(memory, "memory_peak_bytes").known() >= 64.0 * MIB);
}

#[test]
fn time_limit_is_named_as_the_cause() {
    let Some(slurm) = Slurm::start(Tracking::Parents) else { return };
    let wait = "while [ ! -e go ]; do sleep 0.1; done";
    let id = slurm.submit(&format!("{wait}\n{FOLLOW}\nsrun sleep 1000"));
    wait_until("the job runs", || slurm.state(&id) == "RUNNING");
    let update = ["update", &format!("JobId={id}"), "EndTime=now+15"];
    let updated = output(slurm.command("scontrol").args(update));
    assert!(updated.status.success(), "{}", String::from_utf8_lossy(&updated.stderr));
    fs::write(slurm.work().join("go"), "").unwrap();
    let ended = |name: &str| slurm.work().join(format!("weigh-runs/job-{id}/{name}/summary.json"));
    wait_until("both recordings are complete", || ended("n1").exists() && ended("n2").exists());
    output(slurm.command("scancel").arg(&id));
    let shown = shown(&slurm, &slurm.end_of(&id));
    for node in shown["nodes"].as_array().unwrap() {
        let cause = (&node["state"], &node["stopped"]);
        assert_eq!(cause, (&"ended".into(), &"time_limit".into()), "{}", node["name"]);
    }
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
    let steps = format!("times\n{}\n{}\ntimes", solver("1s"), solver("1.5s"));
    let job = slurm.run(&format!("$WEIGH job start -i 200ms\n{steps}\n$WEIGH job stop\necho over"));
    assert!(job.log.contains("over"), "{}", job.log);
    is_truth(&shown(&slurm, &job), 2.5, &job.log);
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
