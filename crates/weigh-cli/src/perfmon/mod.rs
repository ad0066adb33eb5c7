//! weigh under the name `perfmon`: that program's options and files.
//!
//! It needs only a symlink of that name. Each node is recorded by a recorder of weigh; the one on
//! the first node of the job then waits for the others and writes perfmon's files for all of them.

mod args;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args as _, Command, FromArgMatches, Parser};
use weigh::compat::perfmon;
use weigh::export::ExportFormat;
use weigh::program::variable;
use weigh::record::{Recording, files, job_directory};

use crate::args::JobFollowArgs;
use crate::failure::{self, Failure, USAGE, of_export, of_recording};
use crate::job::{self, FollowedNode};
use crate::print;
use args::{PerfmonArgs, TableFormat};

/// The name.
pub(crate) const NAME: &str = "perfmon";

/// Records this node, and writes perfmon's files on the first one.
pub(crate) fn dispatch() -> Result<u8, Failure> {
    let args = match PerfmonArgs::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let outcome = failure::of_usage(&error);
            let hint = "perfmon -i 30 -r, or see perfmon --help".to_owned();
            return outcome.map_err(|failure| Failure { hint, ..failure });
        }
    };
    let here = job::here()?;
    let save = save_directory(&args);
    let recordings = save.join(files::DEFAULT_DIRECTORY).join(here.directory_name());
    let followed = job::record(follow_args(&args, &recordings)?)?;
    if args.verbose {
        write_options(&save, &followed.node, &args)?;
    }
    if followed.is_first() {
        job::wait_for_ends(&followed.directory);
        write_files(&args, &save, &followed.directory)?;
    }
    Ok(0)
}

/// Writes perfmon's files of all nodes. What an earlier run of the job has written is replaced, as
/// by perfmon.
fn write_files(args: &PerfmonArgs, save: &Path, directory: &Path) -> Result<(), Failure> {
    let mut recordings = Vec::new();
    for path in files::recordings(directory).map_err(|error| of_recording(&error))? {
        match Recording::open(&path) {
            Ok(recording) => recordings.push(recording),
            // A damaged one must not prevent the export of the others.
            Err(error) => print::warning(&format!("left out: {error}")),
        }
    }
    let formats = formats(args);
    let exported = perfmon::export(&recordings, &formats, save, true);
    let exported = exported.map_err(|error| of_export(&error))?;
    exported.missing.iter().for_each(|what| print::warning(what));
    if args.gen_report {
        crate::plot::perfmon(&recordings, &save.join("plots"))?;
    }
    Ok(())
}

fn formats(args: &PerfmonArgs) -> Vec<ExportFormat> {
    match args.export.as_deref() {
        None => Vec::new(),
        Some([]) => vec![TableFormat::Csv.format()],
        Some(formats) => formats.iter().map(|format| format.format()).collect(),
    }
}

/// The directory of the files: with `~` and variables, as perfmon expands them.
fn save_directory(args: &PerfmonArgs) -> PathBuf {
    let named = args.save_dir.clone().flatten().map(|text| expanded(&text));
    let save = PathBuf::from(named.unwrap_or_else(|| ".".to_owned()));
    let save = std::path::absolute(&save).unwrap_or(save);
    match args.prefix.clone().flatten() {
        Some(prefix) => save.join(prefix),
        None => save,
    }
}

/// Expands `~`, `$NAME` and `${NAME}`; a variable that is not set stays as it is.
fn expanded(text: &str) -> String {
    let value = |name: &str| variable(name).map(|value| value.to_string_lossy().into_owned());
    let text = match text.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => {
            value("HOME").map_or_else(|| text.to_owned(), |home| home + rest)
        }
        _ => text.to_owned(),
    };
    let mut parts = text.split('$');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let (name, rest) = match part.strip_prefix('{').and_then(|part| part.split_once('}')) {
            Some((name, rest)) => (name, rest),
            None => part.split_at(part.find(|c| !is_word(c)).unwrap_or(part.len())),
        };
        match value(name).filter(|_| !name.is_empty()) {
            Some(value) => out.extend([&value, rest]),
            None => out.extend(["$", part]),
        }
    }
    out
}

