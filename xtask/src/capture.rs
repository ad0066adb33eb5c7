//! `cargo xtask capture-host`: a machine as text, for golden tests.
//!
//! The collectors themselves determine what to record: they are run once over a small
//! tree with directories that log what is opened in them. Then these files
//! are read twice, one second apart. An archive is a line `=== PATH` for each file,
//! followed by its bytes and nothing else, so a file without a newline at its end
//! (`cmdline`) is followed by the next mark on the same line. A file of `/sys` that is not
//! text has `=== PATH (hex)` and its bytes in hexadecimal digits.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use weigh::catalog::groups;
use weigh::collect::processes::ProcessCollector;
use weigh::collect::{self, Collector, PROVIDERS};
use weigh::host::Host;
use weigh::host::hardware::Live;
use weigh::host::hardware::surroundings::LimitsOf;
use weigh::model::Facts;
use weigh::model::Tick;
use weigh::model::hardware::{Hardware, Surroundings};
use weigh::model::settings::Settings;

use crate::bench::descendants;
use crate::command::root;
use crate::scrub::Scrub;

/// What to capture, and under which name.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The machine's name under fixtures/hosts
    name: String,
    /// Capture this process and its descendants instead of a small tree of our own
    #[arg(long)]
    pid: Option<u32>,
}

/// A shell that waits for a sleeper and for a child that is busy.
const TREE: &str = "sleep 60 & while :; do :; done & wait";

/// Captures this machine.
pub(crate) fn run(options: &Options) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    if options.name.is_empty() || !options.name.chars().all(plain) || options.name.starts_with('.')
    {
        bail!("{:?} is not a name: letters, digits, -, _ and .", options.name);
    }
    let (tree, files) = learn()?;
    let top = options.pid.unwrap_or(tree.0.id());
    let mut pids = vec![top];
    pids.extend(descendants(top));
    let directory = root().join("fixtures/hosts").join(&options.name);
    std::fs::create_dir_all(&directory).with_context(|| directory.display().to_string())?;
    let scrub = Scrub::of_this_machine();
    let header = format!(
        "Captured by `cargo xtask capture-host {}`: the tree under pid {top}.\n",
        options.name
    );
    for moment in ["t0", "t1"] {
        if moment == "t1" {
            std::thread::sleep(Duration::from_secs(1));
        }
        let archive = scrub.text(&format!("{header}{}", files.archive(&pids)?));
        let path = directory.join(format!("{moment}.host"));
        std::fs::write(&path, &archive).with_context(|| path.display().to_string())?;
        println!("wrote {} ({} bytes)", path.display(), archive.len());
    }
    Ok(())
}

/// A tree of processes, killed on drop.
struct Tree(Child);

