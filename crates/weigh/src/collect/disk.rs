//! I/O of disks, one row for each whole disk.
//!
//! Source: `/proc/diskstats`, readable by every user. `/sys/block` distinguishes, once for each
//! name, disks from partitions.
//!
//! What surprised us: volumes (`dm-0`) and arrays (`md0`) are disks here, and so are the disks
//! below them, so a byte may be counted twice. A busy disk need not be saturated: many serve
//! several requests at once.

use std::ffi::CString;

use super::{Collector, Context, Fault, Probe, Provider, malformed, unreadable};
use crate::catalog::SourceId;
use crate::catalog::metrics::DiskIo;
use crate::host::{CachedFile, Host};
use crate::model::{Entity, Name, Tick};
use crate::parse::attribute;
use crate::parse::diskstats::{self, BlockDevice};

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Disk,
    probe,
    collector: Some(|_| Box::new(DiskCollector::new())),
    descriptors: 1,
};

fn probe(host: &Host) -> Probe {
    let mut buffer = Vec::new();
    let bytes = match host.proc.read(c"diskstats", &mut buffer) {
        Ok(bytes) => bytes,
        Err(error) => return unreadable(&error),
    };
    let mut disks = diskstats::devices(bytes).flatten();
    if disks.any(|disk| DiskKind::of(host, disk.name).is_counted(&disk)) {
        Probe::Ready
    } else {
        Probe::Absent { why: "there is no disk in /proc/diskstats".to_owned() }
    }
}

/// The kind of a device in `/proc/diskstats`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DiskKind {
    /// A disk.
    Disk,
    /// A device without medium when it was first seen.
    Empty,
    /// A partition, or no disk.
    Other,
}

impl DiskKind {
    fn of(host: &Host, name: &[u8]) -> DiskKind {
        // They are files and memory, not disks.
        if name.starts_with(b"loop") || name.starts_with(b"ram") {
            return DiskKind::Other;
        }
        // A slash in a name is a `!` there.
        let plain: Vec<u8> = name.iter().map(|b| if *b == b'/' { b'!' } else { *b }).collect();
        let at = CString::new([b"block/", &plain[..], b"/size"].concat()).unwrap_or_default();
        let mut buffer = Vec::new();
        match host.sys.read(&at, &mut buffer).ok().map(attribute::number) {
            None => DiskKind::Other,
            Some(Ok(0)) => DiskKind::Empty,
            Some(_) => DiskKind::Disk,
        }
    }

    /// A device that was never used (nbd0 to nbd15) has no row.
    fn is_counted(self, device: &BlockDevice<'_>) -> bool {
        match self {
            DiskKind::Disk => true,
            DiskKind::Empty => device.was_used(),
            DiskKind::Other => false,
        }
    }
}

struct DiskCollector {
    diskstats: CachedFile,
    buffer: Vec<u8>,
    /// Every known name, in the order of the file.
    known: Vec<(Name, DiskKind)>,
}

impl DiskCollector {
    fn new() -> DiskCollector {
        DiskCollector { diskstats: CachedFile::always(), buffer: Vec::new(), known: Vec::new() }
    }
}

impl Collector for DiskCollector {
    fn sample(&mut self, context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let host = context.host;
        let bytes = self.diskstats.read(&host.proc, || c"diskstats", &mut self.buffer)?;
        let mut outcome = Ok(());
        for (line, disk) in diskstats::devices(bytes).enumerate() {
            match disk {
                Ok(disk) => {
                    let (name, kind) = known(&mut self.known, line, host, disk.name);
                    if kind.is_counted(&disk) {
                        tick.put(Entity::Named(name), &row(&disk));
                    }
                }
                Err(wrong) => outcome = Err(malformed(&host.proc, c"diskstats")(wrong)),
            }
        }
        outcome
    }
}

/// The kind of a name; most are at the same line as in the last read.
fn known(
    known: &mut Vec<(Name, DiskKind)>,
    line: usize,
    host: &Host,
    name: &[u8],
) -> (Name, DiskKind) {
    let short = Name::new(name);
    let here = known.get(line).filter(|(known, _)| *known == short);
    let found = here.or_else(|| known.iter().find(|(known, _)| *known == short)).copied();
    found.unwrap_or_else(|| {
        let new = (short, DiskKind::of(host, name));
        known.push(new);
        new
    })
}

