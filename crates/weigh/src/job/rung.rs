//! The ways to start a recorder on each node of a job, and the commands for each.
//!
//! What surprised us: `srun`, ssh, oarsh and `flux exec` pass stdin on to every task, and its end
//! when they die; pbsdsh and pbs_tmrsh give their tasks none, and mpirun only the first of them. ssh
//! and oarsh join their words and give them to a shell, and ssh passes no variable on.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use super::{JobHere, JobMarker};
use crate::host::program;
use crate::model::batch_job::Scheduler;

/// One way to start recorders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchRung {
    /// One srun for all nodes.
    Srun,
    /// One srun for each node: for those that one srun for all does not reach.
    SrunEach,
    /// `pbsdsh`, one for each node.
    Pbsdsh,
    /// `pbs_tmrsh`, one for each node.
    PbsTmrsh,
    /// `oarsh`, one for each node.
    Oarsh,
    /// `flux exec`, for all nodes.
    FluxExec,
    /// `mpirun`, for all nodes.
    Mpirun,
    /// `ssh`, one for each node.
    Ssh,
}

/// Options by which srun takes nothing from the job, by the name that its help has.
const SRUN_OPTIONS: [(&str, &str); 3] =
    [("--overlap", "--overlap"), ("--mem", "--mem=0"), ("--cpu-bind", "--cpu-bind=none")];

/// ssh asks nobody anything, gives up on a host that does not answer, and notices when one dies.
const SSH: [&str; 9] = [
    "ssh",
    "-o",
    "BatchMode=yes",
    "-o",
    "ConnectTimeout=10",
    "-o",
    "ServerAliveInterval=15",
    "-x",
    "-a",
];

/// A command that starts recorders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LaunchCommand {
    /// Its program and arguments.
    pub(super) words: Vec<OsString>,
    /// The nodes it is for, by the names of their folders.
    pub(super) nodes: Vec<String>,
}

/// What is started on each node.
#[derive(Debug, Clone)]
pub struct RecorderCommand {
    words: Vec<OsString>,
    /// The variable of the job, for launchers that pass none on.
    marker: JobMarker,
}

impl RecorderCommand {
    /// The recorder of a job: the program, and what every rung passes to it.
    pub fn new(
        here: &JobHere,
        program: &OsStr,
        directory: &OsStr,
        ends_with: &str,
        options: Vec<OsString>,
    ) -> RecorderCommand {
        let words = [program, OsStr::new("job"), OsStr::new("follow"), OsStr::new("-o"), directory];
        let ends = [OsStr::new("--ends-with"), OsStr::new(ends_with), OsStr::new("-q")];
        let words = words.into_iter().chain(ends).map(OsStr::to_owned).chain(options);
        RecorderCommand { words: words.collect(), marker: here.marker.clone() }
    }

    /// For several nodes, which know their own names.
    fn after(&self, launcher: &[&str]) -> Vec<OsString> {
        let launcher = launcher.iter().map(OsString::from);
        launcher.chain(self.words.iter().cloned()).collect()
    }

    /// For one node, which is told its name.
    fn on(&self, node: &str) -> Vec<OsString> {
        let name = ["--node", node].map(OsString::from);
        self.words.iter().cloned().chain(name).collect()
    }

    /// For one node, as a line for its shell, with these variables.
    fn line_on(&self, node: &str, variables: &[(&str, &str)]) -> OsString {
        let mut line = b"exec".to_vec();
        let mut add = |word: &[u8]| {
            line.push(b' ');
            line.extend(quoted(word));
        };
        if !variables.is_empty() {
            add(b"env");
        }
        variables.iter().for_each(|(name, value)| add(format!("{name}={value}").as_bytes()));
        self.on(node).iter().for_each(|word| add(word.as_bytes()));
        OsString::from_vec(line)
    }
}

