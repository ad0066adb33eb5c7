//! `weigh show` and `weigh runs`.

use std::path::{Path, PathBuf};

use weigh::catalog::FigureId;
use weigh::compat::{python, pytyche};
use weigh::quantity::{self, Units};
use weigh::record::{Recording, files};
use weigh::report::{gpus, phases, text};
use weigh::summary::{self, Figure, Summary};

use crate::args::{ShowArgs, SummaryFormat};
use crate::failure::{Failure, of_recording};
use crate::{config, print, report};

/// Shows one recording.
pub(crate) fn show(args: ShowArgs) -> Result<u8, Failure> {
    let directory = find(args.run)?;
    if args.pytyche_summary {
        let recording = Recording::open(&directory).map_err(|error| of_recording(&error))?;
        print::losses(&recording);
        let used = pytyche::resources(&recording).map_err(|error| of_recording(&error))?;
        print::out(&resources(&used));
        return Ok(0);
    }
    let units = config::units(args.sizes.units)?;
    if args.format == SummaryFormat::Github {
        print::out(&weigh::report::github(&report::read(&directory, units)?));
        return Ok(0);
    }
    let recording = Recording::open(&directory).map_err(|error| of_recording(&error))?;
    let summary = summary::of(&recording).map_err(|error| of_recording(&error))?;
    print::losses(&recording);
    let style = text::Style { units, colour: true };
    print::out(&match args.format {
        SummaryFormat::Json if args.phases => json(&phases_json(&summary))?,
        SummaryFormat::Json if args.gpus => json(&gpus_json(&summary))?,
        SummaryFormat::Json => json(&summary)?,
        _ if args.phases => phases::table(&summary, style, args.verbose),
        _ if args.gpus => gpus::table(&summary, style),
        _ => {
            let mut shown = text::summary(&summary, Some(&directory), style);
            if args.verbose {
                shown.push_str(&every_figure(&summary));
            }
            shown
        }
    });
    Ok(0)
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

/// A document as JSON.
pub(crate) fn json(document: &impl serde::Serialize) -> Result<String, Failure> {
    serde_json::to_string_pretty(document)
        .map(|json| json + "\n")
        .map_err(|error| Failure::new("cannot write JSON", error, "weigh show --format text"))
}

/// Every figure with its bounds, for people.
pub(crate) fn every_figure(summary: &Summary) -> String {
    let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |v| format!("{v}"));
    let row = |(id, figure): (FigureId, &Figure)| {
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

/// Finds a recording: a directory, a name under the default one, or the newest.
pub(crate) fn find(run: Option<PathBuf>) -> Result<PathBuf, Failure> {
    let here = Path::new(files::DEFAULT_DIRECTORY);
    let hint = "record one: weigh run -- CMD";
    let Some(run) = run else {
        let found = files::recordings(here)
            .map_err(|error| Failure::new("no recordings found", error, hint))?;
        return found
            .into_iter()
            .next()
            .ok_or_else(|| Failure::new("no recordings found", "weigh-runs is empty", hint));
    };
    let named = here.join(&run);
    Ok(if !run.join("run.json").exists() && named.join("run.json").exists() { named } else { run })
}

/// Lists recordings, newest first.
pub(crate) fn runs(directory: &Path) -> Result<u8, Failure> {
    let found = files::recordings(directory).map_err(|error| {
        Failure::new("no recordings found", error, "record one: weigh run -- CMD")
    })?;
    let rows = found.iter().map(|path| row(path)).collect();
    let header = ["run", "name", "end", "duration", "CPU time", "memory"];
    print::out(&print::table(&header, rows));
    Ok(0)
}

fn row(path: &Path) -> Vec<String> {
    let name = weigh::text::printable(&path.file_name().unwrap_or_default().to_string_lossy());
    let Ok(summary) = Recording::open(path).and_then(|recording| summary::of(&recording)) else {
        return vec![name, "cannot be read".to_owned()];
    };
    let figure = |id, show: &dyn Fn(f64) -> String| {
        summary.figures.value(id).map_or_else(|| "-".to_owned(), show)
    };
    let mut end =
        summary.run.exit_code.map_or_else(|| "not recorded".to_owned(), |c| c.to_string());
    if summary.run.ended.is_some() && !summary.run.complete {
        end.push_str(", rows lost");
    }
    vec![
        name,
        weigh::text::printable(&summary.run.name),
        end,
        quantity::seconds(summary.run.duration_seconds),
        figure(FigureId::CpuTime, &quantity::seconds),
        figure(FigureId::MemoryPeak, &|value| quantity::bytes(value, Units::Binary)),
    ]
}
