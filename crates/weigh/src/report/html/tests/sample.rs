//! A made-up report with hostile names.

use crate::catalog::Unit;
use crate::plot::chart::{Band, Chart, ChartForm, ChartLimit, ChartSeries, Mark, Scale, Timeline};
use crate::report::document::{
    Advice, Bar, Document, Fact, PageHeader, ProcessTimeline, ReportCell, ReportChapter,
    ReportColumn, ReportKind, ReportTable, TimelineBar, TimelineRow, TimelineRowOf, Verdict,
};
use crate::summary::Severity;

/// The name of a process, a phase and a series.
pub(super) const EVIL: &str = "</script><script>alert(1)</script>";

fn facts(pairs: &[(&str, &str)]) -> Vec<Fact> {
    let fact = |(label, value): &(&str, &str)| Fact {
        label: (*label).to_owned(),
        value: (*value).to_owned(),
    };
    pairs.iter().map(fact).collect()
}

fn table(
    name: &str,
    title: &str,
    columns: &[(&str, bool)],
    rows: Vec<Vec<ReportCell>>,
) -> ReportTable {
    let column = |(label, is_number): &(&str, bool)| ReportColumn {
        label: (*label).to_owned(),
        is_number: *is_number,
        is_name: false,
    };
    let columns = columns.iter().map(column).collect();
    ReportTable {
        name: name.to_owned(),
        title: title.to_owned(),
        note: String::new(),
        columns,
        rows,
    }
}

fn text_cell(text: &str) -> ReportCell {
    ReportCell { text: text.to_owned(), number: None }
}

fn number(text: &str, number: f64) -> ReportCell {
    ReportCell { text: text.to_owned(), number: Some(number) }
}

/// A chart of five minutes, with a phase inside another, a mark and a limit.
fn chart(
    name: &str,
    title: &str,
    scale: Scale,
    form: ChartForm,
    series: Vec<ChartSeries>,
) -> Chart {
    let times: Vec<f64> = (0..=300).map(f64::from).collect();
    let band = |name: &str, from: f64, to: f64, depth: usize| Band {
        name: name.to_owned(),
        from,
        to,
        depth,
    };
    let timeline = Timeline {
        left_out: (0, 0),
        end: 300.0,
        bands: vec![
            band("load", 0.0, 40.0, 0),
            band("solve", 40.0, 260.0, 0),
            band("assemble", 60.0, 120.0, 1),
            band(EVIL, 260.0, 300.0, 0),
        ],
        marks: vec![Mark { text: "converged <1e-6".to_owned(), at: 180.0 }],
    };
    let mut chart = Chart {
        name: name.to_owned(),
        title: title.to_owned(),
        note: "Sampled every second.".to_owned(),
        scale,
        form,
        times,
        series,
        limits: Vec::new(),
        peak: None,
        timeline,
    };
    chart.peak = if form == ChartForm::Heatmap { None } else { chart.highest() };
    chart
}

fn series(name: &str, colour: usize, value: impl Fn(f64) -> f64) -> ChartSeries {
    let values = (0..=300).map(|at| value(f64::from(at))).collect();
    ChartSeries { name: name.to_owned(), colour, values }
}

/// A phase, and two processes of one program.
fn timeline() -> ProcessTimeline {
    let bar = |pid: Option<&str>, name: &str, from: f64, to: f64, lane: usize| TimelineBar {
        pid: pid.map(str::to_owned),
        name: name.to_owned(),
        cpu_time: "1.00 s".to_owned(),
        note: format!("{from} s to {to} s"),
        from,
        to,
        lane,
        colour: lane,
    };
    let row = |name: &str, of, bars: Vec<TimelineBar>| TimelineRow {
        name: name.to_owned(),
        depth: 0,
        of,
        cpu_time: String::new(),
        is_brief: false,
        lanes: bars.len(),
        bars,
    };
    ProcessTimeline {
        note: "A bar is a process.".to_owned(),
        end: 300.0,
        rows: vec![
            row(EVIL, TimelineRowOf::Phase, vec![bar(None, EVIL, 260.0, 300.0, 0)]),
            row(
                "solver",
                TimelineRowOf::Processes,
                vec![
                    bar(Some("4001"), EVIL, 0.0, 100.0, 0),
                    bar(Some("4002"), "b", 50.0, 300.0, 1),
                ],
            ),
        ],
    }
}

