//! Traffic of network devices, one row for each device, and TCP retransmissions.
//!
//! Source: `/proc/self/net/dev` and `/proc/self/net/snmp`, readable by every user, of weigh's own
//! network namespace, in a container the container's.
//!
//! What surprised us: a packet may be counted by several devices (a bond and its slaves, a bridge
//! and its ports), so sums must know what a device is. `/sys/class/net` is read once for each
//! device: hardware has a `device` link. And some drivers count in 32 bits.

use std::ffi::{CStr, CString};

use super::unwrap32::Unwrap32;
use super::{Collector, Context, Fault, Provider, malformed, openable};
use crate::catalog::SourceId;
use crate::catalog::metrics::{MadeOf, NetworkTraffic, NodeTcp};
use crate::host::{CachedFile, Host};
use crate::model::{Entity, Name, Tick};
use crate::parse::net_dev::{self, NetDevice};
use crate::parse::{attribute, net_snmp};

/// The kernel's number for a loopback (`ARPHRD_LOOPBACK`).
const LOOPBACK: u64 = 772;

/// The kind of a device by `/sys`; without it only the loopback is known, by its name.
fn made_of(host: &Host, name: &[u8]) -> Option<MadeOf> {
    let at = |file: &str| {
        CString::new([b"class/net/", name, b"/", file.as_bytes()].concat()).unwrap_or_default()
    };
    let mut buffer = Vec::new();
    let kind = host.sys.read(&at("type"), &mut buffer).ok();
    match kind.and_then(|bytes| attribute::number(bytes).ok()) {
        Some(LOOPBACK) => Some(MadeOf::Loopback),
        Some(_) if host.sys.has(&at("device/uevent")) => Some(MadeOf::Hardware),
        Some(_) => Some(MadeOf::Software),
        None => (name == b"lo").then_some(MadeOf::Loopback),
    }
}

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Network,
    probe: |host| openable(&host.proc, c"self/net/dev"),
    collector: Some(|_| Box::new(NetworkCollector::new())),
    descriptors: 2,
};

struct NetworkCollector {
    dev: CachedFile,
    snmp: CachedFile,
    buffer: Vec<u8>,
    devices: Vec<KnownNic>,
    /// The number of samples, to find devices that were removed.
    round: u64,
}

/// A known device.
struct KnownNic {
    name: Name,
    made_of: Option<MadeOf>,
    unwrap: Unwrap32<8>,
    last_round: u64,
}

impl NetworkCollector {
    fn new() -> NetworkCollector {
        NetworkCollector {
            dev: CachedFile::always(),
            snmp: CachedFile::always(),
            buffer: Vec::new(),
            devices: Vec::new(),
            round: 0,
        }
    }

    fn tcp(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        // A namespace need not have TCP.
        let read = self.snmp.read(&host.proc, || SNMP, &mut self.buffer);
        let Ok(bytes) = read else { return Ok(()) };
        let tcp = net_snmp::parse(bytes).map_err(malformed(&host.proc, SNMP))?;
        tick.put(Entity::Single, &NodeTcp::from(tcp));
        Ok(())
    }
}

const SNMP: &CStr = c"self/net/snmp";

impl From<net_snmp::Tcp> for NodeTcp {
    fn from(tcp: net_snmp::Tcp) -> NodeTcp {
        let net_snmp::Tcp { received, sent, retransmitted } = tcp;
        NodeTcp { received, sent, retransmitted }
    }
}

/// The TCP segments of weigh's network namespace now, between two samples.
pub(super) fn tcp(host: &Host) -> Option<NodeTcp> {
    let mut buffer = Vec::new();
    let bytes = host.proc.read(SNMP, &mut buffer).ok()?;
    let tcp = net_snmp::parse(bytes).ok().map(NodeTcp::from)?;
    tcp.received.and(tcp.sent).map(|_| tcp)
}

