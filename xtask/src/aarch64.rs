//! `cargo xtask test --aarch64`: unit tests and the program's readers, built for aarch64 on x86_64
//! and run by qemu's user-mode emulation.
//!
//! The compiler is Debian's, unpacked under target/: its package of the standard library for arm64
//! fits it exactly, and needs no other source than the machine's own mirror. The C compiler (for
//! SQLite and zstd), the C library and qemu are installed.
//!
//! What surprised us: qemu gives the program the machine's own /proc with a few files changed, and
//! refuses system calls it does not know (perf_event_open), socket families (netlink's connector)
//! and PR_SET_CHILD_SUBREAPER. Tests that need one of these detect it and are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::command::{self, cargo, is_on_path, root, target};
use crate::debian::{self, Apt};
use crate::packages;
use crate::skipped::Skipped;

const TRIPLE: &str = "aarch64-unknown-linux-gnu";

/// Where Debian's cross packages put the C library, for the linker and for qemu.
const C_LIBRARY: &str = "/usr/aarch64-linux-gnu";

const QEMU: &str = "qemu-aarch64";
const GCC: &str = "aarch64-linux-gnu-gcc";

/// Packages that are installed, and the file that shows it.
const INSTALLED: [(&str, &str); 3] = [
    ("gcc-aarch64-linux-gnu", "/usr/bin/aarch64-linux-gnu-gcc"),
    ("libc6-dev-arm64-cross", "/usr/aarch64-linux-gnu/lib/libc.so"),
    ("qemu-user", "/usr/bin/qemu-aarch64"),
];

/// Installs and unpacks what is missing.
pub(crate) fn set_up() -> Result<()> {
    let missing = INSTALLED.iter().filter(|(_, file)| !Path::new(file).exists());
    let missing: Vec<&str> = missing.map(|(package, _)| *package).collect();
    if !missing.is_empty() {
        packages::install_now(&missing)?;
    }
    if found().is_err() {
        unpack_compiler()?;
    }
    println!("aarch64: set up, {} is there", found()?.display());
    Ok(())
}

fn directory() -> PathBuf {
    target().join("aarch64")
}

/// The compiler that builds for aarch64.
fn found() -> Result<PathBuf> {
    ensure!(cfg!(target_arch = "x86_64"), "this is for x86_64; elsewhere: cargo xtask test");
    let hint = "cargo xtask setup --aarch64";
    for program in [GCC, QEMU] {
        ensure!(is_on_path(program), "no {program}; run {hint}");
    }
    let compiler = directory().join("rust/usr/bin/rustc");
    let library = directory().join("rust/usr/lib/rustlib").join(TRIPLE);
    ensure!(compiler.exists() && library.exists(), "no {}; run {hint}", compiler.display());
    Ok(compiler)
}

fn unpack_compiler() -> Result<()> {
    let (directory, rust) = (directory(), directory().join("rust"));
    println!("aarch64: unpacking Debian's compiler into {}", rust.display());
    let sources = debian::repositories()?;
    let sources: String = sources.iter().map(|repository| repository.line("main")).collect();
    let apt = Apt::updated(&directory, &sources, &["amd64", "arm64"])?;
    let mut simulate = apt.command("apt-get");
    simulate.args(["install", "--simulate", "--no-install-recommends", COMPILER]);
    let (plan, _) = command::output(&mut simulate)?;
    // Besides these two, their dependencies (LLVM) that the machine does not have.
    let absent = plan.lines().filter_map(|line| line.strip_prefix("Inst ")?.split(' ').next());
    let absent = absent.filter(|package| ![COMPILER, LIBRARY].contains(package));
    let wanted: Vec<&str> = [COMPILER, LIBRARY, ARM64_LIBRARY].into_iter().chain(absent).collect();
    apt.unpack(&wanted, &rust)
}

const COMPILER: &str = "rustc-web";
const LIBRARY: &str = "libstd-rust-web-dev";
const ARM64_LIBRARY: &str = "libstd-rust-web-dev:arm64";

