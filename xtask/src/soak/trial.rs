//! Single trials: a recording that was killed, filled up or changed, and what weigh reports of it.
//!
//! Each is compared to a truth: the same recording before the change, or the summary that was made
//! from memory while the disk was full. Shared by `cargo xtask soak` and by the tests, which run a
//! few of each; it uses only the program and the JSON that it prints.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

/// What a trial found wrong.
pub(super) type Wrong = String;

/// Numbers that a seed gives again (xorshift).
pub(super) struct Random(u64);

impl Random {
    pub(super) fn of(seed: u64) -> Random {
        // Mixed, so that consecutive seeds are unrelated; never zero.
        Random((seed ^ 0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9) | 1)
    }

    pub(super) fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % limit.max(1)
    }

    fn one_of<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len() as u64) as usize]
    }
}

/// The program under test.
pub(super) struct Program {
    pub weigh: PathBuf,
}

impl Program {
    /// `weigh` in a directory, without variables that change what it does.
    pub(super) fn command(&self, directory: &Path) -> Command {
        let mut command = Command::new(&self.weigh);
        command.current_dir(directory).stdin(Stdio::null()).env("XDG_CONFIG_HOME", "/nonexistent");
        for name in ["WEIGH_RUN", "WEIGH_PHASE", "WEIGH_OUTPUT", "WEIGH_INTERVAL"] {
            command.env_remove(name);
        }
        command
    }

    fn output(&self, directory: &Path, arguments: &[&str]) -> Result<Output, Wrong> {
        let done =
            self.command(directory).args(arguments).output().map_err(|error| error.to_string())?;
        let stderr = String::from_utf8_lossy(&done.stderr);
        // A panic is 101; a refused recording gives an error and exit code 1 or 2.
        match done.status.code() {
            Some(0..=2) if !stderr.contains("panicked") => Ok(done),
            _ => {
                Err(format!("weigh {} ended with {:?}: {stderr}", arguments.join(" "), done.status))
            }
        }
    }

    /// The summary of `weigh show` for the recording of this name, and its warnings; `None` when it
    /// refuses to read it.
    fn shown(&self, directory: &Path, name: &str) -> Result<Option<(Value, String)>, Wrong> {
        let done = self.output(directory, &["show", name, "--format", "json"])?;
        let stderr = String::from_utf8_lossy(&done.stderr).into_owned();
        if !done.status.success() {
            return Ok(None);
        }
        let shown = serde_json::from_slice(&done.stdout).map_err(|error| error.to_string())?;
        Ok(Some((shown, stderr)))
    }
}

/// Processes of [`LOAD`]: the shell, and what it starts.
const PROCESSES: u64 = 9;

/// Some processes one after the other and two at once, with phases; half a second.
const LOAD: &str = "for i in 1 2 3 4 5 6; do sleep 0.05; done; sleep 0.1 & sleep 0.1; wait";

/// A complete recording, made once, and its summary.
pub(super) struct Whole {
    directory: tempfile::TempDir,
    truth: Value,
    /// Processes whose CPU time is exact, with it.
    exact: Vec<String>,
}

impl Whole {
    pub(super) fn record(program: &Program) -> Result<Whole, Wrong> {
        let directory = tempfile::tempdir().map_err(|error| error.to_string())?;
        let arguments = ["run", "-q", "-i", "5ms", "-o", "whole", "--", "sh", "-c", LOAD];
        program.output(directory.path(), &arguments)?;
        let (truth, stderr) =
            program.shown(directory.path(), "whole")?.ok_or("a recording cannot be read")?;
        if truth["run"]["complete"] != true || stderr.contains("incomplete") {
            return Err(format!("an unchanged recording is incomplete: {stderr}"));
        }
        if truth["processes"]["total"].as_u64() > Some(PROCESSES) {
            return Err(format!("{} processes, and {PROCESSES} are known", truth["processes"]));
        }
        program.output(directory.path(), &["export", "whole", "-f", "csv", "-o", "made"])?;
        let exact = exact_processes(&directory.path().join("made"));
        if exact.is_empty() {
            return Err("the command itself has no exact CPU time".to_owned());
        }
        Ok(Whole { directory, truth, exact })
    }

