//! What stands at the head and at the foot of every page.

use super::page::{BOTTOM, LEFT, PAPER, Sheet, WIDTH};
use super::style::{FontStyle, Ink};
use super::text::Faces;
use crate::report::Document;

const LABEL: FontStyle = FontStyle::of(7.0).inked(Ink::GREY);
const VALUE: FontStyle = FontStyle::of(9.0).bold();
const FOOT: FontStyle = FontStyle::of(7.5).inked(Ink::GREY);
const HEAD_TOP: f32 = 38.0;
/// How the head's width is shared: an id may be long, a number of nodes is not.
const SHARES: [f32; 4] = [0.4, 0.27, 0.13, 0.2];
const BETWEEN: f32 = 12.0;
/// What is not known.
const UNKNOWN: &str = "–";

/// Puts head and foot on every sheet.
pub(super) fn add(sheets: &mut [Sheet], document: &Document, faces: &Faces) {
    let pages = sheets.len();
    for (place, sheet) in sheets.iter_mut().enumerate() {
        head(sheet, document, faces);
        foot(sheet, document, faces, &format!("page {} of {pages}", place + 1));
    }
}

fn head(sheet: &mut Sheet, document: &Document, faces: &Faces) {
    let head = &document.head;
    let nodes = if head.nodes > 0 { head.nodes.to_string() } else { String::new() };
    let user = head.user.as_deref().unwrap_or_default();
    let cells = [("Job ID", &*head.job), ("User", user), ("# Nodes", &nodes), ("Date", &head.date)];
    let mut x = LEFT;
    for ((label, value), share) in cells.into_iter().zip(SHARES) {
        let value = if value.trim().is_empty() { UNKNOWN } else { value };
        sheet.text(x, HEAD_TOP, LABEL, label);
        let value = faces.cut(value, VALUE, WIDTH * share - BETWEEN);
        sheet.text(x, HEAD_TOP + LABEL.leading(), VALUE, value);
        x += WIDTH * share;
    }
    sheet.rule(HEAD_TOP + LABEL.leading() + VALUE.leading() + 3.0, Ink::PALE);
}

fn foot(sheet: &mut Sheet, document: &Document, faces: &Faces, page: &str) {
    let y = BOTTOM + 22.0;
    sheet.rule(y - 6.0, Ink::PALE);
    let middle = faces.width(page, FOOT);
    let side = (WIDTH - middle) / 2.0 - BETWEEN;
    sheet.text(LEFT, y, FOOT, faces.cut(&document.title, FOOT, side));
    sheet.text((PAPER.0 - middle) / 2.0, y, FOOT, page);
    let made_by = faces.cut(&document.made_by, FOOT, side);
    sheet.text(LEFT + WIDTH - faces.width(&made_by, FOOT), y, FOOT, made_by);
}
