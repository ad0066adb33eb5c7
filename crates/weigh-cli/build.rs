//! How the program is linked, so that it starts fast: a command, or a script that sets a mark,
//! waits for each start.

#![expect(clippy::disallowed_methods, reason = "the machine that builds, not one that is measured")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // musl is linked statically, with start files of its own.
    if std::env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("gnu") {
        at_a_fixed_address();
        with_its_own_unwinder();
    }
}

/// A position-independent executable has a pointer to correct for every string and function in its
/// tables, more than 40,000 here. The loader writes all of them, and so copies every page that has
/// one, before `main`. At a fixed address there is nothing to correct. Stack, heap and libraries
/// stay at random addresses; only the program's own code and tables do not.
fn at_a_fixed_address() {
    println!("cargo::rustc-link-arg-bins=-no-pie");
}

/// Rust's standard library asks for `libgcc_s.so`, of which it needs only the unwinder: the
/// compiler has it as an archive, too. A linker script of that name, which is found first, puts the
/// archive in its place, and the loader has one library less to find, map and initialise.
fn with_its_own_unwinder() {
    let linker = std::env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".to_owned());
    let found = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output();
    let found = found.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    // A compiler that has no such archive prints its name alone; the library does as well.
    let archive = found.map(|path| PathBuf::from(path.trim())).filter(|path| path.is_absolute());
    let directory = std::env::var_os("OUT_DIR").map(PathBuf::from);
    if let (Some(archive), Some(directory)) = (archive, directory)
        && write_script(&directory, &archive).is_ok()
    {
        println!("cargo::rustc-link-search=native={}", directory.display());
    }
}

fn write_script(directory: &Path, archive: &Path) -> std::io::Result<()> {
    std::fs::write(directory.join("libgcc_s.so"), format!("INPUT ( {} )\n", archive.display()))
}
