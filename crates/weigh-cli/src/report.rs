//! `weigh report`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use weigh::destination;
use weigh::plot::{Chart, svg};
use weigh::record::Recording;
use weigh::report::{self, Document, PdfExtent};

use crate::args::{ReportArgs, ReportFiles, ReportFormat};
use crate::failure::{Failure, USAGE, of_file, of_recording};
use crate::progress::Bar;
use crate::{config, find, plot, print};

/// The default directory of reports, in the recording.
const DIRECTORY: &str = "report";

/// The name of a report, without its extension.
const NAME: &str = "report";

/// The size of a picture beside Markdown, in its own pixels.
const PICTURE: svg::SvgOptions = svg::SvgOptions { width: 900.0, height: 380.0, standalone: true };

/// Writes reports, and prints the names of the files.
pub(crate) fn report(args: ReportArgs) -> Result<u8, Failure> {
    let directory = find::one(args.run.run.as_deref())?;
    let units = config::units(args.sizes.units)?;
    // Weigh may replace its own files in the recording.
    let own = Place::own(directory.join(DIRECTORY), NAME.to_owned());
    let document = read(&directory, units)?;
    written(&document, &args.files, own)
}

/// Writes a document as it was requested, into its own place or the one that is named, and prints
/// the names of the files.
pub(crate) fn written(document: &Document, files: &ReportFiles, own: Place) -> Result<u8, Failure> {
    let place = match &files.output {
        None => own,
        Some(output) => {
            Place { name: own.name, ..Place::named(output.clone(), &files.formats, files.force)? }
        }
    };
    let extent = if files.full { PdfExtent::Full } else { PdfExtent::Short };
    let written = write(document, &files.formats, extent, &place)?;
    print::files(&written);
    if files.open {
        open(&written)?;
    }
    Ok(0)
}

/// Writes reports of a run that has just ended: returns the files, or what failed.
pub(crate) fn at_end(
    recording: &Path,
    kinds: &[ReportFormat],
    units: weigh::quantity::Units,
) -> Result<Vec<PathBuf>, String> {
    let place = Place::own(recording.join(DIRECTORY), NAME.to_owned());
    read(recording, units)
        .and_then(|document| write(&document, kinds, PdfExtent::Short, &place))
        .map_err(|failure| format!("{}: {}", failure.what, failure.cause))
}

/// The report of a recording.
pub(crate) fn read(directory: &Path, units: weigh::quantity::Units) -> Result<Document, Failure> {
    let recording = Recording::open(directory).map_err(|error| of_recording(&error))?;
    print::losses(&recording);
    let bar = Bar::of_steps();
    bar.step("reading the recording");
    report::read(&recording, units, |share| bar.show((share * 1000.0) as u64, 1000))
        .map_err(|error| of_recording(&error))
}

/// The short Markdown of a recording.
pub(crate) fn github(directory: &Path, units: weigh::quantity::Units) -> Result<String, Failure> {
    Ok(report::github(&read(directory, units)?))
}

/// The Markdown of a recording, without its pictures.
pub(crate) fn markdown(directory: &Path, units: weigh::quantity::Units) -> Result<String, Failure> {
    let mut document = read(directory, units)?;
    document.chapters.clear();
    Ok(report::markdown(&document, file_of))
}

/// Where reports are written to.
pub(crate) struct Place {
    directory: PathBuf,
    /// What they are called, without their extensions.
    name: String,
    /// The name of the only one.
    file: Option<PathBuf>,
    force: bool,
}

impl Place {
    /// A directory of weigh's own, in which it may replace its files.
    pub(crate) fn own(directory: PathBuf, name: String) -> Place {
        Place { directory, name, file: None, force: true }
    }

    /// A directory, or a file when it has the extension of the only report.
    fn named(output: PathBuf, kinds: &[ReportFormat], force: bool) -> Result<Place, Failure> {
        let end = output.extension().and_then(|end| end.to_str()).unwrap_or_default();
        let end = end.to_ascii_lowercase();
        let is_report = ReportFormat::ALL.iter().any(|kind| kind.name() == end.as_str());
        match kinds {
            [kind] if kind.name() == end.as_str() => {
                let directory = output.parent().map(Path::to_owned).unwrap_or_default();
                Ok(Place { directory, name: NAME.to_owned(), file: Some(output), force })
            }
            _ if is_report => {
                let cause = format!("{} is a file of one format", output.display());
                let hint = "weigh report -f html -o report.html, or name a directory: -o DIR";
                Err(Failure::new("cannot write these reports there", cause, hint).code(USAGE))
            }
            _ => Ok(Place { directory: output, name: NAME.to_owned(), file: None, force }),
        }
    }

