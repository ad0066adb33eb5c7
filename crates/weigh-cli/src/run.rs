//! `weigh run`.

use std::path::Path;

use weigh::host::child::Inherited;
use weigh::report::text;
use weigh::run::{Caller, Outcome};

use crate::args::{RunArgs, Summary as For};
use crate::failure::{Failure, USAGE};
use crate::result_file::ResultFile;
use crate::{config, export, print, report, show};

/// Runs the command, says what it used, and ends as it did.
pub fn run(args: RunArgs, inherited: Inherited) -> Result<u8, Failure> {
    let file = config::read()?;
    let units = args.sizes.units.unwrap_or_else(|| file.units());
    let settings = file.settings(&args)?;
    if args.format == For::Github && args.no_record {
        let cause = "--format github is made from the recording, and there is none";
        let hint = "leave out --no-record, or print it as text";
        return Err(Failure::new("cannot print this summary", cause, hint).code(USAGE));
    }
    let file = args.summary.as_deref().map(open_summary).transpose()?;
    let caller = Caller { inherited, keeps_stderr: true };
    let outcome = match weigh::run::run(&args.command, &settings, caller) {
        Ok(outcome) => outcome,
        Err(error) => {
            if let Some(file) = file {
                file.forget();
            }
            return Err(error.into());
        }
    };
    let Outcome { end, mut summary, recording, mut warnings } = outcome;
    if let Some(file) = file
        && let Err(why) = file.write(show::json(&summary)?.as_bytes())
    {
        warnings.push(why);
    }
    if let (Some(recording), false) = (&recording, args.export.is_empty()) {
        warnings.extend(export::at_end(recording, &args.export));
    }
    let mut reports = Vec::new();
    if let (Some(recording), false) = (&recording, args.report.is_empty()) {
        match report::at_end(recording, &args.report, units.into()) {
            Ok(files) => reports = files,
            Err(why) => warnings.push(why),
        }
    }
    if args.format == For::Json && !args.quiet {
        // Beside the JSON they would spoil it.
        summary.monitor.faults.append(&mut warnings);
    }
    warnings.iter().for_each(|warning| print::warning(warning));
    if !args.quiet {
        print::err(&match args.format {
            For::Json => show::json(&summary)?,
            For::Github => github(recording.as_deref(), units.into())?,
            For::Text => {
                let style = text::Style { units: units.into(), colour: true };
                let mut text = text::summary(&summary, recording.as_deref(), style);
                if args.verbose {
                    text.push_str(&show::every_figure(&summary));
                }
                for file in &reports {
                    text.push_str(&format!("  {:<10} {}\n", "report", file.display()));
                }
                text
            }
        });
    }
    Ok(end.exit_code() as u8)
}

fn github(recording: Option<&Path>, units: weigh::quantity::Units) -> Result<String, Failure> {
    let document = recording.map(|recording| report::read(recording, units)).transpose()?;
    Ok(document.map_or_else(String::new, |document| weigh::report::github(&document)))
}

fn open_summary(path: &Path) -> Result<ResultFile, Failure> {
    ResultFile::open(path).map_err(|cause| {
        let hint = "weigh run --summary FILE -- …";
        Failure::new("cannot write the summary there", cause, hint).code(USAGE)
    })
}
