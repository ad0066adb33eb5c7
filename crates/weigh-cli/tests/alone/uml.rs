//! Another machine: user-mode Linux, a kernel that runs as a program on the files of this one.
//!
//! It has cgroup v2 with every controller, but no perf, no process connector, no PSI and one slow
//! CPU. Its CPU times are not those of the burner: it counts whole clock ticks.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::weighed::{Figure, MIB, burner, impossible, is_installed, output, weigh_path};

/// Mounts the file systems, runs the test's script, and shuts the machine down.
const INIT: &str = r#"#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/run
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs run /run
mount -t cgroup2 cgroup /sys/fs/cgroup
echo '+cpu +io +memory +pids' > /sys/fs/cgroup/cgroup.subtree_control
cd /run
SCRIPT
echo o > /proc/sysrq-trigger
sleep 60
"#;

/// Runs a shell script in there; `$OUT` is a directory of this machine. Returns whether this
/// machine's CPU can run that kernel: the register state of CPUs with AMX is too large for it.
fn inside(directory: &Path, script: &str) -> bool {
    let quoted = |path: &Path| format!("'{}'", path.display());
    let names = [("WEIGH", weigh_path()), ("BURNER", &burner()), ("OUT", directory)];
    let names = names.map(|(name, path)| format!("{name}={}\n", quoted(path))).concat();
    let init = directory.join("init");
    fs::write(&init, INIT.replace("SCRIPT", &format!("{names}{script}"))).unwrap();
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).unwrap();
    let disk = directory.join("disk");
    fs::File::create(&disk).unwrap().set_len(32 << 20).unwrap();
    let mut machine = Command::new("linux.uml");
    machine.current_dir(directory).args([
        "mem=512M".to_owned(),
        format!("ubd0={}", disk.display()),
        format!("uml_dir={}", directory.display()),
        "rootfstype=hostfs".to_owned(),
        "root=/dev/root".to_owned(),
        "rootflags=/".to_owned(),
        "rw".to_owned(),
        format!("init={}", init.display()),
        "con=null".to_owned(),
        "con0=null,fd:1".to_owned(),
        "quiet".to_owned(),
    ]);
    let ran = output(&mut machine);
    let message = String::from_utf8_lossy(&ran.stdout);
    if message.contains("ptrace set fp regs failed") {
        impossible("user-mode Linux cannot run on this CPU (PTRACE_SETREGSET is refused)");
        return false;
    }
    assert!(directory.join("done").exists(), "{message}\n{}", String::from_utf8_lossy(&ran.stderr));
    true
}

fn summary(directory: &Path, name: &str) -> Value {
    serde_json::from_slice(&fs::read(directory.join(name)).unwrap()).unwrap()
}

fn figure(summary: &Value, name: &str) -> Figure {
    Figure::of(&summary["figures"][name], name)
}

/// One source in the output of doctor.
fn examined<'a>(doctor: &'a Value, name: &str) -> &'a Value {
    let all = ["collectors", "watching"].map(|key| doctor[key].as_array().unwrap());
    all.into_iter().flatten().find(|one| one["name"] == name).unwrap()
}

#[test]
fn machine_with_few_sources_is_measured_and_absent_ones_have_reasons() {
    if !is_installed("linux.uml") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = r#"
$WEIGH doctor --format json > $OUT/doctor.json
$WEIGH run -q -o one -- $BURNER cpu 500ms && cp one/summary.json $OUT/one.json
$WEIGH run -q -o lost -- $BURNER children 3 300ms --ignore-sigchld
cp lost/summary.json $OUT/lost.json
$WEIGH run --no-record -- true 2> $OUT/text
$BURNER sleep 60s &
$WEIGH attach -q --for 500ms -o attached $! && cp attached/summary.json $OUT/attached.json
$WEIGH watch -q --for 500ms -o watched burner && cp watched/summary.json $OUT/watched.json
kill $!
touch $OUT/done
"#;
    if !inside(directory.path(), script) {
        return;
    }
    let doctor = summary(directory.path(), "doctor.json");
    for (name, argument) in [
        ("task-clock", "perf_event_open"),
        ("connector", "CONFIG_PROC_EVENTS"),
        ("pressure", "/proc/pressure"),
        ("energy", "powercap"),
        ("frequency", "frequency"),
    ] {
        let one = examined(&doctor, name);
        let why = one["why"].as_str().unwrap();
        assert!(one["state"] == "absent" && why.contains(argument), "{one}");
    }
    for name in ["process", "cpu", "memory", "own"] {
        assert_eq!(examined(&doctor, name)["state"], "ready", "{name}");
    }
    let one = summary(directory.path(), "one.json");
    let cpu = figure(&one, "cpu_time_seconds");
    cpu.is("exact").is_within(0.1, 0.5);
    assert!(cpu.upper.is_none() && cpu.reason.unwrap().contains("perf_event_open"));
    figure(&one, "io_read_bytes").is("exact");
    // These are auto-reaped, and no task clock counts them: they are known as far as they were
    // sampled, and not exact.
    let lost = figure(&summary(directory.path(), "lost.json"), "cpu_time_seconds");
    lost.is("sampled");
    // Their parent alone used less than a tenth of a second.
    assert!((0.1..1.0).contains(&lost.known()), "{lost:?}");
    let text = fs::read_to_string(directory.path().join("text")).unwrap();
    assert!(text.contains("not measured: task-clock: perf_event_open"), "{text}");
    figure(&summary(directory.path(), "attached.json"), "memory_peak_bytes").is("sampled");
    let watched = summary(directory.path(), "watched.json")["monitor"]["faults"].to_string();
    assert!(watched.contains("found by scanning"), "{watched}");
}

