//! Directories and files of a recording: private to the user, never half written.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::Error;

/// Where recordings go by default.
pub const DEFAULT_DIRECTORY: &str = "weigh-runs";

/// What keeps the default directory out of a repository: git ignores all in it, this file too.
const IGNORE: &str = ".gitignore";

/// The file by which a directory is claimed.
pub(super) const EVENTS: &str = "events.jsonl";

/// The name of a run's directory: its time and its name, safe for every file system.
pub fn directory_name(started: Timestamp, name: &str) -> String {
    let name: String = safe_name(name).chars().take(40).collect();
    format!("{}-{name}", started.strftime("%Y-%m-%dT%H-%M-%S.%3fZ"))
}

/// A name that is safe for every file system, and a part of a path only.
pub fn safe_name(name: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || "._+-".contains(c) { c } else { '_' };
    name.chars().map(safe).collect()
}

/// A directory that belongs to one recording: of several that race for it, one gets it.
#[derive(Debug)]
pub struct Claim {
    /// Which one.
    pub directory: PathBuf,
    /// How many directories had to be created for it.
    pub made: usize,
    /// `events.jsonl`, newly created, until a writer takes it.
    events: Option<File>,
}

impl Drop for Claim {
    /// A recording that did not begin leaves nothing behind.
    fn drop(&mut self) {
        if self.events.is_some() {
            let _ = std::fs::remove_file(self.directory.join(EVENTS));
            remove_empty(&self.directory, self.made);
        }
    }
}

impl Claim {
    /// Claims a directory that is empty or has to be created.
    pub fn of(directory: &Path) -> Result<Claim, Error> {
        let made = create_directory(directory)?;
        Claim::take(directory.to_owned(), made)
    }

    /// Claims a new directory of this name, with a numeric suffix when it already exists.
    pub fn new_in(parent: &Path, name: &str) -> Result<Claim, Error> {
        let (directory, made) = create_new_directory(parent, name)?;
        Claim::take(directory, made)
    }

    /// The file that was created for the claim; its holder also removes it.
    pub(super) fn events(&mut self) -> Option<File> {
        self.events.take()
    }

    fn take(directory: PathBuf, made: usize) -> Result<Claim, Error> {
        match create_file(&directory.join(EVENTS)) {
            Ok(events) => {
                // Where the file system has no locks, [`is_locked`] says nothing.
                let _ = events.try_lock();
                Ok(Claim { directory, made, events: Some(events) })
            }
            Err(Error::File { source, .. })
                if source.kind() == std::io::ErrorKind::AlreadyExists =>
            {
                Err(Error::Occupied { path: directory })
            }
            Err(error) => {
                remove_empty(&directory, made);
                Err(error)
            }
        }
    }
}

/// Creates a directory that only its owner may enter, with its parents.
///
/// An existing one is used when it is empty. Returns how many had to be created.
pub fn create_directory(path: &Path) -> Result<usize, Error> {
    let failed = |source| Error::file(path, source);
    let missing = path
        .ancestors()
        .take_while(|above| !above.as_os_str().is_empty() && !above.exists())
        .count();
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let mut listed = std::fs::read_dir(path).map_err(|source| {
        remove_empty(path, missing);
        failed(source)
    })?;
    match listed.next() {
        None => Ok(missing),
        Some(_) => Err(Error::Occupied { path: path.to_owned() }),
    }
}

/// Creates a directory of this name in another one, with a numeric suffix when it already exists.
///
/// Returns it, and how many directories had to be created.
pub fn create_new_directory(parent: &Path, name: &str) -> Result<(PathBuf, usize), Error> {
    let missing = create_collection(parent)?;
    let mut path = parent.join(name);
    for number in 2.. {
        match DirBuilder::new().mode(0o700).create(&path) {
            Ok(()) => break,
            Err(taken) if taken.kind() == std::io::ErrorKind::AlreadyExists => {
                path = parent.join(format!("{name}-{number}"));
            }
            Err(source) => return Err(Error::file(&path, source)),
        }
    }
    Ok((path, missing + 1))
}

