//! `weigh job run` on a real OAR of two nodes. It takes half a minute: `cargo xtask test --oar`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::weighed::{burner, can_mount, is_installed, output, plain, weigh, weigh_path};

/// The two-node example of the guide, with what Open MPI needs on one machine.
const JOB: &str = "#!/bin/bash
cd $HOME
./weigh job run -i 500ms -- mpirun --mca plm_rsh_agent oarsh --hostfile $OAR_NODEFILE \\
  --map-by node -np 2 --mca oob_tcp_if_include 127.0.0.0/8 --mca btl tcp,self \\
  --mca btl_tcp_if_include 127.0.0.0/8 ./burner cpu 3s
";

/// Submits the job and waits for its end; prints what it printed.
const SUBMIT: &str = "#!/bin/bash
oarsub -l nodes=2,walltime=0:5:0 ./job.sh
for i in $(seq 200); do oarstat -s -j 1 | grep -qE 'Terminated|Error' && break; sleep 0.25; done
oarstat -s -j 1
cat OAR.1.stdout OAR.1.stderr
";

fn program(path: &Path, text: &[u8]) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
#[ignore = "half a minute, and packages of its own: cargo xtask test --oar"]
fn oar_job_is_recorded_on_both_nodes_through_oarsh_by_its_cgroup() {
    let needed = ["Almighty", "oarsub", "oarsh", "psql", "mpirun", "sshd"];
    if !can_mount() || !needed.iter().all(|program| is_installed(program)) {
        return;
    }
    let directory = tempfile::Builder::new().prefix("oar").tempdir_in("/tmp").unwrap();
    let base = directory.path();
    let home = base.join("home");
    fs::create_dir(&home).unwrap();
    program(&home.join("weigh"), &fs::read(weigh_path()).unwrap());
    program(&home.join("burner"), &fs::read(burner()).unwrap());
    program(&home.join("job.sh"), JOB.as_bytes());
    program(&home.join("submit.sh"), SUBMIT.as_bytes());
    fs::write(base.join("oar.sh"), include_str!("../support/oar.sh")).unwrap();
    let mut oar = plain("unshare", base);
    oar.args(["--mount", "--propagation", "private", "bash", "oar.sh"]).arg(base);
    let ran = output(oar.args(["15433", "./submit.sh"]));
    let log = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(log.contains("recording 2 of 2 nodes, started by oarsh"), "{log}{}", errors(base));
    assert!(log.contains("2 expected, 2 recorded, 0 silent, 0 ended early"), "{log}");
    for node in ["n1", "n2"] {
        let recording = format!("weigh-runs/job-1/{node}");
        let run = fs::read(home.join(&recording).join("run.json")).unwrap();
        let run: Value = serde_json::from_slice(&run).unwrap();
        let found_by = format!("cgroup /oardocker/{node}/oar/weigher_1");
        assert_eq!(run["target"]["job"]["found_by"], found_by, "{run}");
        let shown = output(&mut weigh(&home, &["show", &recording, "--format", "json"]));
        let summary: Value = serde_json::from_slice(&shown.stdout).unwrap();
        let tools = summary["tools"].as_array().unwrap();
        let burner = tools.iter().find(|tool| tool["name"] == "burner").unwrap();
        let used = burner["cpu_time_seconds"].as_f64().unwrap();
        assert!((used - 3.0).abs() <= 0.06, "{node}: {used}\n{log}");
    }
}

fn errors(base: &Path) -> String {
    ["errors", "server.log", "log"]
        .map(|name| fs::read_to_string(base.join(name)).unwrap_or_default())
        .concat()
}
