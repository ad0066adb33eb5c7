//! Utilisation bars, two in a row.

use super::page::{Area, Composer, LEFT, PageItem, WIDTH};
use super::style::{FontStyle, Ink};
use crate::quantity;
use crate::report::document::Bar;

const LABEL: FontStyle = FontStyle::of(9.0).bold();
const NOTE: FontStyle = FontStyle::of(7.5).inked(Ink::GREY);
const BETWEEN: f32 = 24.0;
const COLUMN: f32 = (WIDTH - BETWEEN) / 2.0;
const BAR_HEIGHT: f32 = 9.0;
const NOTE_LINES: usize = 3;
const EMPTY: Ink = Ink(0xe9, 0xec, 0xef);

/// Draws the bars.
pub(super) fn add(composer: &mut Composer, bars: &[Bar]) {
    let faces = composer.faces;
    for pair in bars.chunks(2) {
        let notes: Vec<Vec<String>> =
            pair.iter().map(|bar| faces.wrap(&bar.note, NOTE, COLUMN, NOTE_LINES)).collect();
        let lines = notes.iter().map(Vec::len).max().unwrap_or_default();
        let height = LABEL.leading() + BAR_HEIGHT + 4.0 + lines as f32 * NOTE.leading();
        composer.ensure_space(height);
        for (place, (bar, note)) in pair.iter().zip(notes).enumerate() {
            one(composer, LEFT + place as f32 * (COLUMN + BETWEEN), bar, note);
        }
        composer.y += height + 8.0;
    }
}

/// One bar; the position of the composer is unchanged.
fn one(composer: &mut Composer, x: f32, bar: &Bar, note: Vec<String>) {
    let share = bar.share.filter(|share| share.is_finite());
    let (value, style) = match share {
        Some(share) => (quantity::ratio(share), LABEL),
        None => ("unknown".to_owned(), FontStyle::of(8.0).inked(Ink::GREY)),
    };
    let top = composer.y;
    let space = COLUMN - composer.faces.width(&value, style) - 8.0;
    let label = composer.faces.cut(&bar.label, LABEL, space);
    composer.text(x, LABEL, label);
    composer.text_to(x + COLUMN, style, value);

    let area = Area { x, y: top + LABEL.leading(), width: COLUMN, height: BAR_HEIGHT };
    let items = &mut composer.sheet().items;
    match share {
        Some(share) => {
            items.push(PageItem::Block { area, ink: EMPTY });
            let width = COLUMN * share.clamp(0.0, 1.0) as f32;
            items.push(PageItem::Block { area: Area { width, ..area }, ink: Ink::BLUE });
        }
        None => items.push(PageItem::Frame { area, ink: Ink::SILVER }),
    }
    let below = area.y + BAR_HEIGHT + 4.0;
    for (row, line) in note.into_iter().enumerate() {
        composer.sheet().text(x, below + row as f32 * NOTE.leading(), NOTE, line);
    }
}
