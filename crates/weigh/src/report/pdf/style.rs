//! How print looks: sizes, weights, colours.

/// A colour of print: red, green, blue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ink(pub u8, pub u8, pub u8);

impl Ink {
    /// What is read first.
    pub(super) const BLACK: Ink = Ink(0x1c, 0x22, 0x28);
    /// What explains.
    pub(super) const GREY: Ink = Ink(0x5b, 0x66, 0x70);
    /// Frames, and rules that part more than rows.
    pub(super) const SILVER: Ink = Ink(0x8a, 0x94, 0x9c);
    /// Rules.
    pub(super) const PALE: Ink = Ink(0xd4, 0xd9, 0xde);
    /// What is filled.
    pub(super) const BLUE: Ink = Ink(0x2b, 0x6c, 0xa3);
}

/// How a text is set.
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
    /// A text of a size, black and not bold.
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

    /// From one line to the next.
    pub(super) fn leading(self) -> f32 {
        self.size * 1.4
    }

    /// From the top of a line to the feet of its letters.
    pub(super) fn ascent(self) -> f32 {
        self.size * 1.05
    }
}
