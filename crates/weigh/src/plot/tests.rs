//! From ticks to charts, and from charts to pictures.

mod gpus;

use std::time::Duration;

use super::chart::{Band, Chart, Form, Limit, Mark, Scale, Series, Timeline};
use super::svg::{Look, draw};
use super::{Gallery, Gatherer};
use crate::catalog::Unit;
use crate::collect;
use crate::collect::own::OwnTicks;
use crate::collect::process::{ProcessCpu, ProcessMemory, ProcessState};
use crate::collect::task_clock::RunCpu;
use crate::host::facts::Facts;
use crate::host::wait::Usage;
use crate::record::{Entry, Event, Manifest};
use crate::sample::{Entity, ProcessId, Tick};
use crate::settings::Settings;

/// A run that is told tick by tick.
struct Told {
    gatherer: Gatherer,
    tick: Tick,
}

fn manifest() -> Manifest {
    let (settings, second) = (Settings::default(), Duration::from_secs(1));
    Manifest::new(&settings, &["work".to_owned()], Facts::example(), second)
}

impl Told {
    fn begin() -> Told {
        let groups = collect::all_groups();
        let command = ["work".to_owned()];
        let settings = Settings::default();
        let manifest = Manifest::new(&settings, &command, Facts::example(), Duration::from_secs(1));
        Told { gatherer: Gatherer::new(&manifest, &groups, &[]), tick: Tick::new(&groups) }
    }

    fn happens(&mut self, seconds: f64, event: Event) {
        self.gatherer.event(&Entry { seconds, event });
    }

    fn comes(&mut self, seconds: f64, pid: u32, name: &str) {
        let (started, parent, command) = (u64::from(pid), 1, None);
        let name = name.to_owned();
        self.happens(
            seconds,
            Event::ProcessStart { pid, started, parent, name, command, tool: None },
        );
    }

    fn goes(&mut self, seconds: f64, pid: u32, usage: Option<Usage>) {
        let started = u64::from(pid);
        self.happens(seconds, Event::ended(ProcessId { pid, started }, None, usage));
    }

    /// Everybody is looked at; who has a row has this size and this much CPU time.
    fn look(&mut self, seconds: f64, rows: &[(u32, u64, f64)], run_cpu: Option<f64>) {
        self.tick.begin(Duration::from_secs_f64(seconds));
        for (pid, rss, user) in rows {
            let id = Entity::Process(ProcessId { pid: *pid, started: u64::from(*pid) });
            let (cpu, memory) = (ProcessCpu::default(), ProcessMemory::default());
            self.tick.put(id, &ProcessCpu { user: Some(*user), system: Some(0.0), ..cpu });
            self.tick.put(id, &ProcessMemory { rss: Some(*rss), ..memory });
            self.tick.put(id, &ProcessState { threads: Some(2), ..ProcessState::default() });
        }
        self.tick.put(Entity::Single, &OwnTicks { taken: Some(1), missed: None });
        if run_cpu.is_some() {
            self.tick.put(Entity::Single, &RunCpu { time: run_cpu });
        }
        self.gatherer.tick(&self.tick);
    }

    fn ends(self) -> Gallery {
        self.gatherer.finish()
    }
}

fn chart<'a>(gallery: &'a Gallery, name: &str) -> &'a Chart {
    let found = gallery.all().find(|chart| chart.name == name);
    found.unwrap_or_else(|| panic!("there is no chart {name}"))
}

fn series<'a>(chart: &'a Chart, name: &str) -> &'a [f64] {
    let found = chart.series.iter().find(|series| series.name == name);
    &found.unwrap_or_else(|| panic!("{} has no {name}", chart.name)).values
}

