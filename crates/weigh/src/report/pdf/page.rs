//! Pages: where the next item goes, and when a new page is needed.
//!
//! Items are collected for each page first and drawn last, because the footer of the first page has
//! the number of pages.

use resvg::usvg;

use super::style::{FontStyle, Ink};
use super::text::{Faces, shown};

/// A4, in points.
pub(super) const PAGE_SIZE: (f32, f32) = (595.28, 841.89);
/// The left and right margin.
pub(super) const LEFT: f32 = 54.0;
/// How wide the text is.
pub(super) const WIDTH: f32 = PAGE_SIZE.0 - 2.0 * LEFT;
/// Where the text begins, below the header of the page.
pub(super) const TOP: f32 = 88.0;
/// Where it ends, above the footer.
pub(super) const BOTTOM: f32 = PAGE_SIZE.1 - 62.0;
/// Heights are sums of floats: four charts made for a page must fit on it.
const ROUNDING: f32 = 0.01;
/// How thick a rule is.
pub(super) const HAIRLINE: f32 = 0.5;

/// The heading of a part.
pub(super) const HEADING: FontStyle = FontStyle::of(13.0).bold();
const CONTINUED_HEADING: FontStyle = FontStyle::of(9.0).inked(Ink::GREY);
const NOTE: FontStyle = FontStyle::of(8.0).inked(Ink::GREY);
const NOTE_LINES: usize = 12;
const BELOW_NOTE: f32 = 5.0;
/// Space above a heading, unless it is at the top of a page.
const ABOVE_HEADING: f32 = 24.0;
const BELOW_HEADING: f32 = 7.0;
/// The height of a heading on a new page.
pub(super) const HEADING_HEIGHT: f32 = 13.0 * 1.4 + BELOW_HEADING;

/// An item on a page.
pub(super) enum PageItem {
    /// A line of text, `y` at the baseline.
    Text { x: f32, y: f32, style: FontStyle, line: String },
    /// A filled rectangle.
    Block { area: Area, ink: Ink },
    /// An empty rectangle.
    Frame { area: Area, ink: Ink },
    /// A drawing.
    Picture { area: Area, drawing: Box<usvg::Tree> },
}

/// A rectangle on a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Area {
    pub x: f32,
    pub y: f32,
    pub width: f32,
    pub height: f32,
}

/// A page.
#[derive(Default)]
pub(super) struct Sheet {
    pub items: Vec<PageItem>,
}

impl Sheet {
    /// A line of text whose top is at `y`.
    pub(super) fn text(&mut self, x: f32, y: f32, style: FontStyle, line: impl Into<String>) {
        let line = line.into();
        if !line.is_empty() {
            self.items.push(PageItem::Text { x, y: y + style.ascent(), style, line });
        }
    }

    /// A rule across the text.
    pub(super) fn rule(&mut self, y: f32, ink: Ink) {
        let area = Area { x: LEFT, y, width: WIDTH, height: HAIRLINE };
        self.items.push(PageItem::Block { area, ink });
    }
}

/// An entry of the PDF outline.
pub(super) struct OutlineEntry {
    pub title: String,
    /// The page, from 0.
    pub page: usize,
    pub y: f32,
}

/// Lays out items one after the other, page by page.
pub(super) struct Composer<'a> {
    pub faces: &'a Faces,
    pub sheets: Vec<Sheet>,
    pub parts: Vec<OutlineEntry>,
    /// Where the next item goes.
    pub y: f32,
}