#[test]
fn cgroups_of_v2_are_attached_to_and_created() {
    if !is_installed("linux.uml") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let script = r#"
mkdir /sys/fs/cgroup/job
mkfifo go
(
    sh -c 'echo $PPID > /sys/fs/cgroup/job/cgroup.procs'
    $BURNER touch 20MiB 10ms
    read word < go
    $BURNER touch 100MiB 50ms --after 1500ms
    dd if=/dev/zero of=/dev/ubda bs=1M count=4 oflag=direct
) &
until grep -q . /sys/fs/cgroup/job/cgroup.procs; do sleep 0.05; done
$WEIGH attach -q --cgroup /job -i 60s -o followed &
until grep -q process_start followed/events.jsonl; do sleep 0.05; done
echo > go
wait
cp followed/summary.json $OUT/followed.json
$WEIGH run -q --cgroup always -i 60s -o own -- $BURNER touch 100MiB 50ms --after 1500ms
cp own/summary.json $OUT/own.json
$WEIGH run -q --cgroup always -o ignored -- sh -c "
    $BURNER children 3 300ms --ignore-sigchld
    cat /sys/fs/cgroup\$(sed -n 's/^0:://p' /proc/self/cgroup)/cpu.stat > $OUT/cpu.stat"
cp ignored/summary.json $OUT/ignored.json
$WEIGH run -q --cgroup auto -o careful -- true
cp careful/summary.json $OUT/careful.json
sh -c 'echo $$ > /sys/fs/cgroup/job/cgroup.procs; exec "$@"' - \
    $WEIGH run -q --cgroup always -i 60s -o alone -- sh -c "
        $BURNER touch 100MiB 50ms --after 1500ms
        $BURNER sleep 60s & echo \$! > daemon"
cp alone/summary.json $OUT/alone.json
grep '^0::' /proc/$(cat daemon)/cgroup > $OUT/where
kill $(cat daemon)
(cat /sys/fs/cgroup/job/cgroup.subtree_control && echo no more) > $OUT/enabled
ls -d /sys/fs/cgroup/weigh-* /sys/fs/cgroup/job/weigh-* > $OUT/left
touch $OUT/done
"#;
    if !inside(directory.path(), script) {
        return;
    }
    let followed = summary(directory.path(), "followed.json");
    assert_eq!(followed["run"]["target"]["cgroup"]["path"], "/job");
    figure(&followed, "memory_peak_bytes").is("exact").is_within(0.05, 100.0 * MIB);
    let written = figure(&followed, "io_storage_written_bytes");
    written.is("exact");
    assert_eq!(written.known(), 4.0 * MIB);
    figure(&followed, "cpu_time_seconds").is("exact");
    assert_eq!(figure(&followed, "oom_kills").known(), 0.0);
    let own = summary(directory.path(), "own.json");
    figure(&own, "memory_peak_bytes").is("exact").is_within(0.05, 100.0 * MIB);
    figure(&own, "cpu_time_seconds").is("exact");
    // That machine counts time in which it has no CPU itself, so 0.9 s may be more there: what its
    // kernel has counted is the truth, but for the exit of the shell that read it.
    let ignored = figure(&summary(directory.path(), "ignored.json"), "cpu_time_seconds");
    let counted = fs::read_to_string(directory.path().join("cpu.stat")).unwrap();
    let counted = counted.lines().find_map(|line| line.strip_prefix("usage_usec ")).unwrap();
    let counted = counted.parse::<f64>().unwrap() / 1e6;
    assert!(counted > 0.85, "the children had 0.3 s each by their own clocks: {counted}");
    let exit_of_the_shell = ignored.is("exact").known() - counted;
    assert!((0.0..0.1).contains(&exit_of_the_shell), "{ignored:?} is not {counted}");
    // Alone in its cgroup, weigh moves itself to a leaf for the command, and back afterwards.
    let alone = summary(directory.path(), "alone.json");
    figure(&alone, "memory_peak_bytes").is("exact").is_within(0.05, 100.0 * MIB);
    let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
    assert_eq!((read("where").as_str(), read("enabled").as_str()), ("0::/job\n", "no more\n"));
    let careful = summary(directory.path(), "careful.json")["monitor"]["faults"].to_string();
    assert!(careful.contains("one share"), "{careful}");
    assert_eq!(read("left"), "", "nothing is left");
}
