//! When each process ran: one row for a program, below the program that started it.
//!
//! A build starts hundreds of short processes of a few programs. Those of one program that were
//! started by the same one share a row, side by side in lanes where they ran at the same time.
//! Phases are the first rows.

use std::collections::HashMap;

use super::tables::cpu_text;
use crate::model::numbering;
use crate::plot::Chart;
use crate::plot::chart::{Band, MAX_SERIES};
use crate::quantity::{self, Units};
use crate::report::process_table::{ListedProcesses, Process};

/// When phases and processes ran.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessTimeline {
    /// How to read it.
    pub note: String,
    /// The end of the time axis, in seconds since the run began.
    pub end: f64,
    /// Phases first, then programs, each after the program that started it.
    pub rows: Vec<TimelineRow>,
}

/// A phase, or the processes of one program with the same origin.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineRow {
    /// The name of the phase or program.
    pub name: String,
    /// How deep it is nested.
    pub depth: usize,
    /// What its bars are.
    pub of: TimelineRowOf,
    /// CPU time of its processes as text; empty for a phase.
    pub cpu_time: String,
    /// Whether it, and all that it started, was short and used little CPU time.
    pub is_brief: bool,
    /// How many bars are side by side at most.
    pub lanes: usize,
    /// Its bars in the order of their starts.
    pub bars: Vec<TimelineBar>,
}

/// What the bars of a row are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimelineRowOf {
    /// Times at which a phase was entered.
    Phase,
    /// Processes.
    Processes,
}

/// One process, or one time that a phase was entered.
#[derive(Debug, Clone, PartialEq)]
pub struct TimelineBar {
    /// The pid of a process.
    pub pid: Option<String>,
    /// The command line of a process, or its name; the name of a phase.
    pub name: String,
    /// CPU time of a process as text; empty when it is not known.
    pub cpu_time: String,
    /// Times, CPU time and memory as text.
    pub note: String,
    /// When it began.
    pub from: f64,
    /// When it ended, or the run.
    pub to: f64,
    /// Its lane from 0.
    pub lane: usize,
    /// Its colour: that of its program in the charts.
    pub colour: usize,
}

/// More lanes are drawn on top of the last one.
const MAX_LANES: usize = 12;
/// More rows are not readable; those of the programs with the least CPU time are left out.
const MAX_ROWS: usize = 60;
const MAX_DEPTH: usize = 12;

impl ProcessTimeline {
    /// The timeline of these processes; `None` when there is nothing to draw. The charts have the
    /// colours of the programs, the phases and the end of the time axis.
    pub(super) fn of<'a>(
        participants: &ListedProcesses,
        charts: impl Iterator<Item = &'a Chart>,
        duration: f64,
        units: Units,
    ) -> Option<ProcessTimeline> {
        let charts: Vec<&Chart> = charts.collect();
        let timeline = charts.first().map(|chart| &chart.timeline);
        let end = timeline.map_or(0.0, |timeline| timeline.end).max(duration);
        let bands = timeline.map_or(&[][..], |timeline| &timeline.bands);
        let mut rows = phases(bands);
        let (programs, left_out) = programs(&participants.processes, end, &charts, units);
        rows.extend(programs);
        (!rows.is_empty() && end > 0.0).then(|| ProcessTimeline {
            note: note(participants.processes_left_out, left_out),
            end,
            rows,
        })
    }
}

fn note(processes_left_out: u64, rows_left_out: usize) -> String {
    let mut note = "A bar is a process, from its first sample to its exit; processes of one \
                    program share a row, below the program that started them. At the right is \
                    their CPU time."
        .to_owned();
    if processes_left_out > 0 {
        let count = quantity::count(processes_left_out as f64);
        note.push_str(&format!(" {count} lighter processes are left out."));
    }
    if rows_left_out > 0 {
        note.push_str(&format!(" {rows_left_out} rows with little CPU time are left out."));
    }
    note
}

