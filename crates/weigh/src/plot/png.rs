//! A picture in pixels, with letters that weigh brings along: a compute node has no fonts.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::fonts::fonts;

/// A picture that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The SVG makes no sense.
    #[error("the picture cannot be drawn: {0}")]
    Drawing(#[from] resvg::usvg::Error),
    /// It has no size, or one beyond all measure.
    #[error("a picture of {width} × {height} pixels cannot be made")]
    Size {
        /// Its width.
        width: f32,
        /// Its height.
        height: f32,
    },
    /// It cannot be packed.
    #[error("the picture cannot be packed: {0}")]
    Packing(String),
}

/// Draws an SVG in pixels, `scale` of them for each of its own.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
    let options = Options { fontdb: fonts(), ..Options::default() };
    let tree = Tree::from_str(svg, &options)?;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    let pixels = Pixmap::new(width.round() as u32, height.round() as u32);
    let mut pixels = pixels.ok_or(Error::Size { width, height })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| Error::Packing(error.to_string()))
}
