//! The first page: command, outcome, utilisation and findings.

use super::page::{Area, Composer, LEFT, PageItem, WIDTH};
use super::style::{FontStyle, Ink};
use super::text::Faces;
use super::{bars, facts};
use crate::report::Document;
use crate::report::document::{Advice, ReportKind, Verdict};
use crate::summary::Severity;

const TITLE: FontStyle = FontStyle::of(22.0).bold();
const COMMAND: FontStyle = FontStyle::of(9.0).inked(Ink::GREY);
const VERDICT: FontStyle = FontStyle::of(11.0);
const SENTENCE: FontStyle = FontStyle::of(9.0);
const ADVICE: FontStyle = FontStyle::of(8.5).inked(Ink::GREY);
const SEVERITY: FontStyle = FontStyle::of(9.0).bold();
/// Where the sentence of a finding begins, after its severity.
const INDENT: f32 = 62.0;
/// Text from outside may be long.
const MAX_LINES: usize = 8;

/// Adds the first page.
pub(super) fn add(composer: &mut Composer, document: &Document) {
    let title = if document.title.trim().is_empty() { "A run" } else { &document.title };
    let lines = composer.faces.wrap(title, TITLE, WIDTH, 2);
    composer.lines(LEFT, TITLE, lines);
    let none = match document.kind {
        ReportKind::Run => "The command line is not recorded.",
        ReportKind::Job => "",
    };
    let command = document.command.as_deref().unwrap_or(none);
    let lines = composer.faces.wrap(command, COMMAND, WIDTH, 4);
    composer.lines(LEFT, COMMAND, lines);
    composer.y += 12.0;
    facts::add(composer, None, &document.header);
    composer.gap(10.0);
    verdict(composer, &document.verdict);
    composer.gap(16.0);
    bars::add(composer, &document.bars);
    let findings = document.findings.iter().map(|finding| Remark::of(finding, composer.faces));
    let findings: Vec<Remark> = findings.collect();
    if let Some(first) = findings.first() {
        composer.heading("Findings", first.height());
    }
    for finding in findings {
        finding.draw(composer);
    }
}

/// The word and the colour of a severity. The word is for black-and-white print.
fn severity_mark(severity: Option<Severity>) -> (&'static str, Ink) {
    match severity {
        None => ("Good", Ink(0x1a, 0x7f, 0x37)),
        Some(Severity::Note) => ("Note", Ink::BLUE),
        Some(Severity::Warning) => ("Warning", Ink(0x9a, 0x67, 0x00)),
        Some(Severity::Problem) => ("Problem", Ink(0xb3, 0x26, 0x1e)),
    }
}

/// A light tint, readable below black text.
fn tint(Ink(red, green, blue): Ink) -> Ink {
    let light = |part: u8| 255 - (255 - part) / 14;
    Ink(light(red), light(green), light(blue))
}

fn verdict(composer: &mut Composer, verdict: &Verdict) {
    const PADDING: f32 = 9.0;
    const STRIPE: f32 = 3.0;
    let (label, ink) = severity_mark(verdict.severity);
    let style = VERDICT.bold().inked(ink);
    let x = LEFT + STRIPE + PADDING + composer.faces.width(label, style) + 12.0;
    let width = LEFT + WIDTH - PADDING - x;
    let lines = composer.faces.wrap(&verdict.sentence, VERDICT, width, MAX_LINES);
    let reasons = verdict.reasons.iter().map(|fact| format!("{}: {}", fact.label, fact.value));
    let reasons: Vec<String> =
        reasons.flat_map(|one| composer.faces.wrap(&one, SENTENCE, width, MAX_LINES)).collect();
    let outcome_height = lines.len().max(1) as f32 * VERDICT.leading();
    let height = outcome_height + reasons.len() as f32 * SENTENCE.leading() + 2.0 * PADDING;
    composer.ensure_space(height);
    let area = Area { x: LEFT, y: composer.y, width: WIDTH, height };
    let items = &mut composer.sheet().items;
    items.push(PageItem::Block { area, ink: tint(ink) });
    items.push(PageItem::Block { area: Area { width: STRIPE, ..area }, ink });
    composer.y += PADDING;
    composer.text(LEFT + STRIPE + PADDING, style, label);
    for (row, line) in lines.into_iter().enumerate() {
        let y = area.y + PADDING + row as f32 * VERDICT.leading();
        composer.sheet().text(x, y, VERDICT, line);
    }
    for (row, line) in reasons.into_iter().enumerate() {
        let y = area.y + PADDING + outcome_height + row as f32 * SENTENCE.leading();
        composer.sheet().text(x, y, SENTENCE, line);
    }
    composer.y = area.y + height;
}

/// A wrapped finding.
struct Remark {
    label: &'static str,
    ink: Ink,
    sentence: Vec<String>,
    advice: Vec<String>,
}

impl Remark {
    fn of(finding: &Advice, faces: &Faces) -> Remark {
        const ADVICE_WIDTH: f32 = WIDTH - INDENT;
        let (label, ink) = severity_mark(Some(finding.severity));
        let sentence = faces.wrap(&finding.sentence, SENTENCE, ADVICE_WIDTH, MAX_LINES);
        // Advice is ours and may have several lines.
        let advice = finding.advice.lines();
        let advice = advice.flat_map(|line| faces.wrap(line, ADVICE, ADVICE_WIDTH, MAX_LINES));
        Remark { label, ink, sentence, advice: advice.take(MAX_LINES).collect() }
    }

    fn height(&self) -> f32 {
        self.sentence.len().max(1) as f32 * SENTENCE.leading()
            + self.advice.len() as f32 * ADVICE.leading()
    }

    fn draw(self, composer: &mut Composer) {
        composer.ensure_space(self.height());
        composer.text(LEFT, SEVERITY.inked(self.ink), self.label);
        composer.lines(LEFT + INDENT, SENTENCE, self.sentence);
        composer.lines(LEFT + INDENT, ADVICE, self.advice);
        composer.y += 7.0;
    }
}
