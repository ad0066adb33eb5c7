//! The six pictures of the oasislmf ResourceMonitor.

use crate::catalog::Row;
use crate::catalog::metrics::ProcessMemory;
use crate::compat::picture::{Picture, lines, named};
use crate::plot::ChartBuilder;
use crate::plot::chart::{Chart, ChartLimit, ChartSeries, MAX_SERIES};
use crate::record::{Error, Recording};

/// The six pictures of the oasislmf ResourceMonitor.
pub fn pictures(recording: &Recording) -> Result<Vec<Picture>, Error> {
    pictures_of(recording, |_| true)
}

/// The same, of some tools.
pub(super) fn pictures_of(
    recording: &Recording,
    has: impl Fn(&str) -> bool,
) -> Result<Vec<Picture>, Error> {
    let sizes: Vec<_> =
        [ProcessMemory::metric(|row| &mut row.uss), ProcessMemory::metric(|row| &mut row.rss)]
            .into_iter()
            .flatten()
            .collect();
    let run_charts = ChartBuilder::of_programs(recording, &sizes)?;
    let get = |name: &str, title: &str| {
        let mut chart = named(&run_charts, name, title);
        chart.series.retain(|series| has(&series.name));
        chart
    };
    let [uss, rss] = [0, 1].map(|place| sizes.get(place).map(|one| one.name()).unwrap_or_default());
    let (uss, rss) = (uss.as_str(), rss.as_str());
    let mut total = get(uss, "Total USS of all tools");
    total.peak = total.highest();
    let memory = recording.manifest().host.memory_bytes.map(|bytes| bytes as f64);
    total.limits.extend(memory.map(|value| ChartLimit { name: "system memory".to_owned(), value }));
    let pictures = [
        ("aggregate_uss.png", 5.0, lines(get(uss, "USS of each tool"))),
        ("rss_vs_uss.png", 5.0, both(get(uss, "USS and RSS of each tool"), get(rss, "RSS"))),
        ("total_footprint.png", 5.0, total),
        ("aggregate_cpu.png", 5.0, lines(get("cpu", "CPU of each tool"))),
        ("cpu_time.png", 5.0, lines(get("cpu-time", "CPU time of each tool"))),
        ("instance_count.png", 4.0, lines(get("processes", "Instances of each tool"))),
    ];
    // 12 inches wide at 150 dots per inch, as oasislmf draws them.
    let picture = |(file, inches, chart): (&str, f64, Chart)| Picture {
        file: file.to_owned(),
        chart,
        size: (1800.0, inches * 150.0),
    };
    Ok(pictures.map(picture).into())
}

/// Lines of the largest tools of two charts in one.
fn both(mut uss: Chart, rss: Chart) -> Chart {
    // The two charts have their own times: values of the second are carried forward.
    let value_at = |series: &ChartSeries, at: f64| {
        let place = rss.times.partition_point(|time| *time <= at);
        place.checked_sub(1).map_or(f64::NAN, |place| series.values[place])
    };
    let other = |series: &ChartSeries| ChartSeries {
        name: format!("{} RSS", series.name),
        colour: series.colour % (MAX_SERIES / 2) + MAX_SERIES / 2,
        values: uss.times.iter().map(|at| value_at(series, *at)).collect(),
    };
    let others: Vec<ChartSeries> = rss.series.iter().take(MAX_SERIES / 2).map(other).collect();
    uss.series.truncate(MAX_SERIES / 2);
    for series in &mut uss.series {
        series.name.push_str(" USS");
        series.colour %= MAX_SERIES / 2;
    }
    uss.series.extend(others);
    lines(uss)
}