/// Creates a directory for recordings, unless it exists, and keeps it out of a repository. Returns
/// how many had to be created.
fn create_collection(path: &Path) -> Result<usize, Error> {
    let missing = usize::from(!path.exists());
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path).map_err(|source| Error::file(path, source))?;
    if missing > 0 {
        // Recordings are not source code. A directory without it is as good.
        let _ = create_file(&path.join(IGNORE)).and_then(|mut file| {
            file.write_all(b"*\n").map_err(|source| Error::file(path, source))
        });
    }
    Ok(missing)
}

/// Creates a directory that several recorders use, unless one of them has. In the default place the
/// directory around it is as [`create_new_directory`] makes it.
pub fn create_shared_directory(path: &Path) -> Result<(), Error> {
    let parent =
        path.parent().filter(|parent| parent.file_name().is_some_and(|n| n == DEFAULT_DIRECTORY));
    if let Some(parent) = parent {
        create_collection(parent)?;
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(path).map_err(|source| Error::file(path, source))
}

/// Starts writeback of a file, and does not wait for it.
pub fn begin_sync(file: &File) {
    // SAFETY: the descriptor is open; no memory is passed. That it may fail does no harm: it is
    // `fdatasync` that makes sure.
    unsafe { libc::sync_file_range(file.as_raw_fd(), 0, 0, libc::SYNC_FILE_RANGE_WRITE) };
}

/// Opens a regular file for reading: a recording may be untrusted, and a pipe or a device in its
/// place would block forever.
pub fn open_regular(path: &Path) -> Result<File, Error> {
    let failed = |source| Error::file(path, source);
    let file =
        OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)?;
    if file.metadata().map_err(failed)?.is_file() {
        Ok(file)
    } else {
        Err(Error::malformed(path, "not a regular file"))
    }
}

/// Reads a whole file of a sensible size.
pub fn read_regular(path: &Path) -> Result<Vec<u8>, Error> {
    const LARGEST: u64 = 64 << 20;
    let mut bytes = Vec::new();
    let read = open_regular(path)?.take(LARGEST).read_to_end(&mut bytes);
    read.map_err(|source| Error::file(path, source))?;
    Ok(bytes)
}

/// Opens a new file that only its owner may read.
pub fn create_file(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
        .map_err(|source| Error::file(path, source))
}

/// Writes a file under a temporary name first, so that it exists complete or not at all, also
/// after a crash of the machine.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), Error> {
    replace(path, content, |file| file.sync_data()).map(drop)
}

/// The same without waiting for the disk, for a file that can be made again or that the caller
/// syncs: it returns the open file.
pub fn write_unsynced(path: &Path, content: &[u8]) -> Result<File, Error> {
    replace(path, content, |_| Ok(()))
}

fn replace(
    path: &Path,
    content: &[u8],
    sync: impl Fn(&File) -> std::io::Result<()>,
) -> Result<File, Error> {
    let partial = partial_name(path);
    let written = create_file(&partial).and_then(|mut file| {
        let failed = |source| Error::file(&partial, source);
        file.write_all(content).map_err(failed)?;
        sync(&file).map_err(failed)?;
        Ok(file)
    });
    let renamed = written.and_then(|file| {
        std::fs::rename(&partial, path).map_err(|source| Error::file(path, source))?;
        Ok(file)
    });
    if renamed.is_err() {
        // Nothing more can be done about a file that cannot be removed either.
        let _ = std::fs::remove_file(&partial);
    }
    renamed
}

/// The name of a file until it is complete.
pub fn partial_name(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".partial");
    path.with_file_name(name)
}

/// Removes a recording whose command never started, and the directories created for it.
///
/// Only for the holder of the [`Claim`]: everything in the directory is removed.
pub fn discard(directory: &Path, made: usize) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        // Files, and the host's directory; nothing but ours can be in here.
        if std::fs::remove_file(&path).is_err() {
            let _ = std::fs::remove_dir_all(&path);
        }
    }
    remove_empty(directory, made);
}

