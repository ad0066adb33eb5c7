//! A chart as SVG.

use super::Chart;

/// How a chart is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Look {
    /// Its width in pixels.
    pub width: f64,
    /// Its height in pixels.
    pub height: f64,
    /// Whether it stands alone: with title, legend and its own colours. In a page these are
    /// the page's.
    pub alone: bool,
}

/// Draws a chart.
pub fn draw(chart: &Chart, look: Look) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\"><title>{}</title></svg>",
        look.width, look.height, chart.name
    )
}
