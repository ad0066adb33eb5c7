//! Free space of the working directory.

use crate::catalog::{Row, Source, SourceId, metrics};

metrics! {
    /// The file system of the directory that weigh was started in.
    pub struct FileSystem in Node / "filesystem", "File system of the working directory" {
        /// Room there is.
        total: Gauge u64 Bytes, "Total", from "statvfs f_blocks";
        /// Room that is left.
        available: Gauge u64 Bytes, "Available", from "statvfs f_bavail";
        /// Files there can be; not every file system has such a limit.
        files: Gauge u64 One, "Files there can be", from "statvfs f_files";
        /// Files that can still be made.
        files_available: Gauge u64 One, "Files that can be made", from "statvfs f_favail";
    }
}

/// What `--collect` and `--skip` call this source.
pub const SOURCE: Source = Source {
    id: SourceId::Filesystem,
    name: "filesystem",
    about: "room on the file system of the working directory",
    groups: &[FileSystem::METRICS],
    on_request: false,
    everywhere: false,
};
