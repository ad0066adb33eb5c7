//! Recorders of `weigh job` started by each launcher: real ssh and Open MPI, and stand-ins for those
//! of PBS and Flux. srun is in `jobs`.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::nodes::{NodeDaemon, Nodes};
use crate::weighed::{burner, is_installed, output, weigh, weigh_path};

/// Variables that would make this a job of another batch system.
const SCHEDULERS: [&str; 5] =
    ["SLURM_JOB_ID", "PBS_JOBID", "OAR_JOB_ID", "FLUX_JOB_ID", "FLUX_URI"];

/// Each of two nodes runs a burner for this CPU time.
const TRUTH: f64 = 2.0;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs `weigh job run` on the nodes, with these variables of a batch system.
fn job_run(nodes: &Nodes, options: &[&str], variables: &[(&str, &str)], command: &str) -> Output {
    let mut run = nodes.command(&weigh_path().display().to_string(), &["job", "run"]);
    SCHEDULERS.iter().for_each(|name| {
        run.env_remove(name);
    });
    run.envs(variables.iter().copied()).args(["-i", "200ms", "-o", "job"]).args(options);
    run.args(["--", "sh", "-c", command]).env("BURNER", burner());
    output(&mut run)
}

/// `weigh job show --format json`, and of each node the CPU time of the burner.
fn shown(nodes: &Nodes) -> (Value, Vec<f64>) {
    let read = |arguments: &[&str]| -> Value {
        let shown = output(&mut weigh(&nodes.path("work"), arguments));
        assert!(shown.status.success(), "{}", text(&shown.stderr));
        serde_json::from_slice(&shown.stdout).unwrap()
    };
    let job = read(&["job", "show", "job", "--format", "json"]);
    let of_burner = |node: &str| {
        let summary = read(&["show", &format!("job/{node}"), "--format", "json"]);
        let tools = summary["tools"].as_array().unwrap().clone();
        let burner = tools.iter().find(|tool| tool["name"] == "burner").cloned();
        burner.map_or(0.0, |tool| tool["cpu_time_seconds"].as_f64().unwrap())
    };
    let times = ["n1", "n2"].map(of_burner).to_vec();
    (job, times)
}

/// Fails unless the burner used on each node what it was told to.
fn is_truth(nodes: &Nodes, told: &str) -> Value {
    let (job, times) = shown(nodes);
    for seconds in times {
        assert!((seconds - TRUTH).abs() <= 0.02 * TRUTH, "{seconds}\n{told}{}", nodes.log());
    }
    for node in job["nodes"].as_array().unwrap() {
        if node["name"] != "n3" {
            assert_eq!(node["stopped"], "asked", "{told}");
        }
    }
    job
}

#[test]
fn ssh_records_hosts_without_a_batch_system_and_names_one_that_is_down() {
    let Some(nodes) = Nodes::start(NodeDaemon::Sshd) else { return };
    if !is_installed("mpirun") {
        return;
    }
    let work = format!("mpirun --host n1,n2 --map-by ppr:1:node $BURNER cpu {TRUTH}s");
    let ran = job_run(&nodes, &["--hosts", "n[1-3]", "--name", "it's one"], &[], &work);
    let told = text(&ran.stderr);
    assert!(ran.status.success(), "{told}{}", nodes.log());
    assert!(told.contains("recording 2 of 3 nodes, started by ssh"), "{told}");
    assert!(told.contains("no recorder has begun on n3"), "{told}");
    assert!(told.contains("3 expected, 2 recorded, 1 silent (n3)"), "{told}");
    let job = is_truth(&nodes, &told);
    assert_eq!(job["job"]["scheduler"], "hosts");
}

#[test]
fn mpirun_is_the_rung_of_a_job_whose_batch_system_has_no_launcher() {
    let Some(nodes) = Nodes::start(NodeDaemon::Sshd) else { return };
    if !is_installed("mpirun") {
        return;
    }
    let file = nodes.path("nodefile");
    fs::write(&file, "n1\nn2\n").unwrap();
    let variables = [("PBS_JOBID", "7.vm"), ("PBS_NODEFILE", file.to_str().unwrap())];
    let work = format!("mpirun -x PBS_JOBID --host n1,n2 --map-by ppr:1:node $BURNER cpu {TRUTH}s");
    let ran = job_run(&nodes, &[], &variables, &work);
    let told = text(&ran.stderr);
    assert!(told.contains("no recorders by pbsdsh: "), "{told}");
    assert!(told.contains("no recorders by pbs_tmrsh: "), "{told}");
    assert!(told.contains("recording 2 of 2 nodes, started by mpirun"), "{told}{}", nodes.log());
    is_truth(&nodes, &told);
}

/// The variables of a PBS job on the nodes.
fn pbs(nodes: &Nodes) -> [(&'static str, String); 3] {
    let file = nodes.path("nodefile").display().to_string();
    [("PBS_JOBID", "0.vm".to_owned()), ("PBS_NODEFILE", file), ("PBS_QUEUE", "workq".to_owned())]
}

#[test]
fn pbs_tasks_that_descend_from_pbs_mom_are_recorded_on_each_node_once() {
    let Some(nodes) = Nodes::start(NodeDaemon::PbsMom) else { return };
    for without in [None, Some("pbsdsh")] {
        let work =
            format!("pbs_tmrsh n1 $BURNER cpu {TRUTH}s & pbs_tmrsh n2 $BURNER cpu {TRUTH}s; wait");
        if let Some(program) = without {
            fs::remove_file(nodes.path("bin").join(program)).unwrap();
            fs::remove_dir_all(nodes.path("work/job")).unwrap();
        }
        let variables = pbs(&nodes);
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        let ran = job_run(&nodes, &[], &variables, &work);
        let (told, log) = (text(&ran.stderr), nodes.log());
        let rung = without.map_or("pbsdsh", |_| "pbs_tmrsh");
        let expected = format!("recording 2 of 2 nodes, started by {rung}");
        assert!(told.contains(&expected), "{told}{log}");
        assert!(!log.contains("is recorded already"), "one recorder on each node: {log}");
        let job = is_truth(&nodes, &told);
        assert_eq!(job["job"]["time_limit_seconds"], 3600);
        assert_eq!(job["nodes"][1]["requested"]["memory_bytes"], 1 << 30);
    }
}

#[test]
fn flux_exec_starts_recorders_and_passes_their_end_on() {
    let Some(nodes) = Nodes::start(NodeDaemon::FluxBroker) else { return };
    let work = format!("flux run -N2 $BURNER cpu {TRUTH}s");
    let ran = job_run(&nodes, &[], &[("FLUX_URI", "local://n1")], &work);
    let told = text(&ran.stderr);
    assert!(told.contains("recording 2 of 2 nodes, started by flux exec"), "{told}{}", nodes.log());
    let job = is_truth(&nodes, &told);
    assert_eq!((&job["job"]["scheduler"], &job["job"]["id"]), (&"flux".into(), &"f42".into()));
}
