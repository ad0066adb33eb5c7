//! Two nodes on this machine, for launchers: each has a host name (n1, n2), a /proc and process
//! ids of its own, and a daemon that starts what launchers request.
//!
//! The daemon is a real sshd, or a stand-in for pbs_mom or flux-broker: a process that starts tasks
//! as its own children, in sessions of their own. `ssh` and mpirun are the real ones; pbsdsh,
//! pbs_tmrsh, qstat and flux are stand-ins after their manuals, because no package has them.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::weighed::{can_mount, is_installed, output, plain, wait_until};

/// What starts tasks on the nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeDaemon {
    Sshd,
    PbsMom,
    FluxBroker,
}

/// Running nodes; dropping them ends everything on them.
pub(crate) struct Nodes {
    directory: TempDir,
    daemons: Vec<Child>,
}

/// A node's daemon that reads names of task files, and starts each in a session of its own.
const TASK_DAEMON: &str = "#!/bin/bash
exec 3<> \"$1\"
while read -r -u 3 task; do setsid bash \"$task\" & done
";

/// Starts a task on a node ($1) and waits for its end; `in` is its stdin. The shell of the task
/// stays: what it used itself would count for the program that it called exec for.
const START_TASK: &str = "#!/bin/bash
base=BASE node=$1 in=$2; shift 2
task=$(mktemp $base/task.XXXXXX)
mkfifo $task.end
{ declare -px | sed 's/^declare -x/export/'
  echo \"cd $base/home; exec 9> $task.end < $in >> $base/tasks.log 2>&1\"
  printf '%q ' \"$@\"; echo
} > $task
echo $task > $base/$node.fifo
cat $task.end > /dev/null
";

/// `pbsdsh [-h HOST] -- COMMAND`: without a host once for each line of the node file.
const PBSDSH: &str = "#!/bin/bash
hosts=$(cat $PBS_NODEFILE)
while :; do case $1 in -h) hosts=$2; shift 2;; --) shift; break;; *) break;; esac; done
unset PBS_NODEFILE
for host in $hosts; do BASE/start $host /dev/null \"$@\" & done; wait
";

/// `pbs_tmrsh HOST COMMAND`.
const PBS_TMRSH: &str = "#!/bin/bash
host=$1; shift; unset PBS_NODEFILE
exec BASE/start $host /dev/null \"$@\"
";

