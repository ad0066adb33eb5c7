//! Memory that grows steadily until the end of a run, as that of a leak does.
//!
//! The memory over time is kept as at most [`MOST`] buckets, whose width doubles when they are
//! full; the memory of each live process at two earlier moments says which process grew. So the
//! state does not grow with the length of a run, and nothing is looked up at most ticks.

use std::collections::BTreeMap;

use crate::model::ProcessId;
use crate::model::live::LiveProcess;

/// The most buckets; their width doubles beyond.
const MOST: usize = 64;

/// Shorter runs, or those with fewer buckets, have a start and an end, and no trend.
const SHORTEST: f64 = 30.0;
const FEWEST: usize = 12;
const FEWEST_IN_A_THIRD: usize = 4;

/// Less growth is not worth a person's time: of what there was after a third of the run.
const LEAST_SHARE: f64 = 0.1;
const LEAST_BYTES: f64 = (32u64 << 20) as f64;

/// How much of the variation a straight line must explain (R²); a single step in the middle has
/// 0.75.
const STRAIGHT: f64 = 0.9;

/// The slope in the last fifth, as a share of that after the first third: less is the start of a
/// plateau.
const STILL_GROWING: f64 = 0.5;

/// When the memory of each process is first kept, in seconds; then at twice the time before.
const FIRST_MARK: f64 = 8.0;

/// The memory of a run over time.
#[derive(Debug, Clone)]
pub(super) struct MemoryTrend {
    /// The width of a bucket, in seconds.
    width: f64,
    buckets: Vec<Option<Bucket>>,
    /// The memory of each process at the last two marks, the older one first.
    marks: [BTreeMap<ProcessId, u64>; 2],
    next_mark: f64,
    grower: Option<Grower>,
}

/// The memory in one span of time.
#[derive(Debug, Clone, Copy)]
struct Bucket {
    low: f64,
    high: f64,
    sum: f64,
    count: f64,
}

impl Bucket {
    fn merged(one: Option<Bucket>, other: Option<Bucket>) -> Option<Bucket> {
        let (Some(a), Some(b)) = (one, other) else { return one.or(other) };
        Some(Bucket {
            low: a.low.min(b.low),
            high: a.high.max(b.high),
            sum: a.sum + b.sum,
            count: a.count + b.count,
        })
    }
}

/// The process that grew most.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grower {
    pub(super) pid: u32,
    pub(super) name: String,
    /// By so much, since the older mark.
    pub(super) bytes: f64,
}

/// Memory that grew steadily until the end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SteadyGrowth {
    /// Since when, and the memory then.
    pub(super) since: f64,
    pub(super) from: f64,
    /// Until when, and the memory then.
    pub(super) until: f64,
    pub(super) to: f64,
    pub(super) bytes_per_second: f64,
    /// The process that most of it was in.
    pub(super) grower: Option<Grower>,
}

impl Default for MemoryTrend {
    fn default() -> MemoryTrend {
        let (width, buckets) = (1.0, Vec::with_capacity(MOST));
        let marks = [BTreeMap::new(), BTreeMap::new()];
        MemoryTrend { width, buckets, marks, next_mark: FIRST_MARK, grower: None }
    }
}

