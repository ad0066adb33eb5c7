//! What reports and pictures are made of a recording.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::Sizes;

/// Write a report of a recorded run: what it used, what it means, with charts
///
/// The page is one file that needs no network: it opens from disk and from a mail. Markdown
/// has its pictures beside it. The PDF is A4 with vector charts.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh report                              the newest run as a page, in the recording
  weigh report --open                       and open it in the browser
  weigh report RUN -f html,md,pdf -o out    all kinds into out/
  weigh report RUN -f pdf -o job-4711.pdf   one file
  weigh run --report html -- make -j8       at the end of a run
  weigh show --format github                a short block for a CI's comment
")]
pub(crate) struct ReportArgs {
    /// A recording's directory, or its name under weigh-runs [default: the newest]
    pub run: Option<PathBuf>,
    /// Kinds of reports
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        value_enum,
        default_value = "html"
    )]
    pub formats: Vec<Kind>,
    /// A directory, or a file for one kind [default: report in the recording]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Open the first report when it is written
    #[arg(long)]
    pub open: bool,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub sizes: Sizes,
}

/// A kind of report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A page with charts that can be zoomed
    Html,
    /// Markdown with pictures, for wikis and pull requests
    Md,
    /// A4 with vector charts
    Pdf,
}

impl Kind {
    /// Every kind.
    pub(crate) const ALL: [Kind; 3] = [Kind::Html, Kind::Md, Kind::Pdf];

    /// The end of a file's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Html => "html",
            Kind::Md => "md",
            Kind::Pdf => "pdf",
        }
    }
}

/// Draw the charts of a recorded run
///
/// Every chart is drawn over the time of the run, with its phases as bands and its marks as
/// lines. However many samples there are, every spike is in the picture.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh plot                                    every chart of the newest run, as SVG
  weigh plot RUN --metric memory -o memory.png  one chart into a file
  weigh plot --metric cpu,process.memory.rss -o pictures -f svg,png
  weigh plot --list                             the names of charts and metrics
  weigh plot RUN --as oasis -o resource_report  the pictures oasislmf would draw
")]
pub(crate) struct PlotArgs {
    /// A recording's directory, or its name under weigh-runs [default: the newest]
    pub run: Option<PathBuf>,
    /// Charts or metrics by name [default: every chart]
    #[arg(short, long = "metric", value_delimiter = ',', value_name = "LIST")]
    pub metrics: Vec<String>,
    /// A file that ends with .svg or .png, or a directory [default: plots in the recording]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Kinds of pictures, in a directory
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        value_enum,
        default_value = "svg"
    )]
    pub formats: Vec<Picture>,
    /// Draw what this program would have drawn, as PNG under its names
    #[arg(long = "as", value_enum, value_name = "PROGRAM", conflicts_with_all = ["metrics", "formats"])]
    pub drawer: Option<Drawer>,
    #[command(flatten)]
    pub sizes: Sizes,
    /// Print the names of charts and metrics
    #[arg(long, conflicts_with_all = ["run", "metrics", "output", "formats", "drawer", "force"])]
    pub list: bool,
    /// Replace files that are there
    #[arg(long)]
    pub force: bool,
}

/// A kind of picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Picture {
    /// Lines and letters, sharp at any size
    Svg,
    /// Pixels, for where SVG is not taken
    Png,
}

impl Picture {
    /// The end of a file's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Picture::Svg => "svg",
            Picture::Png => "png",
        }
    }
}

/// A program whose pictures weigh can draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawer {
    /// The six plots of the oasislmf ResourceMonitor
    Oasis,
    /// The plots of perfmon, per node and of all nodes
    Perfmon,
}
