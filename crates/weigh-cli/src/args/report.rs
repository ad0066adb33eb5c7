//! Options of `weigh report` and `weigh plot`.

use std::path::PathBuf;

use clap::{Args as ClapArgs, ValueEnum};

use super::{RunName, Sizes};

/// Write a report of a recorded run: figures, findings and charts
///
/// The HTML page is one file that needs no network: it opens from disk and from a mail. Markdown
/// has its pictures beside it. The PDF is A4 with vector charts, and short: what matters on at most
/// four pages.
#[derive(Debug, ClapArgs)]
#[command(after_help = "\
Examples:
  weigh report                              the newest run as a page, in the recording
  weigh report --open                       and open it in the browser
  weigh report RUN -f html,md,pdf -o out    all formats into out/
  weigh report RUN -f pdf -o job-4711.pdf   one file
  weigh report RUN -f pdf --full            every figure, chart and table on paper
  weigh run --report html -- make -j8       at the end of a run
  weigh show --format github                short Markdown for a CI comment
")]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub run: RunName,
    #[command(flatten)]
    pub files: ReportFiles,
    #[command(flatten)]
    pub sizes: Sizes,
}

/// Which reports are written, and where.
#[derive(Debug, ClapArgs)]
pub(crate) struct ReportFiles {
    /// Report formats
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        value_enum,
        default_value = "html"
    )]
    pub formats: Vec<ReportFormat>,
    /// A directory, or a file for one format [default: in the recording]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Put everything into the PDF, not only what matters; pages and Markdown always have it all
    #[arg(long)]
    pub full: bool,
    /// Open the first report when it is written
    #[arg(long)]
    pub open: bool,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

/// A report format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    /// A page with charts that can be zoomed
    Html,
    /// Markdown with pictures, for wikis and pull requests
    Md,
    /// A4 with vector charts, at most four pages
    Pdf,
}

impl ReportFormat {
    /// All formats.
    pub(crate) const ALL: [ReportFormat; 3] =
        [ReportFormat::Html, ReportFormat::Md, ReportFormat::Pdf];

    /// The extension of its file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            ReportFormat::Html => "html",
            ReportFormat::Md => "md",
            ReportFormat::Pdf => "pdf",
        }
    }
}

/// Draw the charts of a recorded run
///
/// Every chart is over the time of the run, with phases as bands and marks as lines. No spike is
/// lost, however many samples there are.
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
    #[command(flatten)]
    pub run: RunName,
    /// Charts or metrics by name [default: every chart]
    #[arg(short, long = "metric", value_delimiter = ',', value_name = "LIST")]
    pub metrics: Vec<String>,
    /// A file that ends with .svg or .png, or a directory [default: plots in the recording]
    #[arg(short, long, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// Picture formats, for a directory
    #[arg(
        short,
        long,
        value_delimiter = ',',
        value_name = "LIST",
        value_enum,
        default_value = "svg"
    )]
    pub formats: Vec<PictureFormat>,
    /// Draw the pictures of this tool, as PNG under its file names
    #[arg(long = "as", value_enum, value_name = "PROGRAM", conflicts_with_all = ["metrics", "formats"])]
    pub plot_tool: Option<PlotTool>,
    #[command(flatten)]
    pub sizes: Sizes,
    /// Print the names of charts and metrics
    #[arg(long, conflicts_with_all = ["run", "metrics", "output", "formats", "plot_tool", "force"])]
    pub list: bool,
    /// Replace existing files
    #[arg(long)]
    pub force: bool,
}

/// A picture format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PictureFormat {
    /// Vector graphics, sharp at any size
    Svg,
    /// Pixels, where SVG is not accepted
    Png,
}

impl PictureFormat {
    /// The extension of its file.
    pub(crate) fn name(self) -> &'static str {
        match self {
            PictureFormat::Svg => "svg",
            PictureFormat::Png => "png",
        }
    }
}

/// A tool whose pictures weigh can draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PlotTool {
    /// The six plots of the oasislmf ResourceMonitor
    Oasis,
    /// The plots of perfmon, per node and of all nodes
    Perfmon,
}
