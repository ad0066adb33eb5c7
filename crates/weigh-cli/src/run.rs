//! `weigh run`.

use std::path::Path;

use weigh::host::child::Inherited;
use weigh::report::text;
use weigh::run::{Caller, Outcome};
use weigh::summary::Summary;

use crate::args::{Format, RunArgs};
use crate::failure::{Failure, USAGE};
use crate::{config, print, show};

/// Runs the command, says what it used, and ends as it did.
pub fn run(args: RunArgs, inherited: Inherited) -> Result<u8, Failure> {
    let file = config::read()?;
    let units = args.units.unwrap_or_else(|| file.units());
    let settings = file.settings(&args)?;
    if let Some(path) = &args.summary {
        check_summary_file(path)?;
    }
    let caller = Caller { inherited, keeps_stderr: true };
    let outcome = weigh::run::run(&args.command, &settings, caller)?;
    let Outcome { end, summary, recording, warnings } = outcome;
    warnings.iter().for_each(|warning| print::warning(warning));
    if let Some(path) = &args.summary
        && let Err(error) = write_summary(path, &summary)
    {
        print::warning(&format!("no summary in {}: {error}", path.display()));
    }
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

/// A file that cannot be written is found out before the command has run for a week.
///
/// Leaves everything as it was: the run may still be refused for another reason.
#[expect(clippy::disallowed_methods, reason = "a file the user asked for")]
fn check_summary_file(path: &Path) -> Result<(), Failure> {
    let was_there = path.exists();
    let opened = std::fs::OpenOptions::new().append(true).create(true).open(path);
    if opened.is_ok() && !was_there {
        // If it cannot be removed it stays behind empty, which harms nobody.
        let _ = std::fs::remove_file(path);
    }
    opened.map(drop).map_err(|error| {
        let cause = format!("{}: {error}", path.display());
        Failure::new("cannot write the summary there", cause, "weigh run --summary FILE -- …")
            .code(USAGE)
    })
}

#[expect(clippy::disallowed_methods, reason = "a file the user asked for")]
fn write_summary(path: &Path, summary: &Summary) -> Result<(), String> {
    let json = serde_json::to_vec_pretty(summary).map_err(|error| error.to_string())?;
    std::fs::write(path, json).map_err(|error| error.to_string())
}
