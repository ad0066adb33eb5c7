//! `metrics.md`: every collector with its metrics, from the catalogue.

use weigh::catalog::{DERIVED, Metric, SOURCES, Source};

use super::table;

const HEAD: [&str; 7] =
    ["metric", "column", "unit", "kind", "what it is", "source", "in Prometheus"];

/// The page.
pub(super) fn page() -> String {
    let mut text = "# Metrics\n\n\
        Everything that weigh can record, by the collector that measures it. `weigh metrics` prints \
        the same, and `weigh doctor` says which collectors work on a machine. A *gauge* is a level \
        at the time of the sample; a *counter* is a total that only grows, from which rates are \
        derived when it is read. A value that could not be read is missing, never 0.\n"
        .to_owned();
    SOURCES.iter().for_each(|source| text.push_str(&section(source)));
    text.push_str(
        "\n## Derived\n\nThe run as a whole at each complete tick, computed when a recording is read. \
         Exported in the table `run`.\n\n",
    );
    text.push_str(&table(&HEAD, DERIVED.iter().copied().flatten().map(row)));
    text
}

fn section(source: &Source) -> String {
    let mut text = format!("\n## {}\n\n{}.", source.name, capitalised(source.about));
    if source.on_request {
        text.push_str(&format!(" Only when asked for: `--collect …,{}`.", source.name));
    }
    let scopes = source.groups.iter().copied().flatten().map(|metric| metric.scope.name());
    let mut scopes: Vec<&str> = scopes.collect();
    scopes.dedup();
    let files: Vec<String> = scopes.iter().map(|scope| format!("`{scope}.arrows`")).collect();
    text.push_str(&format!(" Recorded in {}.\n\n", files.join(", ")));
    text.push_str(&table(&HEAD, source.groups.iter().copied().flatten().map(row)));
    text
}

fn row(metric: &Metric) -> Vec<String> {
    vec![
        format!("`{}`", metric.name()),
        format!("`{}`", metric.column()),
        metric.unit.name().to_owned(),
        metric.kind.name().to_owned(),
        format!("**{}.** {}", metric.label, metric.help),
        format!("`{}`", metric.source),
        format!("`{}`", metric.prometheus()),
    ]
}

/// A collector's words as the beginning of a sentence.
fn capitalised(words: &str) -> String {
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
