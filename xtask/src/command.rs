//! Running other programs, with errors that show the command line to repeat them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    // xtask lies directly under it.
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_owned()
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(directory) => root().join(directory),
        None => root().join("target"),
    }
}

/// A command that runs at the root of the repository.
pub(crate) fn at_root(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.current_dir(root());
    command
}

/// The cargo that started us, so that a toolchain chosen with `+` stays chosen.
pub(crate) fn cargo() -> Command {
    at_root(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The command as it would be typed.
pub(crate) fn shown(command: &Command) -> String {
    let variables = command.get_envs().filter_map(|(name, value)| {
        Some(format!("{}={}", name.display(), quoted(&value?.to_string_lossy())))
    });
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let program = std::iter::once(program.to_string_lossy().into_owned());
    let arguments = command.get_args().map(|argument| quoted(&argument.to_string_lossy()));
    variables.chain(program).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quoted(argument: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_owned()
    } else {
        format!("'{}'", argument.replace('\'', r"'\''"))
    }
}

/// Runs a command to its end; a failure names it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = shown(command);
    let status = command.status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("failed ({status}); to see it again:\n  {shown}");
    }
    Ok(())
}

/// Runs a command and gives back what it printed on stdout and stderr, each apart.
pub(crate) fn output(command: &mut Command) -> Result<(String, String)> {
    let shown = shown(command);
    let output = command
        .stdin(std::process::Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{shown}`"))?;
    let text = |bytes| String::from_utf8(bytes).with_context(|| format!("output of `{shown}`"));
    let (out, err) = (text(output.stdout)?, text(output.stderr)?);
    if !output.status.success() {
        bail!("`{shown}` failed ({}):\n{err}", output.status);
    }
    Ok((out, err))
}

/// Whether a program is on PATH.
pub(crate) fn is_on_path(program: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|directory| directory.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_is_shown_as_it_can_be_typed() {
        let mut command = Command::new("/usr/bin/cargo");
        command.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "it's"]);
        assert_eq!(shown(&command), r"RUSTDOCFLAGS='-D warnings' cargo doc 'it'\''s'");
    }
}
