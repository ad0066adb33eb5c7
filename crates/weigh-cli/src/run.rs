//! `weigh run`.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
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
    let file = args.summary.as_deref().map(SummaryFile::open).transpose()?;
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
        && let Err(why) = file.write(&summary)
    {
        warnings.push(why);
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

/// The file of `--summary`, opened before the command runs for a week.
///
/// It is kept open: a pipe or `/dev/stdout` must be what it was when weigh began.
struct SummaryFile<'a> {
    path: &'a Path,
    file: std::fs::File,
    was_there: bool,
}

impl SummaryFile<'_> {
    #[expect(clippy::disallowed_methods, reason = "a file the user asked for")]
    fn open(path: &Path) -> Result<SummaryFile<'_>, Failure> {
        let was_there = path.exists();
        let opened = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            // A pipe that nobody reads is refused instead of waited for.
            .custom_flags(libc::O_NONBLOCK)
            .open(path);
        match opened {
            Ok(file) => Ok(SummaryFile { path, file, was_there }),
            Err(error) => {
                let cause = format!("{}: {error}", path.display());
                let hint = "weigh run --summary FILE -- …";
                Err(Failure::new("cannot write the summary there", cause, hint).code(USAGE))
            }
        }
    }

    /// The run was refused: leaves everything as it was.
    fn forget(self) {
        if !self.was_there {
            // If it cannot be removed it stays behind empty, which harms nobody.
            let _ = std::fs::remove_file(self.path);
        }
    }

    fn write(mut self, summary: &Summary) -> Result<(), String> {
        let failed = |error: &dyn std::fmt::Display| {
            format!("no summary in {}: {error}", self.path.display())
        };
        let json = serde_json::to_vec_pretty(summary).map_err(|error| failed(&error))?;
        // Pipes and devices cannot be cut, and need not be.
        let _ = self.file.set_len(0);
        self.file.write_all(&json).map_err(|error| failed(&error))
    }
}
