//! The summary as a few lines of text for a terminal.
//!
//! Text from outside (names, reasons) is shown with control characters escaped: a process may have
//! any name.

use std::path::Path;

use crate::catalog::FigureId;
use crate::quantity::{self, Units};
use crate::summary::phases::Named;
use crate::summary::{Figure, Finding, Method, Run, RunOutcome, Severity, Summary};
use crate::text::{printable, wrap};

/// Most phase names listed: a summary must fit on a screen.
const MAX_PHASES: usize = 20;

/// Style of the text.
#[derive(Debug, Clone, Copy, Default)]
pub struct Style {
    /// The units of sizes.
    pub units: Units,
    /// Whether to use colours.
    pub colour: bool,
}

pub(super) const BOLD: &str = "\x1b[1m";
pub(super) const DIM: &str = "\x1b[2m";
pub(super) const RED: &str = "\x1b[31m";
const GREEN: &str = "\x1b[32m";
pub(super) const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

impl Style {
    pub(super) fn paint(self, colour: &str, text: &str) -> String {
        if self.colour { format!("{colour}{text}{PLAIN}") } else { text.to_owned() }
    }

    pub(super) fn bytes(self, value: f64) -> String {
        quantity::bytes(value, self.units)
    }
}

/// The summary of a run, and where it is recorded.
pub fn summary(summary: &Summary, recording: Option<&Path>, style: Style) -> String {
    let mut text = SummaryText { out: heading(summary, style), style };
    if let Some(target) = &summary.run.target {
        text.long_line(target.verb(), &printable(&target.words()));
    }
    text.figures(summary);
    text.machine(summary);
    text.monitor(summary);
    if let Some(path) = recording {
        text.long_line("recorded", &printable(&path.to_string_lossy()));
    }
    text.phases(&summary.named_phases());
    if summary.run.is_of_programs() {
        text.out.push_str(&super::tools::table(&summary.tools, style));
    }
    for fault in &summary.monitor.faults {
        text.remark(YELLOW, "not measured", &printable(fault), "");
    }
    for finding in &summary.findings {
        text.finding(finding);
    }
    text.out
}

/// What ran, how it ended and how long it took.
pub(super) fn heading(summary: &Summary, style: Style) -> String {
    let run = &summary.run;
    let outcome = run.outcome();
    let colour = match outcome {
        RunOutcome::Well | RunOutcome::Followed(_) => GREEN,
        RunOutcome::Failed(_) | RunOutcome::Killed(_) => RED,
        RunOutcome::NotRecorded | RunOutcome::Stopped(_) => YELLOW,
    };
    let measured = measured_longer(run).map(|time| format!(", measured for {time}"));
    format!(
        "{} {} · {} · {}{}\n",
        style.paint(DIM, "weigh:"),
        style.paint(BOLD, &printable(&run.name)),
        style.paint(colour, &outcome.words()),
        style.paint(BOLD, &quantity::seconds(run.duration_seconds)),
        measured.unwrap_or_default()
    )
}

/// How long the run was measured, where that is longer than its command took.
pub(super) fn measured_longer(run: &Run) -> Option<String> {
    let measured = quantity::seconds(run.measured());
    (measured != quantity::seconds(run.duration_seconds)).then_some(measured)
}

struct SummaryText {
    out: String,
    style: Style,
}

