//! Font sizes, weights and colours.

/// A colour: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ink(pub u8, pub u8, pub u8);

impl Ink {
    /// Main text.
    pub(super) const BLACK: Ink = Ink(0x1c, 0x22, 0x28);
    /// Notes.
    pub(super) const GREY: Ink = Ink(0x5b, 0x66, 0x70);
    /// Frames, and rules below headers.
    pub(super) const SILVER: Ink = Ink(0x8a, 0x94, 0x9c);
    /// Rules between rows.
    pub(super) const PALE: Ink = Ink(0xd4, 0xd9, 0xde);
    /// Bars.
    pub(super) const BLUE: Ink = Ink(0x2b, 0x6c, 0xa3);
}

/// Size, weight and colour of a text.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FontStyle {
    /// Its size in points.
    pub size: f32,
    /// Whether it is bold.
    pub bold: bool,
    /// Its colour.
    pub ink: Ink,
}

impl FontStyle {
    /// A size in points, black and regular.
    pub(super) const fn of(size: f32) -> FontStyle {
        FontStyle { size, bold: false, ink: Ink::BLACK }
    }

    /// The same in bold.
    pub(super) const fn bold(self) -> FontStyle {
        FontStyle { bold: true, ..self }
    }

    /// The same in another colour.
    pub(super) const fn inked(self, ink: Ink) -> FontStyle {
        FontStyle { ink, ..self }
    }

    /// The line height.
    pub(super) fn leading(self) -> f32 {
        self.size * 1.4
    }

    /// From the top of a line to its baseline.
    pub(super) fn ascent(self) -> f32 {
        self.size * 1.05
    }
}
