//! Finding, listing and removing recordings.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;

use crate::weighed::{burner, end_of, output, recordings, wait_until, weigh};

/// Records `sh -c SCRIPT` with these options.
fn record(directory: &Path, options: &[&str], script: &str) {
    let mut command = weigh(directory, &["run", "-q"]);
    let done = output(command.args(options).args(["--", "sh", "-c", script]));
    assert_eq!(String::from_utf8_lossy(&done.stderr), "");
}

fn text(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn listed(directory: &Path, arguments: &[&str]) -> Vec<Value> {
    let done = output(weigh(directory, &["runs", "--json"]).args(arguments));
    serde_json::from_str(&text(&done)).unwrap()
}

fn names(runs: &[Value]) -> Vec<&str> {
    runs.iter().map(|run| run["name"].as_str().unwrap()).collect()
}

/// A run of each name, in this order.
fn recorded(names: &[&str]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    names.iter().for_each(|name| record(directory.path(), &["--name", name], "true"));
    directory
}

#[test]
fn every_verb_finds_a_run_by_name_id_and_age() {
    let directory = recorded(&["first", "second", "third"]);
    let here = directory.path();
    let runs = listed(here, &[]);
    let id = runs[1]["id"].as_str().unwrap();
    for (word, name) in [("first", "first"), (id, "second"), ("last", "third"), ("last~2", "first")]
    {
        let shown = text(&output(&mut weigh(here, &["show", word])));
        assert!(shown.starts_with(&format!("weigh: {name} ")), "{word}: {shown}");
    }
    let found = runs[2]["directory"].as_str().unwrap();
    for verb in [
        &["report", "first", "-f", "md"][..],
        &["plot", "first"],
        &["export", "first", "-f", "csv", "--table", "process"],
        &["export", "first", "--as", "oasis"],
    ] {
        let written = text(&output(&mut weigh(here, verb)));
        assert!(written.lines().all(|line| line.starts_with(found)), "{verb:?}: {written}");
    }
    let merged = output(&mut weigh(here, &["merge", "first", "last", "-o", "all"]));
    assert!(text(&merged).contains("2 recordings"), "{merged:?}");
}

#[test]
fn ambiguous_or_unknown_name_is_refused_with_what_it_could_be() {
    let directory = recorded(&["train", "solve", "train"]);
    let refused = |word: &str| {
        let refused = output(&mut weigh(directory.path(), &["show", word]));
        assert_eq!(refused.status.code(), Some(1));
        String::from_utf8(refused.stderr).unwrap()
    };
    let runs = listed(directory.path(), &[]);
    let lines_of = |name: &str| -> Vec<String> {
        let of_name = runs.iter().filter(|run| run["name"] == name);
        of_name
            .map(|run| {
                let time = run["started"].as_str().unwrap()[..19].replace('T', " ");
                let [id, directory] = ["id", "directory"].map(|key| run[key].as_str().unwrap());
                format!("         {time} UTC  {name}  {id}  {directory}")
            })
            .collect()
    };
    let several = refused("train");
    let lines: Vec<&str> = several.lines().collect();
    assert_eq!(lines[0], "weigh: several runs are train");
    assert_eq!(lines[1], "  cause: 2 recordings in weigh-runs match");
    assert_eq!(lines[2..4], lines_of("train"));
    assert!(lines[4].starts_with("  hint:  ") && lines[4].contains("train~0"), "{several}");
    let unknown = refused("slove");
    assert!(unknown.starts_with("weigh: cannot find the run slove\n"), "{unknown}");
    assert_eq!(unknown.lines().nth(2).unwrap(), lines_of("solve")[0], "{unknown}");
    assert!(refused("last~3").contains("there are 3"));
}

#[test]
fn runs_are_filtered_and_printed_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    record(here, &["--name", "train-a", "--label", "commit=abc"], "exit 3");
    record(here, &["--name", "train-b", "--label", "commit=def"], "true");
    record(here, &["--name", "solve"], "kill -9 $$");
    let of = |arguments: &[&str]| {
        let found = listed(here, arguments);
        found.iter().map(|run| run["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), ["solve", "train-b", "train-a"]);
    assert_eq!(of(&["--name", "train-*"]), ["train-b", "train-a"]);
    assert_eq!(of(&["--name", "train"]), [""; 0]);
    assert_eq!(of(&["--name", "solve", "--name", "train-a"]), ["solve", "train-a"]);
    assert_eq!(of(&["--label", "commit"]), ["train-b", "train-a"]);
    assert_eq!(of(&["--label", "commit=abc"]), ["train-a"]);
    assert_eq!(of(&["--failed"]), ["solve", "train-a"]);
    assert_eq!(of(&["--since", "1h"]).len(), 3);
    assert_eq!(of(&["--since", "2099-01-01"]), [""; 0]);
    let runs = listed(here, &["--failed"]);
    assert_eq!((&runs[0]["signal"], &runs[0]["exit_code"]), (&9.into(), &137.into()));
    assert_eq!((&runs[1]["exit_code"], &runs[1]["is_running"]), (&3.into(), &false.into()));
    assert!(runs[1]["cpu_time_seconds"].as_f64().unwrap() > 0.0);
    let table = text(&output(&mut weigh(here, &["runs", "--failed"])));
    assert!(table.contains("killed by SIGKILL") && table.contains("exit 3"), "{table}");
}

#[test]
fn prune_removes_what_is_old_and_says_what() {
    let directory = recorded(&["one", "two", "three", "four"]);
    let here = directory.path();
    let prune = |arguments: &[&str]| output(weigh(here, &["runs", "--prune"]).args(arguments));
    let runs = listed(here, &[]);
    let path = |place: usize| runs[place]["directory"].as_str().unwrap();
    for bad in [&["--yes"][..], &["--keep", "2"], &["--keep", "x", "--yes"]] {
        assert_eq!(prune(bad).status.code(), Some(2), "{bad:?}");
    }
    assert_eq!(listed(here, &[]).len(), 4, "without an answer nothing is removed");
    assert_eq!(text(&prune(&["--older-than", "1h", "--yes"])), "nothing to remove\n");
    let removed = text(&prune(&["--name", "t*", "--keep", "1", "--yes"]));
    assert!(removed.starts_with(&format!("removed {} (", path(2))), "{removed}");
    assert_eq!(removed.lines().count(), 1, "{removed}");
    assert_eq!(names(&listed(here, &[])), ["four", "three", "one"]);
    fs::write(here.join(path(1)).join("notes.txt"), "mine").unwrap();
    let done = prune(&["--keep", "0", "--older-than", "0s", "--yes", "--json"]);
    let removed: Vec<String> = serde_json::from_str(&text(&done)).unwrap();
    assert_eq!(removed, [path(0), path(3)]);
    let warned = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(warned.contains("is kept: it has a file that is not weigh's: notes.txt"), "{warned}");
    assert_eq!(names(&listed(here, &[])), ["three"]);
}

#[test]
fn recording_that_is_being_written_is_listed_as_running_and_not_removed() {
    let directory = tempfile::tempdir().unwrap();
    let here = directory.path();
    let mut command = weigh(here, &["run", "-q", "--"]);
    command.arg(burner()).args(["sleep", "100s"]).stdout(Stdio::null()).process_group(0);
    let child = command.spawn().unwrap();
    let is_recorded = || here.join("weigh-runs").exists() && listed(here, &[]).len() == 1;
    wait_until("it is recorded", is_recorded);
    let runs = listed(here, &[]);
    assert_eq!(runs[0]["is_running"], true);
    assert!(text(&output(&mut weigh(here, &["runs"]))).contains("running"));
    assert_eq!(listed(here, &["--failed"]), [Value::Null; 0]);
    let kept = output(&mut weigh(here, &["runs", "--prune", "--keep", "0", "--yes"]));
    assert_eq!(text(&kept), "nothing to remove\n");
    let warned = String::from_utf8_lossy(&kept.stderr).into_owned();
    assert!(warned.contains("still being written"), "{warned}");
    // SAFETY: kill takes numbers; the group is that of the child.
    unsafe { libc::kill(-(child.id() as i32), libc::SIGTERM) };
    end_of(child);
    assert_eq!(listed(here, &[])[0]["is_running"], false);
    let done = output(&mut weigh(here, &["runs", "--prune", "--keep", "0", "--yes"]));
    assert!(text(&done).starts_with("removed "), "{done:?}");
    assert!(recordings(here).is_empty());
}
