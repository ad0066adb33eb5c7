//! Text in the PDF: fonts, widths, cutting and wrapping.
//!
//! The fonts are DejaVu Sans regular and bold, compiled in: a compute node may have none. A line is
//! set glyph by glyph, without kerning, so that the measured width is the drawn width. A character
//! without a glyph is shown as `�`, but copied and searched as itself. Hebrew and Arabic run from
//! right to left, but Arabic letters are not joined.

use std::ops::Range;

use krilla::text::{Font, GlyphId, KrillaGlyph};

use super::Error;
use super::style::FontStyle;
use crate::text::{ellipsize_middle, printable};

/// Shown for characters without a glyph.
const UNKNOWN: char = '\u{fffd}';
const ELLIPSIS: char = '…';

/// One font: for drawing and for measuring.
struct Face {
    font: Font,
    measures: ttf_parser::Face<'static>,
    /// Cached glyphs of ASCII, which is nearly all text: a lookup is slow.
    ascii: Vec<(u16, f32)>,
}

impl Face {
    fn new(bytes: &'static [u8]) -> Result<Face, Error> {
        let font = Font::new(bytes.into(), 0).ok_or(Error::Font)?;
        let measures = ttf_parser::Face::parse(bytes, 0).map_err(|_| Error::Font)?;
        let mut face = Face { font, measures, ascii: Vec::new() };
        face.ascii = ('\0'..='\x7f').map(|character| face.look_up(character)).collect();
        Ok(face)
    }

    /// The glyph of a character and its width, in parts of the font's size.
    fn glyph(&self, character: char) -> (u16, f32) {
        let known = self.ascii.get(character as usize);
        known.copied().unwrap_or_else(|| self.look_up(character))
    }

    fn look_up(&self, character: char) -> (u16, f32) {
        let glyph = self.measures.glyph_index(character);
        let glyph = glyph.or_else(|| self.measures.glyph_index(UNKNOWN)).unwrap_or_default();
        let advance = self.measures.glyph_hor_advance(glyph).unwrap_or_default();
        (glyph.0, f32::from(advance) / f32::from(self.measures.units_per_em()))
    }
}

/// Glyphs of a line drawn in one call.
pub(super) struct GlyphRun {
    /// Its glyphs, from left to right.
    pub glyphs: Vec<KrillaGlyph>,
    /// Where it begins, from the start of the line.
    pub x: f32,
}

/// The fonts.
pub(super) struct Faces {
    regular: Face,
    bold: Face,
}

impl Faces {
    /// Opens the fonts.
    pub(super) fn new() -> Result<Faces, Error> {
        let (regular, bold) = (dejavu::sans::regular(), dejavu::sans::bold());
        Ok(Faces { regular: Face::new(regular)?, bold: Face::new(bold)? })
    }

    fn face(&self, style: FontStyle) -> &Face {
        if style.bold { &self.bold } else { &self.regular }
    }

    /// The font of a text.
    pub(super) fn font(&self, style: FontStyle) -> Font {
        self.face(style).font.clone()
    }

    fn advance(&self, character: char, style: FontStyle) -> f32 {
        self.face(style).glyph(character).1 * style.size
    }

    /// How wide a text is.
    pub(super) fn width(&self, text: &str, style: FontStyle) -> f32 {
        text.chars().map(|character| self.advance(character, style)).sum()
    }

    /// How wide a text is, or `most` when it is wider: text from outside may be very long.
    pub(super) fn width_up_to(&self, text: &str, style: FontStyle, most: f32) -> f32 {
        let mut width = 0.0;
        for character in text.chars() {
            width += self.advance(character, style);
            if width >= most {
                return most;
            }
        }
        width
    }