    /// Changes a copy somewhere and reads it: nothing that is exact or complete differs from the
    /// unchanged one.
    pub(super) fn mutated(&self, program: &Program, random: &mut Random) -> Result<(), Wrong> {
        let here = tempfile::tempdir().map_err(|error| error.to_string())?;
        let copy = here.path().join("copy");
        let files = copied(&self.directory.path().join("whole"), &copy)?;
        let done = mutate(&files, random)?;
        let label_error = |wrong: Wrong| format!("{done}: {wrong}");
        let Some((shown, stderr)) = program.shown(here.path(), "copy").map_err(label_error)? else {
            return Ok(());
        };
        compare(&self.truth, &shown).map_err(label_error)?;
        let is_lossy = shown["run"]["complete"] != true;
        if is_lossy && shown["run"]["ended"] != Value::Null && !stderr.contains("incomplete") {
            return Err(label_error(format!("there is no warning: {stderr}")));
        }
        read_otherwise(program, here.path(), is_lossy, random).map_err(label_error)?;
        let exported = exact_processes(&here.path().join("made"));
        match exported.iter().find(|process| !self.exact.contains(process)) {
            Some(process) => {
                Err(label_error(format!("exact in processes.csv, but different: {process}")))
            }
            None => Ok(()),
        }
    }
}

/// The processes of an export whose CPU time is exact: pid, start and that time. None when it has
/// no table of them. No command of [`LOAD`] has a comma in it.
fn exact_processes(directory: &Path) -> Vec<String> {
    let text = fs::read_to_string(directory.join("processes.csv")).unwrap_or_default();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let Some(names) = lines.next() else { return Vec::new() };
    let place = |name: &str| names.iter().position(|one| *one == name).unwrap_or(usize::MAX);
    let wanted = ["pid", "started", "cpu_time_seconds"].map(place);
    let method = place("cpu_time_method");
    let exact = lines.filter(|row| row.get(method) == Some(&"exact"));
    exact.map(|row| wanted.map(|at| *row.get(at).unwrap_or(&"?")).join(" ")).collect()
}

/// One of the other readers must read the same recording, and warn where it lacks something.
fn read_otherwise(
    program: &Program,
    here: &Path,
    is_lossy: bool,
    random: &mut Random,
) -> Result<(), Wrong> {
    const READERS: [&[&str]; 5] = [
        &["report", "copy", "-f", "md", "-o", "made"],
        &["export", "copy", "-f", "csv", "-o", "made"],
        &["plot", "copy", "--metric", "memory", "-o", "made"],
        &["show", "copy", "--format", "github"],
        &["runs", "."],
    ];
    let arguments = random.one_of(&READERS);
    let done = program.output(here, arguments)?;
    let stderr = String::from_utf8_lossy(&done.stderr);
    let text = String::from_utf8_lossy(&done.stdout);
    let (reader, is_read) = (arguments[0], done.status.success());
    let is_reported = stderr.contains("incomplete") || stderr.contains("not recorded");
    match reader {
        "runs" if is_lossy && !text.contains("rows lost") && !text.contains("not recorded") => {
            Err(format!("runs shows it like any other: {text}"))
        }
        "report" | "plot" if is_lossy && is_read && !stderr.contains("incomplete") => {
            // Without an end it is not a loss but an unfinished run, and the page says so.
            let report = fs::read_to_string(here.join("made/report.md")).unwrap_or_default();
            let is_unfinished =
                reader == "plot" || report.contains("end of this run is not recorded");
            if is_unfinished {
                Ok(())
            } else {
                Err(format!("{reader} does not report it: {stderr}"))
            }
        }
        "export" if is_lossy && is_read && !is_reported && stderr.is_empty() => {
            Err("export does not report it".to_owned())
        }
        _ => Ok(()),
    }
}

/// Copies a recording, and returns its files.
fn copied(from: &Path, to: &Path) -> Result<Vec<PathBuf>, Wrong> {
    let failed = |error: std::io::Error| error.to_string();
    fs::create_dir_all(to).map_err(failed)?;
    let mut files = Vec::new();
    let mut names: Vec<PathBuf> =
        fs::read_dir(from).map_err(failed)?.flatten().map(|entry| entry.path()).collect();
    names.sort();
    for path in names {
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            files.extend(copied(&path, &target)?);
        } else if !path.ends_with("summary.json") {
            fs::copy(&path, &target).map_err(failed)?;
            files.push(target);
        }
    }
    Ok(files)
}

