//! Network devices, and TCP of the network namespace.

use crate::catalog::{Row, Source, SourceId, Stored, Type, Value, metrics};

metrics! {
    /// Traffic of one network device since it was created.
    pub struct NetworkTraffic in Nic / "traffic", "Network" {
        /// Bytes received.
        received: Counter u64 Bytes, "Received", from "/proc/net/dev receive bytes";
        /// Bytes sent.
        sent: Counter u64 Bytes, "Sent", from "/proc/net/dev transmit bytes";
        /// Packets received.
        packets_received: Counter u64 One, "Packets received", from "/proc/net/dev receive packets";
        /// Packets sent.
        packets_sent: Counter u64 One, "Packets sent", from "/proc/net/dev transmit packets";
        /// Packets received with errors.
        errors_received: Counter u64 One, "Errors received", from "/proc/net/dev receive errs";
        /// Packets that could not be sent.
        errors_sent: Counter u64 One, "Errors sent", from "/proc/net/dev transmit errs";
        /// Received packets dropped for lack of buffers.
        dropped_received: Counter u64 One, "Dropped on arrival", from "/proc/net/dev receive drop";
        /// Packets dropped before they were sent.
        dropped_sent: Counter u64 One, "Dropped when sending", from "/proc/net/dev transmit drop";
        /// Whether it is the loopback, hardware, or virtual.
        made_of: Gauge MadeOf One, "Made of", from "/sys/class/net/DEVICE/{type,device}";
    }
}

metrics! {
    /// TCP of weigh's network namespace.
    pub struct NodeTcp in Node / "tcp", "TCP" {
        /// Segments received.
        received: Counter u64 One, "Segments received", from "/proc/net/snmp Tcp InSegs";
        /// Segments sent for the first time.
        sent: Counter u64 One, "Segments sent", from "/proc/net/snmp Tcp OutSegs";
        /// Segments retransmitted, because they were not acknowledged in time.
        retransmitted: Counter u64 One, "Segments retransmitted", from "/proc/net/snmp Tcp RetransSegs";
    }
}

const MADE_OF: [&str; 3] = ["loopback", "hardware", "software"];

/// The kind of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MadeOf {
    /// The loopback device.
    Loopback,
    /// A hardware device.
    Hardware,
    /// A virtual device of the kernel: a bridge, a bond, a veth pair.
    Software,
}

impl Stored for MadeOf {
    const TYPE: Type = Type::Symbol(&MADE_OF);
    fn value(self) -> Value {
        Value::Symbol(self as u8)
    }
    fn from_value(value: Value) -> Option<MadeOf> {
        match value {
            Value::Symbol(0) => Some(MadeOf::Loopback),
            Value::Symbol(1) => Some(MadeOf::Hardware),
            Value::Symbol(2) => Some(MadeOf::Software),
            _ => None,
        }
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Network,
    name: "network",
    about: "network devices: bytes, packets, errors, drops; TCP retransmissions",
    groups: &[NetworkTraffic::METRICS, NodeTcp::METRICS],
    on_request: false,
    everywhere: false,
};