impl<'a> Composer<'a> {
    pub(super) fn new(faces: &'a Faces) -> Composer<'a> {
        Composer { faces, sheets: vec![Sheet::default()], parts: Vec::new(), y: TOP }
    }

    /// Starts a new page.
    pub(super) fn new_sheet(&mut self) {
        self.sheets.push(Sheet::default());
        self.y = TOP;
    }

    /// Starts a new page if this height does not fit; returns whether it did. An item higher than a
    /// page gets its own.
    pub(super) fn ensure_space(&mut self, height: f32) -> bool {
        let is_full = self.y > TOP && self.y + height > BOTTOM + ROUNDING;
        if is_full {
            self.new_sheet();
        }
        is_full
    }

    /// Leaves space, except at the top of a page.
    pub(super) fn gap(&mut self, height: f32) {
        if self.y > TOP {
            self.y += height;
        }
    }

    /// The current page.
    pub(super) fn sheet(&mut self) -> &mut Sheet {
        if self.sheets.is_empty() {
            self.sheets.push(Sheet::default());
        }
        let last = self.sheets.len() - 1;
        &mut self.sheets[last]
    }

    /// A line of text at the current position, which does not change.
    pub(super) fn text(&mut self, x: f32, style: FontStyle, line: impl Into<String>) {
        let y = self.y;
        self.sheet().text(x, y, style, line);
    }

    /// The same, ending at `right`.
    pub(super) fn text_to(&mut self, right: f32, style: FontStyle, line: impl Into<String>) {
        let line = line.into();
        let x = right - self.faces.width(&line, style);
        self.text(x, style, line);
    }

    /// Lines of text, with page breaks between them.
    pub(super) fn lines(&mut self, x: f32, style: FontStyle, lines: Vec<String>) {
        for line in lines {
            self.ensure_space(style.leading());
            self.text(x, style, line);
            self.y += style.leading();
        }
    }

    /// The heading of a part, together with at least `follows` of what comes below it.
    pub(super) fn heading(&mut self, title: &str, follows: f32) {
        self.gap(ABOVE_HEADING);
        self.ensure_space(HEADING_HEIGHT + follows);
        let (page, y) = (self.sheets.len() - 1, self.y);
        self.parts.push(OutlineEntry { title: shown(title), page, y });
        let title = self.faces.cut(title, HEADING, WIDTH);
        self.text(LEFT, HEADING, title);
        self.y += HEADING_HEIGHT;
    }

    /// The heading of a part continued on a new page.
    pub(super) fn continued_heading(&mut self, title: &str) {
        let continued = " (continued)";
        let space = WIDTH - self.faces.width(continued, CONTINUED_HEADING);
        let title = self.faces.cut(title, CONTINUED_HEADING, space) + continued;
        self.text(LEFT, CONTINUED_HEADING, title);
        self.y += CONTINUED_HEADING.leading() + BELOW_HEADING;
    }

    fn note_lines(&self, text: &str) -> Vec<String> {
        self.faces.wrap(text, NOTE, WIDTH, NOTE_LINES)
    }

    /// The height of a note.
    pub(super) fn note_height(&self, text: &str) -> f32 {
        let lines = self.note_lines(text).len();
        if lines == 0 { 0.0 } else { lines as f32 * NOTE.leading() + BELOW_NOTE }
    }

    /// A note.
    pub(super) fn note(&mut self, text: &str) {
        let lines = self.note_lines(text);
        if !lines.is_empty() {
            self.lines(LEFT, NOTE, lines);
            self.y += BELOW_NOTE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_that_does_not_fit_starts_a_new_page() {
        let faces = Faces::new().unwrap();
        let mut composer = Composer::new(&faces);
        assert!(!composer.ensure_space(BOTTOM - TOP));
        assert!(!composer.ensure_space(2.0 * BOTTOM), "an empty sheet is as good as the next one");
        composer.y = BOTTOM - 10.0;
        assert!(!composer.ensure_space(10.0));
        assert!(composer.ensure_space(11.0));
        assert_eq!((composer.sheets.len(), composer.y), (2, TOP));
    }

    #[test]
    fn a_heading_is_never_alone_at_the_foot_of_a_page() {
        let faces = Faces::new().unwrap();
        let mut composer = Composer::new(&faces);
        composer.y = BOTTOM - HEADING_HEIGHT - ABOVE_HEADING - 10.0;
        composer.heading("fits", 10.0);
        assert_eq!(composer.sheets.len(), 1);
        composer.y = BOTTOM - HEADING_HEIGHT - ABOVE_HEADING - 10.0;
        composer.heading("does not", 11.0);
        assert_eq!(composer.parts[1].page, 1);
        assert_eq!(composer.parts[1].y, TOP, "no space above it there");
    }

    #[test]
    fn lines_continue_on_the_next_page() {
        let faces = Faces::new().unwrap();
        let mut composer = Composer::new(&faces);
        let lines = vec!["line".to_owned(); 100];
        composer.lines(LEFT, FontStyle::of(10.0), lines);
        assert_eq!(composer.sheets.len(), 3);
        assert_eq!(composer.sheets.iter().map(|sheet| sheet.items.len()).sum::<usize>(), 100);
        let lowest = |sheet: &Sheet| {
            let feet = sheet.items.iter().map(|item| match item {
                PageItem::Text { y, .. } => *y,
                _ => 0.0,
            });
            feet.fold(0.0, f32::max)
        };
        assert!(composer.sheets.iter().all(|sheet| lowest(sheet) <= BOTTOM));
    }
}
