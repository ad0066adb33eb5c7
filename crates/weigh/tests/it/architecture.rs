//! Which module may use which: the `use crate::` lines against the table of ARCHITECTURE.md.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use weigh::catalog::{FigureId, FigureScope, catalogue};

/// What each module may use. The same table stands in ARCHITECTURE.md with the reasons.
const MAY_USE: &[(&str, &[&str])] = &[
    ("text", &[]),
    ("quantity", &[]),
    ("destination", &[]),
    ("catalog", &[]),
    ("counters", &[]),
    ("model", &["catalog"]),
    ("parse", &["model"]),
    ("host", &["counters", "model", "parse"]),
    ("collect", &["catalog", "counters", "host", "model", "parse"]),
    ("record", &["catalog", "model"]),
    ("summary", &["catalog", "counters", "model", "quantity", "record", "text"]),
    ("listing", &["catalog", "quantity", "record", "summary"]),
    ("merge", &["catalog", "model", "record", "summary"]),
    ("plot", &["catalog", "model", "quantity", "record", "summary", "text"]),
    ("report", &["catalog", "model", "plot", "quantity", "record", "summary", "text"]),
    ("export", &["catalog", "destination", "model", "quantity", "record", "summary"]),
    (
        "compat",
        &[
            "catalog",
            "destination",
            "export",
            "model",
            "plot",
            "quantity",
            "record",
            "summary",
            "text",
        ],
    ),
    ("doctor", &["catalog", "collect", "counters", "host", "model"]),
    ("job", &["host", "model"]),
    ("program", &["host"]),
    ("run", &["catalog", "collect", "host", "job", "model", "parse", "record", "summary"]),
];

/// What measures: no reader of recordings uses any of it.
const MEASURING: [&str; 7] = ["collect", "doctor", "host", "job", "parse", "program", "run"];

/// Files and directories of tests, which may use everything.
const TESTS: [&str; 5] = ["tests.rs", "tests", "testing.rs", "golden.rs", "fake.rs"];

fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if TESTS.iter().any(|test| path.ends_with(test)) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The text of a file without its tests.
fn code(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// The modules that a file names after `crate::`, in its code and not in its tests.
fn used(path: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(path).unwrap();
    code(&text)
        .split("crate::")
        .skip(1)
        .map(|rest| rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '_').collect())
        .filter(|name: &String| MAY_USE.iter().any(|(module, _)| module == name))
        .collect()
}

fn uses_of_modules() -> BTreeMap<String, BTreeSet<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for file in files {
        let below = file.strip_prefix(&root).unwrap();
        let module = below.components().next().unwrap().as_os_str().to_string_lossy();
        let module = module.trim_end_matches(".rs").to_owned();
        if module != "lib" {
            uses.entry(module).or_default().extend(used(&file));
        }
    }
    uses
}

#[test]
fn modules_use_only_what_they_may() {
    for (module, used) in uses_of_modules() {
        let (_, allowed) = MAY_USE
            .iter()
            .find(|(name, _)| *name == module)
            .unwrap_or_else(|| panic!("{module} has no row in MAY_USE and ARCHITECTURE.md"));
        for other in used.iter().filter(|other| **other != module) {
            assert!(allowed.contains(&other.as_str()), "{module} uses {other}, and may not");
        }
    }
}

#[test]
fn nothing_is_allowed_that_nobody_needs() {
    let uses = uses_of_modules();
    for (module, allowed) in MAY_USE {
        for other in *allowed {
            assert!(uses[*module].contains(*other), "{module} may use {other}, and does not");
        }
    }
}

/// Types that are declared in this text at the beginning of a line or inside an inline module.
fn types(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub").map_or(line, |rest| {
            rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or(rest, |(_, r)| r)
        });
        let kinds = ["struct ", "enum ", "trait ", "union "];
        let rest = kinds.iter().find_map(|kind| line.trim_start().strip_prefix(kind))?;
        rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
}

