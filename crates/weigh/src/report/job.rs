//! What a batch job used, as one screen of text for the log of the job.

use super::columns::TextColumns;
use super::phases::quantity_of;
use super::style::{BOLD, COLUMNS, DIM, Style, YELLOW};
use crate::catalog::FigureId;
use crate::quantity::{self, Units};
use crate::summary::job::{CombinedFigure, JobSummary, NodeState, NodeSummary, memory_need, named};
use crate::text::{printable, wrap};

/// Most nodes listed: the report must fit on a screen. Those with the most CPU time are listed.
const MAX_NODES: usize = 16;

/// Most findings: the page has all.
const MAX_FINDINGS: usize = 3;

/// The summary of a job.
pub fn text(summary: &JobSummary, style: Style) -> String {
    let mut out = heading(summary, style);
    let mut line = |label: &str, value: String| {
        let label = style.paint(DIM, &format!("{label:<10}"));
        out.push_str(&format!("  {label} {value}\n"));
    };
    line("nodes", nodes_line(summary, style));
    if let Some(clocks) = clocks(summary) {
        line("clocks", printable(&clocks));
    }
    if let Some(asked) = requested(summary, style.units) {
        line("requested", asked);
    }
    if let Some(cpu) = summary.figure(FigureId::CpuTime) {
        let reserved = summary.reserved_core_seconds();
        let share = reserved.filter(|reserved| *reserved > 0.0).map(|reserved| {
            let (ratio, all) = (quantity::ratio(cpu.sum / reserved), quantity::seconds(reserved));
            format!(", {ratio} of {all} that were reserved")
        });
        let (sum, share) = (quantity::seconds(cpu.sum), share.unwrap_or_default());
        line("CPU time", format!("{}{share}", style.paint(BOLD, &sum)));
    }
    if let Some(memory) = summary.figure(FigureId::MemoryPeak) {
        let (largest, node) = (style.bytes(memory.max), printable(&memory.max_node));
        line("memory", format!("{} on {node}, the largest", style.paint(BOLD, &largest)));
    }
    if let Some(need) = memory_need(summary) {
        let of = need
            .requested
            .map(|bytes| format!(" of {} requested", style.bytes(bytes)))
            .unwrap_or_default();
        let node = printable(&need.node.name);
        line(
            "needed",
            format!("{}{of}, on {node}, page cache not counted", style.bytes(need.bytes)),
        );
    }
    let cost = quantity::seconds(summary.monitor_cpu_seconds);
    let share = summary.monitor_cost_ratio.map(quantity::ratio);
    let share = share.map(|share| format!(", {share} of a core")).unwrap_or_default();
    line("recorders", format!("{cost} of CPU time{share}"));
    out.push_str(&node_table(summary, style));
    out.push_str(&combined_table(summary, style));
    out.push_str(&findings(summary, style));
    out
}

/// The first findings, with what to do.
fn findings(summary: &JobSummary, style: Style) -> String {
    let width = style.columns.min(COLUMNS).saturating_sub(3);
    let mut out = String::new();
    for finding in summary.findings.iter().take(MAX_FINDINGS) {
        let lines = wrap(&printable(&format!("{} {}", finding.sentence, finding.advice)), width);
        let lines = lines.iter().map(|line| format!("  {}\n", style.paint(YELLOW, line)));
        out.extend(lines);
    }
    out
}

fn heading(summary: &JobSummary, style: Style) -> String {
    let job = summary.job.as_ref();
    let id = job.and_then(|job| job.id.as_deref()).unwrap_or("unknown");
    let name =
        job.and_then(|job| job.name.as_deref()).map(|name| format!(" · {}", printable(name)));
    let of = job.map(|job| job.scheduler.name()).unwrap_or("batch");
    let user =
        job.and_then(|job| job.user.as_deref()).map(|user| format!(" · {}", printable(user)));
    format!(
        "{} {}{}{} · {}{}\n",
        style.paint(DIM, "weigh:"),
        style.paint(BOLD, &format!("{of} job {}", printable(id))),
        name.unwrap_or_default(),
        user.unwrap_or_default(),
        quantity::seconds(summary.duration_seconds),
        if summary.is_running { " · still running" } else { "" },
    )
}

/// Nodes expected, recorded, silent and ended early, and gaps.
pub(super) fn coverage(summary: &JobSummary) -> String {
    let coverage = &summary.coverage;
    let expected = coverage.expected.map_or("unknown".to_owned(), |count| count.to_string());
    let listed = |what: &str, names: &[String]| match names {
        [] => format!("0 {what}"),
        _ => format!("{} {what} ({})", names.len(), named(names.iter().map(String::as_str))),
    };
    let mut line = format!(
        "{expected} expected, {} recorded, {}, {}",
        coverage.recorded,
        listed("silent", &coverage.silent),
        listed("ended early", &coverage.ended_early),
    );
    if !coverage.idle.is_empty() {
        line.push_str(&format!(", {}", listed("without a process of the job", &coverage.idle)));
    }
    if !coverage.with_gaps.is_empty() {
        line.push_str(&format!(", {}", listed("with gaps", &coverage.with_gaps)));
    }
    line
}