#[test]
fn who_did_not_run_keeps_what_it_had_and_who_went_has_nothing() {
    let mut told = Told::begin();
    told.comes(0.0, 10, "one");
    told.comes(0.0, 11, "two");
    told.look(0.0, &[(10, 100, 0.0), (11, 50, 0.0)], None);
    told.look(1.0, &[(10, 200, 1.0)], None);
    told.goes(1.5, 10, None);
    told.look(2.0, &[], None);
    let gallery = told.ends();
    let memory = chart(&gallery, "memory");
    assert_eq!(memory.title, "Memory by process");
    assert_eq!(memory.times, [0.0, 1.0, 2.0]);
    assert_eq!(series(memory, "one 10"), [100.0, 200.0, 0.0]);
    assert_eq!(series(memory, "two 11"), [50.0, 50.0, 50.0]);
    let peak = memory.peak.unwrap();
    assert_eq!((peak.at, peak.value), (1.0, 250.0));
    let time = chart(&gallery, "cpu-time");
    assert_eq!(series(time, "one 10"), [0.0, 1.0, 1.0], "what was used stays used");
    assert_eq!(series(chart(&gallery, "threads"), "two 11"), [2.0; 3]);
    assert_eq!(series(chart(&gallery, "cpu"), "one 10"), [1.0, 0.0]);
}

#[test]
fn many_processes_are_shown_by_program_and_the_small_ones_together() {
    let mut told = Told::begin();
    for pid in 0..3000 {
        told.comes(0.0, pid, &format!("tool-{}", pid % 40));
    }
    // Every program has 75 processes; the ones with higher numbers are larger.
    let rows: Vec<_> = (0..3000).map(|pid| (pid, u64::from(pid % 40) + 1, 0.0)).collect();
    told.look(0.0, &rows, None);
    told.look(1.0, &[], None);
    let gallery = told.ends();
    let memory = chart(&gallery, "memory");
    assert_eq!(memory.title, "Memory by program");
    assert_eq!(memory.series.len(), 8);
    assert_eq!(series(memory, "tool-39"), [75.0 * 40.0; 2]);
    let all: f64 = memory.series.iter().map(|series| series.values[0]).sum();
    assert_eq!(all, 75.0 * (1..=40).sum::<u32>() as f64, "nothing is lost among the others");
    assert_eq!(memory.series.last().unwrap().name, "others");
    // A program has its colour in every chart.
    let colour = |name: &str| {
        let chart = chart(&gallery, name);
        chart.series.iter().find(|series| series.name == "tool-39").unwrap().colour
    };
    assert_eq!(colour("memory"), colour("processes"));
}

#[test]
fn cpu_time_of_those_too_short_to_be_seen_is_with_the_others() {
    let mut told = Told::begin();
    told.comes(0.0, 10, "one");
    told.look(0.0, &[(10, 100, 0.0)], Some(0.0));
    told.look(1.0, &[(10, 100, 0.5)], Some(1.5));
    told.look(2.0, &[(10, 100, 1.0)], Some(2.0));
    let gallery = told.ends();
    let time = chart(&gallery, "cpu-time");
    assert_eq!(series(time, "one 10"), [0.0, 0.5, 1.0]);
    assert_eq!(series(time, "others"), [0.0, 1.0, 1.0]);
    assert_eq!(series(chart(&gallery, "cpu"), "others"), [1.0, 0.0]);
}

#[test]
fn a_program_that_becomes_another_takes_its_memory_along() {
    let mut told = Told::begin();
    for pid in 0..9 {
        told.comes(0.0, pid, "shell");
    }
    told.look(0.0, &(0..9).map(|pid| (pid, 10, 0.0)).collect::<Vec<_>>(), None);
    let name = "worker".to_owned();
    told.happens(0.5, Event::ProcessExec { pid: 3, started: 3, name, command: None, tool: None });
    told.look(1.0, &[(3, 70, 0.0)], None);
    let gallery = told.ends();
    let memory = chart(&gallery, "memory");
    assert_eq!(series(memory, "shell"), [90.0, 80.0]);
    assert_eq!(series(memory, "worker"), [0.0, 70.0]);
}

