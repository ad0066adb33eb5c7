//! Output for people: pages, lists, colours, columns.

use std::path::Path;

use serde_json::{Value, json};

use crate::weighed::{can_mount, output, plain, weigh, weighed_shell};

/// The stdout of a verb, which must succeed without warnings.
fn printed(arguments: &[&str]) -> String {
    let directory = tempfile::tempdir().unwrap();
    printed_in(directory.path(), arguments)
}

fn printed_in(directory: &Path, arguments: &[&str]) -> String {
    let output = output(&mut weigh(directory, arguments));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    String::from_utf8(output.stdout).unwrap()
}

const ORDINARY: &str = "$BURNER touch 20MiB 50ms & $BURNER cpu 100ms; wait";

#[test]
fn text_fits_eighty_columns_and_has_no_escape_codes_in_a_pipe() {
    let run = weighed_shell(&[], ORDINARY).ended_with(0);
    assert!(run.stderr.lines().count() > 5, "{}", run.stderr);
    for line in run.stderr.lines() {
        assert!(line.chars().count() <= 80, "{} columns: {line:?}", line.chars().count());
        assert_eq!(line, line.trim_end(), "spaces at the end");
    }
    assert!(!run.stderr.contains('\x1b'), "{:?}", run.stderr);
    for argument in ["sh", "exit 0", "CPU time", "exact", "memory", "weigh-runs/"] {
        assert!(run.stderr.contains(argument), "no {argument} in\n{}", run.stderr);
    }
}

/// `weigh run` in a terminal that `script` makes, and all it printed.
fn in_a_terminal(no_color: bool) -> Option<String> {
    if !crate::weighed::is_installed("script") {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut command = plain("script", directory.path());
    if no_color {
        command.env("NO_COLOR", "1");
    }
    command.env("TERM", "xterm-256color");
    let output = output(command.args(["-qec", "\"$WEIGH\" run --no-record -- true", "/dev/null"]));
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("CPU time"), "{shown}");
    Some(shown)
}

#[test]
fn terminal_gets_colours() {
    if let Some(shown) = in_a_terminal(false) {
        assert!(shown.contains("\x1b["), "{shown:?}");
    }
}

#[test]
fn no_color_is_respected_in_a_terminal() {
    if let Some(shown) = in_a_terminal(true) {
        assert!(!shown.contains("\x1b["), "{shown:?}");
    }
}

#[test]
fn quiet_prints_nothing_and_verbose_every_figure() {
    let quiet = weighed_shell(&["-q", "--no-record"], "true").ended_with(0);
    assert_eq!(quiet.stderr, "");
    let verbose = weighed_shell(&["-v", "--no-record"], "true").ended_with(0);
    for name in quiet.summary["figures"].as_object().unwrap().keys() {
        assert!(verbose.stderr.contains(name), "no {name} in\n{}", verbose.stderr);
    }
}

#[test]
fn option_units_changes_how_sizes_are_written() {
    let shown = |units: &str| {
        let script = "$BURNER touch 100MiB 10ms";
        weighed_shell(&["--no-record", "--units", units], script).ended_with(0).stderr
    };
    let (binary, decimal, bytes) = (shown("binary"), shown("decimal"), shown("bytes"));
    assert!(binary.contains("MiB"), "{binary}");
    assert!(decimal.contains(" MB") && !decimal.contains("MiB"), "{decimal}");
    assert!(!bytes.contains("MiB") && !bytes.contains(" MB"), "{bytes}");
}

#[test]
fn doctor_names_every_collector_and_its_state() {
    let text = printed(&["doctor"]);
    assert!(text.lines().all(|line| line.contains("hint:") || line.chars().count() < 80), "{text}");
    let json: Value = serde_json::from_str(&printed(&["doctor", "--format", "json"])).unwrap();
    let collectors = json["collectors"].as_array().unwrap();
    for name in ["process", "task-clock", "cpu", "percpu", "memory", "own"] {
        assert!(text.contains(name), "no {name} in\n{text}");
        let known = collectors.iter().find(|collector| collector["name"] == name);
        let state = &known.unwrap_or_else(|| panic!("no {name} in {json}"))["state"];
        assert!(["ready", "absent", "denied"].contains(&state.as_str().unwrap()), "{json}");
    }
    for collector in collectors.iter().filter(|collector| collector["state"] != "ready") {
        assert!(collector["why"].is_string(), "{collector}");
    }
    assert!(json["host"]["cores"].as_u64() >= Some(1));
    assert!(!text.contains('\x1b'));
}

