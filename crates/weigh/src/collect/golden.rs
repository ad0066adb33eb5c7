//! Every captured machine through every collector, against a golden file.
//!
//! `UPDATE=1 cargo test -p weigh golden` rewrites the golden files; the diff is the change in
//! behaviour.
#![allow(clippy::disallowed_methods, reason = "fixtures are files of the repository")]

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::process::{ProcessReader, ReadContext};
use super::pss_uss::PssUssReader;
use super::{Collector, Context, Probe, gpu, provider};
use crate::catalog::{Metric, SOURCES, Source, SourceId, Type, Value, groups};
use crate::host::fake::{FakeHost, from_hex};
use crate::host::{Host, ProcPath};
use crate::model::settings::Settings;
use crate::model::{Entity, ProcessId, Table, Tick};
use crate::parse;

pub(crate) fn machines() -> Vec<PathBuf> {
    let hosts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts");
    let mut found: Vec<PathBuf> =
        std::fs::read_dir(hosts).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

pub(crate) fn read(machine: &Path, file: &str) -> String {
    let path = machine.join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The processes of a capture, by pid.
fn processes(host: &Host, capture: &str) -> Vec<ProcessId> {
    let mut pids: Vec<u32> = capture
        .lines()
        .filter_map(|line| line.strip_prefix("=== /proc/")?.strip_suffix("/stat")?.parse().ok())
        .collect();
    pids.sort_unstable();
    let id = |pid| {
        let mut buffer = Vec::new();
        let bytes = host.proc.read(ProcPath::new(pid, "stat").as_c_str(), &mut buffer).unwrap();
        ProcessId { pid, started: parse::stat::parse(bytes).unwrap().started }
    };
    pids.into_iter().map(id).collect()
}

fn shown(metric: &Metric, value: Value) -> String {
    match (value, metric.stored) {
        (Value::U64(number), _) => number.to_string(),
        (Value::F64(number), _) => number.to_string(),
        (Value::Symbol(place), Type::Symbol(words)) => words[usize::from(place)].to_owned(),
        (Value::Symbol(_), _) => unreachable!("only symbols are stored as symbols"),
    }
}

fn write_table(out: &mut String, moment: &str, table: &Table) {
    for (row, entity) in table.entities().iter().enumerate() {
        let entity = match entity {
            Entity::Single => String::new(),
            Entity::Cpu(cpu) => format!(" {cpu}"),
            Entity::Process(id) => format!(" {} started {}", id.pid, id.started),
            Entity::Named(name) => format!(" {name}"),
            Entity::OnGpu(gpu, id) => format!(" {gpu} {} started {}", id.pid, id.started),
        };
        writeln!(out, "{moment} {}{entity}", table.scope().name()).unwrap();
        for (metric, column) in table.metrics().iter().zip(table.columns()) {
            let value = column.get(row).map_or_else(|| "null".to_owned(), |v| shown(metric, v));
            writeln!(out, "  {} {value}", metric.column()).unwrap();
        }
    }
}

/// The collector of a source, without a thread.
fn collector(source: &Source, settings: &Settings) -> Option<Box<dyn Collector>> {
    match source.id {
        SourceId::Gpu => Some(gpu::at_once(settings)),
        id => Some(provider(id)?.collector?(settings)),
    }
}

/// The rows of all collectors for both captures of a machine.
fn measured(machine: &Path) -> String {
    let (t0, t1) = (read(machine, "t0.host"), read(machine, "t1.host"));
    let fake = FakeHost::captured(&t0);
    let host = fake.host();
    let settings = Settings { per_cpu: true, ..Settings::default() };
    // weigh's own cost, its counters, its directory and the NVIDIA library are those of this test,
    // not of the capture.
    let ours = [SourceId::Own, SourceId::TaskClock, SourceId::Filesystem];
    let by_library = host.proc.has(c"driver/nvidia/version");
    let is_ours = |id| ours.contains(&id) || (by_library && id == SourceId::Gpu);
    let sources = SOURCES.iter().filter(|source| !is_ours(source.id));
    let is_here = |source: &&Source| {
        let probe = provider(source.id).unwrap().probe;
        source.everywhere || matches!(probe(&host), Probe::Ready)
    };
    let sources: Vec<_> = sources.filter(is_here).collect();
    let mut tick = Tick::new(&groups(sources.iter().copied()));
    let mut context = ReadContext::new(&host, 100);
    let mut pss_uss = PssUssReader::with_budget(1.0);
    let mut tree: Vec<ProcessReader> = processes(&host, &t0)
        .into_iter()
        .map(|id| ProcessReader::new(id, 1, b"", &context))
        .collect();
    let mut collectors: Vec<_> =
        sources.iter().filter_map(|source| collector(source, &settings)).collect();
    let mut out = String::new();
    for (second, moment) in ["t0", "t1"].into_iter().enumerate() {
        tick.begin(Duration::from_secs(second as u64));
        for process in &mut tree {
            process.read(&host, &mut context, &mut tick, || {});
        }
        pss_uss.note_change();
        pss_uss.pass(&host, &tree, &mut context, &mut tick);
        for collector in &mut collectors {
            collector.sample(&Context::of(&host), &mut tick).unwrap();
        }
        tick.tables().iter().for_each(|table| write_table(&mut out, moment, table));
        fake.load_capture(&t1);
        fake.advance(Duration::from_secs(1));
    }
    out
}

#[test]
fn captured_machines_match_their_golden_files() {
    for machine in machines() {
        assert_golden(&machine, "golden.txt", &measured(&machine));
    }
}

/// Compares with a golden file of a machine, or rewrites it.
pub(crate) fn assert_golden(machine: &Path, file: &str, is: &str) {
    let path = machine.join(file);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, is).unwrap();
    }
    let golden = read(machine, file);
    for (line, (is, was)) in is.lines().zip(golden.lines()).enumerate() {
        assert_eq!(is, was, "{}:{}", path.display(), line + 1);
    }
    assert_eq!(is.len(), golden.len(), "{}", path.display());
}