    /// A line's glyphs.
    pub(super) fn runs(&self, line: &str, style: FontStyle) -> Vec<GlyphRun> {
        let face = self.face(style);
        let mut x = 0.0;
        let mut runs = Vec::new();
        for (range, rtl) in directions(line) {
            let mut width = 0.0;
            let characters = line[range.clone()].char_indices();
            let mut glyphs: Vec<KrillaGlyph> = characters
                .map(|(at, character)| {
                    let (glyph, advance) = face.glyph(character);
                    width += advance * style.size;
                    let start = range.start + at;
                    let spelling = start..start + character.len_utf8();
                    let glyph = GlyphId::new(u32::from(glyph));
                    KrillaGlyph::new(glyph, advance, 0.0, 0.0, 0.0, spelling, None)
                })
                .collect();
            if rtl {
                glyphs.reverse();
            }
            runs.push(GlyphRun { glyphs, x });
            x += width;
        }
        runs
    }

    /// A text in one line no wider than `width`, with an ellipsis where it was cut.
    pub(super) fn cut(&self, text: &str, style: FontStyle, width: f32) -> String {
        let text = shown(text);
        // Widths are sums of floats: a column sized for a text must hold it.
        let fitting = self.fitting(&text, style, width + 0.01);
        if fitting == text.len() {
            return text;
        }
        self.cut_short(&text, style, width)
    }

    /// The same, cut in the middle, so that its end stays.
    pub(super) fn cut_inside(&self, text: &str, style: FontStyle, width: f32) -> String {
        let text = shown(text);
        let letters = text.chars().count();
        let cuts = (1..=letters).rev().map(|most| ellipsize_middle(&text, most));
        let mut cuts = cuts.filter(|cut| self.fitting(cut, style, width + 0.01) == cut.len());
        cuts.next().unwrap_or_else(|| self.cut(&text, style, width))
    }

    /// The beginning of a text and an ellipsis, whether it would have fitted or not.
    fn cut_short(&self, text: &str, style: FontStyle, width: f32) -> String {
        let space = width - self.advance(ELLIPSIS, style);
        let mut cut = text[..self.fitting(text, style, space)].trim_end().to_owned();
        cut.push(ELLIPSIS);
        cut
    }

    /// How many bytes of a text fit into a width.
    fn fitting(&self, text: &str, style: FontStyle, width: f32) -> usize {
        let mut used = 0.0;
        let too_much = text.char_indices().find(|(_, character)| {
            used += self.advance(*character, style);
            used > width
        });
        too_much.map_or(text.len(), |(at, _)| at)
    }

    /// A text in at most `most` lines no wider than `width`, wrapped between words, and within a
    /// word that is wider than a line. The last line has an ellipsis when there is more.
    pub(super) fn wrap(
        &self,
        text: &str,
        style: FontStyle,
        width: f32,
        most: usize,
    ) -> Vec<String> {
        let text = shown(text);
        let mut rest = text.trim();
        let mut lines = Vec::new();
        while !rest.is_empty() {
            if lines.len() + 1 == most && self.fitting(rest, style, width + 0.01) < rest.len() {
                lines.push(self.cut_short(rest, style, width));
                break;
            }
            let end = self.line_end(rest, style, width + 0.01);
            lines.push(rest[..end].trim_end().to_owned());
            rest = rest[end..].trim_start();
        }
        lines
    }

    /// Where the first line of a text ends.
    fn line_end(&self, text: &str, style: FontStyle, width: f32) -> usize {
        let fitting = self.fitting(text, style, width);
        if fitting == text.len() || text[fitting..].starts_with(' ') {
            return fitting;
        }
        match text[..fitting].rfind(' ') {
            Some(space) if space > 0 => space,
            // At least one character, however narrow the column.
            _ => fitting.max(text.chars().next().map_or(0, char::len_utf8)),
        }
    }
}

