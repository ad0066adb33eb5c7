//! GPUs: memory, how busy they were, energy.

use super::super::accumulate::Accumulator;
use super::super::curve::Peak;
use super::super::figure::{Figure, Figures, Method};
use super::super::gpus::Gpus;
use super::{NOT_SEEN, SHORT, missing};

const MEMORY: &str = "memory of GPUs by process, summed";
const UTILIZATION: &str = "utilization of GPUs, all samples of the driver";
const AT_TICKS: &str = "utilization of GPUs, as each tick found it";
const ENERGY: &str = "energy counters of GPUs, summed";
const UNKNOWN: &str = "processes on a GPU whose memory, or whose run, is not known are not in it";

/// Why nothing is known of GPUs.
fn why(run: &Accumulator) -> String {
    let otherwise = match run.manifest.collectors.iter().any(|name| name == "gpu") {
        true => "no GPU answered during the run",
        false => "the gpu collector was left out",
    };
    run.reason("gpu").unwrap_or(otherwise).to_owned()
}

/// Why nothing is known of what GPUs did for the run.
fn why_not_busy(run: &Accumulator) -> String {
    if run.gpus.is_any() && run.gpus.expected_count() == 0 {
        return "CUDA_VISIBLE_DEVICES let the run use none of the GPUs".to_owned();
    }
    why(run)
}

/// Memory that processes of the run had: of the main one, of the others, of all.
pub(super) fn memory(run: &Accumulator, part: usize) -> Figure {
    let Gpus { of_run, some_unknown, .. } = &run.gpus;
    if run.gpus.is_any() && run.tree.total == 0 {
        return Figure::unknown(MEMORY, missing(run, NOT_SEEN));
    }
    match of_run[part] {
        Peak { value: Some(bytes), at } => {
            let more = if *some_unknown { UNKNOWN } else { SHORT };
            Figure::sampled(bytes, MEMORY).at(at).because(more)
        }
        Peak { value: None, .. } => Figure::unknown(MEMORY, &why(run)),
    }
}

/// What is of the run as a whole.
pub(super) fn add(run: &Accumulator, figures: &mut Figures) {
    let mut put = |name: &str, figure: Figure| {
        figures.insert(name.to_owned(), figure);
    };
    put("gpu_memory_peak_bytes", memory(run, 2));
    let (count, end) = (run.gpus.expected_count() as f64, run.duration());
    let unknown = |source: &str| Figure::unknown(source, &why_not_busy(run));
    let mean = match run.gpus.busy_mean(end) {
        // It is the machine's: others may have been busy on the same GPUs.
        Some(mean) => Figure::between(mean, Method::Sampled, 0.0, Some(count), UTILIZATION),
        None => unknown(UTILIZATION),
    };
    let peak = match run.gpus.busy {
        Peak { value: Some(peak), at } => {
            let upper = Some(count.max(peak));
            Figure::between(peak, Method::Sampled, peak, upper, AT_TICKS).at(at)
        }
        Peak { value: None, .. } => unknown(AT_TICKS),
    };
    put("gpu_utilization_mean_ratio", shared(&mean, count));
    put("gpu_utilization_peak_ratio", shared(&peak, count));
    put("gpus_busy_mean", mean);
    put("gpus_busy_peak", peak);
    put("gpu_energy_joules", energy(run));
}

/// The same, for each GPU.
fn shared(figure: &Figure, count: f64) -> Figure {
    let share = |value: Option<f64>| value.map(|value| value / count);
    Figure {
        value: share(figure.value),
        lower: share(figure.lower),
        upper: share(figure.upper),
        ..figure.clone()
    }
}

fn energy(run: &Accumulator) -> Figure {
    match run.gpus.energy() {
        Some((joules, true)) => Figure::sampled(joules, ENERGY)
            .because("what was used after the last look, or before the first, is not in it"),
        Some((joules, false)) => {
            Figure::between(joules, Method::Estimated, 0.0, None, "power of GPUs over time")
                .because("a GPU has no counter of its energy")
        }
        None => Figure::unknown(ENERGY, &why_not_busy(run)),
    }
}

/// Memory in use on all GPUs, whoever uses it.
pub(super) fn system(run: &Accumulator, figures: &mut Figures) {
    let source = "nvmlDeviceGetMemoryInfo used, summed";
    let figure = match run.gpus.used {
        Peak { value: Some(bytes), at } => Figure::sampled(bytes, source).at(at).because(SHORT),
        Peak { value: None, .. } => Figure::unknown(source, &why(run)),
    };
    figures.insert("gpu_memory_peak_bytes".to_owned(), figure);
}
