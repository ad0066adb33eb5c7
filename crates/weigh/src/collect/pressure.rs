//! How long tasks stalled on CPU, memory or I/O (pressure stall information).
//!
//! Source: `/proc/pressure/{cpu,memory,io}` since Linux 4.20, readable by every user. They are of
//! the whole machine, also in a container.
//!
//! What surprised us: some distributions build it in and disable it; then the files exist and
//! reading them fails with "Operation not supported". For a whole machine `full` of the CPU is
//! always zero, so it is left out.

use super::{Collector, Context, Fault, Probe, Provider, malformed, unreadable};
use crate::catalog::SourceId;
use crate::catalog::metrics::NodePressure;
use crate::host::{CachedFile, Host};
use crate::model::{Entity, Tick};
use crate::parse::pressure;

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Pressure,
    probe,
    collector: Some(|_| Box::new(PressureCollector::new())),
    descriptors: 3,
};

fn probe(host: &Host) -> Probe {
    match host.proc.read(c"pressure/cpu", &mut Vec::new()) {
        Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => Probe::Denied {
            why: "the kernel was started without it".to_owned(),
            hint: "start the kernel with psi=1".to_owned(),
        },
        Err(error) => unreadable(&error),
        Ok(_) => Probe::Ready,
    }
}

const FILES: [&std::ffi::CStr; 3] = [c"pressure/cpu", c"pressure/memory", c"pressure/io"];

struct PressureCollector {
    files: [CachedFile; 3],
    buffer: Vec<u8>,
}

impl PressureCollector {
    fn new() -> PressureCollector {
        PressureCollector {
            files: [CachedFile::always(), CachedFile::always(), CachedFile::always()],
            buffer: Vec::new(),
        }
    }
}

impl Collector for PressureCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let (mut totals, mut outcome) = ([(None, None); 3], Ok(()));
        for ((file, path), total) in self.files.iter_mut().zip(FILES).zip(&mut totals) {
            let read = file.read(&host.proc, || path, &mut self.buffer).map_err(Fault::from);
            let read = read.and_then(|b| pressure::parse(b).map_err(malformed(&host.proc, path)));
            match read {
                Ok(stalled) => *total = (Some(stalled.some), stalled.full),
                // The other files are still read.
                Err(fault) => outcome = Err(Fault::Skip(fault.to_string())),
            }
        }
        let seconds = |microseconds: Option<u64>| microseconds.map(|time| time as f64 / 1e6);
        let [(cpu, _), (memory, memory_full), (io, io_full)] = totals;
        let row = NodePressure {
            cpu_some: seconds(cpu),
            memory_some: seconds(memory),
            memory_full: seconds(memory_full),
            io_some: seconds(io),
            io_full: seconds(io_full),
        };
        tick.put(Entity::Single, &row);
        outcome
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, Scope};
    use crate::host::fake::FakeHost;

    fn file(some: u64, full: u64) -> String {
        let line =
            |kind, total| format!("{kind} avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n");
        line("some", some) + &line("full", full)
    }

    fn sampled(host: &Host) -> (NodePressure, Result<(), Fault>) {
        let mut tick = Tick::new(&[NodePressure::METRICS]);
        let outcome = PressureCollector::new().sample(&Context::of(host), &mut tick);
        (tick.table(Scope::Node).unwrap().get(0), outcome)
    }

    #[test]
    fn microseconds_become_seconds() {
        let fake = FakeHost::new()
            .proc("pressure/cpu", &file(1_500_000, 0))
            .proc("pressure/memory", &file(20, 10))
            .proc("pressure/io", &file(3_000_000, 2_000_000));
        let (row, outcome) = sampled(&fake.host());
        outcome.unwrap();
        assert_eq!((row.cpu_some, row.memory_full), (Some(1.5), Some(1e-5)));
        assert_eq!((row.io_some, row.io_full), (Some(3.0), Some(2.0)));
        assert!(matches!(probe(&fake.host()), Probe::Ready));
    }

    #[test]
    fn malformed_or_missing_file_loses_only_its_values() {
        let fake = FakeHost::new()
            .proc("pressure/cpu", &file(1_500_000, 0))
            .proc("pressure/memory", "some of it\n");
        let (row, outcome) = sampled(&fake.host());
        let expected = NodePressure { cpu_some: Some(1.5), ..NodePressure::default() };
        assert_eq!(row, expected);
        assert!(matches!(outcome, Err(Fault::Skip(_))));
        assert!(matches!(probe(&FakeHost::new().host()), Probe::Absent { .. }));
    }
}
