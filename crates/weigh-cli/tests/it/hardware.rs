//! The hardware of this machine, against lscpu and against what the command inherits.

use std::process::Command;

use serde_json::Value;

use crate::weighed::{impossible, output, plain, skipped, weigh, weigh_path};

fn described(arguments: &[&str]) -> Value {
    let directory = tempfile::tempdir().unwrap();
    let arguments = [&["doctor", "--hardware", "--format", "json"], arguments].concat();
    let message = output(&mut weigh(directory.path(), &arguments));
    assert_eq!(message.status.code(), Some(0), "{message:?}");
    serde_json::from_slice(&message.stdout).unwrap()
}

/// A field of lscpu, which is flat or a tree, as its version has it.
fn field<'a>(fields: &'a Value, name: &str) -> Option<&'a str> {
    fields.as_array()?.iter().find_map(|one| match one["field"].as_str() == Some(name) {
        true => one["data"].as_str(),
        false => field(&one["children"], name),
    })
}

#[test]
fn hardware_agrees_with_lscpu() {
    let Ok(message) = Command::new("lscpu").arg("-J").env("LC_ALL", "C").output() else {
        return skipped("there is no lscpu to compare with");
    };
    let Ok(lscpu) = serde_json::from_slice::<Value>(&message.stdout) else {
        return impossible("this lscpu cannot print JSON");
    };
    let hardware = described(&[])["hardware"].take();
    let cpu = &hardware["cpu"];
    let mut compared = 0;
    for (name, ours) in [
        ("CPU(s):", &cpu["cpus"]),
        ("Socket(s):", &cpu["sockets"]),
        ("Core(s) per socket:", &cpu["cores_per_socket"]),
        ("Thread(s) per core:", &cpu["threads_per_core"]),
        ("Vendor ID:", &cpu["vendor"]),
        ("Model name:", &cpu["model_name"]),
        ("CPU family:", &cpu["family"]),
        ("Stepping:", &cpu["stepping"]),
    ] {
        let Some(theirs) = field(&lscpu["lscpu"], name) else { continue };
        let ours = ours.as_str().map_or_else(|| ours.to_string(), str::to_owned);
        assert_eq!(ours, theirs, "{name}");
        compared += 1;
    }
    assert!(compared >= 4, "{lscpu}");
    if let Some(nodes) = field(&lscpu["lscpu"], "NUMA node(s):") {
        assert_eq!(hardware["numa_nodes"].as_array().unwrap().len().to_string(), nodes);
    }
}

#[test]
fn recording_has_the_hardware_and_on_request_the_limits() {
    let directory = tempfile::tempdir().unwrap();
    let mut shell = plain("sh", directory.path());
    let line = "ulimit -n 321; \"$1\" run -q -o plain -- true && \"$1\" run -q --limits -o asked -- true \
         && \"$1\" run -q --env -o old-name -- true";
    shell.args(["-c", line, "sh"]).arg(weigh_path());
    shell.env("LOADEDMODULES", "gcc/12.2.0:/home/someone").env("TOKEN", "hunter2");
    assert!(output(&mut shell).status.success());
    let read = |name: &str| {
        let text = std::fs::read_to_string(directory.path().join(name).join("run.json")).unwrap();
        assert!(!text.contains("hunter2") && !text.contains("/home/someone"), "{text}");
        serde_json::from_str::<Value>(&text).unwrap()
    };
    let (plain, with_limits) = (read("plain"), read("asked"));
    assert_eq!(plain["hardware"]["cpu"], described(&[])["hardware"]["cpu"]);
    assert!(plain.get("surroundings").is_none());
    let surroundings = &with_limits["surroundings"];
    assert_eq!(surroundings, &read("old-name")["surroundings"]);
    // weigh raises its own limit; the recorded one is the command's.
    assert_eq!(surroundings["limits"]["Max open files"]["soft"], 321);
    assert!(surroundings["cpus_allowed"].is_string(), "{surroundings}");
    assert_eq!(surroundings["modules"], serde_json::json!(["gcc/12.2.0"]));
}

#[test]
fn other_machine_is_described_by_its_files_alone() {
    let root = tempfile::tempdir().unwrap();
    for file in ["proc/sys/kernel/osrelease", "sys/devices/system/cpu/online"] {
        let path = root.path().join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, if file.ends_with("online") { "0-3\n" } else { "9.9\n" }).unwrap();
    }
    let hardware = described(&["--host-root", root.path().to_str().unwrap()])["hardware"].take();
    assert_eq!((&hardware["kernel"], &hardware["cpu"]["cpus"]), (&"9.9".into(), &4.into()));
    assert!(hardware["cpu"]["vendor"].is_null() && hardware["container"].is_null(), "{hardware}");
    assert_eq!(hardware["missing"]["cpu.vendor"], "there is no /proc/cpuinfo");
}