/// Go to symbol finds one place. Every module may have an `Error`.
#[test]
fn no_two_types_of_the_library_share_a_name() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    let mut found: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for name in types(code(&text)).filter(|name| *name != "Error") {
            found.entry(name.to_owned()).or_default().push(file.clone());
        }
    }
    found.retain(|_, places| places.len() > 1);
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn readers_of_recordings_use_nothing_that_measures() {
    for (module, allowed) in MAY_USE.iter().filter(|(module, _)| !MEASURING.contains(module)) {
        let used: Vec<_> = allowed.iter().filter(|other| MEASURING.contains(other)).collect();
        assert!(used.is_empty(), "{module} reads recordings and uses {used:?}");
    }
}

/// A metric is named by its field (`Row::metric`), or found by what it declares.
#[test]
fn no_metric_is_named_by_a_string_outside_its_declaration() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for crate_root in ["src", "../weigh-cli/src"] {
        sources(&root.join(crate_root), &mut files);
    }
    let names: Vec<String> = catalogue().map(|metric| format!("\"{}\"", metric.name())).collect();
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for line in code(&text).lines().filter(|line| !line.trim_start().starts_with("//")) {
            // The field beside it would be a string, too.
            let by_field = line.contains(".field) == (") && !line.contains("of.group, field");
            if by_field || names.iter().any(|name| line.contains(name.as_str())) {
                found.push(format!("{}: {}", file.display(), line.trim()));
            }
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

/// A figure is named by its id. The names of the four tools' columns, keys of findings, and values
/// that are derived from counters are theirs even where they are spelled alike.
#[test]
fn no_figure_is_named_by_a_string_outside_its_declaration() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for crate_root in ["src", "../weigh-cli/src"] {
        sources(&root.join(crate_root), &mut files);
    }
    let figures = FigureId::ALL.iter().filter(|id| !id.is_in(FigureScope::Report));
    let literals: Vec<String> = figures.map(|id| format!("\"{}\"", id.name())).collect();
    let mut found = Vec::new();
    let declares = |file: &Path| {
        ["catalog/figures.rs", "counters/derived.rs"].iter().any(|name| file.ends_with(name))
    };
    for file in files.iter().filter(|file| !declares(file)) {
        let text = std::fs::read_to_string(file).unwrap();
        for line in code(&text).lines().filter(|line| !line.trim_start().starts_with("//")) {
            let is_json_key = |literal: &str| line.contains(&format!("{literal}: "));
            let named = literals.iter().filter(|one| line.contains(one.as_str()));
            found.extend(
                named
                    .filter(|one| !is_json_key(one))
                    .map(|_| (file.clone(), line))
                    .map(|(file, line)| format!("{}: {}", file.display(), line.trim())),
            );
        }
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn programs_of_the_guide_are_those_that_are_compiled_and_run_as_doctests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let guide = std::fs::read_to_string(root.join("../../docs/guides/library.md")).unwrap();
    let source = std::fs::read_to_string(root.join("src/lib.rs")).unwrap();
    let shown = |line: &&str| !line.starts_with("# ");
    let documented = source.lines().filter_map(|line| line.strip_prefix("//!"));
    let documented = documented.map(|line| line.strip_prefix(' ').unwrap_or(line)).filter(shown);
    let documented = documented.collect::<Vec<_>>().join("\n");
    let programs: Vec<&str> =
        guide.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    assert_eq!(programs.len(), 2);
    for program in programs {
        assert!(documented.contains(program), "{program}");
    }
}

#[test]
fn the_same_table_stands_in_the_documentation() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let text = std::fs::read_to_string(path).unwrap();
    for (module, allowed) in MAY_USE {
        let uses = if allowed.is_empty() { "–".to_owned() } else { allowed.join(", ") };
        let row = text.lines().find(|line| line.starts_with(&format!("| `{module}` |")));
        let row = row.unwrap_or_else(|| panic!("ARCHITECTURE.md has no row for {module}"));
        assert!(row.trim_end().ends_with(&format!("| {uses} |")), "{module}: {row}");
    }
}