/// How well the clocks of the recorded nodes agree; `None` for one node.
pub(super) fn clocks(summary: &JobSummary) -> Option<String> {
    let recorded: Vec<&NodeSummary> =
        summary.nodes.iter().filter(|node| node.started.is_some()).collect();
    if recorded.len() < 2 {
        return None;
    }
    let known = || recorded.iter().filter_map(|node| Some((node, node.clock.as_ref()?)));
    let unknown = recorded.len() - known().count();
    let within = known().map(|(_, clock)| clock.uncertainty_seconds).fold(0.0, f64::max);
    let within = if within > 0.0 {
        format!(" to within {}", quantity::seconds(within))
    } else {
        String::new()
    };
    let corrected: Vec<String> = known()
        .filter(|(_, clock)| clock.corrected_seconds != 0.0)
        .map(|(node, clock)| {
            let (ahead, by) =
                (clock.corrected_seconds, quantity::seconds(clock.corrected_seconds.abs()));
            format!("{} {by} {}", node.name, if ahead > 0.0 { "ahead" } else { "behind" })
        })
        .collect();
    let mut parts = Vec::new();
    match corrected.is_empty() {
        true if unknown == recorded.len() || unknown + 1 == recorded.len() => {}
        true => parts.push(format!("agree{within}")),
        false => parts
            .push(format!("corrected{within}: {}", named(corrected.iter().map(String::as_str)))),
    }
    if unknown > 0 {
        parts.push(format!("nothing tells how those of {unknown} nodes differ"));
    }
    Some(parts.join("; "))
}

/// The same in the lines of the text.
fn nodes_line(summary: &JobSummary, style: Style) -> String {
    let (coverage, line) = (&summary.coverage, printable(&coverage(summary)));
    /// Where values begin.
    const COLUMN: usize = 13;
    let is_whole = coverage.silent.is_empty() && coverage.ended_early.is_empty();
    let painted = |line: &String| match is_whole {
        true => line.clone(),
        false => style.paint(YELLOW, line),
    };
    let lines = wrap(&line, style.columns.min(COLUMNS).saturating_sub(COLUMN + 1));
    lines.iter().map(painted).collect::<Vec<_>>().join(&format!("\n{:COLUMN$}", ""))
}

/// What was requested of each node, where that is the same everywhere.
pub(super) fn requested(summary: &JobSummary, units: Units) -> Option<String> {
    let first = summary.nodes.first()?.requested;
    let is_same = summary.nodes.iter().all(|node| node.requested == first);
    let cores = first.cores.map(|cores| format!("{cores} cores"));
    let memory = first.memory_bytes.map(|bytes| quantity::bytes(bytes as f64, units));
    let gpus = first.gpus.map(|gpus| format!("{gpus} GPUs"));
    let limit = summary.job.as_ref().and_then(|job| job.time_limit_seconds);
    let limit = limit.map(|limit| format!("time limit {}", quantity::seconds(limit as f64)));
    let partition = summary.job.as_ref().and_then(|job| job.partition.as_deref());
    let partition = partition.map(|name| format!("partition {}", printable(name)));
    let each: Vec<String> =
        [cores, memory, gpus].into_iter().flatten().filter(|_| is_same).collect();
    let each = (!each.is_empty()).then(|| format!("{} on each node", each.join(", ")));
    let all: Vec<String> = [each, limit, partition].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(" · "))
}

fn node_table(summary: &JobSummary, style: Style) -> String {
    let columns = TextColumns {
        indent: 2,
        header: ["node", "state", "CPU time", "cores", "of", "memory", "time"],
        left_aligned: &[0, 1],
        elastic: 0,
        optional: &[4],
    };
    let mut nodes: Vec<&NodeSummary> = summary.nodes.iter().collect();
    if nodes.len() > MAX_NODES {
        let cpu = |node: &NodeSummary| node.figures.value(FigureId::CpuTime).unwrap_or(-1.0);
        nodes.sort_by(|one, other| cpu(other).total_cmp(&cpu(one)));
        nodes.truncate(MAX_NODES);
    }
    let row = |node: &&NodeSummary| {
        let figure = |id| match node.figures.value(id) {
            Some(value) => quantity_of(id, value, style.units),
            None => "-".to_owned(),
        };
        let cores = node.cores();
        [
            printable(&node.name),
            state(node).to_owned(),
            figure(FigureId::CpuTime),
            figure(FigureId::CpuCoresMean),
            cores.map_or("-".to_owned(), quantity::count),
            figure(FigureId::MemoryPeak),
            node.duration_seconds.map_or("-".to_owned(), quantity::seconds),
        ]
    };
    let rows: Vec<_> = nodes.iter().map(row).collect();
    let mut text = columns.lines(&rows, style, |_| false);
    let left = summary.nodes.len() - nodes.len();
    if left > 0 {
        text.push_str(&format!("  and {left} more nodes, with less CPU time\n"));
    }
    text
}

