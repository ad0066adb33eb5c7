//! The plots of perfmon: of each node, and of all nodes together.

use super::totals;
use crate::compat::picture::{Picture, lines, named, nothing};
use crate::plot::chart::{Chart, ChartSeries};
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
pub fn pictures(recording: &Recording) -> Result<Vec<Picture>, Error> {
    let run_charts = ChartBuilder::of(recording, &[], Units::Binary)?;
    let machine = RunCharts { node: totals::charts(recording)?, ..RunCharts::default() };
    let host = &recording.manifest().host.name;
    // 18 cm wide at 200 dots per inch, as perfmon draws them.
    let size = (1417.0, 709.0);
    let mut pictures = Vec::new();
    for (name, combined, from) in PLOTS {
        let [per_node, all_nodes] = files(name, combined);
        let chart = match from {
            PlotSource::Run(chart) => named(&run_charts, chart, name),
            PlotSource::Machine => named(&machine, name, name),
            PlotSource::Nothing => nothing(name, "weigh does not measure this yet."),
        };
        for (file, title, series) in [
            (per_node, format!("{name} per node"), host.clone()),
            (all_nodes, format!("{combined} {name} of all nodes"), combined.to_owned()),
        ] {
            let chart = Chart { title, ..summed(chart.clone(), &series) };
            pictures.push(Picture { file, chart, size });
        }
    }
    Ok(pictures)
}

/// All series of a chart as one.
fn summed(chart: Chart, name: &str) -> Chart {
    let sum = |place: usize| chart.series.iter().map(|series| series.values[place]).sum();
    let values: Vec<f64> = (0..chart.times.len()).map(sum).collect();
    let series = vec![ChartSeries { name: name.to_owned(), colour: 0, values }];
    lines(Chart { series, ..chart })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

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
}
