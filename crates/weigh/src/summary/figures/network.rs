//! What the run itself sent and received.
//!
//! Where the kernel counts the packets of the run's cgroup, that is exact. Otherwise its
//! connections are used.
//!
//! The kernel's counters of a connection are exact, but of TCP and without headers only; the owner
//! is known of connections that were open long enough to be sampled. So it is an estimate that is
//! never too high.

use super::super::accumulate::Accumulator;
use super::super::figure::{Figure, Figures, Method};
use super::{NO_END, NO_PROCESS_SAMPLED, NOT_COLLECTED};
use crate::catalog::{FigureId, SourceId};
use crate::quantity::{self, Units};

const TCP: &str = "sock_diag tcp_info of the run's TCP connections, headers excluded";

const PACKETS: &str = "cgroup_skb on the run's cgroup, IP headers included";

/// Bytes that the run sent.
pub(super) fn sent(run: &Accumulator) -> Figure {
    let packets = run.packets.sent.filter(|_| !run.left_its_group());
    let packets = packets.map(|bytes| of_packets(run, bytes));
    packets.unwrap_or_else(|| of_connections(run, run.tcp.sent, run.tcp.unowned_sent))
}

/// Bytes that the run received.
pub(super) fn received(run: &Accumulator) -> Figure {
    let packets = run.packets.received.filter(|_| !run.left_its_group());
    let packets = packets.map(|bytes| of_packets(run, bytes));
    let connections = || of_connections(run, run.tcp.received, run.tcp.unowned_received);
    packets.unwrap_or_else(connections)
}

/// Figures that only packet counters have.
pub(super) fn add(run: &Accumulator, figures: &mut Figures) {
    let packets = &run.packets;
    let more = [
        (FigureId::NetworkLoopbackSent, packets.loopback_sent),
        (FigureId::NetworkLoopbackReceived, packets.loopback_received),
        (FigureId::NetworkPacketsSent, packets.packets_sent),
        (FigureId::NetworkPacketsReceived, packets.packets_received),
    ];
    let known = more.into_iter().filter_map(|(id, count)| Some((id, count?)));
    figures.extend(known.map(|(id, count)| (id, of_packets(run, count))));
}

fn of_packets(run: &Accumulator, count: u64) -> Figure {
    let why = match (run.end.is_none(), run.left_its_group()) {
        (true, _) => Some(NO_END),
        (_, true) => Some("processes of the run have left its cgroup"),
        _ => run.reason(SourceId::Packets),
    };
    match why {
        None => Figure::exact(count as f64, PACKETS),
        Some(why) => Figure::sampled(count as f64, PACKETS).because(why),
    }
}

fn of_connections(run: &Accumulator, owned: Option<u64>, unowned: Option<u64>) -> Figure {
    let Some(owned) = owned else { return Figure::unknown(TCP, why_nothing(run)) };
    let unowned = unowned.unwrap_or(0);
    let mut reasons = Vec::new();
    if unowned > 0 {
        let bytes = quantity::bytes(unowned as f64, Units::default());
        let count = run.tcp.unowned_connections.unwrap_or(0);
        let short = match count {
            1 => "a connection that was too short to be attributed".to_owned(),
            _ => format!(
                "{} connections that were too short to be attributed",
                quantity::count(count as f64)
            ),
        };
        reasons.push(format!("{bytes} went through {short}"));
    }
    // Requested with the command's cgroup, and not available.
    if let Some(why) =
        run.cgroup.sampled_at.and_then(|_| run.manifest.absent.get(SourceId::Packets.name()))
    {
        reasons.push(format!("packets were not counted: {why}"));
    }
    reasons.extend(run.reason(SourceId::Sockets).map(str::to_owned));
    if run.end.is_none() {
        reasons.push(NO_END.to_owned());
    }
    reasons.push("UDP and packet headers are not included".to_owned());
    let figure = Figure::between(owned as f64, Method::Estimated, owned as f64, None, TCP);
    let figure = figure.because(&reasons.join("; "));
    // More may have been the run's than is known to be.
    if unowned > owned { Figure { value: None, method: None, ..figure } } else { figure }
}

