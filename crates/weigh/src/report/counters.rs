//! Hardware counters for a terminal: a sentence and a bar in the summary, and every event by itself.

use super::columns::TextColumns;
use super::style::{DIM, Style};
use super::text::heading;
use crate::catalog::FigureId;
use crate::quantity;
use crate::summary::counters::{Counters, DerivedTotal, EventTotal};
use crate::summary::{Figure, Method, Summary};
use crate::text::{printable, wrap};

/// The four parts of the issue slots, their sign in the bar and what they are called.
const SLOTS: [(FigureId, char, &str); 4] = [
    (FigureId::SlotsRetiring, '█', "retiring"),
    (FigureId::SlotsBadSpeculation, '▓', "wrong path"),
    (FigureId::SlotsFrontendBound, '▒', "front end"),
    (FigureId::SlotsBackendBound, '░', "back end"),
];

/// Letters of the bar.
const BAR: usize = 40;

/// What the counters say, in a sentence; `None` where nothing was counted.
pub(super) fn sentence(summary: &Summary) -> Option<String> {
    let value = |id| summary.figures.value(id);
    let parts = [
        value(FigureId::InstructionsPerCycle)
            .map(|ratio| format!("{ratio:.2} instructions per cycle")),
        value(FigureId::SlotsBackendBound)
            .map(|share| format!("{} of slots waited for data or units", quantity::ratio(share))),
        value(FigureId::FlopsMean).map(|rate| quantity::scaled(rate, "FLOP/s")),
        value(FigureId::BranchMissRatio)
            .map(|share| format!("{} of branches mispredicted", quantity::ratio(share))),
        value(FigureId::CacheMissRatio)
            .map(|share| format!("{} of cache accesses missed", quantity::ratio(share))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// How the issue slots were used, as a bar and its legend.
pub(super) fn slots(summary: &Summary) -> Option<(String, String)> {
    let mut shares = [0.0; SLOTS.len()];
    for (share, (id, ..)) in shares.iter_mut().zip(SLOTS) {
        *share = summary.figures.value(id)?.clamp(0.0, 1.0);
    }
    let (mut bar, mut sum) = (String::new(), 0.0);
    for (share, (_, sign, _)) in shares.iter().zip(SLOTS) {
        sum += share;
        let end = (sum * BAR as f64).round() as usize;
        bar.extend(std::iter::repeat_n(sign, end.min(BAR).saturating_sub(bar.chars().count())));
    }
    let legend = shares.iter().zip(SLOTS);
    let legend =
        legend.map(|(share, (_, sign, name))| format!("{sign} {name} {}", quantity::ratio(*share)));
    Some((bar, legend.collect::<Vec<_>>().join("  ")))
}

const EVENTS: TextColumns<5> = TextColumns {
    indent: 2,
    header: ["event", "value", "method", "counted", "of the time"],
    left_aligned: &[0, 2],
    elastic: 0,
    optional: &[3],
};

const DERIVED: TextColumns<4> = TextColumns {
    indent: 2,
    header: ["derived", "value", "per second", "method"],
    left_aligned: &[0, 3],
    elastic: 0,
    optional: &[],
};

/// Every event and every derived value.
pub fn table(summary: &Summary, style: Style) -> String {
    let none = Counters::default();
    let counters = summary.counters.as_ref().unwrap_or(&none);
    let mut text = heading(summary, style);
    if !counters.events.is_empty() {
        let rows: Vec<_> = counters.events.iter().map(event).collect();
        text += &EVENTS.lines(&rows, style, |_| false);
    }
    if !counters.derived.is_empty() {
        let rows: Vec<_> = counters.derived.iter().map(|one| derived(one, style)).collect();
        text += &format!("\n{}", DERIVED.lines(&rows, style, |_| false));
    }
    let events = counters.events.iter().map(|event| (&event.name, &event.value));
    let all = events.chain(counters.derived.iter().map(|one| (&one.label, &one.value)));
    let notes = all.filter_map(|(name, figure)| Some((name, figure.reason.as_deref()?)));
    for (reason, names) in gathered(notes) {
        text += &remark(&format!("{}: {reason}", names.join(", ")), style);
    }
    for (name, why) in &counters.refused {
        text += &remark(&format!("not counted: {name}: {why}"), style);
    }
    if counters.events.is_empty() {
        let hint = "no hardware counter was read; what can be counted here: weigh doctor";
        text += &remark(hint, style);
    }
    text
}

/// The names that have the same reason, in their order.
fn gathered<'a>(
    notes: impl Iterator<Item = (&'a String, &'a str)>,
) -> Vec<(&'a str, Vec<&'a str>)> {
    let mut gathered: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, reason) in notes {
        match gathered.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(name),
            None => gathered.push((reason, vec![name])),
        }
    }
    gathered
}