    fn file(&self, kind: ReportFormat) -> PathBuf {
        let default = || self.directory.join(format!("{}.{}", self.name, kind.name()));
        self.file.clone().unwrap_or_else(default)
    }

    fn write(&self, path: &Path, contents: &[u8]) -> Result<PathBuf, Failure> {
        destination::write(path, contents, self.force)
            .map_err(|error| of_file("cannot write the report", &error))
    }
}

fn write(
    document: &Document,
    kinds: &[ReportFormat],
    extent: PdfExtent,
    place: &Place,
) -> Result<Vec<PathBuf>, Failure> {
    let bar = Bar::of_steps();
    let mut files = Vec::new();
    for (done, kind) in kinds.iter().enumerate() {
        if kinds[..done].contains(kind) {
            continue;
        }
        bar.step(&format!("writing {}", kind.name()));
        bar.show(done as u64, kinds.len() as u64);
        let failed = |error: String| {
            Failure::new("cannot write the report", error, "try another format: weigh report -f md")
        };
        let contents = match kind {
            ReportFormat::Html => {
                report::html(document).map_err(|error| failed(error.to_string()))?.into()
            }
            ReportFormat::Pdf => {
                report::pdf(document, extent).map_err(|error| failed(error.to_string()))?
            }
            ReportFormat::Md => {
                let beside = picture_directory(place);
                pictures(document, place, &beside, &bar)?;
                report::markdown(document, |chart| format!("{beside}/{}", file_of(chart))).into()
            }
        };
        files.push(place.write(&place.file(*kind), &contents)?);
    }
    Ok(files)
}

/// The directory of the pictures of a Markdown report, beside it: under its own name when it has
/// one, so that two reports do not share them.
fn picture_directory(place: &Place) -> String {
    let named = place.file.as_deref().and_then(Path::file_stem);
    match named {
        Some(name) => format!("{}-pictures", name.to_string_lossy()),
        None if place.name == NAME => "pictures".to_owned(),
        None => format!("{}-pictures", place.name),
    }
}

fn file_of(chart: &Chart) -> String {
    format!("{}.png", chart.name)
}

fn pictures(document: &Document, place: &Place, beside: &str, bar: &Bar) -> Result<(), Failure> {
    let charts: Vec<&Chart> =
        document.chapters.iter().flat_map(|chapter| &chapter.charts).collect();
    for (done, chart) in charts.iter().enumerate() {
        bar.step(&format!("drawing {}", chart.name));
        bar.show(done as u64, charts.len() as u64);
        let pixels = plot::pixels(&svg::draw(chart, PICTURE), 2.0)?;
        place.write(&place.directory.join(beside).join(file_of(chart)), &pixels)?;
    }
    Ok(())
}

/// Opens the first report with the program of the desktop.
#[expect(clippy::disallowed_methods, reason = "a timeout, not a measurement")]
fn open(files: &[PathBuf]) -> Result<(), Failure> {
    let Some(file) = files.first() else { return Ok(()) };
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let nothing = || Stdio::null();
    let started =
        Command::new(opener).arg(file).stdin(nothing()).stdout(nothing()).stderr(nothing()).spawn();
    let failed = |why: String| {
        let hint = format!("open it yourself: {}", file.display());
        Failure::new("cannot open the report", format!("{opener}: {why}"), hint)
    };
    let mut opener = started.map_err(|error| failed(error.to_string()))?;
    // Without a desktop the opener fails soon; a browser may stay open.
    let deadline = Instant::now() + Duration::from_secs(2);
    while Instant::now() < deadline {
        match opener.try_wait() {
            Ok(Some(end)) if end.success() => return Ok(()),
            Ok(Some(end)) => return Err(failed(end.to_string())),
            _ => std::thread::sleep(Duration::from_millis(20)),
        }
    }
    Ok(())
}
