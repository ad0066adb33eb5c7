//! `weigh metrics`: the catalogue.

use weigh::catalog::catalogue;
use weigh::record::manifest::Described;

use crate::args::Format;
use crate::failure::Failure;
use crate::print;

/// Lists every metric.
pub(crate) fn metrics(format: Format) -> Result<u8, Failure> {
    let described: Vec<Described> = catalogue().map(Described::from).collect();
    print::out(&match format {
        Format::Json => serde_json::to_string_pretty(&described).unwrap_or_default() + "\n",
        Format::Text => {
            let header = ["metric", "unit", "kind", "source"];
            let row = |m: Described| {
                vec![m.name, m.unit.into_owned(), m.kind.into_owned(), m.source.into_owned()]
            };
            print::table(&header, described.into_iter().map(row).collect())
        }
    });
    Ok(0)
}
