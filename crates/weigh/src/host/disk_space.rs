//! Free space on the file system of the working directory.
//!
//! Source: fstatfs(2) of the working directory. A remote file system may never answer, so remote
//! ones are recognised first.

use std::os::fd::OwnedFd;

use rustix::fs::{Mode, OFlags, StatVfsMountFlags};

/// The working directory as it was when weigh started.
#[derive(Debug)]
pub struct WorkingDirectory(OwnedFd);

/// Size and free space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Total bytes.
    pub total: u64,
    /// Bytes available to users other than root.
    pub available: u64,
    /// Total and available inodes; not every file system has such a limit.
    pub files: Option<(u64, u64)>,
}

/// Magic numbers of file systems served by another machine or program (statfs(2), and their own
/// sources).
const REMOTE: [(u32, &str); 10] = [
    (0x6969, "NFS"),
    (0xff53_4d42, "CIFS"),
    (0xfe53_4d42, "SMB"),
    (0x0bd0_0bd0, "Lustre"),
    (0x00c3_6400, "Ceph"),
    (0x0102_1997, "9p"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x6573_5546, "FUSE"),
    (0x5346_414f, "AFS"),
];

impl WorkingDirectory {
    /// Opens it.
    pub fn open() -> std::io::Result<WorkingDirectory> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(WorkingDirectory(rustix::fs::open(".", flags, Mode::empty())?))
    }

    /// The kind of its file system, when another machine or program serves it.
    pub fn served_by(&self) -> std::io::Result<Option<&'static str>> {
        let kind = rustix::fs::fstatfs(&self.0)?.f_type as u32;
        Ok(REMOTE.iter().find(|(number, _)| *number == kind).map(|(_, name)| *name))
    }

    /// Whether its file system is mounted read-only.
    pub fn is_read_only(&self) -> std::io::Result<bool> {
        Ok(rustix::fs::fstatvfs(&self.0)?.f_flag.contains(StatVfsMountFlags::RDONLY))
    }

    /// Size and free space of its file system.
    pub fn space(&self) -> std::io::Result<DiskSpace> {
        let found = rustix::fs::fstatvfs(&self.0)?;
        Ok(DiskSpace {
            total: found.f_blocks.saturating_mul(found.f_frsize),
            available: found.f_bavail.saturating_mul(found.f_frsize),
            files: (found.f_files > 0).then_some((found.f_files, found.f_favail)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_space_does_not_exceed_total() {
        let space = WorkingDirectory::open().unwrap().space().unwrap();
        assert!(space.total > 0 && space.available <= space.total, "{space:?}");
        assert!(space.files.is_none_or(|(total, available)| available <= total), "{space:?}");
    }
}
