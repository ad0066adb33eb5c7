//! The summary as a few lines of text that a person reads at a glance.
//!
//! What came from the outside (names, reasons) is shown with control characters
//! escaped: a process may be called anything.

use std::path::Path;

use crate::quantity::{self, Units};
use crate::summary::{Figure, Finding, Method, Outcome, Phase, Severity, Summary};
use crate::words::{broken, printable};

/// How the text looks.
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
    let mut text = Text { out: heading(summary, style), style };
    if let Some(target) = &summary.run.target {
        text.long_line(target.verb(), &printable(&target.words()));
    }
    text.figures(summary);
    text.machine(summary);
    text.monitor(summary);
    if let Some(path) = recording {
        text.long_line("recorded", &printable(&path.to_string_lossy()));
    }
    text.phases(&summary.phases);
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
        Outcome::Well | Outcome::Followed(_) => GREEN,
        Outcome::Failed(_) | Outcome::Killed(_) => RED,
        Outcome::NotRecorded => YELLOW,
    };
    format!(
        "{} {} · {} · {}\n",
        style.paint(DIM, "weigh:"),
        style.paint(BOLD, &printable(&run.name)),
        style.paint(colour, &outcome.words()),
        style.paint(BOLD, &quantity::seconds(run.duration_seconds))
    )
}

struct Text {
    out: String,
    style: Style,
}

impl Text {
    fn push(&mut self, line: &str) {
        self.out.push_str(line.trim_end());
        self.out.push('\n');
    }

    /// A label, a value, how it was got, and what else there is to say.
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

    /// A label and a value that takes the rest of the line.
    fn long_line(&mut self, label: &str, value: &str) {
        let label = self.style.paint(DIM, &format!("{label:<10}"));
        self.push(&format!("  {label} {value}"));
    }

    /// More about the line above.
    fn more(&mut self, note: &str) {
        self.push(&format!("{:NOTES$}{note}", ""));
    }

    /// A line about a figure that may be unknown.
    fn figure(&mut self, label: &str, figure: &Figure, show: impl Fn(f64) -> String, note: &str) {
        match (figure.value, figure.method) {
            (Some(value), Some(method)) => self.line(label, &show(value), method.name(), note),
            _ => {
                let reason = printable(figure.reason.as_deref().unwrap_or("no reason was given"));
                self.line(label, "unknown", "", &reason);
            }
        }
    }

    fn figures(&mut self, summary: &Summary) {
        let none = Figure::default();
        let get = |name: &str| summary.figures.get(name).unwrap_or(&none);
        let several = summary.processes.total > 1;

        let split = join(&[
            part("user", get("cpu_user_seconds"), quantity::seconds),
            part("system", get("cpu_system_seconds"), quantity::seconds),
        ]);
        let cpu = get("cpu_time_seconds");
        self.figure("CPU time", cpu, quantity::seconds, &split);
        let is_open = cpu.method == Some(Method::Exact) && cpu.upper.is_none();
        if is_open && (several || summary.processes.some_unseen) {
            self.more("or more: children that nobody waits for are not in it");
        }
        // Of several who were named, and of programs, none is the main one.
        let main = summary.parts.main.figures.get("cpu_time_seconds");
        if several && main.is_some_and(|main| main.value.is_some()) {
            let parts = &summary.parts;
            let of = |figures: &crate::summary::Figures| {
                figures.get("cpu_time_seconds").cloned().unwrap_or_default()
            };
            self.more(&join(&[
                part("main", &of(&parts.main.figures), quantity::seconds),
                part("descendants", &of(&parts.descendants.figures), quantity::seconds),
            ]));
        }
        self.cores(summary);
        self.memory(summary);
        self.gpus(summary);
        let processes = &summary.processes;
        let mut note = join(&[
            several.then(|| format!("{} at once", quantity::count(processes.peak as f64))),
            part("threads up to", get("threads_peak"), quantity::count),
            part("open files up to", get("files_open_peak"), quantity::count),
        ]);
        if processes.some_unseen {
            note = join(&[Some("perhaps more, too short to see".to_owned()), Some(note)]);
        }
        self.line("processes", &quantity::count(processes.total as f64), "", &note);
        self.io(summary);
        self.network(summary);
    }

