//! The six pictures of the oasislmf ResourceMonitor.

use crate::compat::picture::{Picture, lines, named};
use crate::plot::chart::{Chart, Limit, MOST_SERIES, Series};
use crate::plot::{Gatherer, metric};
use crate::record::{Error, Recording};

/// The six pictures of the oasislmf ResourceMonitor.
pub fn pictures(recording: &Recording) -> Result<Vec<Picture>, Error> {
    const USS: &str = "process.memory.uss";
    const RSS: &str = "process.memory.rss";
    let sizes: Vec<_> = [USS, RSS].into_iter().filter_map(metric).collect();
    let gallery = Gatherer::of_programs(recording, &sizes)?;
    let get = |name: &str, title: &str| named(&gallery, name, title);
    let mut total = get(USS, "Total USS of all tools");
    total.peak = total.highest();
    let memory = recording.manifest().host.memory_bytes.map(|bytes| bytes as f64);
    total.limits.extend(memory.map(|value| Limit { name: "system memory".to_owned(), value }));
    let pictures = [
        ("aggregate_uss.png", 5.0, lines(get(USS, "USS of each tool"))),
        ("rss_vs_uss.png", 5.0, both(get(USS, "USS and RSS of each tool"), get(RSS, "RSS"))),
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
    let value_at = |series: &Series, at: f64| {
        let place = rss.times.partition_point(|time| *time <= at);
        place.checked_sub(1).map_or(f64::NAN, |place| series.values[place])
    };
    let other = |series: &Series| Series {
        name: format!("{} RSS", series.name),
        colour: series.colour % (MOST_SERIES / 2) + MOST_SERIES / 2,
        values: uss.times.iter().map(|at| value_at(series, *at)).collect(),
    };
    let others: Vec<Series> = rss.series.iter().take(MOST_SERIES / 2).map(other).collect();
    uss.series.truncate(MOST_SERIES / 2);
    for series in &mut uss.series {
        series.name.push_str(" USS");
        series.colour %= MOST_SERIES / 2;
    }
    uss.series.extend(others);
    lines(uss)
}