/// Removes a created directory, and the parents created for it, if they are empty.
fn remove_empty(directory: &Path, made: usize) {
    for above in directory.ancestors().take(made) {
        let mut inside = std::fs::read_dir(above).into_iter().flatten().flatten();
        if above != directory && inside.all(|entry| entry.file_name() == IGNORE) {
            let _ = std::fs::remove_file(above.join(IGNORE));
        }
        // What is left of a run that did not happen is a nuisance at worst.
        let _ = std::fs::remove_dir(above);
    }
}

/// When a file of a recording was last written.
pub fn last_written(recording: &Path) -> Option<std::time::SystemTime> {
    let here = std::fs::read_dir(recording).ok()?.flatten();
    let below = |path: PathBuf| std::fs::read_dir(path).into_iter().flatten().flatten();
    let all = here.flat_map(|entry| below(entry.path()).chain([entry]));
    all.filter_map(|entry| entry.metadata().ok()?.modified().ok()).max()
}

/// Types of file systems that are on other machines, as statfs(2) has them: NFS, Lustre, GPFS,
/// BeeGFS, Ceph, SMB, PanFS, OrangeFS, AFS, GFS2, OCFS2.
const NETWORK: [u32; 12] = [
    NFS,
    0x0bd0_0bd0,
    0x4750_4653,
    0x1983_0326,
    0x00c3_6400,
    0xff53_4d42,
    0xfe53_4d42,
    0xaad7_aaea,
    0x2003_0528,
    0x5346_414f,
    0x0116_1970,
    0x7461_636f,
];
const NFS: u32 = 0x6969;

/// The type of the file system of a directory.
fn kind(directory: &Path) -> Option<u32> {
    // The kernel's type has another width and sign on each architecture; all types have 32 bits.
    Some(rustix::fs::statfs(directory).ok()?.f_type as u32)
}

/// Whether a directory is on another machine: a write is a message to a server that many use.
pub fn is_on_network(directory: &Path) -> bool {
    kind(directory).is_some_and(|kind| NETWORK.contains(&kind))
}

/// When the file server thinks it is: a file that is written and synced now has its time of change
/// by the server's clock. `None` where the file system is no NFS: others take that time from the
/// client.
pub fn server_time(directory: &Path) -> Option<std::time::SystemTime> {
    kind(directory).filter(|kind| *kind == NFS)?;
    let path = directory.join("clock.partial");
    let mut file = create_file(&path).ok()?;
    let changed = file.write_all(b"\n").and_then(|()| file.sync_all());
    let changed = changed.and_then(|()| file.metadata()?.modified());
    // Nothing reads it; one that stays is a nuisance at worst.
    let _ = std::fs::remove_file(&path);
    changed.ok()
}

/// The recordings in a directory, newest first.
pub fn recordings(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let listed = std::fs::read_dir(directory).map_err(|source| Error::file(directory, source))?;
    let mut found: Vec<PathBuf> = listed
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| is_recording(path))
        .collect();
    // Names begin with the time.
    found.sort_unstable_by(|one, other| other.file_name().cmp(&one.file_name()));
    Ok(found)
}

/// Whether a writer has this recording open: it holds a lock from its claim to its end. The kernel
/// releases the lock of a writer that was killed.
pub fn is_locked(directory: &Path) -> bool {
    let events = open_regular(&directory.join(EVENTS));
    let held = |file: File| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
    events.is_ok_and(held)
}

