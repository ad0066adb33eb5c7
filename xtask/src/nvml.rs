//! The genuine library of NVIDIA's driver, for the tests that load it: Debian's package of it,
//! unpacked under target/ and never installed.
//!
//! It is in a part of Debian (non-free) that most machines do not know. apt is asked with lists of
//! its own under target/, which needs no root and leaves the machine's sources alone.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::command::{self, target};

/// The variable that tells the tests where the library is.
pub const VARIABLE: &str = "WEIGH_TEST_NVML";

const PACKAGE: &str = "libnvidia-ml1";
const LIBRARY: &str = "libnvidia-ml.so.1";

/// Signed by the keys that come with Debian, or not taken.
const SOURCE: &str = "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] \
                      http://deb.debian.org/debian bookworm non-free\n";

/// The library; fetched once.
pub fn library() -> Result<PathBuf> {
    let directory = target().join("test-nvml");
    let unpacked = directory.join("unpacked");
    if let Ok(found) = find(&unpacked) {
        return Ok(found);
    }
    println!("nvml: filling {}", directory.display());
    for needed in ["lists/partial", "cache/archives/partial"] {
        let needed = directory.join(needed);
        std::fs::create_dir_all(&needed).with_context(|| needed.display().to_string())?;
    }
    let sources = directory.join("sources.list");
    std::fs::write(&sources, SOURCE).with_context(|| sources.display().to_string())?;
    command::output(apt(&directory).arg("update"))?;
    command::output(apt(&directory).args(["download", PACKAGE]))?;
    let archive =
        entries(&directory)?.into_iter().find(|path| path.extension() == Some("deb".as_ref()));
    let archive = archive.with_context(|| format!("apt-get downloaded no {PACKAGE}"))?;
    command::output(Command::new("dpkg").arg("-x").arg(archive).arg(&unpacked))?;
    find(&unpacked)
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
fn find(directory: &Path) -> Result<PathBuf> {
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for path in entries(&directory)? {
            if path.ends_with(LIBRARY) {
                ensure!(path.exists(), "{} leads nowhere", path.display());
                return Ok(path);
            }
            if path.is_dir() && !path.is_symlink() {
                open.push(path);
            }
        }
    }
    bail!("no {LIBRARY} below {}", directory.display())
}

fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let listed = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    listed.map(|entry| Ok(entry?.path())).collect()
}
