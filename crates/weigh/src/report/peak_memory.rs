//! The peak of memory for people: how high, when, and which process had it.

use super::text::when;
use crate::catalog::FigureId;
use crate::model::numbering;
use crate::quantity::{self, Units};
use crate::summary::{PeakProcess, Summary};

/// With this share of the peak a process had all of it: the rest is what shells have.
const ALL: f64 = 0.99;

/// The peak in a sentence; `None` when it is not known.
pub(super) fn sentence(summary: &Summary, units: Units) -> Option<String> {
    let peak = summary.figures.get(FigureId::MemoryPeak)?;
    let bytes = quantity::bytes(peak.value?, units);
    let bound = if peak.is_lower_bound() { "At least " } else { "" };
    let when = when(peak).map_or_else(String::new, |when| format!(" {when}"));
    let process = process(summary, units).map_or_else(String::new, |had| format!("; {had}"));
    Some(format!("{bound}{bytes}{when}{process}."))
}

/// Which process had the most of it, in a few words.
pub(super) fn process(summary: &Summary, units: Units) -> Option<String> {
    let PeakProcess { pid, name, bytes, at_seconds, is_at_peak } =
        summary.memory_peak_process.as_ref()?;
    let process = format!("{name} (pid {})", numbering::shown(*pid));
    let size = quantity::bytes(*bytes as f64, units);
    let peak = summary.figures.value(FigureId::MemoryPeak)?;
    Some(match is_at_peak {
        true if *bytes as f64 >= ALL * peak => format!("all of it in {process}"),
        true => format!("{process} had {size} of it"),
        false => {
            let at = quantity::seconds(*at_seconds);
            format!("{process} had {size} at the highest sample, at {at}")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{Figure, Method};
    use crate::testing::{FakeRun, MIB};

    fn said(peak: Figure, bytes: u64, is_at_peak: bool) -> String {
        let mut summary = FakeRun::new().summary();
        *summary.figures.entry(FigureId::MemoryPeak) = peak;
        let (pid, name) = (4711, "cc1".to_owned());
        summary.memory_peak_process =
            Some(PeakProcess { pid, name, bytes: bytes * MIB, at_seconds: 3.0, is_at_peak });
        sentence(&summary, Units::Binary).unwrap()
    }

    #[test]
    fn peak_is_said_with_its_time_and_its_process() {
        let exact = Figure::exact((800 * MIB) as f64, "x").at(41.2);
        let begin = "800 MiB at 41.20 s; ";
        for (bytes, is_at_peak, end) in [
            (310, true, "cc1 (pid 4711) had 310 MiB of it."),
            (799, true, "all of it in cc1 (pid 4711)."),
            (310, false, "cc1 (pid 4711) had 310 MiB at the highest sample, at 3.00 s."),
        ] {
            assert_eq!(said(exact.clone(), bytes, is_at_peak), format!("{begin}{end}"));
        }
        let sampled = Figure::sampled((800 * MIB) as f64, "x").at(1.0);
        assert!(said(sampled, 1, true).starts_with("At least 800 MiB at 1.00 s; "));
        // Without PSS, shared pages count more than once: the true peak may be below it.
        let [value, lower] = [800, 300].map(|size| (size * MIB) as f64);
        let summed = Figure::between(value, Method::Estimated, lower, None, "x").at(1.0);
        assert!(said(summed, 1, true).starts_with("800 MiB at 1.00 s; "));
    }
}
