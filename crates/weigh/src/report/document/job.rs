//! The report of a batch job: all nodes together, each node, and which of them are missing.

use super::tables::{bytes, table};
use super::{
    Advice, Bar, Document, Fact, LEADING_CHAPTER, PageHeader, ReportCell, ReportChapter,
    ReportColumn, ReportKind, ReportTable, Verdict,
};
use crate::catalog::FigureId;
use crate::model::batch_job::BatchJob;
use crate::plot::nodes;
use crate::quantity::{self, Units};
use crate::record::manifest::Origin;
use crate::report::job::{clocks, coverage, requested, state};
use crate::report::phases::quantity_of;
use crate::summary::Severity;
use crate::summary::job::{
    CombinedFigure, JobReading, JobSummary, NodeGpu, NodeState, NodeSummary, memory_need,
};

const UNKNOWN: &str = "unknown";

impl Document {
    /// The report of a batch job.
    pub fn of_job(job: &JobReading, units: Units) -> Document {
        let summary = &job.summary;
        let figures = figures(summary, units);
        let charts = nodes::of_job(job, units);
        let chapter = ReportChapter { title: LEADING_CHAPTER.to_owned(), charts };
        let tables = [node_table(summary, units), gpu_table(summary, units)];
        let scheduler = summary.job.as_ref().map_or("Batch", |job| job.scheduler.name());
        let name = summary.job.as_ref().and_then(|job| job.name.as_deref());
        let name = name.map(|name| format!(" · {name}")).unwrap_or_default();
        Document {
            title: format!("{scheduler} job {}{name}", id(summary)),
            command: None,
            page_header: page_header(summary),
            header: header(summary, units),
            verdict: verdict(summary, units),
            findings: summary
                .findings
                .iter()
                .map(|finding| Advice {
                    severity: finding.severity,
                    sentence: finding.sentence.clone(),
                    advice: finding.advice.clone(),
                })
                .collect(),
            bars: bars(summary, units),
            important_figures: figures.rows.len(),
            figure_ids: summary
                .figures
                .iter()
                .filter_map(|one| FigureId::named(one.name))
                .collect(),
            figures,
            chapters: Some(chapter).into_iter().filter(|one| !one.charts.is_empty()).collect(),
            timeline: None,
            tables: tables.into_iter().filter(|table| !table.rows.is_empty()).collect(),
            hardware: hardware(summary, units),
            monitor: monitor(summary),
            missing: missing(summary),
            made_by: format!("weigh {}", Origin::default().version),
            kind: ReportKind::Job,
        }
    }
}

/// The id of a job, as its reports are called by it.
pub fn id(summary: &JobSummary) -> &str {
    summary.job.as_ref().and_then(|job| job.id.as_deref()).unwrap_or(UNKNOWN)
}

fn page_header(summary: &JobSummary) -> PageHeader {
    PageHeader {
        job: id(summary).to_owned(),
        user: summary.job.as_ref().and_then(|job| job.user.clone()),
        nodes: summary.coverage.expected.unwrap_or(summary.nodes.len()),
        date: summary
            .started
            .map(|began| began.strftime("%Y-%m-%d").to_string())
            .unwrap_or_default(),
    }
}

fn header(summary: &JobSummary, units: Units) -> Vec<Fact> {
    let of = |part: fn(&BatchJob) -> Option<&str>| summary.job.as_ref().and_then(part);
    let started = summary.started.map(|at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string());
    let facts = [
        ("Job", Some(id(summary).to_owned())),
        ("User", of(|job| job.user.as_deref()).map(str::to_owned)),
        ("Started", started),
        ("Recorded for", Some(quantity::seconds(summary.duration_seconds))),
        ("Partition", of(|job| job.partition.as_deref()).map(str::to_owned)),
        (
            "Array",
            of(|job| job.array_id.as_deref()).map(|id| {
                match of(|job| job.array_index.as_deref()) {
                    Some(index) => format!("{id}, index {index}"),
                    None => id.to_owned(),
                }
            }),
        ),
        ("Requested", requested(summary, units)),
    ];
    let known = facts.into_iter().filter_map(|(label, value)| Some(Fact::new(label, value?)));
    known.collect()
}

