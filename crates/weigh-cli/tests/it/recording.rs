//! A finished recording: its permissions, its contents, and how verbs find it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::recorded::shown;
use crate::weighed::{can_mount, output, plain, recordings, skipped, weigh, weighed_shell};

/// Where two documents differ, a line each.
fn differences(place: &str, one: &Value, other: &Value) -> String {
    let (Value::Object(fields), Value::Object(others)) = (one, other) else {
        return if one == other { String::new() } else { format!("{place}: {one}, {other}\n") };
    };
    let keys: std::collections::BTreeSet<_> = fields.keys().chain(others.keys()).collect();
    keys.into_iter()
        .map(|key| differences(&format!("{place}/{key}"), &one[key], &other[key]))
        .collect()
}

/// Every file and directory below, and the directory itself.
fn everything(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![directory.to_owned()];
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(everything(&path));
        } else {
            found.push(path);
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    for path in everything(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        if path.is_dir() {
            fs::create_dir_all(target).unwrap();
        } else {
            fs::copy(path, target).unwrap();
        }
    }
}

fn cut(path: &Path, length: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(length).unwrap();
}

/// A stream of the recording, whatever the name of the host.
fn stream(recording: &Path, scope: &str) -> PathBuf {
    let name = format!("{scope}.arrows");
    let found = everything(recording).into_iter().find(|path| path.ends_with(&name));
    found.unwrap_or_else(|| panic!("no {name} in {}", recording.display()))
}

const LOAD: &str = "$BURNER children 10 20ms & $BURNER touch 30MiB 100ms; wait; exit 3";

#[test]
fn recording_is_private_whatever_the_umask() {
    let directory = tempfile::tempdir().unwrap();
    let script = "umask 0; exec \"$WEIGH\" run -q -o a/run -- sh -c \
                  'stat -c %a \"$WEIGH_RUN\"/inbox; exec \"$BURNER\" cpu 20ms'";
    let output = output(plain("sh", directory.path()).args(["-c", script]));
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "600\n", "the inbox, while it runs");
    let recording = directory.path().join("a/run");
    let found = everything(&recording);
    for name in ["run.json", "events.jsonl", "summary.json", "process.arrows"] {
        assert!(found.iter().any(|path| path.ends_with(name)), "no {name} in {found:?}");
    }
    for path in found {
        let mode = path.metadata().unwrap().permissions().mode() & 0o7777;
        let wanted = if path.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(mode, wanted, "{} has {mode:o}", path.display());
    }
}

#[test]
fn show_gives_what_the_summary_file_has() {
    let run = weighed_shell(&["-o", "run", "-i", "20ms"], LOAD).ended_with(3);
    let recording = run.directory.path().join("run");
    let written: Value =
        serde_json::from_slice(&fs::read(recording.join("summary.json")).unwrap()).unwrap();
    assert_eq!(written, run.summary, "--summary and the recording's own");
    let shown = shown(&recording);
    assert_eq!(differences("", &written, &shown), "", "written, and shown");
    fs::remove_file(recording.join("summary.json")).unwrap();
    assert_eq!(crate::recorded::shown(&recording), shown, "it can always be made again");
}

#[test]
fn show_takes_the_newest_and_a_name_and_prints_text() {
    let run = weighed_shell(&["--name", "first"], "exit 3").ended_with(3);
    let here = run.directory.path();
    let newest = output(&mut weigh(here, &["show"]));
    assert_eq!(newest.status.code(), Some(0), "showing a failed run is not a failure");
    let text = String::from_utf8(newest.stdout).unwrap();
    assert!(text.contains("first") && text.contains("exit 3"), "{text}");
    let named = &recordings(here)[0];
    let again = output(weigh(here, &["show"]).arg(named.file_name().unwrap()));
    assert_eq!(String::from_utf8(again.stdout).unwrap(), text);
}