/// The report.
pub(super) fn document() -> Document {
    const GIB: f64 = 1024.0 * 1024.0 * 1024.0;
    let wave = |at: f64, length: f64| (at / length).sin().abs();
    let mut memory = chart(
        "memory",
        "Memory",
        Scale::level(Unit::Bytes),
        ChartForm::Lines,
        vec![
            series("all processes", 0, |at| {
                if (100.0..110.0).contains(&at) {
                    f64::NAN
                } else {
                    (0.4 + at / 120.0 + wave(at, 20.0)) * GIB
                }
            }),
            series("largest process", 1, |at| (0.3 + at / 160.0) * GIB),
        ],
    );
    memory.limits = vec![ChartLimit { name: "limit of the job".to_owned(), value: 3.8 * GIB }];
    let cpu = chart(
        "cpu",
        "Cores in use",
        Scale::rate(Unit::Seconds),
        ChartForm::StackedRates,
        vec![
            series("solver", 0, |at| if at < 40.0 { 0.2 } else { 2.0 + wave(at, 9.0) }),
            series("python3", 1, |at| 0.5 + 0.3 * wave(at, 31.0)),
            series(EVIL, 2, |at| if at > 200.0 { 0.7 } else { 0.0 }),
            series("other", 7, |_| 0.05),
        ],
    );
    let io = chart(
        "io",
        "Read and written",
        Scale::rate(Unit::Bytes),
        ChartForm::Rates,
        vec![
            series("read", 0, |at| if at < 40.0 { 250e6 * wave(at, 5.0) } else { 1e5 }),
            series("written", 1, |at| if at > 250.0 { 90e6 } else { 2e6 * wave(at, 40.0) }),
        ],
    );
    let processes = chart(
        "processes",
        "Processes",
        Scale::level(Unit::One),
        ChartForm::Stack,
        vec![
            series("solver", 0, |at| if at < 40.0 { 1.0 } else { 4.0 }),
            series("python3", 1, |at| (at / 60.0).floor()),
        ],
    );
    let heat = chart(
        "cpus",
        "Each CPU",
        Scale::rate(Unit::Seconds),
        ChartForm::Heatmap,
        (0..8)
            .map(|row| series(&row.to_string(), 0, move |at| wave(at, 10.0 + f64::from(row))))
            .collect(),
    );
    let exact = |name: &str, text: &str, value: f64| {
        vec![
            text_cell(name),
            number(text, value),
            text_cell("exact"),
            text_cell(""),
            text_cell("wait4"),
        ]
    };
    let figures = vec![
        exact("CPU time", "12 min 03 s", 723.0),
        vec![
            text_cell("memory, peak"),
            number("3.52 GiB", 3.52 * GIB),
            text_cell("sampled"),
            text_cell("3.52 GiB to 3.71 GiB"),
            text_cell("the largest sum of PSS"),
        ],
        exact("read", "4.12 GiB", 4.12 * GIB),
    ];
    let names = ["solver", "python3", EVIL, "sh"];
    let rows = (0..40u32).map(|place| {
        let cpu = f64::from(place * 37 % 41) * 1.7;
        let known = (place % 9 != 4).then_some(f64::from(place * 91 % 97) * 0.04);
        let memory = ReportCell {
            text: known.map_or("unknown".to_owned(), |gib| format!("{gib:.2} GiB")),
            number: known,
        };
        vec![
            number(&(4000 + place).to_string(), f64::from(4000 + place)),
            text_cell(names[place as usize % 4]),
            number(&format!("{cpu:.2} s"), cpu),
            memory,
        ]
    });
    let bar = |label: &str, share: Option<f64>, note: &str| Bar {
        label: label.to_owned(),
        share,
        note: note.to_owned(),
    };
    let advice = |severity, sentence: &str, advice: &str| Advice {
        severity,
        sentence: sentence.to_owned(),
        advice: advice.to_owned(),
    };
    Document {
        title: "solver <beta>".to_owned(),
        command: Some("./solver --mesh wing.msh --steps 4000 --tolerance 1e-6 '</pre>'".to_owned()),
        page_header: PageHeader {
            job: "4182".to_owned(),
            user: None,
            nodes: 1,
            date: "2025-01-31".to_owned(),
        },
        header: facts(&[
            ("Began", "2025-01-31 10:02:11 UTC"),
            ("Took", "5 min 00 s"),
            ("Ended with", "exit 0"),
            ("On", "node-a"),
            ("mesh", "wing & tail"),
        ]),
        verdict: Verdict {
            severity: Some(Severity::Warning),
            sentence: "Succeeded (exit 0) after 5 min 00 s.".to_owned(),
            reasons: facts(&[
                ("Bottleneck", "CPU-bound: it used 3.90 of 4 cores."),
                ("Memory peak", &format!("3.72 GiB at 61.00 s; all of it in {EVIL} (4711).")),
            ]),
            peak_process: None,
        },
        findings: vec![
            advice(
                Severity::Problem,
                &format!("A process called {EVIL} was killed by SIGKILL."),
                "If no user killed it, check for the kernel's OOM killer: dmesg | grep -i 'killed process'",
            ),
            advice(
                Severity::Warning,
                "Memory reached 93 % of the limit of the job.",
                "#SBATCH --mem=5G",
            ),
            advice(Severity::Note, "3 of 4 cores were in use on average.", ""),
        ],
        bars: vec![
            bar("CPU", Some(0.72), "2.9 of 4 cores on average"),
            bar("Memory", Some(0.93), "3.52 GiB of 3.80 GiB, the limit of the job"),
            bar("GPU", None, "no GPU is measured yet"),
            bar("GPU memory", None, "no GPU is measured yet"),
        ],
        figures: table(
            "figures",
            "Figures",
            &[
                ("figure", false),
                ("value", true),
                ("method", false),
                ("bounds", false),
                ("from", false),
            ],
            figures,
        ),
        figure_ids: Vec::new(),
        important_figures: 0,
        timeline: Some(timeline()),
        chapters: vec![
            ReportChapter { title: "At a glance".to_owned(), charts: vec![memory, cpu] },
            ReportChapter { title: "The run".to_owned(), charts: vec![io, processes] },
            ReportChapter { title: "Node node-a".to_owned(), charts: vec![heat] },
        ],
        tables: vec![table(
            "processes",
            "Processes",
            &[("pid", true), ("name", false), ("CPU time", true), ("largest size", true)],
            rows.collect(),
        )],
        hardware: facts(&[("CPU", "AMD EPYC 7763, 4 of 128 cores allowed"), ("Memory", "503 GiB")]),
        monitor: facts(&[("CPU time", "1.21 s, 0.4 % of one core"), ("Ticks", "3,000")]),
        missing: vec!["GPU: no driver is loaded".to_owned()],
        made_by: "weigh 0.1.0".to_owned(),
        kind: ReportKind::Run,
    }
}
