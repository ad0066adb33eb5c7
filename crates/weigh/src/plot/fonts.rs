//! The embedded fonts: a compute node may have none.

use std::sync::{Arc, OnceLock};

use resvg::usvg::fontdb::{Database, Source};

/// The fonts of every chart, for any requested family; loaded once, since that takes longer than a
/// chart.
pub fn fonts() -> Arc<Database> {
    static FONTS: OnceLock<Arc<Database>> = OnceLock::new();
    let read = || {
        let mut fonts = Database::new();
        for face in [dejavu::sans::regular(), dejavu::sans::bold()] {
            fonts.load_font_source(Source::Binary(Arc::new(face)));
        }
        fonts.set_serif_family("DejaVu Sans");
        fonts.set_sans_serif_family("DejaVu Sans");
        fonts.set_monospace_family("DejaVu Sans");
        Arc::new(fonts)
    };
    FONTS.get_or_init(read).clone()
}
