//! Reports for the tests: one with many items of every kind, one empty.

use crate::catalog::Unit;
use crate::plot::chart::{Band, Chart, ChartForm, ChartLimit, ChartSeries, Mark, Scale, Timeline};
use crate::report::Document;
use crate::report::document::{
    Advice, Bar, Fact, PageHeader, ReportCell, ReportChapter, ReportColumn, ReportKind,
    ReportTable, Verdict,
};
use crate::summary::Severity;

/// A report of a run without any data.
pub(super) fn bare() -> Document {
    Document {
        title: String::new(),
        command: None,
        page_header: PageHeader { job: String::new(), user: None, nodes: 0, date: String::new() },
        header: Vec::new(),
        verdict: Verdict::default(),
        findings: Vec::new(),
        bars: Vec::new(),
        figures: table("figures", "Figures", &["Figure", "Value#"], Vec::new()),
        figure_ids: Vec::new(),
        important_figures: 0,
        timeline: None,
        chapters: Vec::new(),
        tables: Vec::new(),
        hardware: Vec::new(),
        monitor: Vec::new(),
        missing: Vec::new(),
        made_by: String::new(),
        kind: ReportKind::Run,
    }
}

/// A report with several pages of every kind.
pub(super) fn rich() -> Document {
    Document {
        title: "align-sample-17".to_owned(),
        command: Some(
            "bwa mem -t 16 -R '@RG\\tID:17\\tSM:sample' reference/GRCh38.fa reads_1.fq.gz \
             reads_2.fq.gz | samtools sort -@ 8 -m 2G -o aligned/sample-17.bam -"
                .to_owned(),
        ),
        page_header: PageHeader {
            job: "4711823".to_owned(),
            user: Some("ada".to_owned()),
            nodes: 2,
            date: "2025-11-14".to_owned(),
        },
        header: facts(&[
            ("Began", "2025-11-14 09:12:33 UTC"),
            ("Lasted", "1 h 12 min"),
            ("Ended with", "exit 0"),
            ("Nodes", "n1, n2"),
            ("Label project", "genomes-2025"),
            ("Label note", "second attempt after the file system was full, with smaller chunks"),
        ]),
        verdict: Verdict {
            severity: Some(Severity::Warning),
            sentence: "Succeeded (exit 0) after 1 h 12 min.".to_owned(),
            reasons: facts(&[
                (
                    "Bottleneck",
                    "No single bottleneck: it used 7.70 of 16 cores; one core 40 % of the time, \
                     all cores 30 % of the time; align (64 processes) had at least 81 % of the CPU \
                     time.",
                ),
                ("Memory peak", "53.1 GiB at 52 min 00 s; align (4711) had 1.20 GiB of it."),
            ]),
            peak_process: None,
        },
        findings: findings(),
        bars: vec![
            bar("CPU", Some(0.48), "7.7 of 16 cores on average, 15.9 at most"),
            bar("Memory", Some(0.83), "53.1 GiB of 64 GiB at most"),
            bar("GPU", None, "no GPU was found on this machine"),
            bar("GPU memory", None, "no GPU was found on this machine"),
        ],
        figures: figures(),
        figure_ids: Vec::new(),
        important_figures: 3,
        timeline: None,
        chapters: vec![
            ReportChapter { title: "The run".to_owned(), charts: charts(6) },
            ReportChapter { title: "Node n1".to_owned(), charts: charts(4) },
            ReportChapter { title: "weigh itself".to_owned(), charts: charts(2) },
        ],
        tables: vec![programs(), processes(70), phases()],
        hardware: facts(&[
            ("Machine", "n1, n2"),
            ("CPU", "AMD EPYC 7543 32-Core Processor"),
            ("Cores", "32, of which 16 were allowed"),
            ("Memory", "251.6 GiB, of which 64 GiB were allowed"),
            ("System", "Linux 6.1.0-18-amd64"),
        ]),
        monitor: facts(&[
            ("CPU time", "3.61 s"),
            ("Share of a core", "0.08%"),
            ("Memory", "11.2 MiB"),
            ("Ticks", "4,320, none missed"),
        ]),
        missing: vec![
            "Energy: /sys/class/powercap is readable by root only.".to_owned(),
            "GPU: libnvidia-ml.so.1 was not found, so no GPU was sampled; a GPU of another \
             vendor would not have been found either."
                .to_owned(),
        ],
        made_by: "weigh 0.1.0".to_owned(),
        kind: ReportKind::Run,
    }
}

