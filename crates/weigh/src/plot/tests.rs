//! From ticks to charts, and from charts to SVG.

mod gpus;

use super::chart::{Band, Chart, ChartForm, ChartLimit, ChartSeries, Mark, Scale, Timeline};
use super::svg::{SvgOptions, draw};
use super::{ChartBuilder, RunCharts};
use crate::catalog::metrics::{AddressSpace, ProcessCpu, ProcessMemory, ProcessState, RunCpu};
use crate::catalog::{Metric, Unit, all_groups};
use crate::model::settings::Settings;
use crate::model::{Entity, ProcessId, Tick};
use crate::summary::{Accumulator, Figures};
use crate::testing::{FakeRun, MIB, cpu, memory};

/// The process of a pid.
fn id(pid: u32) -> ProcessId {
    ProcessId { pid, started: u64::from(pid) }
}

/// A sample: each listed process has this size and CPU time.
fn processes(rows: &[(u32, u64, f64)], run_cpu: Option<f64>) -> impl FnOnce(&mut Tick) {
    move |tick| {
        for (pid, rss, user) in rows {
            let (rss, address_space) = (Some(*rss), Some(AddressSpace::Own));
            let memory = ProcessMemory { rss, address_space, ..ProcessMemory::default() };
            cpu(tick, id(*pid), *user, 0.0);
            tick.put(Entity::Process(id(*pid)), &memory);
            let state = ProcessState { threads: Some(2), ..ProcessState::default() };
            tick.put(Entity::Process(id(*pid)), &state);
        }
        if run_cpu.is_some() {
            tick.put(Entity::Single, &RunCpu { time: run_cpu, ..RunCpu::default() });
        }
    }
}

/// A sample of a parent of this size, and of a vfork child that has no size of its own.
fn vfork(parent: (u32, u64), child: u32) -> impl FnOnce(&mut Tick) {
    move |tick| {
        for (pid, rss) in [(parent.0, Some(parent.1)), (child, None)] {
            let whose = if rss.is_some() { AddressSpace::Own } else { AddressSpace::Shared };
            let memory = ProcessMemory { address_space: Some(whose), ..Default::default() };
            tick.put(Entity::Process(id(pid)), &ProcessMemory { rss, pss: rss, ..memory });
        }
    }
}

/// The charts of a run.
fn drawn(run: &FakeRun) -> RunCharts {
    with_figures(run, chart_builder(run, &[])).0
}

/// Gathers the usual charts, and those of these metrics.
fn chart_builder(run: &FakeRun, requested: &[&'static Metric]) -> ChartBuilder {
    let groups = crate::catalog::groups(Settings::default().sources());
    ChartBuilder::new(&run.manifest, &groups, requested)
}

fn with_figures(run: &FakeRun, mut chart_builder: ChartBuilder) -> (RunCharts, Figures) {
    let mut summary = Accumulator::new(&run.manifest);
    let frames = run.replay(|frame| {
        summary.frame(frame);
        chart_builder.frame(frame, &summary);
    });
    let figures = summary.finish(frames.live()).figures;
    (chart_builder.finish(&figures), figures)
}

fn chart<'a>(run_charts: &'a RunCharts, name: &str) -> &'a Chart {
    let found = run_charts.all().find(|chart| chart.name == name);
    found.unwrap_or_else(|| panic!("there is no chart {name}"))
}

fn series<'a>(chart: &'a Chart, name: &str) -> &'a [f64] {
    let found = chart.series.iter().find(|series| series.name == name);
    &found.unwrap_or_else(|| panic!("{} has no {name}", chart.name)).values
}

