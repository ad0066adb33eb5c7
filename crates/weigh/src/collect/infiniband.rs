//! InfiniBand, RoCE and Omni-Path traffic, one row for each port.
//!
//! Source: `/sys/class/infiniband/DEVICE/ports/N/`, readable by every user. The kernel counts data
//! in words of four bytes; rows have bytes. A port has rows once it was active; one that goes down
//! later has rows with that state.
//!
//! What surprised us: with RoCE these count traffic that bypasses the kernel, and the network
//! device of the same port counts the rest. Old adapters have 32-bit counters that saturate at the
//! largest number, which is then no valid value; where the kernel has `counters_ext` (until 4.5)
//! the 64-bit ones are there. Each read queries the firmware, so they are read at most ten times a
//! second.

use std::ffi::CString;
use std::time::Duration;

use super::min_interval::MinInterval;
use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::{PortState, PortTraffic};
use crate::host::{self, CachedPath, Descriptors, Host};
use crate::model::{Entity, Name, Tick};
use crate::parse::{MalformedFile, attribute};

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Infiniband,
    probe,
    collector: Some(|_| Box::new(InfinibandCollector::new())),
    descriptors: CACHED_FILES,
};

/// Cached files; those of further ports are opened each time.
const CACHED_FILES: usize = 96;

const READ_INTERVAL: Duration = Duration::from_millis(100);

fn probe(host: &Host) -> Probe {
    let mut ports = Port::all(host);
    if ports.is_empty() {
        return Probe::Absent { why: "there is no InfiniBand adapter".to_owned() };
    }
    let mut reader = PortReader { host, buffer: &mut Vec::new(), fault: None };
    if ports.iter_mut().any(|port| matches!(reader.state(port), Ok(Some(PortState::ACTIVE)))) {
        Probe::Ready
    } else {
        let names: Vec<String> = ports.iter().map(|port| port.name.to_string()).collect();
        Probe::Absent { why: format!("no InfiniBand port is active: {}", names.join(", ")) }
    }
}

/// The counters of a port, in the order of the row: data, then the others.
const COUNTERS: [&str; 8] = [
    "port_rcv_data",
    "port_xmit_data",
    "port_rcv_packets",
    "port_xmit_packets",
    "port_xmit_wait",
    "port_rcv_errors",
    "port_xmit_discards",
    "link_downed",
];

/// How many of the counters have a 64-bit variant on old kernels.
const WIDE: usize = 4;

struct Port {
    name: Name,
    state: CachedPath,
    rate: CachedPath,
    counters: [CachedPath; 8],
    /// The last row; `None` while it was never active.
    last: Option<PortTraffic>,
}

impl Port {
    fn all(host: &Host) -> Vec<Port> {
        let allowance = Descriptors::at_most(CACHED_FILES);
        let mut ports = Vec::new();
        for device in host.sys.names(c"class/infiniband").unwrap_or_default() {
            let listed = [b"class/infiniband/", device.to_bytes(), b"/ports"].concat();
            let listed = CString::new(listed).unwrap_or_default();
            for number in host.sys.names(&listed).unwrap_or_default() {
                let name = Name::joined(&[device.to_bytes(), b"/", number.to_bytes()]);
                let port = [listed.to_bytes(), b"/", number.to_bytes(), b"/"].concat();
                ports.push(Port::at(host, name, &port, &allowance));
            }
        }
        ports
    }

    fn at(host: &Host, name: Name, port: &[u8], allowance: &Descriptors) -> Port {
        let at = |file: &str| CString::new([port, file.as_bytes()].concat()).unwrap_or_default();
        let cached = |file: &str| CachedPath::new(at(file), allowance);
        let counters = std::array::from_fn(|place| {
            let wide = format!("counters_ext/{}_64", COUNTERS[place]);
            if place < WIDE && host.sys.has(&at(&wide)) {
                cached(&wide)
            } else {
                cached(&format!("counters/{}", COUNTERS[place]))
            }
        });
        Port { name, state: cached("state"), rate: cached("rate"), counters, last: None }
    }
}

struct InfinibandCollector {
    ports: Option<Vec<Port>>,
    interval: MinInterval,
    buffer: Vec<u8>,
}