/// Text from outside on one line: control characters and bidirectional overrides are escaped.
pub(super) fn shown(text: &str) -> String {
    // Two noncharacters: no document may hold them, and no font shows them.
    printable(text).replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

/// Whether a character is written from right to left.
fn is_rtl(character: char) -> bool {
    matches!(u32::from(character),
        0x590..=0x8ff | 0xfb1d..=0xfdff | 0xfe70..=0xfefe | 0x1_0800..=0x1_0fff | 0x1_e800..=0x1_efff)
}

/// The parts of a line with one direction, and whether it is right to left. Spaces between two
/// right-to-left words are, too.
fn directions(line: &str) -> Vec<(Range<usize>, bool)> {
    let mut parts: Vec<(Range<usize>, bool)> = Vec::new();
    let mut push = |range: Range<usize>, rtl: bool| match parts.last_mut() {
        Some((last, same)) if *same == rtl => last.end = range.end,
        _ => parts.push((range, rtl)),
    };
    let mut characters = line.char_indices().peekable();
    let mut was_rtl = false;
    while let Some((at, character)) = characters.next() {
        let next = characters.peek().is_some_and(|(_, next)| is_rtl(*next));
        was_rtl = is_rtl(character) || (was_rtl && character == ' ' && next);
        push(at..at + character.len_utf8(), was_rtl);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: FontStyle = FontStyle::of(10.0);

    #[test]
    fn widths_are_those_of_the_glyphs() {
        let faces = Faces::new().unwrap();
        // From the font's own table: 1303 of 2048 units for a digit.
        assert!((faces.width("00", STYLE) - 2.0 * 10.0 * 1303.0 / 2048.0).abs() < 1e-3);
        assert!(faces.width("00", STYLE.bold()) > faces.width("00", STYLE));
        assert_eq!(faces.width("日", STYLE), faces.width("\u{fffd}", STYLE));
    }

    #[test]
    fn text_that_does_not_fit_ends_with_an_ellipsis() {
        let faces = Faces::new().unwrap();
        let width = faces.width("solver", STYLE);
        assert_eq!(faces.cut("solver", STYLE, width), "solver");
        let cut = faces.cut("solver", STYLE, width - 1.0);
        assert!(cut.ends_with('…') && cut.starts_with("sol"), "{cut}");
        assert!(faces.width(&cut, STYLE) <= width - 1.0);
        assert_eq!(faces.cut("solver", STYLE, 0.0), "…");
        assert_eq!(faces.cut("", STYLE, 0.0), "");
    }

    #[test]
    fn lines_break_between_words_and_within_a_word_that_is_too_long() {
        let faces = Faces::new().unwrap();
        let width = faces.width("one two", STYLE);
        assert_eq!(faces.wrap("one two  three", STYLE, width, 9), ["one two", "three"]);
        assert_eq!(faces.wrap("", STYLE, width, 9), [""; 0]);
        let long = "x".repeat(50);
        let lines = faces.wrap(&long, STYLE, width, 99);
        assert!(lines.iter().all(|line| faces.width(line, STYLE) <= width + 0.02));
        assert_eq!(lines.concat(), long);
        assert_eq!(faces.wrap("日本", STYLE, 0.0, 9), ["日", "本"]);
    }

    #[test]
    fn last_line_has_an_ellipsis_when_text_is_cut() {
        let faces = Faces::new().unwrap();
        let width = faces.width("one two", STYLE);
        let lines = faces.wrap("one two three four", STYLE, width, 2);
        assert_eq!(lines.len(), 2);
        assert!(lines[1].starts_with("three") && lines[1].ends_with('…'), "{lines:?}");
        assert_eq!(faces.wrap("one two three", STYLE, width, 2), ["one two", "three"]);
    }

    #[test]
    fn right_to_left_words_are_drawn_reversed() {
        let faces = Faces::new().unwrap();
        let line = "a שלום עולם b";
        let runs = faces.runs(line, STYLE);
        assert_eq!(runs.len(), 3);
        let first = |run: &GlyphRun| {
            let range = krilla::text::Glyph::text_range(&run.glyphs[0]);
            line[range].to_owned()
        };
        assert_eq!(first(&runs[0]), "a");
        assert_eq!(first(&runs[1]), "ם");
        assert_eq!(first(&runs[2]), " ");
        assert!((runs[2].x - faces.width("a שלום עולם", STYLE)).abs() < 1e-3);
    }

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(shown("a\nb\x07\u{202e}\u{ffff}"), "a\\nb\\u{7}\\u{202e}\u{fffd}");
    }
}
