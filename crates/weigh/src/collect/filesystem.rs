//! Free space on the file system of the working directory.
//!
//! Source: statvfs(3), for every user. A file system served by another machine or program (NFS,
//! Lustre, FUSE) is not queried: the call may hang, and weigh with it.

use super::{Collector, Context, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::FileSystem;
use crate::host::disk_space::WorkingDirectory;
use crate::model::{Entity, Tick};

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Filesystem,
    probe: |_| probe(),
    collector: Some(|_| Box::new(FilesystemCollector(None))),
    descriptors: 0,
};

fn probe() -> Probe {
    let checked = WorkingDirectory::open().and_then(|directory| match directory.served_by()? {
        None => Ok((None, directory.is_read_only()?)),
        remote => Ok((remote, false)),
    });
    match checked {
        Ok((None, false)) => Probe::Ready,
        Ok((None, true)) => {
            Probe::Absent { why: "the working directory is on a read-only file system".to_owned() }
        }
        Ok((Some(kind), _)) => Probe::Absent {
            why: format!("the working directory is on {kind}, where the query may block"),
        },
        Err(error) => Probe::Absent { why: format!("the working directory: {error}") },
    }
}

struct FilesystemCollector(Option<WorkingDirectory>);

impl Collector for FilesystemCollector {
    fn sample(&mut self, _context: &Context<'_>, tick: &mut Tick) -> Result<(), Fault> {
        let failed = |error: std::io::Error| Fault::Retire(format!("statvfs: {error}"));
        let directory = match self.0.take() {
            Some(directory) => directory,
            None => WorkingDirectory::open().map_err(failed)?,
        };
        let space = self.0.insert(directory).space().map_err(failed)?;
        let (files, files_available) = space.files.unzip();
        let (total, available) = (Some(space.total), Some(space.available));
        let row = FileSystem { total, available, files, files_available };
        tick.put(Entity::Single, &row);
        Ok(())
    }
}
