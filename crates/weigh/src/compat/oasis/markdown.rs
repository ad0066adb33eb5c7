//! `resource_report.md`, line by line as oasislmf writes it.
//!
//! Totals of a tool are the summary's, which also has processes that no sample found; samples,
//! means and the busiest row are those of the rows of the table.

use std::fmt;
use std::path::Path;

use super::CSV;
use super::row_statistics::{RowStatistics, ToolRowStatistics};
use crate::quantity;
use crate::summary::{Summary, Tool};
use crate::text::{markdown, printable};

/// The report of a run.
pub(super) struct ResourceReport<'a> {
    /// What the run used.
    pub summary: &'a Summary,
    /// Statistics over the rows.
    pub rows: &'a RowStatistics,
    /// Where the table is.
    pub table: &'a Path,
    /// The most private memory of all tools together, in bytes.
    pub peak: Option<f64>,
}

const MEBIBYTE: f64 = 1024.0 * 1024.0;

impl fmt::Display for ResourceReport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header(f)?;
        self.statistics(f)?;
        for (file, heading, caption) in super::shown_pictures() {
            write!(f, "## {heading}\n\n![{caption}]({file})\n\n")?;
        }
        // Without a last newline, as oasislmf writes it.
        write!(f, "---\n*Source: `{}`*", printable(&self.table.display().to_string()))
    }
}

impl ResourceReport<'_> {
    fn header(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary { run, host, .. } = self.summary;
        // oasislmf writes the report when the run ends: this is that time.
        let seconds = jiff::SignedDuration::try_from_secs_f64(run.measured());
        let ended = seconds.ok().and_then(|seconds| run.started.checked_add(seconds).ok());
        let ended = ended.unwrap_or(run.started).to_zoned(jiff::tz::TimeZone::system());
        writeln!(f, "# Resource Monitor Report\n")?;
        writeln!(f, "**Generated:** {}", ended.strftime("%Y-%m-%d %H:%M:%S"))?;
        writeln!(f, "**Total samples:** {}", quantity::count(self.rows.count as f64))?;
        writeln!(f, "**Source:** `{CSV}`")?;
        let whole = |bytes: f64| quantity::count((bytes / MEBIBYTE).round_ties_even());
        let memory = host.memory_bytes.map(|bytes| bytes as f64);
        if let Some(memory) = memory {
            writeln!(f, "**System memory:** {} MB", whole(memory))?;
        }
        if let Some(peak) = self.peak {
            write!(f, "**Peak total USS:** {} MB", whole(peak))?;
            if let Some(memory) = memory {
                write!(f, " ({:.1}% of system memory)", 100.0 * peak / memory)?;
            }
            writeln!(f)?;
        }
        writeln!(f, "\n> **USS** (Unique Set Size) = private memory per process.  ")?;
        writeln!(
            f,
            "> **RSS** includes shared/mmap pages counted in every process — USS avoids this \
             double-counting.\n"
        )
    }

    fn statistics(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = &self.summary.tools;
        let has_pss = tools.iter().any(|tool| tool.memory_pss_peak_bytes.is_some());
        let (pss, line) = match has_pss {
            true => (" Aggr Peak PSS (MB) |", "--------------------:|"),
            false => ("", ""),
        };
        writeln!(f, "## Summary Statistics\n")?;
        writeln!(
            f,
            "| Tool | Instances | Samples | **Peak USS/inst (MB)** | **Aggr Peak USS (MB)** \
             | Aggr Peak RSS (MB) |{pss} Peak CPU% | CPU User (s) | CPU Sys (s) \
             | **CPU Total (s)** | Avg USS (MB) | Avg CPU% | Duration (s) |"
        )?;
        writeln!(
            f,
            "|------|-----------|---------|----------------------:|-----------------------:\
             |--------------------:|{line}----------:|-------------:|------------:\
             |------------------:|-------------:|---------:|-------------:|"
        )?;
        let mut sorted: Vec<&Tool> = tools.iter().collect();
        sorted.sort_by(|a, b| (a.is_others(), &a.name).cmp(&(b.is_others(), &b.name)));
        let listed: Vec<&str> =
            sorted.iter().filter(|tool| !tool.is_others()).map(|tool| tool.name.as_str()).collect();
        for tool in sorted {
            let rows = match tool.is_others() {
                true => self.rows.of_others(&listed),
                false => self.rows.of(&tool.name),
            };
            writeln!(f, "{}", line_of(tool, &rows, has_pss))?;
        }
        writeln!(f)
    }
}

fn line_of(tool: &Tool, rows: &ToolRowStatistics, has_pss: bool) -> String {
    let megabytes = |bytes: Option<u64>| size(bytes.map(|bytes| bytes as f64));
    let percent = |cores: Option<f64>| number(cores.map(|cores| 100.0 * cores), "%");
    let seconds = |seconds: Option<f64>| number(seconds, "");
    let bold = |text: String| format!("**{text}**");
    let mut cells = vec![
        markdown::plain(&tool.name),
        tool.instances.to_string(),
        rows.count.to_string(),
        bold(megabytes(tool.instance_uss_peak_bytes)),
        bold(megabytes(tool.memory_uss_peak_bytes)),
        megabytes(tool.memory_rss_peak_bytes),
    ];
    cells.extend(has_pss.then(|| megabytes(tool.memory_pss_peak_bytes)));
    cells.extend([
        percent(rows.cores_peak),
        seconds(tool.cpu_user_seconds),
        seconds(tool.cpu_system_seconds),
        bold(seconds(tool.cpu_time_seconds)),
        size(rows.uss_mean()),
        percent(rows.cores_mean()),
        seconds(tool.duration_seconds),
    ]);
    format!("| {} |", cells.join(" | "))
}

/// One decimal; a dash for what is not known.
fn number(value: Option<f64>, unit: &str) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.1}{unit}"))
}

fn size(bytes: Option<f64>) -> String {
    number(bytes.map(|bytes| bytes / MEBIBYTE), "")
}
