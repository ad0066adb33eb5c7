//! An SVG as PNG, with embedded fonts: a compute node may have none.

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{Options, Tree};

use super::fonts::fonts;

/// Why a PNG could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The SVG is invalid.
    #[error("the SVG cannot be rendered: {0}")]
    Drawing(#[from] resvg::usvg::Error),
    /// Its size is zero or too large.
    #[error("an image of {width} × {height} pixels cannot be made")]
    Size {
        /// Its width.
        width: f32,
        /// Its height.
        height: f32,
    },
    /// It cannot be encoded.
    #[error("the PNG cannot be encoded: {0}")]
    Packing(String),
}

/// Renders an SVG with `scale` pixels for each SVG pixel.
pub fn png(svg: &str, scale: f32) -> Result<Vec<u8>, Error> {
    let options = Options { fontdb: fonts(), ..Options::default() };
    let tree = Tree::from_str(svg, &options)?;
    let (width, height) = (tree.size().width() * scale, tree.size().height() * scale);
    let pixels = Pixmap::new(width.round() as u32, height.round() as u32);
    let mut pixels = pixels.ok_or(Error::Size { width, height })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    pixels.encode_png().map_err(|error| Error::Packing(error.to_string()))
}
