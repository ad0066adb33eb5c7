//! Utilization of processes, against samples as drivers give them.

use super::*;

fn sample(pid: u32, at: u64, sm: u32) -> ProcessSample {
    ProcessSample { pid, at, shares: [sm, 10, 0, 0] }
}

/// Utilization of 7 and 8 by a poll, when the GPU was last sampled at `newest`.
fn poll(
    processes: &mut NvidiaProcesses,
    at: u64,
    newest: u64,
    samples: &[ProcessSample],
) -> [Option<f64>; 2] {
    poll_at(processes, at, newest, None, samples)
}

/// The same, with this utilization of the GPU.
fn poll_at(
    processes: &mut NvidiaProcesses,
    at: u64,
    newest: u64,
    utilization: Option<f64>,
    samples: &[ProcessSample],
) -> [Option<f64>; 2] {
    processes.clear();
    processes.add([7, 8].map(|pid| NvmlProcess { pid, memory: None }).into_iter());
    let at = Duration::from_millis(at);
    let after = processes.after(at);
    let load = DeviceLoad { newest: Some(newest).filter(|newest| *newest > after), utilization };
    processes.push_samples(at, load, samples.iter().copied());
    let shares: Vec<_> = processes.rows(Name::new(b"g")).map(|row| row.share.utilization).collect();
    shares.try_into().unwrap()
}

#[test]
fn compute_and_graphics_process_counts_once() {
    let mut processes = NvidiaProcesses::default();
    let listed = [(7, Some(100)), (8, None), (7, Some(100))];
    processes.add(listed.map(|(pid, memory)| NvmlProcess { pid, memory }).into_iter());
    assert_eq!(processes.count(), 2);
    let memory: Vec<_> = processes.rows(Name::new(b"g")).map(|row| row.share.memory).collect();
    assert_eq!(memory, [Some(100), None]);
    processes.clear();
    assert_eq!(processes.count(), 0, "each poll starts anew");
}

#[test]
fn samples_before_the_first_poll_are_not_attributed() {
    let mut processes = NvidiaProcesses::default();
    assert_eq!(poll(&mut processes, 5000, 0, &[sample(7, 9, 100)]), [None, None]);
    assert_eq!(processes.newest.unwrap(), 9);
    assert_eq!(poll(&mut processes, 5100, 0, &[sample(7, 9, 100)]), [None, None], "once more");
}

#[test]
fn utilization_is_the_mean_of_samples_and_0_without_any() {
    let mut processes = NvidiaProcesses::default();
    poll(&mut processes, 5000, 0, &[]);
    let samples = [sample(7, 12, 60), sample(7, 15, 80), sample(9, 15, 100)];
    assert_eq!(poll(&mut processes, 5100, 0, &samples), [Some(0.7), Some(0.0)]);
    assert_eq!(processes.newest.unwrap(), 15);
}

#[test]
fn no_process_is_idle_before_a_sample_period_is_over() {
    let mut processes = NvidiaProcesses::default();
    poll(&mut processes, 5000, 10, &[]);
    assert_eq!(poll(&mut processes, 5200, 10, &[]), [None, None]);
    assert_eq!(poll(&mut processes, 5400, 11, &[]), [Some(0.0); 2], "the GPU was sampled");
    assert_eq!(processes.newest.unwrap(), 11, "from here on, and not from the last busy moment");
    assert_eq!(poll(&mut processes, 6300, 11, &[]), [None, None]);
    assert_eq!(poll(&mut processes, 6400, 11, &[]), [Some(0.0); 2], "no period is longer");
    assert_eq!(poll(&mut processes, 6500, 11, &[]), [None, None]);
}

#[test]
fn invalid_and_old_samples_are_dropped() {
    let mut processes = NvidiaProcesses::default();
    poll(&mut processes, 5000, 10, &[]);
    let samples = [sample(7, 5, 40), sample(0, 13, 1), sample(7, 14, 3_000_000)];
    assert_eq!(poll(&mut processes, 5100, 10, &samples), [None, None]);
    assert_eq!(processes.newest.unwrap(), 10);
    let invalid = [sample(7, 14, 3_000_000), sample(8, 15, 80)];
    assert_eq!(poll(&mut processes, 5200, 10, &invalid), [None, Some(0.8)], "not idle for that");
    let both = [sample(7, 18, 3_000_000), sample(7, 17, 60)];
    assert_eq!(poll(&mut processes, 5300, 10, &both), [Some(0.6), Some(0.0)]);
    assert_eq!(processes.newest.unwrap(), 17);
}

/// Polls every half second a GPU that 7 keeps 80 % busy, and whose driver buffers the last four of
/// these samples. Returns its utilization at the last two polls.
fn last_utilization(times: impl Fn(u64) -> Vec<ProcessSample>) -> [Option<f64>; 2] {
    let mut processes = NvidiaProcesses::default();
    let (mut last, mut all) = ([None; 2], Vec::new());
    for at in (1000..=15_000).step_by(500) {
        all.extend(times(at));
        all.drain(..all.len().saturating_sub(4));
        let after = processes.after(Duration::from_millis(at));
        let new: Vec<_> = all.iter().copied().filter(|sample| sample.at > after).collect();
        let shares = poll_at(&mut processes, at, 0, Some(0.8), &new);
        assert_ne!(shares[0], Some(0.0), "at {at}: it was not idle");
        last = [last[1], shares[0]];
    }
    last
}

#[test]
fn clock_set_back_makes_no_process_idle_and_is_detected() {
    let hour = 3_600_000;
    let times = |at: u64| vec![sample(7, at + if at < 4000 { hour } else { 0 }, 80)];
    assert_eq!(last_utilization(times), [Some(0.8); 2]);
}

#[test]
fn sample_of_the_far_future_does_not_hide_the_others() {
    for pid in [7, 77] {
        let times = |at: u64| {
            let bogus = (at == 3000).then(|| sample(pid, at + 1_000_000_000, 3));
            std::iter::once(sample(7, at, 80)).chain(bogus).collect()
        };
        assert_eq!(last_utilization(times), [Some(0.8); 2], "of {pid}");
    }
}

#[test]
fn busy_gpu_without_a_busy_process_reports_no_shares() {
    let mut processes = NvidiaProcesses::default();
    poll_at(&mut processes, 5000, 10, Some(0.8), &[]);
    assert_eq!(poll_at(&mut processes, 6500, 11, Some(0.8), &[]), [None; 2]);
    let by_another = [sample(9, 12, 80)];
    assert_eq!(poll_at(&mut processes, 7000, 12, Some(0.8), &by_another), [Some(0.0); 2]);
    assert_eq!(poll_at(&mut processes, 8500, 13, Some(0.01), &[]), [Some(0.0); 2]);
}