#[test]
fn sleeping_process_keeps_its_values_and_exited_process_has_none() {
    let mut run = FakeRun::new();
    run.starts(0.0, id(10), "one");
    run.starts(0.0, id(11), "two");
    run.sample(0.0, processes(&[(10, 100, 0.0), (11, 50, 0.0)], None));
    run.sample(1.0, processes(&[(10, 200, 1.0)], None));
    run.exits(1.5, id(10));
    run.sample(2.0, processes(&[], None));
    let run_charts = drawn(&run);
    let memory = chart(&run_charts, "memory");
    assert_eq!(memory.title, "Memory by process");
    assert_eq!(memory.times, [0.0, 1.0, 2.0]);
    assert_eq!(series(memory, "one 10"), [100.0, 200.0, 0.0]);
    assert_eq!(series(memory, "two 11"), [50.0, 50.0, 50.0]);
    let peak = memory.peak.unwrap();
    assert_eq!((peak.at, peak.value), (1.0, 250.0));
    let time = chart(&run_charts, "cpu-time");
    assert_eq!(series(time, "one 10"), [0.0, 1.0, 1.0], "what was used stays used");
    assert_eq!(series(chart(&run_charts, "threads"), "two 11"), [2.0; 3]);
    assert_eq!(series(chart(&run_charts, "cpu"), "one 10"), [1.0, 0.0]);
}

#[test]
fn memory_is_at_least_the_largest_process_when_its_share_is_old() {
    let mut run = FakeRun::new();
    run.starts(0.0, id(10), "parent");
    run.starts_under(0.0, id(11), 10, "child");
    run.sample(0.0, |tick| {
        memory(tick, id(10), 100, 100, Some(50));
        memory(tick, id(11), 100, 100, Some(50));
    });
    // The pages are the parent's alone now, and its share is not read again.
    run.exits(0.5, id(11));
    run.sample(1.0, |tick| memory(tick, id(10), 110, 110, None));
    let run_charts = drawn(&run);
    let memory = chart(&run_charts, "memory");
    assert_eq!(series(memory, "parent 10"), [50.0, 110.0]);
    assert_eq!(series(memory, "child 11"), [50.0, 0.0]);
}

#[test]
fn many_processes_are_grouped_by_program_and_small_ones_folded() {
    let mut run = FakeRun::new();
    for pid in 0..3000 {
        run.starts(0.0, id(pid), &format!("tool-{}", pid % 40));
    }
    // Every program has 75 processes; those with higher pids are larger.
    let rows: Vec<_> = (0..3000).map(|pid| (pid, u64::from(pid % 40) + 1, 0.0)).collect();
    run.sample(0.0, processes(&rows, None));
    run.sample(1.0, processes(&[], None));
    let run_charts = drawn(&run);
    let memory = chart(&run_charts, "memory");
    assert_eq!(memory.title, "Memory by program");
    assert_eq!(memory.series.len(), 8);
    assert_eq!(series(memory, "tool-39"), [75.0 * 40.0; 2]);
    let all: f64 = memory.series.iter().map(|series| series.values[0]).sum();
    assert_eq!(all, 75.0 * f64::from((1..=40).sum::<u32>()), "nothing is lost among the others");
    assert_eq!(memory.series.last().unwrap().name, "others");
    // A program has its colour in every chart.
    let colour = |name: &str| {
        let chart = chart(&run_charts, name);
        chart.series.iter().find(|series| series.name == "tool-39").unwrap().colour
    };
    assert_eq!(colour("memory"), colour("processes"));
}

#[test]
fn cpu_time_of_processes_too_short_to_be_sampled_is_unattributed() {
    let mut run = FakeRun::new();
    run.starts(0.0, id(10), "one");
    run.sample(0.0, processes(&[(10, 100, 0.0)], Some(0.0)));
    run.sample(1.0, processes(&[(10, 100, 0.5)], Some(1.5)));
    run.sample(2.0, processes(&[(10, 100, 1.0)], Some(2.0)));
    let run_charts = drawn(&run);
    let time = chart(&run_charts, "cpu-time");
    assert_eq!(series(time, "one 10"), [0.0, 0.5, 1.0]);
    assert_eq!(series(time, "Unattributed"), [0.0, 1.0, 1.0]);
    let cpu = chart(&run_charts, "cpu");
    assert_eq!(series(cpu, "Unattributed"), [1.0, 0.0]);
    assert!(cpu.series.iter().all(|series| series.name != "others"), "no program was folded");
}

