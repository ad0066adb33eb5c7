//! Room on the file system of the working directory.
//!
//! Source: statvfs(3), for everybody. A file system that another machine or program serves
//! (NFS, Lustre, FUSE) is not asked: it may take for ever, and weigh with it.

use super::{Collector, Fault, Probe, Provider};
use crate::catalog::SourceId;
use crate::catalog::metrics::FileSystem;
use crate::host::Host;
use crate::host::room::WorkingDirectory;
use crate::model::{Entity, Tick};

pub(super) const PROVIDER: Provider = Provider {
    id: SourceId::Filesystem,
    probe: |_| probe(),
    collector: Some(|_| Box::new(Here(None))),
    descriptors: 0,
};

fn probe() -> Probe {
    let asked = WorkingDirectory::open().and_then(|directory| match directory.served_by()? {
        None => Ok((None, directory.is_read_only()?)),
        far => Ok((far, false)),
    });
    match asked {
        Ok((None, false)) => Probe::Ready,
        Ok((None, true)) => Probe::Absent {
            why: "the working directory is on a file system that nobody can write to".to_owned(),
        },
        Ok((Some(kind), _)) => Probe::Absent {
            why: format!("the working directory is on {kind}, which may keep whoever asks waiting"),
        },
        Err(error) => Probe::Absent { why: format!("the working directory: {error}") },
    }
}

struct Here(Option<WorkingDirectory>);

impl Collector for Here {
    fn sample(&mut self, _host: &Host, tick: &mut Tick) -> Result<(), Fault> {
        let failed = |error: std::io::Error| Fault::Retire(format!("statvfs: {error}"));
        let directory = match self.0.take() {
            Some(directory) => directory,
            None => WorkingDirectory::open().map_err(failed)?,
        };
        let room = self.0.insert(directory).room().map_err(failed)?;
        let (files, files_available) = room.files.unzip();
        let (total, available) = (Some(room.total), Some(room.available));
        let row = FileSystem { total, available, files, files_available };
        tick.put(Entity::Single, &row);
        Ok(())
    }
}
