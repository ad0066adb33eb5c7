//! What a node used over the time of its job, in few intervals: one row of the job's heat map.
//!
//! Intervals begin with the job and are a power of two seconds long, so those of all nodes have the
//! same limits. A node needs the same memory however long the job is.

/// Intervals that are kept; twice as many before they are joined in pairs.
const INTERVALS: usize = 120;

/// Cores and memory of one node over the time of its job.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeCurve {
    /// Seconds in an interval.
    width: f64,
    intervals: Vec<CurveInterval>,
    last: Option<LastSample>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct CurveInterval {
    core_seconds: f64,
    /// For how long the cores are known.
    seconds: f64,
    /// The most memory; NaN where it is not known.
    memory: f64,
}

impl Default for CurveInterval {
    fn default() -> CurveInterval {
        CurveInterval { core_seconds: 0.0, seconds: 0.0, memory: f64::NAN }
    }
}

impl CurveInterval {
    fn cores(&self) -> f64 {
        if self.seconds > 0.0 { self.core_seconds / self.seconds } else { f64::NAN }
    }

    fn join(&mut self, other: &CurveInterval) {
        self.core_seconds += other.core_seconds;
        self.seconds += other.seconds;
        // `f64::max` ignores NaN.
        self.memory = self.memory.max(other.memory);
    }
}

/// The last sample.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LastSample {
    at: f64,
    cpu: f64,
    memory: f64,
}

impl Default for NodeCurve {
    fn default() -> NodeCurve {
        NodeCurve { width: 1.0, intervals: Vec::new(), last: None }
    }
}

impl NodeCurve {
    /// Adds a sample: CPU time so far, and memory now. After more seconds than `longest` without
    /// one, what was in between is not known.
    pub(super) fn add(&mut self, at: f64, cpu: f64, memory: Option<f64>, longest: f64) {
        let memory = memory.unwrap_or(f64::NAN);
        let now = LastSample { at: at.max(0.0), cpu, memory };
        let last = self.last.replace(now);
        while now.at >= self.width * (2 * INTERVALS) as f64 {
            self.widen();
        }
        if let Some(last) = last.filter(|last| now.at > last.at && now.at - last.at <= longest) {
            let cores = (now.cpu - last.cpu).max(0.0) / (now.at - last.at);
            self.spread(last, now.at, cores);
        }
        let place = (now.at / self.width) as usize;
        let interval = self.interval(place);
        interval.memory = interval.memory.max(memory);
    }

    /// A rate, and memory that is carried forward, from one sample to the next.
    fn spread(&mut self, last: LastSample, to: f64, cores: f64) {
        let width = self.width;
        let (first, end) = ((last.at / width) as usize, (to / width) as usize);
        for place in first..=end {
            let begins = place as f64 * width;
            let seconds = to.min(begins + width) - last.at.max(begins);
            if seconds > 0.0 {
                let interval = self.interval(place);
                interval.core_seconds += cores * seconds;
                interval.seconds += seconds;
                interval.memory = interval.memory.max(last.memory);
            }
        }
    }

    fn interval(&mut self, place: usize) -> &mut CurveInterval {
        if self.intervals.len() <= place {
            self.intervals.resize(place + 1, CurveInterval::default());
        }
        &mut self.intervals[place]
    }

    fn widen(&mut self) {
        self.width *= 2.0;
        let pairs = self.intervals.chunks(2).map(|pair| {
            let mut first = pair[0];
            pair.iter().skip(1).for_each(|second| first.join(second));
            first
        });
        self.intervals = pairs.collect();
    }

    /// The same with intervals at least this long.
    pub fn widened(mut self, width: f64) -> NodeCurve {
        while self.width < width {
            self.widen();
        }
        self
    }

    /// Seconds in an interval.
    pub fn width(&self) -> f64 {
        self.width
    }

    /// Mean cores in each interval; NaN where they are not known.
    pub fn cores(&self) -> impl Iterator<Item = f64> {
        self.intervals.iter().map(CurveInterval::cores)
    }

    /// The most memory in each interval; NaN where it is not known.
    pub fn memory(&self) -> impl Iterator<Item = f64> {
        self.intervals.iter().map(|interval| interval.memory)
    }

    /// When it last used a tenth of the most cores it ever used; `None` when it used hardly any.
    pub(super) fn worked_until(&self) -> Option<f64> {
        const HARDLY: f64 = 0.05;
        let most = self.cores().fold(0.0, f64::max);
        let is_work = |cores: f64| cores >= most / 10.0 && most >= HARDLY;
        let last = self.intervals.iter().rposition(|interval| is_work(interval.cores()))?;
        Some(((last + 1) as f64 * self.width).min(self.last?.at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_means_and_memory_is_carried_forward() {
        let mut curve = NodeCurve::default();
        curve.add(0.0, 0.0, Some(5.0), 10.0);
        curve.add(2.5, 5.0, Some(9.0), 10.0);
        curve.add(3.0, 5.0, None, 10.0);
        assert_eq!(curve.cores().collect::<Vec<_>>()[..2], [2.0, 2.0]);
        // Half of the third second with two cores, the other half with none.
        assert!((curve.cores().nth(2).unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(curve.memory().collect::<Vec<_>>()[..3], [5.0, 5.0, 9.0]);
    }

    #[test]
    fn time_without_samples_is_a_hole_and_no_mean() {
        let mut curve = NodeCurve::default();
        curve.add(0.0, 0.0, Some(1.0), 3.0);
        curve.add(1.0, 1.0, Some(1.0), 3.0);
        curve.add(8.0, 60.0, Some(1.0), 3.0);
        curve.add(9.0, 61.0, Some(1.0), 3.0);
        let cores: Vec<f64> = curve.cores().collect();
        assert_eq!((cores[0], cores[8]), (1.0, 1.0));
        assert!(cores[1..8].iter().all(|cores| cores.is_nan()), "{cores:?}");
        assert!(curve.memory().nth(4).unwrap().is_nan());
    }

    #[test]
    fn long_job_needs_no_more_intervals_and_keeps_its_core_seconds() {
        let mut curve = NodeCurve::default();
        for second in (0..100_000).step_by(10) {
            let at = f64::from(second);
            curve.add(at, at * 3.0, Some(if second == 54_320 { 99.0 } else { 1.0 }), 60.0);
        }
        assert!(curve.intervals.len() <= 2 * INTERVALS && curve.width >= 512.0);
        let all: f64 = curve.intervals.iter().map(|interval| interval.core_seconds).sum();
        assert!((all - 3.0 * 99_990.0).abs() < 1e-3, "{all}");
        assert_eq!(curve.memory().filter(|memory| *memory == 99.0).count(), 1);
        let wide = curve.clone().widened(4096.0);
        assert_eq!(wide.width(), 4096.0);
        assert!(wide.cores().all(|cores| (cores - 3.0).abs() < 1e-9));
    }

    #[test]
    fn work_ends_when_the_node_has_become_idle() {
        let mut curve = NodeCurve::default();
        for second in 0..100 {
            let at = f64::from(second);
            curve.add(at, 2.0 * at.min(40.0) + 0.01 * at, None, 5.0);
        }
        assert_eq!(curve.worked_until(), Some(40.0));
        assert_eq!(NodeCurve::default().worked_until(), None);
    }
}