#[test]
fn marked_peak_of_the_cpu_chart_is_the_figure() {
    let mut run = FakeRun::new();
    run.starts(0.0, id(10), "one");
    // Dense samples at first; the process's CPU time, in clock ticks, arrives late and all at once.
    let samples = [
        (0.003, 0.0, 0.003),
        (0.013, 0.01, 0.013),
        (0.103, 0.08, 0.101),
        (0.153, 0.13, 0.15),
        (0.323, 0.36, 0.47),
        (0.523, 0.75, 0.82),
        (1.523, 0.78, 0.85),
    ];
    for (at, process, all) in samples {
        run.sample(at, processes(&[(10, 100, process)], Some(all)));
    }
    let (run_charts, figures) = with_figures(&run, chart_builder(&run, &[]));
    let (cpu, figure) = (chart(&run_charts, "cpu"), &figures["cpu_cores_peak"]);
    let peak = cpu.peak.unwrap();
    assert_eq!((Some(peak.value), Some(peak.at)), (figure.value, figure.at_seconds));
    let drawn = cpu.highest().unwrap();
    assert!((drawn.value - peak.value).abs() < 1e-9 && drawn.at == peak.at, "{drawn:?} {peak:?}");
    // The total area is what the run used.
    let before = std::iter::once(&0.0).chain(&cpu.times);
    let lengths: Vec<f64> = cpu.times.iter().zip(before).map(|(to, from)| to - from).collect();
    let area: f64 = cpu
        .series
        .iter()
        .map(|series| {
            series.values.iter().zip(&lengths).map(|(rate, length)| rate * length).sum::<f64>()
        })
        .sum();
    assert!((area - 0.85).abs() < 1e-9, "{area}");
}

#[test]
fn rates_of_a_single_threaded_process_are_not_noise_of_clock_ticks() {
    let mut run = FakeRun::new();
    run.starts(0.0, id(10), "one");
    // A steady 0.04 cores: one clock tick of 10 ms every 0.25 s.
    for step in 0..=20 {
        let at = f64::from(step) * 0.1;
        let (ticks, ran) = ((at * 4.0).floor() * 0.01, at * 0.04);
        let cpu = ProcessCpu { user: Some(ticks), system: Some(0.0), ..ProcessCpu::default() };
        run.sample(at, |tick| {
            tick.put(Entity::Process(id(10)), &ProcessCpu { run_time: Some(ran), ..cpu });
            tick.put(Entity::Single, &RunCpu { time: Some(ran), ..RunCpu::default() });
        });
    }
    let run_charts = drawn(&run);
    let cpu = chart(&run_charts, "cpu");
    let rates = series(cpu, "one 10");
    assert!(rates.iter().all(|rate| (rate - 0.04).abs() < 1e-6), "{rates:?}");
    let rest = cpu.series.iter().find(|series| series.name == "Unattributed");
    assert!(rest.is_none_or(|rest| rest.values.iter().all(|rate| *rate < 1e-9)), "{rest:?}");
    let lines = chart(&run_charts, "process-cpu-cores");
    assert!(lines.series.iter().all(|series| series.name != "Run time"), "{:?}", lines.title);
}

#[test]
fn marked_memory_peak_is_the_figure_even_when_no_sample_met_it() {
    let mut run = FakeRun::new();
    run.starts(0.0, id(10), "one");
    for (at, rss, high_water) in [(1.0, 50, 50), (2.0, 60, 300), (3.0, 40, 300)] {
        let (rss, high_water) = (rss * MIB, high_water * MIB);
        run.sample(at, |tick| memory(tick, id(10), rss, high_water, Some(rss)));
    }
    let (run_charts, figures) = with_figures(&run, chart_builder(&run, &[]));
    let (memory, figure) = (chart(&run_charts, "memory"), &figures["memory_peak_bytes"]);
    let peak = memory.peak.unwrap();
    assert_eq!((Some(peak.value), figure.at_seconds), (figure.value, None));
    assert_eq!((peak.after, Some(peak.at)), (figure.after_seconds, figure.before_seconds));
    assert_eq!((peak.after, peak.at), (Some(1.0), 2.0));
    let drawn = draw(memory, ALONE);
    assert!(drawn.contains("300 MiB between 1.00 s and 2.00 s"), "{drawn}");
    assert!(drawn.contains("peak-span") && !drawn.contains("class=\"peak-dot"), "{drawn}");
}

