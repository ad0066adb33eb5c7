//! How long somebody had to wait for CPU, memory or storage (pressure stall information).
//!
//! Source: `/proc/pressure/{cpu,memory,io}` since Linux 4.20, readable by everybody. They
//! are of the whole machine, also in a container.
//!
//! What surprised us: some distributions build it in and leave it off; then the files are
//! there and reading them says "Operation not supported". For a whole machine `full` of
//! the CPU is always zero, so it is left out.

use super::{Collector, Fault, Probe, Source, group, malformed, readable};
use crate::catalog::metrics;
use crate::host::{Host, Kept};
use crate::parse::pressure;
use crate::sample::{Entity, Tick};

metrics! {
    /// Time in which tasks of the machine were held up, since boot.
    pub struct NodePressure in Node / "pressure", "Pressure" {
        /// Time in which at least one task waited for a CPU.
        cpu_some: Counter f64 Elapsed, "Some wait for a CPU", from "/proc/pressure/cpu some";
        /// Time in which at least one task waited for memory.
        memory_some: Counter f64 Elapsed, "Some wait for memory", from "/proc/pressure/memory some";
        /// Time in which all tasks that had work waited for memory.
        memory_full: Counter f64 Elapsed, "All wait for memory", from "/proc/pressure/memory full";
        /// Time in which at least one task waited for storage.
        io_some: Counter f64 Elapsed, "Some wait for storage", from "/proc/pressure/io some";
        /// Time in which all tasks that had work waited for storage.
        io_full: Counter f64 Elapsed, "All wait for storage", from "/proc/pressure/io full";
    }
}

pub(super) const SOURCE: Source = Source {
    name: "pressure",
    about: "time in which tasks waited for CPU, memory or storage",
    groups: &[group::<NodePressure>()],
    probe,
    collector: Some(|_| Box::new(Stalls::new())),
    on_request: false,
    everywhere: false,
    descriptors: 3,
};

fn probe(host: &Host) -> Probe {
    match host.proc.read(c"pressure/cpu", &mut Vec::new()) {
        Err(error) if error.errno() == Some(libc::EOPNOTSUPP) => Probe::Denied {
            why: "the kernel was started without it".to_owned(),
            hint: "start the kernel with psi=1".to_owned(),
        },
        _ => readable(&host.proc, c"pressure/cpu"),
    }
}

const FILES: [&std::ffi::CStr; 3] = [c"pressure/cpu", c"pressure/memory", c"pressure/io"];

struct Stalls {
    files: [Kept; 3],
    buffer: Vec<u8>,
}

impl Stalls {
    fn new() -> Stalls {
        Stalls { files: [Kept::always(), Kept::always(), Kept::always()], buffer: Vec::new() }
    }
}

impl Collector for Stalls {
    fn sample(&mut self, host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let (mut totals, mut outcome) = ([(None, None); 3], Ok(()));
        for ((kept, path), total) in self.files.iter_mut().zip(FILES).zip(&mut totals) {
            let read = kept.read(&host.proc, || path, &mut self.buffer).map_err(Fault::from);
            let read = read.and_then(|b| pressure::parse(b).map_err(malformed(&host.proc, path)));
            match read {
                Ok(waited) => *total = (Some(waited.some), waited.full),
                // The others are none the worse for it.
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
            |word, total| format!("{word} avg10=0.00 avg60=0.00 avg300=0.00 total={total}\n");
        line("some", some) + &line("full", full)
    }

    fn look(host: &Host) -> (NodePressure, Result<(), Fault>) {
        let mut tick = Tick::new(&[NodePressure::METRICS]);
        let outcome = Stalls::new().sample(host, &mut tick);
        (tick.table(Scope::Node).unwrap().get(0), outcome)
    }

    #[test]
    fn microseconds_become_seconds() {
        let fake = FakeHost::new()
            .proc("pressure/cpu", &file(1_500_000, 0))
            .proc("pressure/memory", &file(20, 10))
            .proc("pressure/io", &file(3_000_000, 2_000_000));
        let (row, outcome) = look(&fake.host());
        outcome.unwrap();
        assert_eq!((row.cpu_some, row.memory_full), (Some(1.5), Some(1e-5)));
        assert_eq!((row.io_some, row.io_full), (Some(3.0), Some(2.0)));
        assert!(matches!(probe(&fake.host()), Probe::Ready));
    }

    #[test]
    fn garbage_and_a_missing_file_cost_their_values_only() {
        let fake = FakeHost::new()
            .proc("pressure/cpu", &file(1_500_000, 0))
            .proc("pressure/memory", "some of it\n");
        let (row, outcome) = look(&fake.host());
        let expected = NodePressure { cpu_some: Some(1.5), ..NodePressure::default() };
        assert_eq!(row, expected);
        assert!(matches!(outcome, Err(Fault::Skip(_))));
        assert!(matches!(probe(&FakeHost::new().host()), Probe::Absent { .. }));
    }
}
