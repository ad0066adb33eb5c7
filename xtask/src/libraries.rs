//! The genuine libraries of GPUs' makers, for the tests that load them: Debian's packages of them,
//! unpacked under target/ and never installed.
//!
//! NVIDIA's is in a part of Debian (non-free) that most machines do not know. apt is asked with
//! lists of its own under target/, which needs no root and leaves the machine's sources alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{self, target};

/// A library that tests load.
pub struct Library {
    /// The variable that tells the tests where it is.
    pub variable: &'static str,
    package: &'static str,
    file: &'static str,
}

pub const ALL: [Library; 2] = [
    Library { variable: "WEIGH_TEST_NVML", package: "libnvidia-ml1", file: "libnvidia-ml.so.1" },
    Library {
        variable: "WEIGH_TEST_ROCM_SMI",
        package: "librocm-smi64-1",
        file: "librocm_smi64.so.1",
    },
];

/// Signed by the keys that come with Debian, or not taken.
const SOURCE: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                      http://deb.debian.org/debian bookworm main non-free\n";

impl Library {
    /// Where it is; fetched once.
    pub fn fetched(&self) -> Result<PathBuf> {
        let directory = target().join("test-libraries");
        let unpacked = directory.join(self.package);
        if let Ok(found) = find(&unpacked, self.file) {
            return Ok(found);
        }
        println!("{}: filling {}", self.package, directory.display());
        for needed in ["lists/partial", "cache/archives/partial"] {
            let needed = directory.join(needed);
            std::fs::create_dir_all(&needed).with_context(|| needed.display().to_string())?;
        }
        let sources = directory.join("sources.list");
        std::fs::write(&sources, SOURCE).with_context(|| sources.display().to_string())?;
        command::output(apt(&directory).arg("update"))?;
        command::output(apt(&directory).args(["download", self.package]))?;
        let is_it = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(self.package) && name.ends_with(".deb")
        };
        let archive = entries(&directory)?.into_iter().find(is_it);
        let archive = archive.with_context(|| format!("apt-get downloaded no {}", self.package))?;
        command::output(Command::new("dpkg").arg("-x").arg(archive).arg(&unpacked))?;
        find(&unpacked, self.file)
    }
}

/// An apt that knows this one source, and keeps what it learns in a directory.
fn apt(directory: &Path) -> Command {
    let mut apt = Command::new("apt-get");
    apt.current_dir(directory).env("DEBIAN_FRONTEND", "noninteractive");
    let here = |name: &str| directory.join(name).display().to_string();
    for (option, value) in [
        ("Dir::Etc::SourceList", here("sources.list")),
        ("Dir::Etc::SourceParts", "-".to_owned()),
        ("Dir::State::Lists", here("lists")),
        ("Dir::Cache", here("cache")),
        // Root's apt changes to a user who may not write under target/.
        ("APT::Sandbox::User", "root".to_owned()),
        // A machine without a network is told so soon, and its tests go on.
        ("Acquire::Retries", "1".to_owned()),
        ("Acquire::http::Timeout", "20".to_owned()),
        // An index that could not be had is a warning otherwise.
        ("APT::Update::Error-Mode", "any".to_owned()),
    ] {
        apt.arg("-o").arg(format!("{option}={value}"));
    }
    apt
}

/// The library below a directory, wherever Debian puts it for this architecture.
fn find(directory: &Path, library: &str) -> Result<PathBuf> {
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for path in entries(&directory)? {
            if path.ends_with(library) {
                ensure!(path.exists(), "{} leads nowhere", path.display());
                return Ok(path);
            }
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
        }
    }
    bail!("no {library} below {}", directory.display())
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let listed = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    listed.map(|entry| Ok(entry?.path())).collect()
}