/// Which nodes were recorded, how well, and at what cost.
fn verdict(summary: &JobSummary, units: Units) -> Verdict {
    let coverage_is_whole = summary.coverage.silent.is_empty()
        && summary.coverage.ended_early.is_empty()
        && summary.nodes.iter().all(|node| node.unreadable.is_none());
    let running = if summary.is_running { "The job is still running. " } else { "" };
    let sentence = format!("{running}{}", quality(summary));
    let cpu = summary.figure(FigureId::CpuTime).map(|cpu| {
        let share = share_of_reserved(summary, cpu);
        let share = share.map(|share| format!(", {} of what was reserved", quantity::ratio(share)));
        format!("{}{}.", quantity::seconds(cpu.sum), share.unwrap_or_default())
    });
    let reasons = [("CPU time", cpu), ("Memory", memory_sentence(summary, units))];
    let known = reasons.into_iter().filter_map(|(label, text)| Some(Fact::new(label, text?)));
    Verdict {
        severity: match (coverage_is_whole, summary.is_running) {
            (true, false) => None,
            (true, true) => Some(Severity::Note),
            (false, _) => Some(Severity::Warning),
        },
        sentence,
        reasons: known.collect(),
        peak_process: None,
    }
}

/// Nodes, gaps, and the cost of the recorders, in a sentence.
fn quality(summary: &JobSummary) -> String {
    let cost = quantity::seconds(summary.monitor_cpu_seconds);
    let share =
        summary.monitor_cost_ratio.map(|share| format!(", {} of a core", quantity::ratio(share)));
    let clocks = clocks(summary).map(|clocks| format!(" Clocks {clocks}.")).unwrap_or_default();
    format!(
        "Nodes: {}; the recorders took {cost} of CPU time{}.{clocks}",
        coverage(summary),
        share.unwrap_or_default()
    )
}

fn share_of_reserved(summary: &JobSummary, cpu: &CombinedFigure) -> Option<f64> {
    summary.reserved_core_seconds().filter(|reserved| *reserved > 0.0).map(|all| cpu.sum / all)
}

fn memory_sentence(summary: &JobSummary, units: Units) -> Option<String> {
    let peak = summary.figure(FigureId::MemoryPeak)?;
    let shown = |value| quantity::bytes(value, units);
    let need = memory_need(summary).map(|need| {
        let requested = need.requested.map(|bytes| format!(" of {} requested", shown(bytes)));
        format!(
            "; without page cache at most {}{}, on {}",
            shown(need.bytes),
            requested.unwrap_or_default(),
            need.node.name
        )
    });
    Some(format!(
        "{} on {}, the largest{}.",
        shown(peak.max),
        peak.max_node,
        need.unwrap_or_default()
    ))
}

fn bars(summary: &JobSummary, units: Units) -> Vec<Bar> {
    let shown = |value| quantity::bytes(value, units);
    let bar = |label: &str, share: Option<f64>, note: String| Bar {
        label: label.to_owned(),
        share: share.filter(|share| share.is_finite()).map(|share| share.clamp(0.0, 1.0)),
        note,
    };
    let not_measured = || "it was not measured".to_owned();
    let cpu = summary.figure(FigureId::CpuTime);
    let reserved = summary.reserved_core_seconds();
    let busy = match (cpu, reserved) {
        (Some(cpu), Some(all)) => {
            format!(
                "{} of {} of CPU time that were reserved",
                quantity::seconds(cpu.sum),
                quantity::seconds(all)
            )
        }
        (Some(cpu), None) => format!("{} of CPU time", quantity::seconds(cpu.sum)),
        (None, _) => not_measured(),
    };
    let need = memory_need(summary);
    let reached = match &need {
        Some(need) => match need.requested {
            Some(all) => format!(
                "{} of {} requested on {}, page cache not counted",
                shown(need.bytes),
                shown(all),
                need.node.name
            ),
            None => format!(
                "{} on {}, page cache not counted; what was requested is not known",
                shown(need.bytes),
                need.node.name
            ),
        },
        None => not_measured(),
    };
    let memory = need.and_then(|need| Some(need.bytes / need.requested?));
    let mut bars = vec![
        bar("CPU", cpu.and_then(|cpu| share_of_reserved(summary, cpu)), busy),
        bar("Memory", memory, reached),
    ];
    let gpus: Vec<&NodeGpu> = summary.nodes.iter().flat_map(|node| &node.gpus).collect();
    let utilizations: Vec<f64> = gpus.iter().filter_map(|gpu| gpu.utilization_mean_ratio).collect();
    if !gpus.is_empty() {
        let mean = utilizations.iter().sum::<f64>() / utilizations.len().max(1) as f64;
        let share = (!utilizations.is_empty()).then_some(mean);
        let used = gpus.iter().filter(|gpu| gpu.is_idle == Some(false)).count();
        bars.push(bar(
            "GPU",
            share,
            format!("{used} of {} GPUs ran anything of the job", gpus.len()),
        ));
    }
    bars
}