/// A row for each name of a phase, in the order of their first start.
fn phases(bands: &[Band]) -> Vec<TimelineRow> {
    let mut rows: Vec<TimelineRow> = Vec::new();
    for band in bands {
        let bar = TimelineBar {
            pid: None,
            name: band.name.clone(),
            cpu_time: String::new(),
            note: lasted(band.from, band.to),
            from: band.from,
            to: band.to,
            lane: 0,
            colour: MAX_SERIES - 1,
        };
        let known = rows.iter_mut().find(|row| row.name == band.name && row.depth == band.depth);
        match known {
            Some(row) => row.bars.push(bar),
            None => rows.push(TimelineRow {
                name: band.name.clone(),
                depth: band.depth,
                of: TimelineRowOf::Phase,
                cpu_time: String::new(),
                is_brief: false,
                lanes: 1,
                bars: vec![bar],
            }),
        }
    }
    rows.iter_mut().for_each(TimelineRow::arrange);
    rows
}

/// `1.20 s to 3.40 s`.
fn lasted(from: f64, to: f64) -> String {
    format!("{} to {}", quantity::seconds(from), quantity::seconds(to))
}

/// Processes of one program whose parents are in one group.
struct Group<'a> {
    parent: Option<usize>,
    program: &'a str,
    members: Vec<&'a Process>,
}

impl Group<'_> {
    fn cpu_seconds(&self) -> f64 {
        self.members.iter().filter_map(|process| process.cpu_seconds).sum()
    }
}

/// The rows of programs, and how many rows are left out.
fn programs(
    processes: &[Process],
    end: f64,
    charts: &[&Chart],
    units: Units,
) -> (Vec<TimelineRow>, usize) {
    let groups = groups(processes);
    let order = nested(&groups);
    let kept = heaviest(&groups);
    let brief = brief(&groups, end);
    let row = |&(place, depth): &(usize, usize)| {
        let group = &groups[place];
        let bar = |process: &&Process| bar(process, end, charts, units);
        let is_exact = group.members.iter().all(|process| process.is_cpu_exact);
        let is_known = group.members.iter().any(|process| process.cpu_seconds.is_some());
        let cpu_time = is_known.then(|| cpu_text(group.cpu_seconds(), is_exact));
        let mut row = TimelineRow {
            name: group.program.to_owned(),
            depth: depth.min(MAX_DEPTH),
            of: TimelineRowOf::Processes,
            cpu_time: cpu_time.unwrap_or_default(),
            is_brief: brief[place],
            lanes: 1,
            bars: group.members.iter().map(bar).collect(),
        };
        row.arrange();
        row
    };
    let shown = order.iter().filter(|(place, _)| kept[*place]);
    let rows: Vec<TimelineRow> = shown.map(row).collect();
    let left_out = groups.len() - rows.len();
    (rows, left_out)
}

/// The groups in the order of their first starts, so that a parent comes before its children.
fn groups(processes: &[Process]) -> Vec<Group<'_>> {
    let mut ordered: Vec<&Process> = processes.iter().collect();
    ordered.sort_by(|a, b| {
        // Those found at one tick: a parent started before its children.
        let started = (a.id.started, a.id.pid).cmp(&(b.id.started, b.id.pid));
        a.first_sampled.total_cmp(&b.first_sampled).then(started)
    });
    let mut groups: Vec<Group> = Vec::new();
    let mut group_of: HashMap<u32, usize> = HashMap::new();
    let mut keys: HashMap<(Option<usize>, &str), usize> = HashMap::new();
    for process in ordered {
        let parent = process.parent.and_then(|parent| group_of.get(&parent).copied());
        let program = process.program.as_str();
        let place = *keys.entry((parent, program)).or_insert_with(|| {
            groups.push(Group { parent, program, members: Vec::new() });
            groups.len() - 1
        });
        groups[place].members.push(process);
        // A pid that is used again is that of the newer process.
        group_of.insert(process.id.pid, place);
    }
    groups
}

/// The groups with their depth, each followed by those that it started.
fn nested(groups: &[Group]) -> Vec<(usize, usize)> {
    let mut children: Vec<Vec<usize>> = vec![Vec::new(); groups.len()];
    let mut stack: Vec<(usize, usize)> = Vec::new();
    for (place, group) in groups.iter().enumerate() {
        match group.parent {
            Some(parent) => children[parent].push(place),
            None => stack.push((place, 0)),
        }
    }
    stack.reverse();
    let mut order = Vec::with_capacity(groups.len());
    while let Some((place, depth)) = stack.pop() {
        order.push((place, depth));
        stack.extend(children[place].iter().rev().map(|child| (*child, depth + 1)));
    }
    order
}

