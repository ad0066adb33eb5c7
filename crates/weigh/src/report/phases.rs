//! The phases of a run as a table for a terminal.
//!
//! One line for each name, nested phases indented, as wide as the terminal.

use super::columns::TextColumns;
use super::style::{BOLD, DIM, RED, Style, YELLOW};
use super::text::{heading, join};
use crate::catalog::{FigureId, FigureUnit};
use crate::quantity::{self, Units};
use crate::summary::phases::{PhaseStatistics, Statistics};
use crate::summary::{Method, Summary};
use crate::text::{ellipsize, printable, wrap};

const COLUMNS: TextColumns<6> = TextColumns {
    indent: 2,
    header: ["phase", "count", "total", "mean ± std", "CPU time", "memory"],
    left_aligned: &[0],
    elastic: 0,
    optional: &[3, 1],
};

const FIGURES: TextColumns<6> = TextColumns {
    indent: 4,
    header: ["figure", "n", "min", "max", "mean", "std"],
    left_aligned: &[0],
    elastic: 0,
    optional: &[5, 1, 2],
};

/// The phases of a run, with `every` also the statistics of all figures.
pub fn table(summary: &Summary, style: Style, every: bool) -> String {
    let named = summary.named_phases();
    let mut out = heading(summary, style);
    if named.is_empty() {
        out.push_str(
            "  no phases recorded\n    \
             Record them from a script under weigh run:\n      \
             weigh phase load -- ./load.sh      one command is the phase\n      \
             weigh phase solve                  everything from here on is,\n      \
             weigh phase --end                  until here\n",
        );
        return out;
    }
    out.push_str(&aligned(&named, style));
    for (colour, note) in notes(&named) {
        for line in wrap(&note, style.end() - 2) {
            out.push_str(&format!("  {}\n", style.paint(colour, &line)));
        }
    }
    if every {
        nested(&named).into_iter().for_each(|(_, named)| out.push_str(&figures(named, style)));
    }
    out
}

/// The phases in the summary of a run: a line for each name.
pub(super) fn lines(named: &[PhaseStatistics], style: Style) -> Vec<(String, String)> {
    named.iter().map(|named| (printable(&named.name), line(named, style))).collect()
}

fn line(named: &PhaseStatistics, style: Style) -> String {
    let figure = |id| named.figures.get(id).copied().unwrap_or_default();
    let (cpu, peak) = (figure(FigureId::CpuTime), figure(FigureId::MemoryPeak));
    let method = |of: &Statistics| {
        let method = of.method.filter(|method| *method != Method::Exact);
        method.map_or_else(String::new, |method| format!(" ({})", method.name()))
    };
    join(&[
        (named.count > 0).then(|| quantity::seconds(named.total_seconds)),
        (named.count > 1).then(|| format!("{} times", quantity::count(named.count as f64))),
        (named.unfinished > 0)
            .then(|| format!("{} not ended", quantity::count(named.unfinished as f64))),
        cpu.total.map(|time| format!("CPU time {}{}", quantity::seconds(time), method(&cpu))),
        peak.max.map(|bytes| format!("memory {}{}", style.bytes(bytes), method(&peak))),
    ])
}

/// Names in nesting order, with their depth; the parent is that of a name's first phase.
pub(super) fn nested(named: &[PhaseStatistics]) -> Vec<(usize, &PhaseStatistics)> {
    fn below<'a>(
        all: &'a [PhaseStatistics],
        parent: Option<&str>,
        depth: usize,
        out: &mut Vec<(usize, &'a PhaseStatistics)>,
    ) {
        for (place, one) in all.iter().enumerate() {
            // Only an earlier name can be the parent, so there are no cycles.
            let around = one
                .parent
                .as_deref()
                .filter(|name| all[..place].iter().any(|earlier| earlier.name == *name));
            if around == parent {
                out.push((depth, one));
                below(all, Some(&one.name), depth + 1, out);
            }
        }
    }
    let mut out = Vec::with_capacity(named.len());
    below(named, None, 0, &mut out);
    out
}

