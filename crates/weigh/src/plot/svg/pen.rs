//! Writes the elements of a picture.

use std::fmt::Write;

use crate::words;

/// A picture that is being written.
#[derive(Debug, Default)]
pub struct Pen {
    out: String,
}

impl Pen {
    /// Begins an element.
    pub fn open(&mut self, element: &str, attributes: &str) {
        let _ = writeln!(self.out, "<{element} {attributes}>");
    }

    /// Ends an element.
    pub fn close(&mut self, element: &str) {
        let _ = writeln!(self.out, "</{element}>");
    }

    /// Something that is SVG already.
    pub fn raw(&mut self, svg: &str) {
        self.out.push_str(svg);
        self.out.push('\n');
    }

    /// A group, and what is in it.
    pub fn group(&mut self, class: &str, inside: impl FnOnce(&mut Pen)) {
        self.open("g", &format!("class=\"{class}\""));
        inside(self);
        self.close("g");
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, x1: f64, y1: f64, x2: f64, y2: f64) {
        let [x1, y1, x2, y2] = [x1, y1, x2, y2].map(Short);
        let _ = writeln!(
            self.out,
            "<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>"
        );
    }

    /// A rectangle, with more attributes when there are any.
    pub fn rectangle(&mut self, class: &str, at: (f64, f64), size: (f64, f64), more: &str) {
        let [x, y, width, height] = [at.0, at.1, size.0, size.1].map(Short);
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"{more}/>"
        );
    }

    /// A path of points that is drawn with this class.
    pub fn path(&mut self, class: &str, points: &str) {
        if !points.is_empty() {
            let _ = writeln!(self.out, "<path class=\"{class}\" d=\"{points}\"/>");
        }
    }

    /// A dot.
    pub fn dot(&mut self, class: &str, x: f64, y: f64, radius: f64) {
        let [x, y] = [x, y].map(Short);
        let _ =
            writeln!(self.out, "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>");
    }

    /// Words that begin, end or have their middle at a place.
    pub fn text(&mut self, class: &str, x: f64, y: f64, anchor: &str, words: &str) {
        let ([x, y], words) = ([x, y].map(Short), escaped(words));
        let _ = writeln!(
            self.out,
            "<text class=\"{class}\" x=\"{x}\" y=\"{y}\" text-anchor=\"{anchor}\">{words}</text>"
        );
    }

    /// The picture.
    pub fn finish(self) -> String {
        self.out
    }
}

/// A place in a picture: a tenth of a pixel is as fine as anybody sees.
pub struct Short(pub f64);

impl std::fmt::Display for Short {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round();
        if tenths % 10.0 == 0.0 {
            write!(to, "{:.0}", tenths / 10.0)
        } else {
            write!(to, "{:.1}", tenths / 10.0)
        }
    }
}

/// Words as SVG takes them, in elements and in attributes.
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in words::printable(text).chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Nothing that XML 1.0 forbids.
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            letter => out.push(letter),
        }
    }
    out
}

/// About how wide words are in letters of this size.
pub fn width_of(text: &str, size: f64) -> f64 {
    let letter = |c: char| match c {
        'i' | 'l' | 'j' | 't' | 'f' | 'r' | ' ' | '.' | ',' | ':' | '\'' | '|' | '(' | ')' => 0.36,
        'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.95,
        c if c.is_ascii() => 0.63,
        // Wide scripts; accents are narrower, and room to spare does no harm.
        _ => 1.0,
    };
    text.chars().map(letter).sum::<f64>() * size
}
