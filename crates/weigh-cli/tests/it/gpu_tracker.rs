//! weigh under the name gpu-tracker, as scripts use it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::json;
use tempfile::TempDir;

use crate::cards::{self, GIB, card, machine};
use crate::weighed::{end_of, output, plain, signal, wait_until, weigh_path};

/// A directory with a symlink named gpu-tracker in it.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("bin")).unwrap();
        symlink(weigh_path(), directory.path().join("bin/gpu-tracker")).unwrap();
        Place(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = plain(self.join("bin/gpu-tracker"), self.path());
        command.args(arguments);
        command
    }

    /// Runs it: its exit code, stdout and stderr.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, String, String) {
        let output = output(&mut self.command(arguments));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path()).unwrap();
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<_> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort_unstable();
        names
    }

    /// Fails unless it refuses in three lines before anything has started.
    fn refused(&self, code: i32, arguments: &[&str]) -> String {
        let before = self.names();
        let (found, stdout, stderr) = self.run(arguments);
        assert_eq!((found, stdout.as_str()), (code, ""), "{stderr}");
        assert_eq!(stderr.lines().count(), 3, "{stderr}");
        assert_eq!(self.names(), before, "nothing was started, nothing is left: {stderr}");
        stderr
    }
}

const DONE: &str = "Resource tracking complete. Process completed with status code: ";

#[test]
fn command_is_split_as_by_a_shell_and_its_exit_code_is_returned() {
    let place = Place::new();
    let (code, stdout, stderr) = place.run(&["-e", "sh -c 'sleep 0.2; exit 3'"]);
    assert_eq!(code, 3, "{stderr}");
    assert!(stdout.starts_with(&format!("{DONE}3\nMax RAM:\n   Unit: gigabytes\n")), "{stdout}");
    assert!(stdout.contains("\nCompute time:\n   Unit: hours\n   Time: "), "{stdout}");
    assert!(stderr.contains("no GPU is measured"), "{stderr}");
    assert_eq!(place.names(), ["bin"], "nothing is left");
}

#[test]
fn output_of_the_command_precedes_the_result() {
    let place = Place::new();
    let (code, stdout, stderr) = place.run(&[
        "-e",
        "sh -c \"echo 'a  b'; sleep 0.2\"",
        "--disable-logs",
        "--format=json",
        "--tu",
        "seconds",
    ]);
    assert_eq!((code, stderr.as_str()), (0, ""), "warnings are muted");
    let json = stdout.strip_prefix(&format!("a  b\n{DONE}0\n")).unwrap();
    let result: serde_json::Value = serde_json::from_str(json).unwrap();
    assert_eq!(result["compute_time"]["unit"], "seconds");
    assert!(result["compute_time"]["time"].as_f64().unwrap() > 0.0, "short ones take time too");
    assert!(result["max_ram"]["combined"]["total_rss"].as_f64().unwrap() > 0.0, "{json}");
}

#[test]
fn options_are_checked_before_the_command_starts_with_gpu_trackers_messages() {
    let place = Place::new();
    fs::write(place.join("old.csv"), "mine").unwrap();
    fs::write(place.join("bad.json"), "{\"sleeptime\": 1}").unwrap();
    fs::write(place.join("unit.json"), "{\"ram_unit\": \"GB\"}").unwrap();
    fs::write(place.join("empty.json"), "{\"gpu_uuids\": []}").unwrap();
    for (arguments, cause) in [
        (
            &["--ru=GB"][..],
            "\"GB\" is not a valid RAM unit. Valid values are bytes, gigabytes, kilobytes, megabytes, terabytes",
        ),
        (&["--gru", "x"], "\"x\" is not a valid GPU RAM unit. Valid"),
        (
            &["--tu=weeks"],
            "\"weeks\" is not a valid time unit. Valid values are days, hours, minutes, seconds",
        ),
        (&["--st=0.05"], "Sleep time of 0.05 is invalid. Must be at least 0.1 seconds."),
        (&["--st", "-1"], "Sleep time of -1.0 is invalid."),
        (&["--st=nan"], "Sleep time of nan is invalid."),
        (&["--st=soon"], "could not convert string to float: 'soon'"),
        (&["--st=1e9"], "Sleep time is invalid"),
        (&["--nec=1.5"], "invalid literal for int() with base 10: '1.5'"),
        (&["--nec=0"], "0 is not a number of cores"),
        (&["-f", "yaml"], "\"yaml\" is not a valid format. Valid values are \"json\" or \"text\"."),
        (&["-f", "pickle"], "name a file with --output"),
        (
            &["--tf=out.txt"],
            "Invalid file name: \"out.txt\". Valid file extensions are \".csv\" and \".sqlite\".",
        ),
        (
            &["--tf=old.csv"],
            "File old.csv already exists. Set overwrite to True to overwrite the existing file.",
        ),
        (&["--tf=missing/out.csv"], "missing: No such file"),
        (&["-o", "missing/out"], "missing/out: No such file"),
        (&["-o", "bin"], "bin: Is a directory"),
        (
            &["--gb=intel"],
            "\"intel\" is not a valid GPU brand. Supported values are \"nvidia\" and \"amd\".",
        ),
        (&["--guuids=GPU-1,,GPU-2"], "gpu_uuids is not None but the set is empty"),
        (&["--tconfig=bad.json"], "got an unexpected keyword argument 'sleeptime'"),
        (&["--tconfig=unit.json"], "\"GB\" is not a valid RAM unit"),
        (&["--tconfig=empty.json"], "gpu_uuids is not None but the set is empty."),
        (&["--tconfig=old.csv"], "old.csv: expected value"),
        (&["--frobnicate"], "--frobnicate"),
    ] {
        let message = place.refused(2, &[&["-e", "touch started"], arguments].concat());
        assert!(message.contains(cause), "{arguments:?}: {message}");
    }
    assert_eq!(fs::read(place.join("old.csv")).unwrap(), b"mine");
}