/// The figures of all nodes together.
fn figures(summary: &JobSummary, units: Units) -> ReportTable {
    let columns = vec![
        ReportColumn::text("Figure"),
        ReportColumn::number("Sum"),
        ReportColumn::number("Mean"),
        ReportColumn::number("Max"),
        ReportColumn::name("On"),
        ReportColumn::number("Imbalance"),
        ReportColumn::number("Nodes"),
    ];
    let row = |figure: &CombinedFigure| {
        let id = FigureId::named(figure.name)?;
        let cell = |value| ReportCell::number(Some(value), |value| quantity_of(id, value, units));
        Some(vec![
            ReportCell::text(id.label()),
            cell(figure.sum),
            cell(figure.mean),
            cell(figure.max),
            ReportCell::text(if figure.max > 0.0 { &*figure.max_node } else { "–" }),
            ReportCell::number(figure.imbalance_ratio, quantity::ratio),
            ReportCell::count(figure.nodes as u64),
        ])
    };
    let note = "Imbalance is how much of the largest value the mean lacks: 0 % where all nodes have \
                the same. Peaks of nodes may be at different times. Nodes are those of which a \
                figure is known.";
    let rows = summary.figures.iter().filter_map(row).collect();
    ReportTable { rows, ..table("figures", "All nodes together", note.to_owned(), columns) }
}

/// A row for each node.
fn node_table(summary: &JobSummary, units: Units) -> ReportTable {
    let columns = vec![
        ReportColumn::name("Node"),
        ReportColumn::text("State"),
        ReportColumn::number("CPU time"),
        ReportColumn::number("Cores, mean"),
        ReportColumn::number("of"),
        ReportColumn::number("Memory, peak"),
        ReportColumn::number("Without cache"),
        ReportColumn::number("Requested"),
        ReportColumn::number("Read"),
        ReportColumn::number("Written"),
        ReportColumn::number("Recorded"),
        ReportColumn::number("Worked until"),
        ReportColumn::number("Gaps"),
        ReportColumn::number("Clock"),
    ];
    let row = |node: &NodeSummary| {
        let figure =
            |id| ReportCell::number(node.figures.value(id), |value| quantity_of(id, value, units));
        let recorded = node.duration_seconds;
        vec![
            ReportCell::text(&*node.name),
            ReportCell::text(state(node)),
            figure(FigureId::CpuTime),
            figure(FigureId::CpuCoresMean),
            ReportCell::number(node.cores(), quantity::count),
            figure(FigureId::MemoryPeak),
            figure(FigureId::MemoryWithoutCachePeak),
            bytes(node.requested.memory_bytes, units),
            figure(FigureId::IoRead),
            figure(FigureId::IoWritten),
            ReportCell::number(recorded, quantity::seconds),
            ReportCell::number(node.worked_until_seconds, quantity::seconds),
            ReportCell::number(recorded.map(|_| node.gaps.seconds), quantity::seconds),
            clock_cell(node),
        ]
    };
    let note = "Without cache is the peak of anonymous and shared memory: what must be requested. \
                Worked until is when a node last used a tenth of the most cores it used. Gaps are \
                times without a sample. Clock is how far it is ahead of the first one's, and by how \
                much that may be wrong; times are corrected where it is known to be off. The report of one node: weigh report JOBDIR/NODE.";
    let rows = summary.nodes.iter().map(row).collect();
    ReportTable { rows, ..table("job-nodes", "Nodes", note.to_owned(), columns) }
}

/// How far a clock is ahead, and by how much that may be wrong.
fn clock_cell(node: &NodeSummary) -> ReportCell {
    let Some(clock) = &node.clock else { return ReportCell::number(None, quantity::count) };
    let sign = if clock.seconds < 0.0 { "−" } else { "+" };
    let ahead = quantity::seconds(clock.seconds.abs());
    let within = quantity::seconds(clock.uncertainty_seconds);
    let text = match (clock.seconds == 0.0, clock.uncertainty_seconds == 0.0) {
        (true, true) => "0".to_owned(),
        (_, true) => format!("{sign}{ahead}"),
        (true, false) => format!("± {within}"),
        (false, false) => format!("{sign}{ahead} ± {within}"),
    };
    ReportCell { text, number: Some(clock.seconds) }
}