#[test]
fn exec_moves_the_memory_to_the_new_program() {
    let mut run = FakeRun::new();
    for pid in 0..9 {
        run.starts(0.0, id(pid), "shell");
    }
    run.sample(0.0, processes(&(0..9).map(|pid| (pid, 10, 0.0)).collect::<Vec<_>>(), None));
    run.exec(0.5, id(3), "worker");
    run.sample(1.0, processes(&[(3, 70, 0.0)], None));
    let run_charts = drawn(&run);
    let memory = chart(&run_charts, "memory");
    assert_eq!(series(memory, "shell"), [90.0, 80.0]);
    assert_eq!(series(memory, "worker"), [0.0, 70.0]);
}

#[test]
fn vfork_child_adds_no_memory_and_leaves_no_gap() {
    let mut run = FakeRun::new();
    run.starts(0.0, id(10), "one");
    run.starts(0.0, id(11), "one");
    run.sample(0.0, vfork((10, 400), 11));
    // The child calls exec: its RSS is known before its PSS.
    run.sample(1.0, processes(&[(11, 3, 0.0)], None));
    let mut chart_builder = chart_builder(&run, &[]);
    chart_builder.group_by_program();
    let (run_charts, _) = with_figures(&run, chart_builder);
    assert_eq!(series(chart(&run_charts, "memory"), "one"), [400.0, 403.0]);
    let sums = chart(&run_charts, "process-memory-bytes");
    assert_eq!(series(sums, "Resident"), [400.0, 403.0]);
}

#[test]
fn unknown_size_of_one_process_makes_its_program_unknown() {
    let groups = all_groups();
    let uss = groups.iter().copied().flatten().find(|m| m.name() == "process.memory.uss");
    let mut run = FakeRun::new();
    run.starts(0.0, id(10), "one");
    run.sample(0.0, processes(&[(10, 100, 0.0)], None));
    run.sample(1.0, processes(&[(10, 100, 0.0)], None));
    let (run_charts, _) = with_figures(&run, chart_builder(&run, &[uss.unwrap()]));
    assert!(run_charts.all().all(|chart| chart.name != "process.memory.uss"));
    assert_eq!(series(chart(&run_charts, "memory"), "one 10"), [100.0; 2], "its resident size is");
}

#[test]
fn run_without_samples_has_no_charts() {
    let run_charts = drawn(&FakeRun::new());
    assert_eq!(run_charts.all().count(), 0);
}

fn example(form: ChartForm) -> Chart {
    Chart {
        name: "example".to_owned(),
        title: "Memory & <more>".to_owned(),
        note: "A note.".to_owned(),
        scale: Scale::level(Unit::Bytes),
        form,
        times: vec![0.0, 5.0, 10.0],
        series: vec![
            ChartSeries {
                name: "<script>alert(1)</script>".into(),
                colour: 0,
                values: vec![1.0; 3],
            },
            ChartSeries { name: "b".into(), colour: 1, values: vec![2048.0, f64::NAN, 2.0] },
        ],
        limits: vec![ChartLimit { name: "limit".into(), value: 4096.0 }],
        peak: None,
        timeline: Timeline {
            left_out: (0, 0),
            end: 10.0,
            bands: vec![Band {
                name: "\u{1b}[31mload\u{202e}".into(),
                from: 1.0,
                to: 6.0,
                depth: 0,
            }],
            marks: vec![Mark { text: "here".into(), at: 7.0 }],
        },
    }
}

const ALONE: SvgOptions = SvgOptions { width: 900.0, height: 380.0, standalone: true };