/// `qstat -f -F json ID`, as OpenPBS 23.06 prints it.
const QSTAT: &str = "#!/bin/sh
[ \"$1 $2 $3\" = '-f -F json' ] || exit 2
cat <<END
{\"Jobs\":{\"$4\":{\"Job_Name\":\"solve\",\"Job_Owner\":\"ada@vm\",\"queue\":\"workq\",
\"exec_host\":\"n1/0*2+n2/0*2\",\"exec_vnode\":\"(n1:ncpus=2:mem=1048576kb)+(n2:ncpus=2:mem=1048576kb)\",
\"Resource_List\":{\"walltime\":\"01:00:00\"},\"resources_used\":{\"walltime\":\"00:00:01\"}}}}
END
";

/// `flux getattr hostlist`, `flux exec -r all COMMAND` with its stdin, `flux run -N2 COMMAND`.
const FLUX: &str = "#!/bin/bash
verb=$1; shift
case $verb in
getattr) case $1 in hostlist) echo 'n[1-2]';; jobid) echo f42;; *) exit 1;; esac;;
exec) [ \"$1 $2\" = '-r all' ] && shift 2
  for node in n1 n2; do in[${#in[@]}]=$(mktemp -u BASE/in.XXXXXX); mkfifo ${in[-1]}; done
  exec 4<&0
  tee ${in[1]} <&4 > ${in[0]} &
  FLUX_URI=local://n1 BASE/start n1 ${in[0]} \"$@\" &
  FLUX_URI=local://n2 BASE/start n2 ${in[1]} \"$@\" &
  wait;;
run) shift
  for node in n1 n2; do
    FLUX_URI=local://$node FLUX_JOB_ID=f7 BASE/start $node /dev/null \"$@\" &
  done; wait;;
*) exit 1;;
esac
";

impl Nodes {
    /// Starts two nodes; `None` where that is not possible, with a message.
    pub(crate) fn start(daemon: NodeDaemon) -> Option<Nodes> {
        let needed: &[&str] = match daemon {
            NodeDaemon::Sshd => &["sshd", "ssh-keygen", "ssh"],
            NodeDaemon::PbsMom | NodeDaemon::FluxBroker => &["bash", "setsid"],
        };
        if !can_mount() || !needed.iter().all(|program| is_installed(program)) {
            return None;
        }
        let directory = tempfile::Builder::new().prefix("nodes").tempdir_in("/tmp").unwrap();
        let mut nodes = Nodes { directory, daemons: Vec::new() };
        for name in ["bin", "work", "home"] {
            fs::create_dir(nodes.path(name)).unwrap();
        }
        match daemon {
            NodeDaemon::Sshd => nodes.start_sshd(),
            NodeDaemon::PbsMom => {
                let programs = [("pbsdsh", PBSDSH), ("pbs_tmrsh", PBS_TMRSH), ("qstat", QSTAT)];
                nodes.start_stand_ins("pbs_mom", &programs);
                fs::write(nodes.path("nodefile"), "n1\nn1\nn2\nn2\n").unwrap();
            }
            NodeDaemon::FluxBroker => nodes.start_stand_ins("flux-broker", &[("flux", FLUX)]),
        }
        Some(nodes)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A command that finds the launchers.
    pub(crate) fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = plain(program, &self.path("work"));
        let mut path = OsString::from(self.path("bin"));
        path.push(":");
        path.push(std::env::var_os("PATH").unwrap_or_default());
        // Open MPI asks root twice.
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        command.env("OMPI_MCA_oob_tcp_if_include", "lo").env("OMPI_MCA_btl_tcp_if_include", "lo");
        command.env("PATH", path).args(arguments);
        command
    }

    fn program(&self, name: &str, text: &str) {
        let base = self.directory.path().display().to_string();
        fs::write(self.path(name), text.replace("BASE", &base)).unwrap();
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn start_sshd(&mut self) {
        let base = self.directory.path().display().to_string();
        fs::set_permissions(self.directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let key = self.path("key");
        let mut keygen = plain("ssh-keygen", self.directory.path());
        let made = output(keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key));
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        // Another test run on this machine has other ports.
        let port = 40_000 + std::process::id() % 4000 * 5;
        let mut client = format!(
            "Host *\n HostName 127.0.0.1\n User root\n IdentityFile {base}/key\n \
             StrictHostKeyChecking no\n UserKnownHostsFile /dev/null\n LogLevel ERROR\n"
        );
        for (which, node) in ["n1", "n2", "n3"].into_iter().enumerate() {
            let port = port + which as u32;
            client.push_str(&format!("Host {node}\n Port {port}\n"));
            // The third one is down: nobody listens.
            if node == "n3" {
                continue;
            }
            let server = format!(
                "Port {port}\nListenAddress 127.0.0.1\nHostKey {base}/key\nPidFile none\n\
                 AuthorizedKeysFile {base}/key.pub\nPermitRootLogin yes\nStrictModes no\n\
                 PasswordAuthentication no\nKbdInteractiveAuthentication no\nUsePAM no\n"
            );
            fs::write(self.path(&format!("sshd.{node}")), server).unwrap();
            let script = format!(
                "mount -t tmpfs tmpfs /run && mkdir /run/sshd && \
                 {{ $(command -v sshd) -D -e -f {base}/sshd.{node} & wait; }}"
            );
            self.node(node, &script);
            let is_up = || std::net::TcpStream::connect(("127.0.0.1", port as u16)).is_ok();
            wait_until("sshd listens", is_up);
        }
        fs::write(self.path("ssh_config"), client).unwrap();
        let ssh = output(plain("sh", self.directory.path()).args(["-c", "command -v ssh"]));
        let ssh = String::from_utf8(ssh.stdout).unwrap();
        self.program(
            "bin/ssh",
            &format!("#!/bin/sh\nexec {} -F BASE/ssh_config \"$@\"\n", ssh.trim()),
        );
    }

    fn start_stand_ins(&mut self, daemon: &str, programs: &[(&str, &str)]) {
        self.program(daemon, TASK_DAEMON);
        self.program("start", START_TASK);
        programs.iter().for_each(|(name, text)| self.program(&format!("bin/{name}"), text));
        for node in ["n1", "n2"] {
            let fifo = self.path(&format!("{node}.fifo"));
            let made = output(plain("mkfifo", self.directory.path()).arg(&fifo));
            assert!(made.status.success());
            let script = format!("{} {} & wait", self.path(daemon).display(), fifo.display());
            self.node(node, &script);
        }
    }

    /// A node that runs a script.
    fn node(&mut self, name: &str, script: &str) {
        let log = fs::File::create(self.path(&format!("{name}.log"))).unwrap();
        let script = format!("hostname {name}; {script}");
        let mut node = plain("unshare", self.directory.path());
        node.args([
            "--uts",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "sh",
            "-c",
            &script,
        ]);
        node.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.daemons.push(node.spawn().unwrap());
    }

    /// What the daemons and the tasks have printed.
    pub(crate) fn log(&self) -> String {
        let read = |name| fs::read_to_string(self.path(name)).unwrap_or_default();
        ["n1.log", "n2.log", "tasks.log"].map(read).concat()
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for daemon in &mut self.daemons {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}
