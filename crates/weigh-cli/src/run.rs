//! `weigh run`.

use std::path::Path;

use weigh::host::child::Inherited;
use weigh::report::text;
use weigh::run::{Caller, Outcome};

use crate::args::{Format, RunArgs};
use crate::failure::{Failure, USAGE};
use crate::result_file::ResultFile;
use crate::{config, export, print, show};

/// Runs the command, says what it used, and ends as it did.
pub fn run(args: RunArgs, inherited: Inherited) -> Result<u8, Failure> {
    let file = config::read()?;
    let units = args.units.unwrap_or_else(|| file.units());
    let settings = file.settings(&args)?;
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
    if args.format == Format::Json && !args.quiet {
        // Beside the JSON they would spoil it.
        summary.monitor.faults.append(&mut warnings);
    }
    warnings.iter().for_each(|warning| print::warning(warning));
    if !args.quiet {
        print::err(&match args.format {
            Format::Json => show::json(&summary)?,
            Format::Text => {
                let style = text::Style { units: units.into(), colour: true };
                let mut text = text::summary(&summary, recording.as_deref(), style);
                if args.verbose {
                    text.push_str(&show::every_figure(&summary));
                }
                text
            }
        });
    }
    Ok(end.exit_code() as u8)
}

fn open_summary(path: &Path) -> Result<ResultFile, Failure> {
    ResultFile::open(path).map_err(|cause| {
        let hint = "weigh run --summary FILE -- …";
        Failure::new("cannot write the summary there", cause, hint).code(USAGE)
    })
}
