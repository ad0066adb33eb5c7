//! The collector of the GPUs of all vendors: takes the newest poll of each driver, and adds its
//! rows to ticks.
//!
//! Workers poll ([`super::worker`]), because drivers take their time. Which processes have other
//! files open than before is found here, where the processes of the run are known
//! ([`super::open_files`]).

use std::collections::HashMap;
use std::time::Duration;

use super::backend::{LoadedDriver, OpenBackend, loaded};
use super::open_files::OpenFiles;
use super::pids::Pids;
use super::poll::{DeviceRows, Poll, PolledPid};
use super::selection::unmatched;
use super::worker::Worker;
use crate::catalog::Scope;
use crate::catalog::metrics::GpuActivity;
use crate::collect::{Collector, Context, Fault};
use crate::host::Host;
use crate::model::gpu::Visible;
use crate::model::settings::Settings;
use crate::model::{Change, Entity, Gpu, ProcessId, Table, Tick};

/// How long a driver may take to start: without persistence mode NVIDIA's wakes all GPUs up.
const STARTUP: Duration = Duration::from_secs(15);

/// All drivers that have GPUs here.
pub(super) struct GpuCollector {
    wanted: Option<Vec<String>>,
    visible: Option<Visible>,
    interval: Duration,
    /// Nothing before the first tick.
    drivers: Option<Vec<DriverState>>,
    /// All devices that were reported, until it is known which selectors match none.
    devices: Vec<Gpu>,
    open_files: OpenFiles,
    last_tick: Option<Duration>,
    worker: fn(OpenBackend) -> Worker,
}

impl GpuCollector {
    pub(super) fn new(settings: &Settings) -> GpuCollector {
        GpuCollector {
            wanted: settings.gpus.clone(),
            visible: settings.visible_gpus.clone(),
            interval: settings.interval,
            drivers: None,
            devices: Vec::new(),
            open_files: OpenFiles::default(),
            last_tick: None,
            worker: Worker::new,
        }
    }

    /// Polls in the tick itself, so that a test knows what is read.
    #[cfg(test)]
    pub(super) fn at_once(settings: &Settings) -> GpuCollector {
        GpuCollector { worker: Worker::at_once, ..GpuCollector::new(settings) }
    }

    fn start(&self, host: &Host, now: Duration) -> Vec<DriverState> {
        let drivers = loaded(host, self.wanted.as_deref(), self.visible.as_ref()).into_iter();
        drivers.map(|driver| DriverState::new(driver, self.worker, now)).collect()
    }

    /// The selectors that match no device, once all devices were reported.
    fn unmatched(&mut self) -> Option<String> {
        if self.drivers.iter().flatten().any(|driver| !driver.has_reported) {
            return None;
        }
        self.wanted.take().and_then(|wanted| unmatched(&wanted, &self.devices))
    }
}

impl Collector for GpuCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        // The tick's time, not that of this call: readers subtract the age from the tick's time.
        let now = tick.moment();
        if self.drivers.is_none() {
            self.drivers = Some(self.start(host, now));
        }
        // At the start of a run ticks are closer together than the interval.
        let elapsed = self.last_tick.replace(now).map(|before| now.saturating_sub(before));
        let next_tick = elapsed.map_or(self.interval, |elapsed| elapsed.min(self.interval));
        let needs_files = self.drivers.iter().flatten().any(|driver| driver.needs_open_files);
        let changed = if needs_files { self.open_files.changed(host, tick) } else { Vec::new() };
        let mut problems = Vec::new();
        for driver in self.drivers.iter_mut().flatten() {
            let changed = if driver.needs_open_files { &*changed } else { &[] };
            self.devices.extend(driver.take(now, next_tick, changed, tick, &mut problems));
            driver.put_rows(host, now, self.interval, tick, &mut problems);
        }
        problems.extend(self.unmatched());
        let drivers = self.drivers.get_or_insert_default();
        drivers.retain(|driver| !driver.has_ended);
        match problems {
            problems if drivers.is_empty() => Err(Fault::Retire(problems.join("; "))),
            problems if problems.is_empty() => Ok(()),
            problems => Err(Fault::Skip(problems.join("; "))),
        }
    }
}

/// One driver, and its newest poll.
struct DriverState {
    name: &'static str,
    needs_open_files: bool,
    worker: Worker,
    started: Duration,
    newest: Option<Poll>,
    /// Whether it has reported its devices, or that it will not.
    has_reported: bool,
    has_ended: bool,
    /// The pid namespace of the driver, once it has reported a pid.
    pids: Option<Pids>,
    /// The processes of the driver's pids at the last tick.
    resolved: HashMap<u32, ProcessId>,
    /// When the last poll began that was not too old, and whether it is too old now.
    answered: Duration,
    is_silent: bool,
    buffer: Vec<u8>,
}

impl DriverState {
    fn new(driver: LoadedDriver, worker: fn(OpenBackend) -> Worker, started: Duration) -> Self {
        DriverState {
            name: driver.name,
            needs_open_files: driver.needs_open_files,
            worker: worker(driver.open),
            started,
            newest: None,
            has_reported: false,
            has_ended: false,
            pids: None,
            resolved: HashMap::new(),
            answered: started,
            is_silent: false,
            buffer: Vec::new(),
        }
    }

