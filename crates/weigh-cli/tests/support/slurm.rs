//! A real SLURM of two nodes on this machine, from Debian's packages, for one test.
//!
//! Each node is a slurmd in UTS, PID and mount namespaces of its own: host name n1 or n2, its own
//! /proc, so that neither sees the processes of the other. Everything is below a temporary
//! directory and on the loopback device. What surprised us: slurmd must not be PID 1, `sbatch -W`
//! asks only every 10 s, and /tmp of the nodes must differ (TmpFS).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

use crate::weighed::{can_mount, is_installed, output, plain, wait_until};

/// A running cluster; dropping it ends everything in it.
pub(crate) struct Slurm {
    directory: TempDir,
    /// By name.
    daemons: Vec<(String, Child)>,
    is_cgroup: bool,
}

/// How SLURM knows the processes of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tracking {
    /// By their parents.
    Parents,
    /// By cgroups.
    Cgroups,
}

/// A job that has ended.
pub(crate) struct EndedJob {
    pub id: String,
    pub state: String,
    /// What its script has printed, on both streams.
    pub log: String,
}

impl Slurm {
    /// Starts a cluster; `None` where that is not possible, with a message.
    pub(crate) fn start(tracking: Tracking) -> Option<Slurm> {
        let programs = ["slurmctld", "slurmd", "srun", "munged"];
        if !can_mount() || !programs.iter().all(|program| is_installed(program)) {
            return None;
        }
        let directory = tempfile::Builder::new().prefix("slurm").tempdir_in("/tmp").unwrap();
        let is_cgroup = tracking == Tracking::Cgroups;
        let mut slurm = Slurm { directory, daemons: Vec::new(), is_cgroup };
        slurm.configure(tracking);
        slurm.begin();
        Some(slurm)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Where jobs run.
    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    fn configure(&self, tracking: Tracking) {
        for name in ["munge", "ctld", "log", "nodetmp", "spool.n1", "spool.n2", "work"] {
            fs::create_dir_all(self.path(name)).unwrap();
        }
        let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let name = name.trim().split('.').next().unwrap().to_owned();
        let base = self.directory.path().display();
        // Another test run on this machine has other ports.
        let port = 20_000 + std::process::id() % 4000 * 5;
        let [proctrack, task, account] = match tracking {
            Tracking::Parents => ["proctrack/linuxproc", "task/none", "jobacct_gather/linux"],
            Tracking::Cgroups => ["proctrack/cgroup", "task/cgroup", "jobacct_gather/cgroup"],
        };
        let node = |which: u32| {
            format!(
                "NodeName=n{which} NodeHostname=n{which} NodeAddr=127.0.0.1 Port={} CPUs=2 \
                 Boards=1 SocketsPerBoard=1 CoresPerSocket=2 ThreadsPerCore=1 RealMemory=1000\n",
                port + which
            )
        };
        let configuration = format!(
            "ClusterName=weigh\nSlurmctldHost={name}(127.0.0.1)\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nAuthInfo=socket={base}/munge/socket\nCredType=cred/munge\n\
             SlurmctldPort={port}\nSlurmctldPidFile={base}/ctld/pid\n\
             SlurmdPidFile={base}/spool.%n/pid\nSlurmctldLogFile={base}/log/ctld\n\
             SlurmdLogFile={base}/log/%n\nStateSaveLocation={base}/ctld\n\
             SlurmdSpoolDir={base}/spool.%n\nTmpFS={base}/nodetmp\n\
             CommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nSwitchType=switch/none\n\
             MpiDefault=none\nProctrackType={proctrack}\nTaskPlugin={task}\n\
             JobAcctGatherType={account}\nJobAcctGatherFrequency=1\nReturnToService=2\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             AccountingStorageType=accounting_storage/none\nSlurmdParameters=config_overrides\n\
             MailProg=/bin/true\nKillWait=5\nMinJobAge=300\n{}{}\
             PartitionName=all Nodes=n1,n2 Default=YES MaxTime=INFINITE State=UP\n",
            node(1),
            node(2),
        );
        let write = |file: &str, text: &str| fs::write(self.path(file), text).unwrap();
        write("slurm.conf", &configuration);
        write(
            "cgroup.conf",
            "CgroupPlugin=cgroup/v1\nCgroupMountpoint=/sys/fs/cgroup\nCgroupAutomount=no\n\
             ConstrainCores=no\nConstrainRAMSpace=no\n",
        );
        let hosts = format!("127.0.0.1 localhost {name}\n127.0.0.1 n1\n127.0.0.1 n2\n");
        write("hosts", &hosts);
        write("munge.key", &"weigh".repeat(100));
        let mode = std::os::unix::fs::PermissionsExt::from_mode;
        fs::set_permissions(self.path("munge.key"), mode(0o400)).unwrap();
        fs::set_permissions(self.directory.path(), mode(0o755)).unwrap();
        fs::set_permissions(self.path("munge"), mode(0o755)).unwrap();
    }

    fn begin(&mut self) {
        let base = self.directory.path().display().to_string();
        let munge = format!(
            "exec munged --force --foreground --socket={base}/munge/socket \
             --key-file={base}/munge.key --pid-file={base}/munge/pid \
             --log-file={base}/log/munge --seed-file={base}/munge/seed"
        );
        self.daemon("munge", &["sh", "-c", &munge]);
        wait_until("munged listens", || self.path("munge/socket").exists());
        let mount = format!("mount --bind {base}/hosts /etc/hosts");
        let controller = format!("{mount}; exec slurmctld -D -i -f {base}/slurm.conf");
        let private = ["unshare", "--mount", "--propagation", "private", "sh", "-c"];
        self.daemon("ctld", &[&private[..], &[&controller]].concat());
        for node in ["n1", "n2"] {
            let script = format!(
                "hostname {node}; mount -t tmpfs tmpfs {base}/nodetmp; {mount}; \
                 slurmd -D -N {node} -f {base}/slurm.conf & wait"
            );
            let own = ["unshare", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc"];
            self.daemon(node, &[&own[..], &["sh", "-c", &script]].concat());
        }
        wait_until("both nodes are idle", || {
            let listed = self.command("sinfo").args(["-h", "-N", "-o", "%T"]).output().unwrap();
            String::from_utf8_lossy(&listed.stdout).lines().filter(|line| *line == "idle").count()
                == 2
        });
    }

    fn daemon(&mut self, name: &str, words: &[&str]) {
        let log = fs::File::create(self.path("log").join(format!("{name}.out"))).unwrap();
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).stdin(Stdio::null());
        command.stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push((name.to_owned(), command.spawn().unwrap()));
    }

    /// Ends a node with everything on it, as a loss of power does.
    pub(crate) fn kill_node(&mut self, name: &str) {
        let (_, node) = self.daemons.iter_mut().find(|(one, _)| one == name).unwrap();
        node.kill().unwrap();
        node.wait().unwrap();
    }

    /// A command of SLURM.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = plain(program, &self.work());
        command.env("SLURM_CONF", self.path("slurm.conf"));
        // Open MPI asks root twice, and the nodes have one address.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_oob_tcp_if_include", "lo").env("OMPI_MCA_btl_tcp_if_include", "lo");
        command
    }