impl MemoryTrend {
    /// Adds the memory of the run at a tick, and that of its processes.
    pub(super) fn add<'a>(
        &mut self,
        memory: f64,
        at: f64,
        processes: impl Iterator<Item = &'a LiveProcess>,
    ) {
        while (at / self.width) as usize >= MOST {
            let pairs = self.buckets.chunks(2);
            self.buckets =
                pairs.map(|pair| Bucket::merged(pair[0], pair.get(1).copied().flatten())).collect();
            self.width *= 2.0;
        }
        let place = (at / self.width) as usize;
        if place >= self.buckets.len() {
            self.buckets.resize(place + 1, None);
            self.processes(at, processes);
        }
        let one = Bucket { low: memory, high: memory, sum: memory, count: 1.0 };
        self.buckets[place] = Bucket::merged(self.buckets[place], Some(one));
    }

    /// A bucket begins: which process grew most until now.
    fn processes<'a>(&mut self, at: f64, processes: impl Iterator<Item = &'a LiveProcess>) {
        let is_mark = at >= self.next_mark;
        let mut mark = BTreeMap::new();
        let mut most: Option<Grower> = None;
        for process in processes {
            // A zombie counts with what it had.
            let Some(now) = process.program_memory.rss else { continue };
            let before = self.marks[0].get(&process.id).copied().unwrap_or(0);
            let bytes = now.saturating_sub(before) as f64;
            if most.as_ref().is_none_or(|most| bytes > most.bytes) {
                let name = process.program.clone();
                most = Some(Grower { pid: process.id.pid, name, bytes });
            }
            if is_mark {
                mark.insert(process.id, now);
            }
        }
        self.grower = most.or(self.grower.take());
        if is_mark {
            self.marks.swap(0, 1);
            self.marks[1] = mark;
            self.next_mark = 2.0 * at;
        }
    }

    /// The growth, if the memory grew steadily until the end.
    pub(super) fn steady(&self) -> Option<SteadyGrowth> {
        // The last bucket has the exit of processes, which free their memory.
        let (_, before_the_end) = self.buckets.split_last()?;
        let length = before_the_end.len() as f64 * self.width;
        let middle = |place: usize| (place as f64 + 0.5) * self.width;
        let known = before_the_end.iter().enumerate();
        let known: Vec<(f64, Bucket)> =
            known.filter_map(|(place, bucket)| Some((middle(place), (*bucket)?))).collect();
        let between = |from: f64, to: f64| {
            let is_in = move |(at, _): &&(f64, Bucket)| *at >= length * from && *at < length * to;
            known.iter().filter(is_in).copied().collect::<Vec<_>>()
        };
        let (second, third) = (between(1.0 / 3.0, 2.0 / 3.0), between(2.0 / 3.0, 1.0));
        let is_enough = length >= SHORTEST
            && known.len() >= FEWEST
            && second.len().min(third.len()) >= FEWEST_IN_A_THIRD;
        if !is_enough {
            return None;
        }
        let highest = second.iter().map(|(_, bucket)| bucket.high).fold(0.0, f64::max);
        let lowest =
            between(0.75, 1.0).iter().map(|(_, one)| one.low).fold(f64::INFINITY, f64::min);
        let trend = Line::through(&between(1.0 / 3.0, 1.0))?;
        let lately = Line::through(&between(0.8, 1.0))?;
        let since = length / 3.0;
        let (from, to) = (trend.at(since), trend.at(length));
        let is_steady = lowest > highest
            && trend.explained >= STRAIGHT
            && lately.slope >= trend.slope * STILL_GROWING
            && to - from >= LEAST_BYTES.max(from * LEAST_SHARE);
        let grower = self.grower.clone().filter(|grower| grower.bytes >= (to - from) / 2.0);
        is_steady.then_some(SteadyGrowth {
            since,
            from,
            until: length,
            to,
            bytes_per_second: trend.slope,
            grower,
        })
    }
}

/// A straight line through points, by least squares.
#[derive(Clone)]
struct Line {
    slope: f64,
    start: f64,
    /// The share of the variation that it explains (R²).
    explained: f64,
}

impl Line {
    fn through(points: &[(f64, Bucket)]) -> Option<Line> {
        let count = points.len() as f64;
        let level = |bucket: &Bucket| bucket.sum / bucket.count;
        let mean_time = points.iter().map(|(at, _)| at).sum::<f64>() / count;
        let mean = points.iter().map(|(_, bucket)| level(bucket)).sum::<f64>() / count;
        let (mut times, mut levels, mut both) = (0.0, 0.0, 0.0);
        for (at, bucket) in points {
            let (time, level) = (at - mean_time, level(bucket) - mean);
            times += time * time;
            levels += level * level;
            both += time * level;
        }
        if times == 0.0 || levels == 0.0 {
            return None;
        }
        let slope = both / times;
        Some(Line { slope, start: mean - slope * mean_time, explained: slope * both / levels })
    }

