//! Chapters of charts: drawn as SVG, put on paper as vectors, four to a page.

use resvg::usvg;

use super::page::{Area, BOTTOM, Composer, HEADING_HEIGHT, Item, LEFT, TOP, WIDTH};
use super::style::{Ink, Type};
use crate::plot::Chart;
use crate::plot::fonts::fonts;
use crate::plot::svg::{self, Look};
use crate::report::document::Chapter;

const ON_A_PAGE: f32 = 4.0;
/// What a chart takes with all that belongs to it.
const SLOT: f32 = (BOTTOM - TOP - HEADING_HEIGHT) / ON_A_PAGE;
const BELOW: f32 = 10.0;
const FAILED: Type = Type::of(8.0).inked(Ink::GREY);
/// Points in a pixel: letters of 11 pixels are 7 points high, which is small and readable.
const POINTS: f32 = 0.65;

/// Puts chapters on paper.
pub fn add(composer: &mut Composer, chapters: &[Chapter]) {
    let options = usvg::Options { fontdb: fonts(), ..usvg::Options::default() };
    for chapter in chapters.iter().filter(|chapter| !chapter.charts.is_empty()) {
        composer.heading(&chapter.title, SLOT);
        for chart in &chapter.charts {
            if composer.keep(SLOT) {
                composer.heading_again(&chapter.title);
            }
            one(composer, chart, &options);
        }
    }
}

fn one(composer: &mut Composer, chart: &Chart, options: &usvg::Options) {
    let (width, height) = (WIDTH, SLOT - BELOW);
    let pixels = |points: f32| f64::from(points / POINTS);
    let look = Look { width: pixels(width), height: pixels(height), alone: true };
    let area = Area { x: LEFT, y: composer.y, width, height };
    match usvg::Tree::from_str(&svg::draw(chart, look), options) {
        Ok(drawing) => {
            // Who draws may take other measures than were asked for.
            let size = drawing.size();
            let scale = (width / size.width()).min(height / size.height());
            let area = Area { width: size.width() * scale, height: size.height() * scale, ..area };
            composer.sheet().items.push(Item::Picture { area, drawing: Box::new(drawing) });
        }
        // The rest of the report is worth having all the same.
        Err(error) => {
            composer.sheet().items.push(Item::Frame { area, ink: Ink::PALE });
            let words = format!("{} could not be drawn: {error}", chart.title);
            let words = composer.faces.cut(&words, FAILED, WIDTH - 20.0);
            composer.sheet().text(LEFT + 10.0, area.y + height / 2.0, FAILED, words);
        }
    }
    composer.y += SLOT;
}
