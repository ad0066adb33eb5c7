//! `command-line.md`: what `weigh --help` and `weigh VERB --help` print.

use std::path::Path;

use anyhow::{Result, bail};

use crate::command;

/// The page, asked of this program.
pub(super) fn page(weigh: &Path) -> Result<String> {
    let overview = help(weigh, &[])?;
    let verbs = verbs(&overview);
    if verbs.is_empty() {
        bail!("`weigh --help` lists no verbs under \"Commands:\"");
    }
    let mut text = format!("# Command line\n\n```text\n{overview}\n```\n");
    for verb in verbs {
        let printed = help(weigh, &[&verb])?;
        text.push_str(&section(&verb, &printed));
        // A verb may have verbs of its own.
        for below in self::verbs(&printed) {
            text.push_str(&section(&format!("{verb} {below}"), &help(weigh, &[&verb, &below])?));
        }
    }
    Ok(text)
}

fn section(verb: &str, printed: &str) -> String {
    format!("\n## weigh {verb}\n\n```text\n{printed}\n```\n")
}

fn help(weigh: &Path, verb: &[&str]) -> Result<String> {
    let mut program = command::at_root(weigh);
    program.args(verb).arg("--help");
    // Help shows the values of variables, which must not be on the page.
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("WEIGH_") {
            program.env_remove(name);
        }
    }
    let (out, _) = command::output(program.env("COLUMNS", "100").env("NO_COLOR", "1"))?;
    let lines: Vec<&str> = out.trim_end().lines().map(str::trim_end).collect();
    Ok(lines.join("\n"))
}

/// The names under "Commands:", without the one that prints help.
fn verbs(overview: &str) -> Vec<String> {
    overview
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|word| !word.is_empty() && *word != "help")
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_are_what_stands_under_commands() {
        let overview = "About\n\nCommands:\n  run   Run\n          more of it\n  help  Print\n\nOptions:\n  -h\n";
        assert_eq!(verbs(overview), ["run"]);
    }
}
