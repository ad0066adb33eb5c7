//! `weigh show`.

use std::path::Path;

use weigh::catalog::FigureId;
use weigh::compat::{python, pytyche};
use weigh::quantity::Units;
use weigh::record::Recording;
use weigh::report::{counters, gpus, phases, text};
use weigh::summary::{self, Figure, Summary};

use crate::args::{ShowArgs, SummaryFormat};
use crate::failure::{Failure, of_recording};
use crate::{config, find, print, report};

/// Shows one recording.
pub(crate) fn show(args: ShowArgs) -> Result<u8, Failure> {
    let directory = find::one(args.run.run.as_deref())?;
    if args.pytyche_summary {
        let recording = Recording::open(&directory).map_err(|error| of_recording(&error))?;
        print::losses(&recording);
        let used = pytyche::resources(&recording).map_err(|error| of_recording(&error))?;
        print::out(&resources(&used));
        return Ok(0);
    }
    let units = config::units(args.sizes.units)?;
    match args.format {
        SummaryFormat::Github => print::out(&report::github(&directory, units)?),
        SummaryFormat::Md => print::out(&report::markdown(&directory, units)?),
        SummaryFormat::Text | SummaryFormat::Json => print_summary(&args, &directory, units)?,
    }
    Ok(0)
}

/// Prints what a recording was summarised to, or its phases or GPUs.
fn print_summary(args: &ShowArgs, directory: &Path, units: Units) -> Result<(), Failure> {
    let recording = Recording::open(directory).map_err(|error| of_recording(&error))?;
    let summary = summary::of(&recording).map_err(|error| of_recording(&error))?;
    print::losses(&recording);
    let style = print::style(units);
    print::out(&match args.format {
        SummaryFormat::Json if args.phases => json(&phases_json(&summary))?,
        SummaryFormat::Json if args.gpus => json(&gpus_json(&summary))?,
        SummaryFormat::Json if args.counters => json(&counters_json(&summary))?,
        SummaryFormat::Json => json(&summary)?,
        _ if args.phases => phases::table(&summary, style, args.verbose),
        _ if args.gpus => gpus::table(&summary, style),
        _ if args.counters => counters::table(&summary, style),
        _ => {
            let mut shown = text::summary(&summary, Some(directory), style);
            if args.verbose {
                shown.push_str(&every_figure(&summary, style));
            }
            shown
        }
    });
    Ok(())
}

/// pytyche's summary as JSON.
pub(crate) fn resources(used: &pytyche::ResourceSummary) -> String {
    python::dumps(&used.to_dict(), 2) + "\n"
}

/// The phases for programs: all of one name together, and one by one.
fn phases_json(summary: &Summary) -> serde_json::Value {
    serde_json::json!({
        "run": summary.run,
        "statistics": summary.named_phases(),
        "phases": summary.phases,
        "phases_not_listed": summary.phases_not_listed,
    })
}

/// The GPUs for programs.
fn gpus_json(summary: &Summary) -> serde_json::Value {
    serde_json::json!({"run": summary.run, "gpus": summary.gpus})
}

/// The hardware counters for programs.
fn counters_json(summary: &Summary) -> serde_json::Value {
    serde_json::json!({"run": summary.run, "counters": summary.counters})
}

/// A document as JSON.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(document)
        .map(|json| json + "\n")
        .map_err(|error| Failure::new("cannot write JSON", error, "weigh show --format text"))
}

/// Every figure with its bounds, for people.
pub(crate) fn every_figure(summary: &Summary, style: text::Style) -> String {
    let row = |(id, figure): (FigureId, &Figure)| {
        let number = |value: Option<f64>| {
            let shown = |value| phases::quantity_of(id, value, style.units);
            value.map_or_else(|| "-".to_owned(), shown)
        };
        vec![
            id.name().to_owned(),
            number(figure.value),
            figure.method.map_or("-", |method| method.name()).to_owned(),
            number(figure.lower),
            number(figure.upper),
            figure.source.clone(),
        ]
    };
    let header = ["figure", "value", "method", "at least", "at most", "source"];
    format!("\n{}", print::table(&header, summary.figures.iter().map(row).collect()))
}