/// Changes one file, and returns a description.
fn mutate(files: &[PathBuf], random: &mut Random) -> Result<String, Wrong> {
    let failed = |error: std::io::Error| error.to_string();
    let file = random.one_of(files);
    let mut bytes = fs::read(file).map_err(failed)?;
    let place = random.below(bytes.len() as u64) as usize;
    let many = (1 + random.below(200) as usize).min(bytes.len() - place);
    let what = match random.below(8) {
        0 if bytes.len() > 1 => {
            bytes.truncate(place);
            "cut off"
        }
        1 => {
            let end = bytes.len();
            bytes.truncate(end - many.min(end));
            "its end cut off"
        }
        2 => {
            bytes.drain(place..place + many);
            "some taken out"
        }
        3 => {
            bytes[place..place + many].fill(0);
            "some zeroed"
        }
        4 => {
            let again = bytes[place..place + many].to_vec();
            bytes.splice(place..place, again);
            "some doubled"
        }
        5 => {
            fs::remove_file(file).map_err(failed)?;
            return Ok(format!("{} removed", file.display()));
        }
        6 => {
            let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
            lines.remove(random.below(lines.len() as u64) as usize);
            bytes = lines.concat();
            "a line taken out"
        }
        _ => {
            bytes[place] ^= 1 << random.below(8);
            "a bit flipped"
        }
    };
    fs::write(file, &bytes).map_err(failed)?;
    Ok(format!("{} at {place} ({many} bytes): {what}", file.display()))
}

/// Kills weigh at a random moment: the recording must be reported as incomplete.
pub(super) fn killed(program: &Program, random: &mut Random) -> Result<(), Wrong> {
    let here = tempfile::tempdir().map_err(|error| error.to_string())?;
    let arguments = ["run", "-q", "-i", "5ms", "-o", "rec", "--", "sh", "-c", LOAD];
    let mut command = program.command(here.path());
    let mut child = command.args(arguments).spawn().map_err(|error| error.to_string())?;
    std::thread::sleep(Duration::from_micros(random.below(900_000)));
    // It may have exited by itself; then nothing is killed.
    let _ = child.kill();
    let status = child.wait().map_err(|error| error.to_string())?;
    let was_killed = status.signal().is_some();
    if !here.path().join("rec/run.json").exists() {
        return match was_killed {
            true => Ok(()),
            false => Err("it ended by itself and recorded nothing".to_owned()),
        };
    }
    let Some((shown, stderr)) = program.shown(here.path(), "rec")? else {
        return Err("what is left cannot be read".to_owned());
    };
    let total = shown["processes"]["total"].as_u64().unwrap_or(u64::MAX);
    if total > PROCESSES {
        return Err(format!("{total} processes, and there were {PROCESSES}"));
    }
    if shown["run"]["complete"] == true {
        if shown["run"]["exit_code"] != 0 || stderr.contains("incomplete") {
            return Err(format!("complete, with {} and {stderr}", shown["run"]["exit_code"]));
        }
        let sure = shown["processes"]["some_unseen"] == false;
        return match sure && total != PROCESSES {
            true => Err(format!("exactly {total} processes, and there were {PROCESSES}")),
            false => Ok(()),
        };
    }
    if !was_killed {
        return Err(format!("it was not killed, and it is not complete: {stderr}"));
    }
    if shown["processes"]["some_unseen"] == false {
        return Err(format!("not complete, and exactly {total} processes"));
    }
    let mut wrong = None;
    each_figure(&shown, "", &mut |place, figure| {
        let is_account = figure["source"].as_str().is_some_and(|source| source.contains("wait4"));
        if figure["method"] == "exact" && !is_account {
            wrong = Some(format!("not complete, and {place} is exact: {figure}"));
        }
    });
    wrong.map_or(Ok(()), Err)
}

/// Fills a small disk while a run is recorded on it: the summary of the recording must not
/// contradict the live one. Needs permission to mount.
pub(super) fn filled(program: &Program, random: &mut Random) -> Result<(), Wrong> {
    let here = tempfile::tempdir().map_err(|error| error.to_string())?;
    fs::create_dir(here.path().join("small")).map_err(|error| error.to_string())?;
    let size = 48 + random.below(600);
    let pause = |random: &mut Random| format!("sleep 0.{:02}", random.below(60));
    let fill =
        format!("dd if=/dev/zero of=fill bs=1k count={} 2>/dev/null", 1 + random.below(size));
    let free = ["rm -f fill", ":"][random.below(2) as usize];
    let (before, between) = (pause(random), pause(random));
    let load = format!("{before}; {fill}; {LOAD}; {between}; {free}; sleep 0.05; exit 0");
    let script = format!(
        "mount -t tmpfs -o size={size}k none small && cd small && \
         \"$WEIGH\" run -q -i 2ms -o rec --summary ../live.json -- sh -c '{load}' 2>../live.txt; \
         echo $? > ../code; [ -e rec/run.json ] || exit 0; rm -f fill; \
         \"$WEIGH\" show rec --format json > ../shown.json 2>../shown.txt; find . > ../left"
    );
    let status = program
        .command(here.path())
        .get_envs()
        .fold(&mut Command::new("unshare"), |command, (name, value)| match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        })
        .args(["-m", "sh", "-c", &script])
        .env("WEIGH", &program.weigh)
        .current_dir(here.path())
        .stdin(Stdio::null())
        .status()
        .map_err(|error| error.to_string())?;
    let read = |name: &str| fs::read_to_string(here.path().join(name)).unwrap_or_default();
    let label_error = |wrong: Wrong| format!("size {size} KiB, {load}: {wrong}");
    if !status.success() || read("code").trim() != "0" {
        return Err(label_error(format!("{status:?}, {}, {}", read("code"), read("live.txt"))));
    }
    let live: Value = serde_json::from_str(&read("live.json"))
        .map_err(|error| label_error(format!("no summary: {error}; {}", read("live.txt"))))?;
    let Ok(shown) = serde_json::from_str::<Value>(&read("shown.json")) else {
        let is_reported = read("live.txt").contains("not recorded");
        let is_empty = read("shown.txt").is_empty();
        return if is_reported && is_empty { Ok(()) } else { Err(label_error(read("shown.txt"))) };
    };
    if live["run"]["complete"] == true && shown["run"]["complete"] != true {
        return Err(label_error(format!("there was no warning live: {}", read("shown.txt"))));
    }
    compare(&live, &shown).map_err(label_error)
}