/// The process connector in the output of doctor in separate namespaces.
fn connector_in(namespaces: &[&str]) -> Value {
    let mut command = plain("unshare", Path::new("/"));
    command.args(namespaces).arg(env!("CARGO_BIN_EXE_weigh"));
    let output = output(command.args(["doctor", "--format", "json"]));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    let watching = json["watching"].as_array().unwrap();
    watching.iter().find(|row| row["name"] == "connector").unwrap().clone()
}

#[test]
fn doctor_reports_in_which_container_there_are_no_process_events() {
    if !can_mount() {
        return;
    }
    let alone = connector_in(&["--pid", "--fork", "--mount-proc"]);
    assert_eq!(alone["state"], "denied", "{alone}");
    assert!(alone["why"].as_str().unwrap().contains("pid or user namespace"), "{alone}");
    let offline = connector_in(&["--net"]);
    assert_eq!(offline["state"], "denied", "{offline}");
    assert!(offline["why"].as_str().unwrap().contains("network namespace"), "{offline}");
    assert!(offline["hint"].as_str().unwrap().contains("--network=host"), "{offline}");
}

#[test]
fn groups_of_counters_are_listed_with_formula_and_meaning() {
    let text = printed(&["metrics", "--perf"]);
    for part in [
        "\nIPC  Instructions and cycles.\n",
        "    instructions_per_cycle = instructions / cycles\n        Instructions retired",
        "    clock_frequency >= cycles",
        "\nFLOPS_DP  Floating-point operations in double precision.\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in {text}");
    }
    let json: Value =
        serde_json::from_str(&printed(&["metrics", "--perf", "--format", "json"])).unwrap();
    let groups = json["groups"].as_array().unwrap();
    let branch = groups.iter().find(|group| group["name"] == "BRANCH").unwrap();
    let misses =
        branch["events"].as_array().unwrap().iter().find(|event| event["name"] == "branch-misses");
    assert_eq!((&misses.unwrap()["type"], &misses.unwrap()["config"]), (&json!(0), &json!("0x5")));
    // A group is there, or says why it is not.
    for group in groups {
        let is_there = !group["events"].as_array().unwrap().is_empty();
        assert_ne!(is_there, group["missing"].is_string(), "{group}");
    }
}

#[test]
fn metrics_are_listed_with_unit_kind_and_source() {
    let text = printed(&["metrics"]);
    let json: Value = serde_json::from_str(&printed(&["metrics", "--format", "json"])).unwrap();
    let metrics = json.as_array().unwrap();
    assert!(metrics.len() > 20, "{json}");
    for metric in metrics {
        for key in ["name", "unit", "kind", "source", "help"] {
            assert!(metric[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {metric}");
        }
        assert!(text.contains(metric["name"].as_str().unwrap()), "{metric} is not in the text");
    }
}

#[test]
fn completions_have_the_verbs_in_every_shell() {
    for shell in ["bash", "zsh", "fish"] {
        let script = printed(&["completions", shell]);
        for argument in ["doctor", "phase", "wait-all"] {
            assert!(script.contains(argument), "no {argument} for {shell}");
        }
    }
}

#[test]
fn weigh_and_its_verbs_have_manual_pages() {
    assert!(printed(&["man"]).contains(".TH"));
    let page = printed(&["man", "run"]);
    assert!(page.contains(".TH") && page.contains("wait\\-all"), "{page}");
}

#[test]
fn help_and_version_are_printed_on_stdout() {
    assert!(printed(&["--help"]).contains("doctor"));
    assert!(printed(&["run", "--help"]).contains("--wait-all"));
    assert!(printed(&["--version"]).contains(env!("CARGO_PKG_VERSION")));
}

#[test]
fn closed_pipe_is_not_a_failure() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = plain("sh", directory.path());
    let script = "{ \"$WEIGH\" metrics --format json; echo $? >&2; } | head -c 1";
    let output = output(command.args(["-c", script]));
    assert_eq!(String::from_utf8_lossy(&output.stderr), "0\n");
}

/// How the program is linked decides how long a command waits for it (`build.rs`).
#[cfg(target_env = "gnu")]
#[test]
fn loader_has_no_pointers_of_the_program_to_correct() {
    const EXECUTABLE: u16 = 2;
    let program = std::fs::read(env!("CARGO_BIN_EXE_weigh")).unwrap();
    assert_eq!(&program[..4], b"\x7fELF");
    // The type of the file: a position-independent program has that of a library, 3.
    assert_eq!(u16::from_ne_bytes([program[16], program[17]]), EXECUTABLE);
}