/// Which groups were short and used little, with all that they started; none where only few were.
fn brief(groups: &[Group], end: f64) -> Vec<bool> {
    /// The largest share of the run's time and CPU time.
    const LITTLE: f64 = 0.01;
    const FEW: usize = 3;
    let all: f64 = groups.iter().map(Group::cpu_seconds).sum();
    let is_little = |group: &Group| {
        let lasted = |one: &&Process| one.exited_at.unwrap_or(end) - one.first_sampled;
        let longest = group.members.iter().map(lasted).fold(0.0, f64::max);
        longest < LITTLE * end && group.cpu_seconds() <= LITTLE * all
    };
    let mut brief: Vec<bool> = groups.iter().map(is_little).collect();
    // Children come after their parents.
    for place in (0..groups.len()).rev() {
        if let Some(parent) = groups[place].parent.filter(|_| !brief[place]) {
            brief[parent] = false;
        }
    }
    if brief.iter().filter(|one| **one).count() <= FEW {
        brief.fill(false);
    }
    brief
}

/// Which groups are shown: those with most CPU time, and all above them.
fn heaviest(groups: &[Group]) -> Vec<bool> {
    let mut order: Vec<usize> = (0..groups.len()).collect();
    order.sort_by(|a, b| groups[*b].cpu_seconds().total_cmp(&groups[*a].cpu_seconds()));
    let mut kept = vec![false; groups.len()];
    let mut count = 0;
    for place in order {
        let above = || std::iter::successors(Some(place), |place| groups[*place].parent);
        let new: Vec<usize> = above().filter(|place| !kept[*place]).collect();
        if count + new.len() <= MAX_ROWS {
            count += new.len();
            new.into_iter().for_each(|place| kept[place] = true);
        }
    }
    kept
}

fn bar(process: &Process, end: f64, charts: &[&Chart], units: Units) -> TimelineBar {
    let from = process.first_sampled.clamp(0.0, end);
    let to = process.exited_at.unwrap_or(end).clamp(from, end);
    let pid = numbering::shown(process.id.pid);
    let cpu_time = process.cpu_seconds.map(|cpu| cpu_text(cpu, process.is_cpu_exact));
    let cpu = cpu_time.as_ref().map(|cpu| format!("CPU time {cpu}"));
    let memory = process.largest_bytes.map(|size| quantity::bytes(size as f64, units));
    let facts = [Some(lasted(from, to)), cpu, memory];
    TimelineBar {
        name: process.command.clone().unwrap_or_else(|| process.name.clone()),
        cpu_time: cpu_time.unwrap_or_default(),
        note: facts.into_iter().flatten().collect::<Vec<_>>().join(", "),
        from,
        to,
        lane: 0,
        colour: colour(process, &pid, charts),
        pid: Some(pid),
    }
}

/// The colour that a process or its program has in the charts; others have that of "others".
fn colour(process: &Process, pid: &str, charts: &[&Chart]) -> usize {
    let own = format!("{} {pid}", process.program);
    let stacked = charts.iter().filter(|chart| chart.form.is_stacked());
    let mut series = stacked.flat_map(|chart| &chart.series);
    series
        .find(|series| series.name == own || series.name == process.program)
        .map_or(MAX_SERIES - 1, |series| series.colour)
}

impl TimelineRow {
    /// Whether its bars are phases.
    #[cfg(feature = "html")]
    pub(in crate::report) fn is_phase(&self) -> bool {
        self.of == TimelineRowOf::Phase
    }