#[test]
fn runs_lists_the_newest_first() {
    let directory = tempfile::tempdir().unwrap();
    let names = ["zebra", "apple", "mango"];
    for name in names {
        let mut command = weigh(directory.path(), &["run", "-q", "--name", name, "--", "true"]);
        assert_eq!(output(&mut command).status.code(), Some(0));
    }
    fs::create_dir(directory.path().join("weigh-runs/not-a-run")).unwrap();
    let listed = output(&mut weigh(directory.path(), &["runs"]));
    assert_eq!(listed.status.code(), Some(0));
    let text = String::from_utf8(listed.stdout).unwrap();
    let places = names.map(|name| text.find(name).unwrap_or_else(|| panic!("no {name}:\n{text}")));
    assert!(places[2] < places[1] && places[1] < places[0], "{text}");
    assert!(!text.contains("not-a-run"), "{text}");
}

#[test]
fn torn_recording_can_be_opened() {
    let run = weighed_shell(&["-o", "run", "-i", "10ms"], LOAD).ended_with(3);
    let whole = run.directory.path().join("run");
    fs::remove_file(whole.join("summary.json")).unwrap();
    let (rows, lines) = (stream(&whole, "process"), whole.join("events.jsonl"));
    let length = |path: &Path| path.metadata().unwrap().len();
    // The first bytes, the last ones, and some in between.
    let cuts = |length: u64| {
        let spread = (1..12).map(move |part| length * part / 12 + part % 5);
        [0, 1, 7, 8, 9, length - 1, length - 2, length - 9].into_iter().chain(spread)
    };
    let (row_cuts, line_cuts) = (cuts(length(&rows)), cuts(length(&lines)));
    for (row_cut, line_cut) in row_cuts.zip(line_cuts) {
        for (cut_rows, cut_lines) in [(true, false), (false, true), (true, true)] {
            let torn = tempfile::tempdir().unwrap();
            copy(&whole, torn.path());
            if cut_rows {
                cut(&stream(torn.path(), "process"), row_cut);
            }
            if cut_lines {
                cut(&torn.path().join("events.jsonl"), line_cut);
            }
            let shown = shown(torn.path());
            // The last line is the run's end.
            let has_ended = !cut_lines || line_cut == length(&lines) - 1;
            assert_eq!(shown["run"]["complete"], false, "cut at {row_cut}, {line_cut}");
            assert_eq!(shown["run"]["exit_code"].is_null(), !has_ended);
            crate::recorded::every_figure_is_explained(&shown);
        }
    }
}

#[test]
fn only_one_of_two_weighs_with_the_same_directory_records() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..12 {
        let name = format!("same-{round}");
        let start = || {
            let mut command = weigh(directory.path(), &["run", "-q", "-o", &name, "--", "true"]);
            command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        };
        let both = [start(), start()].map(|child| child.wait_with_output().unwrap());
        let message = both.each_ref().map(|one| String::from_utf8_lossy(&one.stderr).into_owned());
        let refused = message.iter().filter(|message| message.contains("is not empty")).count();
        assert_eq!(refused, 1, "{message:?}");
        assert_eq!(shown(&directory.path().join(&name))["run"]["complete"], true);
    }
}

#[test]
fn full_disk_leaves_nothing_behind_and_reports_what_is_dropped() {
    if !can_mount() {
        return skipped("mounting needs root");
    }
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("small")).unwrap();
    let script = "mount -t tmpfs -o size=64k none small && cd small && \
                  dd if=/dev/zero of=x bs=1k count=64 2>/dev/null; \
                  \"$WEIGH\" run --summary s.json --report html --export csv -- true; \
                  echo $?; find . -mindepth 1";
    let output = output(plain("unshare", directory.path()).args(["-m", "sh", "-c", script]));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n./x\n");
    let message = String::from_utf8_lossy(&output.stderr);
    for what in ["not recorded", "no result in s.json", "no report", "no export"] {
        assert!(message.contains(what), "{message}");
    }
}

#[test]
fn no_record_writes_no_recording() {
    let run = weighed_shell(&["--no-record", "-q"], "echo \"[$WEIGH_RUN]\"").ended_with(0);
    assert_eq!(run.stdout, b"[]\n");
    let left: Vec<_> = fs::read_dir(run.directory.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "only the requested summary: {left:?}");
}

