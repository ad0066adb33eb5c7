//! The report as PDF, for print and archives: A4, vector charts, searchable text.
//!
//! Written directly rather than printed by a browser, which compute nodes do not have. The same
//! report gives the same bytes: the date is the run's, and no clock is read.

mod bars;
mod chart;
mod facts;
mod margins;
mod opening;
mod page;
mod paint;
mod short;
#[cfg(test)]
mod specimen;
mod style;
mod table;
#[cfg(test)]
mod tests;
mod text;

use krilla::destination::XyzDestination;
use krilla::geom::Point;
use krilla::metadata::{DateTime, Metadata};
use krilla::outline::{Outline, OutlineNode};

use super::Document;
use page::{Composer, LEFT, OutlineEntry, WIDTH};
use style::FontStyle;
use table::TableExtent;
use text::Faces;

/// Why there is no PDF.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The fonts that are built in cannot be read.
    #[error("the fonts that are built in cannot be read")]
    Font,
    /// The document cannot be put together.
    #[error("the PDF cannot be put together")]
    Assemble(#[from] krilla::error::KrillaError),
}

/// All figures, with their full sources.
const MAX_FIGURES: TableExtent = TableExtent { rows: usize::MAX, lines: 6 };
/// Of other tables the first rows; the export has all.
const MAX_OF_OTHERS: TableExtent = TableExtent { rows: 60, lines: 2 };

/// How much of a report the file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PdfExtent {
    /// What matters, on at most [`SHORT_PAGES`] pages.
    Short,
    /// Everything.
    Full,
}

/// The most pages of a short report.
pub const SHORT_PAGES: usize = 4;

/// The report as the bytes of a PDF file.
pub fn pdf(document: &Document, extent: PdfExtent) -> Result<Vec<u8>, Error> {
    let faces = Faces::new()?;
    let composer = match extent {
        PdfExtent::Short => short::composed(document, &faces),
        PdfExtent::Full => {
            let mut composer = Composer::new(&faces);
            compose(&mut composer, document);
            composer
        }
    };
    let Composer { mut sheets, parts, .. } = composer;
    margins::add(&mut sheets, document, &faces);

    let mut file = krilla::Document::new();
    for sheet in &sheets {
        paint::sheet(&mut file, sheet, &faces);
    }
    file.set_outline(outline(parts));
    file.set_metadata(metadata(document));
    Ok(file.finish()?)
}

/// All parts in order.
fn compose(composer: &mut Composer, document: &Document) {
    opening::add(composer, document);
    table::add(composer, &document.figures, MAX_FIGURES);
    chart::add(composer, &document.chapters);
    for table in &document.tables {
        table::add(composer, table, MAX_OF_OTHERS);
    }
    facts::add(composer, Some("Hardware"), &document.hardware);
    facts::add(composer, Some("What the monitor cost"), &document.monitor);
    missing(composer, &document.missing, usize::MAX);
}

/// What could not be measured, at most so many sentences.
fn missing(composer: &mut Composer, sentences: &[String], most: usize) {
    const STYLE: FontStyle = FontStyle::of(8.5);
    const INDENT: f32 = 12.0;
    let wrap = |sentence: &String| composer.faces.wrap(sentence, STYLE, WIDTH - INDENT, 6);
    let points: Vec<Vec<String>> = sentences.iter().take(most).map(wrap).collect();
    let height = |lines: &Vec<String>| lines.len() as f32 * STYLE.leading();
    composer.heading("What could not be measured", points.first().map_or(STYLE.leading(), height));
    if sentences.is_empty() {
        composer.text(LEFT, STYLE, "Everything requested was measured.");
    }
    for lines in points {
        composer.ensure_space(height(&lines));
        composer.text(LEFT, STYLE, "•");
        composer.lines(LEFT + INDENT, STYLE, lines);
        composer.y += 3.0;
    }
    let more = sentences.len().saturating_sub(most);
    if more > 0 {
        composer.text(LEFT + INDENT, STYLE, format!("and {more} more"));
    }
}

fn outline(parts: Vec<OutlineEntry>) -> Outline {
    let mut outline = Outline::new();
    for part in parts {
        let place = XyzDestination::new(part.page, Point::from_xy(LEFT, part.y));
        outline.push_child(OutlineNode::new(part.title, place));
    }
    outline
}

fn metadata(document: &Document) -> Metadata {
    let metadata = Metadata::new()
        .title(text::shown(&document.title))
        .creator(text::shown(&document.made_by))
        .language("en".to_owned());
    match document.page_header.date.parse::<jiff::civil::Date>() {
        Ok(date) => {
            let year = u16::try_from(date.year()).unwrap_or_default();
            let (month, day) = (date.month().unsigned_abs(), date.day().unsigned_abs());
            metadata.creation_date(DateTime::new(year).month(month).day(day))
        }
        Err(_) => metadata,
    }
}
