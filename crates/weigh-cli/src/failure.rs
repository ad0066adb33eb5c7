//! Errors for the user: what failed, why, and what to type.

use std::io::ErrorKind;

use clap::error::{ContextKind, ContextValue, ErrorKind as UsageError};
use weigh::model::settings;
use weigh::{destination, export, record, run};

/// A failure in three lines and an exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    /// What could not be done.
    pub what: String,
    /// Why.
    pub cause: String,
    /// What the cause is about, a line each.
    pub list: Vec<String>,
    /// What to type instead.
    pub hint: String,
    /// The exit code.
    pub code: u8,
}

/// Wrong usage.
pub(crate) const USAGE: u8 = 2;
/// weigh could not do its job.
const FAILED: u8 = 1;
/// The command cannot be executed.
pub(crate) const NOT_EXECUTABLE: u8 = 126;
/// The command cannot be found.
pub(crate) const NOT_FOUND: u8 = 127;

impl Failure {
    /// A failure of weigh's own.
    pub(crate) fn new(what: impl ToString, cause: impl ToString, hint: impl ToString) -> Failure {
        Failure {
            what: what.to_string(),
            cause: cause.to_string(),
            list: Vec::new(),
            hint: hint.to_string(),
            code: FAILED,
        }
    }

    /// The same, with a list below the cause.
    pub(crate) fn list(mut self, list: Vec<String>) -> Failure {
        self.list = list;
        self
    }

    /// The same, with another exit code.
    pub(crate) fn code(mut self, code: u8) -> Failure {
        self.code = code;
        self
    }
}

/// Prints requested help; anything else is a failure.
pub(crate) fn of_usage(error: &clap::Error) -> Result<u8, Failure> {
    if matches!(
        error.kind(),
        UsageError::DisplayHelp
            | UsageError::DisplayVersion
            | UsageError::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        // A closed pipe is not an error.
        let _ = error.print();
        return Ok(if error.use_stderr() { USAGE } else { 0 });
    }
    let rendered = error.render().to_string();
    let cause: String = rendered
        .lines()
        .map(str::trim)
        .take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"))
        .filter(|line| !line.is_empty() && !line.starts_with("tip:"))
        .map(|line| line.trim_start_matches("error: "))
        .collect::<Vec<_>>()
        .join(" ");
    Err(Failure::new("invalid arguments", cause, hint(error)).code(USAGE))
}

fn hint(error: &clap::Error) -> String {
    let suggested =
        [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    let suggestion = suggested.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        // The most similar one is the last.
        ContextValue::Strings(texts) => texts.last().cloned(),
        _ => None,
    });
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => text.as_str(),
        _ => "",
    };
    if text(ContextKind::InvalidArg).contains("PID") && !text(ContextKind::InvalidValue).is_empty()
    {
        let name = text(ContextKind::InvalidValue);
        return format!("by name: weigh watch {name}, or find the number: pgrep {name}");
    }
    match suggestion {
        Some(suggestion) => format!("did you mean {suggestion}? see weigh --help"),
        None => "see weigh --help, or weigh VERB --help".to_owned(),
    }
}

/// A file that could not be written.
pub(crate) fn of_file(what: &str, error: &destination::Error) -> Failure {
    let hint = match error {
        destination::Error::Exists { .. } => "replace it with --force, or name another: -o PATH",
        destination::Error::Write { .. } => "name a writable place with free space: -o PATH",
    };
    Failure::new(what, error, hint)
}