impl SummaryText {
    fn push(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// A label, a value, its method and a note.
    fn line(&mut self, label: &str, value: &str, method: &str, note: &str) {
        let mut notes = wrapped(note).into_iter();
        let note = notes.next().unwrap_or_default();
        let line = format!(
            "  {} {} {} {note}",
            self.style.paint(DIM, &format!("{label:<10}")),
            self.style.paint(BOLD, &format!("{value:<13}")),
            self.style.paint(DIM, &format!("{method:<9}")),
        );
        self.push(&line);
        notes.for_each(|note| self.more(&note));
    }

    /// A label and a value that fills the line.
    fn long_line(&mut self, label: &str, value: &str) {
        let label = self.style.paint(DIM, &format!("{label:<10}"));
        self.push(&format!("  {label} {value}"));
    }

    /// A note that continues the line above.
    fn more(&mut self, note: &str) {
        self.push(&format!("{:NOTES$}{note}", ""));
    }

    /// A line about a figure that may be unknown.
    fn figure(&mut self, label: &str, figure: &Figure, show: impl Fn(f64) -> String, note: &str) {
        match (figure.value, figure.method) {
            (Some(value), Some(method)) => self.line(label, &show(value), method.name(), note),
            _ => {
                let reason = printable(figure.reason.as_deref().unwrap_or("no reason was given"));
                let upper = figure.upper.map(|upper| format!("at most {}", show(upper)));
                self.line(label, "unknown", "", &join(&[upper, Some(reason)]));
            }
        }
    }

    fn figures(&mut self, summary: &Summary) {
        let none = Figure::default();
        let get = |id| summary.figures.get(id).unwrap_or(&none);
        let several = summary.processes.total > 1;

        let cpu = get(FigureId::CpuTime);
        let split = user_and_system(cpu, get(FigureId::CpuUser), get(FigureId::CpuSystem));
        self.figure("CPU time", cpu, quantity::seconds, &split);
        let is_open = cpu.method == Some(Method::Exact) && cpu.upper.is_none();
        if is_open && (several || summary.processes.some_unseen) {
            self.more("at least: auto-reaped children are not counted");
        }
        // With several named processes, or programs, there is no main process.
        let main = summary.parts.main.figures.get(FigureId::CpuTime);
        if several && main.is_some_and(|main| main.value.is_some()) {
            let parts = &summary.parts;
            let of = |figures: &crate::summary::Figures| {
                figures.get(FigureId::CpuTime).cloned().unwrap_or_default()
            };
            self.more(&join(&[
                beside(cpu, "main", &of(&parts.main.figures), quantity::seconds),
                beside(cpu, "descendants", &of(&parts.descendants.figures), quantity::seconds),
            ]));
        }
        self.cores(summary);
        self.memory(summary);
        self.gpus(summary);
        let processes = &summary.processes;
        let mut note = join(&[
            several.then(|| format!("up to {} at a time", quantity::count(processes.peak as f64))),
            part("threads up to", get(FigureId::ThreadsPeak), quantity::count),
            part("open files up to", get(FigureId::FilesOpenPeak), quantity::count),
        ]);
        if processes.some_unseen {
            note = join(&[
                Some("at least: short-lived processes may be missing".to_owned()),
                Some(note),
            ]);
        }
        self.line("processes", &quantity::count(processes.total as f64), "", &note);
        self.io(summary);
        self.network(summary);
    }

    fn cores(&mut self, summary: &Summary) {
        let none = Figure::default();
        let mean = summary.figures.get(FigureId::CpuCoresMean).unwrap_or(&none);
        let share = summary.figures.value(FigureId::CpuUtilizationMean);
        // Mean divided by ratio gives the total: the cores expected, or all it may use.
        let share = share.zip(mean.value).map(|(share, mean)| {
            let all = if share > 0.0 { mean / share } else { summary.host.cores_allowed };
            format!("{} of {}", quantity::ratio(share), quantity::count(all))
        });
        let peak = summary.figures.get(FigureId::CpuCoresPeak).unwrap_or(&none);
        let note = join(&[share, beside(mean, "peak", peak, |cores| format!("{cores:.2}"))]);
        self.figure("cores", mean, |cores| format!("{cores:.2}"), &note);
    }

    fn memory(&mut self, summary: &Summary) {
        let none = Figure::default();
        let get = |id| summary.figures.get(id).unwrap_or(&none);
        let style = self.style;
        let peak = get(FigureId::MemoryPeak);
        let when = when(peak);
        let ceiling = match (peak.upper, peak.value) {
            (Some(upper), Some(value)) if upper > value * 1.01 => {
                Some(format!("at most {}", style.bytes(upper)))
            }
            _ => None,
        };
        let floor = (peak.value.is_some() && peak.upper.is_none()).then(|| "at least".to_owned());
        let note = join(&[floor, when, ceiling]);
        self.figure("memory", peak, |value| style.bytes(value), &note);
        let limit = summary.host.tight_memory_limit_bytes();
        let more = join(&[
            limit.map(|limit| format!("{} allowed", style.bytes(limit as f64))),
            beside(peak, "huge pages peak", get(FigureId::MemoryHugetlbPeak), |value| {
                style.bytes(value)
            }),
            beside(peak, "page cache peak", get(FigureId::MemoryCachePeak), |value| {
                style.bytes(value)
            }),
            // A mean over a few milliseconds of start-up is meaningless.
            beside(peak, "mean", get(FigureId::MemoryMean), |value| style.bytes(value))
                .filter(|_| summary.run.measured() >= 1.0),
            beside(peak, "swap", get(FigureId::SwapPeak), |value| style.bytes(value))
                .filter(|_| get(FigureId::SwapPeak).value > Some(0.0)),
        ]);
        if !more.is_empty() {
            self.more(&more);
        }
    }

    /// GPU figures, where GPUs are worth reporting.
    fn gpus(&mut self, summary: &Summary) {
        if !super::gpus::worth_reporting(summary) {
            return;
        }
        let none = Figure::default();
        let get = |id| summary.figures.get(id).unwrap_or(&none);
        let system = summary.parts.system.figures.get(FigureId::GpuMemoryPeak).unwrap_or(&none);
        let style = self.style;
        let reporting = summary.gpus.iter().filter(|gpu| gpu.says_how_busy());
        let mut means: Vec<f64> = reporting.filter_map(|gpu| gpu.utilization_mean_ratio).collect();
        means.sort_by(f64::total_cmp);
        let of = match means[..] {
            [_] => "one GPU".to_owned(),
            [least, .., most] => {
                let (least, most) = (quantity::ratio(least), quantity::ratio(most));
                format!("{} GPUs, each {least} to {most}", means.len())
            }
            [] => "0 GPUs".to_owned(),
        };
        let memory = get(FigureId::GpuMemoryPeak);
        let note = beside(memory, "all processes", system, |bytes| style.bytes(bytes));
        self.figure("GPU memory", memory, |bytes| style.bytes(bytes), &join(&[note]));
        let busy = get(FigureId::GpuUtilizationMean);
        let note = join(&[
            Some(format!("of {of}")),
            beside(busy, "peak", get(FigureId::GpuUtilizationPeak), quantity::ratio),
            beside(busy, "used", get(FigureId::GpuEnergy), |joules| quantity::scaled(joules, "J")),
        ]);
        self.figure("GPU busy", busy, quantity::ratio, &note);
    }

    fn io(&mut self, summary: &Summary) {
        let none = Figure::default();
        let get = |id| summary.figures.get(id).unwrap_or(&none);
        let style = self.style;
        let (read, written) = (get(FigureId::IoRead), get(FigureId::IoWritten));
        let note = join(&[
            beside(read, "from storage", get(FigureId::IoStorageRead), |value| style.bytes(value)),
            beside(read, "calls", get(FigureId::IoReadCalls), quantity::count),
        ]);
        self.figure("read", read, |value| style.bytes(value), &note);
        let note = join(&[
            beside(written, "to storage", get(FigureId::IoStorageWritten), |value| {
                style.bytes(value)
            }),
            beside(written, "calls", get(FigureId::IoWriteCalls), quantity::count),
        ]);
        if written.value.is_some() {
            self.figure("written", written, |value| style.bytes(value), &note);
        }
        let major = get(FigureId::PageFaultsMajor);
        if major.value > Some(0.0) {
            self.figure("faults", major, quantity::count, "major page faults (read from storage)");
        }
        let switches = get(FigureId::ContextSwitchesInvoluntary);
        if switches.value > Some(0.0) {
            self.figure("switches", switches, quantity::count, "involuntary context switches");
        }
    }

    /// Network traffic, if there was any.
    fn network(&mut self, summary: &Summary) {
        let style = self.style;
        let ways = [
            ("sent", FigureId::NetworkSent, FigureId::NetworkLoopbackSent),
            ("received", FigureId::NetworkReceived, FigureId::NetworkLoopbackReceived),
        ];
        for (label, id, loopback) in ways {
            let Some(figure) = summary.figures.get(id) else { continue };
            // An unknown value with a bound is shown, too.
            let may_be = figure.value.is_none() && figure.lower.is_some();
            if figure.value > Some(0.0) || may_be {
                let note = match summary.figures.value(loopback) {
                    None => "TCP payload, headers excluded".to_owned(),
                    Some(0.0) => String::new(),
                    Some(bytes) => format!("{} of it through the loopback", style.bytes(bytes)),
                };
                self.figure(label, figure, |value| style.bytes(value), &note);
            }
        }
    }

    fn machine(&mut self, summary: &Summary) {
        let figures = &summary.parts.system.figures;
        let busy = figures.value(FigureId::CpuUtilizationMean);
        let used = figures.value(FigureId::MemoryUsedPeak);
        let memory = used.zip(summary.host.memory_bytes).map(|(used, total)| {
            format!("memory up to {} of {}", self.style.bytes(used), self.style.bytes(total as f64))
        });
        let busy = busy.map(|busy| format!("{} busy", quantity::ratio(busy)));
        let named = |id| figures.value(id);
        let traffic = |way: &str, id| {
            let bytes = named(id).filter(|bytes| *bytes > 0.0);
            bytes.map(|bytes| format!("{way} {}", self.style.bytes(bytes)))
        };
        let note = join(&[
            memory,
            named(FigureId::Energy).map(|joules| format!("used {}", quantity::scaled(joules, "J"))),
            traffic("received", FigureId::NetworkReceived),
            traffic("sent", FigureId::NetworkSent),
            traffic("InfiniBand received", FigureId::InfinibandReceived),
            traffic("InfiniBand sent", FigureId::InfinibandSent),
        ]);
        if busy.is_some() || !note.is_empty() {
            self.line("machine", &busy.unwrap_or_default(), "", &note);
        }
    }

    fn monitor(&mut self, summary: &Summary) {
        let monitor = &summary.monitor;
        let missed = (monitor.ticks_missed > 0)
            .then(|| format!("{} missed", quantity::count(monitor.ticks_missed as f64)));
        let note = join(&[
            // In a shorter run start-up dominates the cost.
            monitor
                .cost_ratio
                .filter(|_| summary.run.measured() >= 1.0)
                .map(|ratio| format!("{} of one core", quantity::ratio(ratio))),
            monitor.memory_peak_bytes.map(|peak| self.style.bytes(peak as f64)),
            Some(format!("{} ticks", quantity::count(monitor.ticks as f64))),
            missed,
        ]);
        self.line("weigh", &quantity::seconds(monitor.cpu_seconds), "", &note);
    }

    fn phases(&mut self, phases: &[Named]) {
        let shown = &phases[..phases.len().min(MAX_PHASES)];
        for (name, note) in super::phases::lines(shown, self.style) {
            self.line("phase", &name, "", &note);
        }
        if phases.len() > shown.len() {
            let more = format!("and {} more names", phases.len() - shown.len());
            self.line("phase", &more, "", "weigh show --phases");
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let (colour, label) = match finding.severity {
            Severity::Problem => (RED, "problem"),
            Severity::Warning => (YELLOW, "warning"),
            Severity::Note => (DIM, "note"),
        };
        self.remark(colour, label, &printable(&finding.sentence), &finding.advice);
    }

    fn remark(&mut self, colour: &str, label: &str, sentence: &str, advice: &str) {
        let label = format!("{label}:");
        let lines = wrap(&format!("{label} {sentence}"), 75).join("\n    ");
        self.push(&format!("  {}", lines.replacen(&label, &self.style.paint(colour, &label), 1)));
        if !advice.is_empty() {
            let advice = self.style.paint(DIM, advice);
            self.push(&format!("    {advice}"));
        }
    }
}

/// The column where notes begin.
const NOTES: usize = 37;

/// A note in lines that end before column 80, wrapped after commas, else between words.
fn wrapped(note: &str) -> Vec<String> {
    const WIDTH: usize = 79 - NOTES;
    let mut lines: Vec<String> = Vec::new();
    let length = |text: &str| text.chars().count();
    for piece in note.split_inclusive(", ") {
        let words = if length(piece.trim_end()) > WIDTH {
            piece.split_inclusive(' ').collect()
        } else {
            vec![piece]
        };
        for word in words {
            match lines.last_mut() {
                Some(line) if length(line) + length(word.trim_end()) <= WIDTH => {
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
    }
    lines
}

/// A name and a figure's value, if known.
fn part(name: &str, figure: &Figure, show: impl Fn(f64) -> String) -> Option<String> {
    figure.value.map(|value| format!("{name} {}", show(value)))
}

/// The same in the line of another figure, whose method applies to the line: a less certain figure
/// names its own method.
fn beside(
    row: &Figure,
    name: &str,
    figure: &Figure,
    show: impl Fn(f64) -> String,
) -> Option<String> {
    let own = figure.method.filter(|own| *own != Method::Exact && Some(*own) != row.method);
    let own = own.map_or_else(String::new, |own| format!(" ({})", own.name()));
    part(name, figure, show).map(|part| part + &own)
}

/// The split into user and system time, which the kernel estimates at its clock ticks.
fn user_and_system(cpu: &Figure, user: &Figure, system: &Figure) -> String {
    let own = user.method.filter(|own| *own != Method::Exact && Some(*own) != cpu.method);
    match (user.value, system.value, own) {
        (Some(of_user), Some(of_system), Some(own)) if system.method == Some(own) => {
            let (user, system) = (quantity::seconds(of_user), quantity::seconds(of_system));
            format!("user ~{user}, system ~{system} ({})", own.name())
        }
        _ => join(&[
            beside(cpu, "user", user, quantity::seconds),
            beside(cpu, "system", system, quantity::seconds),
        ]),
    }
}

/// When a figure was reached, as text: a time, or an interval where only that is known.
pub(super) fn when(figure: &Figure) -> Option<String> {
    let shown = quantity::seconds;
    match (figure.at_seconds, figure.after_seconds, figure.before_seconds) {
        (Some(at), _, _) => Some(format!("at {}", shown(at))),
        (None, Some(after), Some(before)) => {
            Some(format!("between {} and {}", shown(after), shown(before)))
        }
        (None, None, Some(before)) => Some(format!("before {}", shown(before))),
        (None, _, None) => None,
    }
}

pub(super) fn join(parts: &[Option<String>]) -> String {
    parts.iter().flatten().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_certain_figure_names_its_method() {
        let (exact, sampled) = (Figure::exact(1.5, "wait4"), Figure::sampled(1.81, "ticks"));
        let estimated = Figure::between(0.5, Method::Estimated, 0.0, None, "clock ticks");
        let shown = |row: &Figure, figure: &Figure| {
            beside(row, "peak", figure, |value| format!("{value:.2}")).unwrap()
        };
        assert_eq!(shown(&exact, &sampled), "peak 1.81 (sampled)");
        assert_eq!(shown(&sampled, &sampled), "peak 1.81");
        assert_eq!(shown(&sampled, &exact), "peak 1.50");
        assert_eq!(shown(&sampled, &estimated), "peak 0.50 (estimated)");
        assert_eq!(
            user_and_system(&exact, &estimated, &estimated),
            "user ~500 ms, system ~500 ms (estimated)"
        );
        assert_eq!(user_and_system(&exact, &exact, &exact), "user 1.50 s, system 1.50 s");
        let unknown = Figure::unknown("wait4", "it was not split");
        assert_eq!(user_and_system(&exact, &unknown, &estimated), "system 500 ms (estimated)");
    }

    #[test]
    fn notes_wrap_after_commas_and_between_words() {
        let lines = wrapped("one thing that is long enough, another thing that is long enough");
        assert_eq!(lines, ["one thing that is long enough, ", "another thing that is long enough"]);
        assert!(wrapped(&"word ".repeat(30)).iter().all(|line| line.trim_end().len() <= 42));
        assert_eq!(wrapped(""), [""; 0]);
    }
}
