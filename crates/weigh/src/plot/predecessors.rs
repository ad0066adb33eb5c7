//! The pictures that oasislmf's ResourceMonitor and perfmon would have drawn, under their
//! names.
//!
//! What a recording has nothing of is drawn, too, as a frame that says so: a script that
//! collects the pictures finds all of them, and nobody takes a missing one for zero.

use super::chart::{Chart, Form, Limit, MOST_SERIES, Scale, Series, Timeline};
use super::choose::metric;
#[cfg(feature = "png")]
use super::svg;
use super::{Gallery, Gatherer, totals};
use crate::catalog::Unit;
use crate::quantity::Units;
use crate::record::{Error, Recording};

/// A picture under the name of another program's.
#[derive(Debug, Clone, PartialEq)]
pub struct Picture {
    /// The name of its file.
    pub file: String,
    /// What it shows.
    pub chart: Chart,
    /// Its width and height in pixels.
    pub size: (f64, f64),
}

/// The width at which pictures are set; their letters are as large as in other pictures.
#[cfg(feature = "png")]
const SET_WIDTH: f64 = 900.0;

#[cfg(feature = "png")]
impl Picture {
    /// Draws it as a PNG of its size.
    pub fn png(&self) -> Result<Vec<u8>, super::PngError> {
        let (width, height) = self.size;
        let height = SET_WIDTH * height / width;
        let drawn = svg::draw(&self.chart, svg::Look { width: SET_WIDTH, height, alone: true });
        super::png(&drawn, (width / SET_WIDTH) as f32)
    }
}

/// The six pictures of the oasislmf ResourceMonitor.
pub fn oasis(recording: &Recording) -> Result<Vec<Picture>, Error> {
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
    // 12 inches wide at 150 dots each, as theirs.
    let picture = |(file, inches, chart): (&str, f64, Chart)| Picture {
        file: file.to_owned(),
        chart,
        size: (1800.0, inches * 150.0),
    };
    Ok(pictures.map(picture).into())
}

/// perfmon's plots: the name, how nodes are combined, and where ours comes from.
const PERFMON: [(&str, &str, Origin); 15] = [
    ("CPU Load", "Average", Origin::Run("cpu")),
    ("Memory", "Average", Origin::Run("memory")),
    ("Memory Bandwidth (Read)", "Average", Origin::Nothing),
    ("Output Traffic", "Total", Origin::Machine),
    ("Input Traffic", "Total", Origin::Machine),
    ("Packets Output", "Total", Origin::Machine),
    ("Packets Input", "Total", Origin::Machine),
    ("Interconnect Output Traffic", "Total", Origin::Machine),
    ("Interconnect Input Traffic", "Total", Origin::Machine),
    ("Interconnect Packets Output", "Total", Origin::Machine),
    ("Interconnect Packets Input", "Total", Origin::Machine),
    ("RAPL Package Power", "Total", Origin::Machine),
    ("RAPL DRAM Power", "Total", Origin::Machine),
    ("RAPL Core Power", "Total", Origin::Machine),
    ("RAPL Uncore Power", "Total", Origin::Machine),
];

/// What a plot of perfmon is made from.
#[derive(Clone, Copy)]
enum Origin {
    /// A chart of the run.
    Run(&'static str),
    /// What all devices of the machine did, under the same name.
    Machine,
    /// Nothing that weigh measures.
    Nothing,
}

/// The plots of perfmon: of each node, and of all nodes together.
pub fn perfmon(recording: &Recording) -> Result<Vec<Picture>, Error> {
    let gallery = Gatherer::of(recording, &[], Units::Binary)?;
    let machine = Gallery { node: totals::of(recording)?, ..Gallery::default() };
    let host = &recording.manifest().host.name;
    // 18 cm wide at 200 dots an inch, as theirs.
    let size = (1417.0, 709.0);
    let mut pictures = Vec::new();
    for (name, combined, from) in PERFMON {
        let chart = match from {
            Origin::Run(chart) => named(&gallery, chart, name),
            Origin::Machine => named(&machine, name, name),
            Origin::Nothing => nothing(name, "weigh does not measure this yet."),
        };
        for (file, title, series) in [
            (format!("{name}_per_node.png"), format!("{name} per node"), host.clone()),
            (
                format!("{combined}_{name}_all_nodes.png"),
                format!("{combined} {name} of all nodes"),
                combined.to_owned(),
            ),
        ] {
            let chart = Chart { title, ..summed(chart.clone(), &series) };
            pictures.push(Picture { file, chart, size });
        }
    }
    Ok(pictures)
}

/// A chart of the run under another title.
fn named(gallery: &Gallery, name: &str, title: &str) -> Chart {
    let found = gallery.all().find(|chart| chart.name == name).cloned();
    let chart = found.unwrap_or_else(|| nothing(title, "The recording holds nothing of it."));
    Chart { title: title.to_owned(), peak: None, limits: Vec::new(), ..chart }
}

fn nothing(title: &str, note: &str) -> Chart {
    Chart {
        name: String::new(),
        title: title.to_owned(),
        note: note.to_owned(),
        scale: Scale::level(Unit::One),
        form: Form::Lines,
        times: Vec::new(),
        series: Vec::new(),
        limits: Vec::new(),
        peak: None,
        timeline: Timeline::default(),
    }
}

/// A line for each tool instead of areas on top of each other.
fn lines(chart: Chart) -> Chart {
    let form = if chart.form.looks_back() { Form::Rates } else { Form::Lines };
    Chart { form, ..chart }
}

/// Lines of the largest tools of two charts in one.
fn both(mut uss: Chart, rss: Chart) -> Chart {
    // The two have their own times: values of the second are those of its last look.
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

/// All series of a chart as one.
fn summed(chart: Chart, name: &str) -> Chart {
    let sum = |place: usize| chart.series.iter().map(|series| series.values[place]).sum();
    let values: Vec<f64> = (0..chart.times.len()).map(sum).collect();
    let series = vec![Series { name: name.to_owned(), colour: 0, values }];
    lines(Chart { series, ..chart })
}
