//! Debian's packages, unpacked under target/ and not installed.
//!
//! apt uses separate sources and lists under target/, which needs no root and does not change the
//! machine's.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::command;

/// A repository that the machine's own apt knows: where it is, and which release.
pub(crate) struct Repository {
    pub mirror: String,
    pub release: String,
}

impl Repository {
    /// Its line in a list of sources. It must be signed by Debian's keys.
    pub(crate) fn line(&self, components: &str) -> String {
        let Repository { mirror, release } = self;
        let keys = "/usr/share/keyrings/debian-archive-keyring.gpg";
        format!("deb [signed-by={keys}] {mirror} {release} {components}\n")
    }
}

/// The repositories of Debian that the machine's own apt knows.
pub(crate) fn repositories() -> Result<Vec<Repository>> {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--format", "$(ORIGIN) $(REPO_URI) $(RELEASE)"]);
    let (targets, _) = command::output(apt.args(["Created-By: Packages", "Component: main"]))?;
    let repository = |line: &str| {
        let (mirror, release) = line.strip_prefix("Debian ")?.split_once(' ')?;
        Some(Repository { mirror: mirror.to_owned(), release: release.to_owned() })
    };
    let known: Vec<Repository> = targets.lines().filter_map(repository).collect();
    ensure!(!known.is_empty(), "apt-get knows no mirror of Debian");
    Ok(known)
}

/// An apt with only these sources, and its lists in a directory.
pub(crate) struct Apt {
    directory: PathBuf,
    architectures: &'static [&'static str],
}

impl Apt {
    /// Fetches the lists of these sources, of the machine's architecture and of these.
    pub(crate) fn updated(
        directory: &Path,
        sources: &str,
        architectures: &'static [&'static str],
    ) -> Result<Apt> {
        for needed in ["lists/partial", "cache/archives/partial"] {
            let needed = directory.join(needed);
            std::fs::create_dir_all(&needed).with_context(|| needed.display().to_string())?;
        }
        let list = directory.join("sources.list");
        std::fs::write(&list, sources).with_context(|| list.display().to_string())?;
        let apt = Apt { directory: directory.to_owned(), architectures };
        command::output(apt.command("apt-get").arg("update"))?;
        Ok(apt)
    }

    /// One of apt's programs, with these sources.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut apt = Command::new(program);
        apt.current_dir(&self.directory).env("DEBIAN_FRONTEND", "noninteractive");
        let here = |name: &str| self.directory.join(name).display().to_string();
        for (option, value) in [
            ("Dir::Etc::SourceList", here("sources.list")),
            ("Dir::Etc::SourceParts", "-".to_owned()),
            ("Dir::State::Lists", here("lists")),
            ("Dir::Cache", here("cache")),
            // As root, apt changes to a user who may not write under target/.
            ("APT::Sandbox::User", "root".to_owned()),
            // A short timeout: without a network, the tests continue soon.
            ("Acquire::Retries", "1".to_owned()),
            ("Acquire::http::Timeout", "20".to_owned()),
            // Otherwise a missing index is only a warning.
            ("APT::Update::Error-Mode", "any".to_owned()),
        ] {
            apt.arg("-o").arg(format!("{option}={value}"));
        }
        for architecture in self.architectures {
            apt.arg("-o").arg(format!("APT::Architectures::={architecture}"));
        }
        apt
    }

    /// Downloads packages and unpacks all of them into one directory.
    pub(crate) fn unpack(&self, packages: &[&str], into: &Path) -> Result<()> {
        for stale in self.archives()? {
            std::fs::remove_file(&stale).with_context(|| stale.display().to_string())?;
        }
        command::output(self.command("apt-get").arg("download").args(packages))?;
        let archives = self.archives()?;
        ensure!(archives.len() == packages.len(), "apt-get downloaded {archives:?}");
        for archive in archives {
            command::output(Command::new("dpkg").arg("-x").arg(archive).arg(into))?;
        }
        Ok(())
    }

    fn archives(&self) -> Result<Vec<PathBuf>> {
        let mut files = entries(&self.directory)?;
        files.retain(|path| path.extension().is_some_and(|extension| extension == "deb"));
        Ok(files)
    }
}

/// What is in a directory.
pub(crate) fn entries(directory: &Path) -> Result<Vec<PathBuf>> {
    let listed = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    listed.map(|entry| Ok(entry?.path())).collect()
}
