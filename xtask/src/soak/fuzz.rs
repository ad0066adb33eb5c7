//! Every fuzz target of `fuzz/` for a while, with the fixtures as its first inputs.
//!
//! `-s none`: the sanitizers need a nightly compiler; a panic is found without them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::command::{self, at_root, is_on_path, root, target};

/// Runs each target for this many seconds; the first failure ends it, with its input named.
pub(super) fn run(seconds: u64) -> Result<()> {
    // To libFuzzer, 0 is no limit.
    if seconds == 0 {
        return Ok(());
    }
    if !is_on_path("cargo-fuzz") {
        println!("soak: no fuzzing: cargo install cargo-fuzz");
        return Ok(());
    }
    for name in targets()? {
        let corpus = target().join("fuzz-corpus").join(&name);
        std::fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
        seed(&name, &corpus)?;
        println!("soak: fuzzing {name} for {seconds} s");
        let mut fuzz = at_root("cargo");
        fuzz.args(["fuzz", "run", "-s", "none", &name]).arg(&corpus).arg("--");
        fuzz.args([&format!("-max_total_time={seconds}"), "-verbosity=0"]);
        // It prints each new function; the output is shown only on failure.
        let (_, err) = command::output(fuzz.arg("-print_final_stats=1"))?;
        println!("soak: {name} has read {} inputs", inputs(&err).context("libFuzzer's numbers")?);
    }
    Ok(())
}

/// How many inputs libFuzzer has tried, by the numbers at its end.
fn inputs(printed: &str) -> Option<u64> {
    let named =
        |line: &str| line.strip_prefix("stat::number_of_executed_units:")?.trim().parse().ok();
    printed.lines().find_map(named)
}

/// The targets by the names of their files.
fn targets() -> Result<Vec<String>> {
    let mut names: Vec<String> = files(&root().join("fuzz/targets"))?
        .iter()
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

/// Puts inputs for a target from the fixtures into its corpus.
fn seed(name: &str, corpus: &Path) -> Result<()> {
    let write = |file: String, bytes: &[u8]| {
        let path = corpus.join(file);
        std::fs::write(&path, bytes).with_context(|| path.display().to_string())
    };
    match name {
        "kernel_files" => {
            for host in files(&root().join("fixtures/hosts"))? {
                let Ok(captured) = std::fs::read_to_string(host.join("t0.host")) else { continue };
                let contents = captured.split("=== ").filter_map(|one| one.split_once('\n'));
                for (place, (_, content)) in contents.enumerate() {
                    let host = host.file_name().unwrap_or_default().to_string_lossy();
                    write(format!("{host}-{place}"), content.as_bytes())?;
                }
            }
        }
        "recording" => {
            for recording in files(&root().join("fixtures/recordings/v1"))? {
                let events = std::fs::read(recording.join("events.jsonl"));
                let rows = std::fs::read(recording.join("node-a/process.arrows"));
                let (Ok(events), Ok(rows)) = (events, rows) else { continue };
                // No manifest, then the events, then the stream, as the target reads it.
                let length = u16::try_from(events.len()).unwrap_or(u16::MAX).to_le_bytes();
                let named = recording.file_name().unwrap_or_default().to_string_lossy();
                write(named.into_owned(), &[&[0, 0], &length[..], &events, &rows].concat())?;
            }
        }
        "messages" => {
            for message in files(&root().join("fixtures/sock_diag"))? {
                let named = message.file_name().unwrap_or_default().to_string_lossy();
                write(named.into_owned(), &std::fs::read(&message)?)?;
            }
        }
        "foreign_files" => {
            write("dmon".to_owned(), DMON)?;
            write("nvidia-smi".to_owned(), NVIDIA_SMI)?;
            write("cpu".to_owned(), CPU_METRICS)?;
        }
        "settings_file" => {
            let (readme, path) = (text("README.md")?, "README.md: no weigh.toml in it");
            let settings =
                readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next());
            write("readme".to_owned(), settings.context(path)?.as_bytes())?;
            write("every".to_owned(), EVERY_SETTING)?;
        }
        "command_line" => {
            for (place, arguments) in examples(&text("docs/reference/command-line.md")?).enumerate()
            {
                write(format!("example-{place}"), arguments.join("\0").as_bytes())?;
            }
        }
        "counters" => {
            for table in files(&root().join("crates/weigh/src/counters/tables"))? {
                if table.extension().is_some_and(|extension| extension == "events") {
                    let named = table.file_name().unwrap_or_default().to_string_lossy();
                    write(named.into_owned(), &std::fs::read(&table)?)?;
                }
            }
            write("event".to_owned(), b"cpu/event=0x51,umask=0x1/,r01c2\nconfig:0-7,32-35\n")?;
            write("formula".to_owned(), b"(A.B - cache-misses) * 64 / (6 * cycles)")?;
        }
        "text_input" => write("nodes".to_owned(), b"n[01-03,7],gpu-a[1-2]-ib0")?,
        _ => {}
    }
    Ok(())
}

