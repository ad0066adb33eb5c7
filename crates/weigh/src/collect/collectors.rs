//! All collectors of a run: the order of their samples, and what happens when one fails.

use super::cgroup::CgroupCollector;
use super::packets::Packets;
use super::perf::RunCounters;
use super::processes::ProcessCollector;
use super::sockets::Sockets;
use super::task_clock::RunClock;
use super::{BEFORE_EXEC, Collector, Context, Fault, provider};
use crate::catalog::{Source, SourceId};
use crate::host::Host;
use crate::model::settings::Settings;
use crate::model::{FaultSource, Tick};

/// The collectors of a run; those that have retired are gone.
///
/// The named ones need to know the run before they can begin, and some are used between ticks, too.
#[derive(Default)]
pub struct Collectors {
    /// The CPU time of the run, which is also read at its end.
    pub task_clock: Option<RunClock>,
    /// The events of the run, which are also read at its end.
    pub counters: Option<RunCounters>,
    /// The packets of the run.
    pub packets: Option<Packets>,
    /// The counters of the run's cgroup.
    pub cgroup: Option<CgroupCollector>,
    /// The processes of the run, which also handle exits and events between ticks.
    pub processes: Option<ProcessCollector>,
    /// The connections of the run.
    pub sockets: Option<Sockets>,
    /// Those of the machine and of weigh itself, in the order of the catalogue.
    machine: Vec<(SourceId, Box<dyn Collector>)>,
    faults: Vec<(FaultSource, String)>,
}

impl Collectors {
    /// Those of these sources that need no information about the run.
    pub fn new<'s>(
        settings: &Settings,
        sources: impl IntoIterator<Item = &'s Source>,
    ) -> Collectors {
        let made = |source: &Source| Some((source.id, provider(source.id)?.collector?(settings)));
        let machine = sources.into_iter().filter_map(made).collect();
        Collectors { machine, ..Collectors::default() }
    }

    /// Puts the current values of all sources into the tick.
    pub fn sample(&mut self, host: &Host, tick: &mut Tick) {
        let mut pass = Pass { context: Context::of(host), tick, faults: &mut self.faults };
        // What counts the whole run comes first, closest to the time of the tick, because rates are
        // computed from it; the task clock before the others, because it is the most exact.
        pass.sample(SourceId::TaskClock, &mut self.task_clock);
        pass.sample(SourceId::Perf, &mut self.counters);
        pass.sample(SourceId::Packets, &mut self.packets);
        pass.sample(SourceId::Cgroup, &mut self.cgroup);
        pass.sample(SourceId::Process, &mut self.processes);
        if let (Some(counters), Some(processes)) = (&mut self.counters, &self.processes)
            && counters.follows
            && let Err(why) = counters.follow(host, processes.alive())
        {
            pass.faults.push((SourceId::Perf.into(), why));
            self.counters = None;
        }
        // After the processes: GPUs need their rows and changes of this tick.
        pass.context.processes = self.processes.as_ref();
        pass.sample_machine(&mut self.machine, |_| true);
        // After the machine's network, whose row shows whether there was any traffic.
        pass.sample(SourceId::Sockets, &mut self.sockets);
    }

    /// Puts the machine's counters into the tick, before a command starts.
    pub fn sample_before_exec(&mut self, host: &Host, tick: &mut Tick) {
        let mut pass = Pass { context: Context::of(host), tick, faults: &mut self.faults };
        pass.sample_machine(&mut self.machine, |source| BEFORE_EXEC.contains(&source));
    }

    /// Puts the final values of the run's connections into the tick.
    pub fn finish_sockets(&mut self, host: &Host, tick: &mut Tick) {
        let context = Context { host, processes: self.processes.as_ref() };
        let mut pass = Pass { context, tick, faults: &mut self.faults };
        pass.sample_by(Sockets::finish, SourceId::Sockets, &mut self.sockets);
        self.sockets = None;
    }

    /// Puts the final counts of the run's events into the tick.
    pub fn finish_counters(&mut self, host: &Host, tick: &mut Tick) {
        let mut pass = Pass { context: Context::of(host), tick, faults: &mut self.faults };
        pass.sample(SourceId::Perf, &mut self.counters);
        self.counters = None;
    }

    /// What could not be measured since the last call, and why.
    pub fn take_faults(&mut self) -> Vec<(FaultSource, String)> {
        std::mem::take(&mut self.faults)
    }
}

