//! `weigh run --cgroup`: the command in its own cgroup, and commands in a cgroup with a limit.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde_json::Value;
use tempfile::TempDir;

use crate::test_cgroups::{Group, resume};
use crate::weighed::{
    Figure, MIB, PublicPrograms, end_of, impossible, is_alive, is_root, output, signal, skipped,
    wait_until, weigh,
};

/// The summary of a command that runs in a test's cgroup.
struct Weighed {
    directory: TempDir,
    status: ExitStatus,
    summary: Value,
}

impl Weighed {
    fn figure(&self, name: &str) -> Figure {
        Figure::of(&self.summary["figures"][name], name)
    }

    fn finding(&self, code: &str) -> Option<&Value> {
        self.summary["findings"].as_array().unwrap().iter().find(|one| one["code"] == code)
    }

    fn faults(&self) -> String {
        self.summary["monitor"]["faults"].to_string()
    }
}

fn weighed(group: &Group, options: &str, command: &str) -> Weighed {
    let directory = tempfile::tempdir().unwrap();
    let script = format!("exec $WEIGH run -q -o out {options} -- {command}");
    let mut shell = group.shell(directory.path(), ":", &script);
    resume(&mut shell);
    let status = end_of(shell).status;
    let summary = fs::read(directory.path().join("out/summary.json")).unwrap();
    Weighed { directory, status, summary: serde_json::from_slice(&summary).unwrap() }
}

#[test]
fn memory_spike_between_samples_is_exact_and_no_cgroup_is_left_behind() {
    let Some(group) = Group::new() else { return };
    let command = "$BURNER touch 200MiB 50ms --after 1500ms";
    for how in ["always", "auto"] {
        let run = weighed(&group, &format!("--cgroup {how} -i 60s"), command);
        assert!(run.status.success());
        run.figure("memory_peak_bytes").is("exact").is_within(0.03, 200.0 * MIB);
        let source = &run.summary["figures"]["memory_peak_bytes"]["source"];
        assert!(source.as_str().unwrap().contains("memory.peak"), "{source}");
        assert!(run.figure("memory_cache_peak_bytes").known() < 20.0 * MIB);
        assert_eq!(run.faults(), "[]");
        assert_eq!(group.below(), Vec::<std::path::PathBuf>::new());
    }
}

#[test]
fn cpu_pressure_is_that_of_the_command_alone() {
    let Some(group) = Group::new() else { return };
    let pressure = std::path::Path::new("/sys/fs/cgroup/unified/cpu.pressure");
    if !pressure.exists() {
        return impossible("there is no cgroup v2 beside cgroup v1");
    }
    let waited = |command: &str| {
        let run = weighed(&group, "--cgroup always", command);
        let tables = output(
            weigh(run.directory.path(), &["export", "out", "--formats", "csv"])
                .args(["--table", "cgroup", "-o", "tables"]),
        );
        assert!(tables.status.success(), "{tables:?}");
        let table = fs::read_to_string(run.directory.path().join("tables/cgroup.csv")).unwrap();
        let mut lines = table.lines();
        let names = lines.next().unwrap().split(',');
        let place = names.clone().position(|name| name == "pressure_cpu_some_seconds").unwrap();
        lines.last().unwrap().split(',').nth(place).unwrap().parse::<f64>().unwrap()
    };
    // A sleeping process does not wait for a CPU, whatever else the machine does.
    assert!(waited("$BURNER sleep 500ms") < 0.25);
    // Two busy processes share one CPU.
    let two = "taskset -c 0 sh -c '$BURNER cpu 500ms & $BURNER cpu 500ms & wait'";
    let waited = waited(two);
    assert!(waited > 0.4, "{waited}");
}

