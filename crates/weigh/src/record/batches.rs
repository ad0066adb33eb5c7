//! The frames of an Arrow IPC stream, walked before Arrow reads them.
//!
//! A stream may be torn, still growing, or untrusted. Every length must fit into the file and every
//! buffer must unpack to a sensible size. An invalid frame is skipped, and the walk resumes at the
//! next valid one. What Arrow still rejects is an error like any other, and costs that batch alone:
//! its reader panics on some malformed schemas.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Once;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::{Message, RecordBatch as BatchHead};
use arrow_schema::{ArrowError, SchemaRef};

use super::integrity::Seal;
use super::{Error, files};

/// The most that one buffer of a batch may unpack to: our own batches have 128 KiB.
const LARGEST_BUFFER: i64 = 256 << 20;

/// Offsets at which a frame is searched for after an invalid one: an untrusted file may be full of
/// candidates.
const MOST_PLACES: usize = 1000;

/// The complete batches of one stream.
pub struct Batches {
    path: PathBuf,
    reader: Option<StreamReader<BufReader<Ranges>>>,
    /// Batches that were not read yet.
    left: u64,
    /// Incomplete bytes at the end.
    pub torn: u64,
    /// Invalid bytes before the end, which are skipped.
    pub skipped: u64,
    /// Rows of all complete batches.
    pub rows: u64,
    /// The length of the file and its checksum.
    pub(super) seal: Seal,
}

impl Batches {
    /// Opens a stream and finds how much of it is complete.
    pub fn open(path: &Path) -> Result<Batches, Error> {
        let failed = |source| Error::file(path, source);
        let mut file = files::open_regular(path)?;
        let length = file.metadata().map_err(failed)?.len();
        let Walked { ranges, end, skipped, rows, frames, crc } =
            walk(&mut file, length).map_err(failed)?;
        // Without even a schema there is nothing to read, which is not an error.
        let reader = (end > 0)
            .then(|| Ranges { file, ranges: ranges.into_iter(), current: None })
            .map(|ranges| guarded(|| StreamReader::try_new(BufReader::new(ranges), None)))
            .transpose()
            .map_err(|error| Error::malformed(path, error))?;
        let seal = Seal { bytes: length, crc32: crc };
        let (path, torn) = (path.to_owned(), length - end);
        Ok(Batches { path, reader, left: frames, torn, skipped, rows, seal })
    }

    /// Its columns; nothing when not even the schema has reached the disk.
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

    /// The next batch. An invalid one is an error, and those after it are still returned.
    fn next(&mut self) -> Option<Self::Item> {
        // Each is read in full before Arrow parses it; never more of them than there are.
        let reader = self.reader.as_mut().filter(|_| self.left > 0)?;
        self.left -= 1;
        let batch = guarded(|| reader.next().transpose()).transpose()?;
        Some(batch.map_err(|error| Error::malformed(&self.path, error)))
    }
}

/// Parts of a file, read one after the other.
struct Ranges {
    file: File,
    ranges: std::vec::IntoIter<Range<u64>>,
    /// Where the next byte is, and the end of its part.
    current: Option<Range<u64>>,
}

impl Read for Ranges {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        while self.current.as_ref().is_none_or(Range::is_empty) {
            let Some(next) = self.ranges.next() else { return Ok(0) };
            self.current = Some(next);
        }
        let Some(current) = &mut self.current else { return Ok(0) };
        let most = into.len().min((current.end - current.start) as usize);
        let count = self.file.read_at(&mut into[..most], current.start)?;
        if count == 0 {
            // The file was truncated since.
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        current.start += count as u64;
        Ok(count)
    }
}

/// The result of a walk through the frames of a stream.
struct Walked {
    /// Where the valid frames are.
    ranges: Vec<Range<u64>>,
    /// Where the last of them ends.
    end: u64,
    /// Invalid bytes before that.
    skipped: u64,
    rows: u64,
    /// How many batches there are, those of dictionaries included.
    frames: u64,
    crc: u32,
}

/// One valid frame.
struct IpcMessage {
    end: u64,
    /// Rows, when it is a batch of them.
    rows: Option<u64>,
    is_schema: bool,
    is_end: bool,
}

