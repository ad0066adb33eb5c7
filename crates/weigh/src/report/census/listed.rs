//! The heaviest processes and programs of a run, however many there are.
//!
//! Lists are cut when they have grown to a few times what is kept, so a cut costs
//! little for each that comes.

use std::collections::HashMap;

use super::{Others, Process, Program};
use crate::sample::ProcessId;

/// Nobody reads a longer list of processes.
pub(super) const MOST_PROCESSES: usize = 500;
/// Nobody reads a longer list of programs.
pub(super) const MOST_PROGRAMS: usize = 200;
/// How much a list may grow beyond what is kept before it is cut.
const SLACK: usize = 4;

/// Places in the order of their weight: those first that are among the first by CPU time or
/// by memory.
///
/// Whoever is among the heaviest of all is so among any of them, so a list may be cut again
/// and again.
fn by_weight(weights: &[(Option<f64>, Option<u64>)]) -> Vec<usize> {
    let mut rank = vec![usize::MAX; weights.len()];
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|a, b| weights[*b].0.unwrap_or(0.0).total_cmp(&weights[*a].0.unwrap_or(0.0)));
    order.iter().enumerate().for_each(|(place, one)| rank[*one] = place);
    order.sort_by_key(|one| std::cmp::Reverse(weights[*one].1));
    order.iter().enumerate().for_each(|(place, one)| rank[*one] = rank[*one].min(place));
    order.sort_by_key(|one| rank[*one]);
    order
}

/// What is at these places.
fn only<T>(list: Vec<T>, places: &[usize]) -> Vec<T> {
    let mut slots: Vec<Option<T>> = list.into_iter().map(Some).collect();
    places.iter().filter_map(|place| slots[*place].take()).collect()
}

/// Processes that are gone.
#[derive(Debug)]
pub(super) struct Gone {
    main_id: ProcessId,
    /// The command's own, which is always listed.
    main: Option<Process>,
    list: Vec<Process>,
    left_out: u64,
}

impl Gone {
    /// Nobody has gone yet.
    pub(super) fn of(main_id: ProcessId) -> Gone {
        Gone { main_id, main: None, list: Vec::new(), left_out: 0 }
    }

    pub(super) fn push(&mut self, process: Process) {
        if process.id == self.main_id {
            self.main = Some(process);
            return;
        }
        self.list.push(process);
        if self.list.len() >= SLACK * MOST_PROCESSES {
            self.cut(MOST_PROCESSES);
        }
    }

    /// The command's own process had this size.
    pub(super) fn main_grew(&mut self, size: u64) {
        if let Some(main) = &mut self.main {
            main.largest_bytes = main.largest_bytes.max(Some(size));
        }
    }

    fn cut(&mut self, keep: usize) {
        if self.list.len() <= keep {
            return;
        }
        let weights: Vec<_> =
            self.list.iter().map(|process| (process.cpu_seconds, process.largest_bytes)).collect();
        let mut places = by_weight(&weights);
        places.truncate(keep);
        // In the order of going, so that ties are always cut in the same way.
        places.sort_unstable();
        self.left_out += (self.list.len() - places.len()) as u64;
        self.list = only(std::mem::take(&mut self.list), &places);
    }

    /// Those with most CPU time first, and how many are not among them.
    pub(super) fn finish(mut self) -> (Vec<Process>, u64) {
        self.cut(MOST_PROCESSES - usize::from(self.main.is_some()));
        self.list.extend(self.main.take());
        self.list.sort_by(|a, b| {
            let cpu = |process: &Process| process.cpu_seconds.unwrap_or(0.0);
            let size = b.largest_bytes.cmp(&a.largest_bytes);
            cpu(b).total_cmp(&cpu(a)).then(size).then(a.id.cmp(&b.id))
        });
        (self.list, self.left_out)
    }
}

/// The programs of a run.
#[derive(Debug, Default)]
pub(super) struct Programs {
    list: Vec<Running>,
    by_name: HashMap<String, usize>,
    /// Those of which something changed in this tick.
    touched: Vec<usize>,
    others: Others,
    /// How long the list may be before it is cut again.
    room: usize,
}

/// A program, and what its processes have at the moment.
#[derive(Debug, Default)]
struct Running {
    program: Program,
    alive: u64,
    size: u64,
    is_sized: bool,
    is_touched: bool,
}

impl Programs {
    /// A process runs the program of this name; says where the program is.
    pub(super) fn joined(&mut self, name: &str) -> usize {
        let place = match self.by_name.get(name) {
            Some(place) => *place,
            None => {
                let program = Program { name: name.to_owned(), ..Program::default() };
                self.list.push(Running { program, ..Running::default() });
                self.by_name.insert(name.to_owned(), self.list.len() - 1);
                self.list.len() - 1
            }
        };
        self.list[place].program.processes += 1;
        self.list[place].alive += 1;
        self.touch(place);
        place
    }