/// Output of `nvidia-smi dmon`: names of columns, their units, and a row.
const DMON: &[u8] = b"# gpu    sm   mem   fb\n# Idx     %     %   MB\n    0    97    41  8123\n";

/// Output of `nvidia-smi --query-gpu=… --format=csv`, and a row without units as pytyche has it.
const NVIDIA_SMI: &[u8] =
    b"timestamp, index, utilization.gpu [%], memory.used [MiB], power.draw [W]\n\
    2026/11/15 18:05:48.123, 0, 97 %, 8123 MiB, 250.17 W\n\
    2026/11/15 18:05:48.123, 97, 41, 8123, 81920, 250.17, 61, 1410, 1593\n";

/// What pytyche writes of the CPUs.
const CPU_METRICS: &[u8] = b"timestamp,usr_pct,idle_pct\n2026-11-15T18:17:24.976+00:00,35.0,55.5\n";

/// Each setting once.
const EVERY_SETTING: &[u8] = b"interval = '250ms'\nrecord = true\ncollect = ['cpu', 'memory']\n\
    skip = ['perf']\nbudget = '0.2%'\nexpected-cores = 4.0\nwait-all = false\nper-cpu = true\n\
    gpus = ['0', 'GPU-8f6a']\ncgroup = 'auto'\ncommand-lines = false\nenv = true\n\
    units = 'decimal'\n[labels]\nteam = 'solvers'\n";

fn text(file: &str) -> Result<String> {
    std::fs::read_to_string(root().join(file)).with_context(|| file.to_owned())
}

/// The arguments of the examples on a page of the reference, without the program's name.
fn examples(page: &str) -> impl Iterator<Item = Vec<&str>> {
    let lines = page.lines().filter_map(|line| line.strip_prefix("  weigh "));
    // The description of an example follows it, after two spaces.
    let commands = lines.map(|line| line.split("  ").next().unwrap_or_default());
    commands.map(|command| command.split(' ').map(|argument| argument.trim_matches('\'')).collect())
}

fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    entries.map(|entry| Ok(entry?.path())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_parser_is_in_a_fuzz_target() {
        let mut targets = String::new();
        for path in files(&root().join("fuzz/targets")).unwrap() {
            targets.push_str(&std::fs::read_to_string(path).unwrap());
        }
        let mut found = 0;
        for path in files(&root().join("crates/weigh/src/parse")).unwrap() {
            let Ok(source) = std::fs::read_to_string(&path) else { continue };
            let module = path.file_stem().unwrap().to_string_lossy();
            for line in source.lines().filter(|line| line.contains("[u8]")) {
                let Some((indent, declared)) = line.split_once("pub fn ") else { continue };
                let name = declared.split(['(', '<']).next().unwrap();
                // A method is called on the result of another parser.
                let call = if indent.is_empty() {
                    format!("{module}::{name}(")
                } else {
                    format!("{name}(")
                };
                assert!(targets.contains(&call), "no fuzz target calls {module}::{name}");
                found += 1;
            }
        }
        assert!(found > 50, "only {found} parsers were found");
    }

    #[test]
    fn examples_are_commands_without_their_descriptions() {
        let page = "Examples:\n  weigh run -- make -j8        weigh it\n  weigh mark 'loaded'\n";
        let found: Vec<_> = examples(page).collect();
        assert_eq!(found, [vec!["run", "--", "make", "-j8"], vec!["mark", "loaded"]]);
    }
}
