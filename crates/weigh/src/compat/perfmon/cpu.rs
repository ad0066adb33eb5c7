//! `cpu_metrics.json`: a list for each metric of each node, sums over the processes of the job and
//! counters of the machine.
//!
//! Sums are those of `summary` (`RunTotals`), so that they are the same as in every other output:
//! each metric is summed by itself, over each process once. `cpu_time` is user and system time with
//! that of processes that have exited; perfmon has only user time of those that live.
//! `memory_info.rss` counts shared pages for each process. `net_io_counters` are of all devices of
//! the machine, as psutil sums them; bytes of `ib_io_counters` are bytes, and packets are packets.
//! `rapl_powercap` counts from some moment before the run.
//!
//! What surprised us: a rate needs two samples, so the first one of a recording has no row.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::group_rows::{GroupRows, ListColumn, ListContent};
use super::seconds::Seconds;
use super::spooled_rows::SpooledRows;
use crate::catalog::metrics::{DomainEnergy, NetworkTraffic, NodeCpu, PortTraffic};
use crate::catalog::{Scope, all_groups};
use crate::export::Error;
use crate::model::{Entity, Tick};
use crate::record::{Moment, Recording};
use crate::summary::{Accumulator, RunTotals};

/// A rate over less than ten clock ticks of the kernel says nothing.
const SHORTEST: Duration = Duration::from_millis(100);

/// One sample of a node.
struct NodeSample<'a> {
    second: u64,
    totals: RunTotals,
    /// Of one CPU of the machine: the processes, and all.
    cpu_ratio: Option<f64>,
    machine_ratio: Option<f64>,
    memory_bytes: Option<u64>,
    tick: &'a Tick,
}