    /// A process of this size does not run it any more.
    pub(super) fn left(&mut self, place: usize, size: u64) {
        let running = &mut self.list[place];
        running.alive -= 1;
        running.size = running.size.wrapping_sub(size);
    }

    /// The name of a program.
    pub(super) fn name(&self, place: usize) -> &str {
        &self.list[place].program.name
    }

    /// One of its processes used CPU time.
    pub(super) fn used(&mut self, place: usize, seconds: f64) {
        let sum = &mut self.list[place].program.cpu_seconds;
        *sum = Some(sum.unwrap_or(0.0) + seconds);
    }

    /// One of its processes had this size.
    pub(super) fn grew(&mut self, place: usize, size: Option<u64>) {
        let largest = &mut self.list[place].program.largest_bytes;
        *largest = size.max(*largest);
    }

    /// A process of the program of this name had this size.
    pub(super) fn named_grew(&mut self, name: &str, size: u64) {
        if let Some(place) = self.by_name.get(name) {
            self.grew(*place, Some(size));
        }
    }

    /// What one of its processes has now.
    pub(super) fn resized(&mut self, place: usize, before: u64, now: u64) {
        let running = &mut self.list[place];
        // A stranger's recording may hold sizes whose sum is beyond every number.
        running.size = running.size.wrapping_sub(before).wrapping_add(now);
        running.is_sized = true;
        self.touch(place);
    }

    fn touch(&mut self, place: usize) {
        if !std::mem::replace(&mut self.list[place].is_touched, true) {
            self.touched.push(place);
        }
    }

    /// Everybody was looked at: what is there now was there at one moment.
    pub(super) fn settle(&mut self) {
        for place in self.touched.drain(..) {
            let running = &mut self.list[place];
            running.is_touched = false;
            running.program.most = running.program.most.max(running.alive);
            if running.is_sized {
                running.program.together_bytes =
                    running.program.together_bytes.max(Some(running.size));
            }
        }
    }

    /// Cuts the list when it is long, and says where each program is now. Only between ticks.
    pub(super) fn make_room(&mut self) -> Option<Vec<usize>> {
        if self.list.len() <= self.room.max(SLACK * MOST_PROGRAMS) {
            return None;
        }
        let moved = self.cut(|running| running.alive > 0);
        self.room = SLACK * self.list.len();
        Some(moved)
    }

    /// Keeps the heaviest, and those that must stay. Places of those that went mean nothing.
    fn cut(&mut self, must_stay: impl Fn(&Running) -> bool) -> Vec<usize> {
        let weights: Vec<_> = self
            .list
            .iter()
            .map(|running| (running.program.cpu_seconds, running.program.largest_bytes))
            .collect();
        let mut stays: Vec<bool> = self.list.iter().map(must_stay).collect();
        by_weight(&weights).iter().take(MOST_PROGRAMS).for_each(|place| stays[*place] = true);
        let mut moved = Vec::with_capacity(self.list.len());
        let mut kept = Vec::new();
        for (running, stays) in std::mem::take(&mut self.list).into_iter().zip(stays) {
            moved.push(kept.len());
            if stays {
                kept.push(running);
            } else {
                self.by_name.remove(&running.program.name);
                self.others.add(&running.program);
            }
        }
        for (place, running) in kept.iter().enumerate() {
            if let Some(at) = self.by_name.get_mut(&running.program.name) {
                *at = place;
            }
        }
        self.list = kept;
        moved
    }

    /// Those with most CPU time first, and the others together.
    pub(super) fn finish(mut self) -> (Vec<Program>, Option<Others>) {
        self.settle();
        if self.list.len() > MOST_PROGRAMS {
            self.cut(|_| false);
        }
        let mut programs: Vec<Program> =
            self.list.into_iter().map(|running| running.program).collect();
        for program in &mut programs {
            // One that came and went between two looks was there all the same.
            program.most = program.most.max(1);
        }
        programs.sort_by(|a, b| {
            let cpu = |program: &Program| program.cpu_seconds.unwrap_or(0.0);
            let size = b.largest_bytes.cmp(&a.largest_bytes);
            cpu(b).total_cmp(&cpu(a)).then(size).then_with(|| a.name.cmp(&b.name))
        });
        (programs, (self.others.programs > 0).then_some(self.others))
    }
}

impl Others {
    fn add(&mut self, program: &Program) {
        self.programs += 1;
        self.processes += program.processes;
        if let Some(seconds) = program.cpu_seconds {
            self.cpu_seconds = Some(self.cpu_seconds.unwrap_or(0.0) + seconds);
        }
        self.largest_bytes = self.largest_bytes.max(program.largest_bytes);
    }
}
