//! Which interpreters of CPython this machine has: on PATH, of pyenv and of uv.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command;

/// The oldest version that the package supports.
const OLDEST: (u32, u32) = (3, 10);

const DESCRIBE: &str = "import sys, sysconfig; \
                        print(sys.implementation.name, *sys.version_info[:3], \
                        int(bool(sysconfig.get_config_var('Py_GIL_DISABLED'))))";

/// An interpreter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interpreter {
    /// The program.
    pub path: PathBuf,
    version: (u32, u32, u32),
    /// Whether it has no GIL.
    pub is_free_threaded: bool,
}

impl Interpreter {
    /// The newest of each version that the package supports, the oldest version first.
    pub(crate) fn all() -> Vec<Interpreter> {
        let mut all: Vec<Interpreter> =
            programs().iter().filter_map(|path| described(path)).collect();
        all.sort_by_key(|one| (one.version.0, one.version.1, one.is_free_threaded, one.version.2));
        all.reverse();
        all.dedup_by_key(|one| (one.version.0, one.version.1, one.is_free_threaded));
        all.reverse();
        all
    }

    /// Its version as people write it, like 3.13 or 3.13t.
    pub(crate) fn name(&self) -> String {
        let (major, minor, _) = self.version;
        format!("{major}.{minor}{}", if self.is_free_threaded { "t" } else { "" })
    }

    /// Their names with the last part of the version.
    pub(crate) fn names(all: &[Interpreter]) -> String {
        let names = all.iter().map(|one| {
            format!("{} ({}.{}.{})", one.name(), one.version.0, one.version.1, one.version.2)
        });
        names.collect::<Vec<_>>().join(", ")
    }

    /// The tags of a wheel for this version alone.
    pub(crate) fn free_threaded_tag(&self) -> String {
        let (major, minor, _) = self.version;
        format!("cp{major}{minor}-cp{major}{minor}t")
    }
}

/// Programs that may be interpreters.
fn programs() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut directories: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let or_home = |variable: &str, below: &str| {
        std::env::var_os(variable).map_or_else(|| home.join(below), PathBuf::from)
    };
    let roots = [
        or_home("PYENV_ROOT", ".pyenv").join("versions"),
        or_home("UV_PYTHON_INSTALL_DIR", ".local/share/uv/python"),
    ];
    for root in roots {
        let versions = std::fs::read_dir(root).into_iter().flatten().flatten();
        directories.extend(versions.map(|version| version.path().join("bin")));
    }
    let in_directory = |directory: &PathBuf| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        let is_named = |path: &Path| path.file_name().and_then(|n| n.to_str()).is_some_and(is_name);
        entries.map(|entry| entry.path()).filter(|path| is_named(path)).collect()
    };
    directories.iter().flat_map(in_directory).collect()
}

/// python3, python3.13, python3.13t; not python3-config.
fn is_name(name: &str) -> bool {
    let Some(version) = name.strip_prefix("python3") else { return false };
    let version = version.strip_suffix('t').unwrap_or(version);
    version.is_empty()
        || version.strip_prefix('.').is_some_and(|minor| minor.parse::<u32>().is_ok())
}

/// What an interpreter reports of itself; a shim of pyenv whose version is not chosen fails.
fn described(path: &Path) -> Option<Interpreter> {
    let (printed, _) = command::output(Command::new(path).args(["-c", DESCRIBE])).ok()?;
    parse(path, &printed)
}

fn parse(path: &Path, printed: &str) -> Option<Interpreter> {
    let mut words = printed.split_whitespace();
    let is_cpython = words.next()? == "cpython";
    let mut number = || words.next()?.parse::<u32>().ok();
    let version = (number()?, number()?, number()?);
    let is_free_threaded = number()? == 1;
    let found = Interpreter { path: path.to_owned(), version, is_free_threaded };
    (is_cpython && (version.0, version.1) >= OLDEST).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreter_is_named_as_its_wheels_are() {
        let of = |printed| parse(Path::new("/usr/bin/python3"), printed);
        assert_eq!(of("cpython 3 11 2 0 /usr").unwrap().name(), "3.11");
        let free_threaded = of("cpython 3 13 5 1 /usr").unwrap();
        assert_eq!(
            (free_threaded.name(), free_threaded.free_threaded_tag()),
            ("3.13t".into(), "cp313-cp313t".into())
        );
        assert_eq!(of("cpython 3 9 2 0 /usr"), None, "too old");
        assert_eq!(of("pypy 3 11 2 0 /usr"), None, "another implementation");
    }

    #[test]
    fn only_interpreters_have_such_names() {
        assert!(["python3", "python3.13", "python3.13t"].into_iter().all(is_name));
        assert!(
            !["python", "python3-config", "python3.13-config", "python3.x"]
                .into_iter()
                .any(is_name)
        );
    }
}
