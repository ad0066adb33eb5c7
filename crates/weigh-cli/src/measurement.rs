//! What every verb that measures does: settings before, and the summary after.

use std::path::Path;

use weigh::model::settings::{Destination, Settings};
use weigh::report::text;
use weigh::run::LiveObserver;
use weigh::summary::Summary;

use crate::args::{Measuring, SummaryFormat, Units};
use crate::failure::{Failure, USAGE};
use crate::result_file::ResultFile;
use crate::{config, export, live, print, report, show};

const STDOUT: i32 = 1;

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
        let is_markdown = matches!(args.format, Some(SummaryFormat::Github | SummaryFormat::Md));
        if is_markdown && settings.destination == Destination::Nowhere {
            let cause = "Markdown is made from the recording, and there is none";
            let hint = "leave out --no-record, or print it as text";
            return Err(Failure::new("cannot print this summary", cause, hint).code(USAGE));
        }
        let file = match (args.summary_fd, args.summary.as_deref()) {
            (Some(number), _) => Some(ResultFile::descriptor(number)),
            (None, Some(path)) if path == "-" => Some(ResultFile::descriptor(STDOUT)),
            (None, path) => path.map(ResultFile::open),
        };
        let file = file.transpose().map_err(|cause| {
            let hint = "name a file that can be written: --summary FILE";
            Failure::new("cannot write the summary there", cause, hint).code(USAGE)
        })?;
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

    /// Shows the values of the run while it runs, if requested and where that is possible.
    pub(crate) fn observer(&self) -> Option<LiveObserver> {
        live::observer(self.args.live?, self.units.into())
    }

    /// Writes and prints the summary, exports and reports.
    pub(crate) fn finish(
        &mut self,
        mut summary: Summary,
        recording: Option<&Path>,
        mut warnings: Vec<String>,
    ) {
        let (args, units) = (self.args, self.units);
        // The format is that of --summary, and stderr has text for people, as ever.
        let on_stderr = args.format.filter(|_| self.file.is_none()).unwrap_or_default();
        if let Some(file) = self.file.take() {
            let format = args.format.unwrap_or(SummaryFormat::Json);
            let written = self
                .formatted(format, &summary, recording, false)
                .and_then(|text| file.write(text.as_bytes()));
            warnings.extend(written.err());
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
        if on_stderr == SummaryFormat::Json && !args.quiet {
            // Printed beside the JSON they would make it invalid.
            summary.monitor.faults.append(&mut warnings);
        }
        warnings.iter().for_each(|warning| print::warning(warning));
        if args.quiet {
            return;
        }
        match self.formatted(on_stderr, &summary, recording, true) {
            Ok(mut text) => {
                if on_stderr == SummaryFormat::Text {
                    for file in &reports {
                        text.push_str(&format!("  {:<10} {}\n", "report", file.display()));
                    }
                }
                print::err(&text);
            }
            Err(why) => print::warning(&why),
        }
    }

    /// The summary in a format, or why that failed.
    fn formatted(
        &self,
        format: SummaryFormat,
        summary: &Summary,
        recording: Option<&Path>,
        colour: bool,
    ) -> Result<String, String> {
        let units = self.units.into();
        let columns = if colour { print::err_columns() } else { text::COLUMNS };
        let style = text::Style { units, colour, columns };
        let formatted = match (format, recording) {
            (SummaryFormat::Json, _) => show::json(summary),
            (SummaryFormat::Text, _) => {
                let mut text = text::summary(summary, recording, style);
                if self.args.verbose {
                    text.push_str(&show::every_figure(summary, style));
                }
                Ok(text)
            }
            (_, None) => return Err("no Markdown: there is no recording".to_owned()),
            (SummaryFormat::Github, Some(recording)) => report::github(recording, units),
            (SummaryFormat::Md, Some(recording)) => report::markdown(recording, units),
        };
        formatted.map_err(|failure| format!("{}: {}", failure.what, failure.cause))
    }
}