/// The options of the recorder.
fn follow_args(args: &PerfmonArgs, directory: &Path) -> Result<JobFollowArgs, Failure> {
    let mut words: Vec<OsString> = vec![NAME.into(), "-o".into(), directory.into()];
    words.extend(["-i".into(), format!("{}ms", (args.sampling_freq * 1e3).round()).into()]);
    let labels = [
        ("launcher", &args.launcher),
        ("system", &args.system),
        ("partition", &args.partition),
        ("env", &args.env),
    ];
    for (key, value) in labels {
        if let Some(Some(value)) = value {
            words.extend(["--label".into(), format!("{key}={value}").into()]);
        }
    }
    if let Some(Some(name)) = &args.name {
        words.extend(["--name".into(), name.into()]);
    }
    let parsed = JobFollowArgs::augment_args(Command::new(NAME))
        .try_get_matches_from(words)
        .and_then(|matches| JobFollowArgs::from_arg_matches(&matches));
    parsed.map_err(|error| {
        let hint = "see perfmon --help";
        Failure::new("cannot record with these options", error.kind(), hint).code(USAGE)
    })
}

/// Writes the options of a node into `configs/`.
fn write_options(save: &Path, node: &str, args: &PerfmonArgs) -> Result<(), Failure> {
    let line = |name: &str, value: String| format!("{name}: {}\n", serde_json::json!(value));
    let text = |value: &Option<Option<String>>| value.clone().flatten().unwrap_or_default();
    let formats: Vec<&str> = formats(args).iter().map(|format| format.name()).collect();
    let options = [
        line("host_name", node.to_owned()),
        line("save_dir", save.display().to_string()),
        line("launcher", text(&args.launcher)),
        format!("sampling_freq: {}\n", args.sampling_freq),
        format!("gen_report: {}\n", args.gen_report),
        line("export", formats.join(" ")),
        line("system", text(&args.system)),
        line("partition", text(&args.partition)),
        line("env", text(&args.env)),
        line("name", text(&args.name)),
    ];
    let path = save.join("configs").join(job_directory::of_node(Path::new(""), node));
    let path = PathBuf::from(format!("{}_run_config.yml", path.display()));
    let written = weigh::destination::write(&path, options.concat().as_bytes(), true);
    written.map(drop).map_err(|error| failure::of_file("cannot write the options", &error))
}

impl FollowedNode {
    /// Whether this recorder writes the files of all nodes: the job's first node is this one.
    fn is_first(&self) -> bool {
        let listed = job_directory::read(&self.directory).ok().flatten();
        let first = listed.and_then(|file| file.nodes.first().map(|node| node.name.clone()));
        let recorded = || {
            let mut recorded = files::recordings(&self.directory).unwrap_or_default();
            recorded.sort();
            recorded.into_iter().next()
        };
        match first {
            Some(first) => first == self.node,
            None => recorded() == Some(job_directory::of_node(&self.directory, &self.node)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> PerfmonArgs {
        PerfmonArgs::try_parse_from([&["perfmon"], words].concat()).unwrap()
    }

    #[test]
    fn options_are_perfmons() {
        let args = parsed(&["-d", "out", "-p", "job", "-i", "5", "-c", "900", "-v", "-r", "-e"]);
        assert!(args.verbose && args.gen_report);
        assert_eq!((args.sampling_freq, formats(&args)), (5.0, vec![ExportFormat::Csv]));
        assert!(save_directory(&args).ends_with("out/job"));
        let args =
            parsed(&["-e", "hdf5", "csv", "--system", "x", "--name", "t", "--sampling_freq=2"]);
        assert_eq!(formats(&args), [ExportFormat::Hdf5, ExportFormat::Csv]);
        assert_eq!((args.sampling_freq, args.system), (2.0, Some(Some("x".to_owned()))));
        assert_eq!(parsed(&[]).sampling_freq, 30.0);
        assert!(PerfmonArgs::try_parse_from(["perfmon", "-i", "0"]).is_err());
        assert!(PerfmonArgs::try_parse_from(["perfmon", "-e", "xlsx"]).is_err());
    }

    #[test]
    fn directory_has_its_variables_expanded() {
        let home = variable("HOME").unwrap().to_string_lossy().into_owned();
        assert_eq!(expanded("~/a$HOME/b"), format!("{home}/a{home}/b"));
        assert_eq!(expanded("${HOME}x~"), format!("{home}x~"));
        assert_eq!(expanded("$NO_SUCH_OF_WEIGH/$/a"), "$NO_SUCH_OF_WEIGH/$/a");
    }
}