impl From<run::Error> for Failure {
    fn from(error: run::Error) -> Failure {
        let cause = error.to_string();
        match error {
            run::Error::Settings(error) => of_settings(&error),
            run::Error::Command(run::CommandError::NotFound { program })
                if program.trim().is_empty() =>
            {
                let cause = "the name of the program is empty: an unset variable, perhaps";
                Failure::new("there is no command", cause, "name one: weigh run -- make -j8")
                    .code(NOT_FOUND)
            }
            run::Error::Command(run::CommandError::NotFound { program }) => Failure::new(
                format!("cannot find {program}"),
                cause,
                "check the name and PATH; a shell built-in needs a shell: weigh run -- sh -c '…'",
            )
            .code(NOT_FOUND),
            run::Error::Command(run::CommandError::NoInterpreter { program }) => Failure::new(
                format!("cannot execute {program}"),
                cause,
                format!("check its first line: head -1 {program}"),
            )
            .code(NOT_FOUND),
            run::Error::Command(run::CommandError::NotExecutable { program, cause }) => {
                let hint = match cause.kind() {
                    ErrorKind::IsADirectory => {
                        format!("name a program in it: weigh run -- {program}/PROGRAM")
                    }
                    _ => format!("make it executable: chmod +x {program}"),
                };
                Failure::new(format!("cannot execute {program}"), cause, hint).code(NOT_EXECUTABLE)
            }
            run::Error::Command(run::CommandError::Fork(_)) => Failure::new(
                "cannot start the command",
                cause,
                "raise a limit: ulimit -u, ulimit -n",
            ),
            run::Error::Host(_) => Failure::new(
                "cannot read from this machine",
                cause,
                "mount /proc and /sys, or name another root: --host-root DIR",
            ),
            run::Error::Recording(error) => of_destination(&error),
            run::Error::NoProcess { pid } => Failure::new(
                format!("cannot attach to process {pid}"),
                cause,
                "list running processes: ps -e, or pgrep NAME",
            ),
            run::Error::Process { pid, .. } => Failure::new(
                format!("cannot attach to process {pid}"),
                cause,
                "name a process and not one of its threads: ps -e",
            ),
            run::Error::OwnGroup(_) => Failure::new(
                "cannot create a cgroup for the command",
                cause,
                "as root: sudo weigh run --cgroup always …, or without one: --cgroup never",
            ),
            run::Error::Group(run::NoCgroup::Denied(_)) => Failure::new(
                "cannot attach to this cgroup",
                cause,
                "read it as root: sudo weigh attach --cgroup PATH",
            ),
            run::Error::Group(_) => Failure::new(
                "cannot attach to this cgroup",
                cause,
                "find the cgroup of a process: cat /proc/PID/cgroup",
            ),
            run::Error::OtherNamespace => Failure::new(
                "cannot see the processes of this machine",
                cause,
                "weigh attach --host-root / …, with this namespace's /proc mounted",
            ),
            run::Error::System { .. } | run::Error::ForkedSession => Failure::new(
                "cannot measure a command",
                cause,
                "check what can be measured: weigh doctor",
            ),
        }
    }
}

fn of_settings(error: &settings::Error) -> Failure {
    let (what, hint) = match error {
        settings::Error::Interval(_) => {
            ("cannot use this interval", "write it like this: -i 100ms")
        }
        settings::Error::Budget(_) => {
            ("cannot use this budget", "write it like this: --budget 0.5%")
        }
        settings::Error::Collector { .. } => {
            ("cannot use this collector", "list the collectors: weigh doctor")
        }
        settings::Error::GpuWord { .. } => {
            ("cannot use this GPU", "write it like this: --gpus 0,GPU-8f6a")
        }
        settings::Error::NoGpu { .. } => ("cannot use this GPU", "list the GPUs: weigh doctor"),
        settings::Error::PerfEvent { .. } => {
            ("cannot count this event", "list the events and groups: weigh metrics --perf")
        }
        settings::Error::ExpectedCores(_) => {
            ("cannot use this number of cores", "write it like this: --expected-cores 4")
        }
    };
    Failure::new(what, error, hint).code(USAGE)
}

fn of_destination(error: &record::Error) -> Failure {
    let hint = match error {
        record::Error::Occupied { .. } => "name a new directory: -o DIR",
        _ => "name a writable one: -o DIR, or record nothing: --no-record",
    };
    Failure::new("cannot record there", error, hint).code(USAGE)
}

/// An export that failed.
pub(crate) fn of_export(error: &export::Error) -> Failure {
    let (what, hint, code) = match error {
        export::Error::Recording(error) => return of_recording(error),
        export::Error::NoTable { .. }
        | export::Error::NotRecorded { .. }
        | export::Error::NoPhase { .. }
        | export::Error::EmptyWindow
        | export::Error::NoStep => {
            ("cannot export this part of the run", "see weigh export --help", USAGE)
        }
        export::Error::IntoRecording { .. } => {
            let hint = "name another directory: weigh export -o DIR …";
            ("cannot export into a recording", hint, USAGE)
        }
        export::Error::SameHost { .. } => {
            let hint = "name one, or merge those of one machine: weigh merge RUN… -o DIR";
            ("two recordings are of the same host", hint, FAILED)
        }
        export::Error::NoRuns { .. } => {
            ("cannot export these runs", "list the recordings: weigh runs DIR", FAILED)
        }
        export::Error::Exists { .. } => {
            let hint = "replace it: weigh export --force …, or name a directory: -o DIR";
            ("output already exists", hint, FAILED)
        }
        export::Error::Rows(_) => {
            ("the recording is malformed", "list the recordings: weigh runs", FAILED)
        }
        export::Error::Write { source, .. } => {
            let hint = if source.is::<std::io::Error>() {
                "name another directory: weigh export -o DIR …"
            } else {
                "leave out this kind of file, or the table: see weigh export --help"
            };
            ("cannot write the export", hint, FAILED)
        }
    };
    Failure::new(what, error, hint).code(code)
}

/// A recording that cannot be read.
pub(crate) fn of_recording(error: &record::Error) -> Failure {
    Failure::new("cannot read this recording", error, "list the recordings: weigh runs")
}