    /// Gives each bar the first lane that is free.
    fn arrange(&mut self) {
        let mut free: Vec<f64> = Vec::new();
        for bar in &mut self.bars {
            let lane = free.iter().position(|until| *until <= bar.from).unwrap_or(free.len());
            let lane = lane.min(MAX_LANES - 1);
            match free.get_mut(lane) {
                Some(until) => *until = until.max(bar.to),
                None => free.push(bar.to),
            }
            bar.lane = lane;
        }
        self.lanes = free.len().max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ProcessId;
    use crate::report::tests::{participants, work_hard};
    use crate::testing::{FakeRun, MAIN, cpu};

    /// A process that `parent` started at a second.
    fn starts(run: &mut FakeRun, pid: u32, parent: u32, program: &str, at: f64) -> ProcessId {
        let id = ProcessId { pid, started: u64::from(pid) };
        run.starts_under(at, id, parent, program);
        id
    }

    /// The timeline of a run of so many seconds.
    fn timeline(run: &FakeRun, seconds: f64) -> Option<ProcessTimeline> {
        ProcessTimeline::of(&participants(run), std::iter::empty(), seconds, Units::Binary)
    }

    #[test]
    fn three_hundred_compilers_share_a_row_below_their_make() {
        let mut run = work_hard();
        run.starts(0.0, MAIN, "make");
        let mut running: Vec<ProcessId> = Vec::new();
        for number in 0..300_u32 {
            let at = f64::from(number);
            // Two at a time.
            if running.len() == 2 {
                run.exits(at, running.remove(0));
            }
            let compiler = starts(&mut run, 1000 + number, MAIN.pid, "cc1", at);
            run.sample(at, |tick| cpu(tick, compiler, 0.5, 0.0));
            running.push(compiler);
        }
        let timeline = timeline(&run, 300.0).unwrap();
        let rows =
            timeline.rows.iter().map(|row| (&*row.name, row.depth, row.bars.len(), row.lanes));
        assert_eq!(rows.collect::<Vec<_>>(), [("make", 0, 1, 1), ("cc1", 1, 300, 2)]);
        assert_eq!(timeline.rows[1].cpu_time, "~2 min 30 s");
        assert_eq!(timeline.rows[1].bars[299].to, 300.0, "it outlived the recording");
    }

    #[test]
    fn programs_are_nested_below_what_started_them() {
        let mut run = work_hard();
        run.starts(0.0, MAIN, "make");
        starts(&mut run, 20, MAIN.pid, "sh", 1.0);
        starts(&mut run, 21, 20, "cc", 1.0);
        starts(&mut run, 30, MAIN.pid, "sh", 2.0);
        starts(&mut run, 31, 30, "ld", 2.0);
        starts(&mut run, 40, 99, "daemon", 3.0);
        run.sample(4.0, |tick| cpu(tick, MAIN, 1.0, 0.0));
        let timeline = timeline(&run, 4.0).unwrap();
        let rows: Vec<_> = timeline.rows.iter().map(|row| (&*row.name, row.depth)).collect();
        assert_eq!(rows, [("make", 0), ("sh", 1), ("cc", 2), ("ld", 2), ("daemon", 0)]);
    }

    #[test]
    fn rows_with_the_least_cpu_time_are_left_out_and_counted() {
        let mut run = work_hard();
        run.starts(0.0, MAIN, "make");
        for number in 0..100_u32 {
            let one = starts(&mut run, 100 + number, MAIN.pid, &format!("tool-{number}"), 1.0);
            run.sample(1.0, |tick| cpu(tick, one, f64::from(number), 0.0));
        }
        let timeline = timeline(&run, 2.0).unwrap();
        assert_eq!(timeline.rows.len(), MAX_ROWS);
        assert_eq!((&*timeline.rows[0].name, &*timeline.rows[1].name), ("make", "tool-41"));
        assert!(timeline.note.contains("41 rows with little CPU time"), "{}", timeline.note);
    }

    #[test]
    fn short_programs_are_folded_unless_they_started_a_long_one() {
        let mut run = work_hard();
        run.starts(0.0, MAIN, "train");
        starts(&mut run, 20, MAIN.pid, "wrapper", 1.0);
        starts(&mut run, 21, 20, "worker", 1.0);
        run.exits(1.1, ProcessId { pid: 20, started: 20 });
        for number in 30..34 {
            let one = starts(&mut run, number, MAIN.pid, &format!("probe-{number}"), 2.0);
            run.exits(2.1, one);
        }
        run.sample(100.0, |tick| cpu(tick, MAIN, 50.0, 0.0));
        let timeline = timeline(&run, 100.0).unwrap();
        let brief = timeline.rows.iter().filter(|row| row.is_brief).map(|row| &*row.name);
        assert_eq!(brief.collect::<Vec<_>>(), ["probe-30", "probe-31", "probe-32", "probe-33"]);
    }

    #[test]
    fn run_without_processes_and_phases_has_no_timeline() {
        assert_eq!(timeline(&work_hard(), 1.0), None);
    }
}