/// Whether a directory looks like a recording; an export has files of some of its names.
pub fn is_recording(directory: &Path) -> bool {
    directory.join("run.json").is_file() && directory.join("events.jsonl").is_file()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_directory_name_is_safe_whatever_the_run_is_called() {
        let name = directory_name(Timestamp::UNIX_EPOCH, "../a b\n(c)");
        assert_eq!(name, "1970-01-01T00-00-00.000Z-.._a_b__c_");
    }

    #[test]
    fn a_recording_is_private_and_never_uses_a_directory_that_is_not_empty() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        assert_eq!(create_directory(&path).unwrap(), 2);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(create_directory(&path).unwrap(), 0, "an empty one is taken");
        write_whole(&path.join("x"), b"1").unwrap();
        assert_eq!(path.join("x").metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(matches!(create_directory(&path), Err(Error::Occupied { .. })));
    }

    #[test]
    fn runs_that_begin_together_have_directories_of_their_own() {
        let parent = tempfile::tempdir().unwrap();
        let names = |_| create_new_directory(parent.path(), "now").unwrap().0;
        let made: std::collections::HashSet<PathBuf> = (0..3).map(names).collect();
        assert_eq!(made.len(), 3);
    }

    #[test]
    fn a_pipe_or_a_device_in_place_of_a_file_is_refused_at_once() {
        let parent = tempfile::tempdir().unwrap();
        let pipe = parent.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(open_regular(&pipe).is_err());
        assert!(read_regular(Path::new("/dev/zero")).is_err());
    }

    #[test]
    fn git_ignores_a_directory_of_recordings_that_weigh_has_made() {
        let above = tempfile::tempdir().unwrap();
        let parent = above.path().join(DEFAULT_DIRECTORY);
        drop(Claim::new_in(&parent, "refused").unwrap());
        assert!(!parent.exists(), "a run that did not happen leaves nothing behind");
        let recorded = Claim::new_in(&parent, "run").unwrap();
        assert_eq!(std::fs::read_to_string(parent.join(".gitignore")).unwrap(), "*\n");
        drop(Claim::new_in(&parent, "refused").unwrap());
        assert!(parent.join(".gitignore").exists() && recorded.directory.exists());
        std::fs::remove_file(parent.join(".gitignore")).unwrap();
        let _again = Claim::new_in(&parent, "again").unwrap();
        assert!(!parent.join(".gitignore").exists(), "the user's choice");
    }

    #[test]
    fn a_run_that_did_not_happen_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("a/b");
        let mut claim = Claim::of(&path).unwrap();
        assert!(claim.events().is_some());
        write_whole(&path.join("run.json"), b"{}").unwrap();
        create_directory(&path.join("host")).unwrap();
        discard(&path, claim.made);
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn recording_is_locked_while_it_is_written() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("run");
        let mut claim = Claim::of(&path).unwrap();
        let events = claim.events().unwrap();
        drop(claim);
        assert!(is_locked(&path) && is_locked(&path), "asking changes nothing");
        events.unlock().unwrap();
        assert!(!is_locked(&path));
        assert!(!is_locked(parent.path()), "no recording");
    }

    #[test]
    fn of_many_claims_of_a_directory_one_succeeds_and_the_others_remove_nothing() {
        let parent = tempfile::tempdir().unwrap();
        for round in 0..100 {
            let path = parent.path().join(format!("{round}/run"));
            let start = std::sync::Barrier::new(4);
            let claims: Vec<Result<Claim, Error>> = std::thread::scope(|scope| {
                let claim = || {
                    start.wait();
                    Claim::of(&path)
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(claim)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let (won, lost): (Vec<_>, Vec<_>) = claims.into_iter().partition(Result::is_ok);
            assert_eq!(won.len(), 1, "{lost:?}");
            let is_occupied =
                |one: &Result<Claim, Error>| matches!(one, Err(Error::Occupied { .. }));
            assert!(lost.iter().all(is_occupied), "{lost:?}");
            drop(lost);
            assert!(path.join(EVENTS).exists(), "the winner's file");
        }
    }

    #[test]
    fn unused_claim_leaves_nothing_behind() {
        let parent = tempfile::tempdir().unwrap();
        drop(Claim::of(&parent.path().join("a/b")).unwrap());
        assert_eq!(std::fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