#[test]
fn no_cmdline_records_no_command_line() {
    let run = weighed_shell(&["-o", "run", "--no-cmdline"], ": quite-private").ended_with(0);
    assert!(run.summary["run"]["command"].is_null());
    for path in everything(&run.directory.path().join("run")).iter().filter(|path| path.is_file()) {
        let bytes = fs::read(path).unwrap();
        let found = bytes.windows(13).any(|window| window == b"quite-private");
        assert!(!found, "it is in {}", path.display());
    }
}

#[test]
fn secrets_in_command_lines_marks_and_labels_are_masked_in_every_file() {
    let directory = tempfile::tempdir().unwrap();
    // A wrapper script, as sites have them: the command line is `/bin/sh …/mysql -p…`.
    let client = directory.path().join("mysql");
    fs::write(&client, "#!/bin/sh\nsleep 0.3\n").unwrap();
    fs::set_permissions(&client, fs::Permissions::from_mode(0o755)).unwrap();
    let script = "$WEIGH mark 'password=canary-1'
        $WEIGH phase 'a token=canary-2'
        ./mysql -pcanary-3
        timeout 9 ./mysql -pcanary-4
        sh -c 'sleep 0.3; : --password canary-5; exit 0'
        : https://me:canary-6@host --pass canary-7";
    let arguments = ["run", "-q", "-i", "20ms", "--label", "token=canary-8", "-o", "run", "--"];
    let mut command = weigh(directory.path(), &arguments);
    let ended = output(command.args(["sh", "-c", script]));
    assert_eq!(ended.status.code(), Some(0), "{}", String::from_utf8_lossy(&ended.stderr));
    let recording = directory.path().join("run");
    let recorded = fs::read_to_string(recording.join("events.jsonl")).unwrap();
    assert!(recorded.contains("mysql\",\"-p***"), "{recorded}");
    for path in everything(&recording).iter().filter(|path| path.is_file()) {
        let bytes = fs::read(path).unwrap();
        let found = bytes.windows(7).any(|window| window == b"canary-");
        assert!(!found, "it is in {}", path.display());
    }
}

#[test]
fn secret_in_the_name_of_a_run_is_masked_by_every_verb_that_records() {
    let directory = tempfile::tempdir().unwrap();
    let name = ["--name", "token=canary-1"];
    let measure = |arguments: &[&str]| {
        let ended = output(&mut weigh(directory.path(), arguments));
        assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    };
    let pid = std::process::id().to_string();
    measure(&[&["run", "-q", "-o", "run"], &name[..], &["--", "true"]].concat());
    measure(&[&["attach", "-q", "-o", "attach", "--for", "50ms"], &name[..], &[&pid]].concat());
    measure(&[&["watch", "-q", "-o", "watch", "--for", "50ms", "none"], &name[..]].concat());
    measure(&[&["merge", "run", "attach", "-o", "all"], &name[..]].concat());
    for recording in ["run", "attach", "watch", "all"] {
        let manifest = fs::read_to_string(directory.path().join(recording).join("run.json"));
        let manifest = manifest.unwrap();
        assert!(manifest.contains("token=***"), "{recording}: {manifest}");
        assert!(!manifest.contains("canary"), "{recording}: {manifest}");
    }
}

#[test]
fn directory_that_is_deleted_or_renamed_during_the_run_is_reported() {
    // Renamed first, because weigh may be creating files in it.
    for script in ["mv run other", "mv run other && rm -r other"] {
        let directory = tempfile::tempdir().unwrap();
        let arguments = ["run", "-o", "run", "--", "sh", "-c", script];
        let ended = output(&mut weigh(directory.path(), &arguments));
        let message = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(0), "{message}");
        assert!(message.contains("was deleted or renamed during the run"), "{message}");
    }
}

#[test]
fn environment_is_never_recorded() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = weigh(directory.path(), &["run", "-q", "-o", "run", "--", "true"]);
    output(command.env("SOME_VARIABLE", "quite-private"));
    for path in everything(&directory.path().join("run")).iter().filter(|path| path.is_file()) {
        let bytes = fs::read(path).unwrap();
        assert!(!bytes.windows(13).any(|window| window == b"quite-private"), "{}", path.display());
    }
}