/// Whether this user may mount: the small disk needs it.
pub(super) fn can_mount() -> bool {
    let arguments = ["-m", "mount", "-t", "tmpfs", "none", "/mnt"];
    let quiet = Command::new("unshare").args(arguments).stderr(Stdio::null()).status();
    quiet.is_ok_and(|status| status.success())
}

/// A summary may have less than the truth, but nothing different: exact and complete values are
/// the same, and the truth is between the bounds.
fn compare(truth: &Value, shown: &Value) -> Result<(), Wrong> {
    if shown["run"]["complete"] == true && shown["run"]["exit_code"] != truth["run"]["exit_code"] {
        return Err(format!("complete, and ended with {}", shown["run"]["exit_code"]));
    }
    let (known, total) = (&truth["processes"], &shown["processes"]);
    if total["some_unseen"] == false && total["total"] != known["total"] {
        return Err(format!(
            "exactly {} processes, and {} were found",
            total["total"], known["total"]
        ));
    }
    let mut wrong = Vec::new();
    for tool in shown["tools"].as_array().into_iter().flatten() {
        let is_same =
            |real: &&Value| ["name", "cpu_time_seconds"].iter().all(|key| real[*key] == tool[*key]);
        let real = truth["tools"].as_array().and_then(|all| all.iter().find(is_same));
        if tool["cpu_time_method"] == "exact" && real.is_none() {
            wrong.push(format!("the CPU time of a program is exact, but different: {tool}"));
        }
    }
    each_figure(shown, "", &mut |place, figure| {
        let Some(real) = truth.pointer(place) else {
            return wrong.push(format!("{place} is new: {figure}"));
        };
        let number = |of: &Value, key: &str| of[key].as_f64();
        if figure["method"] == "exact" && figure["value"] != real["value"] {
            wrong.push(format!("{place} is exact: {figure}, and not {real}"));
        }
        if shown["run"]["complete"] == true && figure["value"] != real["value"] {
            wrong.push(format!("complete, and {place} is {figure}, and not {real}"));
        }
        // The same sum in another order differs in the last digit.
        let most = number(real, "upper").or(number(real, "value")).map(|most| most * (1.0 + 1e-9));
        if number(figure, "lower").zip(most).is_some_and(|(lower, most)| lower > most) {
            wrong.push(format!("{place} is at least {figure}, and not {real}"));
        }
        let least = number(real, "lower").map(|least| least * (1.0 - 1e-9));
        if number(figure, "upper").zip(least).is_some_and(|(upper, least)| upper < least) {
            wrong.push(format!("{place} is at most {figure}, and not {real}"));
        }
    });
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n")) }
}

/// Every figure of a summary, with its place.
fn each_figure(value: &Value, place: &str, each: &mut dyn FnMut(&str, &Value)) {
    match value {
        Value::Object(fields) if fields.contains_key("method") && fields.contains_key("lower") => {
            each(place, value);
        }
        Value::Object(fields) => {
            fields.iter().for_each(|(key, one)| each_figure(one, &format!("{place}/{key}"), each));
        }
        Value::Array(all) => {
            let numbered = all.iter().enumerate();
            numbered.for_each(|(number, one)| each_figure(one, &format!("{place}/{number}"), each));
        }
        _ => {}
    }
}