impl InfinibandCollector {
    fn new() -> InfinibandCollector {
        InfinibandCollector {
            ports: None,
            interval: MinInterval::of(READ_INTERVAL),
            buffer: Vec::new(),
        }
    }
}

impl Collector for InfinibandCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let ports = self.ports.get_or_insert_with(|| Port::all(host));
        let mut reader = PortReader { host, buffer: &mut self.buffer, fault: None };
        let is_due = self.interval.is_due(tick.at);
        ports.retain_mut(|port| {
            if is_due {
                match reader.read_port(port) {
                    Ok(row) => port.last = row,
                    Err(AdapterGone) => return false,
                }
            }
            if let Some(row) = &port.last {
                tick.put(Entity::Named(port.name), row);
            }
            true
        });
        reader.fault.map_or(Ok(()), |why| Err(Fault::Skip(why)))
    }
}

/// The adapter was removed.
struct AdapterGone;

struct PortReader<'a> {
    host: &'a Host,
    buffer: &'a mut Vec<u8>,
    /// The first parse error.
    fault: Option<String>,
}

impl PortReader<'_> {
    /// The value in a file; `None` if the adapter does not count it.
    fn value<T>(
        &mut self,
        file: &mut CachedPath,
        parse: impl Fn(&[u8]) -> Result<T, MalformedFile>,
    ) -> Result<Option<T>, host::Error> {
        let bytes = file.read(&self.host.sys, self.buffer)?;
        match parse(bytes) {
            Ok(value) => Ok(Some(value)),
            Err(wrong) => {
                let path = self.host.sys.path(file.path());
                self.fault.get_or_insert_with(|| format!("{}: {wrong}", path.display()));
                Ok(None)
            }
        }
    }

    fn state(&mut self, port: &mut Port) -> Result<Option<PortState>, AdapterGone> {
        let name = |bytes: &[u8]| attribute::port_state(bytes).map(PortState::from_name);
        match self.value(&mut port.state, name) {
            Err(error) if error.is_gone() => Err(AdapterGone),
            state => Ok(state.ok().flatten().flatten()),
        }
    }

    /// The row of a port that is or was active.
    fn read_port(&mut self, port: &mut Port) -> Result<Option<PortTraffic>, AdapterGone> {
        let state = self.state(port)?;
        if port.last.is_none() && state != Some(PortState::ACTIVE) {
            return Ok(None);
        }
        // A missing or saturated counter does not affect the others.
        let mut counts: [Option<u64>; 8] = [None; 8];
        for (count, file) in counts.iter_mut().zip(&mut port.counters) {
            let number = self.value(file, attribute::number).ok().flatten();
            *count = number.filter(|number| *number != u64::from(u32::MAX));
        }
        let words = |words: Option<u64>| words.and_then(|words| words.checked_mul(4));
        let rate = self.value(&mut port.rate, attribute::port_rate).ok().flatten();
        let [received, sent, packets_received, packets_sent, rest @ ..] = counts;
        let [send_wait, errors_received, discarded_sent, link_downed] = rest;
        Ok(Some(PortTraffic {
            received: words(received),
            sent: words(sent),
            packets_received,
            packets_sent,
            send_wait,
            errors_received,
            discarded_sent,
            link_downed,
            rate: rate.map(|bits| bits / 8),
            state,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, Scope};
    use crate::host::fake::FakeHost;

    fn with_port(mut fake: FakeHost, port: &str, state: &str) -> FakeHost {
        let at = |file: &str| format!("class/infiniband/{port}/{file}");
        fake = fake.sys(&at("state"), state).sys(&at("rate"), "100 Gb/sec (4X EDR)\n");
        for (place, counter) in COUNTERS.iter().enumerate() {
            fake = fake.sys(&at(&format!("counters/{counter}")), &format!("{}\n", 1000 + place));
        }
        fake
    }

    fn sampled(
        ports: &mut InfinibandCollector,
        host: &Host,
        second: u64,
    ) -> (Vec<(String, PortTraffic)>, Result<(), Fault>) {
        let mut tick = Tick::new(&[PortTraffic::METRICS]);
        tick.begin(Duration::from_secs(second));
        let outcome = ports.sample(&Context::of(host), &mut tick);
        let table = tick.table(Scope::IbPort).unwrap();
        let rows = table.entities().iter().enumerate().map(|(row, entity)| match entity {
            Entity::Named(name) => (name.to_string(), table.get::<PortTraffic>(row)),
            other => panic!("{other:?}"),
        });
        (rows.collect(), outcome)
    }

    #[test]
    fn data_counters_are_in_words_of_four_bytes() {
        let fake = with_port(FakeHost::new(), "mlx5_0/ports/1", "4: ACTIVE\n");
        let fake = with_port(fake, "mlx5_1/ports/1", "1: DOWN\n");
        let (rows, outcome) = sampled(&mut InfinibandCollector::new(), &fake.host(), 0);
        outcome.unwrap();
        let [(name, row)] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(name, "mlx5_0/1");
        assert_eq!((row.received, row.sent), (Some(4000), Some(4004)));
        assert_eq!((row.packets_received, row.link_downed), (Some(1002), Some(1007)));
        assert_eq!((row.rate, row.state), (Some(12_500_000_000), Some(PortState::ACTIVE)));
        assert!(matches!(probe(&fake.host()), Probe::Ready));
    }

    #[test]
    fn port_that_goes_down_has_its_state_and_removed_adapter_no_row() {
        let fake = with_port(FakeHost::new(), "hfi1_0/ports/1", "4: ACTIVE\n");
        let (host, mut ports) = (fake.host(), InfinibandCollector::new());
        sampled(&mut ports, &host, 0).1.unwrap();
        fake.set_sys("class/infiniband/hfi1_0/ports/1/state", "1: DOWN\n");
        let (rows, _) = sampled(&mut ports, &host, 1);
        assert_eq!(rows[0].1.state, PortState::from_name(b"DOWN"));
        fake.remove_sys("class/infiniband/hfi1_0");
        // A cached file that was removed can still be read here; the kernel returns ENODEV.
        ports.ports.as_mut().unwrap()[0].state = CachedPath::new(
            c"class/infiniband/hfi1_0/ports/1/state".into(),
            &Descriptors::at_most(1),
        );
        let (rows, outcome) = sampled(&mut ports, &host, 2);
        outcome.unwrap();
        assert!(rows.is_empty());
    }

    #[test]
    fn saturated_counter_is_missing_and_64_bit_one_preferred() {
        let at = |file: &str| format!("class/infiniband/mthca0/ports/1/{file}");
        let fake = with_port(FakeHost::new(), "mthca0/ports/1", "4: ACTIVE\n")
            .sys(&at("counters/port_rcv_data"), "4294967295\n")
            .sys(&at("counters_ext/port_xmit_data_64"), "5000000000\n");
        let (rows, _) = sampled(&mut InfinibandCollector::new(), &fake.host(), 0);
        assert_eq!((rows[0].1.received, rows[0].1.sent), (None, Some(20_000_000_000)));
    }

    #[test]
    fn malformed_or_missing_counter_loses_only_its_value() {
        let fake = with_port(FakeHost::new(), "mlx5_0/ports/1", "4: ACTIVE\n");
        fake.set_sys("class/infiniband/mlx5_0/ports/1/counters/port_rcv_data", "N/A (no PMA)\n");
        fake.remove_sys("class/infiniband/mlx5_0/ports/1/counters/port_xmit_wait");
        let (rows, outcome) = sampled(&mut InfinibandCollector::new(), &fake.host(), 0);
        let row = rows[0].1;
        assert_eq!((row.received, row.send_wait, row.sent), (None, None, Some(4004)));
        assert!(matches!(outcome, Err(Fault::Skip(why)) if why.contains("port_rcv_data")));
    }

    #[test]
    fn machine_without_an_active_port_is_absent() {
        let why = |fake: FakeHost| match probe(&fake.host()) {
            Probe::Absent { why } => why,
            _ => panic!("not absent"),
        };
        assert_eq!(why(FakeHost::new()), "there is no InfiniBand adapter");
        let down = with_port(FakeHost::new(), "mlx5_0/ports/1", "1: DOWN\n");
        assert_eq!(why(down), "no InfiniBand port is active: mlx5_0/1");
    }
}
