//! GPUs: memory, utilization, energy.

use super::super::accumulate::Accumulator;
use super::super::curve::Peak;
use super::super::figure::{Figure, Figures, Method};
use super::super::gpus::{GpuAccumulator, GpuEnergy};
use super::{NO_PROCESS_SAMPLED, SHORT, missing};
use crate::catalog::{FigureId, SourceId};
use crate::quantity;

const MEMORY: &str = "memory of GPUs by process, summed";
const SAMPLED: &str = "utilization of GPUs, all samples of the driver";
const POLLED: &str = "utilization of GPUs, polled, mean over time";
const AT_TICKS: &str = "utilization of GPUs at each tick";
const ENERGY: &str = "energy counters of GPUs, summed";
const UNKNOWN: &str = "processes on a GPU are not included if their memory is unknown, or whether \
                       they belong to the run";
const SILENT: &str = "no GPU reports its utilization";
const PARTIAL: &str = "GPUs that do not report their utilization are not included";
const NO_ENERGY: &str = "no GPU reported its energy twice";

const HIDDEN: &str = "CUDA_VISIBLE_DEVICES, ROCR_VISIBLE_DEVICES or HIP_VISIBLE_DEVICES let the \
                      run use none of the GPUs";
const EARLY: &str = "the driver reports the utilization of the last second, and the run was no \
                     longer than that";
const MIG_ONLY: &str = "MIG instances report neither utilization nor energy";
const NO_MEMORY: &str = "no GPU reports its memory in use";
const PROCESSES_UNKNOWN: &str = "the processes on the GPUs are not known";

/// Why nothing is known of GPUs.
fn why(run: &Accumulator) -> String {
    let otherwise = match run.manifest.collects(SourceId::Gpu) {
        true => "no GPU answered during the run",
        false => "the gpu collector was left out",
    };
    run.reason(SourceId::Gpu).unwrap_or(otherwise).to_owned()
}

/// Why the GPU usage of the run is not known, where its GPUs report nothing.
fn why_not(run: &Accumulator, silent: &str) -> String {
    match (run.gpus.is_any(), run.gpus.expected_count()) {
        (true, 0) if run.gpus.are_mig_instances() => MIG_ONLY.to_owned(),
        (true, 0) => HIDDEN.to_owned(),
        (true, _) => silent.to_owned(),
        (false, _) => why(run),
    }
}

/// Adds a note when the values cover clearly less than the whole run. A run may end a second after
/// the last poll.
fn of_less(known: Option<f64>, all: f64) -> Option<String> {
    const SECONDS: f64 = 2.0;
    const SHARE: f64 = 0.9;
    let known = known.filter(|known| all - known > SECONDS && *known < SHARE * all)?;
    let (known, all) = (quantity::seconds(known), quantity::seconds(all));
    Some(format!("GPU values cover {known} of {all}"))
}

/// Memory that processes of the run had: of the main one, of the others, of all.
pub(super) fn memory(run: &Accumulator, part: usize) -> Figure {
    let GpuAccumulator { run_memory, driver_peaks, some_unknown, .. } = &run.gpus;
    if run.gpus.is_any() && run.tree.total == 0 {
        return Figure::unknown(MEMORY, missing(run, NO_PROCESS_SAMPLED));
    }
    // The peak of one process by the driver's accounting is a lower bound of all together; of a
    // process that weigh attached to later, the accounting may be of the time before.
    let account = driver_peaks[part].value.filter(|_| !run.manifest.is_attached());
    let most = if account > run_memory[part].value { driver_peaks[part] } else { run_memory[part] };
    match most {
        Peak { value: Some(bytes), at, .. } => {
            let more = if *some_unknown { UNKNOWN } else { SHORT };
            Figure::sampled(bytes, MEMORY).at(at).because(more)
        }
        Peak { value: None, .. } if run.gpus.is_any() => {
            Figure::unknown(MEMORY, run.reason(SourceId::Gpu).unwrap_or(PROCESSES_UNKNOWN))
        }
        Peak { value: None, .. } => Figure::unknown(MEMORY, &why(run)),
    }
}

/// What is of the run as a whole.
pub(super) fn add(run: &Accumulator, figures: &mut Figures) {
    let mut put = |id: FigureId, figure: Figure| {
        figures.insert(id, figure);
    };
    put(FigureId::GpuMemoryPeak, memory(run, 2));
    // Of those that report utilization; of the others it is not known.
    let end = run.duration();
    let telling = run.gpus.reporting(end);
    let (count, are_all) = (telling as f64, telling == run.gpus.expected_count());
    let silent = if run.gpus.is_all_early() { EARLY } else { SILENT };
    let unknown = |source: &str| Figure::unknown(source, &why_not(run, silent));
    let partial = (!are_all).then(|| PARTIAL.to_owned());
    let reasons = [partial, of_less(run.gpus.known_seconds(end), end)];
    let reasons = reasons.into_iter().flatten().collect::<Vec<_>>().join("; ");
    let of_those =
        |figure: Figure| if reasons.is_empty() { figure } else { figure.because(&reasons) };
    let source = if run.gpus.are_sampled() { SAMPLED } else { POLLED };
    let mean = run.gpus.busy_mean(end);
    let Peak { value: highest, at, .. } = run.gpus.busy;
    // Between two polls it may have been higher, and was, where the mean is.
    let peak = match [highest, mean].into_iter().flatten().max_by(f64::total_cmp) {
        Some(peak) => {
            let upper = Some(count.max(peak));
            let figure = Figure::between(peak, Method::Sampled, peak, upper, AT_TICKS);
            of_those(if highest.is_some() { figure.at(at) } else { figure })
        }
        None => unknown(AT_TICKS),
    };
    let mean = match mean {
        // It is the machine's: other processes may have used the same GPUs.
        Some(mean) => of_those(Figure::between(mean, Method::Sampled, 0.0, Some(count), source)),
        None => unknown(source),
    };
    put(FigureId::GpuUtilizationMean, shared(&mean, count));
    put(FigureId::GpuUtilizationPeak, shared(&peak, count));
    put(FigureId::GpusBusyMean, mean);
    put(FigureId::GpusBusyPeak, peak);
    put(FigureId::GpuEnergy, energy(run));
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
    let Some(GpuEnergy { joules, is_counted, is_complete, seconds }) = run.gpus.energy() else {
        return Figure::unknown(ENERGY, &why_not(run, NO_ENERGY));
    };
    let why = match (is_complete, is_counted) {
        (false, _) => "GPUs that do not report their energy are not included",
        (true, true) => "energy before the first poll and after the last one is not included",
        (true, false) => "a GPU has no counter of its energy",
    };
    let figure = if is_counted {
        Figure::sampled(joules, ENERGY)
    } else {
        Figure::between(joules, Method::Estimated, 0.0, None, "power of GPUs over time")
    };
    match of_less(Some(seconds), run.duration()) {
        Some(less) => figure.because(&format!("{less}; {why}")),
        None => figure.because(why),
    }
}

/// Memory in use on all GPUs, by all processes.
pub(super) fn system(run: &Accumulator, figures: &mut Figures) {
    let source = "memory in use on GPUs, summed";
    let figure = match run.gpus.used {
        Peak { value: Some(bytes), at, .. } => Figure::sampled(bytes, source).at(at).because(SHORT),
        Peak { value: None, .. } if run.gpus.is_any() => Figure::unknown(source, NO_MEMORY),
        Peak { value: None, .. } => Figure::unknown(source, &why(run)),
    };
    figures.insert(FigureId::GpuMemoryPeak, figure);
}