fn why_nothing(run: &Accumulator) -> &str {
    if let Some(why) = run.reason(SourceId::Sockets) {
        why
    } else if run.manifest.is_merged() {
        "several recordings may have seen the same connections"
    } else if !run.manifest.collects(SourceId::Sockets) {
        "the sockets collector was left out"
    } else if !run.manifest.collects(SourceId::Process) {
        NOT_COLLECTED
    } else {
        NO_PROCESS_SAMPLED
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::metrics::{RunNetwork, RunTcp};
    use crate::model::Entity;
    use crate::model::settings::{OwnCgroup, Settings};
    use crate::record::Event;
    use crate::record::StopReason;
    use crate::testing::FakeRun;

    #[test]
    fn packets_are_exact_when_they_were_counted_to_the_end() {
        let (cgroup, own_cgroup) = (true, OwnCgroup::Auto);
        let mut run = FakeRun::with(&Settings { cgroup, own_cgroup, ..Settings::default() });
        run.sample_some(0.0, |tick| tick.put(Entity::Single, &tcp(5000, 0)));
        let packets = RunNetwork {
            sent: Some(6000),
            received: Some(70),
            loopback_sent: Some(6000),
            loopback_received: Some(0),
            packets_sent: Some(4),
            packets_received: Some(1),
            ..RunNetwork::default()
        };
        run.sample_some(1.0, |tick| tick.put(Entity::Single, &packets));
        let cut = sent(&run.accumulator());
        assert_eq!((cut.value, cut.method, cut.upper), (Some(6000.0), Some(Method::Sampled), None));
        run.stops(2.0, |end| (end.why, end.duration_seconds) = (Some(StopReason::Ended), 1.0));
        let ended = run.accumulator();
        let whole = received(&ended);
        assert_eq!((whole.method, whole.upper), (Some(Method::Exact), Some(70.0)));
        let mut figures = Figures::new();
        add(&ended, &mut figures);
        assert_eq!(figures["network_loopback_sent_bytes"].value, Some(6000.0));
    }

    fn with_tcp(tcp: RunTcp) -> FakeRun {
        let mut run = FakeRun::new();
        run.sample_some(0.0, |tick| tick.put(Entity::Single, &tcp));
        run
    }

    fn tcp(sent: u64, unowned_sent: u64) -> RunTcp {
        RunTcp {
            sent: Some(sent),
            received: Some(0),
            connections: Some(1),
            unowned_sent: Some(unowned_sent),
            unowned_received: Some(0),
            unowned_connections: Some(3),
            ..RunTcp::default()
        }
    }

    #[test]
    fn bytes_of_connections_are_a_lower_bound_without_upper_bound() {
        let run = with_tcp(tcp(5000, 0)).accumulator();
        let figure = sent(&run);
        assert_eq!((figure.value, figure.method), (Some(5000.0), Some(Method::Estimated)));
        assert_eq!((figure.lower, figure.upper), (Some(5000.0), None));
        assert!(figure.reason.unwrap().contains("UDP"));
        assert_eq!(received(&run).value, Some(0.0));
    }

    #[test]
    fn unattributed_connections_are_reported_and_may_hide_the_value() {
        let few = sent(&with_tcp(tcp(5000, 4096)).accumulator());
        assert_eq!(few.value, Some(5000.0));
        let reason = few.reason.unwrap();
        assert!(reason.starts_with("4.00 KiB went through 3 connections"), "{reason}");
        let most = sent(&with_tcp(tcp(5000, 8192)).accumulator());
        assert_eq!((most.value, most.lower, most.upper), (None, Some(5000.0), None));
    }

    #[test]
    fn values_not_measured_have_a_reason() {
        let fault = |mut run: FakeRun, why: &str| {
            let (source, why) = ("sockets".to_owned(), why.to_owned());
            sent(&run.event(1.0, Event::Fault { source, why }).accumulator())
        };
        let refused = fault(FakeRun::new(), "sock_diag is refused");
        assert_eq!((refused.value, refused.lower), (None, None));
        assert_eq!(refused.reason.as_deref(), Some("sock_diag is refused"));
        let part = fault(with_tcp(tcp(1, 0)), "process 7 is in another network namespace");
        assert!(part.value == Some(1.0) && part.reason.unwrap().contains("process 7"));
    }
}
