//! `summary.md`: the keys of the summary.
//!
//! Figures are those that are declared; the other keys are those of a real summary, without their
//! values, because the page is compared on other machines.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;
use weigh::catalog::{FigureId, FigureScope};

use super::table;
use crate::command;

/// A run that has a tool, whose keys are on the page.
const COMMAND: [&str; 2] = ["sleep", "0.1"];

/// Where figures stand in a summary.
const PLACES: [(FigureScope, &str, &str); 6] = [
    (FigureScope::Run, "figures", "The run as a whole."),
    (FigureScope::Main, "parts.main.figures", "The command's own process."),
    (FigureScope::Descendants, "parts.descendants.figures", "Everything it started."),
    (FigureScope::Combined, "parts.combined.figures", "Both together."),
    (FigureScope::System, "parts.system.figures", "The machine, used by all processes."),
    (FigureScope::Phase, "phases[].figures", "One phase."),
];

/// The page.
pub(super) fn page(weigh: &Path) -> Result<String> {
    let mut run = command::at_root(weigh);
    // Not every machine has hardware counters, and the page is the same on all of them.
    run.args(["run", "--no-record", "--skip", "perf", "--format", "json", "--"]).args(COMMAND);
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
    for (scope, place, about) in PLACES {
        text.push_str(&format!("\n## {place}\n\n{about}\n\n"));
        text.push_str(&figures(scope));
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
    text.push_str(
        "- `counters`: `events`, `derived`, `refused`, where hardware counters were read\n",
    );
    Ok(text)
}

fn figures(scope: FigureScope) -> String {
    let mut here: Vec<FigureId> =
        FigureId::ALL.iter().copied().filter(|id| id.is_in(scope)).collect();
    here.sort_unstable();
    let row =
        |id: FigureId| vec![format!("`{}`", id.name()), id.unit().name().to_owned(), id.help()];
    table(&["figure", "unit", "meaning"], here.into_iter().map(row))
}

/// The keys of a tool, every one of which has the same.
fn tools(tools: &Value) -> Result<String> {
    let tool = tools[0].as_object().context("tools of the summary")?;
    let rows = tool.keys().filter(|key| *key != "name");
    Ok(table(&["key", "unit"], rows.map(|key| vec![format!("`{key}`"), unit(key).to_owned()])))
}

/// The unit that ends a key.
fn unit(name: &str) -> &'static str {
    let suffixes =
        [("_seconds", "seconds"), ("_bytes", "bytes"), ("_joules", "joules"), ("_ratio", "ratio")];
    match suffixes.iter().find(|(suffix, _)| name.ends_with(suffix)) {
        Some((_, unit)) => unit,
        None if name.contains("cores") => "cores",
        None => "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_the_end_of_the_name() {
        assert_eq!(unit("memory_peak_bytes"), "bytes");
        assert_eq!(unit("cpu_cores_mean"), "cores");
        assert_eq!(unit("io_read_calls"), "1");
    }
}
