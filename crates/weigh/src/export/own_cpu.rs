//! CPU time of each process by itself, for the table `processes`.

use std::collections::HashMap;

use crate::catalog::metrics::{ProcessCpu, ProcessEvents, ProcessState};
use crate::catalog::{Row, Scope};
use crate::model::{Entity, ProcessId, Tick};
use crate::record::{self, Entry, Event, Moment, Recording};
use crate::summary::Method;
use crate::summary::own_cpu::{FinalCpu, OwnCpu, method};

/// The CPU time of each process of a recording by itself in seconds, and its source.
pub(super) fn of(
    recording: &Recording,
) -> Result<HashMap<ProcessId, (f64, Method)>, record::Error> {
    let mut processes = OwnCpuTable::default();
    let groups = [ProcessCpu::METRICS, ProcessEvents::METRICS, ProcessState::METRICS];
    recording.replay(&groups, |moment| match moment {
        Moment::Tick(tick) => processes.tick(tick),
        Moment::Event(entry) => processes.event(entry),
    })?;
    let mut all = processes.finish();
    all.values_mut().for_each(|(_, how)| *how = method(*how, recording.losses()));
    Ok(all)
}

#[derive(Default)]
struct OwnCpuTable {
    running: HashMap<ProcessId, OwnCpu>,
    exited: HashMap<ProcessId, FinalCpu>,
}

impl OwnCpuTable {
    fn tick(&mut self, tick: &Tick) {
        let Some(table) = tick.table(Scope::Process) else { return };
        for (row, entity) in table.entities().iter().enumerate() {
            if let Entity::Process(id) = entity {
                self.running.entry(*id).or_default().row(table, row, tick.at.as_secs_f64());
            }
        }
    }

    fn event(&mut self, entry: &Entry) {
        if let Event::ProcessExit { pid, started, usage, cpu_seconds, .. } = &entry.event {
            let id = ProcessId { pid: *pid, started: *started };
            let sampled = self.running.remove(&id).unwrap_or_default();
            let used = sampled.ended(usage.as_ref(), *cpu_seconds, entry.seconds);
            self.exited.extend(used.map(|used| (id, used)));
        }
    }

    fn finish(self) -> HashMap<ProcessId, (f64, Method)> {
        let sampled = |cpu: OwnCpu| cpu.sampled().map(|[.., together]| (together, Method::Sampled));
        let running = self.running.into_iter().filter_map(|(id, cpu)| Some((id, sampled(cpu)?)));
        let exited = self.exited.into_iter().map(|(id, cpu)| {
            let method = if cpu.is_exact { Method::Exact } else { Method::Sampled };
            (id, (cpu.times[2], method))
        });
        running.chain(exited).collect()
    }
}