    /// Takes what is new from the worker, and returns the devices when they are new.
    fn take(
        &mut self,
        now: Duration,
        next_tick: Duration,
        changed: &[ProcessId],
        tick: &mut Tick,
        problems: &mut Vec<String>,
    ) -> Vec<Gpu> {
        let took = self.newest.as_ref().map_or(Duration::ZERO, |newest| newest.took);
        let update = self.worker.take(now, next_tick - lead(took, next_tick), changed);
        if let Some(why) = update.ended {
            (self.has_ended, self.has_reported) = (true, true);
            problems.push(why);
        }
        self.has_reported |= update.devices.is_some();
        if let Some(mut poll) = update.poll {
            let new_devices = std::mem::take(&mut poll.new_devices);
            tick.changes.extend(new_devices.into_iter().map(|gpu| Change::Gpu(Box::new(gpu))));
            problems.append(&mut poll.problems);
            self.newest = Some(poll);
        }
        update.devices.unwrap_or_default()
    }

    /// Adds the rows of the newest poll to the tick, if it is not too old.
    fn put_rows(
        &mut self,
        host: &Host,
        now: Duration,
        interval: Duration,
        tick: &mut Tick,
        problems: &mut Vec<String>,
    ) {
        let name = self.name;
        let Some(newest) = &self.newest else {
            let is_late = now.saturating_sub(self.started) > STARTUP.max(max_age(interval));
            let silent = || format!("the {name} does not answer");
            problems.extend((is_late && !self.has_ended).then(silent));
            return;
        };
        let age = now.saturating_sub(newest.at);
        // A slow driver may take twice as long as the last time before it counts as silent.
        if age > max_age(interval).max(newest.took * 2 + interval) {
            // The devices exist, but none of their values is known.
            for device in &newest.devices {
                tick.put(Entity::Named(device.name), &GpuActivity::default());
            }
            self.is_silent = true;
            let polled = newest.at.saturating_sub(self.started).as_secs_f64();
            problems.push(format!(
                "the {name} does not answer; its last values are too old (read {polled:.1} s \
                 after the first poll began)"
            ));
            return;
        }
        if std::mem::take(&mut self.is_silent) {
            let silent = newest.at.saturating_sub(self.answered).as_secs_f64();
            problems.push(format!(
                "no values for {silent:.1} s: the {name} did not answer; it answers again"
            ));
        }
        self.answered = newest.at;
        let by_driver_pid = |pid: PolledPid| matches!(pid, PolledPid::Driver(..));
        let has_driver_pids = newest.processes.iter().any(|row| by_driver_pid(row.pid));
        let pids = match has_driver_pids {
            true => self.pids.get_or_insert_with(|| Pids::of(&host.proc)),
            false => &mut Pids::Ours,
        };
        let resolved_before = std::mem::take(&mut self.resolved);
        // Processes with a row in this tick need no lookup in /proc.
        let in_tick = match pids {
            Pids::Ours if has_driver_pids => by_pid(tick),
            _ => HashMap::new(),
        };
        for device in &newest.devices {
            let mut unknown = 0;
            for row in newest.processes.iter().filter(|row| row.gpu == device.name) {
                let (pid, at_first) = match row.pid {
                    PolledPid::Resolved(id) => {
                        tick.put(Entity::OnGpu(device.name, id), &row.share);
                        continue;
                    }
                    PolledPid::Driver(pid, at_first) => (pid, at_first),
                };
                let has_exited = !row.coverage.is_present;
                let find = || pids.resolve(&host.proc, pid, &mut self.buffer);
                let found = in_tick.get(&pid).copied().or_else(find);
                // After an exit the pid may be another process's.
                match if has_exited { at_first } else { found.or(at_first) } {
                    Some(id) => {
                        self.resolved.insert(pid, id);
                        tick.put(Entity::OnGpu(device.name, id), &row.share);
                    }
                    None => match resolved_before.get(&pid) {
                        // It has exited since the poll.
                        Some(id) => drop(self.resolved.insert(pid, *id)),
                        None => unknown += u64::from(!has_exited),
                    },
                }
            }
            put_device(tick, device, age, unknown);
        }
        if let Pids::Foreign(why) = pids {
            problems.push((*why).to_owned());
        }
    }
}

/// The processes of the run that have a row in a tick.
fn by_pid(tick: &Tick) -> HashMap<u32, ProcessId> {
    let entities = tick.table(Scope::Process).map(Table::entities).unwrap_or_default();
    let ids = entities.iter().filter_map(|entity| match entity {
        Entity::Process(id) => Some((id.pid, *id)),
        _ => None,
    });
    ids.collect()
}

fn put_device(tick: &mut Tick, device: &DeviceRows, age: Duration, unknown: u64) {
    let activity = GpuActivity {
        age: Some(age.as_secs_f64()),
        processes_unknown: device
            .activity
            .processes
            .map(|_| unknown + device.activity.processes_unknown.unwrap_or(0)),
        ..device.activity
    };
    DeviceRows { activity, ..*device }.put(tick);
}

/// How long before a tick the poll begins, so that it has just finished at the tick.
fn lead(took: Duration, interval: Duration) -> Duration {
    (took * 2 + Duration::from_millis(2)).min(interval / 2)
}

/// How old a poll may be.
fn max_age(interval: Duration) -> Duration {
    (interval * 3).max(Duration::from_secs(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn driver_is_polled_shortly_before_a_tick() {
        let (ms, second) = (Duration::from_millis, Duration::from_secs(1));
        assert_eq!(lead(ms(4), second), ms(10));
        assert_eq!(lead(second, second), ms(500));
        assert_eq!(lead(ms(4), ms(1)), Duration::from_micros(500));
        assert_eq!((max_age(ms(10)), max_age(second)), (ms(2000), ms(3000)));
    }
}
