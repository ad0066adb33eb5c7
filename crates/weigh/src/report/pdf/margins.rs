//! Header and footer of every page.

use super::page::{BOTTOM, LEFT, PAGE_SIZE, Sheet, WIDTH};
use super::style::{FontStyle, Ink};
use super::text::Faces;
use crate::report::Document;

const LABEL: FontStyle = FontStyle::of(7.0).inked(Ink::GREY);
const VALUE: FontStyle = FontStyle::of(9.0).bold();
const FOOTER: FontStyle = FontStyle::of(7.5).inked(Ink::GREY);
const HEADER_TOP: f32 = 38.0;
/// How the header's width is shared: an id may be long, a number of nodes is not.
const SHARES: [f32; 4] = [0.4, 0.27, 0.13, 0.2];
const BETWEEN: f32 = 12.0;
/// Shown for unknown values.
const UNKNOWN: &str = "–";

/// Adds header and footer to every page.
pub(super) fn add(sheets: &mut [Sheet], document: &Document, faces: &Faces) {
    let pages = sheets.len();
    for (place, sheet) in sheets.iter_mut().enumerate() {
        header(sheet, document, faces);
        footer(sheet, document, faces, &format!("page {} of {pages}", place + 1));
    }
}

fn header(sheet: &mut Sheet, document: &Document, faces: &Faces) {
    let header = &document.page_header;
    let nodes = if header.nodes > 0 { header.nodes.to_string() } else { String::new() };
    let user = header.user.as_deref().unwrap_or_default();
    let cells =
        [("Job ID", &*header.job), ("User", user), ("# Nodes", &nodes), ("Date", &header.date)];
    let mut x = LEFT;
    for ((label, value), share) in cells.into_iter().zip(SHARES) {
        let value = if value.trim().is_empty() { UNKNOWN } else { value };
        sheet.text(x, HEADER_TOP, LABEL, label);
        let value = faces.cut(value, VALUE, WIDTH * share - BETWEEN);
        sheet.text(x, HEADER_TOP + LABEL.leading(), VALUE, value);
        x += WIDTH * share;
    }
    sheet.rule(HEADER_TOP + LABEL.leading() + VALUE.leading() + 3.0, Ink::PALE);
}

fn footer(sheet: &mut Sheet, document: &Document, faces: &Faces, page: &str) {
    let y = BOTTOM + 22.0;
    sheet.rule(y - 6.0, Ink::PALE);
    let middle = faces.width(page, FOOTER);
    let side = (WIDTH - middle) / 2.0 - BETWEEN;
    sheet.text(LEFT, y, FOOTER, faces.cut(&document.title, FOOTER, side));
    sheet.text((PAGE_SIZE.0 - middle) / 2.0, y, FOOTER, page);
    let made_by = faces.cut(&document.made_by, FOOTER, side);
    sheet.text(LEFT + WIDTH - faces.width(&made_by, FOOTER), y, FOOTER, made_by);
}