/// A row for each GPU.
fn gpu_table(summary: &JobSummary, units: Units) -> ReportTable {
    let columns = vec![
        ReportColumn::name("Node"),
        ReportColumn::text("GPU"),
        ReportColumn::text("Model"),
        ReportColumn::text("Used"),
        ReportColumn::number("Busy, mean"),
        ReportColumn::number("Memory, peak"),
    ];
    let row = |node: &NodeSummary, gpu: &NodeGpu| {
        let used = match gpu.is_idle {
            Some(true) => "never",
            Some(false) => "yes",
            None => UNKNOWN,
        };
        vec![
            ReportCell::text(&*node.name),
            ReportCell::text(&*gpu.name),
            ReportCell::text(gpu.model.as_deref().unwrap_or("–")),
            ReportCell::text(used),
            ReportCell::number(gpu.utilization_mean_ratio, quantity::ratio),
            ReportCell::number(gpu.memory_peak_bytes, |value| quantity::bytes(value, units)),
        ]
    };
    let all = summary.nodes.iter().flat_map(|node| node.gpus.iter().map(move |gpu| row(node, gpu)));
    let note = "By all processes on them. Used is whether a process of the job was seen on it.";
    ReportTable { rows: all.collect(), ..table("job-gpus", "GPUs", note.to_owned(), columns) }
}

/// The kinds of nodes.
fn hardware(summary: &JobSummary, units: Units) -> Vec<Fact> {
    let mut kinds: Vec<((f64, Option<u64>), u64)> = Vec::new();
    for node in &summary.nodes {
        let Some(cores) = node.cores_allowed else { continue };
        let kind = (cores, node.memory_bytes);
        match kinds.iter_mut().find(|(known, _)| *known == kind) {
            Some((_, count)) => *count += 1,
            None => kinds.push((kind, 1)),
        }
    }
    let fact = |((cores, memory), count): ((f64, Option<u64>), u64)| {
        let memory = memory.map(|bytes| quantity::bytes(bytes as f64, units));
        let label = if count == 1 { "1 node".to_owned() } else { format!("{count} nodes") };
        let memory = memory.unwrap_or_else(|| format!("{UNKNOWN} memory"));
        Fact::new(&label, format!("{} cores allowed, {memory}", quantity::count(cores)))
    };
    kinds.into_iter().map(fact).collect()
}

/// What the recorders cost.
fn monitor(summary: &JobSummary) -> Vec<Fact> {
    let monitors = || summary.nodes.iter().filter_map(|node| node.monitor.as_ref());
    let memory = monitors().filter_map(|monitor| monitor.memory_peak_bytes).max();
    let share = summary.monitor_cost_ratio.map_or(UNKNOWN.to_owned(), quantity::ratio);
    let ticks: u64 = monitors().map(|monitor| monitor.ticks).sum();
    let missed: u64 = monitors().map(|monitor| monitor.ticks_missed).sum();
    let memory = memory.map(|bytes| quantity::bytes(bytes as f64, Units::Binary));
    vec![
        Fact::new("CPU time of all recorders", quantity::seconds(summary.monitor_cpu_seconds)),
        Fact::new("Share of one core on each node", share),
        Fact::new("Memory of the largest, peak", memory.unwrap_or_else(|| UNKNOWN.to_owned())),
        Fact::new("Ticks", quantity::count(ticks as f64)),
        Fact::new("Ticks missed", quantity::count(missed as f64)),
    ]
}

