//! Labels and values, two in a row.

use super::page::{Composer, LEFT, WIDTH};
use super::style::{FontStyle, Ink};
use super::text::Faces;
use crate::report::document::Fact;

const LABEL: FontStyle = FontStyle::of(8.5).inked(Ink::GREY);
const VALUE: FontStyle = FontStyle::of(8.5);
const BETWEEN: f32 = 24.0;
const COLUMN: f32 = (WIDTH - BETWEEN) / 2.0;
/// The greatest width of a label.
const WIDEST_LABEL: f32 = COLUMN * 0.45;
const BEHIND_LABEL: f32 = 10.0;
const MAX_LINES: usize = 5;
const BELOW_ROW: f32 = 2.5;

/// Adds facts, below a title if there is one.
pub(super) fn add(composer: &mut Composer, title: Option<&str>, facts: &[Fact]) {
    let faces = composer.faces;
    let widths = facts.iter().map(|fact| faces.width_up_to(&fact.label, LABEL, WIDEST_LABEL));
    let label_width = widths.fold(0.0, f32::max);
    let rows: Vec<FactRow> =
        facts.chunks(2).map(|pair| FactRow::of(pair, label_width, faces)).collect();
    if let Some((title, first)) = title.zip(rows.first()) {
        composer.heading(title, first.height());
    }
    for row in rows {
        row.draw(composer, label_width);
    }
}

/// Two facts in a row: the lines of each.
struct FactRow {
    facts: Vec<(String, Vec<String>)>,
}

impl FactRow {
    fn of(pair: &[Fact], label_width: f32, faces: &Faces) -> FactRow {
        let width = COLUMN - label_width - BEHIND_LABEL;
        let lines = |fact: &Fact| {
            let label = faces.cut(&fact.label, LABEL, label_width);
            (label, faces.wrap(&fact.value, VALUE, width, MAX_LINES))
        };
        FactRow { facts: pair.iter().map(lines).collect() }
    }

    fn height(&self) -> f32 {
        let lines = self.facts.iter().map(|(_, value)| value.len()).max().unwrap_or_default();
        lines.max(1) as f32 * VALUE.leading()
    }

    fn draw(self, composer: &mut Composer, label_width: f32) {
        let height = self.height();
        composer.ensure_space(height);
        let top = composer.y;
        for (place, (label, value)) in self.facts.into_iter().enumerate() {
            let x = LEFT + place as f32 * (COLUMN + BETWEEN);
            composer.y = top;
            composer.text(x, LABEL, label);
            composer.lines(x + label_width + BEHIND_LABEL, VALUE, value);
        }
        composer.y = top + height + BELOW_ROW;
    }
}