#[test]
fn process_that_leaves_the_cgroup_is_counted_as_without_one() {
    let Some(group) = Group::new() else { return };
    let leave = group.places().map(|place| {
        let outside = place.parent().unwrap().join("cgroup.procs");
        format!("echo $$ > {};", outside.display())
    });
    let script =
        format!("sh -c '{} $BURNER cpu 500ms; $BURNER touch 100MiB 300ms'", leave.concat());
    let run = weighed(&group, "--cgroup always -i 50ms", &script);
    run.figure("cpu_time_seconds").is("exact");
    assert!(run.figure("cpu_time_seconds").known() > 0.5, "{}", run.summary["figures"]);
    assert!(run.figure("memory_peak_bytes").known() > 90.0 * MIB, "{}", run.summary["figures"]);
}

#[test]
fn peak_of_processes_together_is_exact_however_short_they_are() {
    let Some(group) = Group::new() else { return };
    let command = "sh -c 'sleep 1.2; $BURNER private 50MiB 3 150ms'";
    let run = weighed(&group, "--cgroup always -i 60s", command);
    run.figure("memory_peak_bytes").is("exact").is_within(0.05, 150.0 * MIB);
}

#[test]
fn cpu_time_of_auto_reaped_children_is_exact_without_a_task_clock() {
    let Some(group) = Group::new() else { return };
    let command = "$BURNER children 10 60ms --ignore-sigchld";
    let run = weighed(&group, "--cgroup always --skip task-clock", command);
    let cpu = run.figure("cpu_time_seconds");
    cpu.is("exact");
    assert!((cpu.known() - 0.6).abs() < 0.06, "{cpu:?}");
    assert_eq!(cpu.lower, cpu.upper);
    // The summary can be made again from the other files.
    fs::remove_file(run.directory.path().join("out/summary.json")).unwrap();
    let shown = ["show", "out", "--format", "json"];
    let again = output(&mut weigh(run.directory.path(), &shown));
    let again: Value = serde_json::from_slice(&again.stdout).unwrap();
    assert_eq!(again["figures"], run.summary["figures"]);
}

#[test]
fn daemon_that_stays_is_moved_back_to_the_parent_cgroup() {
    let Some(group) = Group::new() else { return };
    let command = "sh -c '$BURNER sleep 60s & echo $! > daemon'";
    let run = weighed(&group, "--cgroup always", command);
    let daemon: u32 =
        fs::read_to_string(run.directory.path().join("daemon")).unwrap().trim().parse().unwrap();
    assert!(is_alive(daemon));
    let groups = fs::read_to_string(format!("/proc/{daemon}/cgroup")).unwrap();
    let memory = groups.lines().find(|line| line.contains(":memory:")).unwrap();
    assert!(memory.ends_with(&group.path()), "{memory}");
    assert!(group.below().is_empty(), "{:?}", group.below());
}

#[test]
fn command_that_cannot_start_leaves_no_cgroup_behind() {
    let Some(group) = Group::new() else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("broken"), "#!/no/such/interpreter\n").unwrap();
    let script = "chmod +x broken; exec $WEIGH run -q -o out --cgroup always -- ./broken";
    let mut shell = group.shell(directory.path(), ":", script);
    resume(&mut shell);
    assert_eq!(end_of(shell).status.code(), Some(127));
    assert!(group.below().is_empty());
    assert!(!directory.path().join("out").exists());
}

#[test]
fn cgroup_of_a_killed_weigh_is_removed_by_the_next() {
    let Some(group) = Group::new() else { return };
    let directory = tempfile::tempdir().unwrap();
    let script = "exec $WEIGH run -q --no-record --cgroup always -- $BURNER sleep 60s";
    let mut shell = group.shell(directory.path(), ":", script);
    resume(&mut shell);
    let memory = |path: &std::path::PathBuf| path.starts_with("/sys/fs/cgroup/memory");
    let mut sleeper = Vec::new();
    wait_until("the command is in its group", || {
        let listed = group.below().into_iter().find(memory);
        let listed = listed.and_then(|own| fs::read_to_string(own.join("cgroup.procs")).ok());
        sleeper = listed.iter().flat_map(|pids| pids.lines()).map(str::to_owned).collect();
        !sleeper.is_empty()
    });
    shell.kill().unwrap();
    end_of(shell);
    assert!(!group.below().is_empty(), "no weigh could remove it");
    let pid: u32 = sleeper[0].parse().unwrap();
    signal(pid, libc::SIGKILL);
    wait_until("the command is gone", || !is_alive(pid));
    weighed(&group, "--cgroup always", "true");
    assert!(group.below().is_empty(), "{:?}", group.below());
}