/// Runs the parser for a file of this name; other files are ignored.
fn parse_by_name(path: &str, bytes: &[u8]) {
    let outcome = match path.rsplit('/').next().unwrap_or_default() {
        "stat" if path == "/proc/stat" => parse::system_stat::parse(bytes).map(drop),
        "stat" => parse::stat::parse(bytes).map(drop),
        "status" => parse::status::parse(bytes).map(drop),
        "io" => parse::io::parse(bytes).map(drop),
        "schedstat" => parse::schedstat::parse(bytes).map(drop),
        "smaps_rollup" => parse::smaps::parse(bytes).map(drop),
        "meminfo" => parse::meminfo::parse(bytes).map(drop),
        "loadavg" => parse::loadavg::parse(bytes).map(drop),
        "dev" => parse::net_dev::devices(bytes).try_for_each(|device| device.map(drop)),
        "snmp" => parse::net_snmp::parse(bytes).map(drop),
        "diskstats" => parse::diskstats::devices(bytes).try_for_each(|disk| disk.map(drop)),
        "vmstat" => parse::vmstat::parse(bytes).map(drop),
        _ if path.starts_with("/proc/pressure/") => parse::pressure::parse(bytes).map(drop),
        "state" => parse::attribute::port_state(bytes).map(drop),
        "rate" => parse::attribute::port_rate(bytes).map(drop),
        "name" => parse::attribute::text(bytes).map(drop),
        "cpuinfo" => parse::cpuinfo::parse(bytes).map(drop),
        "os-release" => parse::os_release::parse(bytes).map(drop),
        "limits" => parse::limits::parse(bytes).map(drop),
        "size" if path.contains("/cache/") => parse::attribute::cache_size(bytes).map(drop),
        "distance" => parse::attribute::numbers(bytes).map(drop),
        "enabled" => parse::attribute::selected(bytes).map(drop),
        "speed" => parse::attribute::signed(bytes).map(drop),
        "uevent" | "information" => {
            let _ = parse::attribute::line_value(bytes, "DRIVER=");
            Ok(())
        }
        "current_link_speed" => parse::attribute::link_generation(bytes).map(drop),
        "gpu_metrics" => parse::gpu_metrics::parse(bytes).map(drop),
        "umc_err_count" => parse::attribute::error_counts(bytes).map(drop),
        _ if path.contains("/fdinfo/") => parse::drm_fdinfo::parse(bytes).map(drop),
        "online" => parse::cpulist::count(bytes).map(drop),
        _ if path.starts_with("/sys/") => parse::attribute::number(bytes).map(drop),
        _ => Ok(()),
    };
    // Ok and Err are both fine for a truncated file; a panic is not.
    let _ = outcome;
}

#[test]
fn truncated_captures_never_panic() {
    for machine in machines() {
        for entry in read(&machine, "t0.host").split("=== ").skip(1) {
            let (path, content) = entry.split_once('\n').unwrap();
            let (path, bytes) = match path.strip_suffix(" (hex)") {
                Some(binary) => (binary, from_hex(content)),
                None => (path, content.as_bytes().to_vec()),
            };
            (0..bytes.len()).for_each(|end| parse_by_name(path, &bytes[..end]));
        }
    }
}