/// A word for a shell.
fn quoted(word: &[u8]) -> Vec<u8> {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./=:,%@+".contains(byte);
    if !word.is_empty() && word.iter().all(is_plain) {
        return word.to_vec();
    }
    let mut quoted = vec![b'\''];
    for byte in word {
        match byte {
            b'\'' => quoted.extend(b"'\\''"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'\'');
    quoted
}

impl LaunchRung {
    /// The rungs of a job, the best first.
    pub fn of(here: &JobHere) -> &'static [LaunchRung] {
        match here.job.scheduler {
            Scheduler::Slurm => &[LaunchRung::Srun, LaunchRung::SrunEach, LaunchRung::Mpirun],
            Scheduler::Pbs => &[LaunchRung::Pbsdsh, LaunchRung::PbsTmrsh, LaunchRung::Mpirun],
            Scheduler::Oar => &[LaunchRung::Oarsh, LaunchRung::Mpirun],
            Scheduler::Flux => &[LaunchRung::FluxExec, LaunchRung::Mpirun],
            Scheduler::Hosts => &[LaunchRung::Ssh],
            Scheduler::Other => &[],
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            LaunchRung::Srun => "srun",
            LaunchRung::SrunEach => "srun for each node",
            LaunchRung::Pbsdsh => "pbsdsh",
            LaunchRung::PbsTmrsh => "pbs_tmrsh",
            LaunchRung::Oarsh => "oarsh",
            LaunchRung::FluxExec => "flux exec",
            LaunchRung::Mpirun => "mpirun",
            LaunchRung::Ssh => "ssh",
        }
    }

    /// Whether its tasks get what is written to its stdin, and the end of it.
    pub fn passes_stdin(self) -> bool {
        !matches!(self, LaunchRung::Pbsdsh | LaunchRung::PbsTmrsh | LaunchRung::Mpirun)
    }

    /// The commands that start a recorder on each of these nodes.
    pub(super) fn commands(
        self,
        nodes: &[String],
        recorder: &RecorderCommand,
    ) -> Vec<LaunchCommand> {
        let count = nodes.len().to_string();
        let list = nodes.join(",");
        let marker = &recorder.marker;
        let all = |words: &[&str]| {
            vec![LaunchCommand { words: recorder.after(words), nodes: nodes.to_vec() }]
        };
        let each = |words: &dyn Fn(&str) -> Vec<OsString>| {
            let one = |node: &String| LaunchCommand {
                words: words(node),
                nodes: vec![name_of(node).to_owned()],
            };
            nodes.iter().map(one).collect::<Vec<_>>()
        };
        let with = |launcher: &[&str], rest: Vec<OsString>| {
            launcher.iter().map(OsString::from).chain(rest).collect::<Vec<_>>()
        };
        match self {
            LaunchRung::Srun => {
                let options = known_srun_options();
                let mut words = vec!["srun", "-N", &count, "-n", &count, "--ntasks-per-node=1"];
                words.extend(["-w", &list, "--mpi=none", "--kill-on-bad-exit=0"]);
                words.extend(&options);
                all(&words)
            }
            LaunchRung::SrunEach => {
                let options = known_srun_options();
                each(&|node| {
                    let mut words = vec!["srun", "-N1", "-n1", "-w", node, "--mpi=none"];
                    words.extend(&options);
                    recorder.after(&words)
                })
            }
            // Without -h, it starts one for each process of the job and not for each host.
            LaunchRung::Pbsdsh => {
                each(&|node| with(&["pbsdsh", "-h", node, "--"], recorder.on(node)))
            }
            LaunchRung::PbsTmrsh => each(&|node| with(&["pbs_tmrsh", node], recorder.on(node))),
            LaunchRung::Oarsh => {
                each(&|node| with(&["oarsh", node], vec![recorder.line_on(node, &[])]))
            }
            LaunchRung::FluxExec => all(&["flux", "exec", "-r", "all"]),
            LaunchRung::Mpirun => {
                let version = printed("mpirun", "--version");
                let variable = format!("{}={}", marker.name, marker.value);
                // Open MPI passes none on but its own.
                let words = [&mpirun(&version, &count, &list)[..], &["env", &variable]].concat();
                all(&words)
            }
            LaunchRung::Ssh => {
                let JobMarker { name, value } = marker;
                each(&|node| {
                    let line = recorder.line_on(name_of(node), &[(name, value)]);
                    with(&[&SSH[..], &[node, "--"]].concat(), vec![line])
                })
            }
        }
    }
}

/// The host of `user@host`.
pub fn name_of(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

/// mpirun with one process on each of these nodes, by what its --version prints.
fn mpirun<'w>(version: &str, count: &'w str, list: &'w str) -> Vec<&'w str> {
    let mut words = vec!["mpirun", "-np", count];
    if version.contains("HYDRA") || version.contains("Intel(R) MPI") {
        words.extend(["-ppn", "1", "-hosts", list]);
    } else {
        words.extend(["--host", list, "--map-by", "ppr:1:node"]);
    }
    words
}

fn printed(program: &str, option: &str) -> String {
    let text = program::output(program, &[option], &[], super::PATIENCE);
    text.map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default()
}

fn known_srun_options() -> Vec<&'static str> {
    srun_options(&printed("srun", "--help"), &printed("srun", "--version"))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(rung: LaunchRung) -> Vec<String> {
        let here = JobHere::new(Scheduler::Hosts, "WEIGH_JOB_ID", "a b".to_owned());
        let nodes = ["n1", "n2"].map(str::to_owned);
        let options = vec![OsString::from("--name"), OsString::from("it's")];
        let program = OsStr::new("/bin/weigh");
        let recorder = RecorderCommand::new(&here, program, OsStr::new("out"), "stdin", options);
        let words = |command: &LaunchCommand| {
            let words = command.words.iter().map(|word| word.to_string_lossy());
            words.collect::<Vec<_>>().join(" ")
        };
        rung.commands(&nodes, &recorder).iter().map(words).collect()
    }

    #[test]
    fn each_rung_starts_one_recorder_on_each_node() {
        let recorder = "/bin/weigh job follow -o out --ends-with stdin -q --name";
        let each = |before: &str, after: &str| {
            ["n1", "n2"]
                .map(|node| {
                    format!("{} {recorder} {after} --node {node}", before.replace("NODE", node))
                })
                .to_vec()
        };
        for (rung, expected) in [
            (LaunchRung::Pbsdsh, each("pbsdsh -h NODE --", "it's")),
            (LaunchRung::PbsTmrsh, each("pbs_tmrsh NODE", "it's")),
            (LaunchRung::Oarsh, each("oarsh NODE exec", "'it'\\''s'")),
            (LaunchRung::FluxExec, vec![format!("flux exec -r all {recorder} it's")]),
            (
                LaunchRung::Ssh,
                each(
                    &format!("{} NODE -- exec env 'WEIGH_JOB_ID=a b'", SSH.join(" ")),
                    "'it'\\''s'",
                ),
            ),
        ] {
            assert_eq!(shown(rung), expected, "{rung:?}");
        }
        let srun = &shown(LaunchRung::Srun)[0];
        assert!(srun.starts_with("srun -N 2 -n 2 --ntasks-per-node=1 -w n1,n2"), "{srun}");
        assert_eq!(shown(LaunchRung::SrunEach).len(), 2);
    }

    #[test]
    fn each_mpirun_gets_its_own_options() {
        let words = |version| mpirun(version, "2", "n1,n2").join(" ");
        let open = "mpirun -np 2 --host n1,n2 --map-by ppr:1:node";
        assert_eq!(words("mpirun (Open MPI) 4.1.4"), open);
        let hydra = "mpirun -np 2 -ppn 1 -hosts n1,n2";
        assert_eq!(words("HYDRA build details:\n    Version: 4.0.2"), hydra);
        assert_eq!(words("Intel(R) MPI Library for Linux* OS"), hydra);
    }

    #[test]
    fn host_of_another_user_is_called_by_its_name() {
        assert_eq!((name_of("ada@n1"), name_of("n1")), ("n1", "n1"));
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
