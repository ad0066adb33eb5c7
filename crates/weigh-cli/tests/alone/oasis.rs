//! The files of oasislmf's ResourceMonitor, and what oasislmf reads from them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use crate::python::{script, succeeds};
use crate::weighed::{MIB, burner, output, weigh};

const HEADER: &str = "timestamp,tool,pid,cpu_pct,cpu_user_s,cpu_sys_s,rss_kb,uss_kb,pss_kb";

/// Three instances of gulmc with 64 MiB each for two seconds, beside evepy and fmpy.
const RUN: &str = "#!/bin/sh
./gulmc touch 64MiB 2s & ./gulmc touch 64MiB 2s & ./gulmc touch 64MiB 2s &
./fmpy cpu 500ms & ./evepy & wait
";

/// A recorded run and its export.
struct Exported {
    directory: TempDir,
    summary: Value,
    stderr: String,
}

impl Exported {
    /// Measures a command in a directory with the three tools in it.
    fn of(command: &[&str]) -> Exported {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        symlink(burner(), path("gulmc")).unwrap();
        symlink(burner(), path("fmpy")).unwrap();
        for (name, script) in [("evepy", "#!/bin/sh\nsleep 1.5\n:\n"), ("run.sh", RUN)] {
            fs::write(path(name), script).unwrap();
            fs::set_permissions(path(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        // With this budget private memory is read in every tick.
        let options = ["run", "-q", "-o", "run", "-i", "200ms", "--budget", "50%", "--"];
        let arguments = [&options[..], command].concat();
        let done = output(&mut weigh(directory.path(), &arguments));
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        let (code, stderr) = export(directory.path(), &[]);
        assert_eq!(code, 0, "{stderr}");
        let shown = output(&mut weigh(directory.path(), &["show", "run", "--format", "json"]));
        let summary = serde_json::from_slice(&shown.stdout).unwrap();
        Exported { directory, summary, stderr }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join("log").join(name)
    }

    fn table(&self) -> String {
        fs::read_to_string(self.file("resource_monitor.csv")).unwrap()
    }

    /// The rows of a tool, in fields.
    fn rows(&self, tool: &str) -> Vec<Vec<String>> {
        let table = self.table();
        let fields = |line: &str| line.split(',').map(str::to_owned).collect::<Vec<_>>();
        table.lines().skip(1).map(fields).filter(|row| row[1] == tool).collect()
    }

    /// A tool of the summary.
    fn tool(&self, name: &str) -> &Value {
        let tools = self.summary["tools"].as_array().unwrap();
        let found = tools.iter().find(|tool| tool["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {tools:#?}"))
    }

    /// The cells of a tool's line in the report, without stars and percent signs.
    fn line(&self, tool: &str) -> Vec<String> {
        let page = fs::read_to_string(self.file("resource_report/resource_report.md")).unwrap();
        let begin = format!("| {tool} |");
        let line = page.lines().find(|line| line.starts_with(&begin));
        let line = line.unwrap_or_else(|| panic!("no {tool} in {page}"));
        let bare = |cell: &str| cell.trim().trim_matches(['*', '%']).to_owned();
        line.trim_matches('|').split('|').map(bare).collect()
    }
}

/// `weigh export run --as oasis -o log`, with more arguments: its exit code and stderr.
fn export(directory: &Path, more: &[&str]) -> (i32, String) {
    let arguments = [&["export", "run", "--as", "oasis", "-o", "log"], more].concat();
    let done = output(&mut weigh(directory, &arguments));
    (done.status.code().unwrap(), String::from_utf8(done.stderr).unwrap())
}

fn number(text: &str) -> f64 {
    text.parse().unwrap_or_else(|why| panic!("{text:?}: {why}"))
}

fn is_within(what: &str, value: f64, (least, most): (f64, f64)) {
    assert!((least..=most).contains(&value), "{what}: {value} is not from {least} to {most}");
}

#[test]
fn oasis_files_have_the_sums_of_known_loads() {
    let run = Exported::of(&["./run.sh"]);
    let table = run.table();
    assert_eq!(table.matches('\n').count(), table.matches("\r\n").count(), "CRLF everywhere");
    assert_eq!(table.lines().next(), Some(HEADER));
    let mut polls: Vec<&str> =
        table.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    polls.dedup();
    let times: Vec<f64> = polls.iter().map(|time| number(time)).collect();
    assert!(
        times.len() > 8 && times.is_sorted_by(|a, b| a < b),
        "one time for each poll: {times:?}"
    );
    for name in ["evepy", "fmpy", "gulmc", "run.sh"] {
        let rows = run.rows(name);
        // Also the samples between two polls.
        assert!(run.tool(name)["samples"].as_u64() >= Some(rows.len() as u64), "{name}\n{table}");
        assert!(rows.iter().all(|row| row.len() == 9), "{table}");
        assert_eq!(run.line(name)[2], rows.len().to_string());
    }
    let gulmc = run.tool("gulmc");
    assert_eq!((&gulmc["instances"], &gulmc["instances_peak"]), (&3.into(), &3.into()));
    let bytes = |key: &str| gulmc[key].as_f64().unwrap();
    // The program itself has less than 4 MiB.
    is_within("one", bytes("instance_uss_peak_bytes"), (64.0 * MIB, 68.0 * MIB));
    for sum in ["memory_uss_peak_bytes", "memory_pss_peak_bytes", "memory_rss_peak_bytes"] {
        is_within(sum, bytes(sum), (192.0 * MIB, 204.0 * MIB));
    }
    is_within("report", number(&run.line("gulmc")[4]), (192.0, 204.0));
    is_within("duration", gulmc["duration_seconds"].as_f64().unwrap(), (2.0, 60.0));
    // CPU time after the last sample of a process that weigh does not reap is not known.
    is_within("fmpy", run.tool("fmpy")["cpu_time_seconds"].as_f64().unwrap(), (0.1, 0.52));
    let all = run.summary["figures"]["memory_uss_peak_bytes"]["value"].as_f64().unwrap();
    assert!(all >= bytes("memory_uss_peak_bytes"), "{all}");
}

#[test]
fn oasislmf_reads_the_table_and_agrees_with_the_summary() {
    let run = Exported::of(&["./run.sh"]);
    let log = run.directory.path();
    let Some(mut python) = script("oasis.py", log) else { return };
    let message = succeeds(python.arg("log/resource_monitor.csv"));
    let theirs: Value = serde_json::from_str(&message).unwrap();
    let header: Vec<&str> =
        theirs["header"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(header.join(","), HEADER);
    let table = run.table();
    let known = |line: &&str| !line.split(',').nth(7).unwrap().is_empty();
    let total = table.lines().skip(1).filter(known).count();
    assert_eq!(theirs["rows"], total, "oasislmf leaves out only rows with unknown values");
    for name in ["evepy", "fmpy", "gulmc"] {
        let (ours, stats, line) = (run.tool(name), &theirs["stats"][name], run.line(name));
        let their = |key: &str| stats[key].as_f64().unwrap_or_else(|| panic!("{key}: {stats}"));
        let our = |key: &str| ours[key].as_f64().unwrap_or_else(|| panic!("{key}: {ours}"));
        let unknown = run.rows(name).iter().filter(|row| row[7].is_empty()).count();
        // A fork that was found once, without its memory, is left out by oasislmf.
        is_within(
            "instances",
            our("instances"),
            (their("n_instances"), their("n_instances") + 1.0),
        );
        // Rows are an interval apart; weigh has sampled more often in the first second.
        let rows = their("n_samples") + unknown as f64;
        assert!((1.0..=our("samples")).contains(&rows), "{name}: {rows}");
        // Sizes are truncated to KiB for each process; ours also has samples of single processes.
        for (theirs, ours, cell) in [
            ("single_peak_uss_mb", "instance_uss_peak_bytes", 3),
            ("agg_peak_uss_mb", "memory_uss_peak_bytes", 4),
            ("agg_peak_rss_mb", "memory_rss_peak_bytes", 5),
            ("agg_peak_pss_mb", "memory_pss_peak_bytes", 6),
        ] {
            // A peak at startup may be between two rows; that of gulmc lasts two seconds.
            let truth = our(ours) / MIB;
            let share = if name == "gulmc" { 0.98 } else { 0.5 };
            let least = truth * share - 3.0 / 1024.0;
            is_within(&format!("{name} {theirs}"), their(theirs), (least, truth));
            let reported = number(&line[cell]);
            is_within(&format!("{name} {theirs}"), reported, (least - 0.05, truth + 0.05));
        }
        // Rows have the kernel's clock ticks, truncated for user and for system time of each
        // instance, where the summary has nanoseconds; the statistics are rounded to a tenth, and
        // theirs include usage before exec.
        let cut_off = 0.02 * our("instances") + 0.051;
        for (theirs, ours, cell) in [
            ("total_cpu_user_s", "cpu_user_seconds", 8),
            ("total_cpu_sys_s", "cpu_system_seconds", 9),
            ("total_cpu_time_s", "cpu_time_seconds", 10),
        ] {
            let (truth, reported) = (our(ours), number(&line[cell]));
            let what = format!("{name} {theirs}");
            is_within(&what, their(theirs), (truth - cut_off, truth + 0.1));
            is_within(&what, reported, (truth - cut_off, truth + 0.06));
        }
        // Theirs is from the first row that they read to the last.
        let read = run.rows(name).into_iter().filter(|row| !row[7].is_empty());
        let times: Vec<f64> = read.map(|row| number(&row[0])).collect();
        let between = times.last().unwrap() - times[0];
        let lasted = their("duration_s");
        is_within(&format!("{name} duration"), lasted, (between - 0.01, between + 0.01));
        assert!(lasted <= our("duration_seconds") + 0.02, "{name}: {lasted} s");
        if unknown == 0 {
            for (theirs, cell) in [("peak_cpu", 7), ("avg_uss_mb", 11), ("avg_cpu", 12)] {
                let value = number(&line[cell]);
                is_within(&format!("{name} {theirs}"), their(theirs), (value - 0.11, value + 0.11));
            }
        }
    }
    let all = run.summary["figures"]["memory_uss_peak_bytes"]["value"].as_f64().unwrap() / MIB;
    let theirs = theirs["peak_total_uss_mb"].as_f64().unwrap();
    is_within("peak of all", theirs, (0.98 * all - 0.01, all));
}

#[test]
fn first_row_of_a_busy_process_has_its_cpu_utilisation() {
    let run = Exported::of(&["./fmpy", "cpu", "1s"]);
    let rows = run.rows("fmpy");
    let [busy, user, system] = [3, 4, 5].map(|cell: usize| number(&rows[0][cell]));
    // The CPU time of the row over an interval or, when a tick was late, more. The kernel counts
    // in clock ticks of 10 ms, user and system each.
    let (used, lasted) = (user + system, run.tool("fmpy")["duration_seconds"].as_f64().unwrap());
    let over = |seconds: f64| busy / 100.0 * seconds;
    is_within("CPU time of the first row", used, (over(0.2) - 0.021, over(lasted) + 0.021));
    assert!(busy > 0.0, "{rows:?}");
    assert_eq!(rows.last().unwrap()[2], rows[0][2]);
    is_within("CPU", run.tool("fmpy")["cpu_time_seconds"].as_f64().unwrap(), (0.97, 1.05));
}

#[test]
fn existing_files_stay_and_options_of_other_tools_are_refused() {
    let run = Exported::of(&["./fmpy", "sleep", "50ms"]);
    let directory = run.directory.path();
    let (code, message) = export(directory, &[]);
    assert_eq!((code, message.lines().count()), (1, 3), "{message}");
    assert!(message.contains("resource_monitor.csv already exists"), "{message}");
    let (code, message) = export(directory, &["--force"]);
    assert_eq!((code, message), (0, run.stderr.clone()));
    let (code, message) = export(directory, &["--ram-unit", "bytes"]);
    assert_eq!((code, message.lines().count()), (2, 3), "{message}");
}
