//! The frames of an Arrow IPC stream, walked before Arrow reads them.
//!
//! A stream may be torn, still growing, or from a stranger. Every length must fit
//! into the file and every buffer unpack to a sensible size; the walk ends at the
//! first frame where that is not so. What Arrow still stumbles over is an error
//! like any other: its reader panics on some malformed schemas.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Once;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::{Message, RecordBatch as BatchHead};
use arrow_schema::{ArrowError, SchemaRef};

use super::{Error, files};

/// The most that one buffer of a batch may unpack to: our own batches have 128 KiB.
const LARGEST_BUFFER: i64 = 256 << 20;

/// The whole batches of one stream.
pub struct Batches {
    path: PathBuf,
    reader: Option<StreamReader<BufReader<std::io::Take<File>>>>,
    /// Bytes at the end that are not whole.
    pub torn: u64,
    /// Rows of all whole batches together.
    pub rows: u64,
}

impl Batches {
    /// Opens a stream and finds out how much of it is whole.
    pub fn open(path: &Path) -> Result<Batches, Error> {
        let failed = |source| Error::file(path, source);
        let mut file = files::open_regular(path)?;
        let length = file.metadata().map_err(failed)?.len();
        let (whole, rows) = whole_frames(&mut file, length).map_err(failed)?;
        file.seek(SeekFrom::Start(0)).map_err(failed)?;
        // Without even a schema there is nothing to read, which is not an error.
        let reader = (whole > 0)
            .then(|| guarded(|| StreamReader::try_new(BufReader::new(file.take(whole)), None)))
            .transpose()
            .map_err(|error| Error::malformed(path, error))?;
        Ok(Batches { path: path.to_owned(), reader, torn: length - whole, rows })
    }

    /// What its columns are; nothing when not even that has reached the disk.
    pub fn schema(&self) -> Option<SchemaRef> {
        self.reader.as_ref().map(StreamReader::schema)
    }

    /// Which file it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Iterator for Batches {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let reader = self.reader.as_mut()?;
        let batch = guarded(|| reader.next().transpose()).transpose()?;
        if batch.is_err() {
            // What comes after a batch that makes no sense makes none either.
            self.reader = None;
        }
        Some(batch.map_err(|error| Error::malformed(&self.path, error)))
    }
}

/// How many bytes from the beginning are whole frames that make sense, and the rows in them.
fn whole_frames(file: &mut File, length: u64) -> std::io::Result<(u64, u64)> {
    let mut file = BufReader::new(file);
    let (mut head, mut body) = (Vec::new(), Vec::new());
    let (mut end, mut rows) = (0, 0);
    loop {
        // A marker and the length of the frame's head.
        let mut prefix = [0; 8];
        if length - end < 8 {
            return Ok((end, rows));
        }
        file.read_exact(&mut prefix)?;
        let [m0, m1, m2, m3, l0, l1, l2, l3] = prefix;
        let head_length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
        if [m0, m1, m2, m3] != [0xff; 4] || head_length > length - end - 8 {
            return Ok((end, rows));
        }
        if head_length == 0 {
            // The mark that other writers put at the end.
            return Ok((end + 8, rows));
        }
        head.resize(head_length as usize, 0);
        file.read_exact(&mut head)?;
        let Ok(message) = arrow_ipc::root_as_message(&head) else { return Ok((end, rows)) };
        let after_head = end + 8 + head_length;
        let body_length = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
        if body_length > length - after_head {
            return Ok((end, rows));
        }
        body.resize(body_length as usize, 0);
        file.read_exact(&mut body)?;
        if !buffers_make_sense(&message, &body) {
            return Ok((end, rows));
        }
        end = after_head + body_length;
        let length = message.header_as_record_batch().map_or(0, |batch| batch.length());
        rows += u64::try_from(length).unwrap_or(0);
    }
}

/// Whether every buffer lies in the body and unpacks to a sensible size.
fn buffers_make_sense(message: &Message<'_>, body: &[u8]) -> bool {
    let dictionary = message.header_as_dictionary_batch().and_then(|batch| batch.data());
    let batch: Option<BatchHead<'_>> = message.header_as_record_batch().or(dictionary);
    let Some(batch) = batch else { return true };
    let compressed = batch.compression().is_some();
    batch.buffers().into_iter().flatten().all(|buffer| {
        let range = usize::try_from(buffer.offset())
            .ok()
            .zip(usize::try_from(buffer.length()).ok())
            .and_then(|(offset, length)| body.get(offset..offset.checked_add(length)?));
        match range {
            None => false,
            // A compressed buffer begins with its size; -1 says that it is not compressed.
            Some(bytes) if compressed && !bytes.is_empty() => bytes
                .first_chunk()
                .map(|size| i64::from_le_bytes(*size))
                .is_some_and(|size| (-1..=LARGEST_BUFFER).contains(&size)),
            Some(_) => true,
        }
    })
}

thread_local! {
    /// Whether a panic of this thread is expected and will be caught.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls into Arrow, and turns a panic over malformed bytes into an error.
fn guarded<T>(read: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    caught(read).unwrap_or_else(|| {
        Err(ArrowError::ParseError("Arrow cannot make sense of these bytes".to_owned()))
    })
}

/// Calls into a library that panics where it should fail; nothing when it did.
pub fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                hook(panic);
            }
        }));
    });
    GUARDED.set(true);
    let outcome = std::panic::catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(false);
    outcome.ok()
}