impl Collector for NetworkCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let bytes = self.dev.read(&host.proc, || c"self/net/dev", &mut self.buffer)?;
        self.round += 1;
        let mut outcome = Ok(());
        for (line, device) in net_dev::devices(bytes).enumerate() {
            match device {
                Ok(device) => {
                    let known = known(&mut self.devices, line, host, &device);
                    known.last_round = self.round;
                    tick.put(Entity::Named(known.name), &row(known, &device));
                }
                Err(wrong) => outcome = Err(malformed(&host.proc, c"self/net/dev")(wrong)),
            }
        }
        self.devices.retain(|device| device.last_round == self.round);
        outcome.and(self.tcp(host, tick))
    }
}

/// The entry of a device; most are at the same line as in the last sample.
fn known<'d>(
    devices: &'d mut Vec<KnownNic>,
    line: usize,
    host: &Host,
    device: &NetDevice<'_>,
) -> &'d mut KnownNic {
    let name = Name::new(device.name);
    let here = devices.get(line).is_some_and(|device| device.name == name);
    let place = if here { Some(line) } else { devices.iter().position(|d| d.name == name) };
    let place = place.unwrap_or_else(|| {
        let unwrap = Unwrap32::new(counters(device));
        let made_of = made_of(host, device.name);
        devices.push(KnownNic { name, made_of, unwrap, last_round: 0 });
        devices.len() - 1
    });
    &mut devices[place]
}

fn counters(device: &NetDevice<'_>) -> [u64; 8] {
    let (received, sent) = (&device.received, &device.sent);
    [
        received.bytes,
        sent.bytes,
        received.packets,
        sent.packets,
        received.errors,
        sent.errors,
        received.dropped,
        sent.dropped,
    ]
}

