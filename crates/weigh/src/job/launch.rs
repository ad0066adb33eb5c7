//! How recorders are started on all nodes of a job: by the launcher of the site, rung by rung.
//!
//! How a recorder is stopped differs by rung. srun, ssh, oarsh and `flux exec` pass stdin on to
//! every task, and its end when they die: a line is a request to stop, the end means that the
//! launcher is gone. pbsdsh gives its tasks no stdin and mpirun only the first of them, so there
//! the file `state` alone is used.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use super::JobHere;
use crate::host::program;
use crate::model::batch_job::Scheduler;

/// One way to start recorders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchRung {
    /// One srun for all nodes.
    Srun,
    /// One srun for each node: for those that one srun for all does not reach.
    SrunEach,
    /// `pbsdsh`, for all nodes.
    Pbsdsh,
    /// `oarsh`, one for each node.
    Oarsh,
    /// `flux exec`, for all nodes.
    FluxExec,
    /// `mpirun`, for all nodes.
    Mpirun,
}

/// Options by which srun takes nothing from the job, by the name that its help has.
const SRUN_OPTIONS: [(&str, &str); 3] =
    [("--overlap", "--overlap"), ("--mem", "--mem=0"), ("--cpu-bind", "--cpu-bind=none")];

/// Variables that srun takes as options: the job has them for its own steps.
const SRUN_VARIABLES: [&str; 17] = [
    "SLURM_CPUS_PER_TASK",
    "SLURM_CPU_BIND",
    "SLURM_DISTRIBUTION",
    "SLURM_EXCLUSIVE",
    "SLURM_GPUS",
    "SLURM_GPUS_PER_NODE",
    "SLURM_GPUS_PER_SOCKET",
    "SLURM_GPUS_PER_TASK",
    "SLURM_GRES",
    "SLURM_HINT",
    "SLURM_MEM_PER_CPU",
    "SLURM_MEM_PER_GPU",
    "SLURM_MEM_PER_NODE",
    "SLURM_NPROCS",
    "SLURM_NTASKS",
    "SLURM_NTASKS_PER_NODE",
    "SLURM_THREADS_PER_CORE",
];

impl LaunchRung {
    /// The rungs of a job, the best first.
    pub fn of(here: &JobHere) -> &'static [LaunchRung] {
        match here.job.scheduler {
            Scheduler::Slurm => &[LaunchRung::Srun, LaunchRung::SrunEach, LaunchRung::Mpirun],
            Scheduler::Pbs => &[LaunchRung::Pbsdsh, LaunchRung::Mpirun],
            Scheduler::Oar => &[LaunchRung::Oarsh, LaunchRung::Mpirun],
            Scheduler::Flux => &[LaunchRung::FluxExec],
            Scheduler::Other => &[],
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            LaunchRung::Srun => "srun",
            LaunchRung::SrunEach => "srun for each node",
            LaunchRung::Pbsdsh => "pbsdsh",
            LaunchRung::Oarsh => "oarsh",
            LaunchRung::FluxExec => "flux exec",
            LaunchRung::Mpirun => "mpirun",
        }
    }

    /// Whether its tasks get what is written to its stdin, and the end of it.
    pub fn passes_stdin(self) -> bool {
        !matches!(self, LaunchRung::Pbsdsh | LaunchRung::Mpirun)
    }

    /// The commands that start a recorder on each of these nodes.
    fn commands(self, nodes: &[String], recorder: &[OsString]) -> Vec<Vec<OsString>> {
        let with = |words: &[&str]| {
            let words = words.iter().map(OsString::from);
            words.chain(recorder.iter().cloned()).collect::<Vec<_>>()
        };
        let count = nodes.len().to_string();
        match self {
            LaunchRung::Srun => {
                let (list, options) = (nodes.join(","), known_srun_options());
                let mut words = vec!["srun", "-N", &count, "-n", &count, "--ntasks-per-node=1"];
                words.extend(["-w", &list, "--mpi=none", "--kill-on-bad-exit=0"]);
                words.extend(&options);
                vec![with(&words)]
            }
            LaunchRung::SrunEach => {
                let options = known_srun_options();
                let one = |node: &String| {
                    let mut words = vec!["srun", "-N1", "-n1", "-w", node, "--mpi=none"];
                    words.extend(&options);
                    with(&words)
                };
                nodes.iter().map(one).collect()
            }
            LaunchRung::Pbsdsh => vec![with(&["pbsdsh", "--"])],
            LaunchRung::Oarsh => nodes.iter().map(|node| with(&["oarsh", node])).collect(),
            LaunchRung::FluxExec => vec![with(&["flux", "exec", "-r", "all"])],
            LaunchRung::Mpirun => {
                vec![with(&["mpirun", "-np", &count, "--map-by", "ppr:1:node"])]
            }
        }
    }
}

fn known_srun_options() -> Vec<&'static str> {
    let printed = |option: &str| {
        let text = program::output("srun", &[option], &[], super::PATIENCE);
        text.map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
    };
    srun_options(&printed("--help"), &printed("--version"))
}

