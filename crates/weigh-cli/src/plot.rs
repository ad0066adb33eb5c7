//! `weigh plot`.

use std::path::{Path, PathBuf};

use weigh::compat::{oasis, perfmon};
use weigh::destination;
use weigh::plot::{self, Chart, ChartBuilder, svg};
use weigh::quantity::Units;
use weigh::record::Recording;

use crate::args::{PictureFormat, PlotArgs, PlotTool};
use crate::failure::{Failure, USAGE, of_file, of_recording};
use crate::{config, find, print};

/// The default directory of pictures, in the recording.
const DIRECTORY: &str = "plots";

/// The size of a picture in SVG units; a PNG has twice as many pixels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 380.0;

/// Draws charts, and prints the names of the files.
pub(crate) fn plot(args: PlotArgs) -> Result<u8, Failure> {
    if args.list {
        print::out(&plot::names().iter().map(|name| format!("{name}\n")).collect::<String>());
        return Ok(0);
    }
    let mut names: Vec<String> = Vec::new();
    for name in args.metrics.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    let one_file = args.output.as_deref().and_then(format_of);
    if one_file.is_some() && (names.len() != 1 || args.plot_tool.is_some()) {
        let cause = "a file has one picture, and --metric names it";
        let hint = "weigh plot --metric memory -o memory.svg, or name a directory: -o DIR";
        return Err(Failure::new("cannot draw several charts into a file", cause, hint).code(USAGE));
    }
    let directory = find::one(args.run.run.as_deref())?;
    let recording = Recording::open(&directory).map_err(|error| of_recording(&error))?;
    print::losses(&recording);
    let units = config::units(args.sizes.units)?;
    let mut drawing = Drawing { force: args.force, files: Vec::new() };
    let into = args.output.unwrap_or_else(|| directory.join(DIRECTORY));
    match (args.plot_tool, one_file) {
        (Some(plot_tool), _) => {
            let pictures = match plot_tool {
                PlotTool::Oasis => oasis::pictures(&recording),
                PlotTool::Perfmon => perfmon::pictures(std::slice::from_ref(&recording)),
            };
            for picture in pictures.map_err(|error| of_recording(&error))? {
                let pixels = picture.png().map_err(not_drawn)?;
                drawing.write(&into.join(&picture.file), &pixels)?;
            }
        }
        (None, Some(kind)) => {
            for chart in charts(&recording, &names, units)? {
                drawing.draw(&chart, kind, &into)?;
            }
        }
        (None, None) => {
            for chart in charts(&recording, &names, units)? {
                for kind in &args.formats {
                    let file = into.join(format!("{}.{}", chart.name, kind.name()));
                    drawing.draw(&chart, *kind, &file)?;
                }
            }
        }
    }
    if drawing.files.is_empty() {
        print::warning("the recording has nothing to draw");
    }
    print::files(&drawing.files);
    Ok(0)
}

/// Draws perfmon's plots of all nodes of a job.
pub(crate) fn perfmon(recordings: &[Recording], into: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut drawing = Drawing { force: true, files: Vec::new() };
    for picture in perfmon::pictures(recordings).map_err(|error| of_recording(&error))? {
        let pixels = picture.png().map_err(not_drawn)?;
        drawing.write(&into.join(&picture.file), &pixels)?;
    }
    Ok(drawing.files)
}

/// The charts of these names, or all.
fn charts(recording: &Recording, names: &[String], units: Units) -> Result<Vec<Chart>, Failure> {
    if names.is_empty() {
        let run_charts =
            ChartBuilder::of(recording, &[], units).map_err(|error| of_recording(&error))?;
        return Ok(run_charts.all().cloned().collect());
    }
    plot::charts(recording, names, units).map_err(|error| match error {
        plot::Error::Recording(error) => of_recording(&error),
        plot::Error::NoChart { .. } => {
            let hint = "list the names: weigh plot --list";
            Failure::new("cannot draw this chart", error, hint).code(USAGE)
        }
        plot::Error::Nothing { .. } => Failure::new(
            "cannot draw this chart",
            error,
            "draw all charts of the run: weigh plot RUN",
        ),
    })
}

/// The format of a picture by its extension.
fn format_of(path: &Path) -> Option<PictureFormat> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "svg" => Some(PictureFormat::Svg),
        "png" => Some(PictureFormat::Png),
        _ => None,
    }
}

/// A drawing as a PNG.
pub(crate) fn pixels(drawn: &str, scale: f32) -> Result<Vec<u8>, Failure> {
    plot::png(drawn, scale).map_err(not_drawn)
}

fn not_drawn(error: plot::PngError) -> Failure {
    Failure::new("cannot draw this chart", error, "draw it as SVG: -f svg")
}

struct Drawing {
    force: bool,
    files: Vec<PathBuf>,
}

impl Drawing {
    fn draw(&mut self, chart: &Chart, kind: PictureFormat, file: &Path) -> Result<(), Failure> {
        let drawn =
            svg::draw(chart, svg::SvgOptions { width: WIDTH, height: HEIGHT, standalone: true });
        match kind {
            PictureFormat::Svg => self.write(file, drawn.as_bytes()),
            // Twice the resolution, for high-density screens.
            PictureFormat::Png => self.write(file, &pixels(&drawn, 2.0)?),
        }
    }

    fn write(&mut self, file: &Path, contents: &[u8]) -> Result<(), Failure> {
        let written = destination::write(file, contents, self.force)
            .map_err(|error| of_file("cannot write the picture", &error));
        self.files.push(written?);
        Ok(())
    }
}