fn row(known: &mut KnownNic, device: &NetDevice<'_>) -> NetworkTraffic {
    let [received, sent, packets_received, packets_sent, rest @ ..] =
        known.unwrap.update(counters(device)).map(Some);
    let [errors_received, errors_sent, dropped_received, dropped_sent] = rest;
    NetworkTraffic {
        received,
        sent,
        packets_received,
        packets_sent,
        errors_received,
        errors_sent,
        dropped_received,
        dropped_sent,
        made_of: known.made_of,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, Scope};
    use crate::host::fake::FakeHost;
    use crate::model::devices::summed_nics;

    fn line(name: &str, received: u64, packets: u64) -> String {
        format!("  {name}:{received} {packets} 1 2 0 0 0 0 {received} {packets} 3 4 0 0 0 0\n")
    }

    fn sampled(
        network: &mut NetworkCollector,
        host: &Host,
    ) -> (Vec<(String, NetworkTraffic)>, Result<(), Fault>) {
        let mut tick = Tick::new(&[NetworkTraffic::METRICS, NodeTcp::METRICS]);
        let outcome = network.sample(&Context::of(host), &mut tick);
        let table = tick.table(Scope::Nic).unwrap();
        let rows = table.entities().iter().enumerate().map(|(row, entity)| match entity {
            Entity::Named(name) => (name.to_string(), table.get::<NetworkTraffic>(row)),
            other => panic!("{other:?}"),
        });
        (rows.collect(), outcome)
    }

    #[test]
    fn loopback_hardware_and_software_are_recognised() {
        let fake = FakeHost::new()
            .proc(
                "self/net/dev",
                &[line("lo", 5, 1), line("eth0", 6, 1), line("br0", 7, 1)].concat(),
            )
            .sys("class/net/lo/type", "772\n")
            .sys("class/net/eth0/type", "1\n")
            .sys("class/net/eth0/device/uevent", "DRIVER=mlx5_core\n")
            .sys("class/net/br0/type", "1\n");
        let (rows, outcome) = sampled(&mut NetworkCollector::new(), &fake.host());
        outcome.unwrap();
        let kinds: Vec<_> = rows.iter().map(|(name, row)| (name.as_str(), row.made_of)).collect();
        let expected = [
            ("lo", Some(MadeOf::Loopback)),
            ("eth0", Some(MadeOf::Hardware)),
            ("br0", Some(MadeOf::Software)),
        ];
        assert_eq!(kinds, expected);
        assert_eq!((rows[1].1.received, rows[1].1.dropped_sent), (Some(6), Some(4)));
    }

    #[test]
    fn sums_are_over_hardware_or_all_but_the_loopback() {
        let mut tick = Tick::new(&[NetworkTraffic::METRICS]);
        let mut put = |name: &str, made_of| {
            let row = NetworkTraffic { received: Some(1), made_of, ..NetworkTraffic::default() };
            tick.put(Entity::Named(Name::new(name.as_bytes())), &row);
            let names =
                summed_nics(tick.table(Scope::Nic).unwrap()).map(|(entity, _)| match entity {
                    Entity::Named(name) => name.to_string(),
                    other => panic!("{other:?}"),
                });
            names.collect::<Vec<_>>()
        };
        put("lo", Some(MadeOf::Loopback));
        put("veth0", Some(MadeOf::Software));
        assert_eq!(put("odd0", None), ["veth0", "odd0"]);
        assert_eq!(put("eth0", Some(MadeOf::Hardware)), ["eth0"]);
    }

    #[test]
    fn removed_device_has_no_row_and_restarts_when_it_returns() {
        let fake = FakeHost::new().proc("self/net/dev", &line("veth0", 4_294_967_000, 50));
        let (host, mut network) = (fake.host(), NetworkCollector::new());
        sampled(&mut network, &host).1.unwrap();
        fake.set_proc("self/net/dev", &line("lo", 1, 1));
        assert_eq!(sampled(&mut network, &host).0.len(), 1);
        fake.set_proc("self/net/dev", &line("veth0", 100, 60));
        assert_eq!(sampled(&mut network, &host).0[0].1.received, Some(100), "no wraparound");
    }

    #[test]
    fn wrapped_32_bit_counter_goes_on() {
        let fake = FakeHost::new().proc("self/net/dev", &line("eth0", 4_294_967_000, 50));
        let (host, mut network) = (fake.host(), NetworkCollector::new());
        sampled(&mut network, &host).1.unwrap();
        let wrapped = line("eth0", 100, 60).replace(" 100 60 3", " 4294967100 60 3");
        fake.set_proc("self/net/dev", &wrapped);
        let (rows, _) = sampled(&mut network, &host);
        assert_eq!(rows[0].1.received, Some((1 << 32) + 100));
        assert_eq!(rows[0].1.sent, Some(4_294_967_100));
    }

    #[test]
    fn malformed_line_loses_its_device_and_is_reported() {
        let text = [line("lo", 5, 1), "eth0: x\n".to_owned(), line("eth1", 6, 1)].concat();
        let fake = FakeHost::new()
            .proc("self/net/dev", &text)
            .proc("self/net/snmp", "Tcp: OutSegs RetransSegs\nTcp: 9 2\n");
        let (rows, outcome) = sampled(&mut NetworkCollector::new(), &fake.host());
        let names: Vec<_> = rows.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["lo", "eth1"]);
        let fault = outcome.unwrap_err();
        assert!(matches!(&fault, Fault::Skip(why) if why.contains("net/dev")), "{fault:?}");
    }

    #[test]
    fn tcp_segments_and_retransmissions_are_read() {
        let fake = FakeHost::new()
            .proc("self/net/dev", &line("lo", 5, 1))
            .proc("self/net/snmp", "Tcp: InSegs OutSegs RetransSegs\nTcp: 7 9 2\n");
        let mut tick = Tick::new(&[NodeTcp::METRICS]);
        NetworkCollector::new().sample(&Context::of(&fake.host()), &mut tick).unwrap();
        let row = tick.table(Scope::Node).unwrap().get::<NodeTcp>(0);
        let (received, sent) = (Some(7), Some(9));
        assert_eq!(row, NodeTcp { received, sent, retransmitted: Some(2), ..NodeTcp::default() });
    }

    #[test]
    fn missing_file_retires_the_collector() {
        let outcome = NetworkCollector::new()
            .sample(&Context::of(&FakeHost::new().host()), &mut Tick::new(&[]));
        assert!(matches!(outcome, Err(Fault::Retire(_))));
    }
}
