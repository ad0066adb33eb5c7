//! `weigh runs`.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::Duration;

use weigh::listing::{self, ListedRun, RunFilter, UnreadableRun};
use weigh::program;
use weigh::quantity::{self, Units};
use weigh::record;

use crate::args::RunsArgs;
use crate::failure::{Failure, USAGE};
use crate::{config, print, show};

/// Lists recordings, or removes those that are old.
pub(crate) fn runs(args: RunsArgs) -> Result<u8, Failure> {
    let now = program::now();
    let filter = RunFilter {
        names: args.names.clone(),
        labels: args.labels.clone(),
        since: args.since.map(|since| since.moment(now)),
        failed: args.failed,
    };
    let units = config::units(args.sizes.units)?;
    let listed = listing::list(&args.directory).map_err(|error| {
        let hint = "record one: weigh run -- CMD, or list another place: weigh runs DIR";
        Failure::new("no recordings found", error, hint)
    })?;
    // What cannot be read matches no filter.
    let is_taken = |one: &Result<ListedRun, UnreadableRun>| match one {
        Ok(run) => filter.takes(run),
        Err(_) => filter.is_empty() && !args.prune,
    };
    let taken: Vec<_> = listed.into_iter().filter(is_taken).collect();
    if args.prune {
        return prune(&args, taken.into_iter().flatten().collect(), now, units);
    }
    print::out(&match args.json {
        true => {
            let values = taken.iter().map(|one| match one {
                Ok(run) => serde_json::json!(run),
                Err(unreadable) => serde_json::json!(unreadable),
            });
            show::json(&values.collect::<Vec<_>>())?
        }
        false => table(&taken, units),
    });
    Ok(0)
}

fn table(runs: &[Result<ListedRun, UnreadableRun>], units: Units) -> String {
    let header = ["run", "name", "end", "duration", "CPU time", "memory"];
    let row = |one: &Result<ListedRun, UnreadableRun>| match one {
        Ok(run) => row(run, units),
        Err(unreadable) => vec![name_of(&unreadable.directory), "cannot be read".to_owned()],
    };
    let mut rows: Vec<Vec<String>> = runs.iter().map(row).collect();
    let columns = match print::out_is_terminal() {
        true => fitting(&header, &rows, print::out_columns()),
        false => header.len(),
    };
    rows.iter_mut().for_each(|row| row.truncate(columns));
    print::table(&header[..columns], rows)
}

/// How many columns fit a line, at least those that name a run and its end.
fn fitting(header: &[&str], rows: &[Vec<String>], line: usize) -> usize {
    const FEWEST: usize = 3;
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
        cells.chain([header[column].chars().count()]).max().unwrap_or(0)
    };
    let fits = |columns: usize| (0..columns).map(|column| width(column) + 2).sum::<usize>() <= line;
    (FEWEST..=header.len()).rev().find(|columns| fits(*columns)).unwrap_or(FEWEST)
}

fn name_of(directory: &Path) -> String {
    weigh::text::printable(&directory.file_name().unwrap_or_default().to_string_lossy())
}

fn row(one: &ListedRun, units: Units) -> Vec<String> {
    let ListedRun { run, is_running, .. } = one;
    let mut end = match is_running {
        true => "running".to_owned(),
        false => run.outcome().words(),
    };
    if run.ended.is_some() && !run.complete {
        end.push_str(", rows lost");
    }
    let known = |value: Option<f64>, show: &dyn Fn(f64) -> String| {
        value.map_or_else(|| "-".to_owned(), show)
    };
    vec![
        name_of(&one.directory),
        weigh::text::printable(&run.name),
        end,
        quantity::seconds(run.duration_seconds),
        known(one.cpu_time_seconds, &quantity::seconds),
        known(one.memory_peak_bytes, &|bytes| quantity::bytes(bytes, units)),
    ]
}

/// Removes the recordings of these runs, newest first, that are not protected.
fn prune(
    args: &RunsArgs,
    runs: Vec<ListedRun>,
    now: Duration,
    units: Units,
) -> Result<u8, Failure> {
    let oldest_kept = args.older_than.map(|age| listing::Since::Ago(age).moment(now));
    let is_old = |run: &ListedRun| oldest_kept.is_none_or(|kept| run.run.started < kept);
    let old = runs.into_iter().skip(args.keep.unwrap_or(0)).filter(is_old);
    let mut removable = Vec::new();
    for run in old {
        match listing::removable_bytes(&run.directory, now) {
            Ok(bytes) => removable.push((run.directory, bytes)),
            Err(why) => print::warning(&format!("{} is kept: {why}", run.directory.display())),
        }
    }
    if !removable.is_empty() && !args.yes && !is_confirmed(&removable, units)? {
        print::err("weigh: nothing is removed\n");
        return Ok(0);
    }
    let mut removed = Vec::new();
    for (directory, bytes) in removable {
        listing::remove(&directory).map_err(|error| not_removed(&error))?;
        if !args.json {
            let size = quantity::bytes(bytes as f64, units);
            print::out(&format!("removed {} ({size})\n", printable(&directory)));
        }
        removed.push(directory);
    }
    if args.json {
        print::out(&show::json(&removed)?);
    } else if removed.is_empty() {
        print::out("nothing to remove\n");
    }
    Ok(0)
}

fn printable(path: &Path) -> String {
    weigh::text::printable(&path.display().to_string())
}

/// Asks at the terminal whether these recordings are to be removed.
fn is_confirmed(removable: &[(PathBuf, u64)], units: Units) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() || !print::err_is_terminal() {
        let cause = "there is no terminal to ask at";
        let hint = "remove without a question: weigh runs --prune … --yes";
        return Err(Failure::new("nothing is removed", cause, hint).code(USAGE));
    }
    for (directory, _) in removable {
        print::err(&format!("  {}\n", printable(directory)));
    }
    let bytes: u64 = removable.iter().map(|(_, bytes)| bytes).sum();
    let size = quantity::bytes(bytes as f64, units);
    print::err(&format!("remove these {} recordings, {size}? [y/N] ", removable.len()));
    let mut answer = String::new();
    let read = stdin.lock().read_line(&mut answer);
    Ok(read.is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
}

fn not_removed(error: &record::Error) -> Failure {
    Failure::new("cannot remove a recording", error, "check its permissions: ls -l DIR")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_terminal_has_the_columns_that_name_a_run() {
        let header = ["run", "name", "end", "duration"];
        let rows =
            vec![vec!["a".repeat(20), "b".repeat(4), "exit 0".to_owned(), "1.00 s".to_owned()]];
        // 22 + 6 + 8 + 10 characters.
        let fits = |line| fitting(&header, &rows, line);
        assert_eq!([fits(80), fits(46), fits(45), fits(10)], [4, 4, 3, 3]);
    }
}