fn remark(text: &str, style: Style) -> String {
    let lines = wrap(&printable(text), style.end() - 2);
    lines.iter().map(|line| format!("  {}\n", style.paint(DIM, line))).collect()
}

fn event(event: &EventTotal) -> [String; 5] {
    [
        printable(&event.name),
        shown(&event.value, quantity::count),
        method(&event.value),
        quantity::count(event.count as f64),
        event.running_ratio.map_or_else(|| "-".to_owned(), quantity::ratio),
    ]
}

fn derived(total: &DerivedTotal, style: Style) -> [String; 4] {
    let unit = total.unit.as_str();
    let show = |value: f64| match unit {
        "bytes" => style.bytes(value),
        "share" => quantity::ratio(value),
        "ratio" | "FLOP/byte" => format!("{value:.3}"),
        "hertz" => quantity::scaled(value, "Hz"),
        other => quantity::scaled(value, other),
    };
    let rate = total.per_second.map(|rate| match unit {
        "bytes" => format!("{}/s", style.bytes(rate)),
        other => quantity::scaled(rate, &format!("{other}/s")),
    });
    [total.label.clone(), shown(&total.value, show), rate.unwrap_or_default(), method(&total.value)]
}

fn shown(figure: &Figure, show: impl Fn(f64) -> String) -> String {
    figure.value.map_or_else(|| "unknown".to_owned(), show)
}

fn method(figure: &Figure) -> String {
    figure.method.map_or("", Method::name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::FakeRun;

    fn with_figures(figures: &[(FigureId, f64)]) -> Summary {
        let mut run = FakeRun::new();
        run.ends(1.0, |_| {});
        let mut summary = run.summary();
        for (id, value) in figures {
            *summary.figures.entry(*id) = Figure::exact(*value, "perf");
        }
        summary
    }

    #[test]
    fn run_without_counters_has_no_sentence() {
        assert_eq!(sentence(&with_figures(&[])), None);
        assert!(slots(&with_figures(&[(FigureId::SlotsRetiring, 0.5)])).is_none());
        let text = table(&with_figures(&[]), Style::default());
        assert!(text.contains("no hardware counter was read"), "{text}");
    }

    #[test]
    fn counters_are_told_in_one_sentence_and_a_bar() {
        let summary = with_figures(&[
            (FigureId::InstructionsPerCycle, 2.1),
            (FigureId::SlotsRetiring, 0.5),
            (FigureId::SlotsBadSpeculation, 0.02),
            (FigureId::SlotsFrontendBound, 0.1),
            (FigureId::SlotsBackendBound, 0.38),
        ]);
        assert_eq!(
            sentence(&summary).unwrap(),
            "2.10 instructions per cycle; 38 % of slots waited for data or units"
        );
        let (bar, legend) = slots(&summary).unwrap();
        assert_eq!(bar, format!("{}▓{}{}", "█".repeat(20), "▒".repeat(4), "░".repeat(15)));
        assert_eq!(legend, "█ retiring 50 %  ▓ wrong path 2 %  ▒ front end 10 %  ░ back end 38 %");
    }
}