#[test]
fn a_size_that_is_not_known_of_one_is_not_known_of_its_program() {
    let groups = collect::all_groups();
    let uss = groups.iter().copied().flatten().find(|m| m.name() == "process.memory.uss");
    let mut told = Told::begin();
    told.gatherer = Gatherer::new(&manifest(), &groups, &[uss.unwrap()]);
    told.comes(0.0, 10, "one");
    told.look(0.0, &[(10, 100, 0.0)], None);
    told.look(1.0, &[(10, 100, 0.0)], None);
    let gallery = told.ends();
    assert!(gallery.all().all(|chart| chart.name != "process.memory.uss"));
    assert_eq!(series(chart(&gallery, "memory"), "one 10"), [100.0; 2], "its resident size is");
}

#[test]
fn a_run_that_was_never_looked_at_has_no_charts() {
    let gallery = Told::begin().ends();
    assert_eq!(gallery.all().count(), 0);
}

fn example(form: Form) -> Chart {
    Chart {
        name: "example".to_owned(),
        title: "Memory & <more>".to_owned(),
        note: "A note.".to_owned(),
        scale: Scale::level(Unit::Bytes),
        form,
        times: vec![0.0, 5.0, 10.0],
        series: vec![
            Series { name: "<script>alert(1)</script>".into(), colour: 0, values: vec![1.0; 3] },
            Series { name: "b".into(), colour: 1, values: vec![2048.0, f64::NAN, 2.0] },
        ],
        limits: vec![Limit { name: "limit".into(), value: 4096.0 }],
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

const ALONE: Look = Look { width: 900.0, height: 380.0, alone: true };

#[test]
fn whatever_somebody_is_called_is_drawn_as_text() {
    for form in [Form::Lines, Form::Rates, Form::Stack, Form::StackedRates, Form::Heat] {
        let drawn = draw(&example(form), ALONE);
        assert!(!drawn.contains("<script"), "{drawn}");
        assert!(!drawn.contains('\u{1b}') && !drawn.contains('\u{202e}'));
        assert!(drawn.contains("Memory &amp; &lt;more&gt;"));
        assert!(!drawn.contains("NaN"), "{drawn}");
    }
}

#[test]
fn what_is_not_known_is_a_gap_in_the_line() {
    let drawn = draw(&example(Form::Lines), Look { alone: false, ..ALONE });
    let line = drawn.lines().find(|line| line.contains("class=\"line c1\"")).unwrap();
    assert_eq!(line.matches('M').count(), 2, "{line}");
    assert!(!drawn.contains("<style>"), "the page has its own");
}

#[test]
fn one_look_is_drawn_to_the_end_and_none_says_so() {
    let mut chart = example(Form::Stack);
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
fn a_picture_in_pixels_has_the_colours_of_its_curves() {
    let bytes = super::png(&draw(&example(Form::Stack), ALONE), 1.0).unwrap();
    let pixels = resvg::tiny_skia::Pixmap::decode_png(&bytes).unwrap();
    assert_eq!((pixels.width(), pixels.height()), (900, 380));
    // The second area is orange where it is high, at the left end.
    let colour = pixels.pixel(100, 250).unwrap();
    assert!(colour.red() > 200 && colour.blue() < 60, "{colour:?}");
    let paper = pixels.pixel(2, 2).unwrap();
    assert_eq!((paper.red(), paper.green(), paper.blue()), (255, 255, 255));
}

#[test]
fn more_things_than_lines_can_tell_apart_are_a_heat_map() {
    let mut chart = example(Form::Heat);
    chart.limits.clear();
    chart.series = (0..64)
        .map(|cpu| Series {
            name: format!("CPU {cpu}"),
            colour: cpu,
            values: vec![cpu as f64, 0.0, f64::NAN],
        })
        .collect();
    let drawn = draw(&chart, ALONE);
    assert!(drawn.matches("class=\"cell\"").count() > 100);
    assert!(drawn.contains(">CPU 0<"));
}
