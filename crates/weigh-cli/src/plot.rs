//! `weigh plot`.

use std::path::{Path, PathBuf};

use weigh::compat::{oasis, perfmon};
use weigh::destination;
use weigh::plot::{self, Chart, Gatherer, svg};
use weigh::quantity::Units;
use weigh::record::Recording;

use crate::args::{Drawer, Picture, PlotArgs};
use crate::failure::{Failure, USAGE, of_file, of_recording};
use crate::{config, print, show};

/// Where pictures go in a recording when nothing else is said.
const DIRECTORY: &str = "plots";

/// The size of a picture in its own pixels; a PNG has more of them.
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
    let one_file = args.output.as_deref().and_then(kind_of);
    if one_file.is_some() && (names.len() != 1 || args.drawer.is_some()) {
        let cause = "a file holds one picture, and --metric names one";
        let hint = "weigh plot --metric memory -o memory.svg, or name a directory: -o DIR";
        return Err(Failure::new("cannot draw several charts into a file", cause, hint).code(USAGE));
    }
    let directory = show::find(args.run)?;
    let recording = Recording::open(&directory).map_err(|error| of_recording(&error))?;
    print::losses(&recording);
    let units = config::units(args.sizes.units)?;
    let mut drawing = Drawing { force: args.force, files: Vec::new() };
    let into = args.output.unwrap_or_else(|| directory.join(DIRECTORY));
    match (args.drawer, one_file) {
        (Some(drawer), _) => {
            let pictures = match drawer {
                Drawer::Oasis => oasis::pictures(&recording),
                Drawer::Perfmon => perfmon::pictures(&recording),
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
        print::warning("there was nothing to draw");
    }
    print::files(&drawing.files);
    Ok(0)
}

/// The charts of these names, or all.
fn charts(recording: &Recording, names: &[String], units: Units) -> Result<Vec<Chart>, Failure> {
    if names.is_empty() {
        let gallery = Gatherer::of(recording, &[], units).map_err(|error| of_recording(&error))?;
        return Ok(gallery.all().cloned().collect());
    }
    plot::charts(recording, names, units).map_err(|error| match error {
        plot::Error::Recording(error) => of_recording(&error),
        plot::Error::NoChart { .. } => {
            let hint = "see their names: weigh plot --list";
            Failure::new("cannot draw this chart", error, hint).code(USAGE)
        }
        plot::Error::Nothing { .. } => {
            Failure::new("cannot draw this chart", error, "see what there is: weigh plot RUN")
        }
    })
}

/// The kind of picture that a file's name asks for.
fn kind_of(path: &Path) -> Option<Picture> {
    match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
        "svg" => Some(Picture::Svg),
        "png" => Some(Picture::Png),
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
    fn draw(&mut self, chart: &Chart, kind: Picture, file: &Path) -> Result<(), Failure> {
        let drawn =
            svg::draw(chart, svg::SvgOptions { width: WIDTH, height: HEIGHT, standalone: true });
        match kind {
            Picture::Svg => self.write(file, drawn.as_bytes()),
            // Twice as many pixels look sharp on every screen.
            Picture::Png => self.write(file, &pixels(&drawn, 2.0)?),
        }
    }

    fn write(&mut self, file: &Path, contents: &[u8]) -> Result<(), Failure> {
        let written = destination::write(file, contents, self.force)
            .map_err(|error| of_file("cannot write the picture", &error));
        self.files.push(written?);
        Ok(())
    }
}