#[test]
fn below_a_limit_no_cgroup_is_created_unless_requested() {
    let Some(group) = Group::new() else { return };
    fs::write(group.places()[0].join("memory.limit_in_bytes"), "1073741824").unwrap();
    let run = weighed(&group, "--cgroup auto", "$BURNER touch 20MiB 50ms");
    assert!(run.status.success());
    assert!(run.faults().contains("below a limit"), "{}", run.faults());
    assert_eq!(run.summary["host"]["memory_limit_bytes"], 1 << 30);
    let forced = weighed(&group, "--cgroup always", "$BURNER touch 20MiB 50ms");
    forced.figure("memory_peak_bytes").is("exact");
}

#[test]
fn command_killed_by_the_oom_killer_is_named() {
    let Some(group) = Group::new() else { return };
    fs::write(group.places()[0].join("memory.limit_in_bytes"), "67108864").unwrap();
    for how in ["never", "always"] {
        let run = weighed(&group, &format!("--cgroup {how}"), "$BURNER touch 300MiB 1s");
        assert_eq!(run.status.code(), Some(137), "{:?}", run.status.signal());
        let finding = run.finding("memory.killed").unwrap_or_else(|| panic!("{}", run.summary));
        let sentence = finding["sentence"].as_str().unwrap();
        assert!(sentence.starts_with("The kernel killed burner ("), "{sentence}");
        assert!(sentence.ends_with("the limit of its cgroup is 64.0 MiB."), "{sentence}");
        assert_eq!(finding["evidence"]["kills"], 1);
        assert!(run.finding("run.killed").is_none(), "one reason is enough");
        assert!(group.below().is_empty());
    }
    // Only the parent gets the exit status of a child; the kernel counts OOM kills.
    for how in ["never", "always"] {
        let script = "sh -c '$BURNER touch 300MiB 1s; exit 0'";
        let run = weighed(&group, &format!("--cgroup {how}"), script);
        let finding = run.finding("memory.killed").unwrap_or_else(|| panic!("{}", run.summary));
        let sentence = finding["sentence"].as_str().unwrap();
        assert!(sentence.starts_with("The kernel killed burner ("), "{sentence}");
        assert!(run.finding("memory.near_limit").is_none(), "it was reached");
    }
    // A SIGKILL of another process is not an OOM kill.
    let other = weighed(&group, "", "$BURNER signal 9");
    assert!(other.finding("memory.killed").is_none() && other.finding("run.killed").is_some());
}

#[test]
fn missing_permission_for_a_cgroup_is_reported_before_the_command_starts() {
    if !is_root() {
        return skipped("needs root, to become an unprivileged user");
    }
    let (programs, directory) = (PublicPrograms::new(), tempfile::tempdir().unwrap());
    let mut command = programs.command("weigh", directory.path());
    let refused = output(command.args(["run", "--no-record", "--cgroup", "always", "--", "true"]));
    let stderr = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{stderr}");
    let what = "weigh: cannot create a cgroup for the command\n  cause: ";
    assert!(stderr.starts_with(what) && stderr.lines().count() == 3, "{stderr}");
    let mut command = programs.command("weigh", directory.path());
    let quiet = output(command.args(["run", "--no-record", "--cgroup", "auto", "--", "true"]));
    assert!(quiet.status.success());
}