/// One pass over collectors.
struct Pass<'a> {
    context: Context<'a>,
    tick: &'a mut Tick,
    faults: &'a mut Vec<(FaultSource, String)>,
}

impl Pass<'_> {
    fn sample<C: Collector>(&mut self, source: SourceId, collector: &mut Option<C>) {
        self.sample_by(C::sample, source, collector);
    }

    fn sample_machine(
        &mut self,
        machine: &mut Vec<(SourceId, Box<dyn Collector>)>,
        is_wanted: impl Fn(SourceId) -> bool,
    ) {
        machine.retain_mut(|(source, collector)| {
            !is_wanted(*source)
                || self.sample_and_report(<dyn Collector>::sample, *source, &mut **collector)
        });
    }

    fn sample_by<C: Collector>(
        &mut self,
        sample: Sample<C>,
        source: SourceId,
        collector: &mut Option<C>,
    ) {
        if let Some(sampled) = collector
            && !self.sample_and_report(sample, source, sampled)
        {
            *collector = None;
        }
    }

    /// Samples a collector and notes what it could not read; returns whether it goes on.
    fn sample_and_report<C: Collector + ?Sized>(
        &mut self,
        sample: Sample<C>,
        source: SourceId,
        collector: &mut C,
    ) -> bool {
        let sampled = sample(collector, &self.context, self.tick);
        if let Some(missing) = collector.missing() {
            self.faults.extend(missing.report());
        }
        let Err(fault) = sampled else { return true };
        self.faults.push((source.into(), fault.to_string()));
        matches!(fault, Fault::Skip(_))
    }
}

/// How a collector puts its values into a tick.
type Sample<C> = fn(&mut C, &Context<'_>, &mut Tick) -> Result<(), Fault>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::missing::MissingParts;
    use crate::host::fake::FakeHost;

    /// Fails with each of these faults, one a tick.
    struct Failing {
        faults: Vec<Option<Fault>>,
        missing: MissingParts,
    }

    impl Collector for Failing {
        fn sample(&mut self, _context: &Context<'_>, _tick: &mut Tick) -> Result<(), Fault> {
            self.missing.add("part", SourceId::Disk, || "part".to_owned());
            self.faults.remove(0).map_or(Ok(()), Err)
        }

        fn missing(&mut self) -> Option<&mut MissingParts> {
            Some(&mut self.missing)
        }
    }

    fn failing(source: SourceId, faults: Vec<Option<Fault>>) -> Collectors {
        let collector = Failing { faults, missing: MissingParts::default() };
        let machine: Vec<(_, Box<dyn Collector>)> = vec![(source, Box::new(collector))];
        Collectors { machine, ..Collectors::default() }
    }

    fn faults(collectors: &mut Collectors) -> Vec<String> {
        collectors.sample(&FakeHost::new().host(), &mut Tick::new(&[]));
        let faults = collectors.take_faults().into_iter();
        faults.map(|(source, why)| format!("{source}: {why}")).collect()
    }

    #[test]
    fn collector_goes_on_after_a_skipped_tick_and_its_missing_part_is_reported_once() {
        let mut collectors =
            failing(SourceId::Disk, vec![Some(Fault::Skip("busy".to_owned())), None]);
        assert_eq!(faults(&mut collectors), ["disk: part", "disk: busy"]);
        assert_eq!(faults(&mut collectors), [""; 0]);
        assert_eq!(collectors.machine.len(), 1);
    }

    #[test]
    fn retired_collector_is_not_sampled_again() {
        let mut collectors = failing(SourceId::Disk, vec![Some(Fault::Retire("gone".to_owned()))]);
        assert_eq!(faults(&mut collectors), ["disk: part", "disk: gone"]);
        assert_eq!(faults(&mut collectors), [""; 0]);
        assert!(collectors.machine.is_empty());
    }

    #[test]
    fn counters_of_the_machine_are_sampled_before_exec_and_gauges_are_not() {
        for (source, is_sampled) in [(SourceId::Disk, true), (SourceId::Memory, false)] {
            let mut collectors = failing(source, vec![Some(Fault::Skip("busy".to_owned()))]);
            collectors.sample_before_exec(&FakeHost::new().host(), &mut Tick::new(&[]));
            assert_eq!(!collectors.take_faults().is_empty(), is_sampled, "{source:?}");
        }
    }
}
