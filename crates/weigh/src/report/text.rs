//! The summary as a few lines of text for a terminal.
//!
//! The first three lines have what most readers want: outcome and duration, CPU time, memory. Where
//! the terminal is too narrow for a column of notes, they are below the value.
//!
//! Text from outside (names, reasons) is shown with control characters escaped: a process may have
//! any name.

use std::path::Path;

use super::style::{BOLD, DIM, GREEN, LABEL_END, RED, YELLOW};
pub use super::style::{COLUMNS, Style};
use crate::catalog::FigureId;
use crate::quantity;
use crate::summary::phases::PhaseStatistics;
use crate::summary::{Figure, Finding, Method, Run, RunOutcome, Severity, Summary};
use crate::text::{ellipsize_middle, printable, wrap};

/// Most phase names listed: a summary must fit on a screen.
const MAX_PHASES: usize = 20;

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
    for finding in summary.findings_beside_bottleneck() {
        text.finding(finding);
    }
    text.out
}

/// What ran, how it ended and how long it took.
pub(super) fn heading(summary: &Summary, style: Style) -> String {
    let run = &summary.run;
    let outcome = run.outcome();
    let colour = match outcome {
        RunOutcome::Success | RunOutcome::MonitoringEnded(_) => GREEN,
        RunOutcome::Failed(_) | RunOutcome::Killed(_) => RED,
        RunOutcome::NotRecorded | RunOutcome::Stopped(_) => YELLOW,
    };
    let measured = measured_longer(run).map(|time| format!(", measured for {time}"));
    let measured = measured.unwrap_or_default();
    let (outcome, duration) = (outcome.words(), quantity::seconds(run.duration_seconds));
    let others = format!("weigh:  · {outcome} · {duration}{measured}").chars().count();
    // A name of which nothing is left says nothing.
    let name = ellipsize_middle(&printable(&run.name), style.end().saturating_sub(others).max(12));
    format!(
        "{} {} · {} · {}{measured}\n",
        style.paint(DIM, "weigh:"),
        style.paint(BOLD, &name),
        style.paint(colour, &outcome),
        style.paint(BOLD, &duration),
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
        let style = self.style;
        let (label, value_text) = (format!("{label:<10}"), style.paint(BOLD, value));
        let width = style.end() - style.notes();
        let mut notes;
        let line = if style.has_notes_beside() {
            notes = wrapped(note, width, 0).into_iter();
            // Filled up outside of the paint, so that nothing but spaces is trimmed from an end.
            let after_value = 13_usize.saturating_sub(length(value));
            let after_method = 9_usize.saturating_sub(length(method));
            let (method, note) = (style.paint(DIM, method), notes.next().unwrap_or_default());
            format!("{value_text}{:after_value$} {method}{:after_method$} {note}", "", "")
        } else {
            let before = [value, method].map(length).iter().sum::<usize>() + ", ".len() + 1;
            notes = wrapped(note, width, before).into_iter();
            let note = notes.next().filter(|note| !note.is_empty());
            let note = note.map_or_else(String::new, |note| format!(", {note}"));
            let space = if method.is_empty() { "" } else { " " };
            format!("{value_text}{space}{}{note}", style.paint(DIM, method))
        };
        self.push(&format!("  {} {line}", style.paint(DIM, &label)));
        notes.for_each(|note| self.more(&note));
    }

    /// A label and a value that fills the line.
    fn long_line(&mut self, label: &str, value: &str) {
        let label = self.style.paint(DIM, &format!("{label:<10}"));
        self.push(&format!("  {label} {value}"));
    }

    /// A note that continues the line above.
    fn more(&mut self, note: &str) {
        self.push(&format!("{:1$}{note}", "", self.style.notes()));
    }

    /// A line about a figure that may be unknown.
    fn figure(&mut self, label: &str, figure: &Figure, show: impl Fn(f64) -> String, note: &str) {
        match (figure.value, figure.method) {
            (Some(value), Some(method)) => {
                // An exact one says itself what it lacks.
                let is_floor = method != Method::Exact && figure.is_lower_bound();
                let floor = is_floor.then(|| "at least".to_owned());
                let note = join(&[floor, Some(note.to_owned())]);
                self.line(label, &show(value), method.name(), &note);
            }
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
        let is_open = cpu.method == Some(Method::Exact) && cpu.upper.is_none();
        let open = (is_open && (several || summary.processes.may_miss_processes))
            .then(|| "at least: auto-reaped children are not counted".to_owned());
        let share = share_of_cores(summary);
        self.figure("CPU time", cpu, quantity::seconds, &join(&[share, open]));
        self.memory(summary);
        self.bottleneck(summary);
        self.cores(summary, several);
        self.counters(summary);
        self.gpus(summary);
        let processes = &summary.processes;
        let (threads, files) = (get(FigureId::ThreadsPeak), get(FigureId::FilesOpenPeak));
        let peak = join(&[
            several.then(|| quantity::count(processes.peak as f64)),
            counted(threads, "thread"),
            counted(files, "open file"),
        ]);
        let at_least =
            if [threads, files].into_iter().any(Figure::is_lower_bound) { "at least " } else { "" };
        let note = join(&[
            processes
                .may_miss_processes
                .then(|| "at least: short-lived processes may be missing".to_owned()),
            (!peak.is_empty()).then(|| format!("peak {at_least}{peak}")),
        ]);
        self.line("processes", &quantity::count(processes.total as f64), "", &note);
        self.io(summary);
        self.network(summary);
    }

    /// What limited the run, where it was long enough to say.
    fn bottleneck(&mut self, summary: &Summary) {
        let found = summary.bottleneck.as_ref().filter(|found| found.method.is_some());
        let Some(found) = found else { return };
        let lines = wrap(&printable(&found.sentence), self.style.end() - LABEL_END);
        let mut lines = lines.into_iter();
        self.long_line("bottleneck", &lines.next().unwrap_or_default());
        lines.for_each(|line| self.push(&format!("{:LABEL_END$}{line}", "")));
    }

    /// What hardware counters say, where there are any.
    fn counters(&mut self, summary: &Summary) {
        let Some(sentence) = super::counters::sentence(summary) else { return };
        let mut lines = wrap(&sentence, self.style.end() - LABEL_END).into_iter();
        self.long_line("counters", &lines.next().unwrap_or_default());
        lines.for_each(|line| self.push(&format!("{:LABEL_END$}{line}", "")));
        if let Some((bar, legend)) = super::counters::slots(summary) {
            self.long_line("slots", &bar);
            for line in wrap(&legend, self.style.end() - LABEL_END) {
                self.push(&format!("{:LABEL_END$}{line}", ""));
            }
        }
    }

    /// Cores used, and the parts of the CPU time.
    fn cores(&mut self, summary: &Summary, several: bool) {
        let none = Figure::default();
        let get = |id| summary.figures.get(id).unwrap_or(&none);
        let (mean, cpu) = (get(FigureId::CpuCoresMean), get(FigureId::CpuTime));
        let cores = |cores: f64| format!("{cores:.2}");
        let split = user_and_system(cpu, get(FigureId::CpuUser), get(FigureId::CpuSystem));
        let of = |figures: &crate::summary::Figures| {
            figures.get(FigureId::CpuTime).cloned().unwrap_or_default()
        };
        // With several named processes, or programs, there is no main process.
        let parts = Some(&summary.parts)
            .filter(|parts| several && parts.main.figures.value(FigureId::CpuTime).is_some());
        let note = join(&[
            beside(mean, "peak", get(FigureId::CpuCoresPeak), cores),
            Some(split),
            parts
                .and_then(|parts| beside(cpu, "main", &of(&parts.main.figures), quantity::seconds)),
            parts.and_then(|parts| {
                beside(cpu, "descendants", &of(&parts.descendants.figures), quantity::seconds)
            }),
        ]);
        self.figure("cores", mean, cores, &note);
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
        // Of one process there is nothing to say.
        let process = super::peak_memory::process(summary, style.units)
            .filter(|_| summary.processes.total > 1)
            .map(|process| printable(&process));
        let note = join(&[when, ceiling, process]);
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
        let reporting = summary.gpus.iter().filter(|gpu| gpu.has_utilization());
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
            counted(get(FigureId::IoReadCalls), "call"),
        ]);
        self.figure("read", read, |value| style.bytes(value), &note);
        let note = join(&[
            beside(written, "to storage", get(FigureId::IoStorageWritten), |value| {
                style.bytes(value)
            }),
            counted(get(FigureId::IoWriteCalls), "call"),
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

    fn phases(&mut self, phases: &[PhaseStatistics]) {
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
        let width = self.style.end() - 4;
        let lines = wrap(&format!("{label} {sentence}"), width).join("\n    ");
        self.push(&format!("  {}", lines.replacen(&label, &self.style.paint(colour, &label), 1)));
        if !advice.is_empty() {
            for line in wrap(advice, width) {
                let line = self.style.paint(DIM, line.trim_end());
                self.push(&format!("    {line}"));
            }
        }
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

/// A note in lines of this width, wrapped after commas, else between words. So much is in front of
/// the first line, which stays empty where nothing fits behind it.
fn wrapped(note: &str, width: usize, before: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    if before > 0 {
        lines.push(String::new());
    }
    for piece in note.split_inclusive(", ") {
        let words = if length(piece.trim_end()) > width {
            piece.split_inclusive(' ').collect()
        } else {
            vec![piece]
        };
        for word in words {
            let taken = if lines.len() == 1 { before } else { 0 };
            match lines.last_mut() {
                Some(line) if taken + length(line) + length(word.trim_end()) <= width => {
                    line.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
    }
    lines
}

/// The share of the cores that the run used: of those expected, or of all it may use.
fn share_of_cores(summary: &Summary) -> Option<String> {
    let share = summary.figures.value(FigureId::CpuUtilizationMean)?;
    let mean = summary.figures.value(FigureId::CpuCoresMean)?;
    // Mean divided by ratio gives the total.
    let all = if share > 0.0 { mean / share } else { summary.host.cores_allowed };
    let plural = if all == 1.0 { "" } else { "s" };
    Some(format!("{} of {} core{plural}", quantity::ratio(share), quantity::count(all)))
}

/// A count with the name of what is counted.
fn counted(figure: &Figure, name: &str) -> Option<String> {
    let count = figure.value?;
    let plural = if count == 1.0 { "" } else { "s" };
    Some(format!("{} {name}{plural}", quantity::count(count)))
}

/// A name and a figure's value, if known.
fn part(name: &str, figure: &Figure, show: impl Fn(f64) -> String) -> Option<String> {
    let at_least = if figure.is_lower_bound() { "at least " } else { "" };
    figure.value.map(|value| format!("{name} {at_least}{}", show(value)))
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
        assert_eq!(shown(&exact, &sampled), "peak at least 1.81 (sampled)");
        assert_eq!(shown(&sampled, &sampled), "peak at least 1.81");
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
        let wrapped = |note: &str| wrapped(note, 42, 0);
        let lines = wrapped("one thing that is long enough, another thing that is long enough");
        assert_eq!(lines, ["one thing that is long enough, ", "another thing that is long enough"]);
        assert!(wrapped(&"word ".repeat(30)).iter().all(|line| line.trim_end().len() <= 42));
        assert_eq!(wrapped(""), [""; 0]);
    }

    /// A run of five processes with all that the text may say.
    fn everything() -> Summary {
        let mut run = crate::testing::FakeRun::new();
        run.manifest.name = "a-rather-long-name-of-a-training-run".to_owned();
        run.ends(90.0, |end| end.task_clock_seconds = Some(150.0));
        let mut summary = run.summary();
        let gib = |value: f64| value * 1024.0 * 1024.0 * 1024.0;
        let sampled = |value: f64| Figure::sampled(value, "ticks");
        let estimated = |value| Figure::between(value, Method::Estimated, 0.0, None, "clock ticks");
        let memory = Figure {
            at_seconds: Some(42.5),
            ..Figure::between(gib(1.5), Method::Sampled, gib(1.5), Some(gib(2.25)), "smaps")
        };
        for (id, figure) in [
            (FigureId::CpuTime, Figure::exact(150.0, "wait4")),
            (FigureId::CpuUser, estimated(140.0)),
            (FigureId::CpuSystem, estimated(10.0)),
            (FigureId::CpuCoresMean, Figure::exact(1.67, "wait4")),
            (FigureId::CpuCoresPeak, sampled(3.91)),
            (FigureId::CpuUtilizationMean, Figure::exact(0.4175, "wait4")),
            (FigureId::MemoryPeak, memory),
            (FigureId::MemoryMean, estimated(gib(1.1))),
            (FigureId::ThreadsPeak, sampled(33.0)),
            (FigureId::FilesOpenPeak, sampled(121.0)),
            (FigureId::IoRead, Figure::exact(gib(12.0), "io")),
            (FigureId::IoStorageRead, Figure::exact(gib(3.0), "io")),
            (FigureId::IoReadCalls, Figure::exact(81_234.0, "io")),
            (FigureId::IoWritten, Figure::exact(4096.0, "io")),
            (FigureId::PageFaultsMajor, Figure::exact(19.0, "wait4")),
        ] {
            *summary.figures.entry(id) = figure;
        }
        summary.processes = crate::summary::Processes {
            total: 5,
            peak: 4,
            may_miss_processes: true,
            ..summary.processes
        };
        summary.memory_peak_process = Some(crate::summary::PeakProcess {
            pid: 4711,
            name: "train.py".to_owned(),
            bytes: gib(1.2) as u64,
            at_seconds: 42.5,
            is_at_peak: true,
        });
        summary.bottleneck = Some(crate::summary::Bottleneck {
            kind: crate::summary::BottleneckKind::OneCore,
            method: Some(Method::Sampled),
            sentence: "Bound by one core: it used 1.67 of 4 cores; one at a time for 71 % of the \
                       time; train.py (4 processes) had at least 98 % of its CPU time."
                .to_owned(),
            evidence: serde_json::Map::new(),
        });
        summary.findings = vec![Finding {
            code: "x".to_owned(),
            severity: Severity::Warning,
            sentence: "Tasks waited for a CPU 66 % of the time; this run used 1.67 of 4 cores."
                .to_owned(),
            evidence: serde_json::Map::new(),
            advice: "Run it alone, or give it CPUs of its own: taskset -c 0-3 ./train".to_owned(),
        }];
        summary
    }

    #[test]
    fn lower_bound_is_called_at_least() {
        let mut sampled = everything();
        *sampled.figures.entry(FigureId::CpuTime) = Figure::sampled(150.0, "ticks");
        *sampled.figures.entry(FigureId::MemoryPeak) = Figure::sampled(1024.0, "ticks").at(2.0);
        sampled.memory_peak_process = None;
        let text = summary(&sampled, None, Style::default());
        for line in [
            "  CPU time   2 min 30 s    sampled   at least, 42 % of 4 cores\n",
            "  memory     1.00 KiB      sampled   at least, at 2.00 s\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    fn text_of(columns: usize) -> String {
        let path = Path::new("weigh-runs/x");
        summary(&everything(), Some(path), Style { columns, ..Style::default() })
    }

    #[test]
    fn text_fits_every_width_and_its_first_three_lines_say_the_most() {
        for columns in [50, 80, 140, 500] {
            let text = text_of(columns);
            for line in text.lines() {
                assert!(length(line) < columns.min(140), "{columns}: {line:?}\n{text}");
                assert_eq!(line, line.trim_end(), "{columns}");
            }
            let firsts: Vec<&str> =
                text.lines().filter(|line| !line.starts_with("     ")).take(3).collect();
            let begins = ["weigh: ", "  CPU time   2 min 30 s", "  memory     1.50 GiB"];
            for (line, begin) in firsts.iter().zip(begins) {
                assert!(line.starts_with(begin), "{columns}: {line}");
            }
        }
    }

    #[test]
    fn text_at_fifty_columns() {
        assert_eq!(text_of(50), include_str!("text/50.txt"));
    }

    #[test]
    fn text_at_eighty_columns() {
        assert_eq!(text_of(80), include_str!("text/80.txt"));
    }

    #[test]
    fn text_at_a_hundred_and_forty_columns() {
        assert_eq!(text_of(140), include_str!("text/140.txt"));
    }
}
