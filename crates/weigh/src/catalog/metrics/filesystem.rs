//! Free space of the working directory.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// The file system of the directory that weigh was started in.
    pub struct FileSystem in Node / "filesystem", "File system of the working directory" {
        /// Size of the file system.
        total: Gauge u64 Bytes, "Total", from "statvfs f_blocks";
        /// Free space available to users.
        available: Gauge u64 Bytes, "Available", from "statvfs f_bavail";
        /// Total inodes; not every file system has such a limit.
        files: Gauge u64 One, "Inodes", from "statvfs f_files";
        /// Available inodes.
        files_available: Gauge u64 One, "Available inodes", from "statvfs f_favail";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Filesystem,
    name: "filesystem",
    about: "free space on the file system of the working directory",
    groups: &[FileSystem::METRICS],
    on_request: false,
    everywhere: false,
};