/// A value of a sample.
enum NodeValue {
    Whole(fn(&NodeSample<'_>) -> Option<u64>),
    Real(fn(&NodeSample<'_>) -> Option<f64>),
    EmptyList,
    EmptyMap,
}

/// A list: its key, the key inside of it, the head of its column, and its value of a sample.
struct NodeList(&'static str, Option<&'static str>, &'static str, NodeValue);

/// Sockets and parts of them with an energy counter, as perfmon has them at most.
const SOCKETS: usize = 8;
const DOMAINS: [&str; 4] = ["core", "dram", "package", "uncore"];

/// All other lists of a node, in the order of their keys. Virtual and shared memory
/// (`memory_info.vms` and `shared`) are not measured.
const LISTS: [NodeList; 23] = [
    NodeList("child_proc_md", None, "", NodeValue::EmptyList),
    NodeList(
        "cpu_percent",
        None,
        "CPU percent [%]",
        NodeValue::Real(|sample| sample.cpu_ratio.map(|ratio| ratio * 100.0)),
    ),
    NodeList(
        "cpu_percent_sys",
        None,
        "CPU percent system wide [%]",
        NodeValue::Real(|sample| sample.machine_ratio.map(|ratio| ratio * 100.0)),
    ),
    NodeList("cpu_time", None, "CPU time [s]", NodeValue::Real(|sample| sample.totals.cpu.cpu)),
    NodeList(
        "ib_io_counters",
        Some("port_rcv_data"),
        "IB recv data [bytes]",
        NodeValue::Whole(|sample| ports(sample.tick, |port| port.received)),
    ),
    NodeList(
        "ib_io_counters",
        Some("port_rcv_packets"),
        "IB recv packets",
        NodeValue::Whole(|sample| ports(sample.tick, |port| port.packets_received)),
    ),
    NodeList(
        "ib_io_counters",
        Some("port_xmit_data"),
        "IB xmit data [bytes]",
        NodeValue::Whole(|sample| ports(sample.tick, |port| port.sent)),
    ),
    NodeList(
        "ib_io_counters",
        Some("port_xmit_packets"),
        "IB xmit packets",
        NodeValue::Whole(|sample| ports(sample.tick, |port| port.packets_sent)),
    ),
    NodeList(
        "io_counters",
        Some("read_bytes"),
        "IO read [bytes]",
        NodeValue::Whole(|sample| sample.totals.io.storage_read),
    ),
    NodeList(
        "io_counters",
        Some("read_count"),
        "IO read count",
        NodeValue::Whole(|sample| sample.totals.io.read_calls),
    ),
    NodeList(
        "io_counters",
        Some("write_bytes"),
        "IO write [bytes]",
        NodeValue::Whole(|sample| sample.totals.io.storage_written),
    ),
    NodeList(
        "io_counters",
        Some("write_count"),
        "IO write count",
        NodeValue::Whole(|sample| sample.totals.io.write_calls),
    ),
    NodeList(
        "memory_full_info",
        Some("swap"),
        "Memory swap [bytes]",
        NodeValue::Whole(|sample| sample.totals.memory.swap),
    ),
    NodeList(
        "memory_full_info",
        Some("uss"),
        "Memory USS [bytes]",
        NodeValue::Whole(|sample| sample.totals.memory.uss),
    ),
    NodeList(
        "memory_info",
        Some("rss"),
        "Memory RSS [bytes]",
        NodeValue::Whole(|sample| sample.totals.memory.rss),
    ),
    NodeList(
        "memory_percent",
        None,
        "Memory percent [%]",
        NodeValue::Real(|sample| {
            let all = sample.memory_bytes.filter(|bytes| *bytes > 0)?;
            Some(sample.totals.memory.rss? as f64 / all as f64 * 100.0)
        }),
    ),
    NodeList(
        "net_io_counters",
        Some("bytes_recv"),
        "Network recv [bytes]",
        NodeValue::Whole(|sample| devices(sample.tick, |device| device.received)),
    ),
    NodeList(
        "net_io_counters",
        Some("bytes_sent"),
        "Network sent [bytes]",
        NodeValue::Whole(|sample| devices(sample.tick, |device| device.sent)),
    ),
    NodeList(
        "net_io_counters",
        Some("packets_recv"),
        "Network recv packets",
        NodeValue::Whole(|sample| devices(sample.tick, |device| device.packets_received)),
    ),
    NodeList(
        "net_io_counters",
        Some("packets_sent"),
        "Network sent packets",
        NodeValue::Whole(|sample| devices(sample.tick, |device| device.packets_sent)),
    ),
    NodeList(
        "num_fds",
        None,
        "Number of file descriptors",
        NodeValue::Whole(|sample| sample.totals.processes.files_open),
    ),
    NodeList(
        "num_threads",
        None,
        "Number of threads",
        NodeValue::Whole(|sample| sample.totals.processes.threads),
    ),
    NodeList("parent_proc_md", None, "", NodeValue::EmptyMap),
];

/// How many values a row has: those lists, the energy domains, and the time.
const WIDTH: usize = LISTS.len() + DOMAINS.len() * SOCKETS + 1;

/// The lists as columns.
pub(super) fn columns() -> Vec<ListColumn> {
    let lists = LISTS.iter().map(|NodeList(key, part, header, value)| ListColumn {
        key,
        part: part.map(str::to_owned),
        header: (*header).to_owned(),
        content: match value {
            NodeValue::Whole(_) => ListContent::Whole,
            NodeValue::Real(_) => ListContent::Real,
            NodeValue::EmptyList => ListContent::EmptyList,
            NodeValue::EmptyMap => ListContent::EmptyMap,
        },
        is_optional: *key == "ib_io_counters",
    });
    let energy = DOMAINS.iter().flat_map(|domain| {
        (0..SOCKETS).map(move |socket| ListColumn {
            key: "rapl_powercap",
            part: Some(format!("{domain}-{socket}")),
            header: format!("RAPL {domain} {socket} [uJ]"),
            content: ListContent::Whole,
            is_optional: true,
        })
    });
    let time = ListColumn {
        key: "time_stamps",
        part: None,
        header: "Timestamps".to_owned(),
        content: ListContent::Whole,
        is_optional: false,
    };
    lists.chain(energy).chain([time]).collect()
}

/// A sum over rows, if at least one of them has a value.
fn sum(values: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    values.flatten().reduce(u64::saturating_add)
}

fn ports(tick: &Tick, of: fn(&PortTraffic) -> Option<u64>) -> Option<u64> {
    sum(tick.table(Scope::IbPort)?.rows::<PortTraffic>().map(|(_, row)| of(&row)))
}

fn devices(tick: &Tick, of: fn(&NetworkTraffic) -> Option<u64>) -> Option<u64> {
    sum(tick.table(Scope::Nic)?.rows::<NetworkTraffic>().map(|(_, row)| of(&row)))
}

/// The microjoules of all domains, by their places.
fn energy(tick: &Tick) -> [Option<u64>; DOMAINS.len() * SOCKETS] {
    let mut all = [None; DOMAINS.len() * SOCKETS];
    let Some(table) = tick.table(Scope::Energy) else { return all };
    for (entity, row) in table.rows::<DomainEnergy>() {
        let Entity::Named(name) = entity else { continue };
        let joules = row.used.filter(|joules| *joules >= 0.0);
        if let (Some(place), Some(joules)) = (energy_place(name.as_str()), joules) {
            all[place] = Some((joules * 1e6).round() as u64);
        }
    }
    all
}

/// The place of a domain such as `package-0` or `package-0/dram`.
fn energy_place(name: &str) -> Option<usize> {
    let (package, domain) = name.split_once('/').unwrap_or((name, "package"));
    let socket: usize = package.strip_prefix("package-")?.parse().ok()?;
    let domain = DOMAINS.iter().position(|known| *known == domain)?;
    (socket < SOCKETS).then_some(domain * SOCKETS + socket)
}

/// What rates are taken from.
#[derive(Debug, Clone, Copy)]
struct RateBase {
    at: Duration,
    cpu: Option<f64>,
    /// Busy, and all time of the machine's CPUs.
    machine: Option<(f64, f64)>,
}

/// Adds the rows of a node to those of all.
pub(super) fn add(
    recording: &Recording,
    mut seconds: Seconds,
    directory: &Path,
    all: &mut GroupRows,
) -> Result<(), Error> {
    let failed = |source| Error::file(directory, source);
    let manifest = recording.manifest();
    let mut accumulator = Accumulator::for_recording(recording);
    let mut rows = SpooledRows::<WIDTH>::create(directory).map_err(failed)?;
    let (mut before, mut written): (Option<RateBase>, io::Result<()>) = (None, Ok(()));
    recording.replay(&all_groups(), |frame| {
        accumulator.frame(frame);
        let Moment::Tick(tick) = frame.moment else { return };
        if !tick.is_complete() || written.is_err() {
            return;
        }
        let totals = accumulator.totals(frame.live);
        let node = tick.table(Scope::Node).and_then(|table| table.rows::<NodeCpu>().next());
        let now = RateBase {
            at: tick.at,
            cpu: totals.cpu.cpu,
            machine: node.and_then(|(_, row)| row.busy_and_all()),
        };
        let base = *before.get_or_insert(now);
        if now.at.saturating_sub(base.at) < SHORTEST {
            return;
        }
        let Some(second) = seconds.of(tick.at) else { return };
        before = Some(now);
        let sample = NodeSample {
            second,
            totals,
            cpu_ratio: cpu_ratio(base, now),
            machine_ratio: machine_ratio(base, now),
            memory_bytes: manifest.host.memory_bytes,
            tick,
        };
        written = rows.put(row(&sample));
    })?;
    written.map_err(failed)?;
    all.add_host(&manifest.host.name, |put| rows.each_row(|row| put(row))).map_err(failed)
}

fn cpu_ratio(base: RateBase, now: RateBase) -> Option<f64> {
    let used = (now.cpu? - base.cpu?).max(0.0);
    Some(used / now.at.saturating_sub(base.at).as_secs_f64())
}

fn machine_ratio(base: RateBase, now: RateBase) -> Option<f64> {
    let ((busy, all), (busy_before, all_before)) = (now.machine?, base.machine?);
    let passed = all - all_before;
    (passed > 0.0).then(|| ((busy - busy_before) / passed).clamp(0.0, 1.0))
}

fn row(sample: &NodeSample<'_>) -> [Option<u64>; WIDTH] {
    let mut row = [None; WIDTH];
    for (cell, NodeList(.., value)) in row.iter_mut().zip(&LISTS) {
        *cell = match value {
            NodeValue::Whole(of) => of(sample),
            NodeValue::Real(of) => of(sample).map(f64::to_bits),
            NodeValue::EmptyList | NodeValue::EmptyMap => None,
        };
    }
    let energy = energy(sample.tick);
    row[LISTS.len()..LISTS.len() + energy.len()].copy_from_slice(&energy);
    row[WIDTH - 1] = Some(sample.second);
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_the_order_of_their_keys() {
        let names = columns().into_iter().map(|column| (column.key, column.part));
        assert!(names.is_sorted());
        assert_eq!(columns().len(), WIDTH);
    }

    #[test]
    fn energy_domains_have_perfmons_names() {
        let name =
            |name| energy_place(name).map(|place| columns()[LISTS.len() + place].part.clone());
        let named = |name: &str| Some(Some(name.to_owned()));
        assert_eq!(name("package-1"), named("package-1"));
        assert_eq!(name("package-0/dram"), named("dram-0"));
        assert_eq!((name("psys"), name("package-9"), name("package-0/x")), (None, None, None));
    }
}
