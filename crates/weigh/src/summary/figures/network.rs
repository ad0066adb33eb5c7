//! What the run itself sent and received.
//!
//! Where the kernel counts the packets of the run's control group, that is exact.
//! Else there are its connections.
//!
//! The kernel's account of a connection is exact, and only of TCP and without heads; which
//! connections were the run's is known of those that lived long enough to be looked at. So it
//! is an estimate that is never too high.

use super::super::accumulate::Accumulator;
use super::super::figure::{Figure, Figures, Method};
use super::{NO_END, NOT_COLLECTED, NOT_SEEN};
use crate::quantity::{self, Units};

const TCP: &str = "sock_diag tcp_info of the run's TCP connections, without heads";

const PACKETS: &str = "cgroup_skb on the run's control group, IP heads included";

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

/// What is only known of packets.
pub(super) fn add(run: &Accumulator, figures: &mut Figures) {
    let packets = &run.packets;
    let more = [
        ("network_loopback_sent_bytes", packets.loopback_sent),
        ("network_loopback_received_bytes", packets.loopback_received),
        ("network_packets_sent", packets.packets_sent),
        ("network_packets_received", packets.packets_received),
    ];
    let known = more.into_iter().filter_map(|(name, count)| Some((name, count?)));
    figures.extend(known.map(|(name, count)| (name.to_owned(), of_packets(run, count))));
}

fn of_packets(run: &Accumulator, count: u64) -> Figure {
    let why = match (run.end.is_none(), run.left_its_group()) {
        (true, _) => Some(NO_END),
        (_, true) => Some("processes of the run have left its control group"),
        _ => run.reason("packets"),
    };
    match why {
        None => Figure::exact(count as f64, PACKETS),
        Some(why) => Figure::sampled(count as f64, PACKETS).because(why),
    }
}

fn of_connections(run: &Accumulator, seen: Option<u64>, unowned: Option<u64>) -> Figure {
    let Some(seen) = seen else { return Figure::unknown(TCP, why_nothing(run)) };
    let unowned = unowned.unwrap_or(0);
    let mut reasons = Vec::new();
    if unowned > 0 {
        let bytes = quantity::bytes(unowned as f64, Units::default());
        let count = run.tcp.unowned_connections.unwrap_or(0);
        let short = match count {
            1 => "a connection that was too short to tell whose it was".to_owned(),
            _ => format!(
                "{} connections that were too short to tell whose they were",
                quantity::count(count as f64)
            ),
        };
        reasons.push(format!("{bytes} went through {short}"));
    }
    // Asked for with the command's group, and not to be had.
    if let Some(why) = run.group.seen.and_then(|_| run.manifest.absent.get("packets")) {
        reasons.push(format!("packets were not counted: {why}"));
    }
    reasons.extend(run.reason("sockets").map(str::to_owned));
    if run.end.is_none() {
        reasons.push(NO_END.to_owned());
    }
    reasons.push("UDP and the heads of packets are not in it".to_owned());
    let figure = Figure::between(seen as f64, Method::Estimated, seen as f64, None, TCP);
    let figure = figure.because(&reasons.join("; "));
    // More may have been the run's than is known to be.
    if unowned > seen { Figure { value: None, method: None, ..figure } } else { figure }
}

fn why_nothing(run: &Accumulator) -> &str {
    let collects = |name: &str| run.manifest.collectors.iter().any(|one| one == name);
    if let Some(why) = run.reason("sockets") {
        why
    } else if run.manifest.is_merged() {
        "several recordings may have seen the same connections"
    } else if !collects("sockets") {
        "the sockets collector was left out"
    } else if !collects("process") {
        NOT_COLLECTED
    } else {
        NOT_SEEN
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::collect::packets::RunNetwork;
    use crate::collect::sockets::RunTcp;
    use crate::host::facts::Facts;
    use crate::record::events::{WatchEnd, Why};
    use crate::record::{Entry, Event, Manifest};
    use crate::sample::{Entity, Tick};
    use crate::settings::Settings;

    #[test]
    fn packets_are_exact_when_they_were_counted_to_the_end() {
        let mut run = run(Some(seen(5000, 0)), None);
        run.packets = RunNetwork {
            sent: Some(6000),
            received: Some(70),
            loopback_sent: Some(6000),
            loopback_received: Some(0),
            packets_sent: Some(4),
            packets_received: Some(1),
        };
        let cut = sent(&run);
        assert_eq!((cut.value, cut.method, cut.upper), (Some(6000.0), Some(Method::Sampled), None));
        run.event(&Entry::new(
            Duration::from_secs(2),
            Event::WatchEnd(WatchEnd {
                why: Why::Ended,
                end: None,
                duration_seconds: 1.0,
                task_clock_seconds: None,
                task_clock_began_seconds: None,
                left: Vec::new(),
                some_unseen: false,
                monitor_cpu_seconds: 0.0,
            }),
        ));
        let whole = received(&run);
        assert_eq!((whole.method, whole.upper), (Some(Method::Exact), Some(70.0)));
        let mut figures = Figures::new();
        add(&run, &mut figures);
        assert_eq!(figures["network_loopback_sent_bytes"].value, Some(6000.0));
    }

    fn run(tcp: Option<RunTcp>, fault: Option<&str>) -> Accumulator {
        let settings = Settings::default();
        let began = Duration::from_secs(1);
        let manifest = Manifest::new(&settings, &[], Facts::example(), began);
        let mut run = Accumulator::new(&manifest);
        let mut tick = Tick::new(&crate::collect::groups(&settings.sources()));
        if let Some(tcp) = tcp {
            tick.put(Entity::Single, &tcp);
        }
        run.tick(&tick);
        if let Some(why) = fault {
            let (source, why) = ("sockets".to_owned(), why.to_owned());
            run.event(&Entry::new(began, Event::Fault { source, why }));
        }
        run
    }

    fn seen(sent: u64, unowned_sent: u64) -> RunTcp {
        RunTcp {
            sent: Some(sent),
            received: Some(0),
            connections: Some(1),
            unowned_sent: Some(unowned_sent),
            unowned_received: Some(0),
            unowned_connections: Some(3),
        }
    }

    #[test]
    fn what_was_seen_is_never_too_high_and_has_no_upper_bound() {
        let run = run(Some(seen(5000, 0)), None);
        let figure = sent(&run);
        assert_eq!((figure.value, figure.method), (Some(5000.0), Some(Method::Estimated)));
        assert_eq!((figure.lower, figure.upper), (Some(5000.0), None));
        assert!(figure.reason.unwrap().contains("UDP"));
        assert_eq!(received(&run).value, Some(0.0));
    }

    #[test]
    fn connections_too_short_to_tell_whose_they_were_are_told_and_may_hide_the_value() {
        let few = sent(&run(Some(seen(5000, 4096)), None));
        assert_eq!(few.value, Some(5000.0));
        let reason = few.reason.unwrap();
        assert!(reason.starts_with("4.00 KiB went through 3 connections"), "{reason}");
        let most = sent(&run(Some(seen(5000, 8192)), None));
        assert_eq!((most.value, most.lower, most.upper), (None, Some(5000.0), None));
    }

    #[test]
    fn what_was_not_measured_says_why() {
        let refused = sent(&run(None, Some("sock_diag is refused")));
        assert_eq!((refused.value, refused.lower), (None, None));
        assert_eq!(refused.reason.as_deref(), Some("sock_diag is refused"));
        let part = sent(&run(Some(seen(1, 0)), Some("process 7 is in another network namespace")));
        assert!(part.value == Some(1.0) && part.reason.unwrap().contains("process 7"));
    }
}