/// A hostile process name.
pub(super) fn hostile() -> String {
    let strange = "a\0b\x1b[31m\n\u{202e}\u{ffff}日本語🦀👩‍🚀 שלום עולם مرحبا e\u{301}\u{fe0f}";
    format!("{strange} {}", "x".repeat(400))
}

/// The rich report with hostile text wherever text comes from outside.
pub(super) fn rich_and_hostile() -> Document {
    let mut document = rich();
    document.title = hostile();
    document.command = Some(hostile());
    document.page_header.job = hostile();
    document.page_header.user = Some(hostile());
    document.page_header.date = hostile();
    document.made_by = hostile();
    document.verdict.sentence = hostile();
    document.missing.push(hostile());
    for fact in document.header.iter_mut().chain(&mut document.hardware) {
        (fact.label, fact.value) = (hostile(), hostile());
    }
    for finding in &mut document.findings {
        (finding.sentence, finding.advice) = (hostile(), hostile());
    }
    for bar in &mut document.bars {
        (bar.label, bar.note, bar.share) = (hostile(), hostile(), Some(f64::NAN));
    }
    for table in document.tables.iter_mut().chain([&mut document.figures]) {
        table.rows.iter_mut().flatten().for_each(|cell| cell.text = hostile());
        table.columns.iter_mut().for_each(|column| column.label = hostile());
        (table.title, table.note) = (hostile(), hostile());
    }
    for chapter in &mut document.chapters {
        chapter.title = hostile();
        chapter.charts.iter_mut().for_each(|chart| chart.series[0].name = hostile());
    }
    document
}

fn facts(pairs: &[(&str, &str)]) -> Vec<Fact> {
    let fact = |(label, value): &(&str, &str)| Fact {
        label: (*label).to_owned(),
        value: (*value).to_owned(),
    };
    pairs.iter().map(fact).collect()
}

fn bar(label: &str, share: Option<f64>, note: &str) -> Bar {
    Bar { label: label.to_owned(), share, note: note.to_owned() }
}

fn findings() -> Vec<Advice> {
    let advice = |severity, sentence: &str, advice: &str| Advice {
        severity,
        sentence: sentence.to_owned(),
        advice: advice.to_owned(),
    };
    vec![
        advice(
            Severity::Problem,
            "The kernel killed samtools (pid 4190) because memory was short.",
            "Ask for more memory, or give each sorting thread less:\n\
             samtools sort -@ 8 -m 1G",
        ),
        advice(
            Severity::Warning,
            "Of 16 cores it had, it kept 7.7 busy: 48 %. Half of what was reserved was not used, \
             and no other job could use it either.",
            "Ask for 8 cores next time: sbatch --cpus-per-task=8",
        ),
        advice(
            Severity::Warning,
            "Memory came within 2 % of the limit of 64 GiB.",
            "A little more input and it would have been killed: ask for 72 GiB.",
        ),
        advice(Severity::Note, "Two processes outlived the command: sleep (4301), sh (4302).", ""),
        advice(
            Severity::Note,
            "A third of the time was spent reading the reference again for each chunk.",
            "Keep it in memory between chunks, or copy it to the node's own disk first.",
        ),
    ]
}

/// A table; `#` at the end of a column's label makes it one of numbers.
pub(super) fn table(
    name: &str,
    title: &str,
    columns: &[&str],
    rows: Vec<Vec<String>>,
) -> ReportTable {
    let column = |label: &&str| ReportColumn {
        label: label.trim_end_matches('#').to_owned(),
        is_number: label.ends_with('#'),
        is_name: false,
    };
    let cell = |text: String| ReportCell { text, number: None };
    ReportTable {
        name: name.to_owned(),
        title: title.to_owned(),
        note: String::new(),
        columns: columns.iter().map(column).collect(),
        rows: rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect(),
    }
}

fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
}