#[test]
fn hostile_process_name_is_drawn_as_text() {
    let areas = [ChartForm::Stack, ChartForm::StackedCounters, ChartForm::StackedRates];
    for form in [ChartForm::Lines, ChartForm::Counters, ChartForm::Rates, ChartForm::Heatmap]
        .into_iter()
        .chain(areas)
    {
        let drawn = draw(&example(form), ALONE);
        assert!(!drawn.contains("<script"), "{drawn}");
        assert!(!drawn.contains('\u{1b}') && !drawn.contains('\u{202e}'));
        assert!(drawn.contains("Memory &amp; &lt;more&gt;"));
        assert!(!drawn.contains("NaN"), "{drawn}");
    }
}

#[test]
fn unknown_values_are_a_gap_in_the_line() {
    let drawn = draw(&example(ChartForm::Lines), SvgOptions { standalone: false, ..ALONE });
    let line = drawn.lines().find(|line| line.contains("class=\"line c1\"")).unwrap();
    assert_eq!(line.matches('M').count(), 2, "{line}");
    assert!(!drawn.contains("<style>"), "the page has its own");
}

/// The path data of the first path of a class.
fn path<'a>(drawn: &'a str, class: &str) -> &'a str {
    let line = drawn.lines().find(|line| line.contains(&format!("class=\"{class}\""))).unwrap();
    let (_, path) = line.split_once(" d=\"").unwrap();
    path.split('"').next().unwrap()
}

#[test]
fn gauges_are_drawn_as_steps_and_totals_as_slopes() {
    let mut chart = example(ChartForm::Stack);
    chart.series.truncate(1);
    chart.series[0].values = vec![3.0, 1.0, 2.0];
    for (form, class) in [(ChartForm::Stack, "area c0"), (ChartForm::Lines, "line c0")] {
        let drawn = draw(&Chart { form, ..chart.clone() }, ALONE);
        assert!(!path(&drawn, class).contains('L'), "{}", path(&drawn, class));
    }
    for (form, class) in [(ChartForm::StackedCounters, "area c0"), (ChartForm::Counters, "line c0")]
    {
        let drawn = draw(&Chart { form, ..chart.clone() }, ALONE);
        assert!(path(&drawn, class).contains('L'), "{}", path(&drawn, class));
    }
}

#[test]
fn single_sample_is_drawn_to_the_end_and_no_sample_says_so() {
    let mut chart = example(ChartForm::Stack);
    chart.times.truncate(1);
    chart.series.iter_mut().for_each(|series| series.values.truncate(1));
    let drawn = draw(&chart, ALONE);
    assert!(drawn.contains("<path class=\"area c0\""), "{drawn}");
    chart.times.clear();
    chart.series.clear();
    assert!(draw(&chart, ALONE).contains("nothing was measured"));
}

#[cfg(feature = "png")]
#[test]
fn png_has_the_colours_of_its_curves() {
    let bytes = super::png(&draw(&example(ChartForm::Stack), ALONE), 1.0).unwrap();
    let pixels = resvg::tiny_skia::Pixmap::decode_png(&bytes).unwrap();
    assert_eq!((pixels.width(), pixels.height()), (900, 380));
    // The second area is orange at the left end, where it is high.
    let colour = pixels.pixel(100, 250).unwrap();
    assert!(colour.red() > 200 && colour.blue() < 60, "{colour:?}");
    let paper = pixels.pixel(2, 2).unwrap();
    assert_eq!((paper.red(), paper.green(), paper.blue()), (255, 255, 255));
}

#[test]
fn many_entities_are_drawn_as_a_heat_map() {
    let mut chart = example(ChartForm::Heatmap);
    chart.limits.clear();
    chart.series = (0..64)
        .map(|cpu| ChartSeries {
            name: format!("CPU {cpu}"),
            colour: cpu,
            values: vec![cpu as f64, 0.0, f64::NAN],
        })
        .collect();
    let drawn = draw(&chart, ALONE);
    assert!(drawn.matches("class=\"cell\"").count() > 100);
    assert!(drawn.contains(">CPU 0<"));
}