fn row(disk: &BlockDevice<'_>) -> DiskIo {
    let seconds = |milliseconds: u64| Some(milliseconds as f64 / 1e3);
    DiskIo {
        read: Some(disk.read_bytes),
        written: Some(disk.written_bytes),
        reads: Some(disk.reads),
        writes: Some(disk.writes),
        read_time: seconds(disk.read_milliseconds),
        write_time: seconds(disk.write_milliseconds),
        busy: seconds(disk.busy_milliseconds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{Row, Scope};
    use crate::host::fake::FakeHost;

    const NVME: &str = "259 0 nvme0n1 10 0 80 5 20 0 160 7 0 1500 12\n";
    const PART: &str = "259 1 nvme0n1p1 9 0 80 5 20 0 160 7 0 1500 12\n";
    const LOOP: &str = "7 0 loop0 9 0 80 5 20 0 160 7 0 1500 12\n";
    const SLOT: &str = "43 0 nbd0 0 0 0 0 0 0 0 0 0 0 0\n";

    fn sampled(
        disks: &mut DiskCollector,
        host: &Host,
    ) -> (Vec<(String, DiskIo)>, Result<(), Fault>) {
        let mut tick = Tick::new(&[DiskIo::METRICS]);
        let outcome = disks.sample(&Context::of(host), &mut tick);
        let table = tick.table(Scope::Disk).unwrap();
        let rows = table.entities().iter().enumerate().map(|(row, entity)| match entity {
            Entity::Named(name) => (name.to_string(), table.get::<DiskIo>(row)),
            other => panic!("{other:?}"),
        });
        (rows.collect(), outcome)
    }

    fn machine(text: &str) -> FakeHost {
        FakeHost::new()
            .proc("diskstats", text)
            .sys("block/nvme0n1/size", "3750748848\n")
            .sys("block/nbd0/size", "0\n")
            .sys("block/loop0/size", "8\n")
            .sys("block/cciss!c0d0/size", "64\n")
    }

    #[test]
    fn partitions_loops_and_empty_devices_have_no_row() {
        let fake = machine(&[LOOP, NVME, PART, SLOT].concat());
        let (rows, outcome) = sampled(&mut DiskCollector::new(), &fake.host());
        outcome.unwrap();
        let [(name, row)] = &rows[..] else { panic!("{rows:?}") };
        assert_eq!(name, "nvme0n1");
        assert_eq!((row.read, row.written), (Some(80 * 512), Some(160 * 512)));
        assert_eq!((row.reads, row.writes, row.busy), (Some(10), Some(20), Some(1.5)));
        assert!(matches!(probe(&fake.host()), Probe::Ready));
    }

    #[test]
    fn device_has_a_row_once_it_was_used_and_none_when_removed() {
        let fake = machine(&[NVME, SLOT].concat());
        let (host, mut disks) = (fake.host(), DiskCollector::new());
        sampled(&mut disks, &host).1.unwrap();
        fake.set_proc("diskstats", "43 0 nbd0 1 0 8 0 0 0 0 0 0 0 0\n");
        let (rows, _) = sampled(&mut disks, &host);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].0, "nbd0");
    }

    #[test]
    fn name_with_a_slash_is_found() {
        let fake = machine("104 0 cciss/c0d0 1 0 8 0 0 0 0 0 0 0 0\n");
        assert_eq!(sampled(&mut DiskCollector::new(), &fake.host()).0[0].0, "cciss/c0d0");
    }

    #[test]
    fn malformed_line_loses_its_disk_and_is_reported() {
        let fake = machine(&["8 0 sda what\n", NVME].concat());
        let (rows, outcome) = sampled(&mut DiskCollector::new(), &fake.host());
        assert_eq!(rows.len(), 1);
        assert!(matches!(outcome, Err(Fault::Skip(why)) if why.contains("diskstats")));
    }

    #[test]
    fn machine_without_disks_is_absent() {
        let fake = machine(LOOP);
        assert!(matches!(probe(&fake.host()), Probe::Absent { why } if why.contains("no disk")));
        assert!(matches!(probe(&FakeHost::new().host()), Probe::Absent { .. }));
    }
}
