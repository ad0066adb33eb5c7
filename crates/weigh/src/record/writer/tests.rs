//! Writers whose file system hangs.

use std::io::{Read, pipe};
use std::os::fd::OwnedFd;

use super::*;
use crate::catalog::all_groups;
use crate::catalog::metrics::ProcessMemory;
use crate::model::{Entity, ProcessId};
use crate::record::{Event, Frame, Moment, Recording};
use crate::testing::{BEGIN, FakeRun};

#[test]
fn minute_in_which_the_file_system_hangs_is_buffered_and_nobody_waits() {
    const FLUSHES: u64 = 40;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("run");
    files::create_directory(&path).unwrap();
    let run = FakeRun::new();
    let mut tick = Tick::new(&all_groups());
    // A pipe that nobody reads takes what it holds, and then a write hangs, as on a server that
    // does not answer.
    let (mut reading, writing) = pipe().unwrap();
    let writing = File::from(OwnedFd::from(writing));
    let mut writer = Writer::begin(&path, writing, &run.manifest, &tick, &[]).unwrap();
    let text = "x".repeat(8 << 10);
    for second in 1..=FLUSHES {
        let at = Duration::from_millis(1500 * second);
        tick.begin(at);
        let process = Entity::Process(ProcessId { pid: 1, started: 1 });
        tick.put(process, &ProcessMemory { rss: Some(second), ..ProcessMemory::default() });
        writer.tick(&tick);
        writer.event(Entry::new(at, Event::Mark { text: text.clone() }));
        writer.flush(at);
    }
    assert!(writer.waiting.load(Ordering::Relaxed) > 0, "it hangs");
    // The server answers again.
    let server = std::thread::spawn(move || {
        let mut events = Vec::new();
        reading.read_to_end(&mut events).map(|_| events)
    });
    assert_eq!(writer.finish(Duration::from_secs(60), || false), [""; 0]);
    let events = server.join().unwrap().unwrap();
    assert_eq!(events.iter().filter(|byte| **byte == b'\n').count() as u64, FLUSHES);
    std::fs::write(path.join(files::EVENTS), &events).unwrap();
    let recording = Recording::open(&path).unwrap();
    assert_eq!(recording.manifest().started.as_second(), BEGIN as i64);
    let mut ticks = 0;
    let each = |frame: &Frame<'_>| ticks += u64::from(matches!(frame.moment, Moment::Tick(_)));
    recording.replay(&all_groups(), each).unwrap();
    assert_eq!(ticks, FLUSHES);
}