    /// Submits a job over both nodes; returns its id.
    pub(crate) fn submit(&self, script: &str) -> String {
        let head = "#!/bin/bash\n#SBATCH --nodes=2 --ntasks=2 --exclusive --time=00:05:00\n\
                    #SBATCH --job-name=solve --no-requeue --output=log-%j\n";
        fs::write(self.work().join("job.sh"), format!("{head}{script}\n")).unwrap();
        let submitted = output(self.command("sbatch").args(["--parsable", "job.sh"]));
        text(&submitted).trim().to_owned()
    }

    /// Waits for the end of a job.
    pub(crate) fn end_of(&self, id: &str) -> EndedJob {
        let mut state = String::new();
        wait_until("the job ends", || {
            state = self.state(id);
            !["PENDING", "RUNNING", "COMPLETING", "CONFIGURING"].contains(&state.as_str())
        });
        EndedJob { id: id.to_owned(), state, log: self.log(id) }
    }

    pub(crate) fn log(&self, id: &str) -> String {
        fs::read_to_string(self.work().join(format!("log-{id}"))).unwrap_or_default()
    }

    /// The state of a job.
    pub(crate) fn state(&self, id: &str) -> String {
        let shown = output(self.command("scontrol").args(["-o", "show", "job", id]));
        let shown = text(&shown);
        let state = shown.split_whitespace().find_map(|word| word.strip_prefix("JobState="));
        state.unwrap_or_default().to_owned()
    }

    /// Runs a script as a job, to its end.
    pub(crate) fn run(&self, script: &str) -> EndedJob {
        self.end_of(&self.submit(script))
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // Their namespaces end with them, and all processes in these.
        for (_, daemon) in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
        if self.is_cgroup {
            remove_cgroups(Path::new("/sys/fs/cgroup"));
        }
    }
}

/// Removes what a killed slurmd leaves behind.
fn remove_cgroups(mount: &Path) {
    for hierarchy in fs::read_dir(mount).into_iter().flatten().flatten() {
        for node in ["slurm_n1", "slurm_n2"] {
            remove_below(&hierarchy.path().join(node));
        }
    }
}

fn remove_below(cgroup: &Path) {
    for entry in fs::read_dir(cgroup).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_below(&entry.path());
        }
    }
    let _ = fs::remove_dir(cgroup);
}
