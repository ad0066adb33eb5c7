//! Loads that use files: bytes written and read by children, open descriptors.
//!
//! The children read and write by plain system calls and nothing else, so
//! `rchar` and `wchar` of their /proc/PID/io are exactly their shares. The parent
//! has read some 5 KB more before it started (exec and the loader read ELF headers),
//! and its /proc/PID/io includes the children once it has reaped them.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::time::Duration;

use crate::process::{code_of, fork, sleep, wait_for};
use crate::{Failure, failed};

const BYTES_PER_CALL: usize = 64 * 1024;

/// `count` children append `size` bytes to the file in total.
pub(crate) fn write(path: &Path, size: usize, count: usize) -> Result<(), Failure> {
    let append = |_offset: usize, mut share: usize| -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        let block = vec![b'w'; BYTES_PER_CALL];
        while share > 0 {
            share -= repeat_interrupted(|| file.write(&block[..share.min(BYTES_PER_CALL)]))?;
        }
        Ok(())
    };
    in_shares(path, size, count, append)
}

/// `count` children read the first `size` bytes of the file in total.
pub(crate) fn read(path: &Path, size: usize, count: usize) -> Result<(), Failure> {
    let length = path.metadata().map_err(|why| failed(path.display(), why))?.len();
    if length < size as u64 {
        return Err(Failure::Failed(format!("{}: has only {length} bytes", path.display())));
    }
    let read_share = |offset: usize, mut share: usize| -> io::Result<()> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(offset as u64))?;
        let mut block = vec![0; BYTES_PER_CALL];
        while share > 0 {
            let wanted = share.min(BYTES_PER_CALL);
            match repeat_interrupted(|| file.read(&mut block[..wanted]))? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                got => share -= got,
            }
        }
        Ok(())
    };
    in_shares(path, size, count, read_share)
}

/// Runs `work(offset, bytes)` in one child after the other; the shares add up to `size`.
fn in_shares(
    path: &Path,
    size: usize,
    count: usize,
    work: impl Fn(usize, usize) -> io::Result<()>,
) -> Result<(), Failure> {
    let mut offset = 0;
    for children_left in (1..=count).rev() {
        let share = (size - offset) / children_left;
        let body = || code_of(work(offset, share).map_err(|why| failed(path.display(), why)));
        // SAFETY: this load has not started a thread.
        wait_for(unsafe { fork(body) }?)?;
        offset += share;
    }
    Ok(())
}

fn repeat_interrupted(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(why) if why.kind() == io::ErrorKind::Interrupted => {}
            outcome => return outcome,
        }
    }
}

/// Holds `count` descriptors of /dev/null for `duration`.
pub(crate) fn hold_descriptors(count: usize, duration: Duration) -> Result<(), Failure> {
    let mut held = Vec::with_capacity(count);
    for number in 1..=count {
        let file = File::open("/dev/null");
        held.push(file.map_err(|why| failed(format!("/dev/null, open number {number}"), why))?);
    }
    sleep(duration);
    Ok(())
}