/// A cargo that builds for aarch64, and runs what it has built under qemu.
fn cargo_for_aarch64(compiler: &Path) -> Command {
    let libraries = directory().join("rust/usr/lib/x86_64-linux-gnu");
    let mut cargo = cargo();
    cargo
        .env("RUSTC", compiler)
        .env("LD_LIBRARY_PATH", libraries)
        .env("CARGO_TARGET_DIR", directory().join("build"))
        .env("CC_aarch64_unknown_linux_gnu", GCC)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", GCC)
        .env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", format!("{QEMU} -L {C_LIBRARY}"));
    cargo
}

/// Builds everything and runs it.
pub(crate) fn test() -> Result<()> {
    let compiler = found()?;
    let begin = Instant::now();
    let skipped = Skipped::none_yet()?;
    let mut tests = cargo_for_aarch64(&compiler);
    // Both packages each time: another selection would build their dependencies again.
    tests.args(["test", "--locked", "-p", "weigh", "-p", "weigh-cli", "--lib", "--bins"]);
    tests.args(["--target", TRIPLE]);
    skipped.pass_to(&mut tests);
    println!("\n== unit tests: {}", command::shown(&tests));
    command::run(&mut tests).context("cargo xtask test --aarch64: unit tests")?;
    let mut build = cargo_for_aarch64(&compiler);
    build.args(["build", "--locked", "-p", "weigh", "-p", "weigh-cli", "--target", TRIPLE]);
    println!("\n== program: {}", command::shown(&build));
    command::run(&mut build).context("cargo xtask test --aarch64: program")?;
    println!("\n== readers");
    let weigh = directory().join("build").join(TRIPLE).join("debug/weigh");
    let recordings = recordings()?;
    for recording in &recordings {
        let shown = recording.strip_prefix(root()).unwrap_or(recording).display().to_string();
        reads(&weigh, recording).with_context(|| shown.clone())?;
        println!("{shown}: summary, tables and page are as they should be");
    }
    println!("\nall passed, {}, {:.0} s", skipped.summary()?, begin.elapsed().as_secs_f64());
    Ok(())
}

/// The recordings that every weigh must read.
fn recordings() -> Result<Vec<PathBuf>> {
    let mut found = debian::entries(&root().join("fixtures/recordings/v1"))?;
    found.retain(|path| path.join("run.json").exists());
    found.sort();
    ensure!(!found.is_empty(), "no recordings in fixtures/recordings/v1");
    Ok(found)
}

/// Fails unless the emulated program gives the same output for a recording as the native one.
fn reads(weigh: &Path, recording: &Path) -> Result<()> {
    let made = tempfile::tempdir()?;
    let golden = recording.with_extension("golden");
    let stdout_of = |arguments: &[&str]| -> Result<String> {
        let mut command = Command::new(QEMU);
        command.arg("-L").arg(C_LIBRARY).arg(weigh).args(arguments);
        command.current_dir(made.path());
        // The golden files were made without user settings.
        command.env("XDG_CONFIG_HOME", made.path()).env_remove("WEIGH_UNITS");
        Ok(command::output(&mut command)?.0)
    };
    let named = recording.to_str().context("a path that is not UTF-8")?;
    let (tables, page) = (made.path().join("tables"), made.path().join("report.html"));
    let to = |path: &Path| path.display().to_string();
    is_golden(&golden.join("summary.json"), &stdout_of(&["show", named, "--format", "json"])?)?;
    stdout_of(&["export", named, "-f", "csv", "-o", &to(&tables)])?;
    is_golden(&golden.join("tables.csv"), &concatenated(&tables)?)?;
    stdout_of(&["report", named, "-f", "html", "-o", &to(&page)])?;
    let page = std::fs::read_to_string(&page).context("no page was written")?;
    ensure!(page.trim_end().ends_with("</html>"), "the page has no end");
    Ok(())
}

/// The files of a directory as `tables.csv` has them. Without any there is no directory.
fn concatenated(directory: &Path) -> Result<String> {
    let mut text = String::new();
    let mut files = debian::entries(directory).unwrap_or_default();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap_or_default().display();
        text.push_str(&format!("== {name}\n{}", std::fs::read_to_string(&file)?));
    }
    Ok(text)
}

fn is_golden(golden: &Path, text: &str) -> Result<()> {
    let shown = golden.display();
    let expected = std::fs::read_to_string(golden).with_context(|| shown.to_string())?;
    let differ = expected.lines().zip(text.lines()).find(|(one, other)| one != other);
    ensure!(expected == text, "{shown} differs: {differ:#?}");
    Ok(())
}
