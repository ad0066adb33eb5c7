//! What every verb that measures does: settings before, and the summary after.

use std::path::Path;

use weigh::model::settings::Settings;
use weigh::report::text;
use weigh::summary::Summary;

use crate::args::{Measuring, SummaryFormat, Units};
use crate::failure::{Failure, USAGE};
use crate::result_file::ResultFile;
use crate::{config, export, print, report, show};

/// A measurement, with all options checked.
pub(crate) struct Measurement<'a> {
    /// How to measure.
    pub settings: Settings,
    args: &'a Measuring,
    units: Units,
    file: Option<ResultFile>,
}

impl<'a> Measurement<'a> {
    /// Checks the options and opens what will be written.
    pub(crate) fn prepare(args: &'a Measuring, wait_all: bool) -> Result<Measurement<'a>, Failure> {
        let file = config::read()?;
        let units = args.sizes.units.unwrap_or_else(|| file.units());
        let settings = file.settings(args, wait_all)?;
        if args.format == SummaryFormat::Github && args.no_record {
            let cause = "--format github is made from the recording, and there is none";
            let hint = "leave out --no-record, or print it as text";
            return Err(Failure::new("cannot print this summary", cause, hint).code(USAGE));
        }
        let file = args.summary.as_deref().map(open_summary).transpose()?;
        Ok(Measurement { settings, args, units, file })
    }

    /// Nothing was measured: leaves no file behind.
    pub(crate) fn discard(&mut self) {
        if let Some(file) = self.file.take() {
            file.discard();
        }
    }

    /// Whether only errors are printed.
    pub(crate) fn is_quiet(&self) -> bool {
        self.args.quiet
    }

    /// Writes and prints the summary, exports and reports.
    pub(crate) fn finish(
        &mut self,
        mut summary: Summary,
        recording: Option<&Path>,
        mut warnings: Vec<String>,
    ) -> Result<(), Failure> {
        let (args, units) = (self.args, self.units);
        if let Some(file) = self.file.take()
            && let Err(why) = file.write(show::json(&summary)?.as_bytes())
        {
            warnings.push(why);
        }
        if let (Some(recording), false) = (recording, args.export.is_empty()) {
            warnings.extend(export::at_end(recording, &args.export));
        }
        if recording.is_none() {
            let requested =
                [("report", args.report.is_empty()), ("export", args.export.is_empty())];
            let dropped = requested.into_iter().filter(|(_, is_empty)| !is_empty);
            warnings.extend(dropped.map(|(what, _)| format!("no {what}: there is no recording")));
        }
        let mut reports = Vec::new();
        if let (Some(recording), false) = (recording, args.report.is_empty()) {
            match report::at_end(recording, &args.report, units.into()) {
                Ok(files) => reports = files,
                Err(why) => warnings.push(why),
            }
        }
        if args.format == SummaryFormat::Json && !args.quiet {
            // Printed beside the JSON they would make it invalid.
            summary.monitor.faults.append(&mut warnings);
        }
        warnings.iter().for_each(|warning| print::warning(warning));
        if args.quiet {
            return Ok(());
        }
        print::err(&match args.format {
            SummaryFormat::Json => show::json(&summary)?,
            SummaryFormat::Github => github(recording, units.into())?,
            SummaryFormat::Text => {
                let style = text::Style { units: units.into(), colour: true };
                let mut text = text::summary(&summary, recording, style);
                if args.verbose {
                    text.push_str(&show::every_figure(&summary));
                }
                for file in &reports {
                    text.push_str(&format!("  {:<10} {}\n", "report", file.display()));
                }
                text
            }
        });
        Ok(())
    }
}

fn github(recording: Option<&Path>, units: weigh::quantity::Units) -> Result<String, Failure> {
    let document = recording.map(|recording| report::read(recording, units)).transpose()?;
    Ok(document.map_or_else(String::new, |document| weigh::report::github(&document)))
}

fn open_summary(path: &Path) -> Result<ResultFile, Failure> {
    ResultFile::open(path).map_err(|cause| {
        let hint = "name a file that can be written: --summary FILE";
        Failure::new("cannot write the summary there", cause, hint).code(USAGE)
    })
}