    fn at(&self, time: f64) -> f64 {
        self.start + self.slope * time
    }
}

#[cfg(test)]
mod tests {
    use crate::summary::{Finding, Summary};
    use crate::testing::{CHILD, FakeRun, MAIN, MIB, memory, usage};

    /// A run of so many seconds whose child has so many MiB at each tick.
    fn run(seconds: u32, mib: impl Fn(f64) -> f64) -> Summary {
        let mut run = FakeRun::new();
        run.starts(0.0, MAIN, "work").starts_under(0.0, CHILD, MAIN.pid, "child");
        for second in 0..seconds {
            let at = f64::from(second);
            run.sample(at, |tick| {
                memory(tick, MAIN, 10 * MIB, 10 * MIB, Some(10 * MIB));
                let bytes = (mib(at) * MIB as f64) as u64;
                memory(tick, CHILD, bytes, bytes, Some(bytes));
            });
        }
        let end = f64::from(seconds);
        run.exits(end, CHILD).reaped(end, MAIN, usage(1.0, 10 * MIB)).ends(end, |_| {});
        run.summary()
    }

    fn growth(summary: &Summary) -> Option<&Finding> {
        summary.findings.iter().find(|finding| finding.code == "memory.growth")
    }

    #[test]
    fn steady_growth_is_reported_with_its_rate_its_process_and_the_time_left() {
        let summary = run(120, |at| 100.0 + at);
        let finding = growth(&summary).unwrap();
        assert_eq!(
            finding.sentence,
            "Its memory grew steadily until the end: by 60.0 MiB a minute, from 149 MiB at 39.33 s \
             to 228 MiB at 1 min 58 s, most of it in child (11). At this rate the 8.00 GiB of the \
             machine would be full 2 h 13 min later."
        );
        let rate = finding.evidence["bytes_per_second"].as_f64().unwrap();
        assert!((rate / MIB as f64 - 1.0).abs() < 1e-6, "{rate}");
        assert_eq!(finding.evidence["pid"], 11);
    }

    #[test]
    fn growth_of_hours_is_found_in_the_same_memory() {
        let summary = run(20_000, |at| 100.0 + at / 60.0 + 5.0 * (at / 7.0).sin());
        assert!(growth(&summary).unwrap().sentence.contains("by 1.00 MiB a minute"));
    }

    #[test]
    fn steps_that_go_on_are_growth() {
        assert!(growth(&run(120, |at| 100.0 + 20.0 * (at / 6.0).floor())).is_some());
    }

    #[test]
    fn plateau_is_no_growth() {
        assert_eq!(growth(&run(120, |at| 100.0 + at.min(60.0))), None);
        assert_eq!(growth(&run(120, |at| 100.0 + at.min(95.0))), None, "late");
        assert_eq!(growth(&run(120, |_| 500.0)), None);
        assert_eq!(growth(&run(120, |at| 500.0 * (1.0 - (-at / 20.0).exp()))), None, "slowly");
    }

    #[test]
    fn sawtooth_of_a_garbage_collector_is_no_growth() {
        assert_eq!(growth(&run(120, |at| 100.0 + 20.0 * (at % 15.0))), None);
        assert_eq!(growth(&run(120, |at| 100.0 + 5.0 * (at % 50.0))), None, "a slow one");
        assert_eq!(
            growth(&run(300, |at| 100.0 + at % 300.0 * if at < 280.0 { 1.0 } else { 0.1 })),
            None
        );
    }

    #[test]
    fn single_late_step_is_no_growth() {
        for step in [50.0, 79.0, 80.0, 90.0, 110.0] {
            let summary = run(120, |at| if at < step { 100.0 } else { 900.0 });
            assert_eq!(growth(&summary), None, "{step}");
        }
    }

    #[test]
    fn short_or_small_growth_is_not_reported() {
        assert_eq!(growth(&run(25, |at| 100.0 + 50.0 * at)), None, "short");
        assert_eq!(growth(&run(120, |at| 100.0 + at / 5.0)), None, "few bytes");
        assert_eq!(growth(&run(120, |at| 4000.0 + at)), None, "a small share");
    }
}
