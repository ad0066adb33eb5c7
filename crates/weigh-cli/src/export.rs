//! `weigh export`.

use std::path::Path;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use weigh::export::{self, Exported, Options, Progress};
use weigh::record::Recording;

use crate::args::ExportArgs;
use crate::failure::{Failure, of_export, of_recording};
use crate::{print, show};

/// A wait that is shorter than this needs no explanation.
const PATIENCE: Duration = Duration::from_secs(1);

/// Writes tables, and prints the names of the files.
pub fn export(args: ExportArgs) -> Result<u8, Failure> {
    let directory = show::find(args.run)?;
    let output = args.output.unwrap_or_else(|| directory.join("export"));
    let options = Options {
        formats: args.formats,
        tables: args.tables,
        rates: args.rates,
        resample: args.resample,
        from: args.from,
        to: args.to,
        phase: args.phase,
        force: args.force,
    };
    let exported = write(&directory, &options, &output)?;
    exported.missing.iter().for_each(|what| print::warning(what));
    let names = exported.files.iter().map(|path| format!("{}\n", path.display()));
    print::out(&names.collect::<String>());
    Ok(0)
}

fn write(directory: &Path, options: &Options, output: &Path) -> Result<Exported, Failure> {
    let recording = Recording::open(directory).map_err(|error| of_recording(&error))?;
    let bar = Bar::new();
    export::export(&recording, options, output, |progress| bar.show(progress))
        .map_err(|error| of_export(&error))
}

/// A progress bar on a terminal, for work that takes its time.
struct Bar(ProgressBar);

impl Bar {
    fn new() -> Bar {
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let style = "{bar:40} {percent:>3} %  {human_pos} of {human_len} rows  {eta} left";
        Bar(bar.with_style(
            ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
        ))
    }

    fn show(&self, progress: Progress) {
        if self.0.is_hidden() && self.0.elapsed() > PATIENCE {
            // It stays hidden where stderr is not a terminal.
            self.0.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.0.set_length(progress.of);
        self.0.set_position(progress.rows);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