fn aligned(named: &[PhaseStatistics], style: Style) -> String {
    let rows = nested(named).into_iter().map(|(depth, one)| row(depth, one, style));
    let rows: Vec<[String; 6]> = rows.collect();
    COLUMNS.lines(&rows, style, |_| true)
}

fn row(depth: usize, named: &PhaseStatistics, style: Style) -> [String; 6] {
    let time = &named.duration_seconds;
    let figure = |id| named.figures.get(id).copied().unwrap_or_default();
    let (cpu, memory) = (figure(FigureId::CpuTime), figure(FigureId::MemoryPeak));
    let mut count = quantity::count(named.count as f64);
    if named.unfinished > 0 {
        count = format!("{count}+{}", named.unfinished);
    }
    let spread = match (time.mean, time.std) {
        (Some(mean), Some(std)) if named.count > 1 => {
            format!("{} ± {}", quantity::seconds(mean), quantity::seconds(std))
        }
        _ => "-".to_owned(),
    };
    let total = (named.count > 0).then_some(named.total_seconds);
    [
        format!("{}{}", "  ".repeat(depth.min(4)), printable(&named.name)),
        count,
        total.map_or_else(|| "-".to_owned(), quantity::seconds),
        spread,
        shown(cpu.total, &cpu, quantity::seconds),
        shown(memory.max, &memory, |value| style.bytes(value)),
    ]
}

/// A value, with `~` when it is not exact.
fn shown(value: Option<f64>, of: &Statistics, show: impl Fn(f64) -> String) -> String {
    let sign = if of.method == Some(Method::Exact) { "" } else { "~" };
    value.map_or_else(|| "-".to_owned(), |value| format!("{sign}{}", show(value)))
}

/// Notes about overlap, missing ends, failures and methods, where they apply.
fn notes(named: &[PhaseStatistics]) -> Vec<(&'static str, String)> {
    let mut notes = Vec::new();
    for one in named {
        let name = ellipsize(&printable(&one.name), 20);
        // Less than 0.1 % is rounding.
        if one.total_seconds - one.covered_seconds > one.total_seconds * 1e-3 {
            let covered = quantity::seconds(one.covered_seconds);
            let note = format!("{name}: overlap in time; together they cover {covered} of the run");
            notes.push((DIM, note));
        }
        if one.unfinished > 0 {
            let note = format!("{name}: {} without an end, not in the numbers", one.unfinished);
            notes.push((YELLOW, note));
        }
        if one.failed > 0 {
            let note = format!("{name}: {} of {} failed", one.failed, one.count);
            notes.push((RED, note));
        }
    }
    let sampled = named.iter().any(|one| {
        [FigureId::CpuTime, FigureId::MemoryPeak].into_iter().any(|id| {
            one.figures.get(id).is_some_and(|of| of.count > 0 && of.method != Some(Method::Exact))
        })
    });
    if sampled {
        notes.push((DIM, "~ sampled or estimated: --format json has the bounds".to_owned()));
    }
    notes
}

/// Every figure of one name.
fn figures(named: &PhaseStatistics, style: Style) -> String {
    let mut out = format!("\n  {}\n", style.paint(BOLD, &printable(&named.name)));
    let mut rows = vec![(FigureId::Duration, &named.duration_seconds)];
    rows.extend(named.figures.iter());
    let known = rows.iter().filter(|(_, of)| of.count > 0);
    let cells: Vec<[String; 6]> = known
        .map(|(id, of)| {
            let number = |value: Option<f64>| {
                value.map_or_else(|| "-".to_owned(), |value| quantity_of(*id, value, style.units))
            };
            let sign = if of.method == Some(Method::Exact) { "" } else { "~" };
            let (min, max) = (number(of.min), number(of.max));
            let count = of.count.to_string();
            [format!("{sign}{}", id.name()), count, min, max, number(of.mean), number(of.std)]
        })
        .collect();
    out.push_str(&FIGURES.lines(&cells, style, |_| false));
    let unknown: Vec<&str> =
        rows.iter().filter(|(_, of)| of.count == 0).map(|(id, _)| id.name()).collect();
    if !unknown.is_empty() {
        out.push_str(&unknown_figures(&unknown, style));
    }
    out
}

