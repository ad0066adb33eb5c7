//! Draws pages as PDF.

use krilla::color::rgb;
use krilla::geom::{Path, PathBuilder, Point, Rect, Size, Transform};
use krilla::page::PageSettings;
use krilla::paint::{Fill, Stroke};
use krilla::surface::Surface;
use krilla_svg::{SurfaceExt, SvgSettings};

use super::page::{Area, HAIRLINE, PAGE_SIZE, PageItem, Sheet};
use super::style::{FontStyle, Ink};
use super::text::Faces;

/// Draws a page as the document's next one.
pub(super) fn sheet(document: &mut krilla::Document, sheet: &Sheet, faces: &Faces) {
    // `None` only for an invalid size; the default is A4 as well.
    let settings = PageSettings::from_wh(PAGE_SIZE.0, PAGE_SIZE.1).unwrap_or_default();
    let mut page = document.start_page_with(settings);
    let mut surface = page.surface();
    for item in &sheet.items {
        match item {
            PageItem::Text { x, y, style, line } => {
                text(&mut surface, faces, (*x, *y), *style, line);
            }
            PageItem::Block { area, ink } => {
                surface.set_stroke(None);
                surface.set_fill(Some(fill(*ink)));
                draw(&mut surface, *area);
            }
            PageItem::Frame { area, ink } => {
                let paint = colour(*ink).into();
                surface.set_fill(None);
                surface.set_stroke(Some(Stroke { paint, width: HAIRLINE, ..Stroke::default() }));
                draw(&mut surface, *area);
            }
            PageItem::Picture { area, drawing } => {
                if let Some(size) = Size::from_wh(area.width, area.height) {
                    surface.push_transform(&Transform::from_translate(area.x, area.y));
                    surface.draw_svg(drawing, size, SvgSettings::default());
                    surface.pop();
                }
            }
        }
    }
}

fn text(surface: &mut Surface, faces: &Faces, (x, y): (f32, f32), style: FontStyle, line: &str) {
    surface.set_stroke(None);
    surface.set_fill(Some(fill(style.ink)));
    for run in faces.runs(line, style) {
        let start = Point::from_xy(x + run.x, y);
        surface.draw_glyphs(start, &run.glyphs, faces.font(style), line, style.size, false);
    }
}

fn draw(surface: &mut Surface, area: Area) {
    if let Some(path) = rectangle(area) {
        surface.draw_path(&path);
    }
}

fn rectangle(area: Area) -> Option<Path> {
    let mut path = PathBuilder::new();
    path.push_rect(Rect::from_xywh(area.x, area.y, area.width, area.height)?);
    path.finish()
}

fn colour(ink: Ink) -> rgb::Color {
    rgb::Color::new(ink.0, ink.1, ink.2)
}

fn fill(ink: Ink) -> Fill {
    Fill { paint: colour(ink).into(), ..Fill::default() }
}