/// Finds the valid frames, and the checksum of the whole file.
fn walk(file: &mut File, length: u64) -> std::io::Result<Walked> {
    let crc = checksum(file, length)?;
    let mut walked = Walked { ranges: Vec::new(), end: 0, skipped: 0, rows: 0, frames: 0, crc };
    let mut places = MOST_PLACES;
    let (mut at, mut buffer) = (0, Vec::new());
    while at < length {
        // The first is the schema: without it nothing after it can be read.
        let wants_schema = walked.end == 0;
        let fits = |frame: &IpcMessage| frame.is_schema == wants_schema;
        match frame(file, at, length, &mut buffer)?.filter(fits) {
            Some(found) => {
                walked.skipped += at - walked.end;
                match walked.ranges.last_mut().filter(|last| last.end == at) {
                    Some(last) => last.end = found.end,
                    None => walked.ranges.push(at..found.end),
                }
                (at, walked.end) = (found.end, found.end);
                walked.rows += found.rows.unwrap_or(0);
                walked.frames += u64::from(!found.is_schema && !found.is_end);
                if found.is_end {
                    break;
                }
            }
            None if wants_schema || places == 0 => break,
            None => {
                places -= 1;
                let Some(next) = next_marker(file, at + 1, length)? else { break };
                at = next;
            }
        }
    }
    Ok(walked)
}

fn checksum(file: &mut File, length: u64) -> std::io::Result<u32> {
    file.seek(SeekFrom::Start(0))?;
    let mut crc = crc32fast::Hasher::new();
    let mut chunk = vec![0; 256 << 10];
    let mut left = length;
    while left > 0 {
        let most = chunk.len().min(left as usize);
        let count = file.read(&mut chunk[..most])?;
        if count == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        crc.update(&chunk[..count]);
        left -= count as u64;
    }
    Ok(crc.finalize())
}

/// The next offset at which a frame may begin: frames are padded to 8 bytes.
fn next_marker(file: &File, from: u64, length: u64) -> std::io::Result<Option<u64>> {
    let mut chunk = vec![0; 64 << 10];
    let mut at = from.next_multiple_of(8);
    while at + 8 <= length {
        let most = chunk.len().min((length - at) as usize);
        let count = file.read_at(&mut chunk[..most], at)? & !7;
        if count == 0 {
            return Ok(None);
        }
        let found = chunk[..count].chunks_exact(8).position(|word| word[..4] == MARKER);
        if let Some(place) = found {
            return Ok(Some(at + place as u64 * 8));
        }
        at += count as u64;
    }
    Ok(None)
}

/// What each frame begins with.
const MARKER: [u8; 4] = [0xff; 4];

/// The frame at an offset of a stream, if it is valid.
fn frame(
    file: &File,
    at: u64,
    length: u64,
    buffer: &mut Vec<u8>,
) -> std::io::Result<Option<IpcMessage>> {
    // A marker and the length of the frame's header.
    let mut prefix = [0; 8];
    if length - at < 8 {
        return Ok(None);
    }
    file.read_exact_at(&mut prefix, at)?;
    let [m0, m1, m2, m3, l0, l1, l2, l3] = prefix;
    let head_length = u64::from(u32::from_le_bytes([l0, l1, l2, l3]));
    if [m0, m1, m2, m3] != MARKER || !head_length.is_multiple_of(8) || head_length > length - at - 8
    {
        return Ok(None);
    }
    if head_length == 0 {
        // The end-of-stream marker of other writers.
        let end = IpcMessage { end: at + 8, rows: None, is_schema: false, is_end: true };
        return Ok(Some(end));
    }
    buffer.resize(head_length as usize, 0);
    file.read_exact_at(buffer, at + 8)?;
    let Ok(message) = arrow_ipc::root_as_message(buffer) else { return Ok(None) };
    let after_head = at + 8 + head_length;
    let body_length = u64::try_from(message.bodyLength()).unwrap_or(u64::MAX);
    if body_length > length - after_head {
        return Ok(None);
    }
    let mut body = vec![0; body_length as usize];
    file.read_exact_at(&mut body, after_head)?;
    if !buffers_make_sense(&message, &body) {
        return Ok(None);
    }
    let batch = message.header_as_record_batch();
    Ok(Some(IpcMessage {
        end: after_head + body_length,
        rows: batch.map(|batch| u64::try_from(batch.length()).unwrap_or(0)),
        is_schema: message.header_as_schema().is_some(),
        is_end: false,
    }))
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
pub(crate) fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
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
