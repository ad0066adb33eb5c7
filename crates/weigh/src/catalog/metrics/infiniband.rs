//! InfiniBand, RoCE and Omni-Path ports.

use crate::catalog::{Row, Source, SourceId, Stored, Type, Value, metrics};

metrics! {
    /// Traffic of one port since the driver was loaded.
    pub struct PortTraffic in IbPort / "port", "InfiniBand" {
        /// Data received, headers included.
        received: Counter u64 Bytes, "Received", from "counters/port_rcv_data × 4";
        /// Data sent, headers included.
        sent: Counter u64 Bytes, "Sent", from "counters/port_xmit_data × 4";
        /// Packets received.
        packets_received: Counter u64 One, "Packets received", from "counters/port_rcv_packets";
        /// Packets sent.
        packets_sent: Counter u64 One, "Packets sent", from "counters/port_xmit_packets";
        /// Ticks of the port's clock in which it had data to send and no credits.
        send_wait: Counter u64 One, "Send wait", from "counters/port_xmit_wait";
        /// Packets received with errors.
        errors_received: Counter u64 One, "Errors received", from "counters/port_rcv_errors";
        /// Packets discarded instead of sent.
        discarded_sent: Counter u64 One, "Discarded when sending", from "counters/port_xmit_discards";
        /// Times that the link went down.
        link_downed: Counter u64 One, "Link went down", from "counters/link_downed";
        /// Speed of the link.
        rate: Gauge u64 BytesPerSecond, "Rate", from "rate ÷ 8";
        /// State of the port.
        state: Gauge PortState One, "State", from "state";
    }
}

/// The state of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortState(u8);

const STATES: [&str; 6] = ["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"];

impl PortState {
    /// The link is up.
    pub const ACTIVE: PortState = PortState(4);

    /// From the name in the port's `state` file.
    pub fn from_name(name: &[u8]) -> Option<PortState> {
        let place = STATES.iter().position(|state| state.as_bytes() == name);
        place.map(|place| PortState(place as u8))
    }
}

impl Stored for PortState {
    const TYPE: Type = Type::Symbol(&STATES);
    fn value(self) -> Value {
        Value::Symbol(self.0)
    }
    fn from_value(value: Value) -> Option<PortState> {
        if let Value::Symbol(place) = value { Some(PortState(place)) } else { None }
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Infiniband,
    name: "infiniband",
    about: "InfiniBand, RoCE and Omni-Path ports: bytes, packets, waits, errors",
    groups: &[PortTraffic::METRICS],
    on_request: false,
    everywhere: false,
};
