//! What the tests need of the system, installed where that can be done.

use anyhow::{Context, Result};

use crate::command::{self, at_root, is_on_path};

/// A program that a test runs, and the Debian package that has it.
const NEEDED: [(&str, &str); 18] = [
    ("chromium", "chromium"),
    ("node", "nodejs"),
    ("npm", "npm"),
    ("pdftotext", "poppler-utils"),
    ("tmux", "tmux"),
    ("unshare", "util-linux"),
    ("setpriv", "util-linux"),
    ("mount", "mount"),
    ("linux.uml", "user-mode-linux"),
    ("ps", "procps"),
    // A SLURM of two nodes on this machine; its packages start no daemons.
    ("slurmctld", "slurmctld"),
    ("slurmd", "slurmd"),
    ("srun", "slurm-client"),
    ("munged", "munge"),
    // Launchers of recorders; their packages start no daemons either.
    ("ssh", "openssh-client"),
    ("sshd", "openssh-server"),
    ("mpirun", "openmpi-bin"),
    ("mpicc", "libopenmpi-dev"),
];

/// An OAR of two nodes on this machine, which `test --oar` needs beside the others.
const OAR: [(&str, &str); 7] = [
    ("Almighty", "oar-server"),
    ("Almighty", "oar-server-pgsql"),
    ("oarsub", "oar-user"),
    ("oarsub", "oar-user-pgsql"),
    ("oarnodechecklist", "oar-node"),
    ("sudo", "sudo"),
    ("psql", "postgresql"),
];

/// Installs OAR, unless it is there.
pub(crate) fn install_oar() -> Result<()> {
    let is_there = OAR.iter().all(|(program, _)| is_on_path(program));
    if is_there {
        return Ok(());
    }
    anyhow::ensure!(is_root(), "OAR is not installed, and only root may");
    install_now(&OAR.map(|(_, package)| package))
}

/// Installs what is missing; where it cannot, it prints what, and tests that need it are skipped.
pub(crate) fn install() -> Result<()> {
    let missing = missing();
    if missing.is_empty() {
        println!("packages: everything is there");
    } else if !is_on_path("apt-get") {
        println!("packages: no apt-get here; install these yourself: {}", missing.join(" "));
    } else if !is_root() {
        println!("packages: missing, and only root may install:");
        println!("  sudo apt-get install --no-install-recommends {}", missing.join(" "));
    } else {
        install_now(&missing)?;
    }
    components()
}

/// The packages that are not there.
pub(crate) fn missing() -> Vec<&'static str> {
    let absent = NEEDED.iter().filter(|(program, _)| !is_on_path(program));
    let mut missing: Vec<&str> = absent.map(|(_, package)| *package).collect();
    missing.dedup();
    missing
}

/// Installs Debian packages, which only root may.
pub(crate) fn install_now(packages: &[&str]) -> Result<()> {
    println!("packages: installing {}", packages.join(" "));
    // Another apt may hold the lock on a machine that has just been started.
    let apt = || {
        let mut apt = at_root("apt-get");
        apt.args(["-o", "DPkg::Lock::Timeout=900"]).env("DEBIAN_FRONTEND", "noninteractive");
        apt
    };
    command::run(apt().arg("update"))?;
    command::run(apt().args(["install", "-y", "--no-install-recommends"]).args(packages))
}

/// rustfmt and clippy, which a minimal Rust installation leaves out.
fn components() -> Result<()> {
    for (tool, component) in [("cargo-fmt", "rustfmt"), ("cargo-clippy", "clippy")] {
        let works = at_root(tool).arg("--version").output().is_ok_and(|out| out.status.success());
        if !works {
            let mut rustup = at_root("rustup");
            command::run(rustup.args(["component", "add", component]))
                .with_context(|| format!("the tests need {component}"))?;
        }
    }
    Ok(())
}

pub(crate) fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    unsafe { libc::geteuid() == 0 }
}