    fn cores(&mut self, summary: &Summary) {
        let none = Figure::default();
        let mean = summary.figures.get("cpu_cores_mean").unwrap_or(&none);
        let share = summary.figures.get("cpu_utilization_mean_ratio").and_then(|f| f.value);
        // A share and its number give the whole: the cores expected, or all it may use.
        let share = share.zip(mean.value).map(|(share, mean)| {
            let all = if share > 0.0 { mean / share } else { summary.host.cores_allowed };
            format!("{} of {}", quantity::ratio(share), quantity::count(all))
        });
        let peak = summary.figures.get("cpu_cores_peak").unwrap_or(&none);
        let note = join(&[share, part("at most", peak, |cores| format!("{cores:.2}"))]);
        self.figure("cores", mean, |cores| format!("{cores:.2}"), &note);
    }

    fn memory(&mut self, summary: &Summary) {
        let none = Figure::default();
        let get = |name: &str| summary.figures.get(name).unwrap_or(&none);
        let style = self.style;
        let peak = get("memory_peak_bytes");
        let when = peak.at_seconds.map(|at| format!("at {}", quantity::seconds(at)));
        let ceiling = match (peak.upper, peak.value) {
            (Some(upper), Some(value)) if upper > value * 1.01 => {
                Some(format!("certainly not above {}", style.bytes(upper)))
            }
            (None, Some(_)) => Some("or more".to_owned()),
            _ => None,
        };
        let note = join(&[when, ceiling]);
        self.figure("memory", peak, |value| style.bytes(value), &note);
        let limit = summary.host.tight_memory_limit_bytes();
        let more = join(&[
            limit.map(|limit| format!("{} allowed", style.bytes(limit as f64))),
            part("page cache up to", get("memory_cache_peak_bytes"), |value| style.bytes(value)),
            // A mean over a few milliseconds of starting up says nothing.
            part("mean", get("memory_mean_bytes"), |value| style.bytes(value))
                .filter(|_| summary.run.duration_seconds >= 1.0),
            part("swap", get("swap_peak_bytes"), |value| style.bytes(value))
                .filter(|_| get("swap_peak_bytes").value > Some(0.0)),
        ]);
        if !more.is_empty() {
            self.more(&more);
        }
    }

    /// Nothing, where there is no GPU that is worth it.
    fn gpus(&mut self, summary: &Summary) {
        if !super::gpus::are_told(summary) {
            return;
        }
        let none = Figure::default();
        let get = |name: &str| summary.figures.get(name).unwrap_or(&none);
        let system = summary.parts.system.figures.get("gpu_memory_peak_bytes").unwrap_or(&none);
        let style = self.style;
        let telling = summary.gpus.iter().filter(|gpu| gpu.says_how_busy());
        let mut means: Vec<f64> = telling.filter_map(|gpu| gpu.utilization_mean_ratio).collect();
        means.sort_by(f64::total_cmp);
        let of = match means[..] {
            [_] => "one GPU".to_owned(),
            [least, .., most] => {
                let (least, most) = (quantity::ratio(least), quantity::ratio(most));
                format!("{} GPUs, each {least} to {most}", means.len())
            }
            [] => "0 GPUs".to_owned(),
        };
        let note = part("with everybody's", system, |bytes| style.bytes(bytes));
        let memory = get("gpu_memory_peak_bytes");
        self.figure("GPU memory", memory, |bytes| style.bytes(bytes), &join(&[note]));
        let note = join(&[
            Some(format!("of {of}")),
            part("at most", get("gpu_utilization_peak_ratio"), quantity::ratio),
            part("used", get("gpu_energy_joules"), |joules| quantity::scaled(joules, "J")),
        ]);
        self.figure("GPU busy", get("gpu_utilization_mean_ratio"), quantity::ratio, &note);
    }

    fn io(&mut self, summary: &Summary) {
        let none = Figure::default();
        let get = |name: &str| summary.figures.get(name).unwrap_or(&none);
        let style = self.style;
        let (read, written) = (get("io_read_bytes"), get("io_written_bytes"));
        let note = join(&[
            part("from storage", get("io_storage_read_bytes"), |value| style.bytes(value)),
            part("calls", get("io_read_calls"), quantity::count),
        ]);
        self.figure("read", read, |value| style.bytes(value), &note);
        let note = join(&[
            part("to storage", get("io_storage_written_bytes"), |value| style.bytes(value)),
            part("calls", get("io_write_calls"), quantity::count),
        ]);
        if written.value.is_some() {
            self.figure("written", written, |value| style.bytes(value), &note);
        }
        let major = get("page_faults_major");
        if major.value > Some(0.0) {
            self.figure("page-ins", major, quantity::count, "page faults that read from storage");
        }
        let switches = get("context_switches_involuntary");
        if switches.value > Some(0.0) {
            self.figure("preempted", switches, quantity::count, "times it had to wait for a CPU");
        }
    }

