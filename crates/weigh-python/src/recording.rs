//! A recorded run: summary, tables, reports, charts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weigh::plot::{self, ChartBuilder, svg};
use weigh::quantity::Units;
use weigh::record::files;
use weigh::report::{self, PdfExtent};
use weigh::{export, listing, record, summary};

use crate::error::Raised;
use crate::table::ArrowStream;

/// The size of a chart in pixels.
const CHART: svg::SvgOptions = svg::SvgOptions { width: 900.0, height: 380.0, standalone: true };

/// The chart of a run when none is named.
const DEFAULT_CHART: &str = "memory";

/// A recorded run, also one that is still being recorded.
#[pyclass(frozen, module = "weigh._native")]
pub(crate) struct Recording {
    recording: Arc<record::Recording>,
}

#[pymethods]
impl Recording {
    /// Opens a recording: a directory, an id, a name, `last`, `last~1`; names are looked up in
    /// `among`.
    #[staticmethod]
    #[pyo3(signature = (path, among=None))]
    fn open(py: Python<'_>, path: PathBuf, among: Option<PathBuf>) -> PyResult<Recording> {
        let opened = py.detach(|| -> Result<_, Raised> {
            let among = among.unwrap_or_else(|| PathBuf::from(files::DEFAULT_DIRECTORY));
            let directory = listing::find(Some(&path), &among)?;
            Ok(record::Recording::open(&directory)?)
        });
        Ok(Recording { recording: Arc::new(opened?) })
    }

    #[getter]
    fn directory(&self) -> &Path {
        self.recording.directory()
    }

    /// The summary, as JSON.
    fn summary(&self, py: Python<'_>) -> PyResult<String> {
        let made = py.detach(|| -> Result<_, Raised> {
            Ok(serde_json::to_string(&summary::of(&self.recording)?)?)
        });
        Ok(made?)
    }

    /// What of it is missing, in sentences.
    fn losses(&self, py: Python<'_>) -> Vec<String> {
        py.detach(|| self.recording.losses().sentences().map(str::to_owned).collect())
    }

    /// The names of its tables.
    fn tables(&self, py: Python<'_>) -> PyResult<Vec<&'static str>> {
        Ok(py.detach(|| export::tables_of(&self.recording)).map_err(Raised::from)?)
    }

    /// One of its tables.
    fn table(&self, py: Python<'_>, name: String) -> PyResult<ArrowStream> {
        // Whether there is one is said now, and not when it is read.
        py.detach(|| export::table(&self.recording, &name)).map_err(Raised::from)?;
        Ok(ArrowStream::new(self.recording.clone(), name))
    }

    /// A report: `html`, `md` or `pdf`.
    fn report<'py>(&self, py: Python<'py>, format: &str) -> PyResult<Bound<'py, PyBytes>> {
        let made = py.detach(|| self.document(format))?;
        Ok(PyBytes::new(py, &made))
    }

    /// A chart as SVG: the name of a chart or of a metric.
    #[pyo3(signature = (metric=None))]
    fn plot(&self, py: Python<'_>, metric: Option<String>) -> PyResult<String> {
        Ok(py.detach(|| self.drawn(metric))?)
    }
}

impl Recording {
    fn document(&self, format: &str) -> Result<Vec<u8>, Raised> {
        let read = || report::read(&self.recording, Units::Binary, |_| {});
        Ok(match format {
            "html" => report::html(&read()?)?.into_bytes(),
            "pdf" => report::pdf(&read()?, PdfExtent::Short)?,
            "md" => {
                // Its pictures would be files beside it.
                let mut document = read()?;
                document.chapters.clear();
                report::markdown(&document, |chart| chart.name.clone()).into_bytes()
            }
            _ => {
                let why = format!("there is no report \"{format}\"; there are html, md, pdf");
                return Err(Raised::Value(why));
            }
        })
    }

    fn drawn(&self, metric: Option<String>) -> Result<String, Raised> {
        let chart = match metric {
            Some(name) => plot::charts(&self.recording, &[name], Units::Binary)?.pop(),
            None => {
                let run_charts = ChartBuilder::of(&self.recording, &[], Units::Binary)?;
                let named = run_charts.all().find(|chart| chart.name == DEFAULT_CHART);
                named.or_else(|| run_charts.all().next()).cloned()
            }
        };
        let nothing = || Raised::Other("the recording has nothing to draw".to_owned());
        Ok(svg::draw(&chart.ok_or_else(nothing)?, CHART))
    }
}