#[test]
fn missing_or_empty_command_is_refused() {
    let place = Place::new();
    assert!(place.refused(2, &["-e", " "]).contains("Empty command provided."));
    assert!(place.refused(2, &["-e", "sh -c 'true"]).contains("No closing quotation"));
    assert!(place.refused(2, &[]).contains("--execute is missing"));
    let message = place.refused(127, &["-e", "no-such-program -x", "-o", "out", "--tf=out.csv"]);
    assert!(message.contains("Command not found: \"no-such-program\""), "{message}");
    assert!(place.refused(126, &["-e", "./bin"]).contains("The following error occurred"));
}

#[test]
fn tracking_file_has_three_header_lines_22_columns_and_crlf_line_ends() {
    let place = Place::new();
    let arguments = ["-e", "sleep 0.5", "--st=0.1", "--tf", "out.csv", "--ru", "bytes", "--nec=3"];
    let (code, _, stderr) = place.run(&arguments);
    assert_eq!(code, 0, "{stderr}");
    assert_eq!(place.names(), ["bin", "out.csv"], "no recording is left");
    let csv = fs::read_to_string(place.join("out.csv")).unwrap();
    let lines: Vec<&str> = csv.split_terminator("\r\n").collect();
    assert_eq!(csv.matches('\n').count(), lines.len(), "CRLF everywhere");
    assert_eq!(lines[0].split(',').count(), 9);
    assert!(lines[1].starts_with("bytes,gigabytes,hours,") && lines[1].contains(",3,"), "{csv}");
    assert!(lines.len() >= 3 + 5, "{csv}");
    for line in &lines[2..] {
        assert_eq!(line.split(',').count(), 22, "{line}");
    }
    place.refused(2, &arguments);
    let (code, _, stderr) = place.run(&[&arguments[..], &["--overwrite"]].concat());
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn switch_that_is_on_in_the_config_file_stays_on() {
    let place = Place::new();
    fs::write(place.join("out.csv"), "old").unwrap();
    let config = r#"{"overwrite": true, "disable_logs": true, "tracking_file": "out.csv",
                     "sleep_time": 0.2, "n_expected_cores": 7, "join_timeout": 3, "gpu_brand": null}"#;
    fs::write(place.join("config.json"), config).unwrap();
    let (code, stdout, stderr) =
        place.run(&["-e", "true", "--tconfig", "config.json", "-f", "json", "--nec=5"]);
    assert_eq!((code, stderr.as_str()), (0, ""));
    assert!(stdout.contains("\"n_expected_cores\": 5"), "the command line wins: {stdout}");
    assert!(fs::read_to_string(place.join("out.csv")).unwrap().starts_with("ram_unit,"));
}

#[test]
fn result_file_has_no_last_newline_and_stdout_only_the_status() {
    let place = Place::new();
    for (format, end) in [("json", "}"), ("text", "Time: 0.0")] {
        let (code, stdout, _) = place.run(&["-e", "true", "-f", format, "-o", "result"]);
        assert_eq!((code, stdout), (0, format!("{DONE}0\n")));
        let result = fs::read_to_string(place.join("result")).unwrap();
        assert!(result.ends_with(end), "{result}");
    }
}