/// The options that this srun knows: an old one has no --overlap, and needs none.
///
/// Before 21.08 --overlap shares only CPUs. There a recorder must not have the job's GPUs, and
/// cannot measure them: without GPUs of its own the driver is hidden from it.
fn srun_options(help: &str, version: &str) -> Vec<&'static str> {
    let known = |(name, _): &(&str, &str)| help.contains(name);
    let mut options: Vec<_> =
        SRUN_OPTIONS.into_iter().filter(known).map(|(_, option)| option).collect();
    let number = version.split_whitespace().find_map(|word| {
        let mut parts = word.split('.');
        Some((parts.next()?.parse::<u32>().ok()?, parts.next()?.parse::<u32>().ok()?))
    });
    if help.contains("--gres") && number.is_none_or(|number| number < (21, 8)) {
        options.push("--gres=none");
    }
    options
}

/// Recorders that were started, by the processes that started them.
#[derive(Debug)]
pub struct LaunchedRecorders {
    children: Vec<Child>,
}

/// What becomes of the recorders when this process exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchLifetime {
    /// They end, where the rung passes that on.
    WithThisProcess,
    /// They stay.
    Detached,
}

impl LaunchedRecorders {
    /// Starts a recorder on each of these nodes. What the launcher prints goes to stderr.
    pub fn start(
        rung: LaunchRung,
        nodes: &[String],
        recorder: &[OsString],
        lifetime: LaunchLifetime,
    ) -> std::io::Result<LaunchedRecorders> {
        let mut launched = LaunchedRecorders { children: Vec::new() };
        for words in rung.commands(nodes, recorder) {
            let (program, arguments) =
                words.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
            let mut command = Command::new(program);
            command.args(arguments).stdout(Stdio::null());
            SRUN_VARIABLES.iter().for_each(|name| {
                command.env_remove(name);
            });
            match lifetime {
                LaunchLifetime::WithThisProcess if rung.passes_stdin() => {
                    command.stdin(Stdio::piped());
                }
                _ => {
                    command.stdin(Stdio::null());
                }
            }
            // Ctrl-C at the terminal is for the command; the recorders end after it.
            command.process_group(0);
            launched.children.push(command.spawn()?);
        }
        Ok(launched)
    }

    /// Whether one of the launchers still runs.
    pub fn is_running(&mut self) -> bool {
        self.children.iter_mut().any(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Requests the end of the recorders, where that works without a file.
    pub fn request_end(&mut self) {
        for child in &mut self.children {
            if let Some(mut stdin) = child.stdin.take() {
                // One that has exited needs no request.
                let _ = stdin.write_all(b"stop\n");
            }
        }
    }

    /// Ends the launchers that still run.
    pub fn kill(&mut self) {
        for child in &mut self.children {
            // It may have exited.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The words of a recorder: the program, and what every rung passes to it.
pub fn recorder(program: &OsStr, directory: &OsStr, ends_with: &str) -> Vec<OsString> {
    let words = [program, OsStr::new("job"), OsStr::new("follow"), OsStr::new("-o"), directory];
    let ends = [OsStr::new("--ends-with"), OsStr::new(ends_with), OsStr::new("-q")];
    words.into_iter().chain(ends).map(OsStr::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rung: LaunchRung) -> Vec<String> {
        let nodes = ["n1", "n2"].map(str::to_owned);
        let recorder = recorder(OsStr::new("/bin/weigh"), OsStr::new("out"), "stdin");
        let words = |words: &Vec<OsString>| {
            words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
        };
        rung.commands(&nodes, &recorder).iter().map(words).collect()
    }

    #[test]
    fn each_rung_starts_one_recorder_on_each_node() {
        let recorder = "/bin/weigh job follow -o out --ends-with stdin -q";
        for (rung, expected) in [
            (LaunchRung::Pbsdsh, vec![format!("pbsdsh -- {recorder}")]),
            (
                LaunchRung::Oarsh,
                vec![format!("oarsh n1 {recorder}"), format!("oarsh n2 {recorder}")],
            ),
            (LaunchRung::FluxExec, vec![format!("flux exec -r all {recorder}")]),
            (LaunchRung::Mpirun, vec![format!("mpirun -np 2 --map-by ppr:1:node {recorder}")]),
        ] {
            assert_eq!(shown(rung), expected, "{rung:?}");
        }
        let srun = &shown(LaunchRung::Srun)[0];
        assert!(srun.starts_with("srun -N 2 -n 2 --ntasks-per-node=1 -w n1,n2"), "{srun}");
        assert_eq!(shown(LaunchRung::SrunEach).len(), 2);
    }

    #[test]
    fn options_that_this_srun_does_not_know_are_left_out() {
        let old = "  --mem=MB  --cpu-bind=  --gres=list";
        let options = ["--mem=0", "--cpu-bind=none", "--gres=none"];
        assert_eq!(srun_options(old, "slurm 19.05.8"), options);
        assert!(srun_options("", "").is_empty());
    }

    #[test]
    fn recorder_has_the_gpus_of_the_job_where_it_may_share_them() {
        let help = "--overlap --mem= --cpu-bind= --gres=";
        let gives_up = |version| srun_options(help, version).contains(&"--gres=none");
        assert!(!gives_up("slurm-wl 22.05.8") && !gives_up("slurm 21.08.0"));
        assert!(gives_up("slurm 20.11.9") && gives_up(""));
    }
}
