//! The plots of perfmon: of each node, and of all nodes together.

use super::totals;
use crate::compat::picture::{Picture, lines, named, nothing};
use crate::plot::chart::{Chart, ChartSeries, MAX_SERIES};
use crate::plot::{ChartBuilder, RunCharts};
use crate::quantity::Units;
use crate::record::{Error, Recording};

/// perfmon's plots: the name, how nodes are combined, and what weigh draws it from.
const PLOTS: [(&str, &str, PlotSource); 15] = [
    ("CPU Load", "Average", PlotSource::Run("cpu")),
    ("Memory", "Average", PlotSource::Run("memory")),
    ("Memory Bandwidth (Read)", "Average", PlotSource::Nothing),
    ("Output Traffic", "Total", PlotSource::Machine),
    ("Input Traffic", "Total", PlotSource::Machine),
    ("Packets Output", "Total", PlotSource::Machine),
    ("Packets Input", "Total", PlotSource::Machine),
    ("Interconnect Output Traffic", "Total", PlotSource::Machine),
    ("Interconnect Input Traffic", "Total", PlotSource::Machine),
    ("Interconnect Packets Output", "Total", PlotSource::Machine),
    ("Interconnect Packets Input", "Total", PlotSource::Machine),
    ("RAPL Package Power", "Total", PlotSource::Machine),
    ("RAPL DRAM Power", "Total", PlotSource::Machine),
    ("RAPL Core Power", "Total", PlotSource::Machine),
    ("RAPL Uncore Power", "Total", PlotSource::Machine),
];

