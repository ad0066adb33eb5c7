//! Recorders that are started on all nodes of a job, by one rung: many at a time, each with a time
//! limit, so that neither a thousand nodes nor a dead one hold up the command.

use std::collections::VecDeque;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::rung::{LaunchCommand, LaunchRung, RecorderCommand};
use crate::host::clock::HostClock;

/// How long the recorders of one launcher may take to begin.
const BEGIN_WITHIN: Duration = Duration::from_secs(20);

/// How many launchers may be on their way at a time: sshd and servers of batch systems refuse more.
const AT_ONCE: usize = 64;

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

/// What becomes of the recorders when this process exits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchLifetime {
    /// They end, where the rung passes that on.
    WithThisProcess,
    /// They stay.
    Detached,
}

/// Recorders, by the processes that start them.
#[derive(Debug)]
pub struct LaunchedRecorders {
    waiting: VecDeque<LaunchCommand>,
    launchers: Vec<Launcher>,
    has_stdin: bool,
}

/// A process that starts recorders.
#[derive(Debug)]
struct Launcher {
    child: Child,
    nodes: Vec<String>,
    since: Duration,
    /// All its recorders have begun, or no more can be expected of it.
    is_settled: bool,
}

impl LaunchedRecorders {
    /// Recorders on these nodes, of which none is started yet.
    pub fn of(
        rung: LaunchRung,
        nodes: &[String],
        recorder: &RecorderCommand,
        lifetime: LaunchLifetime,
    ) -> LaunchedRecorders {
        LaunchedRecorders {
            waiting: rung.commands(nodes, recorder).into(),
            launchers: Vec::new(),
            has_stdin: lifetime == LaunchLifetime::WithThisProcess && rung.passes_stdin(),
        }
    }

    /// Starts as many as may be on their way; returns whether more can be expected to begin.
    /// `has_begun` says whether the recorder of a node records.
    pub fn advance(&mut self, has_begun: impl Fn(&str) -> bool) -> std::io::Result<bool> {
        let now = HostClock::Monotonic.now();
        for launcher in self.launchers.iter_mut().filter(|launcher| !launcher.is_settled) {
            // Before the files: a recorder may have begun just before its launcher exited.
            let has_exited = !launcher.is_running();
            let begun = launcher.nodes.iter().filter(|node| has_begun(node)).count();
            let is_late = now.saturating_sub(launcher.since) >= BEGIN_WITHIN;
            if is_late && begun == 0 {
                launcher.kill();
            }
            launcher.is_settled = begun == launcher.nodes.len() || has_exited || is_late;
        }
        let on_their_way = self.launchers.iter().filter(|launcher| !launcher.is_settled).count();
        let free = AT_ONCE.saturating_sub(on_their_way).min(self.waiting.len());
        for command in self.waiting.drain(..free) {
            match start(&command, self.has_stdin) {
                Ok(child) => self.launchers.push(Launcher {
                    child,
                    nodes: command.nodes,
                    since: now,
                    is_settled: false,
                }),
                Err(error) if self.launchers.is_empty() => return Err(error),
                // Without memory or processes for one more; its node is named as missing.
                Err(_) => {}
            }
        }
        Ok(self.launchers.iter().any(|launcher| !launcher.is_settled))
    }

    /// Whether one of the launchers still runs.
    pub fn is_running(&mut self) -> bool {
        self.launchers.iter_mut().any(Launcher::is_running)
    }

    /// Requests the end of the recorders, where that works without a file.
    pub fn request_end(&mut self) {
        for launcher in &mut self.launchers {
            if let Some(mut stdin) = launcher.child.stdin.take() {
                // One that has exited needs no request.
                let _ = stdin.write_all(b"stop\n");
            }
        }
    }

    /// Ends the launchers that still run.
    pub fn kill(&mut self) {
        self.launchers.iter_mut().for_each(Launcher::kill);
    }
}

impl Launcher {
    fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    fn kill(&mut self) {
        // It may have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts a launcher. What it prints goes to stderr.
fn start(launch: &LaunchCommand, has_stdin: bool) -> std::io::Result<Child> {
    let (program, arguments) =
        launch.words.split_first().ok_or(std::io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments).stdout(Stdio::null());
    command.stdin(if has_stdin { Stdio::piped() } else { Stdio::null() });
    SRUN_VARIABLES.iter().for_each(|name| {
        command.env_remove(name);
    });
    // Ctrl-C at the terminal is for the command; the recorders end after it.
    command.process_group(0);
    command.spawn()
}