impl Tree {
    fn start() -> Result<Tree> {
        let mut shell = Command::new("sh");
        // A new process group, so that all of it can be killed at once.
        std::os::unix::process::CommandExt::process_group(&mut shell, 0);
        let shell = shell.args(["-c", TREE]).stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Tree(shell.spawn().context("cannot start sh")?))
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        // SAFETY: kill takes numbers; the group's leader has not been waited for.
        unsafe { libc::kill(-(self.0.id() as i32), libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

/// The files that collectors read.
#[derive(Default)]
struct Files {
    /// Of the machine.
    system: BTreeSet<PathBuf>,
    /// Of each process, by their names.
    process: BTreeSet<String>,
}

/// Runs every collector over a small tree and records what it opens.
fn learn() -> Result<(Tree, Files)> {
    let opened = Arc::new(Mutex::new(BTreeSet::new()));
    let mut host = Host::at(Path::new("/"))?;
    host.root = host.root.recording_opened(&opened);
    host.proc = host.proc.recording_opened(&opened);
    host.sys = host.sys.recording_opened(&opened);
    let settings = Settings { per_cpu: true, ..Settings::default() };
    let sources = collect::select(&host, &settings).sources;
    let mut tick = Tick::new(&groups(sources.iter().copied()));
    let mut processes = ProcessCollector::before_run(&host, &settings);
    let tree = Tree::start()?;
    Facts::of(&host);
    Hardware::of(&host.root, Live::elsewhere());
    Surroundings::of(&host.root, LimitsOf::Own, |_| None);
    PROVIDERS.iter().for_each(|provider| drop((provider.probe)(&host)));
    let collectors = sources.iter().filter_map(|source| collect::provider(source.id)?.collector);
    let mut collectors: Vec<Box<dyn Collector>> = collectors.map(|make| make(&settings)).collect();
    processes.begin(&host, tree.0.id(), 0);
    for second in 0..2 {
        std::thread::sleep(Duration::from_millis(500));
        tick.begin(Duration::from_secs(second));
        processes.sample(&collect::Context::of(&host), &mut tick)?;
        for collector in &mut collectors {
            collector.sample(&collect::Context::of(&host), &mut tick)?;
        }
    }
    let opened = opened.lock().ok().context("a collector panicked")?;
    let mut files = Files::default();
    for path in opened.iter() {
        match of_process(path) {
            Some(file) => files.process.insert(file),
            None => files.system.insert(path.clone()),
        };
    }
    Ok((tree, files))
}

/// The name of a file that belongs to one process, by its pid.
fn of_process(path: &Path) -> Option<String> {
    let rest = path.strip_prefix("/proc").ok()?.to_str()?;
    let (pid, file) = rest.split_once('/')?;
    pid.parse::<u32>().ok().map(|_| file.to_owned())
}

impl Files {
    /// What the files hold now.
    fn archive(&self, pids: &[u32]) -> Result<String> {
        let mut text = String::new();
        for path in &self.system {
            add(&mut text, path)?;
        }
        for pid in pids {
            let process = PathBuf::from(format!("/proc/{pid}"));
            for file in self.process.iter().filter(|file| *file != "fd") {
                add(&mut text, &process.join(file))?;
            }
            // Only their number is read.
            for entry in std::fs::read_dir(process.join("fd")).into_iter().flatten().flatten() {
                text.push_str(&format!("=== {}\n", entry.path().display()));
            }
        }
        Ok(text)
    }
}

/// Adds one file, if it can be read.
fn add(text: &mut String, path: &Path) -> Result<()> {
    let Ok(bytes) = std::fs::read(path) else { return Ok(()) };
    if path.starts_with("/sys") && std::str::from_utf8(&bytes).is_err() {
        text.push_str(&format!("=== {} (hex)\n{}", path.display(), in_hex(&bytes)));
        return Ok(());
    }
    let content = String::from_utf8_lossy(&bytes);
    let content = if path.ends_with("cmdline") { program(&content) } else { &content };
    if content.contains("=== ") {
        bail!("{} holds the mark that separates files", path.display());
    }
    text.push_str(&format!("=== {}\n{content}", path.display()));
    Ok(())
}

/// Bytes in hexadecimal digits, 32 in a line.
fn in_hex(bytes: &[u8]) -> String {
    let line = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    bytes.chunks(32).map(|bytes| line(bytes) + "\n").collect()
}

/// The program of a command line without its path; arguments may contain secrets.
fn program(command_line: &str) -> &str {
    let first = command_line.split('\0').next().unwrap_or_default();
    first.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_process_are_found_by_their_pid() {
        assert_eq!(of_process(Path::new("/proc/12/stat")), Some("stat".to_owned()));
        assert_eq!(of_process(Path::new("/proc/self/status")), None);
        assert_eq!(of_process(Path::new("/proc/loadavg")), None);
    }

    #[test]
    fn binary_files_are_written_in_hexadecimal_digits() {
        let lines = in_hex(&[&[0xff; 32][..], &[0x0a]].concat());
        assert_eq!(lines, format!("{}\n0a\n", "ff".repeat(32)));
    }

    #[test]
    fn only_the_program_of_a_command_line_is_recorded() {
        assert_eq!(program("/usr/bin/mysql\0-psecret\0"), "mysql");
        assert_eq!(program(""), "");
    }
}
