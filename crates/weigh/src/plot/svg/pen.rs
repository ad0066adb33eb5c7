//! Writes SVG elements.

use std::fmt::Write;

use crate::text;

/// An SVG that is being written.
#[derive(Debug, Default)]
pub(super) struct Pen {
    out: String,
}

impl Pen {
    /// Opens an element.
    pub(super) fn open(&mut self, element: &str, attributes: &str) {
        let _ = writeln!(self.out, "<{element} {attributes}>");
    }

    /// Closes an element.
    pub(super) fn close(&mut self, element: &str) {
        let _ = writeln!(self.out, "</{element}>");
    }

    /// Raw SVG.
    pub(super) fn raw(&mut self, svg: &str) {
        self.out.push_str(svg);
        self.out.push('\n');
    }

    /// A group and its content.
    pub(super) fn group(&mut self, class: &str, inside: impl FnOnce(&mut Pen)) {
        self.open("g", &format!("class=\"{class}\""));
        inside(self);
        self.close("g");
    }

    /// A straight line.
    pub(super) fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(Coordinate);
        let _ = writeln!(
            self.out,
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        );
    }

    /// A rectangle, with more attributes if any.
    pub(super) fn rectangle(&mut self, class: &str, at: (f64, f64), size: (f64, f64), more: &str) {
        let [x, y, width, height] = [at.0, at.1, size.0, size.1].map(Coordinate);
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{more}/>"
        );
    }

    /// A path with this class.
    pub(super) fn path(&mut self, class: &str, points: &str) {
        if !points.is_empty() {
            let _ = writeln!(self.out, "<path class=\"{class}\" d=\"{points}\"/>");
        }
    }

    /// A dot.
    pub(super) fn dot(&mut self, class: &str, x: f64, y: f64, radius: f64) {
        let [x, y] = [x, y].map(Coordinate);
        let _ =
            writeln!(self.out, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>");
    }

    /// Text anchored at start, middle or end.
    pub(super) fn text(&mut self, class: &str, x: f64, y: f64, anchor: &str, content: &str) {
        let ([x, y], content) = ([x, y].map(Coordinate), escaped(content));
        let _ = writeln!(
            self.out,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{content}</text>"
        );
    }

    /// The SVG.
    pub(super) fn finish(self) -> String {
        self.out
    }
}

/// A coordinate, rounded to a tenth of a pixel.
pub(super) struct Coordinate(pub f64);

impl std::fmt::Display for Coordinate {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if tenths % 10.0 == 0.0 {
            write!(to, "{:.0}", tenths / 10.0)
        } else {
            write!(to, "{:.1}", tenths / 10.0)
        }
    }
}

/// Compact SVG path data: horizontal and vertical lines name one number, and moves below a tenth of
/// a pixel are dropped.
#[derive(Debug, Default)]
pub(super) struct PathData {
    /// The value of the `d` attribute.
    pub data: String,
    /// The current point in tenths of a pixel, and whether the subpath has a line yet.
    at: Option<((i64, i64), bool)>,
}

impl PathData {
    /// Draws a line to a point, or starts a subpath there.
    pub(super) fn line_to(&mut self, x: f64, y: f64) {
        let place = ((x * 10.0).round() as i64, (y * 10.0).round() as i64);
        let (x, y) = (Coordinate(x), Coordinate(y));
        let _ = match self.at {
            None => write!(self.data, "M{x} {y}"),
            // A subpath of zero length is a dot, and a dot is drawn.
            Some((before, true)) if before == place => return,
            Some((before, _)) if before.1 == place.1 => write!(self.data, "H{x}"),
            Some((before, _)) if before.0 == place.0 => write!(self.data, "V{y}"),
            Some(_) => write!(self.data, "L{x} {y}"),
        };
        self.at = Some((place, self.at.is_some()));
    }

    /// Ends the subpath: the next point starts another.
    pub(super) fn end_subpath(&mut self) {
        self.at = None;
    }

    /// Closes the subpath.
    pub(super) fn close(&mut self) {
        self.data.push('Z');
        self.end_subpath();
    }
}

/// Text escaped for elements and attributes.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text::printable(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 forbids these.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// The approximate width of text in this font size.
pub(super) fn width_of(text: &str, size: f64) -> f64 {
    let letter = |c: char| match c {
        'i' | 'l' | 'j' | 't' | 'f' | 'r' | ' ' | '.' | ',' | ':' | '\'' | '|' | '(' | ')' => 0.36,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.95,
        c if c.is_ascii() => 0.63,
        // Wide scripts; accents are narrower, and spare space does no harm.
        _ => 1.0,
    };
    text.chars().map(letter).sum::<f64>() * size
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_data_names_only_coordinates_that_change() {
        let mut path = PathData::default();
        for (x, y) in [(1.0, 2.0), (3.04, 2.0), (3.0, 5.5), (3.01, 5.5), (4.0, 6.0)] {
            path.line_to(x, y);
        }
        path.close();
        path.line_to(7.0, 7.0);
        path.line_to(7.0, 7.0);
        path.end_subpath();
        assert_eq!(path.data, "M1 2H3V5.5L4 6ZM7 7H7");
    }
}