/// What is missing, node by node; a sentence each.
fn missing(summary: &JobSummary) -> Vec<String> {
    let mut sentences = Vec::new();
    for node in &summary.nodes {
        let name = &node.name;
        match node.state {
            NodeState::Missing => {
                let why = node.unreadable.as_deref().unwrap_or("no recorder has begun there");
                sentences.push(format!("{name}: {why}"));
            }
            NodeState::Lost => sentences.push(format!(
                "{name}: its recording has no end: the recorder was killed, or the node died"
            )),
            NodeState::Silent => {
                sentences.push(format!("{name}: its recorder has not written for a minute"));
            }
            NodeState::Recording | NodeState::Ended => {}
        }
        if node.gaps.count > 0 {
            let (count, long) = (node.gaps.count, quantity::seconds(node.gaps.seconds));
            sentences.push(format!("{name}: {count} times without a sample, {long} in all"));
        }
        sentences.extend(node.losses.iter().map(|loss| format!("{name}: {loss}")));
        let faults = node.monitor.iter().flat_map(|monitor| &monitor.faults);
        let faults = faults.filter(|fault| !node.losses.iter().any(|loss| loss == *fault));
        sentences.extend(faults.map(|fault| format!("{name}: {fault}")));
    }
    grouped(sentences)
}

/// Sentences that differ only in the node are one.
fn grouped(sentences: Vec<String>) -> Vec<String> {
    let mut whats: Vec<(String, Vec<String>)> = Vec::new();
    for sentence in sentences {
        let Some((node, what)) = sentence.split_once(": ") else { continue };
        match whats.iter_mut().find(|(known, _)| known == what) {
            Some((_, nodes)) => nodes.push(node.to_owned()),
            None => whats.push((what.to_owned(), vec![node.to_owned()])),
        }
    }
    let named = |nodes: &[String]| crate::summary::job::named(nodes.iter().map(String::as_str));
    whats.iter().map(|(what, nodes)| format!("{}: {what}", named(nodes))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::ChartForm;
    use crate::summary::job::tests::of_nodes;

    fn document(nodes: usize) -> Document {
        Document::of_job(&of_nodes(nodes), Units::Binary)
    }

    fn chart<'a>(document: &'a Document, name: &str) -> &'a crate::plot::Chart {
        let mut all = document.chapters.iter().flat_map(|chapter| &chapter.charts);
        all.find(|chart| chart.name == name).unwrap()
    }

    #[test]
    fn report_of_a_job_begins_with_its_nodes_and_how_well_they_were_recorded() {
        let document = document(2);
        assert_eq!(document.title, "SLURM job 7");
        let sentence = &document.verdict.sentence;
        assert!(
            sentence.starts_with("Nodes: 3 expected, 2 recorded, 1 silent (n3), 0 ended early;"),
            "{sentence}"
        );
        assert!(sentence.contains("Clocks agree to within"), "{sentence}");
        assert_eq!(document.verdict.severity, Some(Severity::Warning));
        assert_eq!((document.page_header.job.as_str(), document.page_header.nodes), ("7", 3));
        assert_eq!(document.missing, ["n3: no recorder has begun there"]);
        let figure = document.figure(FigureId::CpuTime).unwrap();
        assert_eq!(figure[1].number, Some(110.0), "50 s and 60 s");
        assert_eq!((figure[4].text.as_str(), figure[5].text.as_str()), ("n2", "8.3 %"));
        let nodes = document.tables.iter().find(|table| table.name == "job-nodes").unwrap();
        assert_eq!(nodes.rows.len(), 3);
        assert!(nodes.rows.iter().all(|row| row.len() == nodes.columns.len()));
    }

    #[test]
    fn few_nodes_are_lines_and_many_are_a_heat_map() {
        assert_eq!(chart(&document(2), "nodes-cpu").form, ChartForm::Rates);
        let many = document(16);
        let cores = chart(&many, "nodes-cpu");
        assert_eq!((cores.form, cores.series.len()), (ChartForm::Heatmap, 16));
        let all = chart(&many, "job-cpu");
        assert_eq!((all.series.len(), all.limits[0].value), (1, 17.0 * 4.0));
        // 0.5 + 0.6 + … + 2.0 cores.
        assert!((all.series[0].values[5] - 20.0).abs() < 1e-6);
    }

    #[cfg(all(feature = "html", feature = "pdf"))]
    #[test]
    fn job_is_written_in_all_formats() {
        let document = document(16);
        let page = crate::report::html(&document).unwrap();
        assert!(page.contains("SLURM job 7") && page.contains("class=\"mean\""));
        let text = crate::report::markdown(&document, |chart| chart.name.clone());
        assert!(text.contains("| n16 | ended |"), "{text}");
        let pdf = crate::report::pdf(&document, crate::report::PdfExtent::Short).unwrap();
        assert!(pdf.starts_with(b"%PDF"));
    }
}