/// How a node's recording stands, in a word.
pub(super) fn state(node: &NodeSummary) -> &'static str {
    match node.state {
        NodeState::Missing if node.unreadable.is_some() => "unreadable",
        NodeState::Missing => "missing",
        NodeState::Recording => "recording",
        NodeState::Silent => "silent",
        NodeState::Ended => "ended",
        NodeState::Lost => "lost",
    }
}

fn combined_table(summary: &JobSummary, style: Style) -> String {
    if summary.coverage.recorded < 2 {
        return String::new();
    }
    let columns = TextColumns {
        indent: 2,
        header: ["all nodes", "sum", "mean", "max", "on", "imbalance"],
        left_aligned: &[0, 4],
        elastic: 4,
        optional: &[2],
    };
    let row = |figure: &CombinedFigure| {
        let id = FigureId::named(figure.name)?;
        let shown = |value| quantity_of(id, value, style.units);
        let imbalance = figure.imbalance_ratio.map_or("-".to_owned(), quantity::ratio);
        let node = printable(&figure.max_node);
        let [sum, mean, max] = [figure.sum, figure.mean, figure.max].map(shown);
        Some([id.label().to_owned(), sum, mean, max, node, imbalance])
    };
    let is_used = |figure: &&CombinedFigure| figure.max > 0.0;
    let rows: Vec<_> = summary.figures.iter().filter(is_used).filter_map(row).collect();
    columns.lines(&rows, style, |_| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::batch_job::{BatchJob, Requested, Scheduler};
    use crate::record::manifest::Origin;
    use crate::summary::job::{NodeCoverage, SampleGaps};
    use crate::summary::{Figure, Figures};

    fn node(name: &str, state: NodeState, cpu: f64) -> NodeSummary {
        let mut figures = Figures::default();
        if state != NodeState::Missing {
            figures.insert(FigureId::CpuTime, Figure::exact(cpu, "test"));
            figures.insert(FigureId::MemoryPeak, Figure::exact(cpu * 1e9, "test"));
            let needed = Figure::exact(cpu * 0.5e9, "test");
            figures.insert(FigureId::MemoryWithoutCachePeak, needed);
        }
        let requested = Requested { cores: Some(4), memory_bytes: Some(8 << 30), gpus: None };
        NodeSummary {
            name: name.to_owned(),
            state,
            stopped: None,
            started: None,
            clock: None,
            duration_seconds: (state != NodeState::Missing).then_some(10.0),
            worked_until_seconds: None,
            gaps: SampleGaps::default(),
            losses: Vec::new(),
            requested,
            cores_allowed: Some(64.0),
            memory_bytes: None,
            processes: Some(1),
            figures,
            gpus: Vec::new(),
            monitor: None,
            unreadable: None,
        }
    }

    #[test]
    fn first_lines_say_which_nodes_are_missing_and_what_was_used_of_what_was_reserved() {
        let nodes = vec![
            node("n1", NodeState::Ended, 1.0),
            node("n2", NodeState::Lost, 3.0),
            node("n3\x1b[31m", NodeState::Missing, 0.0),
        ];
        let cpu = CombinedFigure {
            name: FigureId::CpuTime.name(),
            nodes: 2,
            sum: 4.0,
            mean: 2.0,
            max: 3.0,
            max_node: "n2".to_owned(),
            imbalance_ratio: Some(1.0 / 3.0),
        };
        let memory = CombinedFigure {
            name: FigureId::MemoryPeak.name(),
            sum: 4e9,
            mean: 2e9,
            max: 3e9,
            ..cpu.clone()
        };
        let needed = CombinedFigure {
            name: FigureId::MemoryWithoutCachePeak.name(),
            max: 1.5e9,
            ..memory.clone()
        };
        let summary = JobSummary {
            weigh: Origin::default(),
            job: Some(BatchJob {
                id: Some("7".to_owned()),
                time_limit_seconds: Some(300),
                ..BatchJob::of(Scheduler::Slurm)
            }),
            coverage: NodeCoverage {
                expected: Some(3),
                recorded: 2,
                silent: vec!["n3\x1b[31m".to_owned()],
                idle: Vec::new(),
                ended_early: vec!["n2".to_owned()],
                with_gaps: Vec::new(),
            },
            duration_seconds: 10.0,
            started: None,
            figures: vec![cpu, memory, needed],
            findings: Vec::new(),
            is_running: false,
            nodes,
            monitor_cpu_seconds: 0.5,
            monitor_cost_ratio: Some(0.025),
        };
        let text = text(&summary, Style::default());
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let has = |words: &str| assert!(flat.contains(words), "{words} is not in\n{text}");
        has("weigh: SLURM job 7 · 10");
        has("3 expected, 2 recorded, 1 silent (n3");
        has("1 ended early (n2)");
        has("4 cores, 8.00 GiB on each node · time limit");
        has("5 % of");
        has("on n2, the largest");
        has("of 8.00 GiB requested, on n2, page cache not counted");
        has("500 ms of CPU time, 2.5 % of a core");
        assert!(!text.contains('\x1b'), "names are untrusted: {text:?}");
        assert!(text.lines().all(|line| line.chars().count() < 80), "{text}");
    }
}