/// What a plot of perfmon is made from.
#[derive(Clone, Copy)]
enum PlotSource {
    /// A chart of the run.
    Run(&'static str),
    /// The sum over all devices of the machine, under the same name.
    Machine,
    /// Nothing that weigh measures.
    Nothing,
}

/// The files of a plot, per node and of all nodes: spaces of the title become underscores.
fn files(name: &str, combined: &str) -> [String; 2] {
    let stem = name.replace(' ', "_");
    [format!("{stem}_per_node.png"), format!("{combined}_{stem}_all_nodes.png")]
}

/// The plots of perfmon: of each node, and of all nodes together.
///
/// Each recording is of one node; times are since the first of them began.
pub fn pictures(recordings: &[Recording]) -> Result<Vec<Picture>, Error> {
    let begins = recordings.iter().map(|recording| recording.manifest().started).min();
    let mut nodes = Vec::new();
    for recording in recordings {
        let run_charts = ChartBuilder::of(recording, &[], Units::Binary)?;
        let machine = RunCharts { node: totals::charts(recording)?, ..RunCharts::default() };
        let manifest = recording.manifest();
        let later = begins.map(|begin| manifest.started.duration_since(begin).as_secs_f64());
        nodes.push(NodeCharts {
            host: manifest.host.name.clone(),
            later: later.unwrap_or_default(),
            charts: PLOTS.map(|(name, _, from)| {
                let chart = match from {
                    PlotSource::Run(chart) => named(&run_charts, chart, name),
                    PlotSource::Machine => named(&machine, name, name),
                    PlotSource::Nothing => nothing(name, "weigh does not measure this yet."),
                };
                summed(chart, name)
            }),
        });
    }
    // 18 cm wide at 200 dots per inch, as perfmon draws them.
    let size = (1417.0, 709.0);
    let mut pictures = Vec::new();
    for (place, (name, combined, _)) in PLOTS.into_iter().enumerate() {
        let [per_node, all_nodes] = files(name, combined);
        let each = of_each_node(place, &nodes);
        let all = combine(&each, combined);
        for (file, title, chart) in [
            (per_node, format!("{name} per node"), at_most_shown(each)),
            (all_nodes, format!("{combined} {name} of all nodes"), all),
        ] {
            pictures.push(Picture { file, chart: Chart { title, ..chart }, size });
        }
    }
    Ok(pictures)
}

/// The charts of one node, in the order of the plots, each with one series.
struct NodeCharts {
    host: String,
    /// How much later than the first one its recording began, in seconds.
    later: f64,
    charts: [Chart; PLOTS.len()],
}

/// A chart with a series for each node, at the times of all of them.
fn of_each_node(place: usize, nodes: &[NodeCharts]) -> Chart {
    let Some(first) = nodes.first() else { return nothing("", "There is no recording.") };
    let with_values = || nodes.iter().filter(|node| !node.charts[place].series.is_empty());
    let mut times: Vec<f64> = with_values()
        .flat_map(|node| node.charts[place].times.iter().map(|at| at + node.later))
        .collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let series = with_values().enumerate().map(|(colour, node)| {
        let chart = &node.charts[place];
        let values = times.iter().map(|at| value_at(chart, at - node.later)).collect();
        ChartSeries { name: node.host.clone(), colour: colour % MAX_SERIES, values }
    });
    let series: Vec<ChartSeries> = series.collect();
    let model = with_values().next().unwrap_or(first).charts[place].clone();
    Chart { times, series, ..model }
}

/// The value of the only series of a chart at a time; NaN before and after the recording.
fn value_at(chart: &Chart, at: f64) -> f64 {
    let Some(series) = chart.series.first() else { return f64::NAN };
    // A rate covers the interval before its time; another value is carried forward.
    let place = match chart.form.is_rate() {
        true => Some(chart.times.partition_point(|time| *time < at)),
        false => chart.times.partition_point(|time| *time <= at).checked_sub(1),
    };
    let is_over = chart.times.last().is_none_or(|last| at > *last);
    let known = place.filter(|_| !is_over).and_then(|place| series.values.get(place));
    known.copied().unwrap_or(f64::NAN)
}

/// All nodes as one series: their sum or their mean, over those that have a value.
fn combine(each: &Chart, combined: &str) -> Chart {
    let value = |place: usize| {
        let values = each.series.iter().map(|series| series.values[place]);
        let known: Vec<f64> = values.filter(|value| !value.is_nan()).collect();
        let sum: f64 = known.iter().sum();
        match (known.len(), combined) {
            (0, _) => f64::NAN,
            (count, "Average") => sum / count as f64,
            _ => sum,
        }
    };
    let values = (0..each.times.len()).map(value).collect();
    let series = vec![ChartSeries { name: combined.to_owned(), colour: 0, values }];
    let series = if each.series.is_empty() { Vec::new() } else { series };
    Chart { series, ..each.clone() }
}

/// As many nodes as can be told apart, and how many there are.
fn at_most_shown(mut each: Chart) -> Chart {
    let nodes = each.series.len();
    if nodes > MAX_SERIES {
        each.series.truncate(MAX_SERIES);
        each.note = format!("The first {MAX_SERIES} of {nodes} nodes.");
    }
    each
}

/// All series of a chart as one.
fn summed(chart: Chart, name: &str) -> Chart {
    if chart.series.is_empty() {
        return chart;
    }
    let sum = |place: usize| chart.series.iter().map(|series| series.values[place]).sum();
    let values: Vec<f64> = (0..chart.times.len()).map(sum).collect();
    let series = vec![ChartSeries { name: name.to_owned(), colour: 0, values }];
    lines(Chart { series, ..chart })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::plot::chart::ChartForm;

    /// As perfmon's report lists them, page by page.
    const FILES: [&str; 30] = [
        "Average_CPU_Load_all_nodes.png",
        "Average_Memory_all_nodes.png",
        "Average_Memory_Bandwidth_(Read)_all_nodes.png",
        "Total_Output_Traffic_all_nodes.png",
        "Total_Input_Traffic_all_nodes.png",
        "Total_Packets_Output_all_nodes.png",
        "Total_Packets_Input_all_nodes.png",
        "Total_Interconnect_Output_Traffic_all_nodes.png",
        "Total_Interconnect_Input_Traffic_all_nodes.png",
        "Total_Interconnect_Packets_Output_all_nodes.png",
        "Total_Interconnect_Packets_Input_all_nodes.png",
        "Total_RAPL_Package_Power_all_nodes.png",
        "Total_RAPL_DRAM_Power_all_nodes.png",
        "Total_RAPL_Core_Power_all_nodes.png",
        "Total_RAPL_Uncore_Power_all_nodes.png",
        "CPU_Load_per_node.png",
        "Memory_per_node.png",
        "Memory_Bandwidth_(Read)_per_node.png",
        "Output_Traffic_per_node.png",
        "Input_Traffic_per_node.png",
        "Packets_Output_per_node.png",
        "Packets_Input_per_node.png",
        "Interconnect_Output_Traffic_per_node.png",
        "Interconnect_Input_Traffic_per_node.png",
        "Interconnect_Packets_Output_per_node.png",
        "Interconnect_Packets_Input_per_node.png",
        "RAPL_Package_Power_per_node.png",
        "RAPL_DRAM_Power_per_node.png",
        "RAPL_Core_Power_per_node.png",
        "RAPL_Uncore_Power_per_node.png",
    ];

    #[test]
    fn plots_of_perfmon_have_the_file_names_of_perfmon() {
        let ours = PLOTS.iter().flat_map(|(name, combined, _)| files(name, combined));
        let ours: BTreeSet<String> = ours.collect();
        assert_eq!(ours, FILES.iter().map(|file| file.to_string()).collect());
    }

    #[test]
    fn nodes_are_combined_at_the_times_of_all_of_them() {
        let node = |host: &str, later: f64, times: &[f64], values: &[f64]| {
            let chart = Chart {
                form: ChartForm::Rates,
                times: times.to_vec(),
                series: vec![ChartSeries {
                    name: String::new(),
                    colour: 0,
                    values: values.to_vec(),
                }],
                ..nothing("", "")
            };
            let charts = std::array::from_fn(|_| chart.clone());
            NodeCharts { host: host.to_owned(), later, charts }
        };
        let nodes = [node("a", 0.0, &[10.0, 20.0], &[1.0, 2.0]), node("b", 5.0, &[10.0], &[6.0])];
        let each = of_each_node(0, &nodes);
        assert_eq!(each.times, [10.0, 15.0, 20.0]);
        assert_eq!(each.series[0].values, [1.0, 2.0, 2.0]);
        assert_eq!(each.series[1].values[..2], [6.0, 6.0]);
        assert!(each.series[1].values[2].is_nan(), "its recording has ended");
        assert_eq!(combine(&each, "Total").series[0].values, [7.0, 8.0, 2.0]);
        assert_eq!(combine(&each, "Average").series[0].values, [3.5, 4.0, 2.0]);
    }
}
