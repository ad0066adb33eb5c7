//! `summary.md`: the keys of the summary, from a real one.
//!
//! Values, and words that depend on the machine, are left out: the page is
//! compared on other machines.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use super::table;
use crate::command;

/// A run with descendants, busy in its first half only: every figure is known, and the
/// peak of the cores comes from the ticks and not from the mean.
const COMMAND: [&str; 3] =
    ["sh", "-c", "sleep 0.5 & timeout 0.5 sh -c 'while :; do :; done'; sleep 0.5; wait"];

/// The page, and whether this machine can measure everything that is on by default.
pub fn page(weigh: &Path) -> Result<(String, bool)> {
    let mut run = command::at_root(weigh);
    run.args(["run", "--no-record", "--format", "json", "--"]).args(COMMAND);
    let (_, json) = command::output(&mut run)?;
    let summary: Value = serde_json::from_str(&json).context("the summary of a run")?;
    let mut text = "# Summary\n\n\
        `weigh run --format json`, `weigh show --format json` and `summary.json` in a recording have \
        these keys. What is unknown is null, never 0.\n\n\
        A figure is an object: `value`; `method` (`exact`, `sampled` or `estimated`); `lower` and \
        `upper`, between which the truth lies, null where there is no such bound; `source`, where \
        the value comes from; `at_seconds`, when a peak was reached; `reason`, why the value is \
        missing or not exact.\n"
        .to_owned();
    text.push_str("\n## figures\n\nThe run as a whole.\n\n");
    text.push_str(&figures(&summary["figures"])?);
    let parts = summary["parts"].as_object().context("parts of the summary")?;
    for (part, content) in parts {
        let about = match part.as_str() {
            "main" => "The command's own process.",
            "descendants" => "Everything it started.",
            "combined" => "Both together.",
            "system" => "The machine, whoever used it.",
            _ => "",
        };
        text.push_str(&format!("\n## parts.{part}.figures\n\n{about}\n\n"));
        text.push_str(&figures(&content["figures"])?);
    }
    text.push_str(
        "\n## tools\n\n\
        A list: what all processes of one program used together, those with most CPU time first. \
        An interpreter is called by its script.\n\n",
    );
    text.push_str(&tools(&summary["tools"])?);
    text.push_str("\n## Other keys\n\n");
    let rest = summary.as_object().context("the summary")?.iter();
    for (key, content) in
        rest.filter(|(key, _)| !["figures", "parts", "tools"].contains(&key.as_str()))
    {
        let inside: Vec<String> = content
            .as_object()
            .map_or_else(Vec::new, |map| map.keys().map(|key| format!("`{key}`")).collect());
        let inside =
            if inside.is_empty() { String::new() } else { format!(": {}", inside.join(", ")) };
        text.push_str(&format!("- `{key}`{inside}\n"));
    }
    let faults = summary["monitor"]["faults"].as_array();
    Ok((text, faults.is_some_and(Vec::is_empty)))
}

fn figures(figures: &Value) -> Result<String> {
    let figures = figures.as_object().context("figures of the summary")?;
    let rows = figures.iter().map(|(name, figure)| {
        let source = figure["source"].as_str().unwrap_or_default();
        vec![format!("`{name}`"), unit(name).to_owned(), source.to_owned()]
    });
    Ok(table(&["figure", "unit", "source"], rows))
}

/// The keys of a tool, every one of which has the same.
fn tools(tools: &Value) -> Result<String> {
    let tool = tools[0].as_object().context("tools of the summary")?;
    let rows = tool.keys().filter(|key| *key != "name");
    Ok(table(&["key", "unit"], rows.map(|key| vec![format!("`{key}`"), unit(key).to_owned()])))
}

/// The unit that ends a figure's name.
fn unit(name: &str) -> &'static str {
    let suffixes =
        [("_seconds", "seconds"), ("_bytes", "bytes"), ("_joules", "joules"), ("_ratio", "ratio")];
    match suffixes.iter().find(|(suffix, _)| name.ends_with(suffix)) {
        Some((_, unit)) => unit,
        None if name.contains("cores") => "cores",
        None => "1",
    }
}

/// The page without its last column.
pub fn without_sources(page: &str) -> String {
    let cut = |line: &str| match line.trim_end_matches(" |").rsplit_once(" | ") {
        Some((rest, _)) if line.starts_with("| ") => rest.to_owned(),
        _ => line.to_owned(),
    };
    page.lines().map(cut).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_sources_only_names_and_units_are_left() {
        assert_eq!(without_sources("text\n| `a` | 1 | wait4 |\n"), "text\n| `a` | 1");
    }

    #[test]
    fn the_unit_is_the_end_of_the_name() {
        assert_eq!(unit("memory_peak_bytes"), "bytes");
        assert_eq!(unit("cpu_cores_mean"), "cores");
        assert_eq!(unit("io_read_calls"), "1");
    }
}