fn figures() -> ReportTable {
    let columns = ["Figure", "Value#", "Method", "Lower bound#", "Upper bound#", "When#", "Source"];
    let rows = rows(&[
        &["CPU time", "9 h 14 min", "exact", "", "", "", "wait4 of all processes"],
        &["Cores, mean", "7.70", "exact", "", "", "", "CPU time over the time it took"],
        &["Cores, peak", "15.92", "sampled", "", "", "41 min", "perf task clock, by second"],
        &["Memory, peak", "53.1 GiB", "sampled", "53.1 GiB", "54.0 GiB", "58 min", "smaps_rollup"],
        &["Memory, mean", "31.4 GiB", "estimated", "", "", "", "smaps_rollup of all processes"],
        &["Largest process", "28.8 GiB", "exact", "", "", "", "ru_maxrss"],
        &["Read", "211 GiB", "exact", "", "", "", "/proc/self/io of the parent"],
        &["Written", "84.6 GiB", "exact", "", "", "", "/proc/self/io of the parent"],
        &["Page faults", "18,201,773", "exact", "", "", "", "wait4 of all processes"],
        &[
            "Energy",
            "unknown",
            "",
            "",
            "",
            "",
            "the machine's counters (/sys/class/powercap) are readable by root only",
        ],
    ]);
    let note = "Exact figures are counted by the kernel, sampled ones are measured every second.";
    ReportTable { note: note.to_owned(), ..table("figures", "Figures", &columns, rows) }
}

fn programs() -> ReportTable {
    let columns = ["Program", "Processes#", "CPU time#", "Largest#", "Read#", "Written#"];
    let rows = rows(&[
        &["bwa", "1", "7 h 58 min", "28.8 GiB", "198 GiB", "92.1 GiB"],
        &["samtools", "1", "1 h 15 min", "24.1 GiB", "104 GiB", "84.6 GiB"],
        &["sh", "68", "3.1 s", "4.2 MiB", "12.0 MiB", "0 B"],
    ]);
    table("programs", "Programs", &columns, rows)
}

fn processes(count: usize) -> ReportTable {
    let columns = [
        "PID#",
        "Name",
        "CPU time#",
        "Largest#",
        "Read#",
        "Written#",
        "Started#",
        "Ended#",
        "End",
        "Command",
    ];
    let row = |place: usize| {
        vec![
            (4182 + place).to_string(),
            if place % 9 == 4 { "worker-with-a-rather-long-name" } else { "bwa" }.to_owned(),
            "58 min 12 s".to_owned(),
            "28.8 GiB".to_owned(),
            "1.2 GiB".to_owned(),
            "16.3 MiB".to_owned(),
            format!("{place}.2 s"),
            "1 h 3 min".to_owned(),
            "exit 0".to_owned(),
            format!("bwa mem -t 16 -K 100000000 reference/GRCh38.fa chunk-{place:03}.fq.gz"),
        ]
    };
    table("processes", "Processes", &columns, (0..count).map(row).collect())
}

fn phases() -> ReportTable {
    let columns = ["Phase", "Began#", "Lasted#", "CPU time#", "Memory#"];
    let rows = rows(&[
        &["index", "0 s", "4 min", "1 h 2 min", "12.1 GiB"],
        &["align", "4 min", "1 h 8 min", "8 h 12 min", "53.1 GiB"],
    ]);
    table("phases", "Phases", &columns, rows)
}

/// Charts of every form in turn.
fn charts(count: usize) -> Vec<Chart> {
    const FORMS: [ChartForm; 4] =
        [ChartForm::StackedRates, ChartForm::Stack, ChartForm::Rates, ChartForm::Heatmap];
    (0..count).map(|place| chart(place, FORMS[place % FORMS.len()])).collect()
}

fn chart(place: usize, form: ChartForm) -> Chart {
    let times: Vec<f64> = (0..400).map(f64::from).collect();
    let series = |name: usize| ChartSeries {
        name: format!("program-{name}"),
        colour: name,
        values: times.iter().map(|time| (time / 30.0 + name as f64).sin() + 1.5).collect(),
    };
    let band = |name: &str, from, to| Band { name: name.to_owned(), from, to, depth: 0 };
    let mut chart = Chart {
        name: format!("chart-{place}"),
        title: format!("Cores in use, {place}"),
        note: "Cores kept busy in each second; exact, from the perf task clock.".to_owned(),
        scale: Scale::rate(Unit::Seconds),
        form,
        series: (0..4).map(series).collect(),
        limits: vec![ChartLimit { name: "cores allowed".to_owned(), value: 12.0 }],
        peak: None,
        timeline: Timeline {
            left_out: (0, 0),
            end: 399.0,
            bands: vec![band("index", 0.0, 90.0), band("align", 90.0, 399.0)],
            marks: vec![Mark { text: "checkpoint".to_owned(), at: 200.0 }],
        },
        times,
    };
    chart.peak = chart.highest();
    chart
}