    /// What went over the network, if anything did.
    fn network(&mut self, summary: &Summary) {
        let style = self.style;
        for (label, name) in
            [("sent", "network_sent_bytes"), ("received", "network_received_bytes")]
        {
            let Some(figure) = summary.figures.get(name) else { continue };
            // What may have been is said where nothing is known to have been.
            let may_be = figure.value.is_none() && figure.lower.is_some();
            if figure.value > Some(0.0) || may_be {
                let loopback = summary.figures.get(&format!("network_loopback_{label}_bytes"));
                let note = match loopback.and_then(|figure| figure.value) {
                    None => "over TCP, without heads".to_owned(),
                    Some(0.0) => String::new(),
                    Some(bytes) => format!("{} of it through the loopback", style.bytes(bytes)),
                };
                self.figure(label, figure, |value| style.bytes(value), &note);
            }
        }
    }

    fn machine(&mut self, summary: &Summary) {
        let figures = &summary.parts.system.figures;
        let busy = figures.get("cpu_utilization_mean_ratio").and_then(|figure| figure.value);
        let used = figures.get("memory_used_peak_bytes").and_then(|figure| figure.value);
        let memory = used.zip(summary.host.memory_bytes).map(|(used, total)| {
            format!("memory up to {} of {}", self.style.bytes(used), self.style.bytes(total as f64))
        });
        let busy = busy.map(|busy| format!("{} busy", quantity::ratio(busy)));
        let named = |name: &str| figures.get(name).and_then(|figure| figure.value);
        let traffic = |way: &str, name: &str| {
            let bytes = named(name).filter(|bytes| *bytes > 0.0);
            bytes.map(|bytes| format!("{way} {}", self.style.bytes(bytes)))
        };
        let note = join(&[
            memory,
            named("energy_joules").map(|joules| format!("used {}", quantity::scaled(joules, "J"))),
            traffic("received", "network_received_bytes"),
            traffic("sent", "network_sent_bytes"),
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
            // Start-up would be all there is to see in a shorter run.
            monitor
                .cost_ratio
                .filter(|_| summary.run.duration_seconds >= 1.0)
                .map(|ratio| format!("{} of one core", quantity::ratio(ratio))),
            monitor.memory_peak_bytes.map(|peak| self.style.bytes(peak as f64)),
            Some(format!("{} ticks", quantity::count(monitor.ticks as f64))),
            missed,
        ]);
        self.line("weigh", &quantity::seconds(monitor.cpu_seconds), "", &note);
    }

    fn phases(&mut self, phases: &[Phase]) {
        for (name, note) in super::phases::lines(phases, self.style) {
            self.line("phase", &name, "", &note);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let (colour, word) = match finding.severity {
            Severity::Problem => (RED, "problem"),
            Severity::Warning => (YELLOW, "warning"),
            Severity::Note => (DIM, "note"),
        };
        self.remark(colour, word, &printable(&finding.sentence), &finding.advice);
    }

    fn remark(&mut self, colour: &str, word: &str, sentence: &str, advice: &str) {
        let word = format!("{word}:");
        let lines = broken(&format!("{word} {sentence}"), 75).join("\n    ");
        self.push(&format!("  {}", lines.replacen(&word, &self.style.paint(colour, &word), 1)));
        if !advice.is_empty() {
            let advice = self.style.paint(DIM, advice);
            self.push(&format!("    {advice}"));
        }
    }
}

/// Where notes begin.
const NOTES: usize = 37;

/// A note in lines that end before column 80, broken behind commas and else between words.
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
                    line.push_str(word)
                }
                _ => lines.push(word.to_owned()),
            }
        }
    }
    lines
}

/// A name and a figure's value, when there is one.
fn part(name: &str, figure: &Figure, show: impl Fn(f64) -> String) -> Option<String> {
    figure.value.map(|value| format!("{name} {}", show(value)))
}

pub(super) fn join(parts: &[Option<String>]) -> String {
    parts.iter().flatten().filter(|part| !part.is_empty()).cloned().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_break_behind_commas_and_long_ones_between_words() {
        let lines = wrapped("one thing that is long enough, another thing that is long enough");
        assert_eq!(lines, ["one thing that is long enough, ", "another thing that is long enough"]);
        assert!(wrapped(&"word ".repeat(30)).iter().all(|line| line.trim_end().len() <= 42));
        assert_eq!(wrapped(""), [""; 0]);
    }
}