#[test]
fn signal_reaches_the_command_and_is_reported_as_in_python() {
    let place = Place::new();
    let mut command =
        place.command(&["-e", "sh -c 'touch started; exec sleep 100'", "--disable-logs"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the command has begun", || place.join("started").exists());
    signal(child.id(), libc::SIGTERM);
    let output = end_of(child);
    assert_eq!(output.status.code(), Some(143));
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.starts_with(&format!("{DONE}-15\n")), "{stdout}");
}

#[test]
fn version_and_help_are_printed() {
    let place = Place::new();
    let (code, stdout, _) = place.run(&["-v"]);
    assert_eq!((code, stdout.starts_with("5.0.1 (weigh ")), (0, true), "{stdout}");
    let (code, stdout, _) = place.run(&["--help"]);
    assert!(code == 0 && stdout.contains("--guuids") && stdout.contains("sub-track"), "{stdout}");
}

#[test]
fn phases_of_a_recording_are_analyzed_and_recordings_compared() {
    let place = Place::new();
    for name in ["one", "two"] {
        let script = "$WEIGH phase load -- sleep 0.3; $WEIGH phase load -- sleep 0.2";
        let arguments = ["run", "-q", "-i", "50ms", "-o", name, "--", "sh", "-c", script];
        let done = output(plain(weigh_path(), place.path()).args(arguments));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    let (code, json, stderr) = place.run(&["sub-track", "analyze", "--tf=one", "-f", "json"]);
    assert_eq!(code, 0, "{stderr}");
    let results: serde_json::Value = serde_json::from_str(&json).unwrap();
    let load = &results["code_block_results"][0];
    assert_eq!((&load["name"], &load["num_calls"]), (&"load".into(), &2.into()), "{json}");
    assert_eq!(load["num_non_empty_calls"], 2, "{json}");
    let total = load["compute_time"]["total"].as_f64().unwrap();
    assert!((0.5..5.0).contains(&total), "{total}");
    fs::write(place.join("one.json"), &json).unwrap();
    let arguments =
        ["sub-track", "compare", "-m", "a=one.json", "b=two", "--stat", "max", "-f", "json"];
    let (code, stdout, stderr) = place.run(&arguments);
    assert_eq!(code, 0, "{stderr}");
    let compared: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(compared["code_block_compute_time"]["load"].as_object().unwrap().len(), 2);
}

#[test]
fn invalid_sub_tracking_is_refused_with_gpu_trackers_messages() {
    let place = Place::new();
    let message = place.refused(2, &["sub-track", "compare"]);
    assert!(message.contains("A mapping of tracking session name to file path must be provided"));
    assert!(place.refused(2, &["sub-track", "compare", "-m", "a"]).contains("name=path"));
    fs::write(place.join("a.pkl"), [0x80, 4, b'.']).unwrap();
    let message = place.refused(1, &["sub-track", "compare", "-m", "a=a.pkl", "-o", "out"]);
    assert!(message.contains("reading a pickle executes what is in it"), "{message}");
    let message =
        place.refused(1, &["sub-track", "analyze", "--tf=a.csv", "--stf=b.csv", "-o", "out"]);
    assert!(message.contains("a.csv: No such file"), "{message}");
    assert!(place.refused(2, &["sub-track", "analyze", "--tf=a.csv"]).contains("--stf is missing"));
    fs::write(place.join("compare.json"), r#"{"statistic": "median", "paths": {}}"#).unwrap();
    let message = place.refused(2, &["sub-track", "compare", "--cconfig=compare.json"]);
    assert!(message.contains("unknown key \"paths\""), "{message}");
}

/// The GPU values of `--as gpu-tracker` for the recording `run`, and its warnings.
fn exported_gpus(directory: &Path) -> ([serde_json::Value; 2], String) {
    let arguments = ["export", "run", "--as", "gpu-tracker", "-o", "theirs"];
    let done = output(plain(weigh_path(), directory).args(arguments));
    let json = fs::read(directory.join("theirs/gpu-tracker.json")).unwrap();
    let mut json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    let gpus = ["max_gpu_ram", "gpu_utilization"].map(|key| json[key].take());
    (gpus, String::from_utf8(done.stderr).unwrap())
}

#[test]
fn memory_hidden_by_a_container_is_null_and_not_zero() {
    let mut used = card(0);
    used["compute"] = (1..20u32).map(|pid| json!([pid, GIB])).collect();
    used.as_object_mut().unwrap().remove("utilization");
    let Some(run) = cards::measured_in_a_container(&machine(vec![used])) else { return };
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let ([ram, busy], _) = exported_gpus(run.directory.path());
    for part in ["main", "descendants", "combined"] {
        assert!(ram[part].is_null(), "{part}: {ram:#}");
    }
    assert_eq!(ram["system"].as_f64(), Some(4.294967296), "{ram:#}");
    assert_eq!(busy["system_gpu_count"], 1);
    assert!(busy["gpu_percentages"]["max_sum_percent"].is_null(), "{busy:#}");
}

/// gpu-tracker on a machine with two cards, in a directory where the stand-in logs its calls.
fn tracked_on_two_cards(place: &Place, arguments: &[&str]) -> (i32, String, String) {
    let script = place.join("script.json");
    let mut cards = machine(vec![card(0), card(1)]);
    cards["log"] = json!(place.join("calls"));
    cards::write(&script, &cards);
    fs::write(place.join("calls"), "").unwrap();
    let done = output(cards::on_stand_in(&mut place.command(arguments), &script));
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (done.status.code().unwrap(), text(done.stdout), text(done.stderr))
}

#[test]
fn unknown_uuids_and_brand_are_refused_before_the_command_starts() {
    let place = Place::new();
    let uuid = |index: usize| card(index)["uuid"].as_str().unwrap().to_owned();
    let unknown = format!("--guuids={},GPU-x", uuid(1));
    let valid = format!("Available UUIDs are: {}, {}", uuid(0), uuid(1));
    for (argument, cause) in [
        (&unknown[..], format!("GPU UUID of GPU-x is not valid. {valid}")),
        (
            "--gb=amd",
            "no GPU of the brand \"amd\" is found. Available GPUs: nvidia0, nvidia1".into(),
        ),
    ] {
        let (code, _, stderr) = tracked_on_two_cards(&place, &["-e", "touch started", argument]);
        assert_eq!(code, 2, "{stderr}");
        assert!(stderr.contains(&cause), "{argument}: {stderr}");
        assert!(!place.join("started").exists(), "{argument}: {stderr}");
    }
}

#[test]
fn chosen_uuids_restrict_utilization_alone() {
    let place = Place::new();
    // The last call of every poll of a card.
    let wait_for_polls =
        "sh -c 'until [ $(grep -c ProcessUtilization calls) -ge 40 ]; do sleep 0.02; done'";
    let chosen = format!("--guuids={}", card(1)["uuid"].as_str().unwrap());
    let arguments = ["-e", wait_for_polls, "-f", "json", "--st=0.1", "--gb=nvidia", &chosen];
    let (code, stdout, stderr) = tracked_on_two_cards(&place, &arguments);
    assert_eq!(code, 0, "{stderr}");
    let json = stdout.split_once('\n').unwrap().1;
    let json: serde_json::Value = serde_json::from_str(json).unwrap();
    let ram = &json["max_gpu_ram"];
    assert_eq!(ram["system_capacity"].as_f64(), Some(171.79869184), "{ram:#}");
    assert_eq!(ram["system"].as_f64(), Some(8.589934592), "{ram:#}");
    let busy = &json["gpu_utilization"];
    assert_eq!((&busy["system_gpu_count"], &busy["n_expected_gpus"]), (&json!(2), &json!(1)));
    assert_eq!(busy["gpu_percentages"]["max_sum_percent"], 90.0, "{busy:#}");
}

#[test]
fn machine_without_gpus_accepts_any_uuid() {
    let place = Place::new();
    let (code, _, stderr) = place.run(&["-e", "true", "--guuids=GPU-1"]);
    assert_eq!(code, 0, "{stderr}");
}

#[test]
fn driver_that_hangs_from_the_start_gives_null_and_not_zero() {
    let directory = tempfile::tempdir().unwrap();
    let script = directory.path().join("script.json");
    let mut cards = machine(vec![card(0)]);
    cards["hangs"] = json!({"nvmlInit_v2": 1});
    cards::write(&script, &cards);
    let mut command = plain(weigh_path(), directory.path());
    command.args(["run", "-q", "-o", "run", "--", "true"]);
    assert!(output(cards::on_stand_in(&mut command, &script)).status.success());
    let ([ram, busy], warned) = exported_gpus(directory.path());
    assert!(ram["system_capacity"].is_null() && busy["system_gpu_count"].is_null(), "{ram} {busy}");
    assert!(warned.contains("though there may be some"), "{warned}");
}
