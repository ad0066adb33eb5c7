//! The genuine libraries of GPU vendors, for the tests that load them: Debian's packages of them,
//! unpacked under target/ and never installed.
//!
//! NVIDIA's is in a part of Debian (non-free) that most machines do not have in their sources.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::command::target;
use crate::debian::{self, Apt, entries};

/// A library that tests load.
pub(crate) struct Library {
    /// The variable with its path, for the tests.
    pub variable: &'static str,
    package: &'static str,
    file: &'static str,
}

pub(crate) const ALL: [Library; 2] = [
    Library { variable: "WEIGH_TEST_NVML", package: "libnvidia-ml1", file: "libnvidia-ml.so.1" },
    Library {
        variable: "WEIGH_TEST_ROCM_SMI",
        package: "librocm-smi64-1",
        file: "librocm_smi64.so.1",
    },
];

/// The source of the packages: the machine's own mirror, with the part that most leave out.
fn source() -> Result<String> {
    // Updates and security fixes are releases with a hyphen in their name.
    let mut releases = debian::repositories()?.into_iter();
    let release = releases.find(|repository| !repository.release.contains('-'));
    Ok(release.context("apt-get knows no release of Debian")?.line("main non-free"))
}

impl Library {
    /// Where it is, if it has been fetched.
    pub(crate) fn found(&self) -> Result<PathBuf> {
        find(&self.unpacked(), self.file)
    }

    fn unpacked(&self) -> PathBuf {
        directory().join(self.package)
    }

    /// Where it is; fetched once.
    pub(crate) fn fetched(&self) -> Result<PathBuf> {
        if let Ok(found) = self.found() {
            return Ok(found);
        }
        let (directory, unpacked) = (directory(), self.unpacked());
        println!("{}: filling {}", self.package, directory.display());
        let apt = Apt::updated(&directory, &source()?, &[])?;
        apt.unpack(&[self.package], &unpacked)?;
        find(&unpacked, self.file)
    }
}

fn directory() -> PathBuf {
    target().join("test-libraries")
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
