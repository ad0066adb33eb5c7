//! Where a result is written: a file that was opened before the command started, or stdout.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};

use weigh::compat::python::{PythonValue, dumps, pickle};

use super::args::OutputArgs;
use super::usage;
use crate::failure::Failure;
use crate::result_file::ResultFile;

/// How a result is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ResultFormat {
    Json,
    Text,
    Pickle,
}

/// Where a result is written, and in which format.
pub(super) struct Output {
    format: ResultFormat,
    /// A duplicate, because weigh closes the command's own stdout while it runs.
    stdout: Option<OwnedFd>,
    file: Option<ResultFile>,
}

impl Output {
    /// Checks the options, and opens the file.
    pub(super) fn open(args: &OutputArgs) -> Result<Output, Failure> {
        let format = match args.format.as_deref() {
            Some("json") => ResultFormat::Json,
            Some("text") | None => ResultFormat::Text,
            Some("pickle") => ResultFormat::Pickle,
            Some(other) => {
                return Err(usage(format!(
                    "\"{other}\" is not a valid format. Valid values are \"json\" or \"text\"."
                )));
            }
        };
        if format == ResultFormat::Pickle && args.output.is_none() {
            return Err(usage("a pickle cannot be printed: name a file with --output"));
        }
        let stdout = std::io::stdout().as_fd().try_clone_to_owned().ok();
        let Some(path) = &args.output else { return Ok(Output { format, stdout, file: None }) };
        let file = ResultFile::open(path).map_err(usage)?;
        Ok(Output { format, stdout, file: Some(file) })
    }

    /// There is no result: removes a file that did not exist before.
    pub(super) fn discard(self) {
        if let Some(file) = self.file {
            file.discard();
        }
    }

    /// Prints a line to stdout, also when the result is written into a file.
    pub(super) fn print_line(&mut self, line: &str) {
        if let Some(stdout) = self.stdout.take() {
            let mut stdout = File::from(stdout);
            // A closed pipe is not an error.
            let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.write_all(b"\n"));
            self.stdout = Some(stdout.into());
        }
    }

    /// Writes a result; `text` makes its text form.
    pub(super) fn write(
        mut self,
        value: &PythonValue,
        text: impl FnOnce() -> String,
    ) -> Result<(), String> {
        let bytes = match self.format {
            ResultFormat::Json => dumps(value, 1).into_bytes(),
            ResultFormat::Text => text().into_bytes(),
            ResultFormat::Pickle => pickle(value),
        };
        match self.file.take() {
            Some(file) => file.write(&bytes),
            None => {
                self.print_line(&String::from_utf8_lossy(&bytes));
                Ok(())
            }
        }
    }
}