/// The unknown figures, in lines that fit the terminal.
fn unknown_figures(names: &[&str], style: Style) -> String {
    let mut lines = vec!["not known:".to_owned()];
    for name in names {
        let separator = if *name == names[names.len() - 1] { "" } else { "," };
        match lines.last_mut() {
            Some(line) if line.len() + name.len() + 2 <= style.end() - 5 => {
                line.push_str(&format!(" {name}{separator}"));
            }
            _ => lines.push(format!("  {name}{separator}")),
        }
    }
    lines.iter().map(|line| format!("    {}\n", style.paint(DIM, line))).collect()
}

/// A value of a figure in its unit, as text.
pub fn quantity_of(id: FigureId, value: f64, units: Units) -> String {
    match id.unit() {
        FigureUnit::Bytes => quantity::bytes(value, units),
        FigureUnit::Seconds => quantity::seconds(value),
        FigureUnit::Joules => quantity::scaled(value, "J"),
        FigureUnit::Ratio => quantity::ratio(value),
        FigureUnit::Cores | FigureUnit::Gpus | FigureUnit::Quotient => format!("{value:.2}"),
        FigureUnit::FlopsPerSecond => quantity::scaled(value, "FLOP/s"),
        FigureUnit::One => quantity::count(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::phases::statistics;
    use crate::summary::{Figure, Phase};

    fn phase(id: &str, name: &str, parent: Option<&str>, length: Option<f64>) -> Phase {
        let figures = [
            (FigureId::CpuTime, Figure::exact(754.0, "test")),
            (FigureId::MemoryPeak, Figure::sampled(1.5e9, "test")),
        ];
        Phase {
            id: id.to_owned(),
            name: name.to_owned(),
            parent: parent.map(str::to_owned),
            start_seconds: 1.0,
            duration_seconds: length,
            cpu_time_seconds: None,
            largest_process_bytes: None,
            exit_code: None,
            figures: figures.into(),
        }
    }

    fn shown(phases: &[Phase]) -> String {
        let named = statistics(phases);
        let style = Style::default();
        let figures: String = named.iter().map(|one| figures(one, style)).collect();
        let notes: Vec<String> = notes(&named).into_iter().map(|(_, note)| note).collect();
        aligned(&named, style) + &notes.join("\n") + &figures
    }

    #[test]
    fn nested_phase_is_listed_under_its_parent() {
        let table = shown(&[
            phase("1", "build", None, Some(5.0)),
            phase("2", "test", None, Some(1.0)),
            phase("3", "compile", Some("1"), Some(2.0)),
        ]);
        let names: Vec<&str> = table
            .lines()
            .skip(1)
            .take(3)
            .map(|line| line[2..].split("  1").next().unwrap().trim_end())
            .collect();
        assert_eq!(names, ["build", "  compile", "test"], "{table}");
    }

    #[test]
    fn inexact_phase_figure_names_its_method() {
        let named = statistics(&[phase("1", "build", None, Some(5.0))]);
        let lines = lines(&named, Style::default());
        let expected = "5.00 s, CPU time 12 min 34 s, memory 1.40 GiB (sampled)";
        assert_eq!(lines, [("build".to_owned(), expected.to_owned())]);
    }

    #[test]
    fn long_phase_names_stay_below_80_columns() {
        let name = "a name that is much longer than the names of most phases, \x1b[31m and red";
        let phases: Vec<Phase> =
            [245.0, 7300.0, 100_000.0].map(|length| phase("1", name, None, Some(length))).into();
        let table = shown(&phases);
        assert!(table.lines().all(|line| line.chars().count() < 80), "{table}");
        assert!(!table.contains('\x1b'), "{table:?}");
        assert!(table.contains("overlap in time"), "{table}");
    }

    #[test]
    fn phase_without_end_is_counted_separately() {
        let table = shown(&[phase("1", "a", None, Some(5.0)), phase("2", "a", None, None)]);
        assert!(table.contains("1+1") && table.contains("without an end"), "{table}");
    }
}
