//! Chapters of charts: drawn as SVG, embedded as vectors, four to a page. Heat maps of many rows
//! take the space of two.

use resvg::usvg;

use super::page::{Area, BOTTOM, Composer, HEADING_HEIGHT, LEFT, PageItem, TOP, WIDTH};
use super::style::{FontStyle, Ink};
use crate::plot::fonts::fonts;
use crate::plot::svg::{self, SvgOptions};
use crate::plot::{Chart, ChartForm};
use crate::report::document::ReportChapter;

const ON_A_PAGE: f32 = 4.0;
/// The height of a chart with its margin.
const SLOT: f32 = (BOTTOM - TOP - HEADING_HEIGHT) / ON_A_PAGE;
/// Below a drawing.
const BELOW: f32 = 10.0;
/// The height of a drawing in one slot.
const HEIGHT: f32 = SLOT - BELOW;
/// Heat map rows whose labels fit in one slot.
const ROWS: usize = 12;
const FAILED: FontStyle = FontStyle::of(8.0).inked(Ink::GREY);
/// Points in a pixel: 11-pixel text becomes 7 points, which is small but readable.
const POINTS: f32 = 0.65;

/// Adds chapters.
pub(super) fn add(composer: &mut Composer, chapters: &[ReportChapter]) {
    let options = usvg::Options { fontdb: fonts(), ..usvg::Options::default() };
    for chapter in chapters.iter().filter(|chapter| !chapter.charts.is_empty()) {
        composer.heading(&chapter.title, chapter.charts.first().map_or(SLOT, slot));
        for chart in &chapter.charts {
            let slot = slot(chart);
            if composer.ensure_space(slot) {
                composer.continued_heading(&chapter.title);
            }
            one(composer, chart, slot, &options);
        }
    }
}

/// The height of a chart on a page.
fn slot(chart: &Chart) -> f32 {
    let is_high = chart.form == ChartForm::Heatmap && chart.series.len() > ROWS;
    if is_high { 2.0 * SLOT } else { SLOT }
}

fn one(composer: &mut Composer, chart: &Chart, slot: f32, options: &usvg::Options) {
    let pixels = |points: f32| f64::from(points / POINTS);
    let svg_options =
        SvgOptions { width: pixels(WIDTH), height: pixels(slot - BELOW), standalone: true };
    let item = match usvg::Tree::from_str(&svg::draw(chart, svg_options), options) {
        Ok(drawing) => picture(composer.y, slot - BELOW, drawing),
        // The rest of the report is still useful.
        Err(error) => error_note(composer, &chart.title, &error),
    };
    composer.sheet().items.push(item);
    composer.y += slot;
}

/// A drawing as large as fits; its size may differ from the requested one.
fn picture(y: f32, most: f32, drawing: usvg::Tree) -> PageItem {
    let (width, height) = (drawing.size().width(), drawing.size().height());
    let scale = (WIDTH / width).min(most / height);
    let area = Area { x: LEFT, y, width: width * scale, height: height * scale };
    PageItem::Picture { area, drawing: Box::new(drawing) }
}

/// The error text of a chart that could not be drawn, in a frame.
fn error_note(composer: &mut Composer, title: &str, error: &usvg::Error) -> PageItem {
    const INDENT: f32 = 10.0;
    let area = Area { x: LEFT, y: composer.y, width: WIDTH, height: HEIGHT };
    let words = format!("{title} could not be drawn: {error}");
    let words = composer.faces.cut(&words, FAILED, WIDTH - 2.0 * INDENT);
    composer.sheet().text(LEFT + INDENT, area.y + HEIGHT / 2.0, FAILED, words);
    PageItem::Frame { area, ink: Ink::PALE }
}

#[cfg(test)]
mod tests {
    use super::super::specimen::rich;
    use super::super::text::Faces;
    use super::*;

    #[test]
    fn four_charts_fit_on_a_page() {
        let faces = Faces::new().unwrap();
        let mut composer = Composer::new(&faces);
        let charts: Vec<Chart> = rich().chapters[0].charts[..5].to_vec();
        add(&mut composer, &[ReportChapter { title: "The run".to_owned(), charts }]);
        let pictures = composer.sheets.iter().map(|sheet| {
            sheet.items.iter().filter(|item| matches!(item, PageItem::Picture { .. })).count()
        });
        assert_eq!(pictures.collect::<Vec<_>>(), [4, 1]);
    }

    #[test]
    fn chart_keeps_its_proportions() {
        let svg = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100\" height=\"200\"/>";
        let drawing = usvg::Tree::from_str(svg, &usvg::Options::default()).unwrap();
        let PageItem::Picture { area, .. } = picture(TOP, HEIGHT, drawing) else {
            panic!("no picture")
        };
        assert!((area.height - HEIGHT).abs() < 1e-3 && (area.width - HEIGHT / 2.0).abs() < 1e-3);
    }

    #[test]
    fn chart_that_cannot_be_drawn_says_so() {
        let faces = Faces::new().unwrap();
        let mut composer = Composer::new(&faces);
        let error = usvg::Tree::from_str("<svg", &usvg::Options::default()).unwrap_err();
        let frame = error_note(&mut composer, "Cores", &error);
        assert!(matches!(frame, PageItem::Frame { .. }));
        assert!(matches!(&composer.sheet().items[0],
            PageItem::Text { line, .. } if line.starts_with("Cores could not be drawn: ")));
    }
}
